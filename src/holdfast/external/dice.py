"""Counterfactuals from what DiCE returns, or from the JSON that it writes. DiCE itself is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from holdfast.external.cells import numbers_of, spelling
from holdfast.external.judging import ImportedCounterfactuals, Target, json_of, question_of
from holdfast.external.tables import assembled, unused
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space
from holdfast.utils.messages import some


def from_dice(
    data: pd.DataFrame,
    result: Any,
    encoding: Encoding,
    model: Model,
    *,
    target: Target = None,
    space: Space | None = None,
) -> ImportedCounterfactuals:
    """Counterfactuals from DiCE: what its ``generate_counterfactuals(data, ...)`` returned.

    DiCE need not be installed. Where there is a sparse answer, that is taken, as DiCE shows and saves it.

    Args:
        data: the table DiCE was asked about: its own copy has lost the labels, has numbers in single precision, and
            holds True where a person has False
        result: DiCE's answer, or the text of its ``to_json()``
        encoding: what the columns mean as numbers
        model: the deployed model
        target: as in `from_tables`
        space: as in `from_tables`

    Examples:
        >>> import json
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> import torch
        >>> from holdfast.external.dice import from_dice
        >>> table = pd.DataFrame({"income": [20, 30, 60, 90]})
        >>> table["approved"] = ["no", "no", "yes", "yes"]
        >>> encoding = hf.Encoding.fit(table, hf.Schema.infer(table, label="approved"))
        >>> model = lambda x: torch.cat([-x, x], 1)  # "yes" above the mean income, 50
        >>> text = json.dumps(  # as DiCE's to_json() writes it
        ...     {
        ...         "feature_names_including_target": ["income", "approved"],
        ...         "test_data": [[[20, "no"]], [[30, "no"]]],
        ...         "cfs_list": [[[70, "yes"], [80, "yes"]], None],  # two, and none
        ...         "data_interface": {"outcome_name": "approved"},
        ...     }
        ... )
        >>> from_dice(table[:2], text, encoding, model, target="yes")
        ImportedCounterfactuals(2 of 3 rows found; no counterfactual: 1)

    Paper: named in [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, and not compared there; DiCE is
    [Mothilal et al. 2020](https://arxiv.org/abs/1905.07697).
    """
    question, names = question_of(data, encoding, model, target, space), list(encoding.schema.names)
    examples = _examples(json_of(result, "DiCE's to_json()") if isinstance(result, str) else result)
    if len(examples) != len(data):
        raise ValueError(
            f"DiCE answered for {len(examples)} rows but data has {len(data)}; pass the table it was asked about"
        )
    for row, (copy, _) in enumerate(examples):
        _check_same_person(copy, data.iloc[[row]], encoding)
    person = np.repeat(np.arange(len(data)), [0 if answer is None else len(answer) for _, answer in examples])
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
            numbers = numbers_of(data[feature.name])[person]
            with np.errstate(over="ignore"):
                same = numbers_of(points[feature.name]).astype(np.float32) == numbers.astype(np.float32)
            points[feature.name] = points[feature.name].mask(same, numbers)
    return assembled(question, data, points, person, unused(points.columns, {*names, encoding.schema.label}))


def _examples(result: Any) -> list[tuple[pd.DataFrame, pd.DataFrame | None]]:
    """For every row that DiCE was asked: its copy of the row, and its answers, without the outcome."""
    if isinstance(result, Mapping):
        return _examples_of_json(result)
    try:
        return [
            (
                example.test_instance_df,
                _without_outcome(
                    example.final_cfs_df if example.final_cfs_df_sparse is None else example.final_cfs_df_sparse,
                    example.data_interface.outcome_name,
                ),
            )
            for example in result.cf_examples_list
        ]
    except AttributeError as error:
        raise TypeError(
            "expected what DiCE's generate_counterfactuals returns, or the text of its to_json(), got "
            f"{type(result).__name__} ({error})"
        ) from error


def _examples_of_json(result: Mapping[str, Any]) -> list[tuple[pd.DataFrame, pd.DataFrame | None]]:
    try:
        names, outcome = result["feature_names_including_target"], result["data_interface"]["outcome_name"]
        return [
            (
                pd.DataFrame(copy, columns=names),
                _without_outcome(None if answer is None else pd.DataFrame(answer, columns=names), outcome),
            )
            for copy, answer in zip(result["test_data"], result["cfs_list"], strict=True)
        ]
    except (KeyError, TypeError, ValueError) as error:
        fault = (
            f"it has no {error}, only {some(result)}"
            if isinstance(error, KeyError)
            else f"tables do not fit its names: {error}"
        )
        raise ValueError(f"this JSON is not what DiCE's to_json() writes (version 2.0): {fault}") from error


def _without_outcome(answer: pd.DataFrame | None, outcome: str) -> pd.DataFrame | None:
    return None if answer is None else answer.drop(columns=outcome, errors="ignore")


def _check_same_person(copy: pd.DataFrame, row: pd.DataFrame, encoding: Encoding) -> None:
    """DiCE's copy is a little off (see `from_dice`); another person is a lot off."""
    for feature, columns in encoding.places:
        if feature.name not in copy or set(feature.values) == {False, True}:
            continue
        if feature.is_numeric:
            width = float((encoding.upper - encoding.lower)[columns][0])
            off = abs(numbers_of(copy[feature.name])[0] - float(row[feature.name].iloc[0])) > 0.01 * width + 1e-6
        else:
            spelt = spelling(feature)
            off = spelt(copy[feature.name].iloc[0]) != spelt(row[feature.name].iloc[0])
        if off:
            raise ValueError(
                f"DiCE was not asked about this data: row {row.index[0]!r} has {feature.name} = "
                f"{row[feature.name].iloc[0]!r} but DiCE {copy[feature.name].iloc[0]!r}; pass the rows in DiCE's order"
            )
