"""Families against the ways one would otherwise train them, for the paper's six recipes with 100 networks each.

Beside ours stand a plain PyTorch loop (module, autograd, torch.optim.Adam) with torch's default threads, the same loop
shared out to two single-threaded processes, and, where TensorFlow is installed (`make peers`), Keras as the paper's
authors used it. The loops train the same networks on the same batches; since they train one network after another,
a few are timed, before and after ours, and the others counted at the same cost. Before that, both sides train two
networks in float64, where all weights must agree to 1e-6, or the script fails.

Three more tables: any torch module through torch.func.vmap against the perceptron's own path; how the cost grows with
networks and rows (HELOC); how memory grows with networks (German Credit). Datasets are found through HOLDFAST_DATA.
With --quick everything is a few small networks of German Credit. Linux only.
"""

from __future__ import annotations

import importlib.util
import math
import os
from dataclasses import replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from _side_by_side import flags, keep, resident, show, timed
from torch import Tensor, nn

from holdfast import Family, Recipe, Retraining, seeds, train
from holdfast.datasets import DATASETS
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.utils.workers import in_workers

AGREE = 1e-6
NETWORKS = 100
LOOPED = 2  # networks that a loop is timed on, before ours and after
KERAS = ("german", "heloc")


# ---- the other ways ----


def loop(x: Tensor, y: Tensor, recipe: Recipe, changes: list[Retraining], start: Family) -> list[nn.Sequential]:
    """How one would write it: one network after another."""
    return [one(x, y, recipe, change, module(start, place)) for place, change in enumerate(changes)]


def one(x: Tensor, y: Tensor, recipe: Recipe, change: Retraining, net: nn.Sequential) -> nn.Sequential:
    adam = torch.optim.Adam(net.parameters(), lr=recipe.learning_rate, betas=recipe.betas, eps=recipe.epsilon)
    draw = torch.Generator().manual_seed(change.order_seed)
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(x), generator=draw).split(recipe.batch):
            adam.zero_grad()
            nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
            adam.step()
    return net


def module(start: Family, place: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for weight in start[place].weights:
        layer = nn.Linear(*weight.shape, dtype=weight.dtype)
        layer.weight.data = weight.T.clone()
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def in_one_thread(x: Tensor, y: Tensor, recipe: Recipe, changes: list[Retraining], start: Family) -> float:
    torch.set_num_threads(1)
    loop(x[: recipe.batch], y[: recipe.batch], replace(recipe, epochs=1), changes, start)  # warm
    return timed(lambda: loop(x, y, recipe, changes, start))[1]


def in_two_processes(x: Tensor, y: Tensor, recipe: Recipe, start: Family) -> float:
    """Seconds for two networks each; that the processes start and import torch is not counted."""
    parts = [(seeds(LOOPED), start[:LOOPED]), (seeds(LOOPED, start=LOOPED + 1), start[LOOPED : 2 * LOOPED])]
    seconds: list[float] = []
    in_workers(in_one_thread, parts, 2, seconds.append, shared=(x, y, recipe))
    return max(seconds)


def keras_networks(x: Any, y: Any, sizes: tuple[int, ...], epochs: int, batch: int) -> float:
    """Seconds per network, from building it to the end of `fit`; what TensorFlow does once is not counted."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras

    def fitted(count: int) -> None:
        net = keras.Sequential([keras.Input((sizes[0],))])
        for width in sizes[1:-1]:
            net.add(keras.layers.Dense(width, activation="relu"))
        net.add(keras.layers.Dense(sizes[-1]))
        net.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        net.fit(x, y, batch_size=batch, epochs=count, verbose=0)

    fitted(1)
    return timed(lambda: fitted(epochs))[1]


# ---- both sides ----


def initial(x: Tensor, y: Tensor, recipe: Recipe, changes: list[Retraining]) -> Family:
    """Weights that one step too small to be seen has left as they were."""
    return train(x, y, replace(recipe, epochs=1, batch=len(x), learning_rate=1e-30), changes)


def difference(x: Tensor, y: Tensor, recipe: Recipe) -> float:
    """The largest difference of a weight between ours and the loop's, over two networks."""
    changes = seeds(2)
    nets = loop(x, y, recipe, changes, initial(x, y, recipe, changes))
    return max(
        float((layer.weight.detach().T - weight).abs().max())
        for net, ours in zip(nets, train(x, y, recipe, changes), strict=True)
        for layer, weight in zip((part for part in net if isinstance(part, nn.Linear)), ours.weights, strict=True)
    )


def floating_point(sizes: tuple[int, ...], rows: int) -> int:
    """Operations of one epoch: three products per layer, but for the gradient of the inputs."""
    products = [inputs * outputs for inputs, outputs in pairwise(sizes)]
    return 2 * rows * (3 * sum(products) - products[0])


def sgemm() -> float:
    """Operations per second of one large product, on all cores."""
    one, other = torch.randn(2, 2048, 2048)
    torch.mm(one, other)
    best = min(timed(lambda: torch.mm(one, other))[1] for _ in range(10))
    return 2 * 2048**3 / best


def compare(name: str, quick: bool) -> dict[str, Any]:
    data = prepare(name)
    x, y = data.rows
    recipe, networks = PAPER_RECIPES[name], 4 if quick else NETWORKS
    recipe = replace(recipe, epochs=2) if quick else recipe
    exact = difference(data.encoding.encode(data.train, torch.float64), y, replace(recipe, epochs=2))
    if exact > AGREE:
        raise SystemExit(f"{name}: the two sides differ by {exact:.2g} after two epochs, more than {AGREE}")
    start = initial(x, y, recipe, seeds(2 * LOOPED))
    looped, shared = [], []
    for turn in range(2):
        looped.append(timed(lambda: loop(x, y, recipe, seeds(LOOPED), start))[1] / LOOPED)
        shared.append(in_two_processes(x, y, recipe, start) / (2 * LOOPED))
        if not turn:  # ours is timed with the start of its processes
            _, ours = timed(lambda: train(x, y, recipe, seeds(networks), workers=2))
    sizes = recipe.sizes(x.shape[1], int(y.max()) + 1)
    work = networks * recipe.epochs * floating_point(sizes, len(x))
    row = {
        "dataset": name,
        "networks": networks,
        "epochs": recipe.epochs,
        "seconds": ours,
        "loop": networks * sum(looped) / 2,
        "ratio": networks * sum(looped) / 2 / ours,
        "two_processes": networks * sum(shared) / 2,
        "their_ratio": networks * sum(shared) / 2 / ours,
        "float64_difference": exact,
        "gigaflops": work / ours / 1e9,
        "of_sgemm": work / ours / sgemm(),
    }
    if name in KERAS and importlib.util.find_spec("tensorflow"):
        with get_context("spawn").Pool(1) as process:  # TensorFlow's threads stay out of here
            each = process.apply(keras_networks, (x.numpy(), y.numpy(), sizes, recipe.epochs, recipe.batch))
        row |= {"keras": networks * each, "keras_ratio": networks * each / ours}
    return row


# ---- any module, growth, memory ----


class Layers(nn.Sequential):
    """The recipe's perceptron as anybody would write it."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        layers = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair), nn.ReLU())]
        super().__init__(*layers[:-1])


def compare_paths(name: str, quick: bool) -> dict[str, Any]:
    x, y = prepare(name).rows
    networks, epochs = (2, 1) if quick else (20, 10)
    recipe = replace(PAPER_RECIPES[name], epochs=epochs)
    sizes = recipe.sizes(x.shape[1], int(y.max()) + 1)
    stacked = replace(recipe, network=lambda: Layers(sizes))
    start = initial(x, y, recipe, seeds(2))
    rates = {
        "perceptron": timed(lambda: train(x, y, recipe, seeds(networks), workers=1))[1] / networks,
        "module": timed(lambda: train(x, y, stacked, seeds(networks), workers=1))[1] / networks,
        "loop": timed(lambda: loop(x, y, recipe, seeds(2), start))[1] / 2,
    }
    per = {f"{side}_ms": 1000 * seconds for side, seconds in rates.items()}
    return {
        "dataset": name,
        **per,
        "module_by_perceptron": rates["module"] / rates["perceptron"],
        "loop_by_module": rates["loop"] / rates["module"],
    }


def growth(quick: bool) -> list[dict[str, Any]]:
    name, epochs, sizes = ("german", 1, (2, 4)) if quick else ("heloc", 5, (25, 50, 100, 200))
    x, y = prepare(name).rows
    recipe = replace(PAPER_RECIPES[name], epochs=epochs)
    few = x[: recipe.batch], y[: recipe.batch], replace(recipe, epochs=1), seeds(2)
    start = min(timed(lambda: train(*few, workers=2))[1] for _ in range(3))  # of the processes, which is not counted
    cells = [(networks, len(x)) for networks in sizes] + [(sizes[-1] // 2, len(x) // part) for part in (4, 2)]
    rows = []
    for networks, count in cells:
        seconds = timed(lambda n=networks, m=count: train(x[:m], y[:m], recipe, seeds(n), workers=2))[1] - start
        each = 1e6 * seconds / (networks * count * recipe.epochs)
        rows.append({"networks": networks, "rows": count, "seconds": seconds, "microseconds_a_row": each})
    return rows


def peak(networks: int) -> tuple[float, float]:
    """Megabytes that this process held before training, and at most during it (Linux)."""
    x, y = prepare("german").rows
    recipe = replace(PAPER_RECIPES["german"], epochs=1)
    train(x, y, recipe, seeds(2), workers=1)
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far is what is held now
    before = resident("VmRSS")
    family = train(x, y, recipe, seeds(networks), workers=1)
    assert len(family) == networks
    return before, resident("VmHWM")


def memory(quick: bool) -> list[dict[str, Any]]:
    rows = []
    for networks in (4,) if quick else (100, 500, 1000, 2000):
        with get_context("spawn").Pool(1) as process:
            before, after = process.apply(peak, (networks,))
        family = 4e-6 * networks * sum((i + 1) * o for i, o in pairwise((61, 128, 64, 16, 2)))
        rows.append(
            {"networks": networks, "peak_MB": after, "before_MB": before, "family_MB": family,
             "training_MB": after - before - family}
        )  # fmt: skip
    return rows


def main() -> None:
    options = flags(__doc__ or "")
    names = [name for name, card in DATASETS.items() if card.state() == "here" or print(name, card.how_to_get())]
    names = names[:1] if options.quick else names
    compared = [compare(name, options.quick) for name in names]
    columns = {key: None for row in compared for key in row}
    show(
        f"{compared[0]['networks']} networks: holdfast against a PyTorch loop, two processes, Keras",
        [{key: row.get(key, "") for key in columns} for row in compared],
    )
    for side in ("ratio", "their_ratio"):
        mean = math.exp(sum(math.log(row[side]) for row in compared) / len(compared))
        print(f"geometric mean of {side.replace('_', ' ')}: {mean:.1f}")
    paths = [compare_paths(name, options.quick) for name in names if name in ("german", "heloc")]
    show("Any module, milliseconds per network", paths)
    grown, held = growth(options.quick), memory(options.quick)
    show("How the cost grows", grown)
    show("How memory grows", held)
    if options.json is not None:
        keep(options.json, {"compared": compared, "paths": paths, "growth": grown, "memory": held})


if __name__ == "__main__":
    main()
