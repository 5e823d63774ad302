"""An estimator's rows and labels, as it takes them, and the name of a training run."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.families.packing import versions
from holdfast.families.recipe import Retraining
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapters.input_spec import table_input
from holdfast.models.identity import is_estimator
from holdfast.tabular.encoding import Encoding
from holdfast.utils.digests import digest
from holdfast.utils.messages import plain

Rows = pd.DataFrame | NDArray[Any]
THREADS = ("n_jobs", "nthread", "num_threads")  # parameters that say how many cores are used
ALGORITHM = 1  # of refitting; to be raised whenever it comes to give other models
NOT_OWN = ("kind", "settings", "parameters", "init_seed", "order_seed")  # parts of a Retraining that parameters hold


# ---- rows and labels ----


def own_labels(adapter: Adapter | None, encoding: Encoding) -> NDArray[Any]:
    """The estimator's own label of each of the schema's classes, in their order."""
    if adapter is None:
        return np.array(encoding.schema.classes)
    return np.asarray(getattr(adapter.model, "classes_", adapter.output.classes))[list(adapter.output.places)]


def rows_for(adapter: Adapter | None, table: pd.DataFrame, encoding: Encoding) -> Rows:
    """The table as the estimator was fitted on it; one that was not gets the schema's columns."""
    given: Rows = (
        table_input(encoding, "table", "frame").rows(table, encoding) if adapter is None else adapter.rows(table)
    )
    return given.reset_index(drop=True) if isinstance(given, pd.DataFrame) else given


# ---- the estimator of a member ----


def prepared(estimator: Any, retraining: Retraining) -> Any:
    """A clone with the parameters of one member: its own, and every seed moved on. It works on one core."""
    from sklearn.base import clone

    member = clone(estimator)
    member.set_params(**dict(retraining.parameters))
    given = member.get_params(deep=True)
    seeds = {}  # the deployed model's own, or 0 where it has none, and as much more as the member says
    for name in seed_names(member):
        seed = plain(given[name])
        seeds[name] = ((seed if isinstance(seed, int) else 0) + retraining.init_seed) % 2**31
    return member.set_params(**seeds, **_on_one_core(member, given))


def _on_one_core(estimator: Any, given: dict[str, Any]) -> dict[str, int | None]:
    """The parameters that say how many cores are used. For scikit-learn None is one core, and never out of date."""
    found: dict[str, int | None] = {}
    for name in given:
        part, _, last = name.rpartition("__")
        if last in THREADS:
            owner = type(given[part] if part else estimator).__module__
            found[name] = None if owner.startswith("sklearn.") else 1
    return found


def seed_names(estimator: Any) -> list[str]:
    """Every random_state there is, those of the parts included."""
    return [name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]


# ---- the name of a training run ----


def fingerprint_rows(rows: Rows, labels: NDArray[Any]) -> str:
    """Of all that an estimator is fitted on."""
    hashed = hashlib.sha256(repr((type(rows).__name__, rows.shape)).encode())
    for name, column in rows.items() if isinstance(rows, pd.DataFrame) else enumerate(rows.T):
        values = np.asarray(column)
        hashed.update(f"{name} {column.dtype}".encode())
        hashed.update(values.tobytes() if values.dtype.kind in "biuf" else repr(values.tolist()).encode())
    hashed.update(repr([plain(label) for label in labels.tolist()]).encode())
    return hashed.hexdigest()


def fingerprint_run(data: str, estimator: Any, retraining: Retraining) -> str:
    """The same for the same training: libraries, class and parameters of the prepared estimator, rows and labels.

    Whether two runs give models that answer alike is another matter.
    """
    changed = {name: value for name, value in asdict(retraining).items() if name not in NOT_OWN}
    seed = None if seed_names(estimator) else retraining.init_seed  # it changes nothing, but it is another run
    return digest([ALGORITHM, versions([estimator]), data, _described(estimator), changed, seed])


def _described(value: Any) -> Any:
    """A parameter as JSON can say it; the same for equal ones."""
    if is_estimator(value) or hasattr(value, "get_params"):
        given = value.get_params(deep=False)
        parameters = {name: _described(part) for name, part in given.items() if name not in THREADS}
        return {"class": _full_name(type(value)), "parameters": parameters}
    if isinstance(value, dict):
        return {"dictionary": [[_described(key), _described(part)] for key, part in value.items()]}
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = [_described(part) for part in value]
        return sorted(parts, key=json.dumps) if isinstance(value, (set, frozenset)) else parts
    if isinstance(value, np.ndarray):
        return {"array": [str(value.dtype), value.tolist()]}
    plain_value = plain(value)
    if plain_value is None or isinstance(plain_value, (bool, int, float, str)):
        return plain_value
    if isinstance(value, type) or callable(value):
        return {"function": _full_name(value)}
    return {"other": [_full_name(type(value)), repr(value)]}


def _full_name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"
