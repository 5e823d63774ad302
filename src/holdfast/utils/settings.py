"""Settings as people type them: a whole number, a number, yes or no. What is none of these is told at once."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def check_whole(name: str, value: Any, least: int | None = None) -> None:
    """Raise unless the value is a whole number, and no smaller than ``least``. True and 2.0 are none."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if least is not None and value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}")


def check_number(name: str, value: Any) -> None:
    """Raise unless the value is a number, or one number as an array or tensor; NaN is left to who knows the range."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")


def check_positive(name: str, value: Any) -> None:
    check_number(name, value)
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be above 0 and finite, got {value}")


def check_count(name: str, value: Any) -> None:
    check_whole(name, value, least=1)


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def check_share(name: str, value: Any) -> None:
    """Raise unless the value is a number between 0 and 1, such as a level of confidence."""
    check_number(name, value)
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value}")


def check_seed(name: str, value: Any) -> None:
    check_whole(name, value, least=0)


def check_settings(
    of: Any,
    *,
    whole: str = "",
    numbers: str = "",
    flags: str = "",
    seeds: str = "",
    counts: str = "",
    positive: str = "",
) -> None:
    """The same for the fields of a value, named with spaces between; other ranges are its own matter."""
    usual = ((check_whole, whole), (check_number, numbers), (check_flag, flags), (check_seed, seeds))
    for check, names in (*usual, (check_count, counts), (check_positive, positive)):
        for name in names.split():
            check(name, getattr(of, name))
