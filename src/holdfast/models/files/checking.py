"""What trees in a file must be, whatever library reads them: lists of the right length, and every node in its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_CLASSES, MOST_COLUMNS = 10_000, 100_000
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?", re.ASCII)


def expect(true: bool, what: str) -> None:
    if not true:
        raise ValueError(f"it is wrong about {what}")


def check_is_tree(children: NDArray[np.int64], size: int, what: str = "the children of nodes") -> None:
    """Every node but the first is the child of one other: so whoever goes down from the first arrives at a leaf."""
    expect(len(children) == size - 1 and bool((np.sort(children) == np.arange(1, size)).all()), what)
    expect(size > 0, "the number of nodes")


def splits_of(left: NDArray[Any], right: NDArray[Any], size: int) -> NDArray[np.bool_]:
    """Which nodes of a tree are splits, if every one has two children in their places and a leaf has −1 for both."""
    left, right = left.astype(np.int64), right.astype(np.int64)
    inner: NDArray[np.bool_] = left >= 0
    expect(len(left) == len(right) == size and bool((inner == (right >= 0)).all()), "the children of nodes")
    expect(bool((left[~inner] == -1).all() and (right[~inner] == -1).all()), "the children of leaves")
    check_is_tree(np.concatenate([left[inner], right[inner]]), size)
    return inner


def whole_numbers(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers that are given as numbers."""
    if isinstance(values, list):
        expect(all(type(value) is int and abs(value) < 1 << 62 for value in values), "a list of whole numbers")
    found = np.asarray(values)
    expect(found.ndim == 1 and (found.dtype.kind in "iub" or not len(found)), "a list of whole numbers")
    return found.astype(np.int64)


def written_numbers(text: str, count: int) -> list[str]:
    """The words of a list of numbers as text, if they are so many, finite, and written so that everybody reads them
    alike: Python also takes 1_0, other digits than ours, and words such as infinity."""
    words = text.split(" ") if text else []
    expect(len(words) == count, "the length of a list")
    expect(all(_NUMBER.fullmatch(word) and np.isfinite(float(word)) for word in words), "a list of numbers")
    return words


def inside(values: NDArray[Any], least: int, end: int) -> bool:
    return bool(((values >= least) & (values < end)).all())


def rises(values: NDArray[np.int64]) -> bool:
    return bool((np.diff(values) >= 0).all())


def without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A dictionary, if no key comes twice: of two values one reader takes the first, another the last."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        expect(key not in found, f"{key[:40]!r}: it is there twice")
        found[key] = value
    return found


def dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    """Every dictionary in a value of JSON."""
    left = [value]
    while left:
        current = left.pop()
        if isinstance(current, dict):
            yield current
            left += current.values()
        elif isinstance(current, list):
            left += current
