"""What it costs a person that more of the retrained models agree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals, as_labels, check_answer
from holdfast.search.methods.rehearsed import Rehearsed
from holdfast.search.plans import norm_of
from holdfast.tabular.space import Space
from holdfast.utils.progress import bar
from holdfast.utils.settings import check_number

SHARES = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)


@dataclass(frozen=True, eq=False)
class AgreementCost:
    """For each person and each share of the rehearsed models, the cheapest counterfactual that so many accept.

    No person pays more for a smaller share: what more models accept is an answer for fewer too.

    Attributes:
        shares: The shares, rising.
        answers: ``answers[j]`` belongs to ``shares[j]``.
        agreement: The share of the models that accept each answer: (n, shares); NaN where nothing was found.
        norm: The norm of the costs.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> # Retrained models that ask for more: 3 x0 + 4 x1 > 5.2, 5.4 and 6.
        >>> stricter = lambda more: lambda x: model(x) - torch.tensor([0, more])
        >>> family = hf.Family.from_models([stricter(more) for more in (0.2, 0.4, 1.0)])
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> method, shares = hf.Rehearsed(family), (0.6, 1.0)
        >>> price = hf.agreement_cost(method, model, x, target, space, shares)
        >>> price
        AgreementCost(1 people; found by share of models: 60% 1, 100% 1)
        >>> [f"{cost:.2f}" for cost in price.cost[0].tolist()]  # 5.4 / 4 and 6 / 4
        ['1.35', '1.50']

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.2, finds that stable counterfactuals cost
    more.
    """

    shares: tuple[float, ...]
    answers: tuple[Counterfactuals, ...]
    agreement: Tensor  # (n, shares)
    norm: int = 1

    def __post_init__(self) -> None:
        for answer in self.answers:
            check_answer(answer)
        if not self.answers or tuple(self.agreement.shape) != (len(self.answers[0]), len(self.shares)):
            raise ValueError(
                "answers, shares and agreement must belong together; agreement_cost(...) makes an AgreementCost"
            )

    def labelled(self, labels: Iterable[Any]) -> AgreementCost:
        """The same, with who the rows are, as `Counterfactuals.labelled`."""
        index = as_labels(labels)
        return replace(self, answers=tuple(answer.labelled(index) for answer in self.answers))

    def __len__(self) -> int:
        return len(self.agreement)

    @property
    def cost(self) -> Tensor:
        """What each share costs each person: (n, shares); NaN where nothing was found."""
        return torch.stack([answer.cost(self.norm) for answer in self.answers], dim=1)

    @property
    def best(self) -> Counterfactuals:
        """For each person the answer that most models accept, and of those the cheapest: the best there is."""
        agreement = self.agreement.nan_to_num(-1)  # nothing is worse than no answer
        best, most = self.answers[0], agreement[:, 0]
        for answer, agreed in zip(self.answers[1:], agreement.unbind(1)[1:], strict=True):
            best, most = best.where(agreed > most, answer), torch.maximum(most, agreed)
        return replace(best, calls=None)

    @property
    def best_agreement(self) -> Tensor:
        """The share of the models that accept the best there is: (n,); NaN where nothing was found."""
        most = self.agreement.nan_to_num(-1).amax(1)
        return torch.where(most < 0, torch.nan, most)

    def table(self) -> pd.DataFrame:
        """One row for every person and share: row (a label, where labels are known), share, found, cost, agreement."""
        rows, shares = len(self), len(self.shares)
        found = torch.stack([answer.found for answer in self.answers], dim=1)
        return pd.DataFrame(
            {
                "row": self.answers[0].called(np.repeat(np.arange(rows), shares)),
                "share": list(self.shares) * rows,
                "found": found.flatten().cpu().numpy(),
                "cost": self.cost.flatten().cpu().numpy(),
                "agreement": self.agreement.flatten().cpu().numpy(),
            }
        )

    def sentence(self, row: int) -> str:
        """What one person is told: the price of the largest share, or that there is no advice that all accept.

        ``row`` is the number of their row; the sentence has their label, where labels are known.
        """
        who = self.answers[0].called(np.arange(len(self)))[row]
        agreed, answer = self.best_agreement[row], self.best
        if agreed.isnan():
            return f"row {who}: no counterfactual was found that even {self.shares[0]:.0%} of the models accept"
        cost = float(answer.cost(self.norm)[row])
        if bool(self.answers[-1].found[row]):
            return (
                f"row {who}: a counterfactual that {self.shares[-1]:.0%} of the models accept costs {cost:.3g}; one "
                f"that {self.shares[0]:.0%} accept costs {float(self.cost[row, 0]):.3g}"
            )
        return (
            f"row {who}: no counterfactual was found that {self.shares[-1]:.0%} of the models accept; the best "
            f"that was found is accepted by {float(agreed):.1%} and costs {cost:.3g}"
        )

    def __repr__(self) -> str:
        counts = [
            f"{share:.0%} {int(answer.found.sum())}" for share, answer in zip(self.shares, self.answers, strict=True)
        ]
        return f"AgreementCost({len(self)} people; found by share of models: {', '.join(counts)})"


def agreement_cost(
    method: Rehearsed,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    shares: Sequence[float] = SHARES,
    progress: bool = False,
) -> AgreementCost:
    """Search once for each share of the rehearsed models that must agree, and compare what it costs each row.

    The deployed model always has to agree. Shares are those of the family that the search sees: how far advice holds
    with other retrainings is for an audit to say.

    Args:
        method: The search, with its family.
        model: The deployed model.
        x: The rows, in encoded units: (n, d).
        target: The class that each wants: (n,).
        space: What is allowed.
        shares: The shares of the family that must accept a counterfactual; from 0.5 to 1 if not given.
        progress: Whether to show a bar.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> # Retrained models that ask for more: 3 x0 + 4 x1 > 5.2, 5.4 and 6.
        >>> stricter = lambda more: lambda x: model(x) - torch.tensor([0, more])
        >>> family = hf.Family.from_models([stricter(more) for more in (0.2, 0.4, 1.0)])
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> method, shares = hf.Rehearsed(family), (0.6, 1.0)
        >>> price = hf.agreement_cost(method, model, x, target, space, shares)
        >>> price.table().round(2)
           row  share  found  cost  agreement
        0    0    0.6   True  1.35       0.67
        1    0    1.0   True  1.50       1.00

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.2, finds that stable counterfactuals cost
    more.
    """
    if not isinstance(method, Rehearsed):
        raise TypeError(f"expected a Rehearsed search, such as Rehearsed(family), got {method!r}")
    shares = _checked_shares(shares)
    found: list[Counterfactuals] = []
    with bar("shares of the models that agree", len(shares), progress) as advance:
        for share in reversed(shares):
            answer = replace(method, share=share)(model, x, target, space)
            found.append(answer if not found else _cheaper(answer, found[-1], norm_of(method)))
            advance(1)
    answers = tuple(reversed(found))
    agreement = torch.stack([method.agreement(model, answer) for answer in answers], dim=1)
    return AgreementCost(shares, answers, agreement, norm_of(method))


def _cheaper(smaller_share: Counterfactuals, larger_share: Counterfactuals, norm: int) -> Counterfactuals:
    """What was found for a share, or what was found for a larger one where that is cheaper."""
    costs = [torch.where(answer.found, answer.cost(norm), torch.inf) for answer in (smaller_share, larger_share)]
    return smaller_share.where(costs[1] < costs[0], larger_share)


def _checked_shares(shares: Any) -> tuple[float, ...]:
    if isinstance(shares, str) or not isinstance(shares, Sequence) or not shares:
        raise TypeError(f"shares must be shares of the models, such as (0.5, 0.9, 1.0), got {shares!r}")
    for share in shares:
        check_number("each share", share)
        if not 0 < share <= 1:
            raise ValueError(f"each share must lie above 0 and at most at 1, got {share}")
    return tuple(sorted({float(share) for share in shares}))
