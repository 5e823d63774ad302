"""How much a certificate against all changes of the weights proves, and whether it predicts invalidation.

PGD's counterfactuals of the first 200 test rows of German and HELOC in the paper's free space, one deployed network.
First table: the certified radius of each, absolute and relative; how often a million random changes of all weights and
biases inside it (half of them corners of the box) and sign-gradient steps on all of them flip a class, which must be
never: the script fails otherwise; the smallest change for which such steps do flip it, as a multiple of the radius
(gap: 1 would be a perfect certificate); and the radius as a multiple of that of intervals alone. Second: rank
correlations of the radius with how often 100 networks with new seeds invalidate a counterfactual. Third: moving to
where more is proved (`Certified`, by delta), against `SNS` and `Confidence` in the same ball. Datasets are found
through HOLDFAST_DATA.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import pandas as pd
import torch
from _side_by_side import flags, keep, rated, show, timed
from torch import Tensor

from holdfast import PGD, SNS, Audit, Confidence, Counterfactuals, Retraining, Space, audit, other_class, seeds, train
from holdfast.auditing.predictors import what_predicts
from holdfast.datasets.prepared import prepare
from holdfast.families.perceptron import Network
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.scores import log_odds
from holdfast.search.stabilisers.certified import Certified
from holdfast.theory.certificates import Absolute, Change, Relative, certified_radius

RADII = {"german": 3.0, "heloc": 2.1}
CHANGES: dict[str, Change] = {"absolute": Absolute(), "relative": Relative()}
DELTAS: dict[str, tuple[float, ...]] = {"absolute": (0.0003, 0.001, 0.003, 0.01), "relative": (0.01, 0.03)}
FURTHEST = 100.0  # times the radius: as far as the attack looks
Rows = list[dict[str, Any]]
Layers = list[tuple[Tensor, Tensor]]


def study(name: str, quick: bool) -> tuple[Rows, Rows, Rows]:
    rows, members, draws, steps, deltas = (8, 2, 50, 10, 1) if quick else (200, 100, 2600, 200, None)
    data = prepare(name)
    (x, y), question = data.rows, data.question(rows)
    recipe, space, ball = PAPER_RECIPES[name], Space.free(x), 0.8 * RADII[name]
    model = train(x, y, recipe, [Retraining()])[0]
    assert isinstance(model, Network)
    target = other_class(model, question)
    start, seconds = timed(lambda: PGD(radius=RADII[name])(model, question, target, space))
    proofs = [proof(name, model, start[start.found], kind, draws, 20 if quick else 1000) for kind in CHANGES]

    family = train(x, y, recipe, seeds(members), progress=True)
    answers = {"pgd": (start, seconds)}
    for method, stabilise in {
        "pgd+sns": SNS(radius=ball, steps=steps),
        "pgd+confidence": Confidence(radius=ball, steps=steps),
        **{
            f"pgd+certified {delta} {kind}": Certified(radius=ball, steps=steps, delta=delta, change=CHANGES[kind])
            for kind in CHANGES
            for delta in DELTAS[kind][:deltas]
        },
    }.items():
        answers[method] = timed(lambda s=stabilise: s(model, start, space))
    audits = {method: audit(answer, family) for method, (answer, _) in answers.items()}
    known = {method: before(model, answer) for method, (answer, _) in answers.items()}
    three = ("pgd", "pgd+sns", "pgd+confidence")  # none of which has looked at a certificate
    predicted = [
        {"dataset": name, "methods": title, **line}
        for title, some in {"pgd": three[:1], "pgd, +sns, +confidence": three}.items()
        for line in what_predicts({m: audits[m] for m in some}, {m: known[m] for m in some}).to_dict("records")
    ]
    moved = [row(name, m, audits[m], answers[m][1], known[m]) for m in answers]
    return proofs, predicted, moved


# ---- what is proved, and what attacks leave of it ----


def proof(name: str, model: Network, answer: Counterfactuals, kind: str, draws: int, count: int) -> dict[str, Any]:
    change, point, target = CHANGES[kind], answer.point.double(), answer.target
    radius = certified_radius(model, answer.point, target, change)
    many = -(-count // len(point))
    _, seconds = timed(
        lambda: certified_radius(model, answer.point.repeat(many, 1)[:count], target.repeat(many)[:count], change)
    )
    layers = [(w.double(), b.double()) for w, b in zip(model.weights, model.biases, strict=True)]
    reach = change.reach(model)
    tried, flips = random_flips(layers, reach, point, target, radius, draws)
    inside = int((attacked(layers, reach, point, target, radius) <= 0).sum())
    if flips or inside:
        raise SystemExit(f"{name}, {kind}: {flips} random changes and {inside} attacks flip a class that was certified")
    flipping = smallest_flip(layers, reach, point, target, radius) / radius
    alone = by_intervals(layers, reach, point, target)
    return {
        "dataset": name,
        "change": kind,
        "rows": len(point),
        "radius_10%": quantile(radius, 0.1),
        "radius_50%": quantile(radius, 0.5),
        "radius_90%": quantile(radius, 0.9),
        "changes": tried,
        "flips": flips,
        "attack_flips": inside,
        "gap_10%": quantile(flipping, 0.1),
        "gap_50%": quantile(flipping, 0.5),
        "gap_90%": quantile(flipping, 0.9),
        "gap_most": float(flipping.max()),
        "vs_intervals": quantile(radius / alone, 0.5),
        "s_1000_rows": 1000 * seconds / count,
    }


def quantile(values: Tensor, share: float) -> float:
    return float(torch.quantile(values, share))


def margins(logits: Tensor, target: Tensor) -> Tensor:
    own = logits.gather(-1, target.expand(logits.shape[:-1])[..., None])
    return own[..., 0] - logits.scatter(-1, target.expand(logits.shape[:-1])[..., None], -torch.inf).amax(-1)


def random_flips(
    layers: Layers, reach: Layers, x: Tensor, target: Tensor, radius: Tensor, draws: int, at_once: int = 50
) -> tuple[int, int]:
    """Pairs of a row and a change inside its own radius, and how many of them flip the class.

    A draw U between -1 and 1 is scaled to every row's radius r: x (W + r ρU) = x W + r x (ρU), two products for all.
    """
    draw, flips = torch.Generator().manual_seed(0), 0
    for first in range(0, draws, at_once):

        def moves(like: Tensor, corners: bool = first >= draws / 2) -> Tensor:
            drawn = 2 * torch.rand(at_once, *like.shape, generator=draw, dtype=like.dtype) - 1
            return like * (drawn.sign() if corners else drawn)

        hidden = x.expand(at_once, *x.shape)
        for place, ((weight, bias), (far, bias_far)) in enumerate(zip(layers, reach, strict=True)):
            hidden = torch.relu(hidden) if place else hidden
            moved = hidden @ moves(far) + moves(bias_far)[:, None]
            hidden = hidden @ weight + bias + radius[:, None] * moved
        flips += int((margins(hidden, target) <= 0).sum())
    return draws * len(x), flips


def attacked(layers: Layers, reach: Layers, x: Tensor, target: Tensor, delta: Tensor, steps: int = 15) -> Tensor:
    """The lowest margin that sign-gradient steps on all parameters find within delta, a network for each row: (n,).

    Whole corners, then steps of a tenth of the box from its centre and from a random place.
    """
    draw = torch.Generator().manual_seed(0)
    far = [delta.view(-1, *[1] * part.ndim) * part for pair in reach for part in pair]
    center = [part for pair in layers for part in pair]
    worst = torch.full_like(delta, torch.inf)
    for begin, step in ((0, 2.0), (0, 0.1), (1, 0.1)):
        move = [begin * (2 * torch.rand(part.shape, generator=draw, dtype=part.dtype) - 1) for part in far]
        for _ in range(steps + 1):
            move = [part.requires_grad_() for part in move]
            hidden = x
            for place in range(len(layers)):
                weight, bias = (center[p] + far[p] * move[p] for p in (2 * place, 2 * place + 1))
                hidden = (torch.relu(hidden) if place else hidden)[:, None] @ weight
                hidden = hidden[:, 0] + bias
            value = margins(hidden, target)
            worst = torch.minimum(worst, value.detach())
            slopes = torch.autograd.grad(value.sum(), move)
            pairs = zip(move, slopes, strict=True)
            move = [(part.detach() - step * slope.sign()).clamp(-1, 1) for part, slope in pairs]
    return worst


def smallest_flip(layers: Layers, reach: Layers, x: Tensor, target: Tensor, radius: Tensor) -> Tensor:
    """The smallest change with which the attack flips each row's class, by bisection: (n,)."""
    low, high = radius.log(), (FURTHEST * radius).log()
    for _ in range(10):
        middle = (low + high) / 2
        flipped = attacked(layers, reach, x, target, middle.exp()) <= 0
        low, high = torch.where(flipped, low, middle), torch.where(flipped, middle, high)
    return high.exp()


def by_intervals(layers: Layers, reach: Layers, x: Tensor, target: Tensor) -> Tensor:
    """The radius by interval arithmetic alone: each unit between its own ends, the logits' difference taken jointly."""
    low, high = (torch.full_like(x[:, 0], end).log() for end in (1e-9, 10.0))
    for _ in range(24):
        middle = (low + high) / 2
        parts = zip(*(torch.split(tensor, 50) for tensor in (x, target, middle.exp())), strict=True)
        holds = torch.cat([interval_margin(layers, reach, *part) for part in parts]) > 0
        low, high = torch.where(holds, middle, low), torch.where(holds, high, middle)
    return low.exp()


def interval_margin(layers: Layers, reach: Layers, x: Tensor, target: Tensor, delta: Tensor) -> Tensor:
    low = high = x
    for (weight, bias), (far, bias_far) in zip(layers[:-1], reach[:-1], strict=True):
        ends = [a[:, :, None] * (weight + s * delta[:, None, None] * far) for a in (low, high) for s in (-1, 1)]
        least = torch.minimum(torch.minimum(ends[0], ends[1]), torch.minimum(ends[2], ends[3])).sum(1)
        most = torch.maximum(torch.maximum(ends[0], ends[1]), torch.maximum(ends[2], ends[3])).sum(1)
        away = delta[:, None] * bias_far
        low, high = torch.relu(least + bias - away), torch.relu(most + bias + away)
    (weight, bias), (far, bias_far) = layers[-1], reach[-1]

    def apart(of: Tensor, sign: int) -> Tensor:
        return of[target][:, None] + sign * of

    worst = apart(weight.T, -1) - delta[:, None, None] * apart(far.T, 1)
    sums = (worst.clamp_min(0) * low[:, None] + worst.clamp_max(0) * high[:, None]).sum(-1)
    sums = sums + apart(bias, -1) - delta[:, None] * apart(bias_far, 1)
    return sums.scatter(1, target[:, None], torch.inf).amin(1)


# ---- what it says of retraining ----


def before(model: Network, answer: Counterfactuals) -> pd.DataFrame:
    """What is known of each counterfactual before any retraining; NaN where nothing was found."""
    with torch.no_grad():
        values = {
            **{
                f"certified_{kind}": certified_radius(model, answer.point, answer.target, c)
                for kind, c in CHANGES.items()
            },
            "confidence": log_odds(model, answer.point, answer.target).double(),
        }
    return pd.DataFrame({name: torch.where(answer.found, value, torch.nan) for name, value in values.items()})


def row(dataset: str, method: str, result: Audit, seconds: float, known: pd.DataFrame) -> dict[str, Any]:
    return rated(dataset, method, result) | {
        "proved_absolute": float(known["certified_absolute"].median()),
        "proved_relative": float(known["certified_relative"].median()),
        "log_odds": float(known["confidence"].median()),
        "ms_a_row": 1000 * seconds / len(result.counterfactuals),
    }


def main() -> None:
    options = flags(__doc__ or "")
    names = ("german",) if options.quick else ("german", "heloc")
    parts = [study(name, options.quick) for name in names]
    proofs, predicted, moved = (list(chain.from_iterable(tables)) for tables in zip(*parts, strict=True))
    show("What is proved, and what attacks leave of it", proofs)
    show("What predicts invalidation: rank correlation with each counterfactual's invalidation rate", predicted)
    show("Moving to where more is proved, in the same ball", moved)
    if options.json is not None:
        keep(options.json, {"proofs": proofs, "predictors": predicted, "stabilisers": moved})


if __name__ == "__main__":
    main()
