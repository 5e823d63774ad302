"""Judging points that somebody else has found, as they came, and writing down what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.model import Model, checked_logits, predict_or_none
from holdfast.search.counterfactuals import Counterfactuals, assess
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature
from holdfast.tabular.relations import explain
from holdfast.tabular.rules import FollowsRule, Rule
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
Told = tuple[int, Problem]  # the number of the row in the answer, and what is wrong with it
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
        >>> table = pd.DataFrame({"income": [20, 30, 60, 90]})
        >>> table["approved"] = ["no", "no", "yes", "yes"]
        >>> encoding = hf.Encoding.fit(table, hf.Schema.infer(table, label="approved"))
        >>> model = lambda x: torch.cat([-x, x], 1)  # "yes" above the mean income, 50
        >>> points = pd.DataFrame({"income": [70, 80, 40]}, index=[0, 0, 1])
        >>> imported = hf.from_tables(table[:2], points, encoding, model, target="yes")
        >>> imported
        ImportedCounterfactuals(2 of 3 rows found; not valid for the model: 1)
        >>> imported.labels.tolist(), imported.counterfactuals.found.tolist()
        ([0, 0, 1], [True, True, False])

    Paper: not in [Black et al. 2022](https://arxiv.org/abs/2110.03109), which measures its own searches; what counts as
    found is its Definition 1.
    """

    counterfactuals: Counterfactuals
    problems: pd.DataFrame
    labels: pd.Index[Any]

    def __repr__(self) -> str:
        told = f"{int(self.counterfactuals.found.sum())} of {len(self.labels)} rows found"
        counts = self.problems["problem"].value_counts()
        kinds = [kind if kind == UNUSED else f"{kind}: {counts[kind]}" for kind in PROBLEMS if kind in counts]
        return f"ImportedCounterfactuals({told}{'; ' * bool(kinds)}{', '.join(kinds)})"


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
    if space is not None and not isinstance(space, Space):
        raise TypeError(f"space is {space!r}; expected a Space, such as encoding.space, or None for any real value")
    if not isinstance(data, (Tensor, np.ndarray)):
        return Question(encoding.encode(data), data.index, encoding, model, target, space)
    x = torch.as_tensor(data, dtype=torch.float32)
    if x.ndim != 2 or x.shape[1] != encoding.width:
        raise ValueError(f"expected encoded rows of {encoding.width} columns, got shape {tuple(x.shape)}")
    return Question(x, pd.RangeIndex(len(x)), encoding, model, target, space)


def judged(
    question: Question, point: Tensor, place: NDArray[Any], problems: list[Problem], told: list[Told]
) -> ImportedCounterfactuals:
    """Row i of point is for row place[i] of the question; ``told`` has the rows without a point to judge, and why."""
    origin, labels = question.x[place], question.index[place]
    space = None if question.space is None else question.space.of(torch.as_tensor(place))
    wanted, sure = _wanted(question, point, torch.as_tensor(place))
    absent, broken = torch.zeros(len(point), dtype=torch.bool), torch.zeros_like(point, dtype=torch.bool)
    absent[[row for row, _ in told]] = True
    wrong = _wrong_classes(question, point, wanted, sure)
    told = told + [(row, (labels[row], INVALID, detail)) for row, detail in wrong.items() if not absent[row]]
    if space is not None:
        space.check_origin(question.x)
        broken = space.violations(point, origin)
        rules = _broken_rules(space.to(point), broken, point, origin, question.encoding)
        told += [(row, (labels[row], VIOLATES, detail)) for row, detail in rules.items()]
    # `assess` alone decides what found means; in a space without constraints it moves nothing.
    edge = torch.full((point.shape[1],), torch.inf)
    anywhere = replace(Space.box(-edge, edge), people=None if space is None else space.people)
    answer = assess(question.model, origin, point, wanted, anywhere, also=sure & ~absent & ~broken.any(1))
    unlike = _unlike(answer, question.encoding.schema.classes)
    told += [(row, (labels[row], IMPLAUSIBLE, detail)) for row, detail in unlike.items() if not absent[row]]
    answer = replace(answer, labels=labels)
    in_order = [problem for _, problem in sorted(told, key=lambda one: one[0])]
    return ImportedCounterfactuals(answer, problem_table(problems + in_order), labels)


def _wanted(question: Question, point: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
    """The class wanted for every point (n,), and whether one can be wanted (n,).

    Where none is named: the point's own, if it is not the person's, else the model's second choice for the person.
    Of two classes that is always the other one.
    """
    logits = _logits(question.model, question.x)
    if question.target is not None:
        named = _named_target(question.target, question.index, question.encoding, logits.shape[1])
        return named[place], torch.ones(len(point), dtype=torch.bool)
    start, reached = logits.argmax(1), predict_or_none(question.model, point)
    second = logits.scatter(1, start[:, None], -torch.inf).argmax(1)
    return torch.where(reached != start[place], reached, second[place]), logits.isfinite().all(1)[place]


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
        if target.shape != (rows,) or target.dtype != torch.int64 or (rows and not _within(target, classes)):
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


def _within(target: Tensor, classes: int) -> bool:
    return int(target.min()) >= 0 and int(target.max()) < classes


def _wrong_classes(question: Question, point: Tensor, wanted: Tensor, sure: Tensor) -> dict[int, str]:
    """What the model says of the points that it does not give the wanted class."""
    logits, names = _logits(question.model, point), question.encoding.schema.classes
    called = list(names) if len(names) == logits.shape[1] else list(range(logits.shape[1]))
    finite, said = logits.isfinite().all(1), logits.argmax(1)
    told = {}
    for row in torch.nonzero(~(finite & sure & (said == wanted))).flatten().tolist():
        if not finite[row]:
            told[row] = "the model's answer is not finite"
        elif said[row] == wanted[row]:
            told[row] = "the model's answer for the person themselves is not finite"
        else:
            told[row] = f"the model gives it class {called[said[row]]!r}, not {called[wanted[row]]!r}"
    return told


def _unlike(answer: Counterfactuals, classes: tuple[Any, ...]) -> dict[int, str]:
    """For every point of the class that nobody of the class is like: how far it is from them."""
    if answer.implausible is None or answer.unlikeness is None:
        return {}
    told = {}
    for row in torch.nonzero(answer.implausible).flatten().tolist():
        now, there = answer.unlikeness[row].tolist()
        wanted = classes[int(answer.target[row])] if len(classes) == answer.classes else int(answer.target[row])
        told[row] = f"nobody is like this: it is {there:.3g} times as far from people of class {wanted!r} as the limit"
        if now > 1:
            told[row] += f", and the person themselves {now:.3g} times"
    return told


def _broken_rules(space: Space, broken: Tensor, point: Tensor, origin: Tensor, encoding: Encoding) -> dict[int, str]:
    """For every row that breaks a rule of the space: which features or relations, from what to what, and the rule."""
    rows = torch.nonzero(broken.any(1)).flatten()
    if not len(rows):
        return {}
    space, point, origin = space.of(rows), point[rows], origin[rows]
    apart, said = space.violations_apart(point, origin), _broken_relations(space, point, origin, encoding)
    numbers = [encoding.in_units(part.numpy()) for part in (origin, point)]
    limits = encoding.in_units(torch.stack([space.lower, space.upper]).numpy())
    levels = [encoding.decode(part) for part in (origin, point)]
    for feature, place in reversed(encoding.places):
        for row in torch.nonzero(apart[:, place].any(1)).flatten().tolist():
            before, after = (float(part[row, place.start]) for part in numbers)
            if feature.is_numeric and not feature.missing:
                told = f"{_written(before)} to {_written(after)}"
            else:
                told = " to ".join(repr(part[feature.name][row]) for part in levels)
            rule = _rule(feature, place, before, after, space, encoding, limits)
            if feature.kind == "categorical" and rule == LEVEL and levels[1][feature.name][row] not in feature.avoid:
                rule = f"may only {feature.direction}" if feature.direction != "any" else LEVEL
            said[row].insert(0, f"{feature.name!r} from {told} ({rule})")
    return dict(zip(rows.tolist(), map("; ".join, said), strict=True))


def _written(number: float) -> str:
    """A number as the table has it; 12 digits are more than an encoded one keeps."""
    return f"{number:.12g}"


def _broken_relations(space: Space, point: Tensor, origin: Tensor, encoding: Encoding) -> list[list[str]]:
    """For each row, what is wrong with each relation that it breaks and the person does not, or less."""
    said: list[list[str]] = [[] for _ in point]
    if space.related is None:
        return said
    here, home = space.values(point), space.values(origin)
    for row, number in torch.nonzero(space.related.broken(here, home)).tolist():
        said[row].append(_breach(space.related.rules[number], here[row], home[row], encoding))
    return said


def _breach(rule: Rule, here: Tensor, home: Tensor, encoding: Encoding) -> str:
    """Why these values (m,) break a rule."""
    now, then = (_cells(rule, values, encoding) for values in (here, home))
    if not isinstance(rule, FollowsRule):
        return explain(rule.relation, now)
    column, of = rule.relation.columns
    needed = _cell(rule.features[0], float(rule.needed(here[None], home[None])), encoding)
    return (
        f"{column} goes from {then[column]} to {now[column]} and {of} from {then[of]} to {now[of]}; {rule.relation}, "
        f"so {column} must be {needed}"
    )


def _cells(rule: Rule, values: Tensor, encoding: Encoding) -> dict[str, Any]:
    return {
        feature.name: _cell(feature, float(values[place]), encoding)
        for feature, place in zip(rule.features, rule.places, strict=True)
    }


def _cell(feature: Feature, value: float, encoding: Encoding) -> Any:
    """What a value of a rule is in the table."""
    if feature.is_numeric:
        column = encoding.places[encoding.schema.names.index(feature.name)][1].start
        value = _in_units((value - encoding.shift[column]) / encoding.scale[column], column, encoding)
        return int(value) if value.is_integer() else value
    place = max(0, round(value))
    return feature.values[place] if place < len(feature.values) else None


def _in_units(number: float, column: int, encoding: Encoding) -> float:
    """One encoded number as the table has it."""
    encoded = np.zeros((1, encoding.width), dtype=np.float32)
    encoded[0, column] = number
    return float(encoding.in_units(encoded)[0, column])


LEVEL = "not a level to move to"


def _rule(
    feature: Feature,
    place: slice,
    before: float,
    after: float,
    space: Space,
    encoding: Encoding,
    limits: NDArray[np.float64],  # (2, d) the lower and the upper ones, in the table's units
) -> str:
    """The rule that a step from before to after breaks, given that it breaks one."""
    if not (space.mutable | space.follows)[place].all():
        return "may not change"
    if feature.kind == "categorical":
        return LEVEL
    column = place.start
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
