"""How often retrained models invalidate a counterfactual."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.auditing.intervals import bootstrap_interval, clopper_pearson, rate_interval
from holdfast.families.family import Family
from holdfast.families.resemblance import are_one
from holdfast.models.model import NO_CLASS
from holdfast.models.rows import check_tensor
from holdfast.search.counterfactuals import Counterfactuals, check_answer, checked_choice
from holdfast.theory.certificates import certified_radius
from holdfast.theory.layers import Layers, check_layers
from holdfast.utils import notebook
from holdfast.utils.settings import check_number, check_share

LOG = logging.getLogger(__name__)
Floats = NDArray[np.float64]
TELLING = 20  # rows on which a model made elsewhere would hardly answer like the deployed one by chance
NOTE = (
    "rate: share of pairs of a counterfactual and a retrained model in which the model invalidates the "
    "counterfactual. low, high: 95 % limits for these rows and future retrainings. approximate new rows low, high: "
    "limits for other rows too, by resampling; they are approximate and can be too narrow (- where too few were "
    "invalidated to say). found and held: share of all pairs in which a counterfactual was found and held. baseline "
    "flips: share of rows whose class retraining changes without any counterfactual."
)


@dataclass(frozen=True, eq=False)
class Audit:
    """What every retrained model says of every counterfactual, and how sure that is.

    The *invalidation rate* (the paper's IV) is the share of pairs of a found counterfactual and a retrained model in
    which the model does not give the target class. The *hold rate* is 1 − the invalidation rate. Rows that were not
    found count for `success` and `found_and_held` alone. `audit` makes this value; predictions alone are enough as
    well.

    Attributes:
        predictions: The class that each of k members gives each of n points: (k, n).
        counterfactuals: What is audited.
        kinds: How each member was retrained: (k,).
        before: The class that each member gives each row itself: (k, n).
        surrogates: Why the members stand in for retrainings of the deployed model; empty where they are retrainings.
        refitted: Whether the members are refits of an estimator, some of which may answer like the deployed model.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> x, found = torch.zeros(2, 1), torch.tensor([True, True])
        >>> answer = hf.Counterfactuals(x, x + 1, torch.tensor([1, 1]), found)
        >>> said = torch.tensor([[1, 1], [1, 0], [1, 0], [1, 1]])  # four models, two rows
        >>> result = hf.Audit(said, answer, kinds=("seeds",) * 4)
        >>> result.rate, result.found_and_held
        (0.25, 0.75)
        >>> result.per_row.tolist()
        [0.0, 0.5]
        >>> low, high = result.interval()
        >>> low < 0.25 < high
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, Definition 2 (invalidation rate), with its
    spread as in Appendix B.5; it gives no limits, see `holdfast.auditing.intervals`.
    """

    predictions: Tensor  # (k, n)
    counterfactuals: Counterfactuals
    kinds: tuple[str, ...]  # (k,)
    before: Tensor | None = None  # (k, n)
    surrogates: str = ""
    refitted: bool = False

    def __post_init__(self) -> None:
        check_answer(self.counterfactuals)
        check_tensor("predictions", self.predictions, "audit(counterfactuals, family) makes an Audit")
        expected = (len(self.kinds), len(self.counterfactuals))
        for name, classes in {"predictions": self.predictions, "before": self.before}.items():
            if classes is not None and (tuple(classes.shape) != expected or not self.kinds):
                raise ValueError(f"{name} have shape {tuple(classes.shape)}, expected {expected}, not empty")

    # ---- rates ----

    @cached_property
    def invalidated(self) -> NDArray[np.bool_]:
        """Which member invalidates which counterfactual: (k, found rows)."""
        pairs = self.predictions != self.counterfactuals.target
        return pairs[:, self.counterfactuals.found].cpu().numpy()

    @property
    def rate(self) -> float:
        """Invalidation over all pairs; NaN when nothing was found."""
        return _mean(self.invalidated)

    @cached_property
    def per_member(self) -> Floats:
        """Each member's rate: (k,)."""
        invalidated = self.invalidated
        return invalidated.mean(1) if invalidated.size else np.full(len(self.kinds), np.nan)

    @property
    def spread(self) -> float:
        """Standard deviation of the members' rates, the paper's ±."""
        return float(self.per_member.std())

    @property
    def per_row(self) -> Floats:
        """Each counterfactual's rate: (n,), NaN where nothing was found."""
        return self._spread_out(self.invalidated.mean(0))

    @property
    def success(self) -> float:
        """Share of rows for which a counterfactual was found."""
        return self.counterfactuals.success

    @property
    def found_and_held(self) -> float:
        """Share of all pairs in which a counterfactual was found and held: no method gains by failing."""
        return self.success * (1 - self.rate) if self.success else 0.0

    @property
    def baseline_flips(self) -> float:
        """Share of pairs in which a member and the deployed model differ on the row itself; NaN where not known.

        Some rows change their class without any counterfactual: invalidation is seen against this.
        """
        deployed = self.counterfactuals.before
        if self.before is None or deployed is None:
            return float("nan")
        return _mean((self.before != deployed).cpu().numpy())

    @cached_property
    def same(self) -> NDArray[np.bool_]:
        """Which members answer exactly like the deployed model, on every row and every counterfactual found: (k,)."""
        answer = self.counterfactuals
        if answer.before is None or self.before is None:
            return np.zeros(len(self.kinds), dtype=bool)
        held = (self.predictions == answer.target)[:, answer.found].all(1)
        return (held & (self.before == answer.before).all(1)).cpu().numpy()

    # ---- intervals ----

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Limits of the rate of *these* counterfactuals over future retrainings like the ones audited.

        Each member's rate is one independent draw in [0, 1]. Members of one kind are draws of one distribution
        (`member_interval`); for several kinds together the limits are wider (`mean_interval`).
        """
        check_share("confidence", confidence)
        rates = self.per_member
        return (np.nan, np.nan) if np.isnan(rates).any() else rate_interval(rates, self.kinds, confidence)

    def interval_of_new_rows(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Approximate limits of the rate over future retrainings *and* new rows like these.

        By a two-way bootstrap (`bootstrap_interval`); None where fewer than ten rows were ever invalidated.
        """
        return bootstrap_interval(self.invalidated, confidence)

    def per_row_interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Clopper-Pearson limits of each counterfactual's rate: (n,), (n,)."""
        low, high = clopper_pearson(self.invalidated.sum(0), len(self.kinds), confidence)
        return self._spread_out(low), self._spread_out(high)

    # ---- parts ----

    @property
    def by_kind(self) -> dict[str, Audit]:
        """One audit per kind of change, in order of appearance."""
        return {kind: self.of(kind) for kind in dict.fromkeys(self.kinds)}

    def of(self, kind: str) -> Audit:
        """The audit by the members of one kind of change."""
        members = [number for number, its_kind in enumerate(self.kinds) if its_kind == kind]
        if not members:
            raise ValueError(f"no member of kind '{kind}'; there are {', '.join(dict.fromkeys(self.kinds))}")
        before = None if self.before is None else self.before[members]
        return replace(self, predictions=self.predictions[members], kinds=(kind,) * len(members), before=before)

    def of_rows(self, rows: Tensor | slice) -> Audit:
        """The audit of some rows: their numbers, or a mask (n,)."""
        rows = checked_choice(rows, len(self.counterfactuals))
        before = None if self.before is None else self.before[:, rows]
        answer = self.counterfactuals[rows]
        return replace(self, predictions=self.predictions[:, rows], counterfactuals=answer, before=before)

    @property
    def by_class(self) -> dict[int, Audit]:
        """One audit per target class."""
        target = self.counterfactuals.target
        return {wanted: self.of_rows(target == wanted) for wanted in sorted(set(target.tolist()))}

    # ---- shown ----

    def summary(self) -> pd.DataFrame:
        """One row per kind of change: rates with both kinds of limits, spread, and what else a reader needs."""
        lines = []
        for kind, part in self.by_kind.items():
            low, high = part.interval_of_new_rows() or (np.nan, np.nan)
            lines.append(part._figures(kind, approximate_new_rows_low=low, approximate_new_rows_high=high))
        return pd.DataFrame(lines)

    def _figures(self, kind: str, **more: float) -> dict[str, Any]:
        """What the members of one kind say; ``more`` stands behind the limits. A column of its own says where members
        are surrogates, so that no table hides it."""
        low, high = self.interval()
        return {
            "change": kind,
            "members": len(self.kinds),
            "rows": len(self.counterfactuals),
            "found": int(self.counterfactuals.found.sum()),
            "rate": self.rate,
            "low": low,
            "high": high,
            **more,
            "spread": self.spread,
            "found_and_held": self.found_and_held,
            "baseline_flips": self.baseline_flips,
            **({"surrogates": self.surrogates} if self.surrogates else {}),
        }

    def table(self, network: Layers | None = None) -> pd.DataFrame:
        """One row per counterfactual: what it costs, how often it is invalidated, exact limits; NaN where not found.

        The index has the labels of the rows, where they are known. Given the deployed ``network``, a perceptron, also
        how far all its weights may move before the class can change, which is proved and not sampled (``certified``).
        """
        if network is not None:
            check_layers(network)
        answer, (low, high) = self.counterfactuals, self.per_row_interval()
        columns = {"found": answer.found, "cost_l1": answer.cost(1), "cost_l2": answer.cost(2)}
        frame = pd.DataFrame({name: values.cpu().numpy() for name, values in columns.items()}, index=answer.labels)
        frame = frame.assign(invalidated=self.per_row, low=low, high=high)
        if network is None:
            return frame
        radius = certified_radius(network, answer.point, answer.target)
        return frame.assign(certified=torch.where(answer.found, radius, torch.nan).cpu().numpy())

    def rows(self, *, dataset: str, method: str, space: str, seconds: float) -> list[dict[str, Any]]:
        """One flat row per kind of change, with the keys that every study, table and benchmark uses."""
        check_number("seconds", seconds)
        answer, named = self.counterfactuals, {"dataset": dataset, "method": method, "space": space}
        more = {f"cost_l{norm}": float(answer.cost(norm)[answer.found].double().mean()) for norm in (1, 2)}
        more["seconds"] = round(seconds, 3)
        return [named | _rounded(part._figures(kind, **more)) for kind, part in self.by_kind.items()]

    def _spread_out(self, values: Floats) -> Floats:
        """From found rows to all rows."""
        spread = np.full(len(self.counterfactuals), np.nan)
        spread[self.counterfactuals.found.cpu().numpy()] = values
        return spread

    def __repr__(self) -> str:
        by = f", by surrogates: {self.surrogates}" if self.surrogates else ":"
        lines = [f"Audit of {self.counterfactuals}, {len(self.kinds)} retrained models{by}"]
        if not self.invalidated.size:
            return "\n".join([*lines, "  nothing was found, so there is nothing to invalidate"])
        lines += [f"  {kind}: {_sentence(part)}" for kind, part in self.by_kind.items()]
        flips = self.baseline_flips
        baseline = "" if np.isnan(flips) else f"; without any counterfactual, {flips:.1%} of rows change class"
        lines.append(f"  found and held: {self.found_and_held:.1%} of all pairs{baseline}")
        if self.refitted and self.same.any():
            lines.append(f"  {self._said_of_same()}")
        return "\n".join(lines)

    def _said_of_same(self) -> str:
        same = f"{int(self.same.sum())} of {len(self.kinds)} refits answer exactly like the deployed model"
        return f"{same} on each of these rows and counterfactuals; on others they may differ"

    def _repr_html_(self) -> str:
        same = f" {self._said_of_same()}." if self.refitted and self.same.any() else ""
        return notebook.page(notebook.table(self.summary().to_dict("list")), notebook.note(f"{NOTE}{same}"))


def audit(counterfactuals: Counterfactuals, family: Family) -> Audit:
    """Ask every member of a family for the class of every counterfactual, and of every row itself.

    The family must not hold a model that the search has seen: it would agree with itself, and the audit is refused.
    Rows are taken in the dtype of the members' weights.

    Args:
        counterfactuals: What a search found, or what was imported.
        family: The retrained models: of `train`, of `refit`, or your own by `Family.from_models`.

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> deployed = hf.train(x, y, recipe, [hf.Retraining()])[0]
        >>> changes = hf.seeds(5) + hf.changes.leave_one_out(5, rows=len(x))
        >>> family = hf.train(x, y, recipe, changes)  # ten retrained models
        >>> target = hf.other_class(deployed, x[:10])
        >>> found = hf.PGD()(deployed, x[:10], target, hf.Space.free(x))
        >>> result = hf.audit(found, family)
        >>> result.invalidated.shape == (10, int(found.found.sum()))
        True
        >>> list(result.by_kind)
        ['seeds', 'leave-one-out']

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Methodology) and Section 2, Definition 2.
    """
    check_belong(counterfactuals, family)
    LOG.info("auditing %s with %s", counterfactuals, family)
    points = torch.cat([counterfactuals.point, counterfactuals.origin])
    after, before = torch.tensor_split(family.predict(points), 2, dim=1)
    result = Audit(after, counterfactuals, family.kinds, before, family.surrogates, family.refitted)
    _warn_of_odd_answers(result, family)
    LOG.info("audited %d counterfactuals with %d models", len(counterfactuals), len(family))
    return result


def _warn_of_odd_answers(result: Audit, family: Family) -> None:
    silent = torch.nonzero((result.predictions == NO_CLASS).any(1)).flatten().tolist()
    if silent:
        warnings.warn(
            f"members {silent} of {family} answer NaN for some counterfactuals; such an answer counts as invalidated",
            stacklevel=3,
        )
    answer = result.counterfactuals
    if answer.before is None or result.before is None or not bool(answer.found.any()):
        return
    if family.refitted:
        _warn_of_equal_refits(result, family)
    same = [member for member in family.external if result.same[member]] if len(answer) >= TELLING else []
    if same:
        warnings.warn(
            f"members {same} of {family} answer like the deployed model on every row; if they are copies of it, the "
            "audit says nothing (a deterministic learner may give the same model again)",
            stacklevel=3,
        )


def _warn_of_equal_refits(result: Audit, family: Family) -> None:
    """That refits answer alike is a result, unless all of a kind are one model: then the kind has nothing to say."""
    point = result.counterfactuals.point[result.counterfactuals.found]
    for kind, part in result.by_kind.items():
        members = [number for number, its_kind in enumerate(family.kinds) if its_kind == kind]
        if len(members) > 1 and part.same.all() and are_one(family.chosen(members), point):
            warnings.warn(
                f"all {len(part.kinds)} refits of kind '{kind}' are one model, which answers exactly like the deployed "
                "one: this estimator does not notice such a change, as boosting without sampling or early stopping "
                "does not notice a seed. Audit with a change of the rows as well, such as changes.bootstrap "
                f"(on the command line --retrain bootstrap:{len(part.kinds)})",
                stacklevel=4,
            )


def check_belong(counterfactuals: Counterfactuals, family: Family) -> None:
    if not isinstance(counterfactuals, Counterfactuals) or not isinstance(family, Family):
        raise TypeError(
            f"expected Counterfactuals and a Family, got {type(counterfactuals).__name__} and {type(family).__name__}; "
            "for your own models use Family.from_models([...])"
        )
    if not len(family) or family.features not in (None, counterfactuals.point.shape[1]):
        raise ValueError(
            f"{family} has {len(family)} members for {family.features} columns; the counterfactuals have "
            f"{counterfactuals.point.shape[1]} columns"
        )
    if counterfactuals.seen & set(family.fingerprints):
        seen = [number for number, member in enumerate(family.fingerprints) if member in counterfactuals.seen]
        raise ValueError(
            f"members {seen} of {family} are networks that the search has seen; a model agrees with itself: "
            "audit with other members, such as seeds(100, start=...)"
        )
    if len(set(family.fingerprints or family.retrainings)) < len(family):
        raise ValueError(f"{family} holds the same retraining more than once; members must be independent draws")
    counts = set(family.class_counts(counterfactuals.point)) if len(counterfactuals) else set()
    if counterfactuals.classes is not None and counts - {counterfactuals.classes}:
        raise ValueError(
            f"the counterfactuals were found for {counterfactuals.classes} classes but members of {family} have "
            f"{' and '.join(map(str, sorted(counts)))}; merge the family's classes in the same way: "
            "family.merged(groups)"
        )
    if family.suspects:
        warnings.warn(
            f"members {list(family.suspects)} of {family} did not learn: their accuracy is far below that of the "
            "others, so what they invalidate means little",
            stacklevel=3,
        )


def _sentence(part: Audit) -> str:
    """With one interval: the one that is right for these rows. `summary` has the approximate one for other rows too."""
    low, high = part.interval()
    limits = f"95 % interval for these rows {low:.1%} to {high:.1%}"
    return f"{part.rate:.1%} invalidated ({limits}), ± {part.spread:.1%} between models"


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _rounded(figures: dict[str, Any]) -> dict[str, Any]:
    """As JSON has them, which has no NaN."""
    return {
        name: value if not isinstance(value, float) else None if np.isnan(value) else round(float(value), 6)
        for name, value in figures.items()
    }
