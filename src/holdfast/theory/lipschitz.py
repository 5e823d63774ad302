r"""How steep a model is near a row: an estimate from below by sampling, a bound from above by proof.

Along any straight line a perceptron's slope is the line's direction times a matrix

    J = W₁ D₁ W₂ D₂ ... W_L,    D_l diagonal with entries in [0, 1],

1 where the unit's pre-activation is above 0, 0 where it is below. On a convex set S the l2 Lipschitz constant is
therefore at most sup_S ‖J‖₂, and so is the operator norm of every (generalised) Jacobian at a point of S, which is the
K that the paper's Theorem 2 needs. `lipschitz_bound` takes a ball for S: it encloses every pre-activation there, which
settles many of the diagonals' entries, and bounds ‖J‖₂ over all values of the others. It never looks at which of those
go together, so it is generous where many are open: the larger the set and the deeper the network, the more so.

Everything is enclosed as middle ± reach in float64, and every reach is widened by the standard bound on the rounding
of an inner product, |fl(a·b) − a·b| ≤ γ |a|·|b|. The bound is one on the function that the weights define in real
numbers; a network evaluated in float32 rounds its outputs on top of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.models.model import Model, check_callable
from holdfast.models.rows import check_rows, check_target
from holdfast.theory.influence import Ball
from holdfast.theory.layers import Layers, check_rows_of
from holdfast.utils.settings import check_number

NUMBERS = 1 << 20  # held in one intermediate tensor, so that memory does not grow with the rows
EPSILON = torch.finfo(torch.float64).eps


def sampled_lipschitz(model: Model, x: Tensor, radius: float, count: int = 100, seed: int = 0) -> Tensor:
    r"""A LOWER bound on the l2 Lipschitz constant in the l2 ball around each row: (n,).

        max over x' in a sample of B(x, radius) of ‖J(x')‖₂

    The sample is the row itself and ``count`` points drawn uniformly, the same draws for every row. A steep place that
    no draw met is missed: never use it where a bound from above is needed. ``model`` is any differentiable map from
    rows to vectors (n, c) or to numbers (n,), whose gradient's norm is then meant; `torch.func` must be able to map it.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.lipschitz import sampled_lipschitz
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows = torch.tensor([[1.0, 1.0], [2.0, -1.0]])
        >>> [round(slope, 3) for slope in sampled_lipschitz(network, rows, radius=0.5, count=8).tolist()]
        [1.414, 1.0]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4, Definition 3, and the K of Theorem 2
    (Section 4.2), which the paper does not compute.
    """
    steepest = []
    check_callable(model)
    check_rows(x)
    ball = Ball(radius, count, seed)

    def alone(row: Tensor) -> Tensor:
        return model(row[None])[0]

    jacobian = torch.func.vmap(torch.func.jacrev(alone))
    step = max(1, NUMBERS // ((count + 1) * max(1, x.shape[1])))
    for first in range(0, len(x), step):
        rows = slice(first, min(first + step, len(x)))
        points = torch.cat([x[rows][None], ball.around(x, rows)[0]])  # (count + 1, n, d)
        slopes = jacobian(points.flatten(0, 1)).detach()  # (m, c, d), or (m, d)
        norms = torch.linalg.matrix_norm(slopes, 2) if slopes.ndim == 3 else torch.linalg.vector_norm(slopes, dim=1)
        steepest.append(norms.view(points.shape[:2]).amax(0))
    return torch.cat(steepest) if steepest else x.new_zeros(0)


def lipschitz_bound(network: Layers, x: Tensor, radius: float, target: Tensor | None = None) -> Tensor:
    r"""An UPPER bound on the l2 Lipschitz constant of a perceptron in the l2 ball around each row: (n,), float64.

        K ≥ ‖f(a) − f(b)‖₂ / ‖a − b‖₂  for all a, b with ‖a − x‖, ‖b − x‖ ≤ radius;    K ≥ ‖J‖₂ there

    f is all logits together or, with a ``target`` class for each row (n,), the margin f_target − max of the others,
    which is no steeper than the steepest f_target − f_j.

    Where no relu can switch inside the ball it is the exact ‖J‖₂, up to rounding. What holds in a ball holds in a
    smaller one around the same row; where the bound of the larger comes out smaller, which happens, use that.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.lipschitz import lipschitz_bound
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows = torch.tensor([[1.0, 1.0], [2.0, -1.0]])
        >>> [round(bound, 3) for bound in lipschitz_bound(network, rows, radius=0.5).tolist()]
        [1.414, 1.0]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4, Definition 3, and the K of Theorem 2
    (Section 4.2), which the paper does not compute. Which units are surely on or off, and a bound from that: as in
    [Weng et al. 2018](https://arxiv.org/abs/1804.09699).
    """
    check_rows_of(network, x, "a Lipschitz bound", logits=1 if target is None else 2)
    check_number("radius", radius)
    if not radius >= 0:
        raise ValueError(f"radius must be 0 or more, got {radius}")
    weights, biases = ([layer.detach().double() for layer in part] for part in (network.weights, network.biases))
    if target is not None:
        check_target(target, len(x), weights[-1].shape[1])
    head = _head(weights[-1], len(x), target)  # (n, c, w)
    inner = list(zip(weights[:-1], biases[:-1], strict=True))
    widest = max(weight.shape[1] for weight in weights)
    step = max(1, NUMBERS // (max(x.shape[1], widest) * widest))
    bounds = [x.new_zeros(0, dtype=torch.float64)]
    for first in range(0, len(x), step):
        rows = slice(first, first + step)
        relus, slope = _decided(inner, x[rows].detach().double(), radius)
        # A margin is one function a class: the steepest of them. Logits are one map together.
        parts = torch.split(head[rows], head.shape[1] if target is None else 1, dim=1)
        bounds.append(torch.stack([_bound(relus, slope, part) for part in parts]).amax(0))
    return torch.cat(bounds)


def _head(last: Tensor, rows: int, target: Tensor | None) -> Tensor:
    """How the outputs read the last hidden layer: (n, c, w)."""
    if target is None:
        return last.T.expand(rows, -1, -1)
    classes = torch.arange(last.shape[1], device=target.device).expand(rows, -1)
    others = classes[classes != target[:, None]].view(rows, -1)  # (n, c − 1)
    return last.T[target][:, None] - last.T[others]


@dataclass(frozen=True)
class _Interval:
    """middle ± width, elementwise."""

    middle: Tensor
    width: Tensor

    @property
    def lower(self) -> Tensor:
        return self.middle - self.width

    @property
    def upper(self) -> Tensor:
        return self.middle + self.width

    def times(self, weight: Tensor, bias: Tensor | None = None) -> _Interval:
        """All values of v W + b, rounding included; the width of a product with a point matrix is exact."""
        size = weight.abs()
        rounded = torch.matmul(self.middle.abs(), size)
        middle = torch.matmul(self.middle, weight)
        if bias is not None:
            middle, rounded = middle + bias, rounded + bias.abs()
        slack = _gamma(weight.shape[-2])
        return _Interval(middle, torch.matmul(self.width, size) * (1 + slack) + slack * rounded)


def _between(lower: Tensor, upper: Tensor) -> _Interval:
    # The ends, their sum and their difference are rounded: at most ε/2 of the larger end each time.
    width = (upper - lower) / 2 + 4 * EPSILON * torch.maximum(lower.abs(), upper.abs())
    return _Interval((lower + upper) / 2, width)


def _gamma(length: int) -> float:
    """γ: what float64 can lose in an inner product of so many terms and the few operations around it, with room."""
    return (2 * length + 16) * EPSILON


@dataclass(frozen=True)
class _Relus:
    """A hidden layer and what its relus do in each row's ball."""

    weight: Tensor  # (in, w)
    mean: Tensor  # (n, w) the middle of the relu's possible slopes: 1 where on, 0 where off, ½ where undecided
    steepness: Tensor  # (n, w) at most that of each pre-activation
    norm: Tensor  # (n,) ‖W₁ D₁ ... W_l‖₂ at most, without the columns of units that are off

    @property
    def undecided(self) -> Tensor:
        return self.mean == 0.5


def _decided(inner: list[tuple[Tensor, Tensor]], centre: Tensor, radius: float) -> tuple[tuple[_Relus, ...], _Interval]:
    """What is settled in each row's ball around its centre (n, d), and ∂(last hidden layer)/∂x there: (n, d, w)."""
    columns = centre.shape[1]
    unit = torch.eye(columns, dtype=centre.dtype, device=centre.device).expand(len(centre), -1, -1)
    slope = _Interval(unit, torch.zeros_like(unit))  # ∂(layer's output)/∂x
    here = _Interval(centre, torch.zeros_like(centre))  # the layer's output at the centre, up to rounding
    values: _Interval | None = None  # the layer's output anywhere in the ball
    relus: tuple[_Relus, ...] = ()
    for weight, bias in inner:
        slope, here = slope.times(weight), here.times(weight, bias)
        steepness = torch.linalg.vector_norm(slope.middle.abs() + slope.width, dim=1)  # (n, w)
        # By the mean value theorem: no pre-activation leaves its value at the centre faster than its slopes allow.
        away = steepness * radius * (1 + _gamma(columns)) + here.width
        lower, upper = here.middle - away, here.middle + away
        if values is not None:  # a second enclosure, layer by layer; both hold
            again = values.times(weight, bias)
            lower, upper = torch.maximum(lower, again.lower), torch.minimum(upper, again.upper)
        # Strictly above and below, so that a point on a kink, which has both slopes, counts as undecided.
        on, off = lower > 0, upper < 0
        live = weight.T * ~off[:, :, None]  # (n, w, in)
        norm = _steepest(relus, _Interval(live, torch.zeros_like(live)))
        mean = (1 + on.double() - off.double()) / 2
        relus += (_Relus(weight, mean, steepness, norm),)
        slope = _switched(slope, on, off)
        here = _Interval(here.middle.relu(), here.width)
        values = _between(lower.relu(), upper.relu())
    return relus, slope


def _switched(slope: _Interval, on: Tensor, off: Tensor) -> _Interval:
    """After the relus: the same where on, 0 where off, and where undecided all between 0 and the slope."""
    undecided = _between(slope.lower.clamp_max(0), slope.upper.clamp_min(0))
    middle = torch.where(on[:, None], slope.middle, undecided.middle)
    width = torch.where(on[:, None], slope.width, undecided.width)
    return _Interval(middle * ~off[:, None], width * ~off[:, None])


def _bound(relus: tuple[_Relus, ...], slope: _Interval, head: Tensor) -> Tensor:
    """‖J‖₂ at most, for outputs that read the last hidden layer so (n, c, w): the better of two ways: (n,)."""
    rounded = _Interval(head, EPSILON * head.abs())  # a margin's weights are differences
    return torch.minimum(_entrywise(slope.times(head.mT)), _steepest(relus, rounded))


def _entrywise(slope: _Interval) -> Tensor:
    """‖J‖₂ at most, for J = M ± R: |J| ≤ |M| + R gives ‖J‖₂ ≤ ‖|M| + R‖₂; also ‖J‖₂ ≤ ‖M‖₂ + ‖R‖₂: (n,)."""
    two_norms = _spectral(slope.middle) + _spectral(slope.width)
    return torch.minimum(_spectral(slope.middle.abs() + slope.width), two_norms * (1 + EPSILON))


def _steepest(relus: tuple[_Relus, ...], head: _Interval) -> Tensor:
    r"""‖A D B‖₂ at most, with A = W₁ D₁ ... W_l, D the slopes of layer l and Bᵀ the head (n, c, w): (n,).

    With D = M + E, M the middle and |E| ≤ ½ on the undecided units U, the smaller of

        ‖A M B‖ + ½ ‖A_U S‖ ‖S⁻¹ B_U‖        ‖A‖ ‖B‖, both without the units that are off

    where A M B and A_U S end one layer earlier, and so on down to a plain matrix. S is any positive diagonal;
    one that gives A_U S and S⁻¹ B_U columns and rows of like size does well. Nothing undecided: ‖A M B‖, exactly.
    """
    if not relus:
        rounding: Tensor = torch.linalg.vector_norm(head.width, dim=(1, 2)) * (1 + 1e-9)
        return _spectral(head.middle) + rounding
    below, last = relus[:-1], relus[-1]
    mean = _Interval(head.middle * last.mean[:, None], head.width * last.mean[:, None]).times(last.weight.T)
    bound = _steepest(below, mean)
    if bool(last.undecided.any()):
        scale = _balance(last, head)
        open_units = last.weight.T * scale[:, :, None]
        inverse = torch.where(last.undecided, 1 / scale.where(last.undecided, scale.new_ones(())), 0)[:, None]
        read = _steepest((), _Interval(head.middle * inverse, (head.width + 4 * EPSILON * head.middle.abs()) * inverse))
        bound = bound + _steepest(below, _Interval(open_units, 4 * EPSILON * open_units.abs())) * read / 2
    live = (last.mean > 0)[:, None]
    product = last.norm * _steepest((), _Interval(head.middle * live, head.width * live))
    return torch.minimum(bound, product) * (1 + 8 * EPSILON)


def _balance(relus: _Relus, head: _Interval) -> Tensor:
    """Positive where undecided, 0 elsewhere: (n, w). The square root of how much is read over how steep it is."""
    read, steep = torch.linalg.vector_norm(head.middle, dim=1), relus.steepness
    # Any positive number will do, so keep clear of 0 and infinity.
    read, steep = (size + 1e-6 * size.amax(1, keepdim=True) + 1e-100 for size in (read, steep))
    return (read / steep).sqrt() * relus.undecided


def _spectral(matrix: Tensor) -> Tensor:
    """The largest singular value, by a full decomposition (power iteration comes from below): (n,).

    A backward stable one errs by a modest multiple of ε ‖A‖₂.
    """
    largest: Tensor = torch.linalg.matrix_norm(matrix, 2)
    return largest * (1 + 8 * _gamma(sum(matrix.shape[-2:])))
