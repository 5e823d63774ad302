"""Counterfactuals from tables: two that are matched by index, or one with paired columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from holdfast.external.cells import as_they_are, empty_rows, read_points
from holdfast.external.judging import (
    COPY,
    NO_ROW,
    UNREADABLE,
    UNUSED,
    WITHOUT,
    ImportedCounterfactuals,
    Problem,
    Question,
    Target,
    judged,
    problem_table,
    question_of,
)
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space
from holdfast.utils.messages import repeated, some


def from_tables(
    data: pd.DataFrame,
    points: pd.DataFrame,
    encoding: Encoding,
    model: Model,
    *,
    target: Target = None,
    space: Space | None = None,
) -> ImportedCounterfactuals:
    """Counterfactuals from two tables, matched by their index: where people are, and where they could be.

    Both tables are in the schema's units. Several rows of ``points`` may share a label; then the answer has a row for
    each. One that repeats an earlier one in every feature counts once, and is told among the problems. Nothing is
    rounded or moved.

    Args:
        data: the people, one row each
        points: the counterfactuals. A feature that nobody can change may be left out. A column `found`, as
            `Counterfactuals.to_frame` writes it, says which rows to take
        encoding: what the columns mean as numbers
        model: the deployed model; a counterfactual is found if it gives the target class
        target: one class, one for each row of ``data``, or a tensor of class indices; left out, any class but the one
            that the model gives the person
        space: with a space, such as ``encoding.space``, a counterfactual must keep its constraints to be found

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> import torch
        >>> from holdfast.external.tables import from_tables
        >>> table = pd.DataFrame({"income": [20, 30, 60, 90]})
        >>> table["approved"] = ["no", "no", "yes", "yes"]
        >>> encoding = hf.Encoding.fit(table, hf.Schema.infer(table, label="approved"))
        >>> model = lambda x: torch.cat([-x, x], 1)  # "yes" above the mean income, 50
        >>> points = pd.DataFrame({"income": [70, 40]})  # answers for rows 0 and 1
        >>> imported = from_tables(table[:2], points, encoding, model, target="yes")
        >>> imported
        ImportedCounterfactuals(1 of 2 rows found; not valid for the model: 1)
        >>> imported.problems["detail"].tolist()
        ["the model gives it class 'no', not 'yes'"]
    """
    question = question_of(data, encoding, model, target, space)
    _check_points(points)
    shared = data.index[data.index.duplicated()].unique()
    if len(shared):
        raise ValueError(
            f"labels {some(shared)} stand for several rows of data; each row needs its own, such as "
            "data.reset_index(drop=True), and points the same ones"
        )
    names = encoding.schema.names
    missing = [feature.name for feature in encoding.schema.features if feature.mutable and feature.name not in points]
    if missing and len(points):
        raise ValueError(
            f"points lacks columns {missing}; expected {some(names, 12)}, got {some(points.columns, 12)}; rename "
            f"its columns, or copy what did not change: points[{missing[0]!r}] = data[{missing[0]!r}]"
        )
    copied = _copies(points, {*names, "found"})
    copies: list[Problem] = [
        (label, COPY, "an earlier row of this label has the same values; they count once")
        for label in points.index[copied].tolist()
    ]
    points = points[~copied]
    person = data.index.get_indexer(points.index)
    if len(points) and (person < 0).all():
        raise ValueError(
            f"no label of points is one of data: points has {some(points.index)} ({points.index.dtype}), data has "
            f"{some(data.index)} ({data.index.dtype}); give both the same index, with set_index or index.astype"
        )
    problems = unused(points.columns, {*names, encoding.schema.label, "found"})
    strangers: list[Problem] = [
        (label, NO_ROW, "no row of data has this label") for label in points.index[person < 0].tolist()
    ]
    found = assembled(question, data, points[person >= 0], person[person >= 0], problems)
    return replace(found, problems=pd.concat([found.problems, problem_table(strangers + copies)], ignore_index=True))


def from_paired(
    table: pd.DataFrame,
    encoding: Encoding,
    model: Model,
    *,
    before: str = "{}_before",
    after: str = "{}_after",
    target: Target = None,
    space: Space | None = None,
) -> ImportedCounterfactuals:
    """Counterfactuals from one table that has both: a person and the counterfactual side by side in each row.

    A feature without a column of the second kind did not change. Labels may repeat: every row has its own person beside
    it.

    Args:
        table: the people and their counterfactuals
        encoding: what the columns mean as numbers
        model: the deployed model
        before: how the columns of people are named, "{}" being the feature
        after: how those of counterfactuals are named; ``before="{}", after="new_{}"`` reads `age` and `new_age`
        target: as in `from_tables`
        space: as in `from_tables`

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> import torch
        >>> from holdfast.external.tables import from_paired
        >>> table = pd.DataFrame({"income": [20, 30, 60, 90]})
        >>> table["approved"] = ["no", "no", "yes", "yes"]
        >>> encoding = hf.Encoding.fit(table, hf.Schema.infer(table, label="approved"))
        >>> model = lambda x: torch.cat([-x, x], 1)  # "yes" above the mean income, 50
        >>> pairs = pd.DataFrame({"income_before": [20, 30], "income_after": [70, 40]})
        >>> from_paired(pairs, encoding, model, target="yes")
        ImportedCounterfactuals(1 of 2 rows found; not valid for the model: 1)
    """
    _check_points(table)
    for name, pattern in {"before": before, "after": after}.items():
        if not isinstance(pattern, str) or pattern.count("{}") != 1 or before == after:
            raise ValueError(f"{name} is {pattern!r}; write {{}} where the feature stands, such as '{{}}_{name}'")
    names = encoding.schema.names
    firsts, seconds = ({pattern.replace("{}", name): name for name in names} for pattern in (before, after))
    missing = [column for column in firsts if column not in table]
    given = [column for column in seconds if column in table]
    if missing or not given:
        raise ValueError(
            f"the table lacks columns {missing or list(seconds)}; expected columns like {some(firsts, 2)} and "
            f"{some(seconds, 2)}, got {some(table.columns, 12)}; say how they are named with before= and after="
        )
    known = {*firsts, *seconds, "found"}
    known |= {pattern.replace("{}", encoding.schema.label) for pattern in ("{}", before, after)}
    data = table[list(firsts)].rename(columns=firsts)
    points = table[given].rename(columns=seconds)
    if "found" in table and "found" not in {*firsts, *given}:
        points["found"] = table["found"]
    question = question_of(data, encoding, model, target, space)
    return assembled(question, data, points, np.arange(len(table)), unused(table.columns, known))


def _copies(points: pd.DataFrame, names: Collection[str]) -> NDArray[np.bool_]:
    """Which rows repeat an earlier one of the same label in every feature that is given."""
    given = [name for name in points if name in names]
    cells = points[given].set_axis(range(len(given)), axis=1).reset_index(drop=True)
    cells[len(given)] = pd.factorize(points.index)[0]
    try:
        return cells.duplicated().to_numpy(dtype=bool)
    except TypeError:  # a cell that holds a list: `read_points` complains of it
        return cells.astype(str).duplicated().to_numpy(dtype=bool)


def assembled(
    question: Question, data: pd.DataFrame, points: pd.DataFrame, person: NDArray[Any], problems: list[Problem]
) -> ImportedCounterfactuals:
    """Row j of points is for row person[j] of data; people without a point get a row without a counterfactual."""
    unanswered = np.setdiff1d(np.arange(len(data)), person)
    person = np.concatenate([person, unanswered])
    order = person.argsort(kind="stable")
    source = np.concatenate([np.arange(len(points)), np.full(len(unanswered), -1)])[order]
    person = person[order]
    points = points.reset_index(drop=True).reindex(source).reset_index(drop=True)
    columns, trouble = read_points(points, data.iloc[person], question.encoding)
    without = empty_rows(points, question.encoding)
    without |= dict.fromkeys(np.flatnonzero(source < 0).tolist(), "there is no counterfactual for this row")
    point = as_they_are(question.encoding).encode_unchecked(pd.DataFrame(columns))
    for row, column in torch.nonzero(~point.isfinite()).tolist():
        trouble.setdefault(row, []).append(f"{question.encoding.columns[column]!r} holds too large a number")
    unreadable = {row: "; ".join(faults) for row, faults in trouble.items() if row not in without}
    stays = [*without, *unreadable]
    point[stays] = question.x[person[stays]]
    return judged(question, point, person, problems, {WITHOUT: without, UNREADABLE: unreadable})


def _check_points(points: pd.DataFrame) -> None:
    if not isinstance(points, pd.DataFrame):
        raise TypeError(f"expected a pandas DataFrame, got {type(points).__name__}; read_table reads one from a file")
    twice = repeated(points.columns)
    if twice:
        raise ValueError(f"columns {some(twice)} appear more than once; rename or drop the copies")


def unused(columns: Iterable[Any], known: set[str]) -> list[Problem]:
    extra = [column for column in columns if column not in known]
    return [(None, UNUSED, f"columns {some(extra, 12)} are no features of the schema")] if extra else []
