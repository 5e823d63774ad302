r"""The paper's theorems as numbers: both sides of each inequality, and the point that each existence proof promises.

Where the printed statement needs care, the docstring says what is true instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.models.model import check_callable
from holdfast.models.rows import check_rows
from holdfast.theory.layers import Layers, check_layers, check_rows_of, hidden_units
from holdfast.theory.regions import SLACK, Piece, check_piece, check_point, piece_distance
from holdfast.utils.settings import check_number, check_whole

GRID = 2.0**43  # places on a line that are closer than 1/GRID of it are one


# ------------------------------------------------------------------------------------------------ Theorem 1, Lemma 1


@dataclass(frozen=True, eq=False)
class NoSafer:
    """A point x' on the second piece that is no nearer to the first one than x is; None where none is promised.

    Attributes:
        point: (d,)
        reason: what gives it, or which assumption fails
        lands: x's foot on each piece's plane lies on the piece
        cosine: of the angle between the normals, both turned towards x: 0 if orthogonal
        step: from x's foot on the second plane to x'
        from_first: d(x, H₁), d(x', H₁): to the pieces themselves
        from_second: d(x, H₂), d(x', H₂)

    Examples:
        >>> import torch
        >>> from holdfast.theory.regions import Piece
        >>> from holdfast.paper.theorems import further_but_no_safer
        >>> whole = torch.zeros(0, 2), torch.zeros(0)  # the pieces have no end
        >>> upright, level = Piece(torch.tensor([1.0, 0.0]), 0.0, *whole), Piece(torch.tensor([0.0, 1.0]), 0.0, *whole)
        >>> found = further_but_no_safer(torch.tensor([1.0, 2.0]), upright, level)
        >>> found.orthogonal, found.holds, found.reason
        (True, True, "orthogonal pieces: x's foot on the second")

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 3, Theorem 1 and Lemma 1; proofs in Appendix
    A.1.
    """

    point: Tensor | None
    reason: str
    lands: tuple[bool, bool]
    cosine: float
    step: float
    from_first: tuple[float, float]
    from_second: tuple[float, float]

    @property
    def orthogonal(self) -> bool:
        return abs(self.cosine) <= SLACK

    @property
    def holds(self) -> bool:
        """The three claims, by the distances: 0 = d(x', H₂) < d(x, H₂) and d(x, H₁) ≤ d(x', H₁)."""
        (before, after), (away, there) = self.from_first, self.from_second
        slack = 1e-7 * (1 + before + away)
        return self.point is not None and there <= slack < away and before <= after + slack


def further_but_no_safer(x: Tensor, first: Piece, second: Piece) -> NoSafer:
    r"""Theorem 1: distance from one decision boundary says nothing about another, near which x' may lie.

    Let s₁, s₂ ≥ 0 be the distances from x (d,) to the two pieces' planes, cos θ the cosine between the planes' unit
    normals n₁, n₂, both turned towards x, and suppose that x's foot on either plane lies on the piece. Then

        θ = 90°                       x' = x − s₂ n₂, x's foot on H₂, has d(x', H₂) = 0 and d(x', H₁) ≥ s₁ = d(x, H₁)

    because its distance from the plane of H₁ is |s₁ − s₂ cos θ|, and H₁ itself is no nearer than its plane. The same
    foot serves wherever |s₁ − s₂ cos θ| ≥ s₁: for every obtuse angle, and for s₂ cos θ ≥ 2 s₁. For other angles it lies
    nearer to H₁ than x does, and the proof must walk along H₂, away from H₁'s plane, by no less than

        0° < θ < 90°                  s₂ cos θ / sin θ,    or (2 s₁ − s₂ cos θ) / sin θ the other way.

    That point is promised only if the walk stays on H₂, which nothing in the assumptions says: a short piece of
    boundary ends before. Where H₁ and H₂ are cones with their tips at 0, as all are in a network without biases, one
    can always walk far enough: from any y on H₂ that is not on H₁, k·y stays on H₂ while d(k·y, H₁) = k·d(y, H₁).

    As printed, Theorem 1 lacks the right angle in the main text (the appendix has it), and its proof takes a small step
    η n₁ that is not needed. Lemma 1 says that H₁ = H₂ if there is no such x'. In networks without biases that is true
    in the form "there is none just where H₂ is part of H₁", by the scaling. With biases it is false: take two parallel
    boundaries and x outside them both, or a short H₂. In its proof n₁·n₂ n₂·x is ‖n₁‖‖n₂‖² s₂ cos θ, not
    ‖n₂‖² n₁·x cos θ, and the step that follows, η ≥ s₂ cos θ / sin² θ, is neither tiny nor bounded.

    Examples:
        >>> import torch
        >>> from holdfast.theory.regions import Piece
        >>> from holdfast.paper.theorems import further_but_no_safer
        >>> whole = torch.zeros(0, 2), torch.zeros(0)  # the pieces have no end
        >>> upright, level = Piece(torch.tensor([1.0, 0.0]), 0.0, *whole), Piece(torch.tensor([0.0, 1.0]), 0.0, *whole)
        >>> found = further_but_no_safer(torch.tensor([1.0, 2.0]), upright, level)
        >>> found.point.tolist()  # on the second boundary, and as far from the first as x was
        [1.0, 0.0]
        >>> found.from_first
        (1.0, 1.0)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 3, Theorem 1 and Lemma 1; proofs in Appendix
    A.1.
    """
    check_point(x)
    check_piece(first)
    check_piece(second)
    x, first_plane, second_plane = x.double(), _unit(first), _unit(second)
    (normal, s1), (other, s2) = _towards(x, *first_plane), _towards(x, *second_plane)
    cosine = float((normal @ other).clamp(-1, 1))
    sideways = normal - cosine * other
    sine = float(sideways.norm())  # not √(1 − cos²), which is 1e-8 for parallel normals
    foot = x - s2 * other
    lands = _on(first, x - s1 * normal), _on(second, foot)
    before = piece_distance(first, x)[0], piece_distance(second, x)[0]

    def answer(point: Tensor | None, reason: str) -> NoSafer:
        after = (math.nan, math.nan)
        step = math.nan
        if point is not None:
            after = piece_distance(first, point)[0], piece_distance(second, point)[0]
            step = float((point - foot).norm())
        return NoSafer(point, reason, lands, cosine, step, (before[0], after[0]), (before[1], after[1]))

    if not lands[1]:
        return answer(None, "x's foot on the second plane is not on the second piece")
    if s2 <= SLACK * (1 + float(x.norm())):
        return answer(None, "x lies on the second piece already, so nothing can be nearer to it")
    if lands[0]:
        if abs(cosine) <= SLACK:
            return answer(foot, "orthogonal pieces: x's foot on the second")
        if abs(s1 - s2 * cosine) >= s1:
            return answer(foot, "no acute angle in the way: x's foot on the second piece is no nearer to the first")
        if sine > SLACK:
            along = sideways / sine  # in the second plane, straight away from the first
            for step in sorted([s2 * cosine / sine, (s2 * cosine - 2 * s1) / sine], key=abs):
                if _on(second, foot + step * along):
                    return answer(foot + step * along, "an acute angle: a walk along the second piece")
    if _is_cone(first) and _is_cone(second) and math.isfinite(before[0]):
        foot_distance = piece_distance(first, foot)[0]
        if foot_distance > SLACK * (1 + float(foot.norm())):
            return answer(
                foot * max(1.0, before[0] / foot_distance), "cones with tips at 0: x's foot on the second, scaled"
            )
    if not lands[0]:
        return answer(None, "x's foot on the first plane is not on the first piece")
    if sine <= SLACK:
        return answer(None, "parallel planes: all of the second is nearer to the first one than x is")
    return answer(None, "an acute angle, and the walk that would make up for it leaves the second piece")


def _unit(piece: Piece) -> tuple[Tensor, float]:
    length = float(piece.normal.double().norm())
    if length == 0:
        raise ValueError("a piece's normal is zero, so it has no plane; take a region in which the two logits differ")
    return piece.normal.double() / length, piece.offset / length


def _towards(x: Tensor, normal: Tensor, offset: float) -> tuple[Tensor, float]:
    """The normal turned so that x lies on its side, and x's distance from the plane."""
    off = float(normal @ x) - offset
    return (normal, off) if off >= 0 else (-normal, -off)


def _on(piece: Piece, point: Tensor) -> bool:
    """For a point of the piece's plane: is it on the piece?"""
    allowed = SLACK * (piece.sides.norm(dim=1) * point.norm() + piece.limits.abs())
    return bool((piece.sides.double() @ point <= piece.limits + allowed).all())


def _is_cone(piece: Piece) -> bool:
    return piece.offset == 0 and not bool(piece.limits.any())


# ------------------------------------------------------------------------------------------------ Theorem 2


@dataclass(frozen=True, eq=False)
class Theorem2:
    """Both sides for each row: ‖χ(x; w) − χ(x; w')‖ and K [σ'(x; w)·‖w − λ w'‖ + C].

    Attributes:
        left: (n,)
        right: (n,)
        factor: (n,) what K is multiplied with
        ratio: (n,) λ = σ'(x; w') / σ'(x; w)
        lipschitz: (n,) K, the largest ‖∂h/∂x‖₂ on the line
        along: (n,) the largest ‖∂h/∂x · x‖ / ‖x‖ there: how fast h changes along the line, which is not enough

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.paper.theorems import theorem2
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> again = Network((layers[0], 0.5 * layers[1]), network.biases, hf.Retraining())  # another top layer
        >>> both = theorem2(network, again, torch.tensor([[1.0, 1.0], [2.0, -1.0]]))
        >>> bool((both.left <= both.right).all()), both.lipschitz.tolist()
        (True, [1.0, 1.0])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.2, Theorem 2; proof in Appendix A.2.
    """

    left: Tensor
    right: Tensor
    factor: Tensor
    ratio: Tensor
    lipschitz: Tensor
    along: Tensor

    @property
    def holds(self) -> Tensor:
        return self.left <= self.right * (1 + 1e-9) + 1e-15


def theorem2(network: Layers, other: Layers, x: Tensor, count: int = 50) -> Theorem2:
    r"""How far the influence moves when only the top layer is trained again.

    For f(x) = w·h(x) + b and the sigmoid σ of it, with the influence over a distribution of points on the line to x,

        χ(x; w) = E_t [∂σ(f(t x))/∂(t x)],    t in [0, 1],

        ‖χ(x; w) − χ(x; w')‖₂ ≤ K [σ'(x; w) · ‖w − λ w'‖₂ + C],
        λ = σ'(x; w') / σ'(x; w),    C = ½ (‖w‖₂ + ½ ‖w − w'‖₂),    σ' = σ (1 − σ) at f(x).

    K is the largest operator norm of h's Jacobian on the line. It is not the largest ‖h(a) − h(b)‖ / ‖a − b‖ over
    points of the line (``along``), though that is what "h is K-Lipschitz on the support" says: an influence is a
    gradient, which sees all directions, and with that constant the inequality fails often. Both are exact here: the
    line crosses finitely many regions, every crossing is computed, and between two of them the Jacobian is constant.
    (Regions that the line meets for less than 1e-13 of its length are left out, and no point is taken in them.)

    The proof's step E[ab] ≤ E[a] E[b] does not hold in general; E[ab] ≤ E[a] sup b does, and is all it needs. The top
    biases may differ too. C does not vanish with w' = w, so the bound is never below ½ K ‖w‖ and is not tight.

    t is (i − ½) / count for i = 1 ... count with equal weights. Of two logits the difference counts: w = w₁ − w₀.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.paper.theorems import theorem2
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> again = Network((layers[0], 0.5 * layers[1]), network.biases, hf.Retraining())  # another top layer
        >>> theorem2(network, again, torch.tensor([[1.0, 1.0], [2.0, -1.0]])).holds.tolist()
        [True, True]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.2, Theorem 2; proof in Appendix A.2.
    """
    for each in (network, other):
        check_layers(each, "Theorem 2", logits=1)
    _check_top_only(network, other)
    check_rows_of(network, x, "Theorem 2")
    check_whole("count", count, least=1)
    rows = x.double()
    weights, biases = ([tensor.detach().to(rows) for tensor in each[:-1]] for each in (network.weights, network.biases))
    tops = [_top(each.weights[-1].to(rows), each.biases[-1].to(rows)) for each in (network, other)]
    heads = torch.stack([head for head, _ in tops])  # (2, hidden)
    shifts = torch.stack([shift for _, shift in tops])  # (2,)
    sides = [_sides(weights, biases, heads, shifts, row, count) for row in rows]
    left, lipschitz, along = (torch.stack(sides) if sides else rows.new_empty(0, 3)).unbind(1)
    slopes = _slope(_hidden(weights, biases, rows)[1] @ heads.T + shifts)  # (n, 2) σ'(x; w), σ'(x; w')
    # σ'(w)‖w − λw'‖ = ‖σ'(w) w − σ'(w') w'‖, which does not divide by a σ' that may have underflowed.
    change = torch.linalg.vector_norm(slopes[:, :1] * heads[0] - slopes[:, 1:] * heads[1], dim=1)
    constant = 0.5 * (heads[0].norm() + 0.5 * (heads[0] - heads[1]).norm())
    factor = change + constant
    return Theorem2(left, lipschitz * factor, factor, slopes[:, 1] / slopes[:, 0], lipschitz, along)


def _sides(weights: list[Tensor], biases: list[Tensor], heads: Tensor, shifts: Tensor, x: Tensor, count: int) -> Tensor:
    """‖χ − χ'‖, the largest ‖J‖₂ and the largest ‖J x‖ / ‖x‖ over the line from 0 to one row x (d,): (3,)."""
    breaks = _breaks(weights, biases, x)  # (p + 1,)
    middle = (breaks[1:] + breaks[:-1]) / 2
    jacobian = _jacobian(weights, biases, middle[:, None] * x)  # (p, hidden, d)
    lipschitz = _operator_norm(jacobian).amax()
    along = (jacobian @ torch.nn.functional.normalize(x, dim=0)).norm(dim=1).amax()
    at = (torch.arange(count).to(x) + 0.5) / count
    # Each point takes the gradient of the piece (break, next break] that holds it: the one there, but on a kink.
    gradient = (heads @ jacobian)[torch.searchsorted(breaks, at) - 1]  # (count, 2, d)
    slopes = _slope(_hidden(weights, biases, at[:, None] * x)[1] @ heads.T + shifts)  # (count, 2)
    influence = (slopes[..., None] * gradient).mean(0)  # (2, d)
    return torch.stack([(influence[0] - influence[1]).norm(), lipschitz, along])


def _breaks(weights: list[Tensor], biases: list[Tensor], x: Tensor) -> Tensor:
    """Where on the line t x, 0 ≤ t ≤ 1, a unit turns on or off: rising, from 0 to 1, (p + 1,).

    Layer by layer: between the breaks of the layers below, a unit is linear in t, so its values at two neighbouring
    breaks tell whether and where it is 0 between them.
    """
    breaks = torch.tensor([0.0, 1.0]).to(x)
    for layer in range(len(weights)):
        values, _ = _hidden(weights[: layer + 1], biases[: layer + 1], breaks[:, None] * x)  # (p + 1, width)
        before, after = values[:-1], values[1:]
        where = breaks[:-1, None] + breaks.diff()[:, None] * (before / (before - after))
        crossed = where[before.sign() * after.sign() < 0]
        breaks = torch.unique(torch.cat([breaks, (crossed * GRID).round() / GRID]))  # which sorts
    return breaks


def _jacobian(weights: list[Tensor], biases: list[Tensor], x: Tensor) -> Tensor:
    """∂h/∂x of the last of these rectified layers: (n, hidden, d)."""
    jacobian = None
    for weight, bias in zip(weights, biases, strict=True):
        x = x @ weight + bias
        jacobian = weight.T.expand(len(x), -1, -1) if jacobian is None else weight.T @ jacobian
        jacobian = jacobian * (x > 0)[:, :, None]
        x = x.relu()
    return torch.eye(x.shape[1]).to(x).expand(len(x), -1, -1) if jacobian is None else jacobian


def _operator_norm(matrix: Tensor) -> Tensor:
    """The largest singular value, from the smaller of the two Gram matrices: (n,)."""
    gram = matrix @ matrix.mT if matrix.shape[1] <= matrix.shape[2] else matrix.mT @ matrix
    largest: Tensor = torch.linalg.eigvalsh(gram)[:, -1]
    return largest.clamp_min(0).sqrt()


def _hidden(weights: list[Tensor], biases: list[Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """The last of these layers before and after its relu; x itself where there are none."""
    units = hidden_units(weights, biases, x)
    return (units[-1], units[-1].relu()) if units else (x, x)


def _slope(logit: Tensor) -> Tensor:
    """σ' = σ (1 − σ), also far out."""
    return torch.sigmoid(logit) * torch.sigmoid(-logit)


def _top(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """The single logit of a network of one or two: w (hidden,), b."""
    if weight.shape[1] == 1:
        return weight[:, 0], bias[0]
    return weight[:, 1] - weight[:, 0], bias[1] - bias[0]


def _check_top_only(network: Layers, other: Layers) -> None:
    shapes, others = ([tuple(weight.shape) for weight in each.weights] for each in (network, other))
    if shapes != others:
        raise ValueError(
            f"the networks have layers {shapes} and {others}; Theorem 2 changes the top layer's numbers only"
        )
    if shapes[-1][1] > 2:
        raise ValueError(f"Theorem 2 is about two classes, one or two logits; the networks have {shapes[-1][1]}")
    below = zip(network.weights[:-1] + network.biases[:-1], other.weights[:-1] + other.biases[:-1], strict=True)
    if not all(torch.equal(layer, other_layer) for layer, other_layer in below):
        raise ValueError(
            "the networks differ below the top layer; Theorem 2 says nothing about that. Retrain the top layer alone, "
            "or take the other network's layers below the top from the first"
        )


# ------------------------------------------------------------------------------------------------ Proposition 1


@dataclass(frozen=True, eq=False)
class Proposition1:
    """A gradient's norm at x' = t x, and what the curve t ↦ q(t x) says of it.

    Attributes:
        norm: (n,) ‖∇q(x')‖₂
        slope: (n,) ∂q(t x)/∂t = ∇q(x')·x: it may be negative
        printed: (n,) ‖x‖⁻¹ |∂q(r x')/∂r| at r = 1, as in the paper
        sharp: (n,) ‖x‖⁻¹ |∂q(t x)/∂t|, which is printed / t

    Examples:
        >>> import torch
        >>> from holdfast.paper.theorems import proposition1
        >>> both = proposition1(lambda x: x.square().sum(1), torch.tensor([[3.0, 4.0]]), 0.5)  # the gradient is along x
        >>> both.norm.tolist(), both.sharp.tolist(), both.printed.tolist()
        ([5.0], [5.0], [2.5])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.3, Proposition 1; proof in Appendix A.3.
    """

    norm: Tensor
    slope: Tensor
    printed: Tensor
    sharp: Tensor

    @property
    def holds(self) -> Tensor:
        """norm ≥ sharp ≥ printed."""
        slack = 1 + 1e-9
        return (self.norm * slack >= self.sharp) & (self.sharp * slack >= self.printed)


def proposition1(q: Callable[[Tensor], Tensor], x: Tensor, t: Tensor | float) -> Proposition1:
    r"""The slope of q along the line from 0 to x bounds its gradient from below, at x' = t x with 0 ≤ t ≤ 1.

        ‖∇q(x')‖ ≥ ‖x‖⁻¹ |∂q(t x)/∂t| = (t ‖x‖)⁻¹ |∂q(r x')/∂r|_{r=1} ≥ ‖x‖⁻¹ |∂q(r x')/∂r|_{r=1}

    The last is the printed bound: ∂q(r x')/∂r at r = 1 is ∇q(x')·x' = t ∇q(x')·x, so it is t times weaker than need be
    and says nothing near t = 0. The first is what the paper then uses, a derivative in t; it is an equality just where
    the gradient is parallel to x. Two cautions: ∂σ(t x)/∂t may be negative, so that its absolute value must be kept;
    and this is a lower bound, so that a small slope along the line does not make the gradient small.

    ``q`` maps rows (n, d) to numbers (n,), for example ``lambda x: model(x).softmax(1)[:, 1]``; t is a number, or (n,).

    Examples:
        >>> import torch
        >>> from holdfast.paper.theorems import proposition1
        >>> both = proposition1(lambda x: x[:, 0], torch.tensor([[3.0, 4.0]]), 1.0)
        >>> both.norm.tolist(), both.slope.tolist(), both.holds.tolist()
        ([1.0], [3.0], [True])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.3, Proposition 1; proof in Appendix A.3.
    """
    check_rows(x)
    check_callable(q, "function q", "rows -> one number each, such as lambda x: model(x).softmax(1)[:, 1]")
    if isinstance(t, Tensor) and t.ndim and tuple(t.shape) != (len(x),):
        raise ValueError(f"t must be one number, or one for each of {len(x)} rows, got shape {tuple(t.shape)}")
    if not isinstance(t, Tensor):
        check_number("t", t)
    t = torch.as_tensor(t, dtype=x.dtype, device=x.device).expand(len(x))
    if not bool(((t >= 0) & (t <= 1)).all()):
        raise ValueError(f"t must lie in [0, 1], got {float(t.min()):.6g} to {float(t.max()):.6g}")
    with torch.enable_grad():
        point = (t[:, None] * x).detach().requires_grad_()
        value = q(point)
        if not isinstance(value, Tensor) or value.shape != (len(x),):
            given = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(
                f"q gave {given} for {len(x)} rows; expected a number for each, for example "
                "lambda x: model(x).softmax(1)[:, 1]"
            )
        (gradient,) = torch.autograd.grad(value.sum(), point)
    slope = (gradient * x).sum(1)
    length = x.norm(dim=1)
    sharp = torch.where(length > 0, slope.abs() / length.clamp_min(torch.finfo(x.dtype).tiny), 0.0)
    return Proposition1(gradient.norm(dim=1), slope, t * sharp, sharp)
