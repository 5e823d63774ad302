"""What a search answers, and the one place that decides what "found" means."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.checked import CheckedModel, checked_model, itself, names_of
from holdfast.models.model import Model, answer, certain_classes_of, check_model, classes_of
from holdfast.models.rows import check_floats, check_rows, check_target, check_tensor
from holdfast.search.people import check_people, people_for
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.people import ROUNDING, People
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_number

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """What a search found. Row i of the answer is for row i of the question.

    A row for which nothing was found keeps its place: ``found[i]`` is False and its cost is NaN. Every method returns
    this value, a stabiliser takes one and returns another, and `audit` judges it. ``answer[rows]`` has some of the
    rows, by their numbers or by a mask. Points are in encoded units; `changes` and `to_frame` give them in those of the
    table.

    Attributes:
        origin: Where each person is: (n, d).
        point: Where each person could be: (n, d).
        target: The class that each person wants: (n,).
        found: Whether the point keeps the constraints and the model gives it the target class: (n,).
        classes: How many classes the model has.
        seen: The models that the search has asked, by their fingerprints. An audit by one of them is refused.
        before: The class that the model gives each person now: (n,).
        unlikeness: How far each person is from people of the target class, now and at the point: (n, 2). 1 is the usual
            limit. None where the space knows no people.
        implausible: Whether the point is valid, but nobody is like that: (n,).
        calls: How many rows a black box was asked about, for all people together; None for other models. Where several
            models are searched as one (`Rehearsed`), each was asked about so many rows.
        labels: Who the rows are, if known; see `labelled`.

    Examples:
        >>> import pandas as pd
        >>> import torch
        >>> import holdfast as hf
        >>> rows = [(20, 9, "no"), (30, 6, "no"), (40, 3, "yes"), (50, 0, "yes")]
        >>> table = pd.DataFrame(rows, columns=["income", "debt", "paid"])
        >>> features = (hf.Feature("income", "integer"), hf.Feature("debt", "integer"))
        >>> schema = hf.Schema(features, "paid", classes=("no", "yes"))
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> # A model that gives "yes" where the income is above its mean, 35.
        >>> model = lambda x: torch.stack([-x[:, 0], x[:, 0]], dim=1)
        >>> x, target = encoding.encode(table[:2]), encoding.target("yes", 2)
        >>> found = hf.MinCost(norm=1)(model, x, target, encoding.space)
        >>> found
        Counterfactuals(2 of 2 found)
        >>> found.changes(encoding)
           row feature  before  after
        0    0  income      20     36
        1    1  income      30     36

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, Definition 1 (counterfactual example).
    """

    origin: Tensor  # (n, d)
    point: Tensor  # (n, d)
    target: Tensor  # (n,)
    found: Tensor  # (n,) bool
    classes: int | None = None  # so that an audit can tell another kind of model
    seen: frozenset[str] = frozenset()
    before: Tensor | None = None  # (n,)
    unlikeness: Tensor | None = None  # (n, 2)
    implausible: Tensor | None = None  # (n,) bool
    calls: int | None = None
    labels: pd.Index[Any] | None = None  # (n,); they repeat where one has several

    def __post_init__(self) -> None:
        for name in ("origin", "point", "target", "found", *(() if self.before is None else ("before",))):
            value = getattr(self, name)
            check_tensor(name, value, "a method makes Counterfactuals; assess(model, x, point, target, space) does too")
            expected = 2 if name in ("origin", "point") else 1
            if value.ndim != expected or len(value) != len(self.origin):
                raise ValueError(
                    f"{name} has shape {tuple(value.shape)} beside an origin of {tuple(self.origin.shape)}; expected "
                    "origin and point (n, d), target, found and before (n,)"
                )
        if self.point.shape != self.origin.shape:
            raise ValueError(
                f"point and origin must be alike, but rows of point have {self.point.shape[1]} columns and rows of "
                f"origin have {self.origin.shape[1]}"
            )
        for name in ("origin", "point"):
            check_floats(name, getattr(self, name))
        if self.target.dtype != torch.int64 or self.found.dtype != torch.bool:
            raise ValueError(
                f"target must hold int64 and found bool, got target {self.target.dtype} and found {self.found.dtype}"
            )
        _check_labels(self.labels, len(self))

    def __len__(self) -> int:
        return len(self.origin)

    def without_graph(self) -> Counterfactuals:
        """The same without what torch keeps for gradients."""
        return replace(self, origin=self.origin.detach(), point=self.point.detach())

    def labelled(self, labels: Iterable[Any]) -> Counterfactuals:
        """The same, with who the rows are: ``found.labelled(table.index)``. Tables then name them, not number them."""
        return replace(self, labels=as_labels(labels))

    def called(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The labels of some rows, given their numbers; the numbers themselves where there are no labels."""
        return rows if self.labels is None else self.labels.to_numpy()[rows]

    def __getitem__(self, rows: Tensor | slice) -> Counterfactuals:
        """Some rows: their numbers, or a mask (n,)."""
        rows = checked_choice(rows, len(self))
        parts: dict[str, Any] = {name: part[rows] for name, part in self._parts.items()}
        if self.labels is not None:
            parts["labels"] = self.labels[rows if isinstance(rows, slice) else rows.cpu().numpy()]
        return replace(self, **parts)

    def where(self, take: Tensor, other: Counterfactuals) -> Counterfactuals:
        """The same question with another's answers for some rows, by a mask (n,)."""
        theirs = other._parts
        parts: dict[str, Any] = {
            name: torch.where(take if mine.ndim == 1 else take[:, None], theirs[name], mine)
            for name, mine in self._parts.items()
            if name not in ("origin", "target", "before")
        }
        return replace(self, **parts, seen=self.seen | other.seen)

    @property
    def _parts(self) -> dict[str, Tensor]:
        """What there is for each row, by the name of the field."""
        names = ("origin", "point", "target", "found", "before", "unlikeness", "implausible")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def unusual(self) -> Tensor:
        """Who is, without any change, unlike the people of the target class: (n,). They need not become more usual."""
        return torch.zeros_like(self.found) if self.unlikeness is None else self.unlikeness[:, 0] > 1

    @property
    def success(self) -> float:
        """Share of rows for which a counterfactual was found."""
        return float(self.found.double().mean())

    def cost(self, norm: float = 2) -> Tensor:
        """Distance moved, in the encoded space: (n,); NaN where nothing was found."""
        check_number("norm", norm)
        if not norm >= 0:
            raise ValueError(f"norm must be 0 or more, such as 1, 2 or infinity (math.inf), got {norm}")
        moved = torch.linalg.vector_norm(self.point - self.origin, norm, dim=1)
        return torch.where(self.found, moved, torch.nan)

    @property
    def sparsity(self) -> Tensor:
        """How many encoded columns moved: (n,)."""
        return (self.point != self.origin).sum(1)

    def to_frame(self, encoding: Encoding, table: pd.DataFrame | None = None) -> pd.DataFrame:
        """The points in the table's own units, with `found` beside them. Rows not found hold the person's own values.

        Given the table that the rows were encoded from, what does not change is copied from it to the last digit,
        and its index is kept. Without it, the index has the labels of the rows, where they are known.
        """
        check_encoding(encoding)
        moved = (self.found[:, None] & (self.point != self.origin)).cpu().numpy()
        frame = encoding.decode(torch.where(self.found[:, None], self.point, self.origin))
        if self.labels is not None:
            frame.index = self.labels
        if table is not None:
            _check_same_rows(table, self)
            frame.index = table.index
            changed = {feature.name: moved[:, columns].sum(axis=1) > 0 for feature, columns in encoding.places}
            # All at once: pandas warns of a table that was put together column by column.
            frame = pd.DataFrame({name: frame[name].where(where, table[name]) for name, where in changed.items()})
        frame.insert(0, "found", self.found.cpu().numpy())
        return frame

    def costs(self, encoding: Encoding) -> pd.DataFrame:
        """What each counterfactual costs, one row each, by four measures; NaN where nothing was found.

        - ``l1``, ``l2``: the distance in encoded units
        - ``difficulty``: l1, with each column times the difficulty of its feature
        - ``percentile``: the sum over the changed features of the share of training rows between before and after; rows
          at one of the two count half, and a changed level counts 1
        """
        check_encoding(encoding)
        space = replace(encoding.space_by("percentile"), weight=None).to(self.point)
        passed = replace(space, mutable=torch.ones_like(space.mutable)).moved(self.point, self.origin)
        hard = encoding.space.to(self.point).moved(self.point, self.origin)
        measures = {"l1": self.cost(1), "l2": self.cost(2), "difficulty": hard.sum(1), "percentile": passed.sum(1)}
        return pd.DataFrame(
            {name: torch.where(self.found, cost, torch.nan).cpu().numpy() for name, cost in measures.items()},
            index=self.labels,
        )

    def changes(self, encoding: Encoding) -> pd.DataFrame:
        """What each person whom a counterfactual was found for would change: row, feature, before, after.

        ``row`` is the person's label, or the number of their row where no labels are known.
        """
        check_encoding(encoding)
        before, after, names = encoding.decode(self.origin), encoding.decode(self.point), encoding.schema.names
        differs = np.stack([_differ(before[name], after[name]) for name in names], axis=1)
        differs &= self.found.cpu().numpy()[:, None]
        changed = [
            (int(row), names[number], before[names[number]][row], after[names[number]][row])
            for row, number in np.argwhere(differs)
        ]
        frame = pd.DataFrame(changed, columns=["row", "feature", "before", "after"])
        if self.labels is not None:
            frame["row"] = self.called(np.nonzero(differs)[0])
        return frame

    def _repr_html_(self) -> str:
        from holdfast.search.counterfactuals_shown import as_html

        return as_html(self)

    def __repr__(self) -> str:
        return f"Counterfactuals({int(self.found.sum())} of {len(self)} found)"


def as_labels(labels: Any) -> pd.Index[Any]:
    """Labels of rows: an index, or what makes one."""
    if isinstance(labels, (pd.DataFrame, str)) or not isinstance(labels, Iterable):
        raise TypeError(f"labels are one for each row, such as table.index, got {type(labels).__name__}")
    return labels if isinstance(labels, pd.Index) else pd.Index(list(labels))


def _check_labels(labels: Any, rows: int) -> None:
    if labels is None:
        return
    if not isinstance(labels, pd.Index):
        raise TypeError(f"labels must be a pandas Index, got {type(labels).__name__}; use answer.labelled(...)")
    if len(labels) != rows:
        raise ValueError(
            f"there are {len(labels)} labels for {rows} counterfactuals; give one for each, in their order"
        )


def _differ(before: pd.Series[Any], after: pd.Series[Any]) -> NDArray[np.bool_]:
    """Where two columns have other values; a value that is missing in both is the same."""
    differ: NDArray[np.bool_] = ((before != after) & ~(before.isna() & after.isna())).to_numpy()
    return differ


def one_after_another(answers: Sequence[Counterfactuals]) -> Counterfactuals:
    """Answers of one model one below another, with the rows that a black box was asked about added up."""
    every = [answer._parts for answer in answers]
    joined: dict[str, Any] = {name: torch.cat([parts[name] for parts in every]) for name in every[0]}
    calls = [answer.calls for answer in answers if answer.calls is not None]
    seen = frozenset[str]().union(*(answer.seen for answer in answers))
    return replace(answers[0], **joined, seen=seen, calls=sum(calls) if calls else None)


class Method(Protocol):
    """What every method is: a search for counterfactuals that you call with a model, rows, targets and a space.

    A method of your own is any object with these two functions; a frozen dataclass shows its settings when printed.

    Examples:
        >>> from dataclasses import dataclass
        >>> import torch
        >>> import holdfast as hf
        >>> @dataclass(frozen=True)
        ... class Straight:
        ...     step: float = 1.0  # by which everybody moves in every column
        ...
        ...     def fit(self, x, y, space, seed=0):
        ...         return self
        ...
        ...     def __call__(self, model, x, target, space):
        ...         return hf.assess(model, x, x + self.step, target, space)
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> Straight()(model, torch.zeros(1, 2), torch.tensor([1]), space)
        Counterfactuals(1 of 1 found)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, Definition 1; its methods are in Section
    5.1.
    """

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        """The method, knowing training rows x (m, d) and their classes y (m,). Most need none and return themselves."""
        ...

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """A counterfactual for each row of x (n, d) towards its target class (n,), within the space."""
        ...


class Stabiliser(Protocol):
    """What every stabiliser is: it moves counterfactuals that were found to places where they hold better.

    You call it with a model, `Counterfactuals` and a space. Rows that were not found stay as the search left them.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> def further(model, start, space):
        ...     # a tenth further than what was found
        ...     point = start.point + 0.1 * (start.point - start.origin)
        ...     origin, target, found = start.origin, start.target, start.found
        ...     return hf.assess(model, origin, point, target, space, also=found)
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> found = hf.MinCost(norm=2)(model, x, target, space)
        >>> moved = further(model, found, space)
        >>> bool(moved.cost() > found.cost())
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.3: a search that starts from a
    counterfactual.
    """

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        """The same rows, with those that were found moved within the space."""
        ...


@runtime_checkable
class Fitted(Stabiliser, Protocol):
    """A stabiliser that wants to know the data."""

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self: ...


def assess(
    model: Model, origin: Tensor, point: Tensor, target: Tensor, space: Space, also: Tensor | None = None
) -> Counterfactuals:
    """Judge points, wherever they come from: is each a valid counterfactual?

    Each point is moved to the nearest possible one. It is found if it then keeps the constraints of the space and the
    model gives it the target class. Every method ends with this function.

    Args:
        model: The deployed model.
        origin: Where each person is, in encoded units: (n, d).
        point: Where each person could be: (n, d).
        target: The class that each person wants: (n,).
        space: What is allowed.
        also: Which rows may count as found: (n,); all of them where left out.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> origin, target = torch.zeros(2, 2), torch.tensor([1, 1])
        >>> point = torch.tensor([[1.0, 1.0], [1.0, 0.2]])  # 7 is enough, 3.8 is not
        >>> hf.assess(model, origin, point, target, space).found
        tensor([ True, False])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, Definition 1, asks for the class alone; to
    keep what people can change is as in [Ustun et al. 2019](https://arxiv.org/abs/1809.06514).
    """
    if not isinstance(model, CheckedModel):  # else a search asks, which has checked its question
        check_rows(origin, "origin")
        check_space(space, origin)
        check_rows(point, "point", width=origin.shape[1], finite=False)
        _check_beside(origin, point=point, also=also)
        origin, point = origin.detach(), point.detach()
    point = space.snap(point, origin)
    kept = ~space.violations(point, origin).any(1)
    # What the model itself says, whatever dtype a search has its answers in.
    logits, before = _answers(itself(model), point, origin)
    if not isinstance(model, CheckedModel):
        check_target(target, len(origin), logits.shape[1])
        check_people(model, space, logits.shape[1])
    sure = logits.isfinite().all(1)  # a model that answers NaN has no class
    valid = kept & sure & (logits.argmax(1) == target)
    found = valid if also is None else valid & also
    judged = Counterfactuals(origin, point, target, found, logits.shape[1], names_of(model), classes_of(before))
    people = people_for(model, space)
    return judged if people is None else _among(people, judged, valid)


def _answers(model: Model, point: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
    """What a model says of both; an object that is asked about tables, in one call."""
    if able(model).has_gradient:
        return answer(model, point), answer(model, origin)
    both = answer(model, torch.cat([point, origin]))
    return both[: len(point)], both[len(point) :]


def counted(model: CheckedModel, answer: Counterfactuals) -> Counterfactuals:
    """The answer with how many rows a black box was asked about.

    That is what the search asked for each person, the rows that it learned from once for all people, and those that
    `checked_question` and `assess` ask.
    """
    if not model.tally.rows:
        return answer
    checks = min(64, len(answer)) + 2 * len(answer)
    return replace(answer, calls=model.tally.rows + len(able(model.model).learned[0]) + checks)


def _among(people: People, judged: Counterfactuals, valid: Tensor) -> Counterfactuals:
    """The same where only what passes for a person of the class is found, or is no less plausible than now."""
    unlikeness = torch.stack([people.unlikeness(part, judged.target) for part in (judged.origin, judged.point)], dim=1)
    # Twice the rounding that a search allows itself, so that nothing is lost to the last bit.
    passes = unlikeness[:, 1] <= unlikeness[:, 0].clamp_min(1) * (1 + 2 * ROUNDING) + 2 * ROUNDING
    return replace(judged, found=judged.found & passes, unlikeness=unlikeness, implausible=valid & ~passes)


def checked_question(
    model: Model, x: Tensor, target: Tensor, space: Space, gradient: bool = True
) -> tuple[CheckedModel, Tensor, Tensor]:
    """The model as a search asks it, the rows without their graph, the targets: if all belongs together.

    Logits may have another dtype than the rows, such as float64; the search has them in that of the rows. A search that
    needs no ``gradient`` takes any model of `as_model`.
    """
    check_rows(x)
    check_tensor("target", target)
    check_space(space, x)
    asks = checked_model(model)
    if gradient:
        check_gradient(asks.model)
    has_gradient = able(asks.model).has_gradient
    classes = check_model(asks.searched, x) if has_gradient else answer(asks.searched, x[:64]).shape[1]
    check_target(target, len(x), classes)
    check_people(asks, space, classes)
    LOG.info("searching counterfactuals for %d rows of %d numbers", *x.shape)
    return asks, x.detach(), target.to(x.device)


def check_gradient(model: Model) -> None:
    """Raise where a model can be searched, but not by its gradient."""
    if not able(model).has_gradient:
        raise ValueError(
            f"this search needs gradients and {model} has none; MinCost (min-l1, min-l2) and Margin need none"
        )


def check_space(space: Space, x: Tensor) -> None:
    """Raise where the rows are not of the space."""
    check_is_space(space)
    space.check_origin(x)


def check_is_space(space: Any) -> None:
    if not isinstance(space, Space):
        raise TypeError(f"expected a Space, got {type(space).__name__}; use encoding.space or Space.free(x)")


def check_answer(answer: Any) -> None:
    if not isinstance(answer, Counterfactuals):
        raise TypeError(
            f"expected Counterfactuals, got {type(answer).__name__}; a method makes them: "
            "PGD()(model, x, target, space)"
        )


def checked_choice(rows: Any, count: int) -> Tensor | slice:
    """Some of so many rows: a slice, a mask (n,), or their numbers."""
    if isinstance(rows, slice):
        return rows
    if not isinstance(rows, (Tensor, np.ndarray, list, tuple, range)):
        raise TypeError(f"rows are chosen by a slice, a mask or their numbers, got {type(rows).__name__}")
    try:
        chosen = torch.as_tensor(list(rows) if isinstance(rows, (tuple, range)) else rows)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"rows are chosen by a slice, a mask or their numbers, got {rows!r}") from error
    if chosen.ndim != 1 or (chosen.is_floating_point() and len(chosen)):
        raise ValueError(
            f"rows are chosen by a mask ({count},) or whole numbers, got {chosen.dtype} of {tuple(chosen.shape)}"
        )
    if chosen.dtype == torch.bool:
        if len(chosen) != count:
            raise IndexError(f"a mask of {len(chosen)} rows does not fit {count} rows")
        return chosen
    if len(chosen) and not -count <= int(chosen.min()) <= int(chosen.max()) < count:
        raise IndexError(f"rows {chosen.tolist()[:5]} are not all there; there are {count} rows")
    return chosen.long()


def _check_beside(origin: Tensor, point: Tensor, also: Tensor | None) -> None:
    if point.shape != origin.shape or point.dtype != origin.dtype:
        raise ValueError(
            f"origin and point must be alike, got {tuple(origin.shape)} as {origin.dtype} and {tuple(point.shape)} as "
            f"{point.dtype}; use point.to(origin)"
        )
    if also is not None:
        check_tensor("also", also)
        if also.shape != origin.shape[:1] or also.dtype != torch.bool:
            raise ValueError(
                f"also must be True or False for each of {len(origin)} rows, got {tuple(also.shape)} as {also.dtype}"
            )


def check_encoding(encoding: Any) -> None:
    if not isinstance(encoding, Encoding):
        raise TypeError(f"expected an Encoding, got {type(encoding).__name__}; Encoding.fit(table, schema) makes one")


def _check_same_rows(table: pd.DataFrame, counterfactuals: Counterfactuals) -> None:
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"expected a pandas DataFrame, got {type(table).__name__}; give the table that was encoded")
    if len(table) != len(counterfactuals):
        raise ValueError(f"the table has {len(table)} rows but there are {len(counterfactuals)} counterfactuals")


def other_class(model: Model, x: Tensor) -> Tensor:
    """For a model of two classes: the class that it does not give each row, as a target (n,).

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> hf.other_class(model, torch.tensor([[0.0, 0.0], [2.0, 2.0]]))
        tensor([1, 0])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Data): all its datasets but one have two
    classes, and a counterfactual has the other one.
    """
    logits = answer(model, x)
    if logits.shape[1] != 2:
        raise ValueError(
            f"'the other class' needs two classes, the model has {logits.shape[1]}; use merged(model, ...)"
        )
    return 1 - certain_classes_of(logits)
