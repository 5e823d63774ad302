"""The paper's six datasets: ``load(name)`` gives the table and its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.datasets import ctg, german, heloc, seizure, taiwan, warfarin
from holdfast.datasets.cards import Card

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.tabular.schema import Schema

DATASETS: dict[str, Card] = {
    card.name: card for card in (german.CARD, seizure.CARD, ctg.CARD, warfarin.CARD, heloc.CARD, taiwan.CARD)
}


def card(name: str) -> Card:
    if name not in DATASETS:
        raise ValueError(f"no dataset '{name}'; there are {', '.join(DATASETS)}")
    return DATASETS[name]


def load(name: str) -> tuple[pd.DataFrame, Schema]:
    """The whole table in readable units, and its schema."""
    return card(name).load()
