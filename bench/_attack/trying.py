"""One try of an attack, and what counts as an error that was meant for the user."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Try:
    what: str  # was done
    surprise: str | None = None  # what was expected and what happened instead
    detail: str = ""  # that tells this try from others of the same kind


def judged(what: str, fine: bool, expected: str, happened: object = "", detail: str = "") -> Try:
    return Try(what, None if fine else f"expected {expected}; got {short(happened)}", detail)


def short(happened: object, most: int = 160) -> str:
    """What happened in one line."""
    name = f"{type(happened).__name__}: " if isinstance(happened, BaseException) else ""
    text = " ".join(f"{name}{happened}".replace(f"{Path.cwd()}{os.sep}", "").split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def kind_of(happened: object) -> str:
    """An error in the same words for every file and number: its type."""
    return f"a {type(happened).__name__}" if isinstance(happened, BaseException) else short(happened)


def is_sentence(error: BaseException, *names: object) -> bool:
    """Whether the error was written for a reader: raised by holdfast itself, or by the system with the file's name.

    Of ``names``, one must be in it.
    """
    text = str(error)
    if names and not any(str(name) in text for name in names):
        return False
    if isinstance(error, OSError):
        return bool(error.filename) or _raised_by_holdfast(error)
    return isinstance(error, (ValueError, TypeError)) and _raised_by_holdfast(error)


def _raised_by_holdfast(error: BaseException) -> bool:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.sep}holdfast{os.sep}" in frame.filename and str(frame.line).startswith("raise")


def outcome(call: Callable[[], Any]) -> Any:
    """What the call gives, or the error that it raises."""
    try:
        return call()
    except Exception as error:
        return error


def answer_or_sentence(what: str, call: Callable[[], Any], *names: object, detail: str = "") -> Try:
    happened = outcome(call)
    fine = not isinstance(happened, Exception) or is_sentence(happened, *names)
    return judged(what, fine, "an answer or a sentence", happened, detail)
