"""Values as error messages show them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def repeated(names: Iterable[Any]) -> list[Any]:
    seen: set[Any] = set()
    return sorted({name for name in names if name in seen or seen.add(name)}, key=str)  # type: ignore[func-returns-value]


def did_you_mean(name: Any, names: Iterable[Any]) -> str:
    close = difflib.get_close_matches(str(name), [str(known) for known in names], n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""


def some(values: Iterable[Any], most: int = 5) -> str:
    """The first few, for a message, and how many there are."""
    shown = [repr(plain(value)) for value in values]
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} in all)" if len(shown) > most else "")
