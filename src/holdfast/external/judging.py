"""Judging points that somebody else has found, as they came, and writing down what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.external.cells import as_they_are
from holdfast.models.model import Model, check_callable, checked_logits, predict_or_none
from holdfast.search.counterfactuals import Counterfactuals, assess
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature
from holdfast.tabular.relations import explain
from holdfast.tabular.rules import FollowsRule
from holdfast.tabular.space import Space
from holdfast.utils.messages import some

INVALID = "not valid for the model"
VIOLATES = "violates the constraints"
IMPLAUSIBLE = "not plausible"
UNREADABLE = "cannot be read"
WITHOUT = "no counterfactual"
NO_ROW = "matches no row"
COPY = "exact copy"
UNUSED = "unused columns"
PROBLEMS = (INVALID, VIOLATES, IMPLAUSIBLE, UNREADABLE, WITHOUT, NO_ROW, COPY, UNUSED)

Problem = tuple[Any, str, str]  # label of the row (None: of the whole table), one of PROBLEMS, a sentence
Details = dict[int, str]  # what is wrong with a row of the answer, by its number
Target = Any  # a class for everybody, one for each row of the data, or a tensor of class indices


@dataclass(frozen=True, eq=False)
class ImportedCounterfactuals:
    """Counterfactuals from elsewhere, and what is wrong with them. `from_tables` and its siblings make one.

    Row i of the counterfactuals explains row i of the data, if no row has several; where one has, its row is repeated,
    and ``labels`` says whose it is: ``data.loc[imported.labels]`` is the table beside ``imported.counterfactuals``.

    Attributes:
        counterfactuals: every row; one with a problem is not found
        problems: a table with the columns row (its label; None for the whole table), problem and detail
        labels: (n,) the label of every row of the counterfactuals

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> import torch
        >>> from holdfast.external.tables import from_tables
        >>> table = pd.DataFrame({"income": [20, 30, 60, 90]})
        >>> table["approved"] = ["no", "no", "yes", "yes"]
        >>> encoding = hf.Encoding.fit(table, hf.Schema.infer(table, label="approved"))
        >>> model = lambda x: torch.cat([-x, x], 1)  # "yes" above the mean income, 50
        >>> points = pd.DataFrame({"income": [70, 80, 40]}, index=[0, 0, 1])
        >>> imported = from_tables(table[:2], points, encoding, model, target="yes")
        >>> imported
        ImportedCounterfactuals(2 of 3 rows found; not valid for the model: 1)
        >>> imported.labels.tolist(), imported.counterfactuals.found.tolist()
        ([0, 0, 1], [True, True, False])
    """

    counterfactuals: Counterfactuals
    problems: pd.DataFrame
    labels: pd.Index[Any]

    def __repr__(self) -> str:
        found = f"{int(self.counterfactuals.found.sum())} of {len(self.labels)} rows found"
        counts = self.problems["problem"].value_counts()
        kinds = [kind if kind == UNUSED else f"{kind}: {counts[kind]}" for kind in PROBLEMS if kind in counts]
        return f"ImportedCounterfactuals({found}{'; ' * bool(kinds)}{', '.join(kinds)})"


@dataclass(frozen=True, eq=False)
class Question:
    """Who asked, and what counts as an answer."""

    x: Tensor  # (n, d)
    index: pd.Index[Any]  # (n,)
    encoding: Encoding
    model: Model
    target: Target
    space: Space | None


def question_of(data: Any, encoding: Encoding, model: Model, target: Target, space: Space | None) -> Question:
    if not isinstance(encoding, Encoding):
        raise TypeError(f"expected an Encoding, got {type(encoding).__name__}; Encoding.fit(table, schema) makes one")
    check_callable(model)
    if space is not None and not isinstance(space, Space):
        raise TypeError(f"space is {space!r}; expected a Space, such as encoding.space, or None for any real value")
    if not isinstance(data, (Tensor, np.ndarray)):
        return Question(encoding.encode(data), data.index, encoding, model, target, space)
    x = torch.as_tensor(data, dtype=torch.float32)
    if x.ndim != 2 or x.shape[1] != encoding.width:
        raise ValueError(f"expected encoded rows of {encoding.width} columns, got shape {tuple(x.shape)}")
    return Question(x, pd.RangeIndex(len(x)), encoding, model, target, space)


def judged(
    question: Question, point: Tensor, person: NDArray[Any], problems: list[Problem], absent: Mapping[str, Details]
) -> ImportedCounterfactuals:
    """Row i of point is for row person[i] of the question.

    ``absent`` says of the rows without a point to judge why they have none, by the kind of problem.
    """
    origin, labels = question.x[person], question.index[person]
    space = None if question.space is None else question.space.of(torch.as_tensor(person))
    wanted, sure = _wanted(question, point, torch.as_tensor(person))
    given, broken = torch.ones(len(point), dtype=torch.bool), torch.zeros_like(point, dtype=torch.bool)
    given[[row for details in absent.values() for row in details]] = False
    wrong = {INVALID: _wrong_classes(question, point, wanted, sure)}
    if space is not None:
        space.check_origin(question.x)
        broken = space.violations(point, origin)
        wrong[VIOLATES] = _broken_rules(space.to(point), broken, point, origin, question.encoding)
    # `assess` alone decides what found means; in a space without constraints it moves nothing.
    edge = torch.full((point.shape[1],), torch.inf)
    anywhere = replace(Space.box(-edge, edge), people=None if space is None else space.people)
    answer = assess(question.model, origin, point, wanted, anywhere, also=sure & given & ~broken.any(1))
    wrong[IMPLAUSIBLE] = _unlike(answer, question.encoding.schema.classes)
    wrong = {kind: {row: detail for row, detail in details.items() if given[row]} for kind, details in wrong.items()}
    found = [(row, kind, detail) for kind, details in {**absent, **wrong}.items() for row, detail in details.items()]
    found.sort(key=lambda problem: problem[0])
    problems = problems + [(labels[row], kind, detail) for row, kind, detail in found]
    return ImportedCounterfactuals(replace(answer, labels=labels), problem_table(problems), labels)


def _wanted(question: Question, point: Tensor, person: Tensor) -> tuple[Tensor, Tensor]:
    """The class wanted for every point (n,), and whether one can be wanted (n,).

    Where none is named: the point's own, if it is not the person's, else the model's second choice for the person.
    Of two classes that is always the other one.
    """
    logits = _logits(question.model, question.x)
    if question.target is not None:
        named = _named_target(question.target, question.index, question.encoding, logits.shape[1])
        return named[person], torch.ones(len(point), dtype=torch.bool)
    start, reached = logits.argmax(1), predict_or_none(question.model, point)
    second = logits.scatter(1, start[:, None], -torch.inf).argmax(1)
    return torch.where(reached != start[person], reached, second[person]), logits.isfinite().all(1)[person]


def _logits(model: Model, x: Tensor) -> Tensor:
    """What the model says, if it says it twice: dropout left on would judge at random."""
    try:
        with torch.no_grad():
            logits, again = checked_logits(model(x), len(x)), model(x[:64])
    except (RuntimeError, TypeError, AttributeError) as error:
        raise ValueError(f"the model does not take rows of {x.shape[1]} columns ({x.dtype}): {error}") from error
    if not torch.allclose(logits[:64], again, rtol=1e-3, atol=1e-3, equal_nan=True):
        raise ValueError("the model answers the same rows differently when asked twice; call model.eval()")
    return logits


def _named_target(target: Target, index: pd.Index[Any], encoding: Encoding, classes: int) -> Tensor:
    rows, names = len(index), encoding.schema.classes
    if isinstance(target, Tensor):
        if target.shape != (rows,) or target.dtype != torch.int64 or not ((target >= 0) & (target < classes)).all():
            raise ValueError(
                f"target has shape {tuple(target.shape)} and dtype {target.dtype}; expected ({rows},), one class index "
                f"from 0 to {classes - 1} as int64 for each row of data"
            )
        return target
    if classes != len(names):
        raise ValueError(
            f"the model has {classes} classes but the schema {len(names)}, so a class cannot be named; give target as "
            "a tensor of the model's class indices"
        )
    if isinstance(target, pd.Series):
        target = target.reindex(index).tolist()
    one_each = isinstance(target, (Sequence, np.ndarray, pd.Index)) and not isinstance(target, str)
    each = list(target) if one_each else [target] * rows
    unknown = [label for label in each if label not in names]
    if len(each) != rows or unknown:
        raise ValueError(
            f"target names {len(each)} classes for {rows} rows of data"
            + (f", among them {some(dict.fromkeys(unknown))}" if unknown else "")
            + f"; expected one class, or one for each row, of {some(names)}"
        )
    return torch.tensor([names.index(label) for label in each])


def _wrong_classes(question: Question, point: Tensor, wanted: Tensor, sure: Tensor) -> dict[int, str]:
    """What the model says of the points that it does not give the wanted class."""
    logits, names = _logits(question.model, point), question.encoding.schema.classes
    called = list(names) if len(names) == logits.shape[1] else list(range(logits.shape[1]))
    finite, given = logits.isfinite().all(1), logits.argmax(1)
    details = {}
    for row in torch.nonzero(~(finite & sure & (given == wanted))).flatten().tolist():
        if not finite[row]:
            details[row] = "the model's answer is not finite"
        elif given[row] == wanted[row]:
            details[row] = "the model's answer for the person themselves is not finite"
        else:
            details[row] = f"the model gives it class {called[given[row]]!r}, not {called[wanted[row]]!r}"
    return details


def _unlike(answer: Counterfactuals, classes: tuple[Any, ...]) -> dict[int, str]:
    """For every point of the class that nobody of the class is like: how far it is from them."""
    if answer.implausible is None or answer.unlikeness is None:
        return {}
    details = {}
    for row in torch.nonzero(answer.implausible).flatten().tolist():
        now, there = answer.unlikeness[row].tolist()
        wanted = classes[int(answer.target[row])] if len(classes) == answer.classes else int(answer.target[row])
        details[row] = (
            f"nobody is like this: it is {there:.3g} times as far from people of class {wanted!r} as the limit"
        )
        if now > 1:
            details[row] += f", and the person themselves {now:.3g} times"
    return details


def _broken_rules(space: Space, broken: Tensor, point: Tensor, origin: Tensor, encoding: Encoding) -> dict[int, str]:
    """For every row that breaks a rule of the space: which features or relations, from what to what, and the rule."""
    rows = torch.nonzero(broken.any(1)).flatten()
    if not len(rows):
        return {}
    space, point, origin = space.of(rows), point[rows], origin[rows]
    breaks = space.violations_apart(point, origin)
    numbers = [encoding.in_units(part.numpy()) for part in (origin, point)]
    limits = encoding.in_units(torch.stack([space.lower, space.upper]).numpy())
    cells = [as_they_are(encoding).decode(part) for part in (origin, point)]
    details: list[list[str]] = [[] for _ in rows]
    for feature, columns in encoding.places:
        for row in torch.nonzero(breaks[:, columns].any(1)).flatten().tolist():
            before, after = (float(part[row, columns.start]) for part in numbers)
            if feature.is_numeric and not feature.missing:
                change = f"{_written(before)} to {_written(after)}"
            else:
                change = " to ".join(repr(part[feature.name][row]) for part in cells)
            rule = _rule(feature, columns, before, after, space, encoding, limits)
            if feature.kind == "categorical" and rule == LEVEL and cells[1][feature.name][row] not in feature.avoid:
                rule = f"may only {feature.direction}" if feature.direction != "any" else LEVEL
            details[row].append(f"{feature.name!r} from {change} ({rule})")
    for row, detail in _broken_relations(space, point, origin, encoding):
        details[row].append(detail)
    return dict(zip(rows.tolist(), map("; ".join, details), strict=True))


def _written(number: float) -> str:
    """A number as the table has it; 12 digits are more than an encoded one keeps."""
    return f"{number:.12g}"


def _broken_relations(space: Space, point: Tensor, origin: Tensor, encoding: Encoding) -> Iterator[tuple[int, str]]:
    """What is wrong with each relation that a row breaks and the person does not, or less."""
    if space.related is None:
        return
    values, values_before = space.values(point), space.values(origin)
    for row, number in torch.nonzero(space.related.broken(values, values_before)).tolist():
        rule, (after, before) = space.related.rules[number], (_cells(part[row], encoding) for part in (point, origin))
        if not isinstance(rule, FollowsRule):
            yield row, explain(rule.relation, after)
            continue
        column, of = rule.relation.columns
        encoded = point[row].clone()
        start = encoding.places[encoding.schema.names.index(column)][1].start
        needed = rule.needed(values[row : row + 1], values_before[row : row + 1])[0]
        encoded[start] = (needed - encoding.shift[start]) / encoding.scale[start]
        yield (
            row,
            f"{column} goes from {before[column]} to {after[column]} and {of} from {before[of]} to {after[of]}; "
            f"{rule.relation}, so {column} must be {_cells(encoded, encoding)[column]}",
        )


def _cells(encoded: Tensor, encoding: Encoding) -> dict[str, Any]:
    """One encoded row (d,) as the table has it."""
    (row,) = as_they_are(encoding).decode(encoded[None]).to_dict("records")
    whole = {name for name, value in row.items() if isinstance(value, float) and value.is_integer()}
    return {str(name): int(value) if name in whole else value for name, value in row.items()}


def _in_units(number: float, column: int, encoding: Encoding) -> float:
    """One encoded number as the table has it."""
    encoded = np.zeros((1, encoding.width), dtype=np.float32)
    encoded[0, column] = number
    return float(encoding.in_units(encoded)[0, column])


LEVEL = "not a level to move to"


def _rule(
    feature: Feature,
    columns: slice,
    before: float,
    after: float,
    space: Space,
    encoding: Encoding,
    limits: NDArray[np.float64],  # (2, d) the lower and the upper ones, in the table's units
) -> str:
    """The rule that a step from before to after breaks, given that it breaks one."""
    if not (space.mutable | space.follows)[columns].all():
        return "may not change"
    if feature.kind == "categorical":
        return LEVEL
    column = columns.start
    lower, upper = (float(limit) for limit in limits[:, column])
    if (after - before) * float(space.direction[column]) < 0:
        return "may only rise" if after < before else "may only fall"
    if not lower <= after <= upper:
        return f"allowed from {_written(lower)} to {_written(upper)}"
    for ends in (gap[1:] for gap in space.gaps if gap[0] == column):
        first, last = (_in_units(end, column, encoding) for end in ends)
        if first < after < last:
            return f"nobody is between {_written(first)} and {_written(last)}"
    return f"goes in steps of {float(space.step[column]):g}"


def problem_table(problems: list[Problem]) -> pd.DataFrame:
    return pd.DataFrame(problems, columns=["row", "problem", "detail"], dtype=object)


def json_of(text: str, writer: str) -> Mapping[str, Any]:
    """The text of a JSON object that ``writer`` wrote."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{text[:40]!r} is not JSON text ({error}); expected what {writer} wrote: for a file, its read_text()"
        ) from error
    if not isinstance(value, Mapping):
        raise ValueError(f"this JSON is not what {writer} writes: it is a {type(value).__name__}")
    return value
