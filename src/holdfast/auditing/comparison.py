"""Methods side by side: on the same rows, before the same members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from holdfast.auditing.audit import Audit
from holdfast.auditing.correlation import r_squared
from holdfast.auditing.intervals import rate_interval
from holdfast.utils import notebook
from holdfast.utils.settings import check_number, check_share

YES_NO = {True: "yes", False: "no"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Audits of several methods over one set of rows and one family, and what can be said of their differences.

    Rates, costs and differences are those of the rows that every method found, so that none looks good by leaving out
    the hard ones; ``found`` and ``found_and_held`` count all rows. `compare` makes this value.

    Attributes:
        audits: The audits, by the name of their method.
        norm: The norm of the cost.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.auditing.comparison import Comparison
        >>> x, target, found = torch.zeros(1, 1), torch.tensor([1]), torch.tensor([True])
        >>> near = hf.Counterfactuals(x, x + 1, target, found)
        >>> far = hf.Counterfactuals(x, x + 2, target, found)
        >>> yes = torch.ones(30, 1, dtype=torch.int64)  # what 30 retrained models say
        >>> kinds = ("seeds",) * 30
        >>> near, far = hf.Audit(1 - yes, near, kinds), hf.Audit(yes, far, kinds)
        >>> compared = Comparison({"near": near, "far": far})
        >>> compared.front  # no method is both cheaper and invalidated less often
        ('near', 'far')
        >>> compared.differences()[["method", "other", "difference", "significant"]]
          method other  difference  significant
        0   near   far         1.0         True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.2 and Table 1, which also has its R².
    """

    audits: Mapping[str, Audit]
    norm: float = 2

    def __post_init__(self) -> None:
        if not isinstance(self.audits, Mapping):
            raise TypeError(
                f"expected audits by the name of their method, {{'pgd': audit(...), 'pgd+sns': audit(...)}}, "
                f"got {type(self.audits).__name__}"
            )
        check_number("norm", self.norm)
        if not self.norm >= 0:
            raise ValueError(f"norm must be 0 or more, such as 1, 2 or infinity (math.inf), got {self.norm}")
        object.__setattr__(self, "audits", dict(self.audits))
        _check_alike(self.audits)

    @property
    def common(self) -> Tensor:
        """Which rows every method found: (n,)."""
        return torch.stack([audit.counterfactuals.found for audit in self.audits.values()]).all(0)

    @property
    def on_common_rows(self) -> dict[str, Audit]:
        """The audits of the rows that every method found, by method."""
        return {method: audit.of_rows(self.common) for method, audit in self.audits.items()}

    def table(self) -> pd.DataFrame:
        """One row per method, cheapest first. On the front is what no other method beats in both cost and rate."""
        lines = [self._line(method, audit) for method, audit in self.on_common_rows.items()]
        frame = pd.DataFrame(lines).sort_values("cost", kind="stable", ignore_index=True)
        return frame.assign(front=_front(frame["cost"].to_numpy(), frame["rate"].to_numpy()))

    def _line(self, method: str, part: Audit) -> dict[str, Any]:
        low, high = part.interval()
        cost = part.counterfactuals.cost(self.norm).double()
        return {
            "method": method,
            "found": int(self.audits[method].counterfactuals.found.sum()),
            "common": len(part.counterfactuals),
            "cost": float(cost.mean()),
            "rate": part.rate,
            "low": low,
            "high": high,
            "spread": part.spread,
            "found_and_held": self.audits[method].found_and_held,
        }

    def differences(self, confidence: float = 0.95) -> pd.DataFrame:
        """For every two methods by how much the first's rate exceeds the second's, and if that can be chance.

        Members are paired: a hard member is hard for both. Each member's difference is one draw in [-1, 1], and the
        limits are those of `intervals.rate_interval`, at a level at which all pairs hold at once (Bonferroni).
        """
        check_share("confidence", confidence)
        rates = {method: audit.per_member for method, audit in self.on_common_rows.items()}
        pairs, kinds = list(combinations(rates, 2)), next(iter(self.audits.values())).kinds
        level = 1 - (1 - confidence) / max(1, len(pairs))
        lines = []
        for method, other in pairs:
            difference = rates[method] - rates[other]
            low, high = (2 * limit - 1 for limit in rate_interval((difference + 1) / 2, kinds, level))
            lines.append(
                {
                    "method": method,
                    "other": other,
                    "difference": float(difference.mean()),
                    "low": low,
                    "high": high,
                    "significant": bool(low > 0 or high < 0),
                }
            )
        return pd.DataFrame(lines, columns=["method", "other", "difference", "low", "high", "significant"])

    @property
    def front(self) -> tuple[str, ...]:
        """The methods that none beats in both cost and rate, cheapest first."""
        table = self.table()
        return tuple(table.loc[table["front"], "method"])

    def of(self, kind: str) -> Comparison:
        """The same before the members of one kind of change."""
        return Comparison({method: audit.of(kind) for method, audit in self.audits.items()}, self.norm)

    def r_squared(self) -> float:
        """The paper's R²: how much of a counterfactual's rate its cost explains by a line, all methods pooled."""
        pooled = [(a.counterfactuals.cost(self.norm).double().cpu().numpy(), a.per_row) for a in self.audits.values()]
        cost, rate = (np.concatenate(values) for values in zip(*pooled, strict=True))
        known = ~np.isnan(rate)
        return float("nan") if known.sum() < 3 else r_squared(cost[known], rate[known])

    def __repr__(self) -> str:
        table, differences = self.table(), self.differences()
        lines = [f"Comparison on {int(self.common.sum())} rows that all {len(self.audits)} methods found:"]
        for line in table.to_dict("records"):
            star = "*" if line["front"] else " "
            lines.append(
                f"  {star} {line['method']:<20} cost {line['cost']:8.3f}  {line['rate']:6.1%} invalidated "
                f"({line['low']:.1%} to {line['high']:.1%})  found and held {line['found_and_held']:.1%}"
            )
        even = [
            f"{line['method']} = {line['other']}" for line in differences.to_dict("records") if not line["significant"]
        ]
        lines.append("  * no method is both cheaper and invalidated less often")
        if even:
            lines.append(f"  no significant difference at 95 %: {', '.join(even)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        table = self.table().assign(cost=lambda frame: frame["cost"].map("{:.3f}".format))
        note = f"{int(self.common.sum())} rows that every method found; differences paired by member, all at once 95 %."
        shown = [frame.assign(**_as_words(frame)).to_dict("list") for frame in (table, self.differences())]
        return notebook.page(*map(notebook.table, shown), notebook.note(note))


def compare(audits: Mapping[str, Audit], norm: float = 2) -> Comparison:
    """Put audits of several methods side by side. They must be of the same rows, by the same family.

    Args:
        audits: The audits, by the name of their method.
        norm: The norm of the cost: 1, 2 or infinity.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5, and stricter ones.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> stricter = lambda more: lambda x: model(x) - torch.tensor([0, more])
        >>> family = hf.Family.from_models([stricter(more) for more in (0.2, 0.4, 1.0)])
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> methods = {"min-l2": hf.MinCost(norm=2), "margin": hf.Margin(level=0.9)}
        >>> audits = {}
        >>> for name, method in methods.items():
        ...     audits[name] = hf.audit(method(model, x, target, space), family)
        >>> hf.compare(audits).table()[["method", "cost", "rate", "front"]].round(2)
           method  cost  rate  front
        0  min-l2  1.00   1.0   True
        1  margin  1.44   0.0   True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.2 and Table 1.
    """
    return Comparison(audits, norm)


def _front(cost: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Which points no other point beats: as cheap and as stable, and better in one."""
    as_good = (cost[None] <= cost[:, None]) & (rate[None] <= rate[:, None])
    better = (cost[None] < cost[:, None]) | (rate[None] < rate[:, None])
    return np.asarray(~(as_good & better).any(1))


def _as_words(frame: pd.DataFrame) -> dict[str, Any]:
    return {str(name): values.map(YES_NO) for name, values in frame.items() if values.dtype == bool}


def _check_alike(audits: Mapping[str, Audit]) -> None:
    if len(audits) < 2 or not all(isinstance(audit, Audit) for audit in audits.values()):
        kinds = ", ".join(sorted({type(audit).__name__ for audit in audits.values()})) or "nothing"
        raise ValueError(f"expected two audits or more by the name of their method, got {len(audits)} ({kinds})")
    (first_name, first), *others = audits.items()
    for name, audit in others:
        if audit.kinds != first.kinds:
            raise ValueError(
                f"'{name}' was audited by {len(audit.kinds)} members and '{first_name}' by {len(first.kinds)}, or in "
                "another order; audit both with one family"
            )
        first_origin, origin = first.counterfactuals.origin, audit.counterfactuals.origin
        if origin.shape != first_origin.shape or not torch.equal(origin, first_origin):
            raise ValueError(
                f"'{name}' explains {len(origin)} rows and '{first_name}' {len(first_origin)}, or others; ask every "
                "method about the same rows in the same order"
            )
        if not torch.equal(audit.counterfactuals.target, first.counterfactuals.target):
            raise ValueError(
                f"'{name}' and '{first_name}' were asked for different classes; ask both for the same classes"
            )
        if audit.before is not None and first.before is not None and not torch.equal(audit.before, first.before):
            raise ValueError(
                f"the members that audited '{name}' and '{first_name}' differ on the rows themselves, so they are not "
                "the same models; audit both with one family"
            )
    if not torch.stack([audit.counterfactuals.found for audit in audits.values()]).all(0).any():
        raise ValueError(
            "no row was found by every method; leave out a method that finds few rows, or allow it a larger radius"
        )
