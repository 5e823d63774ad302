"""From a fitted model of trees to an `Ensemble` that says the same, or to none."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.adapters.adapter import Adapter, Ask
from holdfast.models.adapters.probing import rows_to_compare
from holdfast.models.adapters.seen import See, as_fitted, seen
from holdfast.models.frameworks import lightgbm_trees, sklearn_trees, xgboost_trees
from holdfast.models.trees.ensemble import Ensemble, Floats
from holdfast.models.trees.grown import Grown, UnreadableError, ensemble_of
from holdfast.tabular.feature import Feature

LOG = logging.getLogger(__name__)
LIBRARIES = (sklearn_trees, xgboost_trees, lightgbm_trees)
COMPARED_ROWS = 10_000  # on which an ensemble is compared with the model that it was read from
TOLERANCE = 1e-6  # in a probability


def ensemble_of_model(adapter: Adapter) -> Ensemble | None:
    """The trees of a fitted estimator or booster; None where it has none that can be read, and the log says why."""
    return checked_ensemble(adapter, lambda: _trees(adapter))


def _trees(adapter: Adapter) -> tuple[See, Grown] | None:
    see, final = seen(adapter.model, adapter.rows)
    library = next((library for library in LIBRARIES if library.reads(final)), None)
    return None if library is None else (see, library.grown_of(final))


def checked_ensemble(adapter: Adapter, read: Callable[[], tuple[See, Grown] | None]) -> Ensemble | None:
    """The trees of a model over cells, from what they see of a table and themselves; None where they cannot be read.

    What is read is compared with what the model itself says of ROWS rows.
    """
    try:
        found = read()
        if found is None:
            return None
        see, trees = found
        if adapter.encoding.known is None:
            raise UnreadableError(
                "the encoding knows no rows that show what its trees see; use Encoding.fit(table, schema) with a table "
                "that has its label column, and not plausible=None"
            )
        ensemble = ensemble_of(_ordered(trees, list(adapter.output.places)), see, adapter.encoding)
        _check(ensemble, adapter.scores, trees.rounding)
    except Exception as error:  # other people's objects: whatever happens, they can still be asked
        LOG.info("%s is searched as a black box: %s", adapter.name, error)
        return None
    LOG.info("%s is searched as %r", adapter.name, ensemble)
    return ensemble


def _ordered(trees: Grown, places: list[int]) -> Grown:
    """The same trees with their outputs in the order of the schema's classes."""
    outputs = trees.value.shape[1]
    if outputs not in (len(places), 1) or (outputs == 1 and len(places) != 2):
        raise UnreadableError(f"it gives {outputs} outputs for {len(places)} classes")
    if outputs > 1:
        return replace(trees, value=trees.value[:, places], base=trees.base[places])
    if places == [0, 1]:
        return trees
    whole = 1.0 if trees.link == "probability" else 0.0  # p → 1 − p, log-odds → −log-odds
    return replace(trees, value=-trees.value, base=whole - trees.base)


def _check(ensemble: Ensemble, ask: Ask, rounding: float) -> None:
    """Raise where the ensemble and the model say different things of a row."""
    table = _compared(ensemble)
    theirs = _shares(ask(as_fitted(table, ensemble.encoding)))
    ours = _shares(ensemble.logits(ensemble.raw(ensemble.cells(table))))
    tolerance = TOLERANCE + rounding
    difference = float(np.abs(ours - theirs).max())
    if not difference <= tolerance:
        raise UnreadableError(f"its trees as they were read give probabilities that differ by up to {difference:.2g}")
    second, best = np.sort(theirs, axis=1)[:, -2:].T
    differs = (ours.argmax(axis=1) != theirs.argmax(axis=1)) & (best - second > 2 * tolerance)
    if differs.any():
        raise UnreadableError(f"its trees as they were read give another class to {int(differs.sum())} rows")


def _shares(logits: Floats) -> Floats:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    total: Floats = shares / shares.sum(axis=1, keepdims=True)
    return total


def _compared(ensemble: Ensemble) -> pd.DataFrame:
    """Known rows; the same with their features shuffled apart; rows of any level and of numbers next to an edge."""
    draw = np.random.default_rng(0)
    known = rows_to_compare(ensemble.encoding, COMPARED_ROWS * 3 // 4)
    odd = {
        feature.name: draw.choice(_odd(feature, edges, known[feature.name].to_numpy(dtype=object)), COMPARED_ROWS // 4)
        for feature, edges in zip(ensemble.features, ensemble.edges, strict=True)
    }
    return pd.concat([known.astype(object), pd.DataFrame(odd)], ignore_index=True).infer_objects()


def _odd(feature: Feature, edges: Floats, known: NDArray[Any]) -> NDArray[Any]:
    """Values that put a reading to the test, a missing one among them where there may be one."""
    if not feature.is_numeric:
        odd = np.array(feature.values, dtype=object)
    else:
        after = edges + 1 if feature.kind == "integer" else np.nextafter(edges, np.inf)
        odd = np.concatenate([edges, after, known])
    return np.append(odd, [None] * feature.missing)
