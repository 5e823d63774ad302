"""Models of scikit-learn and whatever follows its conventions: pipelines, XGBClassifier, LGBMClassifier."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.adapters.adapter import Adapter, Call, How, check_repeatable
from holdfast.models.adapters.input_spec import InputSpec, one_hot_input, table_input
from holdfast.models.adapters.output_spec import (
    CLOSE_LOGITS,
    Floats,
    Outputs,
    OutputSpec,
    in_schema_order,
    matched_classes,
)
from holdfast.models.adapters.probing import sample, shuffled_apart
from holdfast.models.adapters.seen import columns_of, held, names_in_schema, takes_categories, width_of
from holdfast.models.frameworks.translation import exact_of
from holdfast.models.sanity_checks import check_order
from holdfast.models.trees.reading import ensemble_of_model
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding
from holdfast.utils.messages import did_you_mean

METHOD_OF: dict[Outputs, str] = {"probabilities": "predict_proba", "logits": "decision_function", "labels": "predict"}
_NUMBERED = re.compile(r"Column_\d+")  # the names that LightGBM makes up for an array


def knows(model: Any) -> bool:
    return any(hasattr(model, name) for name in METHOD_OF.values())


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    """The first way of asking that works; where several do, the one that is right most often."""
    name = name_of(model)
    _check_kind(model, name)
    return first_that_answers(
        inputs_of(model, encoding, how, name),
        lambda given, table: _answering(model, encoding, how, name, given, table),
        encoding,
        all_of_them=True,
    )


def first_that_answers(
    inputs: Iterable[InputSpec],
    read: Callable[[InputSpec, pd.DataFrame], Adapter],
    encoding: Encoding,
    all_of_them: bool = False,
) -> Adapter:
    """The first way of asking that works; of ``all_of_them`` that do, the one that is right most often."""
    table, labels = sample(encoding)
    failures: list[ValueError] = []
    working: list[tuple[float, Adapter, Floats]] = []
    for given in inputs:
        try:
            adapter = read(given, table)
            logits = adapter(table)
        except ValueError as error:
            failures.append(error)
            continue
        right = 0.0 if labels is None else float((logits.argmax(axis=1) == labels).mean())
        working.append((right, adapter, logits))
        if not all_of_them:
            break
    if not working:
        raise failures[0]
    _, adapter, logits = max(working, key=lambda candidate: candidate[0])
    check_repeatable(adapter, table, logits)
    check_order(adapter, logits.argmax(axis=1), labels)
    return adapter


def helped(adapter: Adapter) -> WrappedModel:
    """The model with whatever helps a search."""
    exact = exact_of(adapter)
    trees = exact is None and not adapter.output.decides
    return WrappedModel(adapter, exact, ensemble_of_model(adapter) if trees else None)


def call_of(model: Any, way: str) -> Call:
    found: Call = getattr(model, way)
    return found


def name_of(model: Any) -> str:
    """The class of an estimator; of a pipeline or a search, what it ends in too."""
    name = type(model).__name__
    for part in ("best_estimator_", "_final_estimator"):
        inner = held(model, part)
        if inner is not None and not isinstance(inner, str):
            return f"{name}({name_of(inner)})"
    return name


# ---- what it is given ----


def inputs_of(model: Any, encoding: Encoding, how: How, name: str) -> Iterator[InputSpec]:
    """What the model may be given, the likeliest first."""
    names = _names(model)
    if names is not None:
        yield _named(names, encoding, how, name, takes_categories(model))
    else:
        yield from _by_position(width_of(model), encoding, how, name)


def _by_position(count: int | None, encoding: Encoding, how: How, name: str) -> Iterator[InputSpec]:
    """What a model of so many columns without names may be given."""
    features, width = len(encoding.schema.names), encoding.width
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
            yield table_input(encoding, takes, "frame")  # type: ignore[arg-type]
        yield table_input(encoding, takes, "array")  # type: ignore[arg-type]


def _named(names: tuple[str, ...], encoding: Encoding, how: How, name: str, categories: bool) -> InputSpec:
    """What a model that was fitted to named columns is given."""
    known = set(encoding.schema.names)
    encoded = set(names) <= set(encoding.columns) and not (set(names) <= known and how.takes != "encoded")
    if encoded:
        if names != encoding.columns:
            raise ValueError(
                f"{name} was fitted to {len(names)} of the {encoding.width} encoded columns, or in another order; fit "
                "it to all of them, as encoding.columns names them"
            )
        return table_input(encoding, "encoded", "frame")
    if how.takes == "encoded":
        return table_input(encoding, "encoded", "frame", names)
    order = names_in_schema(names, encoding)
    if order is None and (hot := one_hot_input(encoding, names, categories)) is not None:
        return hot
    if order is None:
        unknown = [column for column in names if column not in known]
        unknown_names = ", ".join(f"'{column}'{did_you_mean(column, known)}" for column in unknown[:5])
        label = f" '{encoding.schema.label}' is the label." if encoding.schema.label in unknown else ""
        raise ValueError(
            f"{name} was fitted to columns that the schema does not have: {unknown_names}.{label} Fit the model to the "
            "schema's columns (a column that names the rows is none of them), or add them to the schema"
        )
    return table_input(encoding, "table", "frame", order, categories)


def _names(model: Any) -> tuple[str, ...] | None:
    """The columns that it was fitted to; None where it knows of none."""
    names = columns_of(model)
    return None if not names or all(map(_NUMBERED.fullmatch, names)) else tuple(names)


# ---- what it answers ----


def _answering(model: Any, encoding: Encoding, how: How, name: str, given: InputSpec, table: pd.DataFrame) -> Adapter:
    """The first of its methods that answers, and whether `predict` agrees with it."""
    classes = _classes(model, encoding, how, name)
    if how.outputs is not None and not hasattr(model, METHOD_OF[how.outputs]):
        raise ValueError(f"outputs={how.outputs!r} needs {METHOD_OF[how.outputs]}, which {name} does not have")
    failures = []
    for outputs, way in METHOD_OF.items():
        if not hasattr(model, way) or how.outputs not in (None, outputs):
            continue
        if how.outputs is None and way == "decision_function" and _scores_pairs(model):
            continue  # it is asked for labels
        settles = how.outputs is None and outputs != "labels" and hasattr(model, "predict")
        output = OutputSpec(outputs, *classes, settles=settles)
        try:
            adapter = _matched(Adapter(model, encoding, name, way, call_of(model, way), given, output), table)
            adapter(table)
            return adapter
        except ValueError as error:
            failures.append(error)
            if not isinstance(error.__cause__, (NotImplementedError, AttributeError)):
                break
    raise failures[0]


def _scores_pairs(model: Any) -> bool:
    """Whether it scores every two classes rather than every class."""
    last = held(model, "_final_estimator")
    shape = held(model if last is None else last, "decision_function_shape")
    return bool(shape == "ovo" and len(model.classes_) > 2)


def _matched(adapter: Adapter, table: pd.DataFrame) -> Adapter:
    """The same, with what it takes for its answers to be those of `predict`."""
    if not adapter.output.settles:
        return adapter
    # Where features do not go together as in real rows, too: a search goes there.
    table = pd.concat([table.reset_index(drop=True), shuffled_apart(table)], ignore_index=True)
    given, last = adapter.rows(table), held(adapter.model, "_final_estimator")
    final = adapter.model if last is None else last
    logits, found = adapter.scored(given), adapter.predicted(given)
    ordered = np.sort(logits, axis=1)
    is_sure = ordered[:, -1] - ordered[:, -2] >= CLOSE_LOGITS
    if not (is_sure & (logits.argmax(axis=1) != found)).any() and not _two_minds(final):
        return adapter
    shift = _threshold(logits, found) if logits.shape[1] == 2 else 0.0
    return replace(adapter, output=replace(adapter.output, decides=True, shift=shift))


def _two_minds(final: Any) -> bool:
    """Whether its scores come from elsewhere than its classes: those of a support vector machine, whose classes are
    what most pairs vote for, and whose probabilities come from a calibration.
    """
    of_pairs = type(final).__name__ in ("SVC", "NuSVC")
    return of_pairs and (len(final.classes_) > 2 or bool(final.probability is True))


def _threshold(logits: Floats, found: NDArray[np.int64]) -> float:
    """The log-odds above which `predict` gives the second class, if there is such a number; else 0."""
    odds = logits[:, 1] - logits[:, 0]
    first, second = odds[found == 0], odds[found == 1]
    if not len(first) or not len(second) or first.max() >= second.min():
        return 0.0
    return float(first.max() + second.min()) / 2


def _classes(model: Any, encoding: Encoding, how: How, name: str) -> tuple[tuple[Any, ...], tuple[int, ...], str]:
    model_classes, ours = held(model, "classes_"), encoding.schema.classes
    if isinstance(model_classes, list) and model_classes and isinstance(model_classes[0], (list, np.ndarray)):
        raise ValueError(f"{name} has {len(model_classes)} outputs; a model of one label is needed")
    if how.classes is not None:
        classes, places, note = matched_classes(how.classes, ours, "classes=", given=True)
        # Labels that the model itself gives are in its own words.
        matches = model_classes is not None and len(model_classes) == len(how.classes)
        return (_plain(model_classes) if matches else classes), places, note
    return in_schema_order(ours) if model_classes is None else matched_classes(_plain(model_classes), ours, name)


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
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

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
