"""Counterfactuals that look like the data: sampled around a row in the code of an autoencoder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice, pairwise
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from holdfast.models.model import Model
from holdfast.models.rows import check_rows
from holdfast.models.scores import margin
from holdfast.search.counterfactuals import Counterfactuals, assess, check_is_space, checked_question
from holdfast.search.gradients import LEAST_SCORE, unit
from holdfast.search.people import people_for
from holdfast.tabular.space import Space
from holdfast.utils.draws import normal, uniform
from holdfast.utils.settings import check_seed, check_settings, check_whole
from holdfast.utils.threads import one_thread

# Memory grows neither with the samples nor with the rows: so many samples of a row are tried at a time, of so many rows
# that no layer gives more numbers than this.
SAMPLES_AT_ONCE = 256
NUMBERS_AT_ONCE = 1 << 22

Layers = tuple[tuple[Tensor, Tensor], ...]  # weight (in, out) and bias (out,) of each


@dataclass(frozen=True, eq=False)
class Autoencoder:
    """Rows to codes and back, columns scaled to [0, 1] in between: what is decoded never leaves their known range."""

    encoder: Layers
    decoder: Layers
    low: Tensor  # (d,)
    width: Tensor  # (d,) 0 where a column never changed

    def encode(self, x: Tensor) -> Tensor:
        return forward(self.encoder, self.scaled(x))

    def decode(self, code: Tensor) -> Tensor:
        return self.low + self.width * forward(self.decoder, code).sigmoid()

    def scaled(self, x: Tensor) -> Tensor:
        return (x - self.low) / torch.where(self.width > 0, self.width, 1)

    def to(self, like: Tensor) -> Autoencoder:
        """The same with the dtype and on the device of another tensor."""
        encoder, decoder = (
            tuple((weight.to(like), bias.to(like)) for weight, bias in layers)
            for layers in (self.encoder, self.decoder)
        )
        return Autoencoder(encoder, decoder, self.low.to(like), self.width.to(like))

    @property
    def code(self) -> int:
        """Width of a code."""
        return len(self.encoder[-1][1])

    @property
    def widest(self) -> int:
        return max(len(bias) for _, bias in self.decoder)


@dataclass(frozen=True)
class Latent:
    """Sampling in the code of an autoencoder (C-CHVAE, Pawelczyk et al. 2020, as Black et al. 2022 used it).

    `fit` trains an autoencoder on the rows, ``sizes`` down to the code and mirrored back. A call encodes a row as z and
    decodes z and ``samples`` points z + u with u uniform in the l2 ball of ``radius``. Each becomes the nearest valid
    point of the space, and of those that then have the target class the one nearest to the row is the answer.

    Only the decoder proposes points: what sampling does not find, no gradient finishes, because such a point need no
    longer look like the data. More shells find more. Where a space has people, the nearest sample that passes for one
    is the answer.

    Args:
        radius: The radius of the ball around the code of a row.
        samples: How many points in the ball, and again in every further shell.
        shells: How often to go on: a row without an answer is sought between radius and 2·radius, then up to 3·radius,
            ... (the growing spheres of C-CHVAE). The first shell with an answer ends the search.
        seed: The seed of the samples, which are the same for all rows.
        sizes: The widths of the encoder's layers; the last is that of the code.
        epochs: How often the training of the autoencoder sees each row.
        steps: How many steps its training takes, at most.
        batch: How many rows each step sees.
        learning_rate: The rate of its training (Adam).
        unit_codes: Scale codes so that their coordinates have a variance of 1 on average over the fitted rows;
            otherwise the length of the training decides what a radius means.
        autoencoder: What `fit` sets.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> known = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
        >>> # A model that gives class 1 where x0 + x1 > 1.
        >>> model = lambda x: torch.stack([1 - x[:, 0], x[:, 1]], dim=1)
        >>> space = hf.Space.free(known)
        >>> method = hf.Latent(sizes=(16, 2), samples=256, shells=20, epochs=10)
        >>> method = method.fit(known, hf.predict(model, known), space)
        >>> found = method(model, known[:5], hf.other_class(model, known[:5]), space)
        >>> found.success > 0
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 and Appendix B.3 (Pawelczyk et al.), as
    one ball of 1280 samples; the growing spheres are from [Pawelczyk et al. 2020](https://arxiv.org/abs/1910.09398).
    """

    source: ClassVar[str] = "Pawelczyk et al. 2020"

    radius: float = 1.0
    samples: int = 1280
    shells: int = 1
    seed: int = 2021  # one for all rows: a row's answer does not depend on its neighbours
    sizes: tuple[int, ...] = (1024, 128, 32)
    epochs: int = 100
    steps: int = 1500  # at most, so that many rows do not take minutes
    batch: int = 64
    learning_rate: float = 1e-3
    unit_codes: bool = True
    autoencoder: Autoencoder | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive="radius learning_rate",
            counts="samples shells epochs steps batch",
            flags="unit_codes",
            seeds="seed",
        )
        if not isinstance(self.sizes, (tuple, list)):
            raise TypeError(f"sizes must be a tuple, one width for each layer, such as (64, 8), got {self.sizes!r}")
        if not self.sizes:
            raise ValueError("sizes must be one width or more, such as (64, 8), got none")
        for size in self.sizes:
            check_whole("each of sizes", size, least=1)
        if self.autoencoder is not None and not isinstance(self.autoencoder, Autoencoder):
            raise TypeError(f"autoencoder is made by fit(x, y, space), got {self.autoencoder!r}")

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        """The same method with an autoencoder of these rows; the seed draws its first weights and its batches."""
        check_seed("seed", seed)
        check_is_space(space)
        check_rows(x, width=space.width)
        if not len(x):
            raise ValueError("an autoencoder is fitted to one or more rows (n, d), got none")
        with one_thread():
            return replace(self, autoencoder=self._trained(x.detach().float(), seed))

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """One counterfactual for each row of x (n, d) towards its target (n,), in the space; see `Counterfactuals`."""
        model, x, target = checked_question(model, x, target, space)
        autoencoder = self._fitted(x)
        with one_thread(), torch.no_grad():
            return assess(model, x, self._sought(model, autoencoder, x, target, space.to(x)), target, space)

    def _fitted(self, x: Tensor) -> Autoencoder:
        if self.autoencoder is None:
            raise ValueError("Latent has no autoencoder yet; fit it to the data first: Latent().fit(x, y, space)")
        columns = len(self.autoencoder.low)
        if columns != x.shape[1]:
            raise ValueError(
                f"the autoencoder was fitted to rows of {columns} columns but these have {x.shape[1]}; fit it to the "
                "rows of the same Encoding"
            )
        return self.autoencoder.to(x)

    def _sought(self, model: Model, autoencoder: Autoencoder, x: Tensor, target: Tensor, space: Space) -> Tensor:
        """The nearest sample of the class that passes for a person, or the nearest of the class, or the row itself."""
        point, todo = x.clone(), torch.nonzero(~assess(model, x, x, target, space).found).flatten()
        unlike = x.clone()
        for away in self._draws(autoencoder.code):
            if not len(todo):
                break
            near = nearest(model, autoencoder, x[todo], target[todo], space.of(todo), away.to(x))
            point[todo], first = near.plausible, (unlike[todo] == x[todo]).all(1, keepdim=True)
            unlike[todo] = torch.where(first, near.valid, unlike[todo])
            todo = todo[(near.plausible == x[todo]).all(1)]
        point[todo] = unlike[todo]
        return point

    def _draws(self, code: int) -> Iterator[Tensor]:
        """For each shell, where its samples lie as seen from the code of a row: (samples, code)."""
        generator = torch.Generator().manual_seed(self.seed)
        for shell in range(self.shells):
            away = in_shell(self.samples, code, shell * self.radius, (shell + 1) * self.radius, generator)
            yield away if shell else torch.cat([away.new_zeros(1, code), away])  # the reconstruction is tried too

    def _trained(self, x: Tensor, seed: int) -> Autoencoder:
        """Adam on the cross-entropy of the columns in [0, 1]."""
        # Rows not trained on come back at an l2 distance of 3.4 on German and .14 on HELOC, with squares 3.6 and .14.
        generator = torch.Generator().manual_seed(seed)
        sizes = (x.shape[1], *self.sizes)
        encoder, decoder = _initial(sizes, generator, x), _initial(sizes[::-1], generator, x)
        autoencoder = Autoencoder(encoder, decoder, x.amin(0), x.amax(0) - x.amin(0))
        scaled = autoencoder.scaled(x)
        weights = [tensor.requires_grad_() for tensor in chain(*encoder, *decoder)]
        optimiser = torch.optim.Adam(weights, self.learning_rate, fused=True)
        for rows in islice(self._batches(len(x), generator), self.steps):
            batch = scaled[rows.to(x.device)]
            with torch.enable_grad():
                loss = binary_cross_entropy_with_logits(forward(decoder, forward(encoder, batch)), batch)
            for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight.grad = gradient
            optimiser.step()
        for weight in weights:
            weight.requires_grad_(False)
        return _with_unit_codes(autoencoder, x) if self.unit_codes else autoencoder

    def _batches(self, rows: int, generator: torch.Generator) -> Iterator[Tensor]:
        """The rows of every step, in a new order in every epoch."""
        for _ in range(self.epochs):
            yield from torch.split(torch.randperm(rows, generator=generator), self.batch)


@dataclass(frozen=True)
class Near:
    """The nearest samples of the class (n, d): of those that pass for people, and of all; or the row itself."""

    plausible: Tensor
    valid: Tensor


def nearest(model: Model, autoencoder: Autoencoder, x: Tensor, target: Tensor, space: Space, away: Tensor) -> Near:
    """Of the points decoded at ``away`` (s, code) from each row's code, those nearest to the row; see `Near`."""
    rows_at_once = max(1, NUMBERS_AT_ONCE // (SAMPLES_AT_ONCE * max(autoencoder.widest, x.shape[1])))
    pieces = [slice(start, start + rows_at_once) for start in range(0, len(x), rows_at_once)]
    found = [_nearest(model, autoencoder, x[rows], target[rows], space.of(rows), away) for rows in pieces]
    return Near(torch.cat([near.plausible for near in found]), torch.cat([near.valid for near in found]))


def _nearest(model: Model, autoencoder: Autoencoder, x: Tensor, target: Tensor, space: Space, away: Tensor) -> Near:
    """The same for few rows."""
    code, people = autoencoder.encode(x), people_for(model, space)
    limit = None if people is None else people.limits(x, target)
    best, least = [x, x], [torch.full_like(x[:, 0], torch.inf)] * 2
    for samples in torch.split(away, SAMPLES_AT_ONCE):
        whose = torch.arange(len(x), device=x.device).repeat_interleave(len(samples))
        origin, wanted = x[whose], target[whose]
        # Made valid before the model is asked, so that the answer is the nearest of what a person can really do.
        tried = space.of(whose).snap(autoencoder.decode((code[:, None] + samples).flatten(0, 1)), origin)
        cost = torch.linalg.vector_norm(tried - origin, dim=1)
        cost = torch.where(margin(model, tried, wanted) > LEAST_SCORE, cost, torch.inf)
        costs = [cost, cost]
        if people is not None and limit is not None:
            nearer = torch.nonzero(cost < least[0][whose]).flatten()  # others need not be compared with people
            passes = people.like(tried[nearer], wanted[nearer], limit[whose[nearer]])
            costs[0] = cost.scatter(0, nearer[~passes], torch.inf)
        for kind, cost in enumerate(costs):
            shortest, chosen = cost.view(len(x), -1).min(1)
            point = tried.view(len(x), -1, x.shape[1])[torch.arange(len(x), device=x.device), chosen]
            closer = shortest < least[kind]
            best[kind] = torch.where(closer[:, None], point, best[kind])
            least[kind] = torch.where(closer, shortest, least[kind])
    return Near(*best)


def in_shell(count: int, width: int, inner: float, outer: float, generator: torch.Generator) -> Tensor:
    """Points uniform between two l2 spheres around zero: the share of a ball within r is r^width. (count, width)"""
    direction = unit(normal((count, width), generator))
    hollow = (inner / outer) ** width
    filled = hollow + (1 - hollow) * uniform((count, 1), generator)
    return direction * outer * filled ** (1 / width)


def forward(layers: Layers, x: Tensor) -> Tensor:
    """Rectified between layers, not after the last."""
    for weight, bias in layers[:-1]:
        x = torch.addmm(bias, x, weight).relu_()
    weight, bias = layers[-1]
    return torch.addmm(bias, x, weight)


def _initial(sizes: tuple[int, ...], generator: torch.Generator, like: Tensor) -> Layers:
    """Glorot-uniform weights, zero biases, drawn on the CPU so that a seed means the same on any device."""
    layers = []
    for shape in pairwise(sizes):
        drawn = torch.empty(shape, dtype=torch.float32).uniform_(-1, 1, generator=generator)
        layers.append(((math.sqrt(6 / sum(shape)) * drawn).to(like), like.new_zeros(shape[1])))
    return tuple(layers)


def _with_unit_codes(autoencoder: Autoencoder, x: Tensor) -> Autoencoder:
    """The same function of rows, by codes of variance 1: one factor for all coordinates, so that balls stay balls."""
    spread = autoencoder.encode(x).var(0, correction=0).mean().sqrt()
    spread = torch.where(spread > 0, spread, 1)
    (inward, inward_bias), (outward, outward_bias) = autoencoder.encoder[-1], autoencoder.decoder[0]
    encoder = (*autoencoder.encoder[:-1], (inward / spread, inward_bias / spread))
    decoder = ((outward * spread, outward_bias), *autoencoder.decoder[1:])
    return replace(autoencoder, encoder=encoder, decoder=decoder)
