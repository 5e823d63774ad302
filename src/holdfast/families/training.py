"""Train a whole family: which members go together, who trains them, what is already there."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.families.entries import Entry, check_store
from holdfast.families.family import Family
from holdfast.families.members import Stack
from holdfast.families.module import Architecture, TorchModule
from holdfast.families.perceptron import Perceptron, State
from holdfast.families.recipe import Recipe, Retraining, checked_changes
from holdfast.families.stacked_training import batch_sizes, train_stack
from holdfast.families.store import (
    add_members,
    fingerprint_data,
    fingerprint_member,
    finish_entry,
    finished_members,
    load_entry,
)
from holdfast.families.training_data import Pool, check_material, disturbed, needs_more
from holdfast.models.model import Model, check_callable
from holdfast.models.rows import DTYPES, check_tensor
from holdfast.utils.memory import check_memory
from holdfast.utils.progress import bar
from holdfast.utils.settings import check_whole
from holdfast.utils.threads import cores, one_thread
from holdfast.utils.workers import in_workers

LOG = logging.getLogger(__name__)
CACHE = 8 << 20  # bytes that a chunk of members in training should stay below on a CPU
GPU_SHARE = 0.5  # of a GPU's free memory that training may take
FEW_OPERATIONS = 1e11  # floating-point operations below which starting worker processes does not pay
CHUNK = 1e11  # of a chunk on a CPU: about ten seconds of work that an interruption may lose

Shape = tuple[int, ...]  # widths of hidden layers


def train(
    x: Tensor,
    y: Tensor,
    recipe: Recipe,
    retrainings: Sequence[Retraining],
    *,
    new: tuple[Tensor, Tensor] | None = None,
    base: Model | None = None,
    held_out: tuple[Tensor, Tensor] | None = None,
    store: str | Path | None = None,
    classes: int | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Family:
    """Train one network per `Retraining`, and return them as a `Family`.

    On a CPU the members are shared out among single-threaded processes. On a GPU (where x is) those of one shape are
    one stack, or as many as fit its memory.

    Args:
        x: (n, d) the training rows, encoded
        y: (n,) their class indices
        recipe: how a network is trained
        retrainings: what sets each member apart, such as ``hf.seeds(100)``; ``[hf.Retraining()]`` is the deployed model
        new: rows and labels that the deployed model never saw, for changes that append some of them
        base: the deployed model, for changes that continue from it
        held_out: rows and labels that give each member's accuracy
        store: a folder in which the family is kept: asked for again it is read, and after an interruption only what was
            not finished is trained
        classes: how many; the largest label + 1 by default, or what the recipe's module says
        workers: processes on a CPU; by default one per core, or this process when there is little to do
        progress: True shows a bar

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> deployed = hf.train(x, y, recipe, [hf.Retraining()])[0]
        >>> family = hf.train(x, y, recipe, hf.seeds(3) + hf.changes.bootstrap(2))
        >>> family
        Family(61-8-2: 3 seeds, 2 bootstrap)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Methodology) and Appendix B.4: a base
    model, and 100 more for each kind of change.
    """
    members = checked_changes(retrainings, "retrainings")
    if workers is not None:
        check_whole("workers", workers, least=1)
    job = _job(_pool(x, y, new, classes), recipe, members, base, classes)
    if held_out is not None:
        _check_held_out(held_out, job.pool)
    fingerprints = job.fingerprints()
    entry = None if store is None else Entry.of(store, fingerprints)
    if entry is not None and entry.complete:
        LOG.info("found %d networks in %s", len(fingerprints), entry.folder)
        family = replace(
            load_entry(entry, fingerprints, job.architectures.values(), x), retrainings=job.retrainings, recipe=recipe
        )
    else:
        if not x.is_cuda:  # those gathered, and those in the making
            what = f"a family of {len(job.retrainings)} networks of {job.architecture(0).name}"
            check_memory(what, 2 * _bytes(job), "train fewer members at a time")
        if entry is not None:
            check_store(entry.folder.parent)
        family = _all_members(job, fingerprints, entry, workers, progress)
    if held_out is not None:
        right = family.predict(held_out[0].to(x)) == held_out[1].to(x.device)
        family = replace(family, accuracy=tuple(right.double().mean(1).tolist()))
    if entry is not None:
        finish_entry(entry, family)
    return family


def _all_members(
    job: _Job, fingerprints: tuple[str, ...], entry: Entry | None, workers: int | None, progress: bool
) -> Family:
    """Every member: from the store what is there, the rest trained and put there."""
    known = {} if entry is None else finished_members(entry)
    trained = [
        ([member], {part: tensor[None] for part, tensor in known[name].items()})
        for member, name in enumerate(fingerprints)
        if name in known
    ]
    count = len(fingerprints)
    here = job.pool.x.device.type != "cpu" or (workers is None and _operations(job, 0) * count < FEW_OPERATIONS)
    workers = 1 if here else min(workers or cores(), count)
    missing = [[m for m in chunk if fingerprints[m] not in known] for chunk in _chunks(job, workers)]
    chunks = [chunk for chunk in missing if chunk]
    LOG.info("training %d of %d networks, workers: %d", sum(map(len, chunks)), len(fingerprints), workers)
    with bar(f"Training {len(fingerprints)} networks", len(fingerprints), progress) as advance:
        advance(len(trained))

        def take(done: tuple[list[int], State]) -> None:
            chunk, state = done[0], _finished(job, *done)
            if entry is not None:
                add_members(entry, [fingerprints[member] for member in chunk], state)
            trained.append((chunk, dict(state)))
            advance(len(chunk))

        x, y = job.pool.x, job.pool.y  # of a view, all that it is a view of would travel
        pool = job.pool if workers == 1 else replace(job.pool, x=x.clone(), y=y.clone())
        tasks = ((job.architecture(chunk[0]), chunk, [job.retrainings[member] for member in chunk]) for chunk in chunks)
        in_workers(_train_chunk, tasks, workers, take, shared=(pool, job.recipe, job.base))
    LOG.info("trained %d networks on %d rows", sum(map(len, chunks)), len(job.pool.x))
    return _family(job, trained, fingerprints)


def _family(job: _Job, trained: list[tuple[list[int], dict[str, Tensor]]], fingerprints: tuple[str, ...]) -> Family:
    """Networks of one shape as one stack, in the order in which the shapes come first."""
    stacks, members, device = [], [], job.pool.x.device
    for shape, architecture in job.architectures.items():
        alike = [(chunk, state) for chunk, state in trained if job.shape(chunk[0]) == shape]
        inside = [member for chunk, _ in alike for member in chunk]
        order = torch.tensor(inside).argsort().to(device)
        stacked = {  # each tensor goes as it is taken, so that no more than one is held twice
            name: torch.cat([state.pop(name).to(device) for _, state in alike])[order] for name in [*alike[0][1]]
        }
        stacks.append(Stack(architecture, stacked))
        members += sorted(inside)
    return Family(
        tuple(stacks),
        job.retrainings,
        tuple(torch.tensor(members).argsort().tolist()),
        fingerprints=fingerprints,
        recipe=job.recipe,
        data=job.data_fingerprint,
    )


def _finished(job: _Job, chunk: list[int], state: State) -> State:
    """A chunk's trained networks with what comes after training, if they are sound."""
    finite = torch.stack([tensor.isfinite().view(len(chunk), -1).all(1) for tensor in state.values()]).all(0)
    if not finite.all():
        lost = job.retrainings[chunk[int(finite.int().argmin())]]
        raise ValueError(f"training diverged for {lost}: its weights are not finite; lower the learning rate")
    retrainings = [job.retrainings[member] for member in chunk]
    if not any(retraining.weight_noise for retraining in retrainings):
        return state
    members = [
        disturbed({name: tensor[number] for name, tensor in state.items()}, retraining)
        for number, retraining in enumerate(retrainings)
    ]
    return {name: torch.stack([weights[name] for weights in members]) for name in state}


# ---- what there is to train ----


@dataclass(frozen=True)
class _Job:
    pool: Pool
    recipe: Recipe
    retrainings: tuple[Retraining, ...]
    base: Model | None
    architectures: Mapping[Shape, Architecture]
    rows: tuple[int, ...]  # how many each member sees

    def own_recipe(self, member: int) -> Recipe:
        return self.retrainings[member].recipe(self.recipe)

    def shape(self, member: int) -> Shape:
        return self.own_recipe(member).hidden

    def architecture(self, member: int) -> Architecture:
        return self.architectures[self.shape(member)]

    def alike(self, member: int) -> tuple[Recipe, bool, int]:
        """Members for which this is equal can be one stack: one shape, one batch size, as many steps an epoch.

        Adam moves on a zero gradient too, so nobody may sit out a step. Where the rows of a batch touch one another
        there must be as many rows.
        """
        recipe, own_rates = self.own_recipe(member), self.retrainings[member].own_rates
        exact = self.architecture(member).exact
        if own_rates:
            recipe = replace(recipe, learning_rate=self.recipe.learning_rate, weight_decay=self.recipe.weight_decay)
            if not exact:  # a member that is done stays as it is, but a module's running means would go on
                recipe = replace(recipe, epochs=self.recipe.epochs)
        rows = self.rows[member]
        return recipe, own_rates, rows if exact else math.ceil(rows / recipe.batch)

    @cached_property
    def data_fingerprint(self) -> str:
        return fingerprint_data(self.pool, self.base)

    def fingerprints(self) -> tuple[str, ...]:
        more = self.pool.new or self.base is not None
        old = fingerprint_data(self.pool.without_new()) if more else self.data_fingerprint
        network = None if self.recipe.network is None else self.architecture(0).description
        return tuple(
            fingerprint_member(
                self.data_fingerprint if needs_more(retraining) else old, self.recipe, retraining, network
            )
            for retraining in self.retrainings
        )


def _job(
    pool: Pool, recipe: Recipe, retrainings: tuple[Retraining, ...], base: Model | None, classes: int | None
) -> _Job:
    """All that training needs, if it can be done."""
    if not isinstance(recipe, Recipe):
        raise TypeError(f"recipe must be a Recipe, such as Recipe((64, 16), epochs=50), got {recipe!r}")
    if base is not None:
        check_callable(base, "base")
    rows = tuple(check_material(retraining, pool) for retraining in retrainings)
    architectures = _architectures(pool, recipe, retrainings)
    says = next(iter(architectures.values())).classes
    if says < pool.classes or (classes is not None and says != classes):
        raise ValueError(f"the recipe's network gives {says} logits a row, but there are {pool.classes} classes")
    job = _Job(replace(pool, classes=says), recipe, retrainings, base, architectures, rows)
    for member, retraining in enumerate(retrainings):
        member_recipe, architecture = job.own_recipe(member), job.architecture(member)
        if retraining.parameters:
            raise ValueError(
                f"{retraining} changes parameters of an estimator, which `refit` does; for networks use "
                "changes.hyperparameters"
            )
        if retraining.continued and base is None:
            raise ValueError(f"{retraining} continues from the deployed network; pass train(..., base=network)")
        if retraining.continued and base is not None:
            architecture.check_base(base)
        if retraining.top_only and member_recipe.weight_decay:
            raise ValueError(f"{retraining} keeps all layers but the last, which weight decay would shrink")
        if not batch_sizes(architecture, rows[member], member_recipe.batch):
            raise ValueError(
                f"{architecture.name} normalises over batches, and {retraining} has batches of "
                f"{min(rows[member], member_recipe.batch)} row; choose a batch of two or more"
            )
    return job


def _architectures(pool: Pool, recipe: Recipe, retrainings: Sequence[Retraining]) -> dict[Shape, Architecture]:
    """By the widths of hidden layers; a recipe's network has one shape."""
    shapes = {shaped.hidden: shaped for shaped in (retraining.recipe(recipe) for retraining in retrainings)}
    if recipe.network is None:
        return {shape: Perceptron(shaped.sizes(pool.x.shape[1], pool.classes)) for shape, shaped in shapes.items()}
    if len(shapes) > 1:
        raise ValueError("changes of architecture are for perceptrons, but the recipe has a network of its own")
    return dict.fromkeys(shapes, TorchModule.of(recipe.network, pool.x))


def _pool(x: Tensor, y: Tensor, new: tuple[Tensor, Tensor] | None, classes: int | None) -> Pool:
    """Old and new rows in one, if they are what training needs."""
    old = _checked_rows(x, y)
    x = x.detach()
    if classes is not None:
        check_whole("classes", classes)
    if new is not None:
        x_new, y_new = _pair("new", new, x, "the old ones")
        x, y = torch.cat([x, x_new.detach().to(x)]), torch.cat([y, y_new.to(y)])
    seen = int(y.max()) + 1
    if int(y.min()) < 0 or (classes is not None and classes < seen):
        allowed = "0 and up" if classes is None else f"0 to {classes - 1}, as classes={classes} says"
        raise ValueError(f"labels go from {int(y.min())} to {int(y.max())}; expected class indices {allowed}")
    return Pool(x, y, old, max(classes or seen, 2))


def _check_held_out(held_out: Any, pool: Pool) -> None:
    """Before hours of training, not after them."""
    _, labels = _pair("held_out", held_out, pool.x, "the others")
    if not 0 <= int(labels.min()) <= int(labels.max()) < pool.classes:
        raise ValueError(
            f"labels of held_out go from {int(labels.min())} to {int(labels.max())}; expected class indices 0 to "
            f"{pool.classes - 1}"
        )


def _pair(name: str, given: Any, beside: Tensor, others: str) -> tuple[Tensor, Tensor]:
    """Rows and their labels, if they can stand beside other rows."""
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise TypeError(f"{name} must be rows and their labels, {name}=(x, y), got {type(given).__name__}")
    x, y = given
    _checked_rows(x, y)
    if x.shape[1] != beside.shape[1]:
        raise ValueError(f"{name} rows have {x.shape[1]} columns, {others} {beside.shape[1]}; use one encoding")
    return x, y


def _checked_rows(x: Tensor, y: Tensor) -> int:
    for name, value in {"x": x, "y": y}.items():
        check_tensor(name, value, "use encoding.encode and encoding.labels")
    if x.ndim != 2 or y.shape != x.shape[:1] or not x.numel():
        raise ValueError(
            f"expected x (n, d) and y (n,) with n of 1 or more, and d too, got {tuple(x.shape)} and {tuple(y.shape)}"
        )
    if y.dtype != torch.int64 or x.dtype not in DTYPES:
        raise ValueError(
            f"x must hold floating-point numbers and y class indices as int64, got {x.dtype} and {y.dtype}; "
            "use encoding.encode and encoding.labels, or x.float() and y.long()"
        )
    if not x.isfinite().all():
        raise ValueError("x holds values that are not finite; fill or drop those rows before training")
    return len(x)


# ---- who trains what ----


def _members_at_once(job: _Job, member: int) -> int:
    """How many members like this one are a stack: what the cache, or a GPU's memory, holds."""
    x, architecture, recipe = job.pool.x, job.architecture(member), job.own_recipe(member)
    state = 4 * _parameters(architecture)  # parameters, gradients and Adam's two moments
    activations = 2 * min(recipe.batch, len(x)) * architecture.width
    each = (state + activations) * x.element_size()
    if not x.is_cuda:
        return max(1, CACHE // each)
    plans = 3 * len(x) * (8 + x.element_size())  # the rows of an epoch, which are drawn ahead, and their weights
    free, _ = torch.cuda.mem_get_info(x.device)
    return max(1, int(GPU_SHARE * free) // (2 * each + plans))


def _chunks(job: _Job, workers: int) -> list[list[int]]:
    """Share out the members, stacking only those that can take their steps together."""
    alike: dict[tuple[Recipe, bool, int], list[int]] = {}
    for member in range(len(job.retrainings)):
        alike.setdefault(job.alike(member), []).append(member)
    chunks = []
    for members in alike.values():
        at_once = _members_at_once(job, members[0])
        if not job.pool.x.is_cuda:
            at_once = max(1, min(at_once, int(CHUNK / _operations(job, members[0]))))
        pieces = math.ceil(len(members) / at_once)
        pieces = min(len(members), math.ceil(pieces / workers) * workers)  # so that no worker waits at the end
        chunks += [piece.tolist() for piece in np.array_split(np.array(members), pieces)]
    return chunks


def _train_chunk(
    pool: Pool,
    recipe: Recipe,
    base: Model | None,
    architecture: Architecture,
    chunk: list[int],
    retrainings: list[Retraining],
) -> tuple[list[int], State]:
    with one_thread():
        state = train_stack(architecture, pool, recipe, base, retrainings)
    return chunk, {name: tensor if tensor.is_cuda else tensor.clone() for name, tensor in state.items()}


def _operations(job: _Job, member: int) -> float:
    """About how many floating-point operations a member's training takes."""
    return 6.0 * _parameters(job.architecture(member)) * job.rows[member] * job.own_recipe(member).epochs


def _bytes(job: _Job) -> int:
    """About how large a family is."""
    numbers = sum(_parameters(job.architecture(member)) for member in range(len(job.retrainings)))
    return numbers * job.pool.x.element_size()


def _parameters(architecture: Architecture) -> int:
    return sum(math.prod(shape) for shape in architecture.trained.values())
