"""Train a whole family at once: k networks as stacked tensors, one Adam over the stack.

Every operation here works on each member's slice alone (a batched matrix product, an elementwise update), so
a member comes out the same, bit for bit on a CPU, whatever it is trained beside. Two things would break that
and are avoided: a last vector of the flat parameters that is only partly filled (its leftover elements go
through other instructions, hence `LANES`) and several BLAS threads on one stack (hence one thread a worker).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from itertools import groupby, pairwise, repeat
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.families.family import Family, Network
from holdfast.families.material import Pool, check_material, disturbed, labels_of, needs_more, rows_of
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.store import Entry, fingerprint_data, fingerprint_member
from holdfast.families.workers import in_workers
from holdfast.progress import bar
from holdfast.threads import one_thread

LANES = 64  # the flat parameters are padded to a multiple of this many numbers
CACHE = 6 << 20  # bytes that a chunk of members in training should stay below on a CPU
PLANNED = 32 << 20  # bytes of batch plans drawn at a time
SMALL = 1e11  # floating-point operations below which starting worker processes does not pay

Weights = tuple[Tensor, ...]


def train(
    x: Tensor,
    y: Tensor,
    recipe: Recipe,
    retrainings: Sequence[Retraining],
    *,
    new: tuple[Tensor, Tensor] | None = None,
    base: Network | None = None,
    held_out: tuple[Tensor, Tensor] | None = None,
    store: str | Path | None = None,
    classes: int | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Family:
    """Train one network per Retraining on the rows x (n, d) and class indices y (n,).

    ``new`` holds rows and labels that the deployed network never saw, for changes that append some of them, and
    ``base`` the deployed network, for changes that continue from it.
    ``held_out`` rows and labels give each member's accuracy. With a ``store`` (a folder) the family is kept there:
    asked for again it is read, and after an interruption only what was not finished is trained.
    ``classes`` defaults to the largest label + 1. On a CPU the members are shared out among ``workers``
    single-threaded processes (default: one a core; in this process when there is little to do). On a GPU they are
    one stack.
    """
    if isinstance(retrainings, Retraining):
        raise TypeError("retrainings is one Retraining; give a list of them, [Retraining()]")
    retrainings = tuple(retrainings)
    pool = _pool(x, y, new, classes)
    _check(pool, retrainings)
    sizes = recipe.sizes(x.shape[1], pool.classes)
    _check_base(base, sizes, recipe, retrainings)
    data, old = fingerprint_data(pool, base), fingerprint_data(pool.without_new())
    fingerprints = tuple(
        fingerprint_member(data if needs_more(retraining) else old, recipe, retraining) for retraining in retrainings
    )
    entry = None if store is None else Entry.of(store, fingerprints)
    if entry is not None and entry.complete:
        family = _moved(replace(entry.load(fingerprints), retrainings=retrainings), x)
    else:
        layers = _all_members(_Job(pool, recipe, sizes, retrainings, base), fingerprints, entry, workers, progress)
        family = Family(*layers, retrainings, fingerprints=fingerprints, recipe=recipe, data=data)
    if held_out is not None:
        _checked_rows(*held_out)
        right = family.predict(held_out[0].to(x)) == held_out[1].to(x.device)
        family = replace(family, accuracy=tuple(right.double().mean(1).tolist()))
    if entry is not None and not entry.complete:
        entry.finish(family)
    return family


def _all_members(
    job: _Job, fingerprints: tuple[str, ...], entry: Entry | None, workers: int | None, progress: bool
) -> tuple[Weights, Weights]:
    """The stacked layers of every member: from the store what is there, the rest trained and put there."""
    known = {} if entry is None else entry.members()
    trained = {place: known[member] for place, member in enumerate(fingerprints) if member in known}
    todo = [place for place in range(len(fingerprints)) if place not in trained]
    rest = replace(job, retrainings=tuple(job.members(todo)))
    workers = _worker_count(rest, workers)
    with bar(f"Training {len(fingerprints)} networks", len(fingerprints), progress) as advance:
        advance(len(trained))
        for chunk, weights, biases in _in_workers(rest, workers) if workers > 1 else _in_this_process(rest):
            members = [todo[place] for place in chunk]
            weights = _finished(job.members(members), weights)
            if entry is not None:
                entry.add([fingerprints[member] for member in members], weights, biases)
            for place, member in enumerate(members):
                trained[member] = tuple(w[place] for w in weights), tuple(b[place] for b in biases)
            advance(len(chunk))
    stacked = [
        tuple(
            torch.stack(layer) for layer in zip(*(trained[member][part] for member in range(len(trained))), strict=True)
        )
        for part in (0, 1)
    ]
    return _moved_layers(stacked[0], job.pool.x), _moved_layers(stacked[1], job.pool.x)


def _finished(retrainings: list[Retraining], weights: Weights) -> Weights:
    """A chunk's trained weights with what comes after training, if they are sound."""
    members = [disturbed(tuple(w[place] for w in weights), retraining) for place, retraining in enumerate(retrainings)]
    for retraining, own in zip(retrainings, members, strict=True):
        if not all(bool(weight.isfinite().all()) for weight in own):
            raise ValueError(f"training diverged for {retraining}: its weights are not finite; lower the learning rate")
    return tuple(torch.stack(layer) for layer in zip(*members, strict=True))


def _moved_layers(layers: Weights, like: Tensor) -> Weights:
    return tuple(layer.to(like) for layer in layers)


def _moved(family: Family, like: Tensor) -> Family:
    return replace(family, weights=_moved_layers(family.weights, like), biases=_moved_layers(family.biases, like))


def _pool(x: Tensor, y: Tensor, new: tuple[Tensor, Tensor] | None, classes: int | None) -> Pool:
    """Old and new rows in one, if they are what training needs."""
    old = _checked_rows(x, y)
    if new is not None:
        _checked_rows(*new)
        if new[0].shape[1] != x.shape[1]:
            raise ValueError(f"new rows have {new[0].shape[1]} columns, the old ones {x.shape[1]}; use one encoding")
        x, y = torch.cat([x, new[0].to(x)]), torch.cat([y, new[1].to(y)])
    seen = int(y.max()) + 1
    if int(y.min()) < 0 or (classes is not None and classes < seen):
        allowed = "0 and up" if classes is None else f"0 to {classes - 1}"
        raise ValueError(f"labels go from {int(y.min())} to {int(y.max())}; expected class indices {allowed}")
    return Pool(x, y, old, max(classes or seen, 2))


def _checked_rows(x: Tensor, y: Tensor) -> int:
    for name, value in {"x": x, "y": y}.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name} must be a torch tensor, got {type(value).__name__}; use encoding.encode and encoding.labels"
            )
    if x.ndim != 2 or y.shape != x.shape[:1] or not len(x):
        raise ValueError(f"expected x (n, d) and y (n,) with n of 1 or more, got {tuple(x.shape)} and {tuple(y.shape)}")
    if y.dtype != torch.int64 or not x.is_floating_point():
        raise ValueError(
            f"x must hold floating-point numbers and y class indices as int64, got {x.dtype} and {y.dtype}; "
            "use encoding.encode and encoding.labels"
        )
    if not x.isfinite().all():
        raise ValueError("x holds values that are not finite; fill or drop those rows before training")
    return len(x)


def _check(pool: Pool, retrainings: tuple[Retraining, ...]) -> None:
    if not retrainings:
        raise ValueError("nothing to train: retrainings is empty; try changes.seeds(100)")
    for retraining in retrainings:
        check_material(retraining, pool)


def _check_base(
    base: Network | None, sizes: tuple[int, ...], recipe: Recipe, retrainings: tuple[Retraining, ...]
) -> None:
    for retraining in retrainings:
        if retraining.continued and base is None:
            raise ValueError(f"{retraining} continues from the deployed network; pass train(..., base=network)")
        if retraining.top_only and retraining.recipe(recipe).weight_decay:
            raise ValueError(f"{retraining} keeps all layers but the last, which weight decay would shrink")
    if base is not None and [tuple(w.shape) for w in base.weights] != list(pairwise(sizes)):
        raise ValueError(f"base is {base}, but the recipe and the rows make networks of {'-'.join(map(str, sizes))}")


# ---- who trains what ----


@dataclass(frozen=True)
class _Job:
    pool: Pool
    recipe: Recipe
    sizes: tuple[int, ...]
    retrainings: tuple[Retraining, ...]
    base: Network | None

    def alike(self, member: int) -> tuple[Any, ...]:
        """Members for which this is equal can be one stack: one recipe, and as many steps an epoch."""
        recipe = self.retrainings[member].recipe(self.recipe)
        return astuple(recipe), math.ceil(len(rows_of(self.retrainings[member], self.pool)) / recipe.batch)

    def members(self, chunk: list[int]) -> list[Retraining]:
        return [self.retrainings[member] for member in chunk]


Trained = tuple[list[int], Weights, Weights]


def _worker_count(job: _Job, asked: int | None) -> int:
    if asked is not None and asked < 1:
        raise ValueError(f"workers must be 1 or more, got {asked}")
    members = len(job.retrainings)
    operations = 6 * _parameters(job.sizes) * job.pool.old * job.recipe.epochs * members
    if job.pool.x.device.type != "cpu" or (asked is None and operations < SMALL):
        return 1
    return min(asked or joblib.cpu_count(), members)


def _members_at_once(job: _Job) -> int:
    x = job.pool.x
    if x.device.type != "cpu":
        return len(job.retrainings)
    state = 4 * _parameters(job.sizes)  # parameters, gradients and Adam's two moments
    activations = 2 * min(job.recipe.batch, len(x)) * sum(job.sizes)
    return max(1, CACHE // ((state + activations) * x.element_size()))


def _chunks(job: _Job, workers: int) -> list[list[int]]:
    """Share out the members, stacking only those that take as many steps: Adam moves on a zero gradient too."""
    key = [job.alike(member) for member in range(len(job.retrainings))]
    chunks = []
    for _, alike in groupby(sorted(range(len(key)), key=key.__getitem__), key=key.__getitem__):
        members = list(alike)
        pieces = math.ceil(len(members) / _members_at_once(job))
        pieces = min(len(members), math.ceil(pieces / workers) * workers)  # so that no worker waits at the end
        chunks += [piece.tolist() for piece in np.array_split(np.array(members), pieces)]
    return chunks


def _in_this_process(job: _Job) -> Iterator[Trained]:
    for chunk in _chunks(job, 1):
        with one_thread():
            trained = _train_stack(job.pool, job.recipe, job.sizes, job.base, job.members(chunk))
        yield chunk, *trained


def _in_workers(job: _Job, workers: int) -> Iterator[Trained]:
    rows, labels, old, classes = job.pool.x.numpy(), job.pool.y.numpy(), job.pool.old, job.pool.classes
    tasks = (
        joblib.delayed(_train_chunk)(
            rows, labels, old, classes, job.recipe, job.sizes, job.base, chunk, job.members(chunk)
        )
        for chunk in _chunks(job, workers)
    )
    for chunk, weights, biases in in_workers(tasks, workers):
        yield chunk, tuple(map(torch.from_numpy, weights)), tuple(map(torch.from_numpy, biases))


Arrays = list[NDArray[np.float32]]


def _train_chunk(
    rows: NDArray[np.float32],
    labels: NDArray[np.int64],
    old: int,
    classes: int,
    recipe: Recipe,
    sizes: tuple[int, ...],
    base: Network | None,
    chunk: list[int],
    retrainings: list[Retraining],
) -> tuple[list[int], Arrays, Arrays]:
    torch.set_num_threads(1)
    pool = Pool(torch.from_numpy(rows), torch.from_numpy(labels), old, classes)
    weights, biases = _train_stack(pool, recipe, sizes, base, retrainings)
    return chunk, [weight.numpy() for weight in weights], [bias.numpy() for bias in biases]


# ---- one stack ----


@dataclass(frozen=True)
class _Stack:
    """The layers of k networks as views of one flat tensor, so that one Adam step updates all of them."""

    flat: Tensor
    weights: Weights  # (k, in, out) each
    biases: Weights  # (k, 1, out) each

    @classmethod
    def zeros(cls, sizes: tuple[int, ...], members: int, like: Tensor) -> _Stack:
        flat = like.new_zeros(math.ceil(members * _parameters(sizes) / LANES) * LANES)
        shapes = [(members, inputs, outputs) for inputs, outputs in pairwise(sizes)]
        shapes += [(members, 1, outputs) for outputs in sizes[1:]]
        counts = [math.prod(shape) for shape in shapes]
        pieces = torch.split(flat[: sum(counts)], counts)
        views = tuple(piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True))
        return cls(flat, views[: len(sizes) - 1], views[len(sizes) - 1 :])


def _train_stack(
    pool: Pool, recipe: Recipe, sizes: tuple[int, ...], base: Network | None, retrainings: Sequence[Retraining]
) -> tuple[Weights, Weights]:
    """Train members that have one recipe and take the same number of steps."""
    x, recipe = pool.x, retrainings[0].recipe(recipe)
    stack = _initial(sizes, retrainings, base, x)
    gradient = _Stack.zeros(sizes, len(retrainings), x)
    stack.flat.grad = gradient.flat
    adam = torch.optim.Adam(
        [stack.flat],
        lr=recipe.learning_rate,
        betas=recipe.betas,
        eps=recipe.epsilon,
        weight_decay=recipe.weight_decay,
        fused=True,
        capturable=x.is_cuda,
    )
    wanted, freeze = _wanted(pool, retrainings), _freezing(gradient, retrainings)
    seen = [rows_of(retraining, pool) for retraining in retrainings]
    share = _share(seen, recipe.batch, x)
    epoch = torch.zeros(share.shape[0], len(seen), recipe.batch, dtype=torch.int64, device=x.device)

    def step(place: Tensor) -> None:
        """Take the step of the epoch whose number is in ``place`` (1,)."""
        batch = epoch.index_select(0, place)[0]
        weight = share.index_select(0, place)[0]
        _backpropagate(stack, gradient, x[batch], wanted(batch), weight)
        freeze()
        adam.step()

    take = _captured(step, stack, adam) if x.is_cuda else step
    places = torch.split(torch.arange(len(epoch), device=x.device), 1)
    for plan in _plans(seen, retrainings, recipe, x.device):
        epoch.copy_(plan, non_blocking=True)
        for place in places:
            take(place)
    return stack.weights, tuple(bias[:, 0] for bias in stack.biases)


def _captured(step: Callable[[Tensor], None], stack: _Stack, adam: torch.optim.Adam) -> Callable[[Tensor], None]:
    """The step as one CUDA graph: launching its twenty kernels one by one takes longer than running them."""
    place, start = torch.zeros(1, dtype=torch.int64, device=stack.flat.device), stack.flat.clone()
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # a graph is captured after a few rounds that set up what it uses
        for _ in range(3):
            step(place)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(place)
    stack.flat.copy_(start)  # as if nothing had been trained yet
    for state in adam.state[stack.flat].values():
        state.zero_()

    def replay(number: Tensor) -> None:
        place.copy_(number)
        graph.replay()

    return replay


def _wanted(pool: Pool, retrainings: Sequence[Retraining]) -> Callable[[Tensor], Tensor]:
    """From a batch of rows (k, batch) to the one-hot classes its members should say: (k, batch, c)."""
    onehot = torch.eye(pool.classes, dtype=pool.x.dtype, device=pool.x.device)
    if not any(retraining.label_noise for retraining in retrainings):
        shared = onehot[pool.y]  # (n, c)
        return lambda batch: shared[batch]
    own = torch.stack([labels_of(retraining, pool) for retraining in retrainings])  # (k, n)
    return lambda batch: onehot[own.gather(1, batch)]


def _freezing(gradient: _Stack, retrainings: Sequence[Retraining]) -> Callable[[], None]:
    """What undoes the gradient of layers that stay. Adam does not move what never had a gradient, by no bit."""
    stay = torch.tensor([retraining.top_only for retraining in retrainings], device=gradient.flat.device)
    lower = (*gradient.weights[:-1], *gradient.biases[:-1])
    if not any(retraining.top_only for retraining in retrainings):
        return lambda: None

    def freeze() -> None:
        for layer in lower:
            layer.masked_fill_(stay[:, None, None], 0)

    return freeze


def _initial(sizes: tuple[int, ...], retrainings: Sequence[Retraining], base: Network | None, like: Tensor) -> _Stack:
    """The base's weights, or Glorot-uniform ones, drawn on the CPU so that a seed means the same on any device."""
    stack = _Stack.zeros(sizes, len(retrainings), like)
    for member, retraining in enumerate(retrainings):
        if retraining.continued and base is not None:
            for layer, (weight, bias) in enumerate(zip(base.weights, base.biases, strict=True)):
                stack.weights[layer][member], stack.biases[layer][member, 0] = weight.to(like), bias.to(like)
            continue
        generator = torch.Generator().manual_seed(retraining.init_seed)
        for weight in stack.weights:
            inputs, outputs = weight.shape[1:]
            limit = math.sqrt(6 / (inputs + outputs))
            weight[member] = (2 * torch.rand(inputs, outputs, generator=generator) - 1) * limit
    return stack


def _plans(
    seen: list[Tensor], retrainings: Sequence[Retraining], recipe: Recipe, device: torch.device
) -> Iterator[Tensor]:
    """The batches of every epoch: (steps, k, batch) rows. The last batch is filled up with rows that do not count.

    Each order comes from a CPU generator of the member's own seed, so it is the same on every device; members with one
    seed and as many rows have one order. A few epochs are drawn at a time; for a GPU in parallel and ahead of it, or
    it would wait.
    """
    steps = math.ceil(len(seen[0]) / recipe.batch)
    full = steps * recipe.batch
    keys = [(retraining.order_seed, len(rows)) for retraining, rows in zip(retrainings, seen, strict=True)]
    draws = {key: torch.Generator().manual_seed(key[0]) for key in keys}
    which = torch.tensor([list(draws).index(key) for key in keys], device=device)
    rows = torch.stack([torch.nn.functional.pad(own, (0, full - len(own))) for own in seen]).to(device)  # (k, full)
    at_once = max(1, PLANNED // (8 * len(seen) * full))
    blocks = [min(at_once, recipe.epochs - start) for start in range(0, recipe.epochs, at_once)]

    def drawn(key: tuple[int, int], epochs: int) -> Tensor:  # (epochs, full)
        orders = torch.zeros(epochs, full, dtype=torch.int32)
        for epoch in range(epochs):
            orders[epoch, : key[1]] = torch.randperm(key[1], generator=draws[key])
        return orders

    def plans(orders: Tensor) -> Iterator[Tensor]:
        """From orders (epochs, draws, full) to the rows they stand for."""
        for epoch in orders.to(device, non_blocking=True):
            yield rows.gather(1, epoch[which].long()).view(len(seen), steps, recipe.batch).transpose(0, 1)

    if device.type == "cpu":
        for epochs in blocks:
            yield from plans(torch.stack([drawn(key, epochs) for key in draws], dim=1))
        return
    with ThreadPoolExecutor() as drawing, ThreadPoolExecutor(1) as ahead:

        def block(epochs: int) -> Tensor:
            return torch.stack(list(drawing.map(drawn, draws, repeat(epochs))), dim=1).pin_memory()

        following = [ahead.submit(block, epochs) for epochs in blocks[:1]]
        for number in range(len(blocks)):
            orders = following.pop().result()
            following = [ahead.submit(block, epochs) for epochs in blocks[number + 1 : number + 2]]
            yield from plans(orders)


def _share(seen: list[Tensor], batch: int, like: Tensor) -> Tensor:
    """How much each row of each batch counts: one over the batch's true size, 0 for filling. (steps, k, batch, 1)"""
    rows = torch.tensor([len(own) for own in seen])
    steps = math.ceil(len(seen[0]) / batch)
    counts = torch.arange(steps * batch).view(steps, 1, batch) < rows[:, None]
    return (counts / counts.sum(2, keepdim=True))[..., None].to(like)


def _backpropagate(stack: _Stack, gradient: _Stack, x: Tensor, wanted: Tensor, weight: Tensor) -> None:
    """Write the gradient of each member's mean cross-entropy over its batch x (k, batch, d)."""
    activations = [x]
    last = len(stack.weights) - 1
    for layer in range(last + 1):
        z = torch.baddbmm(stack.biases[layer], activations[-1], stack.weights[layer])
        activations.append(z if layer == last else z.relu_())
    delta = activations.pop().softmax(-1).sub_(wanted).mul_(weight)  # ∂loss/∂logits = p − onehot
    for layer in range(last, -1, -1):
        below = activations[layer]
        torch.bmm(below.transpose(1, 2), delta, out=gradient.weights[layer])
        torch.sum(delta, 1, keepdim=True, out=gradient.biases[layer])
        if layer:
            delta = torch.bmm(delta, stack.weights[layer].transpose(1, 2)).mul_(below > 0)


def _parameters(sizes: tuple[int, ...]) -> int:
    return sum((inputs + 1) * outputs for inputs, outputs in pairwise(sizes))
