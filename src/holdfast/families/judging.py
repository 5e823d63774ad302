"""What is said of members that were just made: are they like the deployed model, and are they several models?"""

from __future__ import annotations

import warnings
from dataclasses import replace

import pandas as pd
import torch
from torch import Tensor

from holdfast.families.family import Family
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding

COMPARED = 1000  # rows on which the members are compared with the deployed model
FEW = 200  # rows that tell whether two members are one model


def compared_rows(encoding: Encoding, table: pd.DataFrame, held_out: pd.DataFrame | None) -> tuple[Tensor, Tensor, str]:
    """Encoded rows, their labels, and where they are from."""
    if held_out is not None:
        return encoding.encode(held_out), encoding.labels(held_out), "held-out rows"
    chosen = torch.linspace(0, len(table) - 1, min(len(table), COMPARED)).round().long().numpy()
    some = table.iloc[chosen]
    return encoding.encode(some), encoding.labels(some), "rows of the table that they were fitted on"


def judged(
    family: Family,
    deployed: Model | None,
    encoding: Encoding,
    table: pd.DataFrame,
    held_out: pd.DataFrame | None = None,
    *,
    unnoticed: str = "",
) -> Family:
    """With the accuracy of each member, and whether the members resemble the deployed model.

    ``unnoticed`` says why members may be one model, where that is to be told.
    """
    x, y, where = compared_rows(encoding, table, held_out)
    if unnoticed:
        _say_what_is_one_model(family, x, unnoticed)
    if deployed is None:
        return replace(family, accuracy=tuple((family.predict(x) == y).double().mean(1).tolist()), surrogates="")
    found = family.resemblance(deployed, x, y)
    if found.deployed_is_worse:
        warnings.warn(
            f"{found.reason} ({where}): the deployed model may get wrong columns, columns that are scaled twice, or "
            "may come from other data; check what as_model says of it",
            stacklevel=3,
        )
    elif found.reason:
        warnings.warn(
            f"the members are surrogates: {found.reason} ({where}); fit them on the data and with the parameters of "
            "the deployed model. Every audit with them says so",
            stacklevel=3,
        )
    known = f"; its parameters are known so: {family.told}" if found.reason and family.told else ""
    return replace(family, accuracy=tuple(found.accuracy.tolist()), surrogates=f"{found.reason}{known}")


def _say_what_is_one_model(family: Family, x: Tensor, why: str) -> None:
    """That some members answer alike is a result; where all of a kind do, nothing is learned from them."""
    for kind in dict.fromkeys(family.kinds):
        members = family.chosen([place for place, name in enumerate(family.kinds) if name == kind])
        if len(members) > 1 and are_one(members, x):
            warnings.warn(
                f"all {len(members)} refits of kind '{kind}' are one model: {why}; {rather(len(members))}",
                stacklevel=4,
            )


def rather(count: int) -> str:
    return f"change the rows as well: changes.bootstrap({count}), or --retrain bootstrap:{count} on the command line"


def are_one(members: Family, x: Tensor) -> bool:
    """Whether all answer alike, to the bit. Two are asked before all are."""
    x = x[:FEW]
    return all(bool((logits == logits[:1]).all()) for logits in (some.logits(x) for some in (members[:2], members)))
