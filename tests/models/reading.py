"""Tables, pipelines and rows with which reading trees is put to the test."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

from holdfast import Encoding, Schema
from holdfast.models.adapters.adapter import Adapter, How
from holdfast.models.adapters.output_spec import OutputSpec, matched_classes
from holdfast.models.adapters.seen import as_fitted
from holdfast.models.frameworks.estimators import inputs_of
from holdfast.models.trees.reading import ensemble_of_model

ROWS = 10_000


@functools.cache
def numbers(name: str, missing: bool = False) -> tuple[pd.DataFrame, Encoding]:
    """A table of real numbers from scikit-learn, with holes where they are wanted."""
    from sklearn import datasets

    data = getattr(datasets, f"load_{name}")(as_frame=True)
    table = data.data.rename(columns=lambda column: column.replace(" ", "_").replace("/", "_"))
    if missing:
        table = table.mask(np.random.default_rng(0).random(table.shape) < 0.1)
    table["label"] = data.target
    schema = Schema.infer(table, "label")
    return table, Encoding.fit(table, schema.revise(*schema.names, missing=True) if missing else schema)


def asking(model, encoding: Encoding):
    """The model's own answer to a table, as logits in the order of the schema's classes."""
    own = adapter(model, encoding)
    given, places = own.rows, list(own.output.places)
    return lambda table: np.log(np.clip(model.predict_proba(given(table))[:, places], 1e-12, 1))


def adapter(model, encoding: Encoding) -> Adapter:
    given = next(inputs_of(model, encoding, How(), "model"))
    output = OutputSpec("probabilities", *matched_classes(model.classes_, encoding.schema.classes, "model"))
    return Adapter(model, encoding, "model", "predict_proba", model.predict_proba, given, output)


def read(model, encoding: Encoding):
    return ensemble_of_model(adapter(model, encoding))


def strangers(encoding: Encoding, edges=None, rows: int = ROWS, seed: int = 1) -> pd.DataFrame:
    """Rows that nobody is: any level, any known number, and, of half of them, numbers on and beside an edge."""
    draw = np.random.default_rng(seed)
    columns = {}
    for place, feature in enumerate(encoding.schema.features):
        if not feature.is_numeric:
            levels = [*feature.values, *([None] if feature.missing else [])]
            columns[feature.name] = [levels[i] for i in draw.integers(0, len(levels), rows)]
            continue
        values = draw.choice(encoding.known[feature.name].to_numpy(dtype=np.float64), rows)
        if edges is not None and len(edges[place]):
            near = draw.choice(edges[place], rows)
            step = draw.integers(-1, 2, rows)
            beside = near + step if feature.kind == "integer" else np.nextafter(near, near + step)
            values = np.where(draw.random(rows) < 0.5, beside, values)
        columns[feature.name] = values if feature.kind == "real" or feature.missing else values.astype(np.int64)
    return as_fitted(pd.DataFrame(columns), encoding)


def shares(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def assert_same(ensemble, ask, tolerance: float = 1e-6) -> None:
    """The ensemble and the model say the same of people and of rows on both sides of every edge."""
    assert ensemble is not None
    encoding = ensemble.encoding
    for table in (encoding.known, strangers(encoding, ensemble.edges)):
        theirs = shares(ask(table))
        ours = shares(ensemble.logits(ensemble.raw(ensemble.cells(table))))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
        second, best = np.sort(theirs, axis=1)[:, -2:].T
        sure = best - second > 2 * tolerance
        assert (ours.argmax(axis=1) == theirs.argmax(axis=1))[sure].all()
