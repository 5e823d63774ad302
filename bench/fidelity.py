"""Our searches against those of the real reference libraries, on the same networks, rows and bounds.

ART, foolbox, alibi and DiCE each run in an environment of their own (`bench/_peers`), are handed one network trained
as the paper does, and answer points. Their points and ours are judged by the same `assess` in the paper's free space.
Costs are means over the rows that both found, in the norm of the method; ratios above 1 are in our favour. Each side
is timed once warm; ours is the median of three. Rows outside the box of the training rows are left out, since foolbox
takes none. Where `ours` is "copy" we follow the peer's own arithmetic step by step, not our own search; `same` is the
share of rows on which both end within 0.001 (l2) of one another or find nothing. A library without its environment is
skipped and named; `make fidelity` builds all environments. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _side_by_side import flags, show, timed
from torch import Tensor

from holdfast import PGD, MinCost, Prototype, Retraining, Space, other_class, predict, train
from holdfast.datasets import card
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.model import Model
from holdfast.paper.reference.alibi import AlibiPrototype
from holdfast.paper.reference.art import ElasticNetART
from holdfast.search.counterfactuals import Counterfactuals, Method, assess

HERE = Path(__file__).parent
RADII = {"german": 3.0, "heloc": 2.1, "ctg": 0.2}  # the paper's largest balls
ROWS = 200


@dataclass(frozen=True)
class Question:
    name: str
    model: Model
    x: Tensor  # training rows
    y: Tensor
    rows: Tensor
    target: Tensor
    space: Space


@dataclass(frozen=True)
class Pair:
    """One of their methods and the one of ours that answers the same question."""

    peer: str
    method: str
    settings: str
    norm: int
    ours: Callable[[Question], Method]
    speed_only: bool = False  # too few rows for costs to mean anything
    copy: bool = False  # ours does their arithmetic


def cheapest(norm: int) -> Callable[[Question], Method]:
    return lambda question: MinCost(norm=norm)


def elastic_net(norm: int) -> Callable[[Question], Method]:
    """ART 1.20 as it is: it asks for the class alone, and caps at 0 and 1."""
    return lambda question: ElasticNetART(norm=norm, margin_counts=False, capped=True)


EAD = "ElasticNet, 100 iterations, 9 binary search steps, confidence 0, learning rate .01, logits, batch of 200"
PAPER = "ElasticNet as above but for 300 iterations, confidence .5 and probabilities"
PAIRS = (
    Pair("art", "l1", f"{EAD}, rule L1, beta 1", 1, cheapest(1)),
    Pair("art", "l1_default", f"{EAD}, rule L1, beta .001 (its default)", 1, cheapest(1)),
    Pair("art", "l2", f"{EAD}, rule L2, beta 0", 2, cheapest(2)),
    Pair("art", "l1_scaled", f"{EAD}, rule L1, beta .001, bounds scaled to [0, 1] where it caps", 1, cheapest(1)),
    Pair("art", "l2_scaled", f"{EAD}, rule L2, beta 0, bounds scaled to [0, 1] where it caps", 2, cheapest(2)),
    Pair("foolbox", "pgd", "L2PGD, 10 radii, 100 steps of 2ε/100 each, random start", 2,
         lambda question: PGD(radius=RADII[question.name])),
    Pair("alibi", "prototype", "CounterfactualProto, k-d trees, k 20, theta 100, 100 iterations, probabilities", 2,
         lambda question: Prototype().fit(question.x, question.y, question.space)),
    Pair("dice", "random", "random, one counterfactual, binary search for sparsity", 1, cheapest(1)),
    Pair("dice", "genetic", "genetic, one counterfactual, binary search for sparsity", 1, cheapest(1)),
    Pair("dice", "gradient", "gradient, one counterfactual, binary search for sparsity; two rows, for speed only", 1,
         cheapest(1), speed_only=True),
    Pair("art", "l1_paper", f"{PAPER}, rule L1, beta 1", 1, elastic_net(1), copy=True),
    Pair("art", "l2_paper", f"{PAPER}, rule L2, beta 0", 2, elastic_net(2), copy=True),
    Pair("alibi", "prototype", "the same answers as above", 2,
         lambda question: AlibiPrototype().fit(question.x, question.y, question.space), copy=True),
)  # fmt: skip
ENVIRONMENTS = {"art": ".venv-art", "foolbox": ".venv-peers", "alibi": ".venv-alibi", "dice": ".venv-dice"}


# ---- theirs ----


def python(peer: str) -> Path:
    return HERE.parent / ENVIRONMENTS[peer] / "bin" / "python"


def ask(name: str, count: int) -> Question:
    data = prepare(name)
    (x, y), rows = data.rows, data.question()
    model, space = train(x, y, PAPER_RECIPES[name], [Retraining()])[0], Space.free(x)
    rows = rows[((rows >= space.lower) & (rows <= space.upper)).all(1)][:count]
    return Question(name, model, x, y, rows, other_class(model, rows), space)


def write(question: Question, file: Path) -> None:
    """As the peers read it: see `_peers/_question.py`."""
    layers = {
        f"{part}_{place}": values.numpy()
        for part, held in (("weight", question.model.weights), ("bias", question.model.biases))
        for place, values in enumerate(held)
    }
    np.savez(
        file,
        rows=question.rows.numpy(),
        target=question.target.numpy(),
        lower=question.space.lower[0].numpy(),
        upper=question.space.upper[0].numpy(),
        known=question.x.numpy(),
        classes=predict(question.model, question.x).numpy(),
        radius=np.array(RADII[question.name]),
        **layers,
    )


def theirs(question: Question, peer: str) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "question.npz"), Path(folder, "answer.npz")
        write(question, asked)
        script = HERE / "_peers" / f"with_{peer}.py"
        ran = subprocess.run([python(peer), script, asked, answered], capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(f"{peer} failed on {question.name}:\n{ran.stderr[-3000:]}")
        with np.load(answered) as held:
            return dict(held)


# ---- both sides ----


def ours(pair: Pair, question: Question, count: int) -> tuple[Counterfactuals, float]:
    """Our answer for the first so many rows and its seconds."""
    method = pair.ours(question)
    model, space, rows, target = question.model, question.space, question.rows[:count], question.target[:count]
    method(model, rows[:2], target[:2], space)
    runs = [timed(lambda: method(model, rows, target, space)) for _ in range(3)]
    return runs[0][0], statistics.median(seconds for _, seconds in runs)


def compare(pair: Pair, question: Question, answered: dict[str, np.ndarray]) -> dict[str, Any]:
    point, seconds = torch.from_numpy(answered[f"{pair.method}_point"]), float(answered[f"{pair.method}_seconds"])
    count = len(point)
    answer = assess(question.model, question.rows[:count], point, question.target[:count], question.space)
    found, quick = ours(pair, question, count)
    both = answer.found & found.found
    cost, our_cost = mean(answer.cost(pair.norm)[both]), mean(found.cost(pair.norm)[both])
    row = {
        "dataset": question.name,
        "peer": pair.peer,
        "method": pair.method,
        "ours": "copy" if pair.copy else "own",
        "rows": count,
        "found_theirs": int(answer.found.sum()),
        "found_ours": int(found.found.sum()),
        "norm": pair.norm,
        "cost_theirs": cost,
        "cost_ours": our_cost,
        "cost_ratio": cost / our_cost,
        "same": mean(torch.linalg.vector_norm(answer.point - found.point, dim=1) < 1e-3),
        "ms_theirs": 1000 * seconds / count,
        "ms_ours": 1000 * quick / count,
        "speed_ratio": seconds / quick,
    }
    if pair.speed_only:
        row |= dict.fromkeys(("norm", "cost_theirs", "cost_ours", "cost_ratio", "same"), "")
    return row


def mean(values: Tensor) -> float:
    return float(values.double().mean())


def main() -> None:
    options = flags(__doc__ or "")
    here = [peer for peer in ENVIRONMENTS if python(peer).exists()]
    for peer in (peer for peer in ENVIRONMENTS if peer not in here):
        print(f"{peer} is skipped: there is no environment {ENVIRONMENTS[peer]}")
    if not here:
        raise SystemExit("no reference library to compare with; build their environments with: make fidelity")
    names = [name for name in RADII if card(name).state() == "here" or print(name, card(name).how_to_get())]
    rows = []
    for name in names[:1] if options.quick else names:
        question = ask(name, 20 if options.quick else ROWS)
        answered = {peer: theirs(question, peer) for peer in here}
        rows += [
            compare(pair, question, answered[pair.peer])
            for pair in PAIRS
            if f"{pair.method}_point" in answered.get(pair.peer, {})
        ]
    show("Our searches against the reference libraries, in the free space", rows, options.json)
    for pair in PAIRS:
        print(f"{pair.peer} {pair.method}: {pair.settings}")


if __name__ == "__main__":
    main()
