"""Consoles that show text as it is: no markup, no emoji codes, and no control characters that came with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from holdfast.utils.messages import printable


class _PlainConsole(Console):
    """All text of all renderables passes `render`; styles and movements of the cursor are added after it."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(printable(text), **settings)  # before rich drops some of them


def console(*, stderr: bool = False, soft_wrap: bool = True, width: int | None = None) -> Console:
    """``soft_wrap`` leaves long lines, such as paths, in one piece."""
    return _PlainConsole(stderr=stderr, soft_wrap=soft_wrap, width=width, markup=False, emoji=False, highlight=False)
