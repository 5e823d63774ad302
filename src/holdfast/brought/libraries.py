"""Counterfactuals from what DiCE and alibi return, or from the JSON that they write. Neither is imported."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.brought.cells import numbers_of, spelling
from holdfast.brought.judging import UNREADABLE, WITHOUT, Brought, Target, Told, judged, question_of
from holdfast.brought.tables import assembled, check_inputs, unused
from holdfast.encoding import Encoding
from holdfast.models import Model
from holdfast.schema import some
from holdfast.space import Space


def from_dice(
    data: pd.DataFrame,
    result: Any,
    encoding: Encoding,
    model: Model,
    *,
    target: Target = None,
    space: Space | None = None,
) -> Brought:
    """What DiCE's ``generate_counterfactuals(data, ...)`` returned, or the text of its ``to_json()``.

    ``data`` is the table DiCE was asked about: its own copy has lost the labels, has numbers in single precision, and
    holds True where a person has False. Where there is a sparse answer, that is taken, as DiCE shows and saves it.
    """
    check_inputs(encoding, model, data)
    question, names = question_of(data, encoding, model, target, space), list(encoding.schema.names)
    examples = _examples(_json(result, "DiCE's to_json()") if isinstance(result, str) else result)
    if len(examples) != len(data):
        raise ValueError(
            f"DiCE answered for {len(examples)} rows but data has {len(data)}; pass the table it was asked about"
        )
    for row, (copy, _) in enumerate(examples):
        _check_same_person(copy, data.iloc[[row]], encoding)
    place = np.repeat(np.arange(len(data)), [0 if answer is None else len(answer) for _, answer in examples])
    answers = [answer.astype(object) for _, answer in examples if answer is not None and len(answer)]
    points = pd.concat(answers, ignore_index=True) if answers else pd.DataFrame(columns=names)
    missing = [name for name in names if name not in points]
    if missing:
        raise ValueError(
            f"DiCE's answers lack columns {missing}; they have {some(points.columns, 12)}; "
            "ask DiCE with the columns that the encoding was fitted to"
        )
    for feature in encoding.schema.features:
        if feature.is_numeric:  # a person's number in single precision is DiCE's copy of it, not a change
            own = data[feature.name].to_numpy(dtype=np.float64)[place]
            with np.errstate(over="ignore"):
                same = numbers_of(points[feature.name]).astype(np.float32) == own.astype(np.float32)
            points[feature.name] = points[feature.name].mask(same, own)
    return assembled(question, data, points, place, unused(points.columns, {*names, encoding.schema.label}))


def from_alibi(
    data: pd.DataFrame | Tensor | NDArray[Any],
    explanations: Any,
    encoding: Encoding,
    model: Model,
    *,
    target: Target = None,
    space: Space | None = None,
) -> Brought:
    """What alibi's CounterfactualProto or Counterfactual explained, one explanation for each row of ``data`` in order.

    An explanation is what ``explain`` returned or the text of its ``to_json()``; None is nothing found. alibi does not
    keep the person, so pass ``data``: the table, or the encoded rows that were explained. Points are taken as they are,
    in encoded units: rows of ``encoding.encode``, with ``ohe=True`` where alibi was told of categories.
    """
    check_inputs(encoding, model)
    question = question_of(data, encoding, model, target, space)
    several = isinstance(explanations, Sequence) and not isinstance(explanations, str)
    each = list(explanations) if several else [explanations]
    if len(each) != len(question.x):
        raise ValueError(f"{len(each)} explanations for {len(question.x)} rows of data; pass one for each")
    point, told = question.x.clone(), list[Told]()
    for row, (label, explanation) in enumerate(zip(question.index, each, strict=True)):
        theirs = _alibi_point(explanation, encoding.width)
        if theirs is None:
            told.append((row, (label, WITHOUT, "alibi found none")))
        elif not theirs.isfinite().all():
            column = encoding.columns[int((~theirs.isfinite()).nonzero()[0])]
            told.append((row, (label, UNREADABLE, f"{column!r} is not a finite number")))
        else:
            point[row] = theirs
    return judged(question, point, np.arange(len(point)), [], told)


def _json(text: str, writer: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{text[:40]!r} is not JSON text ({error}); expected what {writer} wrote: for a file, its read_text()"
        ) from error
    if not isinstance(value, Mapping):
        raise ValueError(f"this JSON is not what {writer} writes: it is a {type(value).__name__}")
    return value


def _examples(result: Any) -> list[tuple[pd.DataFrame, pd.DataFrame | None]]:
    """For every row that DiCE was asked: its copy of the row, and its answers, without the outcome."""
    if isinstance(result, Mapping):
        try:
            names, asked, told = (result[key] for key in ("feature_names_including_target", "test_data", "cfs_list"))
            outcome = result["data_interface"]["outcome_name"]
        except KeyError as error:
            raise ValueError(
                f"this JSON is not what DiCE's to_json() writes (version 2.0): it has no {error}, only {some(result)}"
            ) from error
        tables = [(pd.DataFrame(copy, columns=names), answer) for copy, answer in zip(asked, told, strict=True)]
        examples = [
            (copy, None if answer is None else pd.DataFrame(answer, columns=names), outcome) for copy, answer in tables
        ]
    else:
        try:
            examples = [
                (
                    example.test_instance_df,
                    example.final_cfs_df if example.final_cfs_df_sparse is None else example.final_cfs_df_sparse,
                    example.data_interface.outcome_name,
                )
                for example in result.cf_examples_list
            ]
        except AttributeError as error:
            raise TypeError(
                "expected what DiCE's generate_counterfactuals returns, or the text of its to_json(), got "
                f"{type(result).__name__} ({error})"
            ) from error
    return [
        (copy, None if answer is None else answer.drop(columns=outcome, errors="ignore"))
        for copy, answer, outcome in examples
    ]


def _check_same_person(copy: pd.DataFrame, row: pd.DataFrame, encoding: Encoding) -> None:
    """DiCE's copy is a little off (see `from_dice`); another person is a lot off."""
    for feature, place in encoding.places:
        if feature.name not in copy or set(feature.values) == {False, True}:
            continue
        if feature.is_numeric:
            width = float((encoding.upper - encoding.lower)[place][0])
            off = abs(numbers_of(copy[feature.name])[0] - float(row[feature.name].iloc[0])) > 0.01 * width + 1e-6
        else:
            spelt = spelling(feature)
            off = spelt(copy[feature.name].iloc[0]) != spelt(row[feature.name].iloc[0])
        if off:
            raise ValueError(
                f"DiCE was not asked about this data: row {row.index[0]!r} has {feature.name} = "
                f"{row[feature.name].iloc[0]!r} but DiCE {copy[feature.name].iloc[0]!r}; pass the rows in DiCE's order"
            )


def _alibi_point(explanation: Any, width: int) -> Tensor | None:
    if isinstance(explanation, str):
        data = _json(explanation, "alibi's Explanation.to_json()").get("data", {})
        if "cf" not in data:
            raise ValueError("this JSON is not what alibi's Explanation.to_json() writes: it has no data with a 'cf'")
        found = data["cf"]
    elif explanation is None or hasattr(explanation, "cf"):
        found = None if explanation is None else explanation.cf
    else:
        raise TypeError(
            "expected explanations of alibi's CounterfactualProto or Counterfactual, the text of their to_json(), or "
            f"None, got {type(explanation).__name__}, which has no 'cf'"
        )
    if found is None:
        return None
    point = torch.as_tensor(np.asarray(found["X"], dtype=np.float32))
    if point.shape != (1, width):
        raise ValueError(
            f"alibi's counterfactual has shape {tuple(point.shape)}, expected (1, {width}) as encoding.encode makes "
            "rows; explain encoded rows one by one, with ohe=True if cat_vars are given"
        )
    return point[0]
