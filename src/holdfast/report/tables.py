"""Rows and stories as a person reads them on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from holdfast.checkup import Checkup
from holdfast.datasets.card import Card
from holdfast.families import load_family
from holdfast.families.recipe import counted
from holdfast.families.store import Entry, read_manifest
from holdfast.report.story import Advice, Story


def method_table(rows: Sequence[dict[str, Any]], paper: dict[tuple[str, str], float] | None = None) -> Table:
    """One line a method and kind of change, beside the paper's invalidation where it is known."""
    paper = paper or {}
    title = "How often retraining undoes a counterfactual"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))  # fits 80 columns
    for name in ("method", "change"):
        table.add_column(name, no_wrap=True)
    for name in ("found", "undone %", "95 % interval", "paper", "l1", "l2"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row["method"],
            row["change"],
            f"{row['found']}/{row['rows']}",
            _percent(row["rate"]),
            f"{_percent(row['low'])} - {_percent(row['high'])}",
            _percent(paper.get((row["method"], row["change"]))),
            _cost(row["cost_l1"]),
            _cost(row["cost_l2"]),
        )
    return table


def checkup_text(result: Checkup, most: int = 5) -> Group:
    """What came, how it holds, and the first problems."""
    counts = result.brought.problems["problem"].value_counts()
    answer = result.brought.counterfactuals
    opening = Text(f"{int(answer.found.sum())} of {len(answer)} counterfactuals count", style="bold")
    texts = [opening]
    for problem, count in counts.items():
        shown = result.brought.problems[result.brought.problems["problem"] == problem].head(most)
        texts.append(Text(f"  {count} {problem}", style="yellow"))
        texts += [
            Text(f"    {row}: {detail}", style="dim") for row, detail in zip(shown["row"], shown["detail"], strict=True)
        ]
        texts += [Text(f"    and {count - most} more, in problems.csv", style="dim")] if count > most else []
    return Group(*texts, Text(f"\n{result.audit}\n"))


def method_list(
    methods: Mapping[str, Callable[..., object]], stabilisers: Mapping[str, Callable[..., object]]
) -> Group:
    """Each method and stabiliser on a line, with where it comes from and its defaults below."""
    texts = [_method_text(name, make()) for name, make in methods.items()]
    texts += [_method_text(f"+{name}", make()) for name, make in stabilisers.items()]
    return Group(*texts)


def _method_text(name: str, method: object) -> Text:
    line = (method.__doc__ or "").strip().split("\n")[0]
    text = Text(f"{name:<12}", style="bold").append(line)
    text.append(f"\n{'':12}{getattr(method, 'source', '')}\n{'':12}{method!r}\n", style="dim")
    return text


def dataset_list(cards: Sequence[Card]) -> Group:
    """Each dataset on a line, with its file, its licence and where to get it below."""
    return Group(*(_dataset_text(card) for card in cards))


def _dataset_text(card: Card) -> Text:
    state = card.state()
    text = Text(f"{card.name:<10}", style="bold").append(
        f"{card.title}, {card.rows:,} rows, {card.features} features: "
    )
    text.append(state, style={"here": "green", "missing": "yellow", "wrong checksum": "red"}[state])
    text.append(f"\n{'':10}file     {card.path()}\n{'':10}licence  {card.licence}\n{'':10}from     ", style="dim")
    text.append("ships with holdfast" if card.packaged else card.home, style="dim")
    if card.url and not card.packaged:
        text.append(f"\n{'':10}fetch    holdfast datasets fetch {card.name}", style="dim")
    return text.append("\n")


def family_list(entries: Sequence[Entry]) -> Group:
    """Each family of a store on a line."""
    return Group(*(_family_line(entry) for entry in entries))


def _family_line(entry: Entry) -> Text:
    text = Text(entry.folder.name, style="bold").append(f"  {entry.size() / 1e6:7.1f} MB  ")
    if not entry.complete:
        return text.append(f"not finished, {len(entry.members())} members so far", style="yellow")
    return text.append(counted([member["kind"] for member in read_manifest(entry.folder)["members"]]))


def family_text(entry: Entry) -> Text:
    """All that is known of one family."""
    text = _family_line(entry).append(f"\nfolder    {entry.folder}")
    if not entry.complete:
        return text
    family = load_family(entry.folder)
    manifest = read_manifest(entry.folder)
    text.append(f"\nnetworks  {family}\nrecipe    {family.recipe}\ndata      {(family.data or '-')[:20]}")
    text.append(f"\ntorch     {manifest['torch']}")
    if family.accuracy is not None:
        low, high = min(family.accuracy), max(family.accuracy)
        text.append(f"\naccuracy  {low:.1%} to {high:.1%}; did not learn: {list(family.suspects) or 'none'}")
    return text


def story_text(story: Story, chosen: str) -> Group:
    opening = Text(f"Applicant {story.person}", style="bold").append(f" ({chosen}) was turned down.\n", style="")
    opening.append(f"To be a '{story.wanted}' risk, says\n", style="")
    usual = " and ".join(f"{advice.method}'s advice holds in {advice.usual:.1%}" for advice in story.advice)
    closing = Text(f"On average over all {story.people} who were turned down, {usual} of the networks.\n")
    return Group(opening, *(_advice_text(advice) for advice in story.advice), closing)


def _advice_text(advice: Advice) -> Text:
    text = Text("  ").append(advice.method, style="bold").append(":\n")
    for change in advice.changes:
        text.append(f"    {change}\n")
    share = advice.held / advice.members
    style = "green" if share > 0.9 else "yellow" if share > 0.5 else "red"
    text.append("    then accepted today, and by ")
    text.append(f"{advice.held} of {advice.members}", style=f"bold {style}")
    text.append(f" retrained networks ({share:.1%})\n")
    return text


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _cost(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
