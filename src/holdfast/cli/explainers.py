"""The explainer that the options of a command describe: one table, one model, and where retrained ones come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.cli import inputs
from holdfast.cli.tables import Tables
from holdfast.explaining.explainer import Explainer
from holdfast.families.entries import default_store


def explainer_of(
    tables: Tables,
    *,
    model: Path | None,
    train: bool,
    retrain: list[str] | None,
    retrained: list[Path] | None,
    params: Path | None,
    layers: tuple[str | None, int | None, int | None],
    count: int,
    passed_over: Mapping[str, int] | None = None,
    **settings: Any,
) -> Explainer:
    """``layers`` are the options of networks: widths, epochs, rows per batch. A kind of --retrain without a number gets
    the ``count``; the first retrainings of a kind that are ``passed_over`` took part in something that the others must
    not have seen. ``settings`` are the explainer's own."""
    if model is None and not train and retrained and retrained[0].is_dir():
        model = retrained[0]  # a saved family may hold the deployed model too
    _check(model, train, retrain, retrained, layers)
    recipe = inputs.recipe_of(*layers, tables.recipe) if train or layers[0] else None
    changes = inputs.changes_named(retrain or (), len(tables.known), count=count, after=passed_over)
    try:
        return Explainer(
            recipe if train else model,
            tables.known,
            schema=tables.schema,
            retrain=changes or retrained or None,
            recipe=None if train else recipe,
            params=inputs.params_of(params),
            scaling=tables.scaling,
            store=default_store(),
            **settings,
        )
    except TypeError as error:
        if not (model and retrain):
            raise
        raise ValueError(
            f"{model} cannot be retrained ({' '.join(retrain)}): a network's file does not say how it was trained. "
            "Name retrained models that you have (--retrained FILE, or a folder of them), or say how to train networks "
            "like it: --hidden 128,64,16 --epochs 100 --batch 32. In Python, retrain= may be a function that trains"
        ) from error


def _check(
    model: Path | None,
    train: bool,
    retrain: list[str] | None,
    retrained: list[Path] | None,
    layers: Sequence[str | int | None],
) -> None:
    if (model is None) != train:
        problem = "both --model and --train were given" if train else "there is no model"
        raise ValueError(
            f"{problem}; name the file of the deployed model (--model FILE), or, where there is none yet, have a "
            "network trained (--train)"
        )
    if retrain and retrained:
        raise ValueError("--retrain makes retrained models and --retrained names some that exist; give one of them")
    named = [name for name, value in zip(("--hidden", "--epochs", "--batch"), layers, strict=True) if value is not None]
    if named and not train and not (retrain and layers[0]):
        raise ValueError(
            f"{named[0]} says how holdfast is to train a network, which it does only when it is asked to: add --train, "
            "or name retrainings of a network (--retrain seeds:96 with --hidden)"
        )
