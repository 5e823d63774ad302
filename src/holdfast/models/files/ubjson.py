"""UBJSON, as XGBoost writes it: read without calling itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.models.files.untrusted import DEEPEST_VALUES

KINDS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"u": ">u2", b"l": ">i4", b"m": ">u4", b"L": ">i8", b"M": ">u8",
         b"d": ">f4", b"D": ">f8", b"C": "S1"}  # fmt: skip
WORDS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}
COUNTS = (b"i", b"U", b"I", b"u", b"l", b"m", b"L", b"M")


def from_ubjson(contents: bytes) -> Any:
    """What UBJSON says, arrays of numbers as arrays of numpy. Raises ValueError where it is cut short or too deep."""
    return _Walk(contents).through()


class _Walk:
    """Through one value and all that it holds, without calling itself."""

    def __init__(self, contents: bytes) -> None:
        self.contents, self.place = contents, 0

    def through(self) -> Any:
        """Each open value is kept with how many values it still lacks: None until its closing bracket."""
        whole: list[Any] = []
        unfinished: list[tuple[Any, int | None]] = [(whole, 1)]
        while unfinished:
            held, left = unfinished.pop()
            if left == 0 or (left is None and self._closes()):
                continue
            key = self._text() if isinstance(held, dict) else None
            value, count = self._value()
            unfinished.append((held, None if left is None else left - 1))
            if isinstance(held, dict):
                if key in held:  # one reader would take the first, another the last
                    raise ValueError(f"the key {key!r:.50} is there twice")
                held[key] = value
            else:
                held.append(value)
            if isinstance(value, (dict, list)):
                unfinished.append((value, count))
            if len(unfinished) > DEEPEST_VALUES:
                raise ValueError(f"values are nested more than {DEEPEST_VALUES} deep")
        return whole[0]

    def _closes(self) -> bool:
        closing = self.contents[self.place : self.place + 1] in (b"]", b"}")
        self.place += closing
        return closing

    def _value(self) -> tuple[Any, int | None]:
        """A value, and how many others a list or dictionary lacks."""
        kind = self._leap(1)
        if kind == b"S":
            return self._text(), 0
        if kind in KINDS:
            return np.frombuffer(self._leap(np.dtype(KINDS[kind]).itemsize), KINDS[kind])[0].item(), 0
        if kind in WORDS:
            return WORDS[kind], 0
        if kind not in (b"[", b"{"):
            raise ValueError(f"no value begins with {kind!r}")
        numbers = self._next_is(b"$")
        of = self._leap(1) if numbers else b""
        count = self._count() if self._next_is(b"#") else None
        if not numbers:
            return ({} if kind == b"{" else []), count
        if of not in KINDS or kind == b"{" or count is None:
            raise ValueError(f"no array of {of!r} is expected")
        return np.frombuffer(self._leap(count * np.dtype(KINDS[of]).itemsize), KINDS[of]), 0

    def _next_is(self, mark: bytes) -> bool:
        there = self.contents[self.place : self.place + 1] == mark
        self.place += there
        return there

    def _text(self) -> str:
        return self._leap(self._count()).decode()

    def _count(self) -> int:
        kind = self._leap(1)
        if kind not in COUNTS:
            raise ValueError(f"a length begins with {kind!r}")
        number = int(np.frombuffer(self._leap(np.dtype(KINDS[kind]).itemsize), KINDS[kind])[0])
        if number < 0:
            raise ValueError(f"a length is {number}")
        return number

    def _leap(self, size: int) -> bytes:
        start, self.place = self.place, self.place + size
        if self.place > len(self.contents):
            raise ValueError(f"{size} bytes are announced where {len(self.contents) - start} are left")
        return self.contents[start : self.place]
