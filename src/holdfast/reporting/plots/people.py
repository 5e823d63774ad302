"""What one person changes, plan by plan: each feature from now to then, with its values written beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from holdfast.explaining.person import Change, PersonAdvice, PersonPlan, in_words
from holdfast.reporting.plots.marks import ink, legend_above, say
from holdfast.reporting.plots.style import BLUE, VERMILLION
from holdfast.utils.messages import printable

LONGEST_TEXT = 24  # letters of a value or a name that are shown
LETTER, MARK = 0.02, 0.03  # of the width: about the room of a letter and of a mark
MOST_WORD_WIDTH = 0.75  # of the width is for words
HEADING = 0.35  # the room above a plan's heading


@dataclass(frozen=True)
class _Line:
    """One change on its line: where it begins and ends between 0 and 1, with words, and whether these are numbers."""

    start: float
    end: float
    now: str
    then: str
    is_number: bool

    @property
    def rises(self) -> bool:
        return self.end >= self.start


def draw_person(axes: Axes, person: PersonAdvice) -> None:
    """Now and then of each feature that a plan changes.

    A number moves on a scale of its own from 0 to the largest value that any plan of this person has: the plans of
    one feature can be compared, and so can relative changes, whatever the units. Categories have no distance: they go
    from left to right.
    """
    plans = [*person.plans, *person.not_durable]
    if not plans:
        say(axes, f"{person.person}: no plan. {_sentence(person.why_not or 'nothing was found')}")
        return
    scales, y, ticks, lines = _scales(plans), 0.0, {}, []
    for plan in plans:
        y += HEADING
        _head(axes, y, plan, plan in person.not_durable)
        for change in plan.changes:
            y += 1
            lines.append(_line(change, scales.get(change.feature)))
            _draw_line(axes, y, lines[-1])
            ticks[y] = _cut(change.feature.replace("_", " ")) + (" (follows)" if change.follows else "")
        y += 1
    axes.set_yticks(list(ticks), list(ticks.values()), parse_math=False)
    axes.set_ylim(y - 0.4, -0.4)
    _bare(axes, lines)
    _explain(axes, person)


def lines_of(person: PersonAdvice) -> int:
    """How many lines the picture of a person takes."""
    plans = [*person.plans, *person.not_durable]
    return sum(1 + len(plan.changes) for plan in plans) if plans else 2


def _scales(plans: list[PersonPlan]) -> dict[str, tuple[float, float]]:
    """Both ends of the scale of each feature that is a number in every plan."""
    seen: dict[str, list[Any]] = {}
    for change in (change for plan in plans for change in plan.changes):
        seen.setdefault(change.feature, []).extend((change.before, change.after))
    return {name: (min(0, *values), max(0, *values)) for name, values in seen.items() if all(map(_is_number, values))}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _line(change: Change, scale: tuple[float, float] | None) -> _Line:
    words = _cut(in_words(change.before)), _cut(in_words(change.after))
    if scale is None or scale[0] == scale[1]:
        return _Line(0.0, 1.0, *words, is_number=False)
    low, high = scale
    start, end = ((float(value) - low) / (high - low) for value in (change.before, change.after))
    return _Line(start, end, *words, is_number=True)


def _head(axes: Axes, y: float, plan: PersonPlan, not_durable: bool) -> None:
    words = f"Plan {plan.plan} costs {plan.cost:.3g}"
    if plan.members:
        words += f"; {plan.held} of {plan.members} audit models accept it"
    if not_durable:
        words = f"Not durable: {words[0].lower()}{words[1:]}"
    across = axes.get_yaxis_transform()
    axes.text(0, y, words, transform=across, va="center", fontweight="bold", parse_math=False)


def _draw_line(axes: Axes, y: float, line: _Line) -> None:
    marker = "o" if line.is_number else "s"
    axes.plot([0, 1], [y, y], color=ink(axes), alpha=0.15, linewidth=1, zorder=1)
    arrow = {"arrowstyle": "-|>", "color": BLUE, "linewidth": 1.6, "shrinkA": 4, "shrinkB": 4}
    axes.annotate("", (line.end, y), (line.start, y), arrowprops=arrow)
    axes.plot([line.start], [y], marker, color=BLUE, markerfacecolor="none", markersize=7, gid="now", zorder=3)
    axes.plot([line.end], [y], marker, color=VERMILLION, markersize=7, gid="then", zorder=3)
    for at, words, left in ((line.start, line.now, line.rises), (line.end, line.then, not line.rises)):
        axes.annotate(
            words, (at, y), (-8 if left else 8, 0), textcoords="offset points", va="center",
            ha="right" if left else "left", parse_math=False,
        )  # fmt: skip


def _bare(axes: Axes, lines: list[_Line]) -> None:
    """No scale below, since every line has its own; room for the words at both ends."""
    left = [line.now if line.rises else line.then for line in lines]
    right = [line.then if line.rises else line.now for line in lines]
    room = [MARK + LETTER * max(map(len, side), default=0) for side in (left, right)]
    share = min(1.0, MOST_WORD_WIDTH / sum(room)) / (1 - min(sum(room), MOST_WORD_WIDTH))
    axes.set_xlim(-room[0] * share, 1 + room[1] * share)
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _explain(axes: Axes, person: PersonAdvice) -> None:
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 7}
    axes.plot([], [], color=BLUE, markerfacecolor="none", label="now", **look)
    axes.plot([], [], color=VERMILLION, label="then", **look)
    axes.set_xlabel("each number on a scale of its own from 0; squares are categories", fontsize="small")
    who = f"{person.person}: '{person.now}' now, '{person.wanted}' wanted"
    legend_above(axes, title=_cut(who, 2 * LONGEST_TEXT))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _cut(words: str, longest: int = LONGEST_TEXT) -> str:
    words = printable(words)
    return words if len(words) <= longest else f"{words[: longest - 1]}…"
