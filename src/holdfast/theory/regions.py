r"""The geometry of a rectified perceptron: where it is linear, and how far its decision boundary is.

Which units are on, p(x), cuts the input space into regions. Each is a polytope, and inside it the network is linear:

    R(p) = {x' : G x' ≤ h},    f(x') = A x' + b for x' in R(p),

one row of G and h for each hidden unit: the unit stays on, or off, on its side of that row's hyperplane (the unit's
facet). Everything here is computed in float64, whatever the network's own type: the statements are about the function
that the weights define, and a network evaluated in float32 can disagree with them within its rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from torch import Tensor

from holdfast.models.rows import check_floats, check_target, check_tensor
from holdfast.theory.layers import Layers, check_layers, check_rows_of, hidden_units
from holdfast.utils.settings import check_whole

Numbers = NDArray[np.float64]
_Polytope = tuple[Numbers, Numbers]  # sides (m, d) and limits (m,) of {x : sides x ≤ limits}
ROWS_AT_ONCE = 128  # whose units' gradients are held in memory at a time
SLACK = 1e-9  # of the size of the numbers at hand: how far outside a polytope still counts as on it


# ------------------------------------------------------------------------------------------------ one region


def pattern(network: Layers, x: Tensor) -> Tensor:
    """Which hidden units are on (above 0) at each row, layer after layer: (n, units) bool.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import pattern
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> pattern(network, torch.tensor([[1.0, 1.0], [2.0, -1.0]])).tolist()
        [[True, True], [True, False]]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: the activation pattern p(x).
    """
    layers = _Float64Layers.of(network, x)
    return layers.join([values > 0 for values in layers.hidden(x.double())], x)


def linear_map(network: Layers, x: Tensor) -> tuple[Tensor, Tensor]:
    r"""The network in the region that x lies in, f(x') = A x' + b: A (n, c, d) and b (n, c).

        A = W_Lᵀ D_{L−1} W_{L−1}ᵀ ... D₁ W₁ᵀ,    D_l = diag(which units of layer l are on at x)

    A is f's Jacobian at x, so b = f(x) − A x.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import linear_map
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> slope, shift = linear_map(network, torch.tensor([[2.0, -1.0]]))
        >>> slope.tolist(), shift.tolist()  # with x₂ off, the logits are 1 and x₁
        ([[[0.0, 0.0], [1.0, 0.0]]], [[1.0, 0.0]])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: f is linear inside an activation region.
    """
    layers = _Float64Layers.of(network, x)
    return layers.logits([values > 0 for values in layers.hidden(x.double())], len(x))


def polytope(network: Layers, x: Tensor) -> tuple[Tensor, Tensor]:
    r"""The region that x lies in, {x' : G x' ≤ h}: G (n, units, d) and h (n, units).

    Unit u with u(x') = g·x' + o in this region gives the row −g·x' ≤ o where it is on, and g·x' ≤ −o where it is off.
    Rows of units that are constant in the region are zero; many others touch the region nowhere.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import polytope
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> sides, limits = polytope(network, torch.tensor([[2.0, -1.0]]))
        >>> inside = torch.tensor([5.0, -0.5], dtype=torch.float64)  # x₁ on, x₂ off: the same region
        >>> bool((sides[0] @ inside <= limits[0]).all())
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: the activation region R(p), a polytope
    with a facet for each unit.
    """
    layers = _Float64Layers.of(network, x)
    return layers.sides([values > 0 for values in layers.hidden(x.double())], len(x))


def facet_distance(network: Layers, x: Tensor) -> Tensor:
    r"""How far each hidden unit's hyperplane is: |u(x)| / ‖∇u(x)‖₂, (n, units), infinite where ∇u(x) = 0.

    The hyperplane is that of the region's linear map. It may lie beyond another unit's, where the map is another one:
    only the nearest is sure to be met. Until then nothing changes, so the open ball of radius min over the units lies
    inside the region, and no larger ball does.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import facet_distance
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> facet_distance(network, torch.tensor([[2.0, -1.0]])).tolist()  # x₁ = 0 is 2 away, and x₂ = 0 is 1 away
        [[2.0, 1.0]]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1, describes the facets and cites [Jordan et
    al. 2019](https://arxiv.org/abs/1903.08778), who measure the way to them.
    """
    layers = _Float64Layers.of(network, x)
    distances = [x.new_zeros((0, layers.units), dtype=torch.float64)]
    for rows in torch.split(x.double(), ROWS_AT_ONCE):
        values = layers.hidden(rows)
        lengths = [slope.norm(dim=2) for slope, _ in layers.unit_maps([value > 0 for value in values], len(rows))]
        size, length = layers.join(values, rows).abs(), layers.join(lengths, rows)
        distances.append(torch.where(length > 0, size / length.clamp_min(torch.finfo(torch.float64).tiny), torch.inf))
    return torch.cat(distances)


@dataclass(frozen=True, eq=False)
class RegionBoundary:
    """The decision boundary of the linear map of a row's region, whether or not it crosses that region.

    Attributes:
        distance: (n,) to it; below 0 where the row is not of the class asked about; infinite if there is none
        foot: (n, d) the nearest point of it
        other: (n,) the class on its other side
        inside: (n,) bool: the foot lies in the region, so it is a point of the network's own boundary
        facet: (n,) the distance to the region's border

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import boundary_distance_inside
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> boundary = boundary_distance_inside(network, torch.tensor([[2.0, -1.0]]))
        >>> boundary.foot.tolist(), boundary.inside.tolist(), boundary.exact.tolist()
        ([[1.0, -1.0]], [True], [True])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: a decision boundary that crosses the
    region, or "an extension of a nearby boundary".
    """

    distance: Tensor
    foot: Tensor
    other: Tensor
    inside: Tensor
    facet: Tensor

    @property
    def exact(self) -> Tensor:
        """Where ``distance`` is that to the network's nearest boundary: the ball up to it lies in the region, (n,)."""
        return (self.distance >= 0) & (self.distance <= self.facet)

    @property
    def lower(self) -> Tensor:
        """Nearer than this the class asked about neither ends nor begins, whether or not the foot is inside: (n,)."""
        return torch.minimum(self.distance.abs(), self.facet)


def boundary_distance_inside(network: Layers, x: Tensor, target: Tensor | None = None) -> RegionBoundary:
    r"""The distance from x to the decision boundary that its region's linear map has, for the class ``target`` (n,).

        min over j ≠ target of  (f_target(x) − f_j(x)) / ‖A_target − A_j‖₂

    Without a target, that of the class that x has. Where the foot lies inside the region the boundary is really there,
    and nothing nearer in this region; another region may still have a nearer one, unless ``exact``. Where it does not,
    the distance says something about the region only: the paper's "extension of a nearby boundary".

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import boundary_distance_inside
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> boundary = boundary_distance_inside(network, torch.tensor([[1.0, 1.0], [2.0, -1.0]]))
        >>> [round(distance, 3) for distance in boundary.distance.tolist()]
        [0.707, 1.0]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: a decision boundary that crosses the
    region, or "an extension of a nearby boundary".
    """
    _check_classes(network)
    check_rows_of(network, x, "a boundary")
    if target is not None:
        check_target(target, len(x), network.weights[-1].shape[1])
    rows = x.double()
    slope, shift = linear_map(network, x)
    logits = (slope @ rows[:, :, None])[:, :, 0] + shift
    target = logits.argmax(1) if target is None else target
    difference = slope.gather(1, target[:, None, None].expand(-1, 1, slope.shape[2])) - slope  # (n, c, d)
    margin = logits.gather(1, target[:, None]) - logits
    length = difference.norm(dim=2)
    # Two classes with the same slope never meet in this map, unless they are equal everywhere in it.
    distances = torch.where(length > 0, margin / length, torch.where(margin == 0, 0.0, margin.sign() * torch.inf))
    distances = distances.scatter(1, target[:, None], torch.inf)
    distance, other = distances.min(1)
    away = torch.nn.functional.normalize(difference[torch.arange(len(x)), other], dim=1)
    foot = torch.where(distance.isfinite()[:, None], rows - distance[:, None].nan_to_num(0, 0, 0) * away, torch.nan)
    nowhere = rows.new_full((len(x), 1), torch.inf)  # a linear network has no facet
    facet = torch.cat([facet_distance(network, x), nowhere], 1).amin(1)
    inside = torch.cat(
        [
            _inside(network, a, b)
            for a, b in zip(torch.split(x, ROWS_AT_ONCE), torch.split(foot, ROWS_AT_ONCE), strict=True)
        ]
    )
    return RegionBoundary(distance, foot, other, inside, facet)


def _check_classes(network: Layers) -> None:
    check_layers(network, "a boundary", logits=1)
    if network.weights[-1].shape[1] < 2:
        raise ValueError("the network has one logit z; a boundary is between two classes: give it the two (−z/2, z/2)")


def _inside(network: Layers, x: Tensor, point: Tensor) -> Tensor:
    """Whether each point lies in the region of the same row of x, its border included: (n,)."""
    sides, limits = polytope(network, x)
    allowed = SLACK * (sides.norm(dim=2) * point.norm(dim=1)[:, None] + limits.abs())
    within: Tensor = (sides @ point[:, :, None])[:, :, 0] <= limits + allowed
    return within.all(1) & point.isfinite().all(1)


# ------------------------------------------------------------------------------------------------ pieces of boundary


@dataclass(frozen=True, eq=False)
class Piece:
    """One flat piece of a decision boundary: {x : normal·x = offset, sides x ≤ limits}.

    Attributes:
        normal: (d,).
        offset: Of the plane.
        sides: (m, d)
        limits: (m,)

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import boundary_piece
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> piece = boundary_piece(network, torch.tensor([2.0, -1.0]))
        >>> piece.normal.tolist(), piece.offset  # x₁ = 1
        ([1.0, 0.0], 1.0)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: decision boundaries are piecewise linear.
    Theorem 1 (Section 3) is about two pieces.
    """

    normal: Tensor
    offset: float
    sides: Tensor
    limits: Tensor


def boundary_piece(network: Layers, x: Tensor, first: int = 0, second: int = 1) -> Piece:
    """Where two logits tie in the region that x (d,) lies in. It may be empty: `piece_distance` is then infinite.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import boundary_piece
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> piece = boundary_piece(network, torch.tensor([1.0, 1.0]))
        >>> piece.normal.tolist(), piece.offset  # x₁ + x₂ = 1, in the region where both units are on
        ([1.0, 1.0], 1.0)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: decision boundaries are piecewise linear.
    Theorem 1 (Section 3) is about two pieces.
    """
    check_layers(network, "a boundary", logits=2)
    check_point(x)
    for name, label in {"first": first, "second": second}.items():
        check_whole(name, label, least=0)
        if label >= network.weights[-1].shape[1]:
            raise ValueError(f"{name} is class {label}, but the network has {network.weights[-1].shape[1]} classes")
    slope, shift = linear_map(network, x[None])
    sides, limits = polytope(network, x[None])
    return Piece(slope[0, second] - slope[0, first], float(shift[0, first] - shift[0, second]), sides[0], limits[0])


def piece_distance(piece: Piece, x: Tensor) -> tuple[float, Tensor]:
    """The distance from x (d,) to the nearest point of the piece, and that point; infinity and nans if it is empty.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.regions import boundary_piece, piece_distance
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> piece = boundary_piece(network, torch.tensor([2.0, -1.0]))  # x₁ = 1 where x₂ ≤ 0
        >>> distance, nearest = piece_distance(piece, torch.tensor([1.0, 3.0]))
        >>> round(distance, 6), [round(value, 6) for value in nearest.tolist()]
        (3.0, [1.0, 0.0])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 3: the distance d(x, H) of Theorem 1.
    """
    check_piece(piece)
    check_point(x)
    plane = _Plane.of(_numbers(piece.normal), piece.offset)
    found = _nearest(_scaled(_numbers(piece.sides), _numbers(piece.limits)), _numbers(x), plane)
    if found is None:
        return float("inf"), torch.full_like(x, torch.nan, dtype=torch.float64)
    return found[0], torch.from_numpy(found[1]).to(x.device)


def check_piece(piece: object) -> None:
    if not isinstance(piece, Piece):
        raise TypeError(f"expected a Piece, got {type(piece).__name__}; boundary_piece(network, x) makes one")


def check_point(x: Tensor) -> None:
    check_tensor("x", x)
    if x.ndim != 1:
        raise ValueError(f"expected one point x (d,), got {tuple(x.shape)}; ask about one row at a time, x[0]")
    check_floats("x", x)


@dataclass(frozen=True)
class _Plane:
    """normal·x = offset with a normal of length 1; the whole space, or nothing, where the normal was zero."""

    normal: Numbers
    offset: float
    empty: bool

    @classmethod
    def of(cls, normal: Numbers, offset: float) -> _Plane:
        length = float(np.linalg.norm(normal))
        if length == 0:
            return cls(normal, 0.0, offset != 0)
        return cls(normal / length, offset / length, False)


def _scaled(sides: Numbers, limits: Numbers) -> _Polytope:
    """The same polytope with rows of length 1, or 0: such a row says 0 ≤ limit, nothing or that there is no point."""
    length = np.linalg.norm(sides, axis=1)
    length = np.where(length > 0, length, 1.0)
    return sides / length[:, None], limits / length


def _nearest(polytope: _Polytope, x: Numbers, plane: _Plane) -> tuple[float, Numbers] | None:
    r"""The point of {G x' ≤ h} on the plane that is nearest to x, with its distance; None where there is none.

    From x's foot on the plane it is a least distance problem, min ‖s‖₂ subject to G' s ≤ r with G' the rows of G within
    the plane.
    """
    sides, limits = polytope
    off = float(plane.normal @ x) - plane.offset
    start = x - off * plane.normal
    size = 1.0 + float(np.abs(start).max(initial=0.0)) + float(np.abs(limits).max(initial=0.0))
    within = _within_plane(sides, limits - sides @ start, plane, SLACK * size)
    if within is None:
        return None
    sides, room = within
    worst = float(-room.min(initial=0.0))
    if worst <= 1e-13 * size:  # the foot itself lies in the polytope
        return abs(off), start
    for step in _least_steps(sides, room / worst):  # scaled so that the answer is of length 1 or more
        point = start + worst * step
        over = polytope[0] @ point - limits
        if float(over.max()) <= SLACK * (size + float(np.abs(point).max())):
            return float(np.linalg.norm(point - x)), point
    return None


def _within_plane(sides: Numbers, room: Numbers, plane: _Plane, slack: float) -> _Polytope | None:
    """The sides as they run within the plane, and the room to each; None where the plane misses the polytope."""
    if plane.empty:
        return None
    sides = sides - np.outer(sides @ plane.normal, plane.normal)
    # A side along the plane, such as a facet that is itself the boundary, holds on all of it or nowhere.
    along = np.linalg.norm(sides, axis=1) <= 1e-12
    if along.any() and float(room[along].min()) < -slack:
        return None
    return sides[~along], room[~along]


def _least_steps(sides: Numbers, room: Numbers) -> list[Numbers]:
    r"""The shortest s with G s ≤ r, first to more digits and then as first found; none where there is no such s.

    Lawson and Hanson (Solving Least Squares Problems, ch. 23) solve it as non-negative least squares: u ≥ 0 minimizing
    ‖[Gᵀ; rᵀ] u + e_last‖, whose residual is zero just where no point exists.
    """
    matrix = np.vstack([sides.T, room])
    wanted = np.zeros(len(matrix))
    wanted[-1] = -1.0
    share, _ = nnls(matrix, wanted, maxiter=50 * (matrix.shape[1] + 1))  # raises where it does not converge
    residual = matrix @ share - wanted
    if residual[-1] <= 1e-14:
        return []
    rough = -residual[:-1] / residual[-1]
    active = share > 0
    fine, *_ = np.linalg.lstsq(sides[active], room[active], rcond=None)  # the shortest step that meets the active rows
    return [fine, rough]


def _numbers(tensor: Tensor) -> Numbers:
    return np.asarray(tensor.detach().cpu().double().numpy(), dtype=np.float64)


# ------------------------------------------------------------------------------------------------ layers in float64


@dataclass(frozen=True, eq=False)
class _Float64Layers:
    """The layers in float64 beside x, and what they are in a region whose units are on or off as told."""

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    @classmethod
    def of(cls, network: Layers, x: Tensor) -> _Float64Layers:
        check_rows_of(network, x, "a region")
        return cls(
            tuple(weight.detach().to(x.device, torch.float64) for weight in network.weights),
            tuple(bias.detach().to(x.device, torch.float64) for bias in network.biases),
        )

    @property
    def units(self) -> int:
        return sum(weight.shape[1] for weight in self.weights[:-1])

    def join(self, parts: list[Tensor], like: Tensor) -> Tensor:
        """One tensor (n, units) of a list of layers, which a linear network has none of."""
        return torch.cat(parts, 1) if parts else like.new_zeros((len(like), 0))

    def hidden(self, x: Tensor) -> list[Tensor]:
        """Each hidden unit before its relu: (n, width) for each layer."""
        return hidden_units(self.weights[:-1], self.biases[:-1], x)

    def logits(self, on: list[Tensor], rows: int) -> tuple[Tensor, Tensor]:
        """From the logits down, which are few: A (n, c, d), b (n, c)."""
        slope = self.weights[-1].T.expand(rows, -1, -1)
        shift = self.biases[-1].expand(rows, -1)
        for weight, bias, active in zip(self.weights[-2::-1], self.biases[-2::-1], reversed(on), strict=True):
            slope = slope * active[:, None]
            shift = shift + slope @ bias
            slope = slope @ weight.T
        return slope, shift

    def unit_maps(self, on: list[Tensor], rows: int) -> Iterator[tuple[Tensor, Tensor]]:
        """From the inputs up, each hidden unit before its relu: slope (n, width, d), shift (n, width), each layer."""
        slope = shift = None
        for layer, (weight, bias) in enumerate(zip(self.weights[:-1], self.biases[:-1], strict=True)):
            if slope is None or shift is None:
                slope, shift = weight.T.expand(rows, -1, -1), bias.expand(rows, -1)
            else:
                mixing = weight.T * on[layer - 1][:, None]  # (n, out, in)
                slope, shift = mixing @ slope, (mixing @ shift[:, :, None])[:, :, 0] + bias
            yield slope, shift

    def sides(self, on: list[Tensor], rows: int) -> tuple[Tensor, Tensor]:
        """The region's polytope: G (n, units, d), h (n, units)."""
        sides, limits = [], []
        for active, (slope, shift) in zip(on, self.unit_maps(on, rows), strict=True):
            out = 1.0 - 2.0 * active.double()  # −1 where on: the unit must not fall
            sides.append(slope * out[:, :, None])
            limits.append(-shift * out)
        empty = self.weights[0].new_zeros((rows, 0))
        return (
            torch.cat(sides, 1) if sides else empty[:, :, None].expand(-1, -1, self.weights[0].shape[0]),
            torch.cat(limits, 1) if limits else empty,
        )
