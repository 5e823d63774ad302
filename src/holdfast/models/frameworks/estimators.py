"""Models of scikit-learn and whatever follows its conventions: pipelines, XGBClassifier, LGBMClassifier."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.deployed import Deployed, How, Outputs
from holdfast.models.questions.asking import (
    Classes,
    Feed,
    Floats,
    agreeing,
    by_position,
    check_order,
    check_repeatable,
    checked_call,
    classes_of,
    described,
    feed,
    from_labels,
    from_pairs,
    from_probabilities,
    from_scores,
    numbers_from,
    one_hot_feed,
)
from holdfast.models.questions.inputs import names_in_schema, takes_categories
from holdfast.models.questions.probing import FEW, real_rows, shuffled_apart, some_rows
from holdfast.models.trees.ensemble import Ensemble
from holdfast.tabular.encoding import Encoding
from holdfast.utils.messages import did_you_mean

ASKED: dict[Outputs, str] = {"probabilities": "predict_proba", "logits": "decision_function", "labels": "predict"}
CLOSE = 0.01  # logits that differ by less are as good as equal: `predict` says which class wins
NUDGE = 1e-3  # by which the class that `predict` names is raised above the others
_NUMBERED = re.compile(r"Column_\d+")  # the names that LightGBM makes up for an array


def knows(model: Any) -> bool:
    return any(hasattr(model, name) for name in ASKED.values())


def deployed(model: Any, encoding: Encoding, how: How) -> Deployed:
    name = name_of(model)
    _check_kind(model, name)
    return deployed_by(_question(model, encoding, how, name), encoding)


def deployed_by(question: Question, encoding: Encoding) -> Deployed:
    """The model that is asked in this way, with whatever helps a search."""
    from holdfast.models.frameworks.translation import exact_of

    model, about = question.model, f"{question.name}, {question}"
    exact = exact_of(model, encoding, question)
    if exact is not None:
        return Deployed(model, encoding, question, f"{about}; searched by its gradient", exact=exact)
    ensemble = None if question.decides else _trees(model, encoding, question)
    if ensemble is not None:
        return Deployed(model, encoding, question, f"{about}; searched as {ensemble}", ensemble=ensemble)
    return Deployed(model, encoding, question, f"{about}; a black box")


def _trees(model: Any, encoding: Encoding, question: Question) -> Ensemble | None:
    from holdfast.models.trees.reading import ensemble_of_estimator

    labels: list[Any] = [None] * len(question.classes.places)
    for label, place in zip(encoding.schema.classes, question.classes.places, strict=True):
        labels[place] = label
    encoded = question.feed.takes == "encoded"
    return ensemble_of_estimator(model, encoding, question.scores, labels, encoded)


def name_of(model: Any) -> str:
    """The class of an estimator; of a pipeline or a search, what it ends in too."""
    own = type(model).__name__
    for part in ("best_estimator_", "_final_estimator"):
        inner = _held(model, part)
        if inner is not None and not isinstance(inner, str):
            return f"{own}({name_of(inner)})"
    return own


@dataclass(frozen=True)
class Question:
    """How an estimator is asked: what it is given, which of its methods answers, and whether `predict` decides."""

    model: Any
    name: str
    feed: Feed
    outputs: Outputs
    classes: Classes
    pairs: bool = False  # a decision function of every two classes, where that cannot be told by its width
    decides: bool = False  # `predict` says otherwise than the largest score, so it is asked about every row
    settles: bool = True  # `predict` is asked where two scores are as good as equal
    shift: float = 0.0  # of two classes: the log-odds at which `predict` changes its mind

    def __call__(self, table: pd.DataFrame) -> Floats:
        """(n, c) logits of a table in the user's units, in the order of the schema's classes."""
        logits = self.scores(table)
        if self.outputs == "labels" or not (self.decides or self.settles):
            return logits
        if self.shift:
            logits = logits + np.array([self.shift, -self.shift]) / 2
        ordered = np.sort(logits, axis=1)
        rows = np.flatnonzero(self.decides | (ordered[:, -1] - ordered[:, -2] < CLOSE))
        if len(rows):
            logits[rows] = agreeing(logits[rows], self.labels(table.iloc[rows]), NUDGE)
        return logits

    def scores(self, table: pd.DataFrame) -> Floats:
        """The same without a look at `predict`."""
        if self.outputs == "labels":
            return from_labels(self.labels(table), len(self.classes.own))
        told = self._told(ASKED[self.outputs], table)
        if isinstance(told, list):
            raise ValueError(f"{self.name} has several outputs; a model of one label is needed")
        numbers = numbers_from(told, len(table), self.name, self.outputs)
        if self.outputs == "probabilities":
            return from_probabilities(numbers, self.classes, self.name)
        if self.pairs:
            numbers = from_pairs(numbers, len(self.classes.own))
        return from_scores(numbers, self.classes, self.name)

    def labels(self, table: pd.DataFrame) -> NDArray[np.int64]:
        """The class that `predict` gives each row: (n,)."""
        found = self.classes.of(self._told("predict", table), self.name)
        if len(found) != len(table):
            raise ValueError(f"{self.name} gives {len(found)} labels for {len(table)} rows; one for each is needed")
        return found

    def _told(self, method: str, table: pd.DataFrame) -> Any:
        says = f"for {method} of {self.feed}"
        return checked_call(getattr(self.model, method), self.feed(table), self.name, says)

    def __str__(self) -> str:
        decides = "`predict` decides the class" if self.decides else ""
        return described([f"asked for {ASKED[self.outputs]} of {self.feed}", self.classes.note, decides])


def _question(model: Any, encoding: Encoding, how: How, name: str) -> Question:
    """The first way of asking that works; where several do, the one that is right most often."""
    real = real_rows(encoding, FEW)
    table, labels = (some_rows(encoding), None) if real is None else real
    failures: list[ValueError] = []
    working: list[tuple[float, Question]] = []
    for given in _feeds(model, encoding, how, name):
        try:
            question = _answering(model, encoding, how, name, given, table)
            logits = question(table)
        except ValueError as error:
            failures.append(error)
            continue
        right = 0.0 if labels is None else float((logits.argmax(axis=1) == labels).mean())
        working.append((right, question))
    if not working:
        raise failures[0]
    question = max(working, key=lambda one: one[0])[1]
    logits = question(table)
    check_repeatable(question, table, logits, name)
    check_order(question.classes, logits.argmax(axis=1), labels, name)
    return question


# ---- what it is given ----


def _feeds(model: Any, encoding: Encoding, how: How, name: str) -> Iterator[Feed]:
    """What the model may be given, the likeliest first."""
    names, count = _names(model), _held(model, "n_features_in_")
    features, width = len(encoding.schema.names), encoding.width
    if names is not None:
        yield _named(names, encoding, how, name, takes_categories(model))
        return
    fits = [takes for takes, wide in (("table", features), ("encoded", width)) if count in (None, wide)]
    if how.takes is not None:
        fits = [how.takes]
    if not fits:
        raise ValueError(
            f"{name} was fitted to {count} columns, but the schema has {features} features, which are {width} encoded "
            "columns; fit it to either, or pass a function from a table to probabilities"
        )
    for takes in fits:
        if count is None:
            yield feed(encoding, takes, as_array=False)  # type: ignore[arg-type]
        yield feed(encoding, takes, as_array=True)  # type: ignore[arg-type]


def _named(names: tuple[str, ...], encoding: Encoding, how: How, name: str, categories: bool) -> Feed:
    """What a model that was fitted to named columns is given."""
    known = set(encoding.schema.names)
    encoded = set(names) <= set(encoding.columns) and not (set(names) <= known and how.takes != "encoded")
    if encoded:
        if names != encoding.columns:
            raise ValueError(
                f"{name} was fitted to {len(names)} of the {encoding.width} encoded columns, or in another order; fit "
                "it to all of them, as encoding.columns names them"
            )
        return feed(encoding, "encoded", as_array=False)
    if how.takes == "encoded":
        return feed(encoding, "encoded", as_array=False, columns=names)
    order = names_in_schema(names, encoding)
    if order is None and (hot := one_hot_feed(encoding, names, categories)) is not None:
        return hot
    if order is None:
        unknown = [column for column in names if column not in known]
        told = ", ".join(f"'{column}'{did_you_mean(column, known)}" for column in unknown[:5])
        label = f" '{encoding.schema.label}' is the label." if encoding.schema.label in unknown else ""
        raise ValueError(
            f"{name} was fitted to columns that the schema does not have: {told}.{label} Fit the model to the "
            "schema's columns (a column that names the rows is none of them), or add them to the schema"
        )
    return feed(encoding, "table", as_array=False, columns=order, categories=categories)


def _names(model: Any) -> tuple[str, ...] | None:
    """The columns that it was fitted to; None where it knows of none."""
    names = _held(model, "feature_names_in_")
    if names is None or not len(names) or all(_NUMBERED.fullmatch(str(column)) for column in names):
        return None
    return tuple(str(column) for column in names)


def _held(model: Any, part: str) -> Any:
    """An attribute, if there is one; one that says why it is not there is not there."""
    try:
        return getattr(model, part, None)
    except Exception:  # whatever a property of theirs raises
        return None


# ---- what it answers ----


def _answering(model: Any, encoding: Encoding, how: How, name: str, given: Feed, table: pd.DataFrame) -> Question:
    """The first of its methods that answers, and whether `predict` agrees with it."""
    classes = _classes(model, encoding, how, name)
    if how.outputs is not None:
        if not hasattr(model, ASKED[how.outputs]):
            raise ValueError(f"outputs={how.outputs!r} needs {ASKED[how.outputs]}, which {name} does not have")
        question = Question(model, name, given, how.outputs, classes, settles=False)
        question.scores(table)
        return question
    failures = []
    for outputs, method in ASKED.items():
        if not hasattr(model, method):
            continue
        question = Question(model, name, given, outputs, classes, settles=hasattr(model, "predict"))
        try:
            question = _matched(question, table)
            question(table)
        except ValueError as error:
            failures.append(error)
            if not isinstance(error.__cause__, (NotImplementedError, AttributeError)):
                break
            continue
        return question
    raise failures[0]


def _matched(question: Question, table: pd.DataFrame) -> Question:
    """The question, with what it takes for its answers to be those of `predict`."""
    if not question.settles or question.outputs == "labels":
        return question
    # Where features do not go together as in real rows, too: a search goes there.
    table = pd.concat([table.reset_index(drop=True), shuffled_apart(table)], ignore_index=True)
    logits, found = question.scores(table), question.labels(table)
    if question.outputs == "logits" and logits.shape[1] == 3 and _is_pairwise(question.model):
        question = replace(question, pairs=True)
        logits = question.scores(table)
    ordered = np.sort(logits, axis=1)
    apart = ordered[:, -1] - ordered[:, -2] >= CLOSE
    if not (apart & (logits.argmax(axis=1) != found)).any() and not _two_minds(question.model):
        return question
    question = replace(question, decides=True)
    return replace(question, shift=_threshold(logits, found)) if logits.shape[1] == 2 else question


def _is_pairwise(model: Any) -> bool:
    """Whether a decision function of three numbers is of three pairs rather than of three classes."""
    final = _held(model, "_final_estimator")
    return bool(_held(model if final is None else final, "decision_function_shape") == "ovo")


def _two_minds(model: Any) -> bool:
    """Whether its scores come from elsewhere than its classes: those of a support vector machine, whose classes are
    what most pairs vote for, and whose probabilities come from a calibration.
    """
    final = _held(model, "_final_estimator")
    own = model if final is None else final
    if type(own).__name__ not in ("SVC", "NuSVC"):
        return False
    return len(own.classes_) > 2 or bool(own.probability is True)


def _threshold(logits: Floats, found: NDArray[np.int64]) -> float:
    """The log-odds above which `predict` gives the second class, if there is such a number; else 0."""
    odds = logits[:, 1] - logits[:, 0]
    first, second = odds[found == 0], odds[found == 1]
    if not len(first) or not len(second) or first.max() >= second.min():
        return 0.0
    return float(first.max() + second.min()) / 2


def _classes(model: Any, encoding: Encoding, how: How, name: str) -> Classes:
    own = _held(model, "classes_")
    if isinstance(own, list) and own and isinstance(own[0], (list, np.ndarray)):
        raise ValueError(f"{name} has {len(own)} outputs; a model of one label is needed")
    if how.classes is not None:
        given = classes_of(how.classes, encoding, "classes=", given=True)
        # Labels that the model itself gives are in its own words.
        return given if own is None or len(own) != len(how.classes) else replace(given, own=_plain(own))
    return by_position(encoding) if own is None else classes_of(_plain(own), encoding, name)


def _plain(values: Any) -> tuple[Any, ...]:
    return tuple(np.asarray(values).tolist())


# ---- what cannot be asked ----


def _check_kind(model: Any, name: str) -> None:
    if isinstance(model, type):
        raise TypeError(
            f"{model.__name__} is a class; pass a fitted {model.__name__}(), such as {model.__name__}().fit(x, y)"
        )
    kind = _kind(model)
    if kind in ("regressor", "clusterer", "outlier_detector", "density_estimator"):
        raise ValueError(
            f"{name} is {'an' if kind[0] == 'o' else 'a'} {kind.replace('_', ' ')} and gives no classes; "
            "pass a classifier, or a function that gives the label of each row, such as lambda table: "
            "model.predict(table) > 100"
        )
    try:
        from sklearn.base import BaseEstimator
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted
    except ImportError:
        return
    if isinstance(model, BaseEstimator):
        try:
            check_is_fitted(model)
        except NotFittedError as error:
            raise ValueError(f"{name} is not fitted yet; call its fit(table, labels) before as_model") from error
        except TypeError:  # something that follows the conventions without being an estimator
            return


def _kind(model: Any) -> str:
    """What scikit-learn calls the kind of an estimator; empty where it does not say."""
    tags = getattr(model, "__sklearn_tags__", None)
    try:
        return str((tags().estimator_type if tags else getattr(model, "_estimator_type", None)) or "")
    except Exception:  # tags of an estimator that is not one
        return ""
