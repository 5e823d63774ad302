"""Old names that still work for one release, with a warning that says the new one."""

from __future__ import annotations

from typing import Any
from warnings import warn


def renamed(old: str, new: str) -> property:
    """A property ``old`` that gives what the property ``new`` gives."""

    def value(self: Any) -> Any:
        kind = type(self).__name__
        warn(f"{kind}.{old} is now {kind}.{new}; the old name goes in 0.3", DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(value)
