"""Where the class is proved for the largest change of all weights, or nearly so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.models.model import Model, answer
from holdfast.models.rows import check_rows
from holdfast.search.counterfactuals import Counterfactuals, check_answer
from holdfast.search.stabilisers.ascent import ascend, check_ball
from holdfast.tabular.space import Space
from holdfast.theory.certificates import Absolute, Change, margin_bound
from holdfast.theory.layers import Layers, check_layers, logits_of
from holdfast.utils.settings import check_settings


@dataclass(frozen=True)
class Certified:
    """Moves a counterfactual x_c to the nearby point that holds best when the worst happens to all weights at once.

    Consider all networks whose weights differ by ``delta`` or less. The margin of the target class at x is smallest for
    one of them. Over x in the space with ‖x − x_c‖ ≤ radius, the search maximises a lower bound of that margin, which
    is proved (`theory.certificates.margin_bound`). Where the bound ends above 0, none of these networks invalidates the
    counterfactual. With delta 0 this is `Confidence` (of two classes). Networks trained from new seeds are much further
    away than any delta that can be proved, and hold no more of what this finds than of what `SNS` or `Confidence` find
    (bench/certificates.py). For perceptrons only.

    Args:
        radius: How far a point may move: one number for all rows, or one per row (n,).
        steps: How many gradient steps.
        norm: The norm of the ball: 1, 2 or infinity.
        delta: The change of every weight. It is best where a bound above 0 can just be reached; beyond, all that counts
            is to be small.
        change: What delta is measured in: `Absolute()` or `Relative()` of `theory.certificates`.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.certificates import margin_bound
        >>> x = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
        >>> y = (x.sum(1) > 1).long()
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> network = hf.train(x, y, recipe, [hf.Retraining()])[0]
        >>> some, space = x[:5], hf.Space.free(x)
        >>> found = hf.PGD()(network, some, hf.other_class(network, some), space)
        >>> proved = hf.Certified(delta=0.001, steps=20)(network, found, space)
        >>> before = margin_bound(network, found.point, found.target, 0.001)
        >>> after = margin_bound(network, proved.point, found.target, 0.001)
        >>> bool((after >= before).all())
        True

    Paper: bounds of this kind, on inputs, are those of CROWN, [Zhang et al. 2018](https://arxiv.org/abs/1811.00866).
    """

    source: ClassVar[str] = "a bound on all weights, as CROWN's on inputs (Zhang et al. 2018)"

    radius: float | Tensor = 2.4
    steps: int = 200
    norm: float = 2
    delta: float = 0.001
    change: Change = field(default_factory=Absolute)

    def __post_init__(self) -> None:
        check_ball(self.radius, self.steps, self.norm)
        check_settings(self, numbers="delta")
        if not callable(getattr(self.change, "reach", None)):
            raise TypeError(
                f"change must be Absolute(...) or Relative(...) of theory.certificates, got {self.change!r}"
            )
        if not 0 <= self.delta < torch.inf:
            raise ValueError(f"delta must be 0 or more and finite, got {self.delta}")

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        """The same rows with those that were found moved to where a larger margin is proved."""
        check_answer(start)
        layers = as_layers(model, start.origin)

        def proved(model: Model, point: Tensor, target: Tensor, origin: Tensor) -> Tensor:
            return margin_bound(layers, point, target, self.delta, self.change).to(point)

        return ascend(model, start, space, proved, self.radius, self.steps, self.norm)


def as_layers(model: Model, x: Tensor) -> Layers:
    """The layers of a model, if they are all there is to it."""
    check_layers(model)
    layers: Layers = model  # type: ignore[assignment]  # just checked
    rows = x[:16].detach()
    check_rows(rows, width=layers.weights[0].shape[0])
    with torch.no_grad():
        same = torch.allclose(answer(model, rows), logits_of(layers, rows), rtol=1e-3, atol=1e-3)
    if not same:
        raise TypeError(
            f"{type(model).__name__} has weights and biases, but its logits are not those of a ReLU perceptron made of "
            "them; a certificate would be of another network"
        )
    return layers
