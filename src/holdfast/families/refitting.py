"""Retrain the user's own estimator: cloned, changed, and fitted again for every member."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.families.boosters import adapter_for, check_params, estimator_of
from holdfast.families.collecting import Collected, Outcome, attempt
from holdfast.families.entries import Entry, check_store
from holdfast.families.estimator_data import (
    Rows,
    fingerprint_rows,
    fingerprint_run,
    own_labels,
    prepared,
    rows_for,
)
from holdfast.families.family import Family
from holdfast.families.members import Models, encoding_digest
from holdfast.families.packing import Packed, PackingError, packed, unpacked
from holdfast.families.recipe import Retraining, checked_changes
from holdfast.families.resemblance import judged
from holdfast.families.store import (
    add_members,
    as_bytes,
    as_tensor,
    finish_entry,
    finished_members,
    load_entry,
    remember_runs,
    state_of,
)
from holdfast.families.training_data import Pool, check_material, labels_of, needs_more, rows_of
from holdfast.models.adapters.adapter import Adapter, How
from holdfast.models.adapting import adapter_like, adapter_of, helped, unhelped
from holdfast.models.frameworks.boosters import knows as is_booster
from holdfast.models.identity import is_estimator
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding
from holdfast.utils.messages import did_you_mean, some
from holdfast.utils.settings import check_whole

LOG = logging.getLogger(__name__)
PATIENCE = 1.0  # seconds of fitting after which worker processes are started for the rest
UNNOTICED = (
    "this estimator does not notice such a change, as boosting without sampling or early stopping, or an estimator "
    "without random_state, does not notice a seed"
)


def refit(
    model: Any,
    table: pd.DataFrame,
    changes: Sequence[Retraining],
    *,
    encoding: Encoding | None = None,
    new: pd.DataFrame | None = None,
    held_out: pd.DataFrame | None = None,
    params: Mapping[str, Any] | None = None,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Family:
    """Fit the user's own estimator again, once for every change, on the table that it was fitted on.

    Each member is a clone of the estimator, never the estimator itself. A bare booster of XGBoost or LightGBM becomes
    an estimator with the parameters that it holds; a file of XGBoost holds few, so state them: ``params={"max_depth":
    3}``. ``told`` of the family says which parameters were given and which the booster holds.

    A seed s adds s to every ``random_state``, those of a pipeline's steps included; where it is None, it counts as 0.
    Changes of rows and labels are those of `train`; `changes.parameters` varies the estimator's parameters. Members
    whose fitting raises are left out and reported in ``failures``. If the members do not resemble the deployed model,
    ``surrogates`` says why, and so does every audit with them.

    Args:
        model: what `as_model` made of an estimator by scikit-learn's conventions (pipelines, XGBClassifier,
            LGBMClassifier), or the estimator itself and its ``encoding``
        table: the rows that it was fitted on, with the label
        changes: what sets each member apart, such as ``hf.changes.bootstrap(20)``
        encoding: of the table, where ``model`` is the estimator itself
        new: rows for changes that append some
        held_out: rows that give the accuracy of each member
        params: the parameters that a bare booster was trained with, by the names of XGBClassifier or LGBMClassifier
        store: a folder in which the family is kept and found again; after an interruption only the rest is fitted
        workers: processes; by default one per core where there is enough to do
        progress: True shows a bar

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> table = pd.DataFrame({"income": [20, 30, 50, 60, 90] * 9})
        >>> table["approved"] = ["no", "no", "yes", "no", "yes"] * 9
        >>> encoding = hf.Encoding.fit(table, hf.Schema.infer(table, label="approved"))
        >>> estimator = LogisticRegression().fit(table[["income"]], table["approved"])
        >>> hf.refit(hf.as_model(estimator, encoding), table, hf.changes.bootstrap(5))
        Family(LogisticRegression: 5 bootstrap)

    Paper: retrained linear models and forests are studied by [Pawelczyk et al.
    2020](https://proceedings.mlr.press/v124/pawelczyk20a.html).
    """
    job = _job(model, encoding, table, new, changes, params)
    if workers is not None:
        check_whole("workers", workers, least=1)
    if held_out is not None:
        job.encoding.labels(_checked_table("held_out", held_out))
    entry = None if store is None else job.entry(store)
    made = None
    if entry is not None and entry.complete:
        LOG.info("found %d models in %s", len(job.fingerprints), entry.folder)
        family = load_entry(entry, job.fingerprints, encoding=job.encoding)
        family = replace(family, retrainings=job.retrainings, told=job.told)
    else:
        made = _Made(job, entry, progress)
        made.fit(workers)
        family = made.family()
    family = judged(family, job.deployed, job.encoding, table, held_out, unnoticed=UNNOTICED)
    if made is not None:
        made.keep(family)
    return family


# ---- what there is to fit ----


@dataclass(frozen=True, eq=False)
class _Job:
    estimator: Any
    deployed: WrappedModel | None  # None where the estimator has not been fitted
    adapter: Adapter | None  # how a refit is asked, likewise
    encoding: Encoding
    retrainings: tuple[Retraining, ...]
    rows: Rows  # old ones, then new ones
    labels: NDArray[Any]  # the estimator's own, one for each class of the schema
    pool: Pool
    told: str  # how its parameters are known, where it is made of a booster

    @cached_property
    def data(self) -> str:
        return fingerprint_rows(self.rows, self.labels[self.pool.y.numpy()])

    @cached_property
    def fingerprints(self) -> tuple[str, ...]:
        old = self.pool.old
        without_new = fingerprint_rows(self.rows[:old], self.labels[self.pool.y[:old].numpy()])
        return tuple(
            fingerprint_run(self.data if needs_more(change) else without_new, prepared(self.estimator, change), change)
            for change in self.retrainings
        )

    def entry(self, store: str | Path) -> Entry:
        """The place in a store. Kept fits are asked through one encoding, so each encoding has a place of its own:
        whoever edits a schema and asks again must not be refused."""
        return Entry.of(store, (*self.fingerprints, encoding_digest(self.encoding)))

    def task(self, keep: bool, index: int) -> tuple[Any, ...]:
        """What `_fit` gets beside the rows."""
        change = self.retrainings[index]
        labels = self.labels[labels_of(change, self.pool).numpy()]
        return index, prepared(self.estimator, change), labels, rows_of(change, self.pool).numpy(), keep


def _job(
    model: Any, encoding: Encoding | None, table: Any, new: Any, changes: Sequence[Retraining], params: Any = None
) -> _Job:
    """All that fitting needs, if it can be done."""
    wrapped = model.wrapped if isinstance(model, WrappedModel) else model
    encoding, deployed = _read(model, wrapped, encoding)
    retrainings = checked_changes(changes)
    whole = _checked_table("table", table)
    if new is not None:
        whole = pd.concat([table, _checked_table("new", new)], ignore_index=True)
    y = encoding.labels(whole)
    pool = Pool(encoding.encode(whole), y, len(table), len(encoding.schema.classes))
    estimator, adapter, parameter_sources = wrapped, None if deployed is None else deployed.adapter, ""
    if is_booster(wrapped) and adapter is not None:
        estimator, parameter_sources = estimator_of(wrapped, params)
        adapter = adapter_for(adapter, estimator)
    else:
        check_params(wrapped, params)
    for change in retrainings:
        _check_change(change, estimator, pool)
    rows, labels = rows_for(adapter, whole, encoding), own_labels(adapter, encoding)
    return _Job(estimator, deployed, adapter, encoding, retrainings, rows, labels, pool, parameter_sources)


def _checked_table(name: str, given: Any) -> pd.DataFrame:
    if not isinstance(given, pd.DataFrame):
        raise TypeError(f"{name} must be a table with the columns of the schema, got {type(given).__name__}")
    return given


def _read(model: Any, wrapped: Any, encoding: Encoding | None) -> tuple[Encoding, WrappedModel | None]:
    if not is_estimator(wrapped) and not is_booster(wrapped):
        raise TypeError(
            f"refit clones and fits an estimator by scikit-learn's conventions, got {type(wrapped).__name__}; train "
            "such a model again with a function of your own, Family.from_training, or bring models that exist, "
            "Family.from_models"
        )
    if isinstance(model, WrappedModel):
        if encoding is not None and encoding_digest(encoding) != encoding_digest(model.encoding):
            raise ValueError(f"{model} was read with another encoding than the one given; leave encoding out")
        return model.encoding, model
    if not isinstance(encoding, Encoding):
        raise TypeError(
            f"an estimator alone does not say how rows are encoded; use refit(as_model(model, encoding), ...), or pass "
            f"encoding=..., got {encoding!r}"
        )
    fitted = is_booster(wrapped) or hasattr(wrapped, "classes_")
    return encoding, helped(adapter_of(wrapped, encoding, How())) if fitted else None


def _check_change(change: Retraining, estimator: Any, pool: Pool) -> None:
    """Before any work: what makes no sense for an estimator, or asks for what is not there."""
    if change.continued or change.top_only:
        raise ValueError(
            f"{change} trains a network further, and an estimator is fitted anew; use changes.append with new=table"
        )
    if change.weight_noise:
        raise ValueError(f"{change} disturbs the weights of a network; {type(estimator).__name__} is fitted as it is")
    if change.settings:
        raise ValueError(
            f"{change} changes a Recipe; vary the parameters of {type(estimator).__name__} with changes.parameters, "
            "such as changes.parameters(50, max_depth=(3, 6))"
        )
    known = estimator.get_params(deep=True)
    for name, _ in change.parameters:
        if name not in known:
            raise ValueError(
                f"{type(estimator).__name__} has no parameter '{name}'{did_you_mean(name, known)}; it has "
                f"{some(sorted(known), 12)}"
            )
    if change.appended and not pool.new:
        raise ValueError(f"{change} appends new rows but there are none; pass refit(..., new=table)")
    if replace(change, kind="base", data_seed=0, order_seed=0) == Retraining():
        raise ValueError(
            f"{change} changes nothing, so it would be the deployed model again, which must not audit itself; "
            "try seeds(100)"
        )
    check_material(change, pool)


# ---- fitting ----


class _Fit(NamedTuple):
    """An estimator that was fitted."""

    estimator: Any
    warned: tuple[str, ...]
    kept: bytes | PackingError | None  # its skops file, where it is to be kept, or why it cannot be


def _attempt(rows: Rows, index: int, *task: Any) -> Outcome:
    return attempt(_fit, index, rows, index, *task)


def _fit(rows: Rows, index: int, estimator: Any, labels: NDArray[Any], chosen: NDArray[np.int64], keep: bool) -> _Fit:
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen_labels, wanted = labels[chosen], len(np.unique(labels))
        if len(np.unique(chosen_labels)) < wanted:
            raise ValueError(f"its rows have {len(np.unique(chosen_labels))} of {wanted} classes")
        with threadpool_limits(1):
            estimator.fit(rows.iloc[chosen] if isinstance(rows, pd.DataFrame) else rows[chosen], chosen_labels)
    warned = tuple(f"{warning.category.__name__}: {warning.message}" for warning in caught)
    try:
        return _Fit(estimator, warned, packed(estimator).contents if keep else None)
    except PackingError as error:
        return _Fit(estimator, warned, error)


class _Made(Collected[WrappedModel]):
    """Members as they come in, from the store or newly fitted."""

    def __init__(self, job: _Job, entry: Entry | None, progress: bool) -> None:
        super().__init__(job.retrainings, lambda fit: self._asked(fit.estimator), progress, "fits")
        self.job, self.entry, self.adapter = job, entry, job.adapter
        self.contents: dict[int, bytes] = {}
        self.warned: dict[int, str] = {}
        self.unkept = ""  # why it is not put into the store
        known: Mapping[str, Any] = {}
        if entry is not None:
            check_store(entry.folder.parent)
            known = finished_members(entry)
        for index, name in enumerate(job.fingerprints):
            if name in known:
                self.contents[index] = as_bytes(known[name]["skops"])
                self.models[index] = self._asked(unpacked(Packed("skops", self.contents[index])))

    def fit(self, workers: int | None) -> None:
        """Those that are missing: here while that takes no longer than starting processes would."""
        count, keep = len(self.changes), self.entry is not None
        LOG.info("fitting %d of %d models", count - len(self.models), count)
        task = partial(self.job.task, keep)
        self.run(_attempt, (self.job.rows,), task, workers, patience=PATIENCE)

    def take(self, outcome: Outcome) -> None:
        super().take(outcome)
        index, fit = outcome.index, outcome.made
        if fit is None:
            return
        if fit.warned:
            self.warned[index] = fit.warned[0]
        if self.entry is not None and isinstance(fit.kept, PackingError):
            self.unkept = f"the family is not kept in {self.entry.folder.parent}: {fit.kept}"
            self.entry = None
        if self.entry is not None and index in self.models:
            self.contents[index] = fit.kept
            add_members(self.entry, [self.job.fingerprints[index]], {"skops": as_tensor(fit.kept)[None]})

    def _asked(self, estimator: Any) -> WrappedModel:
        if self.adapter is None:  # what was not fitted is asked as its first refit can be
            self.adapter = adapter_of(estimator, self.job.encoding, How())
        return unhelped(adapter_like(self.adapter, estimator))

    def family(self) -> Family:
        if self.unkept:
            warnings.warn(self.unkept, stacklevel=3)
        models, retrainings, failures = self.finished()
        if self.warned:
            warnings.warn(
                f"{len(self.warned)} of {len(self.changes)} members warned while they were fitted, the first with: "
                f"{self.warned[min(self.warned)]}",
                stacklevel=3,
            )
        family = Family(
            (Models(tuple(models), self.job.encoding, refitted=True),),
            retrainings,
            tuple(range(len(models))),
            fingerprints=tuple(self.job.fingerprints[index] for index in sorted(self.models)),
            data=self.job.data,
            told=self.job.told,
            failures=failures,
        )
        remember_runs(family)
        return family

    def keep(self, family: Family) -> None:
        """Whole, if no member failed: else its parts stay, and the next run tries those again."""
        if self.entry is not None and not self.failures:
            files = (Packed("skops", self.contents[index]) for index in sorted(self.models))
            finish_entry(self.entry, family, [state_of(files)])
