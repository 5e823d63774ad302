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
"""What is known about each of the paper's datasets, by name.

Each entry has the ``schema``, the number of ``rows`` and of encoded columns (``features``), the paper's ``split`` into
training and test rows and its ``scaling``, and the ``licence``, ``source`` and ``home`` of the file. ``load()`` reads
the table, and ``state()`` says whether the file is there.

Examples:
    >>> from holdfast.datasets import DATASETS
    >>> list(DATASETS)
    ['german', 'seizure', 'ctg', 'warfarin', 'heloc', 'taiwan']
    >>> german = DATASETS["german"]
    >>> german.rows, german.features, german.split, german.scaling
    (1000, 61, (700, 200), 'standard')

Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Data) and Appendix B.1.
"""


def card(name: str) -> Card:
    if name not in DATASETS:
        raise ValueError(f"no dataset '{name}'; there are {', '.join(DATASETS)}")
    return DATASETS[name]


def load(name: str) -> tuple[pd.DataFrame, Schema]:
    """One of the paper's six datasets: the whole table in readable units, and its schema.

    German Credit comes with holdfast. The files of the others are read from the folder that the environment variable
    ``HOLDFAST_DATA`` names. Where a file is missing, the error says how to get it.

    Args:
        name: "german", "seizure", "ctg", "warfarin", "heloc" or "taiwan"

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> table.shape  # 20 features and the label
        (1000, 21)
        >>> schema.label, schema.classes
        ('risk', ('bad', 'good'))

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Data) and Appendix B.1.
    """
    return card(name).load()
