"""An estimator's rows and labels, as it takes them, and the name of a training run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.families.packing import versions
from holdfast.families.recipe import Retraining
from holdfast.models.deployed import Deployed, How
from holdfast.models.identity import is_estimator
from holdfast.tabular.encoding import Encoding
from holdfast.utils.digests import digest
from holdfast.utils.messages import plain

Rows = pd.DataFrame | NDArray[Any]
TRIED = 200  # rows that show which way of writing a table an estimator takes
THREADS = ("n_jobs", "nthread", "num_threads")  # parameters that say how many cores are used
ALGORITHM = 1  # of refitting; to be raised whenever it comes to give other models
NOT_OWN = ("kind", "settings", "parameters", "init_seed", "order_seed")  # parts of a Retraining that parameters hold


# ---- rows ----


@dataclass(frozen=True)
class Written:
    """How a table is written for an estimator: in the user's units or encoded, as a frame or as an array."""

    encoded: bool
    names: tuple[str, ...]
    array: bool

    def rows(self, table: pd.DataFrame, encoding: Encoding) -> Rows:
        frame = table
        if self.encoded:
            frame = pd.DataFrame(encoding.encode(table).numpy(), columns=list(encoding.columns))
        frame = frame[list(self.names)]
        return frame.to_numpy() if self.array else frame.reset_index(drop=True)


def written_for(own: Any, encoding: Encoding, how: How, deployed: Deployed | None, table: pd.DataFrame) -> Written:
    """As the estimator was fitted. Where that could be one of several, the one for which it answers as when asked."""
    if deployed is None:
        encoded = how.takes == "encoded"
        return Written(encoded, encoding.columns if encoded else encoding.schema.names, array=encoded)
    possible = [one for one in _all_ways(own, encoding) if how.takes is None or one.encoded == (how.takes == "encoded")]
    if not possible:
        raise ValueError(
            f"{type(own).__name__} was fitted on {_count(own)} columns, but the schema has "
            f"{len(encoding.schema.names)} and the encoding {encoding.width}; fit it on the table of the schema, "
            "table[list(schema.names)], or on encoded rows"
        )
    if len(possible) == 1:
        return possible[0]
    some = table.iloc[:TRIED]
    wanted = deployed.ask(encoding.decode(encoding.encode(some))).argmax(1)
    labels = own_labels(own, encoding, how)
    return max(possible, key=lambda one: _agreement(own, one.rows(some, encoding), labels[wanted]))


def _all_ways(own: Any, encoding: Encoding) -> list[Written]:
    count, names, known = _count(own), encoding.schema.names, _names(own)
    frames = [Written(False, names, False), Written(True, encoding.columns, False)]
    arrays = [Written(True, encoding.columns, True), Written(False, names, True)]
    fitting = [one for one in frames if known is not None and set(known) <= set(one.names)]
    if known is not None and fitting:
        return [Written(one.encoded, known, False) for one in fitting]
    return [one for one in ((*arrays,) if count else (*frames, *arrays)) if count in (None, len(one.names))]


def _names(own: Any) -> tuple[str, ...] | None:
    found = getattr(own, "feature_names_in_", None)
    return None if found is None else tuple(map(str, found))


def _count(own: Any) -> int | None:
    found = getattr(own, "n_features_in_", None)
    return None if found is None else int(found)


def _agreement(own: Any, rows: Rows, labels: NDArray[Any]) -> float:
    try:
        return float(np.mean(np.asarray(own.predict(rows)) == labels))
    except Exception:  # whatever an estimator raises for rows that it does not take
        return -1.0


# ---- labels ----


def is_fitted(estimator: Any) -> bool:
    return hasattr(estimator, "classes_")


def own_labels(own: Any, encoding: Encoding, how: How) -> NDArray[Any]:
    """The estimator's own label of each of the schema's classes, in their order."""
    wanted = encoding.schema.classes
    if not is_fitted(own):
        return np.array(wanted)
    labels = np.asarray(own.classes_)
    called = list(how.classes) if how.classes is not None else [plain(label) for label in labels]
    missing = [label for label in wanted if label not in called]
    if missing or len(called) != len(labels):
        raise ValueError(
            f"{type(own).__name__} was fitted on the labels {[plain(label) for label in labels]}, and the schema's "
            f"classes are {list(wanted)}; say which is which: as_model(model, encoding, classes=(...))"
        )
    return labels[[called.index(label) for label in wanted]]


# ---- the estimator of a member ----


def prepared(estimator: Any, retraining: Retraining) -> Any:
    """A clone with the parameters of one member: its own, and every seed moved on. It works on one core."""
    from sklearn.base import clone

    own = clone(estimator)
    own.set_params(**dict(retraining.parameters))
    given = own.get_params(deep=True)
    seeds = {name: _moved(given[name], retraining.init_seed) for name in seed_names(own)}
    threads = {name: 1 for name in given if name.rpartition("__")[2] in THREADS}
    return own.set_params(**seeds, **threads)


def seed_names(estimator: Any) -> list[str]:
    """Every random_state there is, those of the parts included."""
    return [name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]


def _moved(seed: Any, by: int) -> int:
    """The deployed model's own seed, or 0 where it has none, and as much more as the member says."""
    own = plain(seed)
    return ((own if isinstance(own, int) else 0) + by) % 2**31


# ---- the name of a training run ----


def fingerprint_rows(rows: Rows, labels: NDArray[Any]) -> str:
    """Of all that an estimator is fitted on."""
    hashed = hashlib.sha256()
    for part in _parts(rows):
        hashed.update(part)
    hashed.update(repr([plain(label) for label in labels.tolist()]).encode())
    return hashed.hexdigest()


def _parts(rows: Rows) -> Iterator[bytes]:
    yield repr((type(rows).__name__, rows.shape)).encode()
    columns = rows.items() if isinstance(rows, pd.DataFrame) else enumerate(rows.T)
    for name, column in columns:
        values = np.asarray(column)
        yield f"{name} {column.dtype}".encode()
        yield values.tobytes() if values.dtype.kind in "biuf" else repr(values.tolist()).encode()


def fingerprint_run(data: str, estimator: Any, retraining: Retraining) -> str:
    """The same for the same training: libraries, class and parameters of the prepared estimator, rows and labels.

    Whether two runs give models that answer alike is another matter.
    """
    own = {name: value for name, value in asdict(retraining).items() if name not in NOT_OWN}
    seed = None if seed_names(estimator) else retraining.init_seed  # it changes nothing, but it is another run
    return digest([ALGORITHM, versions(estimator), data, _described(estimator), own, seed])


def _described(value: Any) -> Any:
    """A parameter as JSON can say it; the same for equal ones."""
    if is_estimator(value) or hasattr(value, "get_params"):
        given = value.get_params(deep=False)
        own = {name: _described(part) for name, part in given.items() if name not in THREADS}
        return {"class": _full_name(type(value)), "parameters": own}
    if isinstance(value, dict):
        return {"dictionary": [[_described(key), _described(part)] for key, part in value.items()]}
    if isinstance(value, (list, tuple, set, frozenset)):
        parts = [_described(part) for part in value]
        return sorted(parts, key=json.dumps) if isinstance(value, (set, frozenset)) else parts
    if isinstance(value, np.ndarray):
        return {"array": [str(value.dtype), value.tolist()]}
    own = plain(value)
    if own is None or isinstance(own, (bool, int, float, str)):
        return own
    if isinstance(value, type) or callable(value):
        return {"function": _full_name(value)}
    return {"other": [_full_name(type(value)), repr(value)]}


def _full_name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"
