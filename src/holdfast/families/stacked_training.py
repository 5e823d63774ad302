"""One stack of networks trained in lockstep: the same step at the same time, one Adam over all of them.

Every operation here works on each member's slice alone (a batched matrix product, an elementwise update), so
a member comes out the same, bit for bit on a CPU, whatever it is trained beside. Three things would break that
and are avoided: a last vector of the flat parameters that is only partly filled (its leftover elements go
through other instructions, hence `LANES`), several BLAS threads on one stack (hence one thread per worker), and
matrices that begin at odd places in memory (hence `perceptron.aligned`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import torch
from torch import Tensor
from torch.nn.functional import embedding

from holdfast.families.module import Architecture
from holdfast.families.perceptron import Shapes, State
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.training_data import Pool, labels_of, rows_of
from holdfast.models.model import Model

LANES = 64  # the flat parameters are padded to a multiple of this many numbers
PLANNED = 4 << 20  # bytes of batch orders drawn at a time
DRAWING = 4  # threads that draw them for a GPU; more of them wait for one another
GRAPH_STEPS = 128  # steps that are one CUDA graph

Steps = Callable[[], None]


def train_stack(
    architecture: Architecture, pool: Pool, recipe: Recipe, base: Model | None, retrainings: Sequence[Retraining]
) -> State:
    """Train members of one architecture that have one batch size and take the same number of steps."""
    x, recipes = pool.x, [retraining.recipe(recipe) for retraining in retrainings]
    stack, kept = _start(architecture, base, retrainings, x)
    gradient = stack.alike()
    backpropagate = architecture.backpropagation(stack.views, gradient.views, kept)
    freeze = _freezing(architecture, gradient, retrainings)
    update = (_by_own_rates if retrainings[0].own_rates else _by_one_rate)(stack, gradient, recipes, freeze)
    wanted = _wanted(pool, retrainings)
    seen = [rows_of(retraining, pool) for retraining in retrainings]
    batch, total = recipes[0].batch, max(member_recipe.epochs for member_recipe in recipes)
    sizes, share = batch_sizes(architecture, len(seen[0]), batch), _share(seen, batch, x)
    blocks = [range(first, min(first + GRAPH_STEPS, len(sizes))) for first in range(0, len(sizes), GRAPH_STEPS)]
    plan = torch.zeros(len(blocks[0]), len(seen), batch, dtype=torch.int64, device=x.device)  # of the block at hand

    def taking(block: range) -> Steps:
        def steps() -> None:
            for step, number in enumerate(block):
                chosen, weight = plan[step, :, : sizes[number]], share[number, :, : sizes[number]]
                backpropagate(embedding(chosen, x), wanted(chosen), weight)
                update.step()

        return steps

    taken = {block: taking(block) for block in blocks}
    if x.is_cuda:  # all blocks but the last are alike
        first, last = _captured([taken[blocks[0]], taken[blocks[-1]]], (stack.flat, *kept.values()), update.adam)
        taken = dict.fromkeys(blocks, first) | {blocks[-1]: last}
    for epoch, drawn in enumerate(_plans(seen, retrainings, batch, total, x.device)):
        update.begin(epoch)
        for block in blocks:
            plan[: len(block)].copy_(drawn[block.start : block.stop], non_blocking=True)
            taken[block]()
    return architecture.finished({**stack.views, **kept})


# ---- the tensors of k networks ----


@dataclass(frozen=True)
class Flat:
    """Tensors of k networks as views of one flat tensor, so that one Adam step updates all of them."""

    flat: Tensor
    views: State

    @classmethod
    def zeros(cls, shapes: Shapes, members: int, like: Tensor) -> Flat:
        counts = [members * math.prod(shape) for shape in shapes.values()]
        flat = like.new_zeros(math.ceil(sum(counts) / LANES) * LANES)
        pieces = torch.split(flat[: sum(counts)], counts)
        named = zip(pieces, shapes.items(), strict=True)
        return cls(flat, {name: piece.view(members, *shape) for piece, (name, shape) in named})

    def alike(self) -> Flat:
        """Zeros of the same layout."""
        shapes = {name: tuple(view.shape[1:]) for name, view in self.views.items()}
        return Flat.zeros(shapes, len(next(iter(self.views.values()))), self.flat)

    def fill(self, member: int, value: float) -> None:
        for view in self.views.values():
            view[member] = value


def _start(
    architecture: Architecture, base: Model | None, retrainings: Sequence[Retraining], like: Tensor
) -> tuple[Flat, State]:
    """What is trained, and what the networks hold beside it, as it is before training."""
    on_cpu = like[:0].cpu()
    starts = [architecture.initial(retraining, on_cpu) for retraining in retrainings]
    starts = [
        architecture.loaded(base, start) if retraining.continued and base is not None else start
        for retraining, start in zip(retrainings, starts, strict=True)
    ]
    together = {name: torch.stack([start[name] for start in starts]).to(like.device) for name in starts[0]}
    stack = Flat.zeros(architecture.trained, len(retrainings), like)
    for name, view in stack.views.items():
        view.copy_(together.pop(name))
    return stack, together


# ---- the update ----


@dataclass(frozen=True)
class _Update:
    """What follows the gradient: ``step`` after every batch, ``begin`` with the number of every epoch."""

    step: Callable[[], None]
    begin: Callable[[int], None]
    adam: torch.optim.Adam


def _by_one_rate(stack: Flat, gradient: Flat, recipes: list[Recipe], freeze: Callable[[], None]) -> _Update:
    adam = _adam(stack.flat, gradient.flat, recipes[0], recipes[0].learning_rate, recipes[0].weight_decay)

    def step() -> None:
        freeze()
        adam.step()

    return _Update(step, lambda epoch: None, adam)


def _by_own_rates(stack: Flat, gradient: Flat, recipes: list[Recipe], freeze: Callable[[], None]) -> _Update:
    """Adam of rate 1 moves a tensor of zeros; each member goes that way by its own rate, which is 0 once it is done."""
    move, rate, decay = stack.alike(), stack.alike(), stack.alike()
    adam = _adam(move.flat, gradient.flat, recipes[0], 1.0, 0.0)
    for member, recipe in enumerate(recipes):
        rate.fill(member, recipe.learning_rate)
        decay.fill(member, recipe.weight_decay)

    def step() -> None:
        gradient.flat.addcmul_(decay.flat, stack.flat)
        freeze()
        adam.step()
        stack.flat.addcmul_(rate.flat, move.flat)
        move.flat.zero_()

    def begin(epoch: int) -> None:
        for member, recipe in enumerate(recipes):
            if recipe.epochs == epoch:
                rate.fill(member, 0)

    return _Update(step, begin, adam)


def _adam(moved: Tensor, gradient: Tensor, recipe: Recipe, rate: float, decay: float) -> torch.optim.Adam:
    moved.grad = gradient
    return torch.optim.Adam(
        [moved],
        lr=rate,
        betas=recipe.betas,
        eps=recipe.epsilon,
        weight_decay=decay,
        fused=True,
        capturable=moved.is_cuda,
    )


def _freezing(architecture: Architecture, gradient: Flat, retrainings: Sequence[Retraining]) -> Callable[[], None]:
    """What undoes the gradient of layers that stay. Adam does not move what never had a gradient, by no bit."""
    if not any(retraining.top_only for retraining in retrainings):
        return lambda: None
    stay = torch.tensor([retraining.top_only for retraining in retrainings], device=gradient.flat.device)
    below = [(view, stay.view(-1, *(1,) * (view.ndim - 1))) for name, view in gradient.views.items()
             if name not in architecture.head]  # fmt: skip

    def freeze() -> None:
        for view, mask in below:
            view.masked_fill_(mask, 0)

    return freeze


# ---- the batches ----


def batch_sizes(architecture: Architecture, rows: int, batch: int) -> list[int]:
    """How many rows every step of an epoch takes. A short last batch is filled up where the network allows it.

    Where it does not and there is too little to fill a batch, those rows, others in every epoch, are left out of it.
    """
    full, left_over = divmod(rows, batch)
    if not architecture.exact:
        return [batch] * (full + bool(left_over))
    return [size for size in [batch] * full + [left_over] if size >= architecture.smallest_batch]


def _wanted(pool: Pool, retrainings: Sequence[Retraining]) -> Callable[[Tensor], Tensor]:
    """From a batch of rows (k, b) to the one-hot classes its members should say: (k, b, c)."""
    onehot = torch.eye(pool.classes, dtype=pool.x.dtype, device=pool.x.device)
    if not any(retraining.label_noise for retraining in retrainings):
        shared = onehot[pool.y]  # (n, c)
        return lambda chosen: embedding(chosen, shared)
    labels = torch.stack([labels_of(retraining, pool) for retraining in retrainings])  # (k, n)
    return lambda chosen: onehot[labels.gather(1, chosen)]


def _plans(
    seen: list[Tensor], retrainings: Sequence[Retraining], batch: int, total: int, device: torch.device
) -> Iterator[Tensor]:
    """The batches of each of ``total`` epochs: (steps, k, batch) rows, the last filled up with rows that do not count.

    Each order comes from a CPU generator of the member's own seed, so it is the same on every device; members with one
    seed and as many rows have one order. Only orders travel to a GPU; rows are looked up there.
    """
    steps = math.ceil(len(seen[0]) / batch)
    full = steps * batch
    keys = [(retraining.order_seed, len(rows)) for retraining, rows in zip(retrainings, seen, strict=True)]
    distinct = list(dict.fromkeys(keys))
    which = torch.tensor([distinct.index(key) for key in keys], device=device)
    rows = torch.stack([torch.nn.functional.pad(rows, (0, full - len(rows))) for rows in seen]).to(device)  # (k, full)
    for orders in _orders(distinct, full, total, ahead=device.type != "cpu"):
        for epoch in orders.to(device, non_blocking=True):
            yield rows.gather(1, epoch[which].long()).view(len(seen), steps, batch).transpose(0, 1)


def _orders(keys: list[tuple[int, int]], full: int, total: int, ahead: bool) -> Iterator[Tensor]:
    """For each (seed, rows) and epoch a permutation of the rows, padded: (some epochs, keys, full).

    ``ahead`` draws them on a few threads while those before are in use, or a GPU would wait.
    """
    draws = [torch.Generator().manual_seed(seed) for seed, _ in keys]
    at_once = max(1, PLANNED // (4 * len(keys) * full))
    blocks = [1, *(min(at_once, total - start) for start in range(1, total, at_once))]

    def draw(orders: Tensor, number: int) -> None:
        rows = keys[number][1]
        for epoch in orders[:, number, :rows]:
            torch.randperm(rows, generator=draws[number], out=epoch)

    def drawn(epochs: int, each: Callable[..., Iterator[None]] = map) -> Tensor:
        orders = torch.zeros(epochs, len(keys), full, dtype=torch.int32, pin_memory=ahead)
        list(each(draw, repeat(orders), range(len(keys))))
        return orders

    if not ahead:
        yield from map(drawn, blocks)
        return
    with ThreadPoolExecutor(DRAWING) as threads, ThreadPoolExecutor(1) as next_block:
        following = next_block.submit(drawn, blocks[0], threads.map)
        for epochs in [*blocks[1:], 0]:  # nothing follows the last
            orders, following = following.result(), next_block.submit(drawn, epochs, threads.map)
            yield orders


def _share(seen: list[Tensor], batch: int, like: Tensor) -> Tensor:
    """How much each row of each batch counts: one over the batch's true size, 0 for filling. (steps, k, batch, 1)"""
    rows = torch.tensor([len(member_rows) for member_rows in seen])
    steps = math.ceil(len(seen[0]) / batch)
    counts = torch.arange(steps * batch).view(steps, 1, batch) < rows[:, None]
    return (counts / counts.sum(2, keepdim=True))[..., None].to(like)


# ---- on a GPU ----


def _captured(blocks: Sequence[Steps], changed: Sequence[Tensor], adam: torch.optim.Adam) -> list[Steps]:
    """Each block of steps as one CUDA graph: launching thirty kernels a step takes longer than running them."""
    before = [tensor.clone() for tensor in changed]
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # a graph is captured after a round that sets up what it uses
        for steps in set(blocks):
            steps()
    torch.cuda.current_stream().wait_stream(stream)
    graphs = {steps: _graph(steps) for steps in set(blocks)}
    for tensor, start in zip(changed, before, strict=True):  # as if nothing had been trained yet
        tensor.copy_(start)
    for state in adam.state[adam.param_groups[0]["params"][0]].values():
        state.zero_()
    return [graphs[steps].replay for steps in blocks]


def _graph(steps: Steps) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        steps()
    return graph
