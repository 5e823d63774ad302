"""Retrain a user's module of torch, by a recipe, on a table: what `refit` is to estimators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from torch import nn

from holdfast.families.family import Family
from holdfast.families.judging import compared_rows, judged
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.training import train
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.deployed import Deployed
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding


def retrained_network(
    deployed: Model,
    recipe: Recipe,
    encoding: Encoding,
    table: pd.DataFrame,
    changes: Sequence[Retraining],
    *,
    new: pd.DataFrame | None = None,
    held_out: pd.DataFrame | None = None,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Family:
    """Networks trained by the recipe on the table that the deployed one was trained on, and judged beside it.

    The recipe says how the deployed network was trained: ``Recipe(network=module, epochs=..., batch=...)``. It trains
    modules that take encoded rows and give one logit per class. Another module is trained by a function of the user's,
    see `train_by`. If the members do not resemble the deployed model, ``surrogates`` says why, as for `refit`.
    """
    _check_module(deployed)
    own = deployed.own if isinstance(deployed, Deployed) else deployed
    members = tuple(changes)
    family = train(
        encoding.encode(table),
        encoding.labels(table),
        recipe,
        members,
        new=None if new is None else (encoding.encode(new), encoding.labels(new)),
        base=own if any(change.continued for change in members) else None,
        held_out=None if held_out is None else (encoding.encode(held_out), encoding.labels(held_out)),
        store=store,
        classes=len(encoding.schema.classes),
        workers=workers,
        progress=progress,
    )
    x, y, where = compared_rows(encoding, table, held_out)
    return judged(family, deployed, x, y, where)


def _check_module(deployed: Model) -> None:
    """A module that is asked otherwise than a recipe asks its networks is another model than they are."""
    if not isinstance(deployed, Deployed) or not isinstance(deployed.own, nn.Module):
        return
    if not isinstance(deployed.ask, Adapter):
        return
    given, output = deployed.ask.input, deployed.ask.output
    as_trained = output.kind == "logits" and not output.single and output.places == tuple(range(len(output.places)))
    if given.takes != "encoded" or not as_trained:
        raise ValueError(
            f"{deployed}: a recipe trains modules that take encoded rows and give one logit per class, in the order of "
            "the schema; retrain this one with a function of your own that takes (rows, seed) and returns the module"
        )
