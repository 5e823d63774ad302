r"""How far all weights of a perceptron may move before the class of a point can change: a proof, not a sample.

For a point x, a class t and a change δ, every parameter θ of the network may become any θ′ with |θ′ − θ| ≤ δ ρ, where ρ
is 1 (`Absolute`) or |θ| (`Relative`), times a scale of its layer. `margin_bound` is a number that no such network's
margin at x is below; `certified_radius` is the largest δ found for which that number is above 0. Moves of one parameter
do not restrict those of another, which makes three steps exact (Σ over the inputs i of a unit):

    first layer, input a point     Wx + b ± δ (ρ·|x| + ρ_b)          |x|: an input may be negative
    later layers, given h ≥ 0      min Σ c W′ᵢ hᵢ = Σ (c Wᵢ − |c| δ ρᵢ) hᵢ        whatever h is
    last layer, logits t and o     min Σ (w′_tᵢ − w′_oᵢ) hᵢ = Σ (w_tᵢ − w_oᵢ − δ (ρ_tᵢ + ρ_oᵢ)) hᵢ

The second line is linear in h, so that a bound of the margin can be taken back from the logits to the first layer, as
CROWN (Zhang et al., NeurIPS 2018) does for changes of the input; what is lost is lost at the ReLUs in between, where

    relu(z) ≤ u (z − l) / (u − l)    and    relu(z) ≥ 0        for l < 0 < u, the bounds of z.

With no ReLU or one layer of them nothing is lost: the bound is the least margin. With the ReLUs of each layer bounded
apart (interval arithmetic) it would be lower or the same, because a sum's minimum is at least the sum of the minima.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

import torch
from torch import Tensor

from holdfast.models.rows import check_target
from holdfast.theory.layers import Layers, check_rows_of
from holdfast.utils.settings import check_number

NUMBERS = 1 << 22  # in the largest tensor on the way; rows are taken so many at a time
ROWS_AT_ONCE = 1000  # at most
SMALLEST_RADIUS = 1e-12  # a smaller one is called 0
LARGEST_RADIUS = 1e6  # no larger one is looked for
HALVINGS = 28  # of log(LARGEST_RADIUS / SMALLEST_RADIUS): seven digits


class Change(Protocol):
    """Which changes of the parameters are meant by δ."""

    def reach(self, network: Layers) -> list[tuple[Tensor, Tensor]]:
        """How far each weight and each bias of every layer may move for δ = 1."""


@dataclass(frozen=True)
class Absolute:
    """Every weight and bias moves by at most δ, times its layer's scale: 0 for a layer that does not change.

    Attributes:
        scales: one per layer; 1 for all

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.certificates import Absolute, certified_radius
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> top = certified_radius(network, rows, target, Absolute(scales=(0.0, 1.0)))  # only the last layer changes
        >>> bool((top > certified_radius(network, rows, target, Absolute())).all())
        True

    Paper: the bound is that of [Zhang et al. 2018](https://arxiv.org/abs/1811.00866) for changes of the input, here for
    changes of the weights.
    """

    scales: tuple[float, ...] | None = None

    def reach(self, network: Layers) -> list[tuple[Tensor, Tensor]]:
        scaled = zip(_scales(self.scales, network), network.weights, network.biases, strict=True)
        return [
            (s * torch.ones_like(weight).double(), s * torch.ones_like(bias).double()) for s, weight, bias in scaled
        ]


@dataclass(frozen=True)
class Relative:
    """Every weight and bias moves by at most δ times its own size, so that a zero stays zero; scales as `Absolute`.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.certificates import Relative, certified_radius
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> [round(radius, 2) for radius in certified_radius(network, rows, target, Relative()).tolist()]
        [0.22, 0.22]

    Paper: the bound is that of [Zhang et al. 2018](https://arxiv.org/abs/1811.00866) for changes of the input, here for
    changes of the weights.
    """

    scales: tuple[float, ...] | None = None

    def reach(self, network: Layers) -> list[tuple[Tensor, Tensor]]:
        scaled = zip(_scales(self.scales, network), network.weights, network.biases, strict=True)
        return [(s * weight.double().abs(), s * bias.double().abs()) for s, weight, bias in scaled]


ABSOLUTE = Absolute()


def margin_bound(
    network: Layers, x: Tensor, target: Tensor, delta: float | Tensor, change: Change = ABSOLUTE
) -> Tensor:
    """A number that the margin at x (n, d) of no network within ``delta`` is below: (n,) in float64.

    The margin is the target's logit less the largest other. ``delta`` is one for all rows or one per row. It holds for
    the logits as the network's own precision computes them, not only for real numbers. Differentiable in x.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.certificates import margin_bound
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> bound = margin_bound(network, rows, target, delta=0.1)
        >>> [round(margin, 2) for margin in bound.tolist()]  # only the second row is proved
        [-0.08, 0.08]

    Paper: the bound is that of [Zhang et al. 2018](https://arxiv.org/abs/1811.00866) for changes of the input, here for
    changes of the weights.
    """
    boxes, delta = _checked(network, x, target, delta, change)
    # The largest tensor is that of the coefficients of one layer's units in another's: (n, units, units).
    widest = sorted(width for box in boxes for width in box.weight.shape)[-2:]
    count = max(1, min(ROWS_AT_ONCE, NUMBERS // (widest[0] * widest[1])))
    if len(delta) == 1:
        pieces = [
            _bound(boxes, *piece, delta)
            for piece in zip(torch.split(x, count), torch.split(target, count), strict=True)
        ]
    else:
        together = zip(torch.split(x, count), torch.split(target, count), torch.split(delta, count), strict=True)
        pieces = [_bound(boxes, *piece) for piece in together]
    return torch.cat(pieces)


def certified_radius(network: Layers, x: Tensor, target: Tensor, change: Change = ABSOLUTE) -> Tensor:
    """The largest δ for which it is proved that every network within δ gives x (n, d) the class ``target``: (n,).

    0 where the network itself does not. Found by bisection; every radius returned is one that was proved.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.certificates import certified_radius
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> [round(radius, 3) for radius in certified_radius(network, rows, target).tolist()]
        [0.092, 0.11]

    Paper: the bound is that of [Zhang et al. 2018](https://arxiv.org/abs/1811.00866) for changes of the input, here for
    changes of the weights.
    """
    _checked(network, x, target, 0.0, change)
    low, high = (torch.full_like(x[:, 0], end, dtype=torch.float64).log() for end in (SMALLEST_RADIUS, LARGEST_RADIUS))
    proved = torch.zeros_like(low)
    with torch.no_grad():
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            holds = margin_bound(network, x, target, middle.exp(), change) > 0
            proved = torch.where(holds, middle.exp(), proved)
            low, high = torch.where(holds, middle, low), torch.where(holds, high, middle)
    return proved


# ---- what the layers may become ----


@dataclass(frozen=True, eq=False)
class _Box:
    """A layer and how far its parameters may move for δ = 1, in float64."""

    weight: Tensor  # (in, out)
    bias: Tensor  # (out,)
    reach: Tensor  # (in, out)
    bias_reach: Tensor  # (out,)
    # A sum of K products, computed in any order, is off by at most K u / (1 − K u) times the sum of their sizes, u the
    # unit roundoff (Higham 2002, § 3.1). Such an error of the network's own arithmetic is a move of the unit's bias.
    network_rounding: float
    # The same for the arithmetic here: twice the network's sums for each of its layers, and room to spare.
    rounding: float


def _checked(
    network: Layers, x: Tensor, target: Tensor, delta: float | Tensor, change: Change
) -> tuple[list[_Box], Tensor]:
    check_rows_of(network, x, "a certificate", logits=2, finite=False)  # what is not finite is not certified
    check_target(target, len(x), network.weights[-1].shape[1])
    if not isinstance(delta, Tensor):
        check_number("delta", delta)
    if not callable(getattr(change, "reach", None)):
        raise TypeError(f"change must be Absolute(...) or Relative(...), got {change!r}")
    delta = torch.as_tensor(delta, dtype=torch.float64, device=x.device).reshape(-1)
    if len(delta) not in (1, len(x)) or not bool((delta >= 0).all()):
        raise ValueError(f"delta must be 0 or more, one for all or one for each of {len(x)} rows, got {delta}")
    rounding = 16 * len(network.weights) * sum(weight.shape[0] + 2 for weight in network.weights) * _unit(torch.float64)
    given = zip(network.weights, network.biases, change.reach(network), strict=True)
    boxes = [
        _Box(
            *(weight.detach().double(), bias.detach().double(), reach.double(), bias_reach.double()),
            network_rounding=1.01 * (len(weight) + 1) * _unit(weight.dtype),
            rounding=rounding,
        )
        for weight, bias, (reach, bias_reach) in given
    ]
    return boxes, delta


def _unit(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps / 2


def _scales(scales: Sequence[float] | None, network: Layers) -> Sequence[float]:
    count = len(network.weights)
    if scales is None:
        return (1.0,) * count
    if not isinstance(scales, Sequence) or not all(isinstance(scale, Real) for scale in scales):
        raise TypeError(f"scales must be {count} numbers, one per layer, got {scales!r}")
    if len(scales) != count or not all(0 <= scale < torch.inf for scale in scales):
        raise ValueError(f"expected {count} finite scales of 0 or more, one per layer, got {scales}")
    return scales


# ---- the bound ----

_Ends = tuple[Tensor, Tensor]  # of a layer's units before their ReLU, (n, out) each
_Bounds = tuple[Tensor, Tensor, Tensor]  # the same with the network's rounding, and that rounding


def _bound(boxes: list[_Box], x: Tensor, target: Tensor, delta: Tensor) -> Tensor:
    """(n,)"""
    x = x.double()
    most = size = x.abs()  # what units are at most, and what it would be if nothing cancelled
    bounds: list[_Bounds] = []
    for layer, box in enumerate(boxes[:-1]):
        low, high = _first(box, x, delta) if layer == 0 else _later(boxes[:layer], box, bounds, delta)
        error, size = box.network_rounding * _size(box, most, delta), _size(box, size, delta)
        low, high = low - error - box.rounding * size, high + error + box.rounding * size
        bounds.append((low, high, error))
        most = high.clamp_min(0)
    last = boxes[-1]
    weight, bias = _apart(last.weight.T, target, -1), _apart(last.bias, target, -1)  # (n, c, in), (n, c)
    reach, bias_reach = _apart(last.reach.T, target, 1), _apart(last.bias_reach, target, 1)
    constant = bias - delta[:, None] * bias_reach
    if bounds:
        differences = _least(weight - delta[:, None, None] * reach, constant, boxes[:-1], bounds, delta)
    else:
        differences = constant + _along(weight, x) - delta[:, None] * _along(reach, x.abs())
    error = last.network_rounding * _size(last, most, delta) + last.rounding * _size(last, size, delta)
    differences = differences - error - error.gather(1, target[:, None])
    return differences.scatter(1, target[:, None], torch.inf).amin(1)


def _first(box: _Box, x: Tensor, delta: Tensor) -> _Ends:
    center = x @ box.weight + box.bias
    away = delta[:, None] * (x.abs() @ box.reach + box.bias_reach)
    return center - away, center + away


def _later(below: list[_Box], box: _Box, bounds: list[_Bounds], delta: Tensor) -> _Ends:
    reach, bias_reach = delta[:, None, None] * box.reach.T, delta[:, None] * box.bias_reach
    low = _least(box.weight.T - reach, box.bias - bias_reach, below, bounds, delta)
    high = -_least(-box.weight.T - reach, -box.bias - bias_reach, below, bounds, delta)
    return low, high


def _least(coefficient: Tensor, constant: Tensor, boxes: list[_Box], bounds: list[_Bounds], delta: Tensor) -> Tensor:
    """No smaller is coefficient · h + constant (n, m), h ≥ 0 the rectified units of the last of the boxes.

    Coefficients are (n, m, units), or (1, m, units) where they are the same for all rows.
    """
    for box, (low, high, error) in zip(boxes[:0:-1], bounds[:0:-1], strict=True):
        under, over = _slopes(low, high)
        positive, negative = coefficient.clamp_min(0), coefficient.clamp_max(0)
        constant = constant - _along(negative, over * low.clamp_max(0))  # over · (z − l): l is 0 where z ≥ 0
        coefficient = positive * under[:, None] + negative * over[:, None]
        size = coefficient.abs()
        constant = constant + coefficient @ box.bias - delta[:, None] * (size @ box.bias_reach) - _along(size, error)
        coefficient = coefficient @ box.weight.T - delta[:, None, None] * (size @ box.reach.T)
    low, high, _ = bounds[0]
    # The units of the first layer share no parameter, so each takes its worst value whatever the others do.
    return (
        constant
        + _along(coefficient.clamp_min(0), low.clamp_min(0))
        + _along(coefficient.clamp_max(0), high.clamp_min(0))
    )


def _slopes(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Of lines below and above relu between the bounds."""
    open_ = (low < 0) & (high > 0)
    chord = high / torch.where(open_, high - low, 1) * (1 + 4 * torch.finfo(low.dtype).eps)
    on = (low >= 0).to(low)
    return on, torch.where(open_, chord, on)


def _along(coefficient: Tensor, value: Tensor) -> Tensor:
    """(n or 1, m, units) · (n, units) -> (n, m)"""
    return value @ coefficient[0].T if len(coefficient) == 1 else (coefficient @ value[..., None])[..., 0]


def _apart(rows: Tensor, target: Tensor, sign: int) -> Tensor:
    """Each row's own of (c, ...), and with this sign every other: (n, c, ...)."""
    return rows[target][:, None] + sign * rows


def _size(box: _Box, size: Tensor, delta: Tensor) -> Tensor:
    """The most that the sizes of what a unit sums up can add up to, in any of the networks: (n, out)."""
    return size @ box.weight.abs() + box.bias.abs() + delta[:, None] * (size @ box.reach + box.bias_reach)
