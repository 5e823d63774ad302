"""A promised rate: search at every value of a method's parameter, let models that are new choose the cheapest."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.auditing.audit import Audit, check_belong
from holdfast.auditing.audit import audit as audited_by
from holdfast.auditing.intervals import upper_limit
from holdfast.families.family import Family
from holdfast.families.recipe import counted
from holdfast.guarantees.calibration import Calibration, fewest_models, joint_choice
from holdfast.models.identity import OBJECT, identities
from holdfast.models.model import NO_CLASS, Model
from holdfast.search.counterfactuals import Counterfactuals, Method, assess
from holdfast.search.plans import Plans, one_below_another
from holdfast.search.plans import plans as plans_by
from holdfast.search.stricter import checked_values, has_parameter, parameter_of, search_stricter, with_parameter
from holdfast.tabular.space import Space
from holdfast.utils import notebook
from holdfast.utils.progress import bar
from holdfast.utils.sealing import without_nan
from holdfast.utils.settings import check_flag, check_number, check_share, check_whole

LOG = logging.getLogger(__name__)
NOT_PROMISED = (
    "Not promised: anything for a single person, for people who come later, for other kinds of change, or for models "
    "trained on data that has drifted."
)


@dataclass(frozen=True)
class Step:
    """What was found at one value of the parameter."""

    value: float
    found: int
    cost_l1: float  # mean over the rows found, in the encoded space
    cost_l2: float


@dataclass(frozen=True, eq=False, repr=False)
class Promise:
    """How many of these counterfactuals one more retrained model will invalidate, at most and on average; or a refusal.

    What is bounded by ``rate`` is an expectation: the share of the ``promised_rows`` that one more model of a kind in
    ``selected_by`` invalidates, over the draw of the selection models and of that model, a refusal counting as 0.
    `statement` says so in words, with what is not promised. `promise` makes this value.

    Attributes:
        rate: The promised rate.
        method: The method at the value chosen; as it was given where nothing is promised.
        value: The value of the method's parameter that was chosen; None where nothing is promised.
        promised_rows: Which rows are promised, those found at the value chosen: (n,).
        selected_by: How many selection models there are of each kind of change.
        steps: What was found at every value that was searched.
        calibrations: What the selection models say of every value, one for each kind of change.
        counterfactuals: What is promised: the counterfactuals at the value chosen.
        plans: The plans at the value chosen, where several were asked for.
        audit: What the audit models say of every plan, those of a row one below another.
        refusal: Why nothing is promised, and what would do.
        fingerprints: The deployed model, and those that rehearsed, selected and audited.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5, and nine stricter ones.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> stricter = lambda more: lambda x: model(x) - torch.tensor([0, more])
        >>> family = hf.Family.from_models([stricter(part / 10) for part in range(1, 10)])
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> result = hf.promise(hf.Margin(), model, x, target, space, family, rate=0.05)
        >>> result.promised
        False
        >>> print(result.refusal.partition(",")[0])
        A rate of 0.05 needs 19 selection models of each kind or more (1 / rate - 1)

    Paper: the bound is conformal risk control, [Angelopoulos et al. 2024](https://arxiv.org/abs/2208.02814), with
    models as the exchangeable units.
    """

    rate: float
    method: Method
    value: float | None
    promised_rows: Tensor  # (n,) bool
    selected_by: dict[str, int]  # kind of change -> selection models
    steps: tuple[Step, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    counterfactuals: Counterfactuals | None = None
    plans: Plans | None = None
    audit: Audit | None = None
    refusal: str = ""
    fingerprints: dict[str, tuple[str, ...]] | None = None  # role -> members

    @property
    def promised(self) -> bool:
        """Whether anything is promised."""
        return self.value is not None

    @property
    def curve(self) -> pd.DataFrame:
        """One row per kind of change and value: kind, value, found, loss, bound, cost_l1, cost_l2.

        ``loss`` is the mean share that the selection models invalidate, ``bound`` what that value could promise.
        """
        rows = [
            {"kind": calibration.kind, "value": step.value, "found": step.found, "loss": loss, "bound": bound,
             "cost_l1": step.cost_l1, "cost_l2": step.cost_l2}
            for calibration in self.calibrations
            for step, loss, bound in zip(self.steps, calibration.loss, calibration.bound, strict=True)
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["kind", "value", "found", "loss", "bound", "cost_l1", "cost_l2"])

    @cached_property
    def realised(self) -> Audit | None:
        """The audit of the promised rows. Of several plans, a row holds if all of them do."""
        if self.audit is None or self.plans is None:
            return self.audit
        _, row, plan = one_below_another(self.plans.answers)
        cheapest = self.audit.of_rows(torch.from_numpy(plan == 1))
        position, target = np.searchsorted(row[plan == 1], row), cheapest.counterfactuals.target
        predictions = cheapest.predictions.clone()
        for number in range(2, len(self.plans.answers) + 1):
            rows, classes = position[plan == number], self.audit.predictions[:, plan == number]
            so_far = predictions[:, rows]
            predictions[:, rows] = torch.where(so_far == target[rows], classes, so_far)
        return replace(cheapest, predictions=predictions)

    @property
    def realised_by_kind(self) -> dict[str, Audit]:
        return {} if self.realised is None else self.realised.by_kind

    def realised_limit(self, kind: str, confidence: float = 0.95) -> float:
        """One-sided upper limit of the rate by models of one kind, from the audit models.

        This one holds given that the promise was made: they took no part in choosing.
        """
        check_share("confidence", confidence)
        if self.realised is None:
            what = "nothing was promised" if not self.promised else "no family was given to audit with"
            raise ValueError(f"there is no realised rate: {what}; use promise(..., audit=family)")
        return upper_limit(self.realised.of(kind).per_member, confidence)

    # ---- in words ----

    @property
    def statement(self) -> str:
        """Exactly what is promised, and what is not."""
        if not self.promised:
            return f"Nothing is promised. {self.refusal}"
        return " ".join([*self._promised(), *self._realised(), NOT_PROMISED])

    def _promised(self) -> Iterator[str]:
        rows, count, rate = len(self.promised_rows), int(self.promised_rows.sum()), _percent(self.rate)
        kinds = _listed([f"'{kind}'" for kind in self.selected_by], "or")
        yield (
            f"Promised for {count} of {rows} rows: one more retrained model of kind {kinds} invalidates at most {rate} "
            "of them on average."
        )
        if self.plans is not None:
            yield "A row counts as invalidated if any of its plans is."
        drawn = [calibration for calibration in self.calibrations if not calibration.exhaustive]
        if drawn:
            models = _listed([f"{calibration.members} of kind '{calibration.kind}'" for calibration in drawn], "and")
            yield (
                f"The average is over the draw of the selection models ({models}), which chose "
                f"{parameter_of(self.method)} = {self.value:g}, and of the model that comes next. Refusals count as "
                f"0%, so promises that are made can average above {rate}."
            )
        position = [step.value for step in self.steps].index(cast(float, self.value))
        for calibration in self.calibrations:
            if calibration.exhaustive:
                yield (
                    f"All {calibration.members} models that '{calibration.kind}' can give were asked: one of them, "
                    f"drawn at random, invalidates exactly {calibration.loss[position]:.2%} on average."
                )

    def _realised(self) -> Iterator[str]:
        for kind, part in self.realised_by_kind.items():
            yield (
                f"{len(part.kinds)} audit models of kind '{kind}' invalidate {part.rate:.2%} of them; at 95 % "
                f"confidence, such models invalidate at most {self.realised_limit(kind):.2%} on average."
            )

    def __repr__(self) -> str:
        by = counted([kind for kind, members in self.selected_by.items() for _ in range(members)])
        if not self.promised:
            return f"Promise of nothing ({by} for a rate of {self.rate:g}): {self.refusal}"
        lines = [self._headline(), f"  chosen by {by}: {parameter_of(self.method)} = {self.value:g}"]
        lines += [
            f"  {kind}: {part.rate:.1%} invalidated by {len(part.kinds)} audit models (95 % upper limit "
            f"{self.realised_limit(kind):.1%})"
            for kind, part in self.realised_by_kind.items()
        ]
        return "\n".join([*lines, "  promise.statement says what is promised and what is not"])

    def _repr_html_(self) -> str:
        curve = self.curve
        for name in ("value", "cost_l1", "cost_l2"):  # no shares
            curve[name] = [f"{number:.4g}" for number in curve[name]]
        shown = [notebook.table(curve.to_dict("list"), of="values")] if len(curve) else []
        return notebook.page(notebook.sentence(self._headline()), *shown, notebook.note(self.statement))

    def _headline(self) -> str:
        if not self.promised:
            return f"Promise of nothing, for a rate of {self.rate:g}"
        rows = f"{int(self.promised_rows.sum())} of {len(self.promised_rows)} rows"
        return f"Promise: on average at most {_percent(self.rate)} invalidated, for {rows}"

    def summary(self) -> dict[str, Any]:
        """All of it that JSON can say."""
        return {
            "rate": self.rate,
            "promised": self.promised,
            "parameter": {"name": parameter_of(self.method), "value": self.value},
            "method": repr(self.method),
            "rows": len(self.promised_rows),
            "promised_rows": int(self.promised_rows.sum()),
            "plans": 1 if self.plans is None else len(self.plans.answers),
            "selected_by": self.selected_by,
            "exhaustive": [calibration.kind for calibration in self.calibrations if calibration.exhaustive],
            "curve": without_nan(self.curve.to_dict("records")),
            "realised": [
                {"kind": kind, "members": len(part.kinds), "rate": part.rate, "limit": self.realised_limit(kind)}
                for kind, part in self.realised_by_kind.items()
            ],
            "statement": self.statement,
            "refusal": self.refusal,
            "members": {
                role: [name for name in names if not name.startswith(OBJECT)]
                for role, names in (self.fingerprints or {}).items()
            },
        }


def promise(
    method: Method,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    selection: Family,
    *,
    rate: float = 0.05,
    audit: Family | None = None,
    parameter_values: Sequence[float] | None = None,
    least_found: float = 0.5,
    plans: int = 1,
    exhaustive: Sequence[str] = (),
    progress: bool = False,
) -> Promise:
    """Promise that one more retrained model invalidates at most ``rate`` of the counterfactuals found, on average.

    The method is one with a parameter that trades cost for safety, such as `Margin` or `Rehearsed`: the larger its
    value, the better counterfactuals hold and the more they cost. All rows are searched at each value. Then the
    selection models choose the cheapest value that keeps the rate, each kind of change by itself; the largest value of
    all kinds is taken. Where no value does, or there are fewer models than 1 / rate − 1, nothing is promised and
    `Promise.refusal` says what would do; too few models are told before anything is searched.

    Args:
        method: A search with such a parameter.
        model: The deployed model.
        x: The rows, in encoded units: (n, d).
        target: The class that each wants: (n,).
        space: What is allowed.
        selection: Retrained models that choose the value. They must be new to the search.
        rate: The rate to promise: 0.05 is one in twenty.
        audit: Retrained models that show the rate realised. They must be new to the search and to the selection.
        parameter_values: The values to try, rising; the method's own where left out.
        least_found: Stop where fewer rows are found than this share of those that the first value finds.
        plans: How many plans each row gets. A row is invalidated if any of its plans is.
        exhaustive: Kinds of change of which the selection family holds *every* model there can be, such as
            "leave-one-out" with all rows left out in turn. Then nothing is estimated, and members may have been
            rehearsed too.
        progress: Whether to show a bar.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5, and nine stricter ones.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> stricter = lambda more: lambda x: model(x) - torch.tensor([0, more])
        >>> family = hf.Family.from_models([stricter(part / 10) for part in range(1, 10)])
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> question = (hf.Margin(), model, x, target, space)
        >>> hf.promise(*question, selection=family, rate=0.1, parameter_values=(0, 0.5, 1, 2))
        Promise: on average at most 10% invalidated, for 1 of 1 rows
          chosen by 9 own: log_odds = 1
          promise.statement says what is promised and what is not

    Paper: the bound is conformal risk control, [Angelopoulos et al. 2024](https://arxiv.org/abs/2208.02814), with
    models as the exchangeable units.
    """
    check_share("rate", rate)
    check_number("least_found", least_found)
    if not 0 <= least_found <= 1:
        raise ValueError(f"least_found must be a share of the rows from 0 to 1, got {least_found}")
    check_whole("plans", plans, least=1)
    check_flag("progress", progress)
    candidates = _candidates(method, parameter_values, rate)
    question = (model, x, target, space)
    families = _checked_families(question, method, selection, audit, exhaustive)
    nobody = torch.zeros_like(target, dtype=torch.bool)
    refused = Promise(float(rate), method, None, nobody, families.selected_by, fingerprints=families.fingerprints)
    if short := _too_few(families, rate):
        return replace(refused, refusal=short)
    offers = _offers(question, plans, candidates, families, least_found, progress)
    if not offers[0].count:
        return replace(refused, refusal=f"Nothing was found for any of {len(x)} rows, so there is nothing to promise.")
    calibrations = tuple(_calibrated(offers, families, rate))
    result = replace(refused, steps=tuple(offer.step for offer in offers), calibrations=calibrations)
    position = joint_choice(calibrations)
    if position is None:
        return replace(result, refusal=_refusal(result, least_found, len(candidates)))
    chosen = offers[position]
    return replace(
        result,
        method=chosen.method,
        value=chosen.value,
        promised_rows=chosen.found,
        counterfactuals=chosen.answers[0],
        plans=chosen.plans,
        audit=None if audit is None else audited_by(one_below_another(chosen.answers)[0], audit),
    )


# ---- what is searched ----

_Question = tuple[Model, Tensor, Tensor, Space]  # as a search takes it: model, x, target, space


@dataclass(frozen=True, eq=False)
class _Offer:
    """What everybody is offered at one value of the parameter."""

    value: float
    method: Method
    answers: tuple[Counterfactuals, ...]  # the plans, the cheapest first
    plans: Plans | None = None

    @property
    def found(self) -> Tensor:
        return self.answers[0].found

    @property
    def count(self) -> int:
        return int(self.found.sum())

    @property
    def step(self) -> Step:
        costs = [float(self.answers[0].cost(norm)[self.found].double().mean()) for norm in (1, 2)]
        return Step(self.value, self.count, costs[0], costs[1])

    def losses(self, family: Family) -> tuple[NDArray[np.float64], Tensor]:
        """The share of the rows found of which each member invalidates any plan, and who answered NaN: (k,), (k,)."""
        wrong = torch.zeros(len(family), len(self.found), dtype=torch.bool, device=self.found.device)
        silent = torch.zeros(len(family), dtype=torch.bool, device=self.found.device)
        for answer in self.answers:
            classes = family.predict(answer.point[answer.found])
            wrong[:, answer.found] |= classes != answer.target[answer.found]
            silent |= (classes == NO_CLASS).any(1)
        return wrong[:, self.found].double().mean(1).cpu().numpy(), silent


def _offer(question: _Question, plans: int, value: float, method: Method, before: _Offer | None) -> _Offer:
    """What there is at a value of the parameter, where ``before`` is what there was at one that asks for less."""
    first = method(*question) if before is None else search_stricter(method, *question, before.answers[0])
    if plans == 1:
        return _Offer(value, method, (first,))
    several = plans_by(method, *question, plans, first)
    return _Offer(value, method, several.answers, several)


def _candidates(method: Any, parameter_values: Any, rate: float) -> list[tuple[float, Method]]:
    """The method at every value of its parameter, if it has one and takes the values."""
    if not has_parameter(method):
        raise TypeError(
            f"promise varies the parameter of a method, such as Margin() or Rehearsed(family), got {method!r}; a "
            "method of your own is a frozen dataclass whose class attribute 'parameter' names one of its fields, "
            "'parameter_values' its values"
        )
    # Where less than 1 - rate of the rehearsals agree, others are as unlikely to: nobody needs to search there.
    usual = [value for value in getattr(method, "parameter_values", (0.0,)) if value >= -rate]
    values = checked_values(usual if parameter_values is None else parameter_values)
    try:
        return [(value, with_parameter(method, value)) for value in values]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{method!r} does not take every one of the values {values} for {parameter_of(method)}: {error}"
        ) from error


def _offers(
    question: _Question,
    plans: int,
    candidates: list[tuple[float, Method]],
    families: _Families,
    least_found: float,
    progress: bool,
) -> list[_Offer]:
    """Everything that may be offered. Found before any selection model is asked, so that none of them has a say."""
    offers: list[_Offer] = []
    rows, name = len(question[1]), parameter_of(candidates[0][1])
    with bar("searching", len(candidates), progress) as advance:
        for value, method in candidates:
            LOG.info("searching at %s = %g", name, value)
            offer = _offer(question, plans, value, method, offers[-1] if offers else None)
            if not offers:
                families.check_unseen(offer.answers[0].seen)
            elif offer.count < max(least_found * offers[0].count, 1):
                break
            offers.append(offer)
            advance(1, f"{name} {value:g}, {offer.count} of {rows} found")
            if not offer.count:
                break
    return offers


# ---- who chooses, and who looks on ----


@dataclass(frozen=True, eq=False)
class _Families:
    selection: Family
    audit: Family | None
    exhaustive: frozenset[str]
    rehearsed: tuple[str, ...]
    deployed: tuple[str, ...]

    @property
    def selected_by(self) -> dict[str, int]:
        return dict(Counter(self.selection.kinds))

    @property
    def fingerprints(self) -> dict[str, tuple[str, ...]]:
        audited = {} if self.audit is None else {"audit": self.audit.fingerprints}
        chose = {"rehearsal": self.rehearsed, "selection": self.selection.fingerprints}
        return {"deployed": self.deployed, **chose, **audited}

    def of(self, kind: str) -> Family:
        return _chosen(self.selection, [name == kind for name in self.selection.kinds])

    @property
    def drawn(self) -> Family:
        """The selection models of kinds of which there are others too."""
        return _chosen(self.selection, [kind not in self.exhaustive for kind in self.selection.kinds])

    def check_unseen(self, seen: frozenset[str]) -> None:
        for role, family in (("selection", self.drawn), ("audit", self.audit)):
            known = [] if family is None else [n for n, name in enumerate(family.fingerprints) if name in seen]
            if known:
                raise ValueError(
                    f"members {known} of the {role} family {family} are models that the search has seen, as the "
                    "deployed model or as rehearsals; a model agrees with itself: give families that share no member, "
                    "such as seeds(100, start=...)"
                )


def _checked_families(question: _Question, method: Any, selection: Any, audit: Any, exhaustive: Any) -> _Families:
    """The families, if they belong to the question and to each other; all that can be known before the search."""
    for role, family in (("selection", selection), ("audit", audit)):
        if not isinstance(family, Family) and not (role == "audit" and family is None):
            raise TypeError(
                f"{role} must be a Family of retrained models, got {type(family).__name__}; for your own models use "
                "Family.from_models([...])"
            )
    model, x, target, space = question
    unchanged = assess(model, x, x, target, space)  # all that is wrong with a question raises here, before the search
    families = _Families(
        selection, audit, _kinds(exhaustive, selection), tuple(_rehearsed(method)), tuple(sorted(unchanged.seen))
    )
    families.check_unseen(unchanged.seen | set(families.rehearsed))
    for role, family in (("selection", selection), ("audit", audit)):
        if family is None:
            continue
        if family.surrogates:
            raise ValueError(
                f"the {role} family holds surrogates ({family.surrogates}): they do not resemble retrainings of the "
                "deployed model, so nothing can be promised; retrain the deployed model itself, as refit does"
            )
        check_belong(unchanged, family)
    _check_complete(families)
    if audit is not None:
        _check_audit(families, audit)
    return families


def _kinds(exhaustive: Any, selection: Family) -> frozenset[str]:
    kinds = (exhaustive,) if isinstance(exhaustive, str) else exhaustive
    if not isinstance(kinds, (Sequence, set, frozenset)):
        raise TypeError(f"exhaustive must name kinds of change, such as ('leave-one-out',), got {exhaustive!r}")
    unknown = [kind for kind in kinds if kind not in selection.kinds]
    if unknown:
        raise ValueError(
            f"exhaustive names '{unknown[0]}', but {selection} has no such members; its kinds are "
            f"{', '.join(dict.fromkeys(selection.kinds))}"
        )
    return frozenset(kinds)


def _rehearsed(method: Any) -> Iterator[str]:
    """The members of all families that a method holds."""
    for field in fields(method):
        value = getattr(method, field.name)
        if hasattr(value, "fingerprints"):
            yield from value.fingerprints
        elif is_dataclass(value) and not isinstance(value, type):
            yield from _rehearsed(value)


def _check_complete(families: _Families) -> None:
    """Raise where rows are missing among those that were left out one by one."""
    for kind in families.exhaustive:
        family = families.of(kind)
        rows = [retraining.left_out for retraining in family.retrainings]
        left_out = sorted(row for row in rows if row is not None)
        if left_out and left_out != list(range(len(family))):
            missing = sorted(set(range(max(left_out) + 1)) - set(left_out))
            raise ValueError(
                f"exhaustive names '{kind}', but its {len(family)} members leave out rows up to {max(left_out)} and "
                f"not each of them once (missing: {missing[:5]}); train leave_one_out(n, rows=n) for all n rows"
            )


def _check_audit(families: _Families, audit: Family) -> None:
    other = [kind for kind in dict.fromkeys(audit.kinds) if kind not in families.selected_by]
    if other:
        raise ValueError(
            f"the audit family has members of kind '{other[0]}', which nothing is promised for; the selection models "
            f"are of kind {', '.join(families.selected_by)}: add models of that kind to them, or audit it with hf.audit"
        )
    exact = [kind for kind in dict.fromkeys(audit.kinds) if kind in families.exhaustive]
    if exact:
        raise ValueError(
            f"exhaustive says that the selection family holds every model of kind '{exact[0]}', so there are no "
            "others to audit with: leave the kind out of the audit family, its rate is exact"
        )
    shared = _names(families.selection, audit) & _names(audit, families.selection)
    if shared:
        raise ValueError(
            f"{len(shared)} members of the audit family {audit} are in the selection family too; they chose the "
            "value, so they cannot judge it: give families that share no member, such as seeds(100, start=...)"
        )


def _names(family: Family, other: Family) -> set[Any]:
    """What members are known by; those made elsewhere by their weights too."""
    names: set[Any] = set(family.fingerprints or family.retrainings)
    if (family.external or other.external) and family.groups is None:
        names |= {name for member in range(len(family)) for name in identities(family[member])}
    return names


def _chosen(family: Family, chosen: list[bool]) -> Family:
    return family if all(chosen) else family.chosen([member for member, wanted in enumerate(chosen) if wanted])


# ---- what they say ----


def _calibrated(offers: list[_Offer], families: _Families, rate: float) -> Iterator[Calibration]:
    for kind in families.selected_by:
        family = families.of(kind)
        answers = [offer.losses(family) for offer in offers]
        silent = torch.nonzero(torch.stack([who for _, who in answers]).any(0)).flatten().tolist()
        if silent:
            warnings.warn(
                f"members {silent} of {family} answer NaN for some counterfactuals; such an answer counts as "
                "invalidated",
                stacklevel=3,
            )
        yield Calibration(kind, float(rate), np.stack([losses for losses, _ in answers]), kind in families.exhaustive)


def _too_few(families: _Families, rate: float) -> str:
    """Why these models cannot promise the rate whatever they say; empty where they can."""
    needed = fewest_models(rate)
    short = {kind: n for kind, n in families.selected_by.items() if n < needed and kind not in families.exhaustive}
    if not short:
        return ""
    there = _listed([f"{members} of kind '{kind}'" for kind, members in short.items()], "and")
    return (
        f"A rate of {rate:g} needs {needed} selection models of each kind or more (1 / rate - 1), and there are "
        f"{there}. Nothing was searched. Train more, or ask for a rate of {1 / (min(short.values()) + 1):.3g} or more."
    )


def _refusal(result: Promise, least_found: float, values: int) -> str:
    """Why no value keeps the rate, and what would do."""
    failed = [calibration for calibration in result.calibrations if calibration.choice is None]
    last = result.steps[-1]
    at_best = [f"'{calibration.kind}' could promise {calibration.bound[-1]:.3g} at best" for calibration in failed]
    name = parameter_of(result.method)
    texts = [f"No value of {name} up to {last.value:g} keeps the rate {result.rate:g}:"]
    texts.append(f"{_listed(at_best, 'and')}, with {last.found} of {len(result.promised_rows)} rows found.")
    wanted = [calibration.wanted for calibration in failed]
    if all(count is not None for count in wanted):
        texts.append(
            f"About {max(cast(list[int], wanted))} selection models per kind would do, if they are like these."
        )
    if len(result.steps) < values:
        texts.append(
            f"Larger values were not tried, because they find fewer than {least_found:.0%} of the rows that "
            f"{name} = {result.steps[0].value:g} finds; lower least_found."
        )
    else:
        texts.append(f"Larger values of {name} may do.")
    texts.append("More rehearsals may help as well: Rehearsed(family).")
    texts.append("Whatever you change after you saw this, the next promise needs selection models that are new.")
    return " ".join(texts)


def _listed(words: list[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _percent(rate: float) -> str:
    return f"{100 * rate:.4g}%"
