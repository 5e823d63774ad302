"""The cheapest point on which the deployed model and rehearsed retrainings agree."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from holdfast.models.checked import itself
from holdfast.models.merged import Merged
from holdfast.models.model import Model
from holdfast.models.scores import margin
from holdfast.models.worst_case import Rehearsals, WorstCaseEnsemble
from holdfast.search.counterfactuals import Counterfactuals, Method, assess, checked_question
from holdfast.search.gradients import LEAST_SCORE
from holdfast.search.methods.min_cost import MinCost
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_settings

SHARES = (0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)  # of the members that agree,
TEMPERATURES = (0.1, 0.2, 0.3, 0.45, 0.7, 1.0, 1.4, 2.0)  # and where all do; see `Rehearsed.with_parameter`


@dataclass(frozen=True)
class Rehearsed:
    """A search that asks the deployed model and a family of its retrainings at once, so that what it finds holds.

    The family is a rehearsal: models that were retrained as the deployed one will be. ``search`` looks for a point of
    the target class of the model that is only as sure as the least sure of all of them: all of them give the target,
    each by more than ``margin`` between its logit and the next.

    Any models will do: networks, translations and trees are searched together, in any mixture, and where one is a black
    box, all are asked. The family must not be the one that
    audits or selects: the search has seen it, and `audit` refuses it.

    Args:
        family: The retrained models to rehearse with.
        margin: By how much each must prefer the target class.
        share: The share of the members that is enough; the deployed model always counts.
        temperature: Above 0, the least sure model is a soft one: the more models are hardly sure, the more is asked of
            the point. It is in units of the members' own spread, so that one value means much the same for any data:
            0.2 to 0.5 make 32 members count for several times as many.
        search: The method that searches all of them as one model; `MinCost` in l1 where left out.

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
        >>> found = hf.Rehearsed(family)(model, x, target, space)
        >>> print(f"{found.cost(1).item():.2f}")  # the strictest member asks for 4 x1 > 6
        1.50
        >>> hf.Rehearsed(family).agreement(model, found).item()  # all members accept it
        1.0
    """

    source: ClassVar[str] = "a method of ours"
    parameter: ClassVar[str] = "caution"  # that `promise` chooses, see `with_parameter`

    family: Rehearsals = field(repr=False)
    margin: float = 0.0
    share: float = 1.0
    temperature: float = 0.0
    search: Method = field(default_factory=lambda: MinCost(norm=1))
    members: int = field(init=False)

    def __post_init__(self) -> None:
        _check_family(self.family)
        object.__setattr__(self, "members", len(self.family))
        check_settings(self, numbers="margin share temperature")
        if not 0 <= self.margin < math.inf or not 0 <= self.temperature < math.inf or not 0 < self.share <= 1:
            raise ValueError(
                "margin and temperature must be 0 or more and finite, share above 0 and at most 1, got "
                f"margin={self.margin}, temperature={self.temperature}, share={self.share}"
            )
        if not callable(self.search):
            raise TypeError(f"search must be a method, such as MinCost(norm=1), got {self.search!r}")

    @property
    def parameter_values(self) -> tuple[float, ...]:
        """The values that `promise` tries: shares that differ by a member or more, and temperatures."""
        needed = {math.ceil(share * self.members - 1e-9): share - 1 for share in SHARES}
        return (*sorted(round(value, 6) for value in needed.values()), *TEMPERATURES)

    def with_parameter(self, caution: float) -> Self:
        """The same with another caution, the parameter that `promise` chooses.

        Below 0, a share of 1 + caution of the members must agree. Above 0, all must, and it is the temperature.
        """
        return replace(self, share=min(1.0, 1 + caution), temperature=max(0.0, caution))

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return replace(self, search=self.search.fit(x, y, space, seed))

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """The cheapest point found for each row of x (n, d) towards its target (n,), in the space."""
        model, x, target = checked_question(model, x, target, space, gradient=False)
        together = self.worst_case(model)
        _check_classes(together, x)
        answer = self.search(together, x, target, space)
        judged = assess(model, x, answer.point, target, space, also=answer.found)
        return replace(judged, seen=judged.seen | answer.seen, calls=answer.calls)

    def holds(self, model: Model, answer: Counterfactuals) -> Tensor:
        """Which of the points found all of them agree on: (n,)."""
        with torch.no_grad():
            return answer.found & (margin(self.worst_case(model), answer.point, answer.target) > LEAST_SCORE)

    def worst_case(self, model: Model) -> WorstCaseEnsemble:
        """What is searched: the deployed model and its rehearsals as one model, as sure as the least sure of them."""
        deployed = itself(model)
        family: Any = self.family
        if isinstance(deployed, Merged) and getattr(family, "groups", None) is None and hasattr(family, "merged"):
            family = family.merged(deployed.groups)
        return WorstCaseEnsemble(deployed, family, self.share, self.margin, self.temperature)

    def agreement(self, model: Model, answer: Counterfactuals) -> Tensor:
        """The share of the members that accept each counterfactual: (n,); NaN where nothing was found."""
        agree = replace(self.worst_case(model), margin=0.0).agreement(answer.point, answer.target)
        return torch.where(answer.found, agree, torch.nan)


def _check_classes(together: WorstCaseEnsemble, x: Tensor) -> None:
    with torch.no_grad():
        deployed_classes = together.searched.deployed(x[:1]).shape[1]
        member_classes = getattr(together.members, "classes", None) or together.members.logits(x[:1]).shape[2]
    if len(x) and deployed_classes != member_classes:
        raise ValueError(
            f"the deployed model has {deployed_classes} classes and the rehearsed ones have {member_classes}; rehearse "
            "with retrainings of the deployed model, with classes merged in the same way"
        )


def _check_family(family: Any) -> None:
    needed = ("logits", "logits_of", "fingerprints", "__len__")
    if not all(hasattr(family, name) for name in needed):
        raise TypeError(
            f"expected a Family of retrained models, got {type(family).__name__}; train(x, y, recipe, seeds(32)) "
            "trains one, refit(...) refits an estimator, Family.from_models([...]) takes models that exist"
        )
    if not len(family):
        raise ValueError("the family is empty: there is nothing to rehearse with; try seeds(32)")
    if len(family.fingerprints) != len(family):
        raise ValueError(
            "the family does not say which training made each of its members, so no audit could refuse them; make it "
            "again with train(...) or refit(...), or take its models with Family.from_models([...])"
        )
