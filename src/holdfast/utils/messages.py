"""Values as error messages show them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

# What a terminal obeys instead of showing: control characters but new lines and tabs, marks that turn the direction of
# writing, separators that end a line; and halves of characters, which no encoding can write.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with each character that a terminal would obey shown by its code, such as \x1b."""
    return _UNSEEN.sub(lambda found: _code(ord(found[0])), text)


def _code(point: int) -> str:
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}"


def plain(value: Any) -> Any:
    import numpy as np  # not at the top: the commands that need no numbers start without it

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
