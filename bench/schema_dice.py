"""Counterfactuals that people can really become: ours against those of the real DiCE, on the same networks and rows.

DiCE runs in an environment of its own (`bench/_peers/with_dice_schema.py`). It is handed the raw table, what may vary,
and for each row the ranges and levels that the schema leaves it, narrowed by the direction in which a number may go;
its random and its genetic search are asked for four counterfactuals each. All its points are encoded and judged by the
same `assess` as ours in the schema space, which first moves them to the nearest possible point, whole numbers and steps
among them: DiCE knows no grid but decimals. The cheapest that is found counts, so theirs is the best of two methods in
either norm while ours is one search per norm. Costs are means over the rows that both found; `cost_ratio` is ours over
theirs, and `dearer` counts the rows on which ours costs more by over a tenth. Rows on which a method of DiCE fails are
named; `late` is how often one ran out of its time for a row. Neither counts as found, both count as time. Its times are
those of four counterfactuals, ours of one, taken warm. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from _side_by_side import flags, show, timed
from torch import Tensor

from holdfast import Encoding, Retraining, Space, assess, make_method, other_class, train
from holdfast.datasets import DATASETS
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.merged import merged
from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.tabular.feature import Feature

HERE = Path(__file__).parent
PYTHON = HERE.parent / ".venv-dice" / "bin" / "python"
THEIRS = ("random", "genetic")
OURS = {1: "min-l1", 2: "min-l2"}
MERGED = {"warfarin": ((0,), (1, 2))}


@dataclass(frozen=True)
class Question:
    name: str
    encoding: Encoding
    layers: dict[str, np.ndarray]
    groups: tuple[tuple[int, ...], ...]
    model: Model
    known: pd.DataFrame
    asked: pd.DataFrame
    rows: Tensor
    target: Tensor
    space: Space


def ask(name: str, count: int) -> Question:
    data = prepare(name)
    (x, y), asked, encoding = data.rows, data.test[:count], data.encoding
    network = train(x, y, PAPER_RECIPES[name], [Retraining()])[0]
    groups = MERGED.get(name, ((0,), (1,)))
    model, rows = merged(network, groups) if name in MERGED else network, data.question(count)
    layers = {
        f"{part}_{place}": values.numpy()
        for part, held in (("weight", network.weights), ("bias", network.biases))
        for place, values in enumerate(held)
    }
    target = other_class(model, rows)
    return Question(
        name, encoding, layers, groups, model, data.train, asked, rows, target, encoding.space.to(rows).without_people()
    )


# ---- raw rows as the peer reads them: one number per feature ----


def in_levels(feature: Feature) -> bool:
    """Whether it is a category for DiCE; what counts its levels is a whole number."""
    return feature.kind in ("categorical", "binary")


def raw(table: pd.DataFrame, encoding: Encoding) -> np.ndarray:
    """(n, f)"""
    columns = [
        table[feature.name] if feature.is_numeric else [feature.values.index(level) for level in table[feature.name]]
        for feature in encoding.schema.features
    ]
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def readable(values: np.ndarray, encoding: Encoding) -> pd.DataFrame:
    """Back to a table, whole numbers rounded."""
    columns = {}
    for feature, column in zip(encoding.schema.features, values.T, strict=True):
        whole = np.rint(column).astype(np.int64) if feature.kind != "real" else column
        columns[feature.name] = whole if feature.is_numeric else [feature.values[place] for place in whole]
    return pd.DataFrame(columns)


def ranges(values: np.ndarray, encoding: Encoding) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest number of each feature for each row: (n, f), (n, f)."""
    first = [place.start for _, place in encoding.places]
    way = np.array([{"any": 0, "rise": 1, "fall": -1}[feature.direction] for feature in encoding.schema.features])
    lower, upper = np.broadcast_to(encoding.lower[first], values.shape), encoding.upper[first]
    low, high = np.where(way > 0, values, lower), np.where(way < 0, values, upper)
    return np.minimum(low, values), np.maximum(high, values)


def reachable(values: np.ndarray, encoding: Encoding) -> np.ndarray:
    """Which levels each row may take: (n, f, levels)."""
    features = encoding.schema.features
    allowed = np.zeros((*values.shape, max(len(feature.values) for feature in features)), dtype=bool)
    for place, feature in enumerate(features):
        allowed[:, place, : len(feature.values)] = [level not in feature.avoid for level in feature.values]
    return allowed | (np.arange(allowed.shape[2]) == values[..., None])


def write(question: Question, file: Path) -> None:
    """As the peer reads it: see `_peers/with_dice_schema.py`."""
    encoding = question.encoding
    features, rows = encoding.schema.features, raw(question.asked, encoding)
    marked = [range(place.stop - place.start) if f.kind == "categorical" else [-1] for f, place in encoding.places]
    low, high = ranges(rows, encoding)
    with torch.no_grad():
        classes = question.model(encoding.encode(question.known)).argmax(1)
    np.savez(
        file,
        groups=[place for _, place in sorted((o, place) for place, group in enumerate(question.groups) for o in group)],
        owner=[place for place, columns in enumerate(marked) for _ in columns],
        level=[level for columns in marked for level in columns],
        shift=encoding.shift,
        scale=encoding.scale,
        names=list(encoding.schema.names),
        levels=[len(feature.values) if in_levels(feature) else 0 for feature in features],
        whole=[feature.kind != "real" for feature in features],
        vary=[feature.mutable for feature in features],
        known=raw(question.known, encoding),
        classes=classes.numpy(),
        rows=rows,
        target=question.target.numpy(),
        low=low,
        high=high,
        allowed=reachable(rows, encoding),
        **question.layers,
    )  # fmt: skip


# ---- both sides ----


def theirs(question: Question) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "question.npz"), Path(folder, "answer.npz")
        write(question, asked)
        script = HERE / "_peers" / "with_dice_schema.py"
        ran = subprocess.run([PYTHON, script, asked, answered], capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(f"DiCE failed on {question.name}:\n{ran.stderr[-3000:]}")
        with np.load(answered) as held:
            return dict(held)


def judged(question: Question, answered: dict[str, np.ndarray], method: str, norm: int) -> tuple[Tensor, Tensor]:
    """The cheapest point of one of DiCE's methods for each row (n, d), and its cost, infinite where there is none."""
    point, least = question.rows.clone(), torch.full((len(question.rows),), torch.inf)
    whose, values = answered[f"{method}_row"], answered[f"{method}_values"]
    if len(values):
        found = question.encoding.encode(readable(values, question.encoding))
        answer = assess(question.model, question.rows[whose], found, question.target[whose], question.space)
        for row, candidate, cost in zip(whose, answer.point, answer.cost(norm).nan_to_num(torch.inf), strict=True):
            if cost < least[row]:
                point[row], least[row] = candidate, cost
    return point, least


def ours(question: Question, norm: int) -> tuple[Counterfactuals, float]:
    method, rows, target = make_method(OURS[norm]), question.rows, question.target
    method(question.model, rows[:2], target[:2], question.space)
    return timed(lambda: method(question.model, rows, target, question.space))


def compare(question: Question, answered: dict[str, np.ndarray], norm: int) -> dict[str, Any]:
    costs = torch.stack([judged(question, answered, method, norm)[1] for method in THEIRS])  # (2, n)
    best, count = costs.amin(0), len(question.rows)
    answer, seconds = ours(question, norm)
    cost = answer.cost(norm)
    both = answer.found & best.isfinite()
    their_cost, our_cost = (float(values[both].double().mean()) for values in (best, cost))
    random, genetic = (1000 * float(answered[f"{method}_seconds"]) / count for method in THEIRS)
    return {
        "dataset": question.name,
        "norm": norm,
        "rows": count,
        "found_random": int(costs[0].isfinite().sum()),
        "found_genetic": int(costs[1].isfinite().sum()),
        "found_theirs": int(best.isfinite().sum()),
        "found_ours": int(answer.found.sum()),
        "both": int(both.sum()),
        "cost_theirs": their_cost,
        "cost_ours": our_cost,
        "cost_ratio": our_cost / their_cost,
        "dearer": int((cost > 1.1 * best)[both].sum()),
        "ms_random": random,
        "ms_genetic": genetic,
        "ms_ours": 1000 * seconds / count,
        "late": sum(int(answered[f"{method}_late"]) for method in THEIRS),
    }


def main() -> None:
    options = flags(__doc__ or "")
    if not PYTHON.exists():
        raise SystemExit(
            f"DiCE cannot be asked: there is no environment {PYTHON.parent.parent.name}; build it with: make fidelity"
        )
    names = [name for name, card in DATASETS.items() if card.state() == "here"]
    rows = []
    for name in ["german"] if options.quick else names:
        question = ask(name, 10 if options.quick else 50)
        answered = theirs(question)
        for problem in (problem for method in THEIRS for problem in answered[f"{method}_failed"]):
            print(f"{name}: DiCE failed on {problem}")
        rows += [compare(question, answered, norm) for norm in OURS]
    if not rows:
        raise SystemExit("there is no dataset to compare on; point HOLDFAST_DATA at a folder that has them")
    show("Our searches against DiCE, in the schema space", rows, options.json)


if __name__ == "__main__":
    main()
