"""The demo with few and small networks, for tests of its command: what it shows, and which files it leaves.

What the demo finds with its own networks is in test_demo.py. As a script, this is `holdfast` with such a demo.
"""

from __future__ import annotations

from collections.abc import Callable

import holdfast.demo
from holdfast import Recipe

SETTINGS = {"REHEARSED": 4, "CAUTIONS": (0.0, 0.7), "PAPER_RECIPES": {"german": Recipe((16,), epochs=30)}}


def shrink(put: Callable[[object, str, object], None] = setattr) -> None:
    """Give the demo these settings, in this process; ``put`` may be that of a monkeypatch."""
    for name, value in SETTINGS.items():
        put(holdfast.demo, name, value)


if __name__ == "__main__":
    from holdfast.cli import main

    shrink()
    main()
