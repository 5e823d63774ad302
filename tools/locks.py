"""Read requirements.lock and torch.lock."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = (ROOT / "requirements.lock", ROOT / "torch.lock")


@dataclass(frozen=True)
class Pin:
    name: str
    version: str
    hashes: tuple[str, ...]  # SHA-256 of every file that pip may install; none for torch

    @property
    def requirement(self) -> str:
        return f"{self.name}=={self.version}"


def normal(name: str) -> str:
    """A package's name as indexes write it: Typing_Extensions is typing-extensions."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, Pin]:
    """Every locked package by its normal name."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    found = [_pin(*line.split()) for line in lines]
    return {pin.name: pin for pin in found}


def _pin(requirement: str, *options: str) -> Pin:
    name, _, version = requirement.partition("==")
    return Pin(normal(name), version, tuple(option.removeprefix("--hash=sha256:") for option in options))
