"""What `holdfast methods`, `datasets` and `families list` show. Loads without torch and pandas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from holdfast.families.entries import Entry, StoreError, in_units, read_manifest
from holdfast.families.recipe import counted

if TYPE_CHECKING:
    from holdfast.datasets.cards import Card

MethodLine = dict[str, str]  # name, summary, source, defaults


def describe_methods(
    methods: Mapping[str, Callable[..., object]], stabilisers: Mapping[str, Callable[..., object]]
) -> list[MethodLine]:
    """Each method, then each stabiliser, as `method_list` shows it."""
    named = {**methods, **{f"+{name}": make for name, make in stabilisers.items()}}
    return [_described(name, make()) for name, make in named.items()]


def _described(name: str, method: object) -> MethodLine:
    summary = (method.__doc__ or "").strip().split("\n")[0]
    return {"name": name, "summary": summary, "source": getattr(method, "source", ""), "defaults": repr(method)}


def method_list(methods: Sequence[MethodLine]) -> Group:
    """One line per method or stabiliser, with its source and its defaults below."""
    return Group(*(_method_text(**method) for method in methods))


def _method_text(name: str, summary: str, source: str, defaults: str) -> Text:
    text = Text(f"{name:<12}", style="bold").append(summary)
    return text.append(f"\n{'':12}{source}\n{'':12}{defaults}\n", style="dim")


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
    """Each family of a store on a line, and how much room they take together."""
    total = Text(f"{len(entries)} {'family' if len(entries) == 1 else 'families'}, ", style="dim")
    total.append(in_units(sum(entry.size() for entry in entries)))
    return Group(*(family_line(entry) for entry in entries), total)


def family_line(entry: Entry) -> Text:
    text = Text(entry.folder.name, style="bold").append(f"  {in_units(entry.size()):>10}  ")
    try:
        if not entry.complete:
            return text.append(f"not finished, {entry.members_so_far()} members so far", style="yellow")
        return text.append(counted([member["kind"] for member in read_manifest(entry.folder)["members"]]))
    except StoreError as error:  # the others are listed all the same
        return text.append(f"damaged: {error}", style="red")
