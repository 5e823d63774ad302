"""A table with every kind of feature, and trees over it that are drawn by chance."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from conftest import EVERYTHING, everything
from torch import Tensor

from holdfast import Encoding, Feature, MinCost, Space
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapters.input_spec import table_input
from holdfast.models.adapters.output_spec import OutputSpec
from holdfast.models.checked import checked_model
from holdfast.models.model import Model
from holdfast.models.scores import Score, margin
from holdfast.models.trees.ensemble import Ensemble
from holdfast.models.wrapped import WrappedModel
from holdfast.search.engine.search import wanted_of
from holdfast.search.gradients import LEAST_SCORE

ROWS = 12


def table(rows: int = 80) -> pd.DataFrame:
    """Every kind of feature, with a gap and with missing numbers."""
    draw = np.random.default_rng(5)
    more = pd.DataFrame(
        {
            "limit": draw.choice([*range(11), *range(50, 61)], rows),
            "rating": np.where(draw.random(rows) < 0.2, np.nan, draw.normal(0, 3, rows).round(4)),
        }
    )
    return pd.concat([everything(rows), more], axis=1)


MORE = (
    Feature("limit", "integer", ranges=((0, 10), (50, 60))),
    Feature("rating", "real", lower=-9, upper=9, missing=True),
)
SCHEMA = replace(EVERYTHING, features=(*EVERYTHING.features, *MORE))
ENCODING = Encoding.fit(table(), SCHEMA)


def grown(
    seed: int, encoding: Encoding = ENCODING, outputs: int = 1, trees: int = 6, used: int = 4, link: str = "logit"
) -> Ensemble:
    """Trees of four leaves over some features, drawn by chance."""
    draw = np.random.default_rng(seed)
    features = encoding.schema.features
    chosen = draw.permutation(len(features))[:used]
    edges = []
    for place, feature in enumerate(features):
        own = encoding.known[feature.name].dropna().to_numpy() if feature.is_numeric else np.empty(0)
        own = np.unique(draw.choice(own, 3)).astype(float) if place in chosen and len(own) else np.empty(0)
        edges.append(own + (0.5 if feature.kind == "integer" else 0.0))
    most = max(len(feature.values) + feature.missing for feature in features)
    sets = draw.random((3 * trees, most)) < 0.5
    feature, split, value = [], [], []
    for _ in range(trees):
        for node in range(7):
            own = int(draw.choice(chosen)) if node < 3 else -1
            if own >= 0 and features[own].is_numeric and not len(edges[own]):
                own = next(int(other) for other in chosen if not features[other].is_numeric or len(edges[other]))
            feature.append(own)
            number = own >= 0 and features[own].is_numeric
            split.append(int(draw.integers(len(edges[own]))) if number else int(draw.integers(len(sets))))
            leaf = (
                draw.normal(size=outputs)
                if link == "logit"
                else draw.dirichlet(np.ones(max(2, outputs)))[:outputs] / trees
            )
            value.append(leaf if node > 2 else np.zeros(outputs))
    start = np.arange(trees)[:, None] * 7
    left, right = ((start + ends).ravel() for ends in ([1, 3, 5, 0, 0, 0, 0], [2, 4, 6, 0, 0, 0, 0]))
    i32 = np.int32
    return Ensemble(
        encoding,
        tuple(edges),
        np.array(feature, i32),
        np.array(split, i32),
        draw.random(7 * trees) < 0.5,
        left.astype(i32),
        right.astype(i32),
        np.array(value),
        (np.arange(trees) * 7).astype(i32),
        sets,
        np.zeros(outputs),
        link,
    )


def deployed(ensemble: Ensemble) -> WrappedModel:
    """The trees as the user's own object, asked about tables."""
    encoding = ensemble.encoding
    classes = encoding.schema.classes

    def ask(rows: pd.DataFrame) -> np.ndarray:
        return ensemble.logits(ensemble.raw(ensemble.cells(rows)))

    output = OutputSpec("logits", classes, tuple(range(len(classes))))
    given = table_input(encoding, "table", "frame")
    adapter = Adapter(ensemble, encoding, "trees drawn by chance", "function", ask, given, output)
    return WrappedModel(adapter, ensemble=ensemble)


# ---- what is searched ----


@dataclass(frozen=True, eq=False)
class Question:
    """People who want another class of a model."""

    model: Model
    encoding: Encoding
    x: Tensor
    target: Tensor
    space: Space
    norm: int = 1
    score: Score = margin

    def point(self) -> Tensor:
        """Where the search leads them; where they are, if nowhere."""
        assert wanted_of(checked_model(self.model), self.score) is not None, "another search would be asked"
        return MinCost(norm=self.norm).cheapest(checked_model(self.model), self.x, self.target, self.space, self.score)

    def enough(self, point: Tensor, least: float = LEAST_SCORE) -> Tensor:
        kept = ~self.space.violations(point, self.x).any(1)
        return kept & (self.score(checked_model(self.model), point, self.target, self.x) > least)

    def cost(self, point: Tensor) -> Tensor:
        return (self.space.moved(point, self.x).double() ** self.norm).sum(1)

    def of(self, rows: Tensor) -> Question:
        return replace(self, x=self.x[rows], target=self.target[rows], space=self.space.of(rows))


def question(ensemble: Ensemble, norm: int = 1, dtype: torch.dtype = torch.float32, space=None) -> Question:
    model = deployed(ensemble)
    x = ensemble.encoding.encode(ensemble.encoding.known.iloc[:ROWS], dtype)
    target = (model(x).argmax(1) + 1) % len(ensemble.encoding.schema.classes)
    space = ensemble.encoding.space if space is None else space
    return Question(model, ensemble.encoding, x, target, replace(space, people=None, related=None).to(x), norm)


def values_worth_a_look(edges: tuple, place: int, own: Question) -> Tensor:
    """For one person and one feature: the cheapest valid value between every two thresholds, as encoded rows."""
    encoding = own.encoding
    feature, columns = encoding.places[place]
    if feature.is_numeric:
        beside = [0.0, 1e-6, -1e-6, 0.01, -0.01, 1.0, -1.0, 100.0, -100.0]
        raw = [edge + step for edge in edges[place] for step in beside]
        if feature.missing:  # beside what stands for a missing number
            raw += [float(encoding.known[feature.name].mean()) + step for step in (1e-4, -1e-4)]
        raw = [round(value) for value in raw] if feature.kind == "integer" else raw
    else:
        raw = list(feature.values)
    rows = own.x.repeat(len(raw) + 1, 1)
    if raw:
        told = encoding.decode(own.x).iloc[np.zeros(len(raw), dtype=int)].assign(**{feature.name: raw})
        rows[1:, columns] = encoding.encode(told, own.x.dtype)[:, columns]
    everybody = own.of(torch.zeros(len(rows), dtype=torch.long))
    rows = everybody.space.snap(rows, everybody.x)
    paid = everybody.cost(rows)
    said = encoding.decode(rows)[feature.name]
    cell = said.astype(str)
    if feature.is_numeric:
        cell = np.where(said.isna(), -1, np.searchsorted(edges[place], said.to_numpy(float)))
    cheapest = pd.DataFrame({"cell": cell, "paid": paid.numpy()}).groupby("cell").paid.idxmin()
    return rows[torch.tensor(sorted({0, *cheapest}))]


def least(asks: Question, edges: tuple, used: list[int], row: int) -> float:
    """What the cheapest of all points of a row costs that scores enough; infinite if there is none."""
    own = asks.of(torch.tensor([row]))
    several = [values_worth_a_look(edges, place, own) for place in used]
    points = own.x.repeat(int(np.prod([len(values) for values in several])), 1)
    for place, choice in zip(used, zip(*itertools.product(*several), strict=True), strict=True):
        columns = asks.encoding.places[place][1]
        points[:, columns] = torch.stack(choice)[:, columns]
    many = own.of(torch.zeros(len(points), dtype=torch.long))
    return float(torch.where(many.enough(points, 1.03 * LEAST_SCORE), many.cost(points), torch.inf).min())


def used_by(ensembles: list[Ensemble]) -> list[int]:
    """The features that some tree tests."""
    return sorted({int(place) for own in ensembles for place in own.feature if place >= 0})
