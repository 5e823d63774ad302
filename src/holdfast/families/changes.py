"""The kinds of change that retraining brings, each a list of Retrainings; ``+`` joins lists, `both` joins changes.

A change of the data keeps the base's seeds, so that what is measured is the data; ``both(seeds(n), ...)`` adds new
seeds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any

import torch

from holdfast.families.kinds import JOIN
from holdfast.families.recipe import Recipe, Retraining
from holdfast.utils.settings import check_number, check_seed, check_whole

BASE = Retraining()
MOST_MEMBERS = 10**6  # members of a family; their descriptions alone take a gigabyte


def seeds(n: int, start: int = 1) -> list[Retraining]:
    """Trained again with other initial weights and another batch order (the paper's RS).

    Args:
        n: how many retrained models
        start: the first seed. The deployed model has seed 0, so it is never one of these; families that must not share
            a member (to search, to select, to audit) take ranges that do not overlap

    Examples:
        >>> import holdfast as hf
        >>> hf.seeds(1)
        [Retraining(init_seed=1, order_seed=1, kind='seeds')]
        >>> hf.seeds(100, start=101)[0].init_seed  # 100 others
        101

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Retraining Controls, RS) and Appendix
    B.4.
    """
    return [Retraining(init_seed=seed, order_seed=seed, kind="seeds") for seed in _seeds(n, start)]


def leave_one_out(n: int, rows: int, seed: int = 0, base: Retraining = BASE) -> list[Retraining]:
    """One customer asked to be forgotten: one of the training rows missing (the paper's LOO).

    The n rows are drawn without replacement. The base's seeds draw the batches anew over the rows - 1 that are left.

    Args:
        n: how many retrained models
        rows: how many training rows there are
        seed: draws which ones are left out
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> changes = hf.changes.leave_one_out(100, rows=700)
        >>> len({change.left_out for change in changes})  # a different row each
        100

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Retraining Controls, LOO) and Appendix
    B.4.
    """
    _check_count(n)
    check_whole("rows", rows, least=1)
    check_seed("seed", seed)
    _check_base(base)
    if n > rows:
        raise ValueError(f"cannot leave out {n} different rows of {rows}; ask for {rows} or fewer")
    chosen = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))[:n].tolist()
    return [replace(base, left_out=row, kind="leave-one-out") for row in chosen]


def leave_out(n: int, share: float, start: int = 0, base: Retraining = BASE) -> list[Retraining]:
    """Some customers are gone: a random share of the training rows missing.

    Args:
        n: how many retrained models
        share: of the rows that are missing
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> hf.changes.leave_out(1, share=0.1)
        [Retraining(left_out_share=0.1, kind='leave-out')]

    Paper: leaving out several is measured in [Hamman et al. 2023](https://arxiv.org/abs/2305.11997).
    """
    _check_share("share", share)
    return _drawn(n, start, base, kind="leave-out", left_out_share=share)


def bootstrap(n: int, start: int = 0, base: Retraining = BASE) -> list[Retraining]:
    """Another sample of the same population: as many rows, drawn with replacement.

    Args:
        n: how many retrained models
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> hf.changes.bootstrap(1)
        [Retraining(redrawn=True, kind='bootstrap')]
        >>> hf.changes.bootstrap(1, start=7)  # another draw
        [Retraining(redrawn=True, data_seed=7, kind='bootstrap')]

    Paper: the bootstrap is that of [Efron 1979](https://doi.org/10.1214/aos/1176344552).
    """
    return _drawn(n, start, base, kind="bootstrap", redrawn=True)


def shift(n: int, column: int, strength: float, start: int = 0, base: Retraining = BASE) -> list[Retraining]:
    """The population moves: rows drawn with replacement and probability ∝ exp(strength · encoded column).

    For a standardised, roughly normal column the mean moves by ``strength`` standard deviations.

    Args:
        n: how many retrained models
        column: the number of an encoded column
        strength: how far it moves; below 0 to smaller values
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> age = encoding.columns.index("age")
        >>> hf.changes.shift(1, column=age, strength=0.5)  # an older population
        [Retraining(tilt=(44, 0.5), kind='shift')]

    Paper: what shifts of the data do to recourse is studied in [Rawal et al. 2021](https://arxiv.org/abs/2012.11788).
    """
    check_number("strength", strength)
    return _drawn(n, start, base, kind="shift", tilt=(column, float(strength)))


def windows(n: int, length: int, rows: int, base: Retraining = BASE) -> list[Retraining]:
    """Trained on another stretch of time: windows evenly spread over rows in order of time.

    Args:
        n: how many windows, one retrained model each
        length: of a window, in rows
        rows: how many training rows there are
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> [change.window for change in hf.changes.windows(3, length=500, rows=1000)]
        [(0, 500), (250, 750), (500, 1000)]

    Paper: what shifts over time do to recourse is studied in [Rawal et al. 2021](https://arxiv.org/abs/2012.11788).
    """
    _check_count(n)
    check_whole("rows", rows)
    check_whole("length", length)
    _check_base(base)
    if not 1 <= length <= rows:
        raise ValueError(f"a window of {length} rows does not fit {rows}; choose from 1 to {rows}")
    first = [round(number * (rows - length) / max(n - 1, 1)) for number in range(n)]
    if len(set(first)) < n:
        raise ValueError(f"{rows} rows hold only {rows - length + 1} different windows of {length}, not {n}")
    return [replace(base, window=(start, start + length), kind="window") for start in first]


def append(n: int, share: float = 1.0, start: int = 0, base: Retraining = BASE) -> list[Retraining]:
    """New customers have come: a random share of the new rows added to the old ones.

    `train` needs the new rows: ``train(..., new=(x_new, y_new))``; so does `refit`: ``refit(..., new=table)``.

    Args:
        n: how many retrained models
        share: of the new rows that are added
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table[:800], schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> old, new = (x[:800], y[:800]), (x[800:], y[800:])
        >>> hf.train(*old, recipe, hf.changes.append(2, share=0.5), new=new)
        Family(61-8-2: 2 append)

    Paper: what new data do to recourse is studied in [Rawal et al. 2021](https://arxiv.org/abs/2012.11788).
    """
    _check_share("share", share, whole=True)
    return _drawn(n, start, base, kind="append", appended=share)


def label_noise(n: int, rate: float, start: int = 0, base: Retraining = BASE) -> list[Retraining]:
    """Outcomes were recorded wrongly, or judged otherwise: each label turns into another with this probability.

    Args:
        n: how many retrained models
        rate: the probability
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> hf.changes.label_noise(1, rate=0.02)
        [Retraining(label_noise=0.02, kind='label-noise')]

    Paper: such noise is the uniform one of [Frénay and Verleysen 2014](https://doi.org/10.1109/TNNLS.2013.2292894).
    """
    _check_share("rate", rate)
    return _drawn(n, start, base, kind="label-noise", label_noise=rate)


def weight_noise(n: int, scale: float, start: int = 0, base: Retraining = BASE) -> list[Retraining]:
    """The network was compressed or moved to other hardware: Gaussian noise on its weights after training.

    Args:
        n: how many retrained models
        scale: of the noise, in standard deviations of each layer's weights
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> hf.changes.weight_noise(1, scale=0.01)
        [Retraining(weight_noise=0.01, kind='weight-noise')]

    Paper: changed weights are also what [Upadhyay et al. 2021](https://arxiv.org/abs/2102.13620) guard against.
    """
    _check_above_0("scale", scale)
    return _drawn(n, start, base, kind="weight-noise", weight_noise=scale)


def fine_tune(
    n: int,
    epochs: int,
    share: float = 1.0,
    learning_rate: float | None = None,
    top_only: bool = False,
    start: int = 0,
    base: Retraining = BASE,
) -> list[Retraining]:
    """Updated rather than retrained: the deployed model trained further, on a random share of the new rows.

    `train` needs the new rows and the deployed model: ``train(..., new=(x_new, y_new), base=deployed)``. Each member
    sees its batches in an order of its own.

    Args:
        n: how many updated models
        epochs: how often every new row is seen
        share: of the new rows
        learning_rate: the recipe's when left out
        top_only: True if only the last layer moves, the setting of the paper's Theorem 2
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table[:800], schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> old, new = (x[:800], y[:800]), (x[800:], y[800:])
        >>> deployed = hf.train(*old, recipe, [hf.Retraining()])[0]
        >>> changes = hf.changes.fine_tune(2, epochs=3)
        >>> hf.train(*old, recipe, changes, new=new, base=deployed)
        Family(61-8-2: 2 fine-tune)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.2, Theorem 2, for ``top_only``; Section 5.1
    names fine-tuning among the changes that it does not measure.
    """
    _check_share("share", share, whole=True)
    check_whole("epochs", epochs, least=1)
    settings: tuple[tuple[str, float], ...] = (("epochs", epochs),)
    if learning_rate is not None:
        _check_above_0("learning_rate", learning_rate)
        settings += (("learning_rate", learning_rate),)
    change: dict[str, Any] = {"continued": True, "top_only": top_only, "appended": share, "settings": settings}
    members = _drawn(n, start, base, kind="fine-tune", **change)
    return [replace(member, order_seed=base.order_seed + 1 + member.data_seed) for member in members]


def hyperparameters(
    n: int,
    epochs: tuple[int, int] | None = None,
    learning_rate: tuple[float, float] | None = None,
    batch: Sequence[int] | None = None,
    weight_decay: tuple[float, float] | None = None,
    start: int = 0,
    base: Retraining = BASE,
) -> list[Retraining]:
    """Somebody tuned the training: settings of the recipe drawn from ranges.

    Args:
        n: how many retrained models
        epochs: from ... to ..., drawn evenly
        learning_rate: from ... to ..., drawn evenly on a log scale
        batch: a list of batch sizes
        weight_decay: from ... to ..., drawn evenly on a log scale
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> changes = hf.changes.hyperparameters(20, epochs=(80, 120), batch=(16, 32))
        >>> all(80 <= dict(change.settings)["epochs"] <= 120 for change in changes)
        True
    """
    ranges = {"epochs": epochs, "learning_rate": learning_rate, "batch": batch, "weight_decay": weight_decay}
    if all(given is None for given in ranges.values()):
        raise ValueError("name a setting to vary: epochs=(80, 120), learning_rate=(5e-4, 2e-3), batch=(16, 32), ...")
    varied: dict[str, Sequence[float]] = {}
    for name, given in ranges.items():
        if given is None:
            continue
        _check_choices(name, given)
        settings: list[dict[str, Any]] = [{name: value} for value in given]
        for setting in settings:
            Recipe(**setting)  # which says what it must be
        if name != "batch" and (len(given) != 2 or not 0 < given[0] <= given[1]):
            raise ValueError(f"{name} must be a range (low, high) above 0, got {given!r}")
        kept = list(given) if name == "batch" else tuple(given)
        varied[name] = tuple(map(float, kept)) if name in ("learning_rate", "weight_decay") else kept
    return _tuned(n, start, base, "hyperparameters", lambda draw: {"settings": _one_of_each(draw, varied)})


def parameters(
    n: int, /, *, start: int = 0, base: Retraining = BASE, **ranges: Sequence[float] | Sequence[Any]
) -> list[Retraining]:
    """Somebody tuned the estimator that `refit` fits: its parameters drawn from what is given by their names.

    A tuple of two numbers is a range: whole numbers are drawn evenly, others evenly on a log scale where both ends are
    above 0. A list is a choice. A step of a pipeline has its name before two underscores, as in scikit-learn:
    ``logisticregression__C=(0.1, 10.0)``. Members have seeds of their own, or two that draw the same would be one
    model.

    Args:
        n: how many retrained models
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0
        **ranges: a range or a list for each parameter

    Examples:
        >>> import holdfast as hf
        >>> criteria = ["gini", "entropy"]
        >>> changes = hf.changes.parameters(20, max_depth=(3, 6), criterion=criteria)
        >>> sorted({dict(change.parameters)["max_depth"] for change in changes})
        [3, 4, 5, 6]
    """
    if not ranges:
        raise ValueError("name a parameter to vary: parameters(50, max_depth=(3, 6), learning_rate=(0.05, 0.2))")
    for name, given in ranges.items():
        _check_choices(name, given)
    return _tuned(n, start, base, "parameters", lambda draw: {"parameters": _one_of_each(draw, ranges)})


def _one_of_each(draw: random.Random, ranges: Mapping[str, Sequence[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _one_of(draw, given)) for name, given in ranges.items())


def _one_of(draw: random.Random, given: Sequence[Any]) -> Any:
    if not _is_range(given):
        return draw.choice(list(given))
    low, high = given
    if isinstance(low, Integral) and isinstance(high, Integral):
        return draw.randint(int(low), int(high))
    return _log_uniform(draw, low, high) if low > 0 else draw.uniform(low, high)


def _is_range(given: Any) -> bool:
    """Two numbers, as a tuple: a list of two is a choice between them."""
    return isinstance(given, tuple) and len(given) == 2 and all(map(_is_number, given))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _check_choices(name: str, given: Any) -> None:
    if isinstance(given, str) or not isinstance(given, (tuple, list, range)) or not len(given):
        raise TypeError(f"{name} must be a range (low, high) or a list of values, got {given!r}")
    if _is_range(given) and given[0] > given[1]:
        raise ValueError(f"{name} must be a range (low, high), got {given!r}")


def architecture(
    n: int, widths: Sequence[int], depths: Sequence[int] = (), start: int = 0, base: Retraining = BASE
) -> list[Retraining]:
    """Somebody chose another network: other numbers and widths of hidden layers, from the widest to the narrowest.

    Members have seeds of their own, or two of one shape would be one network. Those of one shape are trained together,
    so few shapes are faster than many.

    Args:
        n: how many retrained models
        widths: a list or range; the width of each hidden layer is drawn from it
        depths: a list or range; the number of hidden layers is drawn from it. 1, 2 or 3 when left out
        start: the first seed of the draws; another one gives other draws
        base: the deployed model's own `Retraining`, where its seeds are not 0

    Examples:
        >>> import holdfast as hf
        >>> changes = hf.changes.architecture(20, widths=(32, 64), depths=(2,))
        >>> sorted({dict(change.settings)["hidden"] for change in changes})
        [(32, 32), (64, 32), (64, 64)]
    """
    depths = depths or (1, 2, 3)
    for name, given, least in (("widths", widths, 1), ("depths", depths, 0)):
        _check_choices(name, given)
        for value in given:
            check_whole(f"each of {name}", value, least)

    def drawn(draw: random.Random) -> dict[str, Any]:
        hidden = sorted((draw.choice(list(widths)) for _ in range(draw.choice(list(depths)))), reverse=True)
        return {"settings": (("hidden", tuple(hidden)),)}

    return _tuned(n, start, base, "architecture", drawn)


def both(first: Sequence[Retraining], second: Sequence[Retraining]) -> list[Retraining]:
    """Two changes at once: member i has what first[i] changes and what second[i] changes.

    Args:
        first: a list of changes
        second: another one, as long, of another kind

    Examples:
        >>> import holdfast as hf
        >>> hf.changes.both(hf.seeds(1), hf.changes.bootstrap(1))
        [Retraining(init_seed=1, order_seed=1, redrawn=True, kind='seeds & bootstrap')]
    """
    for members in (first, second):
        if not isinstance(members, Sequence) or not all(isinstance(member, Retraining) for member in members):
            raise TypeError(f"both joins two lists of changes, such as seeds(3) and bootstrap(3), got {members!r}")
    if len(first) != len(second):
        raise ValueError(f"both changes must have as many members, got {len(first)} and {len(second)}")
    return [_joined(change, other) for change, other in zip(first, second, strict=True)]


def _joined(change: Retraining, other: Retraining) -> Retraining:
    changed = {field.name for field in fields(other) if getattr(other, field.name) != field.default} - {"kind"}
    taken = {name for name in changed if getattr(change, name) not in (getattr(BASE, name), getattr(other, name))}
    if taken - {"data_seed"}:
        raise ValueError(f"both changes set {sorted(taken)}: {change} and {other}; choose changes of different kinds")
    return replace(change, **{name: getattr(other, name) for name in changed}, kind=f"{change.kind}{JOIN}{other.kind}")


def _log_uniform(draw: random.Random, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def _drawn(n: int, start: int, base: Retraining, **change: Any) -> list[Retraining]:
    _check_base(base)
    return [replace(base, data_seed=seed, **change) for seed in _seeds(n, start)]


def _tuned(
    n: int, start: int, base: Retraining, kind: str, change: Callable[[random.Random], dict[str, Any]]
) -> list[Retraining]:
    """Members of which each draws what it changes; but for hyperparameters, each has seeds of its own too."""
    _check_base(base)
    members = []
    for seed in _seeds(n, start):
        by = 0 if kind == "hyperparameters" else 1 + seed
        member = replace(base, init_seed=base.init_seed + by, order_seed=base.order_seed + by, kind=kind)
        members.append(replace(member, **change(random.Random(seed))))
    return members


def _seeds(n: int, start: int) -> range:
    _check_count(n)
    check_seed("start", start)
    return range(start, start + n)


def _check_count(n: int) -> None:
    check_whole("n, the number of members,", n)
    if n < 1:
        raise ValueError(f"a family needs one member or more, got {n}")
    if n > MOST_MEMBERS:
        raise ValueError(f"a family has {MOST_MEMBERS} members at most, got {n}; audit several smaller ones")


def _check_above_0(name: str, value: float) -> None:
    check_number(name, value)
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be above 0 and finite, got {value}")


def _check_share(name: str, value: float, whole: bool = False) -> None:
    check_number(name, value)
    if not (0 < value < 1 or (whole and value == 1)):
        raise ValueError(f"{name} must be above 0 and {'at most' if whole else 'below'} 1, got {value}")


def _check_base(base: Any) -> None:
    if not isinstance(base, Retraining):
        raise TypeError(f"base must be the Retraining of the deployed network, got {base!r}")
