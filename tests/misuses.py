"""What people get wrong, and what they must be told: one table of calls that cannot work.

Each entry is a call, the error it must raise and a piece of what the error must say. The table knows nothing of pytest:
`tests/test_misuses.py` checks every entry, and any script may run it against any version of the package. So all of
holdfast is looked up when an entry is called, and a name that a version does not have fails that entry alone.
"""

from __future__ import annotations

import functools
import importlib
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import torch

import holdfast as hf

Call = Callable[[], Any]


@dataclass(frozen=True)
class Misuse:
    """A call that cannot work, the error it must raise, and a piece of what the error must say."""

    of: str  # the public name, or the module's, that is misused
    what: str
    call: Call
    error: type[Exception] | tuple[type[Exception], ...]
    says: str

    @property
    def name(self) -> str:
        return f"{self.of}: {self.what}"


# ---- the material: made once, when the first entry asks for it ----


def part(name: str) -> Any:
    """A module of the package: part("theory.certificates")."""
    return importlib.import_module(f"holdfast.{name}")


@functools.cache
def made() -> SimpleNamespace:
    """A table of 24 people, two deployed networks, three retrained ones, counterfactuals and their audit."""
    torch.manual_seed(0)
    draw = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "income": draw.normal(50, 12, 24).round(2),
            "age": draw.integers(18, 80, 24),
            "job": draw.choice(["clerk", "nurse", "baker"], 24),
        }
    )
    table["outcome"] = np.where(table["income"] + table["age"] / 5 > 60, "yes", "no")
    schema = hf.Schema(
        (
            hf.Feature("income", "real", lower=0, upper=200),
            hf.Feature("age", "integer", lower=18, upper=90),
            hf.Feature("job", "categorical", levels=("clerk", "nurse", "baker")),
        ),
        label="outcome",
        classes=("no", "yes"),
    )
    encoding = hf.Encoding.fit(table, schema)
    x, y = encoding.encode(table), encoding.labels(table)
    recipe = hf.Recipe((8,), epochs=20, batch=8)
    family = hf.train(x, y, recipe, [hf.Retraining(), *hf.seeds(3)])
    model, audited = family[0], family[1:]
    space = encoding.space
    target = 1 - model(x).argmax(1)
    found = hf.PGD(radius=6.0, levels=3, steps=10)(model, x, target, space)
    return SimpleNamespace(
        table=table, schema=schema, encoding=encoding, x=x, y=y, recipe=recipe, family=audited, model=model,
        space=space, target=target, found=found, audit=hf.audit(found, audited), folder=Path(tempfile.mkdtemp()),
    )  # fmt: skip


@functools.cache
def method(name: str) -> Any:
    """A method that has been fitted, with little to do."""
    m = made()
    few = {"steps": 3, "levels": 2, "constants": 2, "epochs": 2, "samples": 20, "shells": 1, "sizes": (8, 2)}
    own = hf.METHODS[name]()
    return replace(own, **{key: few[key] for key in few if hasattr(own, key)}).fit(m.x, m.y, m.space)


CLASSES = {
    "pgd": "PGD", "min-l1": "MinCost", "min-l2": "MinCost", "prototype": "Prototype", "latent": "Latent",
    "margin": "Margin",
}  # fmt: skip
STABILISERS = ("SNS", "Confidence", "Certified", "Sparse")

# ---- what people hand over for rows, targets, models and spaces: a maker, the error, what it says ----

Wrong = dict[str, tuple[Callable[[Any], Any], Any, str]]

ROWS: Wrong = {
    "a numpy array": (lambda x: x.numpy(), TypeError, "must be a torch tensor, got ndarray"),
    "a DataFrame": (lambda x: pd.DataFrame(x.numpy()), TypeError, "must be a torch tensor, got DataFrame"),
    "a list": (lambda x: x.tolist(), TypeError, "must be a torch tensor, got list"),
    "None": (lambda x: None, TypeError, "must be a torch tensor, got NoneType"),
    "float16": (lambda x: x.half(), ValueError, ".float()"),
    "bfloat16": (lambda x: x.bfloat16(), ValueError, ".float()"),
    "whole numbers": (lambda x: x.long(), ValueError, ".float()"),
    "booleans": (lambda x: x > 0, ValueError, ".float()"),
    "complex numbers": (lambda x: x.to(torch.complex64), ValueError, "torch.complex64"),
    "sparse": (lambda x: x.to_sparse(), ValueError, "to_dense()"),
    "without values": (lambda x: x.to("meta"), ValueError, "no values"),
    "a single number": (lambda x: x.sum(), ValueError, "(n, "),
    "a single row": (lambda x: x[0], ValueError, "(n, "),
    "three dimensions": (lambda x: x[None], ValueError, "(n, "),
    "no columns": (lambda x: x[:, :0], ValueError, "column"),
    "one column too few": (lambda x: x[:, :-1], ValueError, "column"),
}
NOT_FINITE: Wrong = {
    "NaN": (lambda x: x.clone().fill_(math.nan), ValueError, "not finite"),
    "infinite": (lambda x: x.clone().fill_(math.inf), ValueError, "not finite"),
}
TARGETS: Wrong = {
    "a list": (lambda t: t.tolist(), TypeError, "target must be a torch tensor, got list"),
    "a class": (lambda t: 1, TypeError, "target must be a torch tensor, got int"),
    "a label": (lambda t: "yes", TypeError, "target must be a torch tensor, got str"),
    "None": (lambda t: None, TypeError, "target must be a torch tensor, got NoneType"),
    "a numpy array": (lambda t: t.numpy(), TypeError, "target must be a torch tensor, got ndarray"),
    "float": (lambda t: t.float(), ValueError, "int64"),
    "int32": (lambda t: t.int(), ValueError, "int64"),
    "bool": (lambda t: t.bool(), ValueError, "int64"),
    "too large": (lambda t: t + 2, ValueError, "from 0 to 1"),
    "negative": (lambda t: t - 2, ValueError, "from 0 to 1"),
    "too few": (lambda t: t[:-1], ValueError, "target (n,)"),
    "one for all": (lambda t: t[:1], ValueError, "target (n,)"),
    "a column": (lambda t: t[:, None], ValueError, "target (n,)"),
    "without values": (lambda t: t.to("meta"), ValueError, "no values"),
}


def _dropout(model: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(5, 2), torch.nn.Dropout())


SILENT: Wrong = {  # models that no function can use
    "None": (lambda model: None, TypeError, "cannot be called"),
    "a name": (lambda model: "pgd", TypeError, "cannot be called"),
    "that returns a tuple": (lambda model: lambda r: (model(r), r), ValueError, "the model gave tuple"),
    "that returns nothing": (lambda model: lambda r: None, ValueError, "the model gave NoneType"),
    "that returns numpy": (lambda model: lambda r: model(r).detach().numpy(), ValueError, "the model gave ndarray"),
    "of one dimension": (lambda model: lambda r: model(r)[:, 0], ValueError, "the model gave (24,) for 24 rows"),
    "of one column": (lambda model: lambda r: model(r)[:, :1], ValueError, "the model gave (24, 1) for 24 rows"),
    "of three dimensions": (lambda model: lambda r: model(r)[None], ValueError, "the model gave (1, 24, 2)"),
    "of other rows": (lambda model: lambda r: model(r)[:-1], ValueError, "the model gave (23, 2) for 24 rows"),
    "of complex numbers": (lambda model: lambda r: model(r).to(torch.complex64), ValueError, "torch.complex64"),
    "of sparse logits": (lambda model: lambda r: model(r).to_sparse(), ValueError, "to_dense()"),
    "of other columns": (lambda model: torch.nn.Linear(7, 2), ValueError, "does not take rows of 5 columns"),
    "in float64": (lambda model: torch.nn.Linear(5, 2).double(), ValueError, "torch.float64"),
    "that asks for more": (lambda model: lambda r, s: model(r), ValueError, "does not take rows of 5 columns"),
}
MODELS: Wrong = SILENT | {  # and those that no search can
    "without gradient": (lambda model: lambda r: model(r.detach()), ValueError, "no gradient"),
    "in training mode": (_dropout, ValueError, "model.eval()"),
}
SPACES: Wrong = {
    "None": (lambda s: None, TypeError, "expected a Space, got NoneType"),
    "its name": (lambda s: "free", TypeError, "expected a Space, got str"),
    "an encoding": (lambda s: made().encoding, TypeError, "expected a Space, got Encoding"),
    "of other width": (lambda s: hf.Space.free(torch.randn(4, 7)), ValueError, "columns"),
}


def every(of: str, what: str, wrong: Wrong, call: Callable[[Any], Any], given: str) -> Iterator[Misuse]:
    """One entry for each thing that may be wrong; ``given`` names the right one in the material."""
    for name, (spoil, error, says) in wrong.items():
        yield Misuse(
            of, f"{what} {name}", lambda spoil=spoil: call(spoil(getattr(made(), given))), error, says
        )  # fmt: skip


# ---- methods and stabilisers ----


def _searches() -> Iterator[Misuse]:
    for name, of in CLASSES.items():
        rows, targets, models, spaces = (
            lambda x, name=name: method(name)(made().model, x, made().target, made().space),
            lambda t, name=name: method(name)(made().model, made().x, t, made().space),
            lambda f, name=name: method(name)(f, made().x, made().target, made().space),
            lambda s, name=name: method(name)(made().model, made().x, made().target, s),
        )
        yield from every(of, f"{name}, rows", ROWS | NOT_FINITE, rows, "x")
        yield from every(of, f"{name}, targets", TARGETS, targets, "target")
        yield from every(of, f"{name}, a model", MODELS, models, "model")
        yield from every(of, f"{name}, a space", SPACES, spaces, "space")
    art = lambda x: hf.MinCost.art(steps=2, constants=1)(made().model, x, made().target, made().space)  # noqa: E731
    yield from every("MinCost", "art, rows", ROWS, art, "x")


def _stabilisers() -> Iterator[Misuse]:
    for of in STABILISERS:
        yield from every(
            of, "a model", SILENT if of == "Certified" else MODELS,
            lambda f, of=of: getattr(hf, of)()(f, made().found, made().space), "model",
        ) if of != "Certified" else ()  # fmt: skip
        yield from every(
            of, "a space", SPACES, lambda s, of=of: getattr(hf, of)()(made().model, made().found, s), "space"
        )
        for name, start in {"None": lambda: None, "rows": lambda: made().x, "an audit": lambda: made().audit}.items():
            yield Misuse(
                of, f"a start that is {name}",
                lambda of=of, start=start: getattr(hf, of)()(made().model, start(), made().space),
                TypeError, "expected Counterfactuals",
            )  # fmt: skip
    yield Misuse(
        "Certified", "a function", lambda: hf.Certified()(lambda r: r[:, :2], made().found, made().space),
        TypeError, "a certificate needs a perceptron",
    )  # fmt: skip
    baselines = {
        "of other width": (lambda x: x[0, :3], ValueError, "baseline"),
        "of whole numbers": (lambda x: x[0].long(), ValueError, "baseline"),
        "of NaN": (lambda x: x[0] * math.nan, ValueError, "baseline"),
        "of other rows": (lambda x: x[:3], ValueError, "baseline"),
        "of three dimensions": (lambda x: x[None], ValueError, "baseline"),
        "of complex numbers": (lambda x: x[0].to(torch.complex64), ValueError, "baseline"),
        "without values": (lambda x: x[0].to("meta"), ValueError, "baseline"),
        "a list": (lambda x: x[0].tolist(), (TypeError, ValueError), "baseline"),
        "None": (lambda x: None, (TypeError, ValueError), "baseline"),
        "a word": (lambda x: "mean", ValueError, "baseline must be"),
        "a numpy array": (lambda x: x[0].numpy(), (TypeError, ValueError), "baseline"),
    }
    yield from every(
        "SNS", "a baseline", baselines,
        lambda b: hf.SNS(steps=2, baseline=b)(made().model, made().found, made().space), "x",
    )  # fmt: skip
    for of in ("SNS", "Confidence", "Certified"):
        yield Misuse(
            of, "radii for other rows",
            lambda of=of: getattr(hf, of)(radius=torch.ones(3), steps=2)(made().model, made().found, made().space),
            ValueError, "radius",
        )  # fmt: skip
        yield Misuse(of, "radii in two dimensions", lambda of=of: getattr(hf, of)(radius=torch.ones(24, 1))(
            made().model, made().found, made().space), ValueError, "radius")  # fmt: skip
    yield Misuse("Sparse", "an objective that is a number", lambda: hf.Sparse(objective=3), TypeError, "objective")
    yield Misuse(
        "SNS", "a line from an origin nobody named",
        lambda: hf.SNS(baseline="origin").value(made().model, made().x, made().target), ValueError, "origin=x",
    )  # fmt: skip


# ---- settings: a class or function, its arguments, and what they may not be ----

NO_SIZE = (0, -1.0, math.nan, math.inf, "2", None, True, [1.0])
NO_COUNT = (0, -1, 2.5, math.nan, "3", None, True)
NO_SEED = (-1, 1.5, "a", None, True)
NO_FLAG = ("yes", 1, None)

SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "PGD": {
        "radius": NO_SIZE, "levels": NO_COUNT, "steps": NO_COUNT, "seed": NO_SEED, "random_start": NO_FLAG,
    },
    "MinCost": {
        "norm": (0, 3, math.inf, "1", None), "learning_rate": (0, -1.0, math.nan, math.inf, "1"),
        "steps": NO_COUNT, "constants": NO_COUNT, "first": (0, -1.0, math.nan, "1"),
    },
    "Prototype": {
        "theta": (-1.0, math.nan, "1"), "beta": (-1.0, math.nan, "1"), "nearest": NO_COUNT, "steps": NO_COUNT,
        "constants": NO_COUNT, "categories": ("two-hot", None), "learning_rate": (0, math.nan, "1"), "raw": NO_FLAG,
    },
    "Latent": {
        "radius": NO_SIZE, "samples": NO_COUNT, "shells": NO_COUNT, "seed": NO_SEED, "sizes": ((), (0,), (2.5,), 8, "8"),
        "epochs": NO_COUNT, "steps": NO_COUNT, "batch": NO_COUNT, "learning_rate": (0, math.nan, "1"),
        "autoencoder": (3,),
    },
    "Margin": {"level": (0, 1, -0.5, 1.5, math.nan, "0.7", None, True), "search": (None, "min-l2")},
    "SNS": {
        "radius": NO_SIZE[:-1], "steps": NO_COUNT, "points": NO_COUNT, "norm": (0, 3, "2", None),
        "objective": ("sum", None),
    },
    "Confidence": {"radius": NO_SIZE[:-1], "steps": NO_COUNT, "norm": (0, 3, "2", None)},
    "Certified": {
        "radius": NO_SIZE[:-1], "steps": NO_COUNT, "norm": (0, 3, None), "delta": (-1.0, math.nan, math.inf, "1"),
        "change": (None, 3),
    },
    "Sparse": {"norm": (0, 3, None, "1"), "tolerance": (-1.0, math.nan, "1", None)},
    "Recipe": {
        "hidden": (8, "8", (0,), (-1,), (2.5,), (True,), None), "epochs": NO_COUNT, "batch": NO_COUNT,
        "learning_rate": (0, -1.0, math.nan, math.inf, "1", None, True), "betas": (0.9, (0.9,), (0.9, 1.0), (-0.1, 0.9)),
        "epsilon": (0, -1e-7, math.nan, "1"), "weight_decay": (-1.0, math.nan, math.inf, "1"), "network": ("mlp", 3),
    },
    "Retraining": {
        "init_seed": NO_SEED, "order_seed": NO_SEED, "data_seed": NO_SEED, "window": (3, (1,), (0.5, 2), (5, 2)),
        "left_out": (-1, 1.5, "a", True), "left_out_share": (-0.1, 1.0, math.nan, "1", True),
        "redrawn": NO_FLAG, "continued": NO_FLAG, "top_only": NO_FLAG, "tilt": (1.0, (0,), (0, math.nan), ("a", 1.0)),
        "appended": (-0.1, 1.5, math.nan, "1"), "label_noise": (-0.1, 1.5, math.nan, "1"),
        "weight_noise": (-1.0, math.nan, math.inf, "1"), "kind": (3, None), "settings": (3, ("epochs", 3), (("depth", 3),)),
    },
}  # fmt: skip


def _settings() -> Iterator[Misuse]:
    for of, fields in SETTINGS.items():
        for field, values in fields.items():
            for value in values:
                yield Misuse(
                    of, f"{field}={value!r}", lambda of=of, field=field, value=value: getattr(hf, of)(**{field: value}),
                    (TypeError, ValueError), field,
                )  # fmt: skip


# ---- families and their training ----

CHANGES: dict[str, tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = {  # right arguments, and wrong ones
    "seeds": ({"n": 2}, {"n": NO_COUNT, "start": NO_SEED}),
    "leave_one_out": ({"n": 2, "rows": 9}, {"n": NO_COUNT, "rows": NO_COUNT, "seed": NO_SEED, "base": (None, 3)}),
    "leave_out": ({"n": 2, "share": 0.1}, {"n": NO_COUNT, "share": (0, 1, -1, math.nan, "1", None, True)}),
    "bootstrap": ({"n": 2}, {"n": NO_COUNT, "start": NO_SEED, "base": (None,)}),
    "shift": (
        {"n": 2, "column": 0, "strength": 1.0},
        {"n": NO_COUNT, "column": (-1, 1.5, "income", None), "strength": (math.nan, math.inf, "1", None)},
    ),
    "windows": ({"n": 2, "length": 3, "rows": 9}, {"n": NO_COUNT, "length": NO_COUNT, "rows": NO_COUNT}),
    "append": ({"n": 2}, {"n": NO_COUNT, "share": (0, 1.5, math.nan, "1", None)}),
    "label_noise": ({"n": 2, "rate": 0.1}, {"n": NO_COUNT, "rate": (0, 1, math.nan, "1", None)}),
    "weight_noise": ({"n": 2, "scale": 0.1}, {"n": NO_COUNT, "scale": (0, -1, math.nan, math.inf, "1", None)}),
    "fine_tune": (
        {"n": 2, "epochs": 3},
        {"n": NO_COUNT, "epochs": NO_COUNT, "share": (0, 2, math.nan), "learning_rate": (0, -1, math.nan, "1")},
    ),
    "hyperparameters": (
        {"n": 2, "epochs": (2, 3)},
        {
            "n": NO_COUNT, "epochs": (3, (3,), (3, 2), (0, 2), (1.5, 2), ("a", "b")), "batch": (8, (), (0,), ("a",)),
            "learning_rate": (0.1, (0.1,), (0, 1), (2, 1), (math.nan, 1)), "weight_decay": (0.1, (0, 1)),
        },
    ),
    "architecture": (
        {"n": 2, "widths": [8]},
        {"n": NO_COUNT, "widths": (8, (), (0,), ("a",), (2.5,)), "depths": (3, (-1,), ("a",), (1.5,))},
    ),
    "both": ({"first": [], "second": []}, {"first": (None, 3, [3]), "second": (None, [1])}),
}  # fmt: skip


SAID = {"n": "member", "length": ""}  # where a message has another word for an argument


def _changes() -> Iterator[Misuse]:
    for name, (right, wrong) in CHANGES.items():
        of = name if name in ("seeds", "leave_one_out") else "changes"
        for field, values in wrong.items():
            for value in values:
                yield Misuse(
                    of, f"{name}({field}={value!r})",
                    lambda name=name, right=right, field=field, value=value: getattr(hf.changes, name)(
                        **{**right, field: value}
                    ),
                    (TypeError, ValueError), SAID.get(field, "changes" if name == "both" else field),
                )  # fmt: skip
    yield Misuse("leave_one_out", "more rows than there are", lambda: hf.leave_one_out(10, 9), ValueError, "rows of 9")
    yield Misuse("changes", "a window that does not fit", lambda: hf.changes.windows(2, 10, 9), ValueError, "does not fit")
    yield Misuse("changes", "too many windows", lambda: hf.changes.windows(9, 3, 9), ValueError, "7 different windows")
    yield Misuse("changes", "hyperparameters of nothing", lambda: hf.changes.hyperparameters(2), ValueError, "name a")
    yield Misuse(
        "changes", "both of other lengths", lambda: hf.changes.both(hf.seeds(2), hf.seeds(3)), ValueError, "2 and 3"
    )
    yield Misuse(
        "changes", "both of one kind", lambda: hf.changes.both(hf.seeds(2), hf.seeds(2, start=5)),
        ValueError, "choose changes of different kinds",
    )  # fmt: skip


def _train(**other: Any) -> Any:
    m = made()
    return hf.train(**{"x": m.x, "y": m.y, "recipe": m.recipe, "retrainings": [hf.Retraining()], **other})


def _with(name: str, *values: Any, says: str, error: Any = (TypeError, ValueError)) -> Iterator[Misuse]:
    """Training with one argument that is wrong: a value, or a function of the material that gives one."""
    for value in values:
        shown = value.__doc__ or value.__name__ if callable(value) else repr(value)
        yield Misuse(
            "train", f"{name} {shown}", lambda name=name, value=value: _train(**{name: _made(value)}), error, says
        )


def _made(value: Any) -> Any:
    return value(made()) if callable(value) else value


def given(words: str) -> Callable[[Any], Any]:
    """A name for what a function gives, where its own would say nothing."""

    def name(function: Any) -> Any:
        function.__doc__ = words
        return function

    return name


def _training() -> Iterator[Misuse]:
    rows = {name: wrong for name, wrong in (ROWS | NOT_FINITE).items() if name != "one column too few"}
    yield from every("train", "rows", rows, lambda x: _train(x=x), "x")
    labels: Wrong = {
        "a list": (lambda y: y.tolist(), TypeError, "y must be a torch tensor"),
        "a Series": (lambda y: pd.Series(y.numpy()), TypeError, "y must be a torch tensor"),
        "float": (lambda y: y.float(), ValueError, "int64"),
        "bool": (lambda y: y.bool(), ValueError, "int64"),
        "int32": (lambda y: y.int(), ValueError, "int64"),
        "negative": (lambda y: y - 1, ValueError, "class indices"),
        "too few": (lambda y: y[:-1], ValueError, "y (n,)"),
        "a column": (lambda y: y[:, None], ValueError, "y (n,)"),
        "without values": (lambda y: y.to("meta"), ValueError, "no values"),
    }
    yield from every("train", "labels", labels, lambda y: _train(y=y), "y")
    yield from _with("recipe", None, 3, (8, 8), says="recipe")
    yield from _with("retrainings", None, 3, [3], [None], "seeds", says="retrainings")
    yield from _with("retrainings", [], says="retrainings is empty")
    yield from _with("classes", 0, 1, -1, 2.5, "2", True, says="classes")
    yield from _with("workers", 0, -1, 1.5, "2", True, says="workers")
    yield from _with("base", 3, "model", says="base")
    yield from _with("store", 3, says="store")
    pairs: dict[str, tuple[Callable[[Any], Any], str]] = {
        "rows alone": (lambda m: m.x, "(x, y)"),
        "one thing": (lambda m: (m.x,), "(x, y)"),
        "numpy": (lambda m: (m.x.numpy(), m.y.numpy()), "must be a torch tensor"),
        "of other columns": (lambda m: (m.x[:, :3], m.y), "columns"),
        "of other rows": (lambda m: (m.x, m.y[:-1]), "(n,)"),
        "of no rows": (lambda m: (m.x[:0], m.y[:0]), "1 or more"),
        "a number": (lambda m: 3, "(x, y)"),
    }
    for name in ("new", "held_out"):
        for what, (make, says) in pairs.items():
            yield Misuse(
                "train", f"{name} {what}", lambda name=name, make=make: _train(**{name: make(made())}),
                (TypeError, ValueError), says,
            )  # fmt: skip
    yield Misuse("train", "a row that is not there", lambda: _train(retrainings=[hf.Retraining(left_out=99)]),
                 ValueError, "there are 24")  # fmt: skip
    yield Misuse("train", "a window that is not there", lambda: _train(retrainings=[hf.Retraining(window=(9, 99))]),
                 ValueError, "24 rows")  # fmt: skip
    yield Misuse("train", "no rows", lambda: _train(x=made().x[:0], y=made().y[:0]), ValueError, "1 or more")
    yield Misuse("train", "fine-tuning nothing", lambda: _train(retrainings=hf.changes.fine_tune(2, 3)),
                 ValueError, "new=")  # fmt: skip
    yield Misuse("train", "a setting nobody knows", lambda: _train(
        retrainings=[hf.Retraining(settings=(("depth", 3),))]), (TypeError, ValueError), "settings")  # fmt: skip


def _families() -> Iterator[Misuse]:
    def logits(x: Any) -> Any:
        return made().family.logits(x)

    def predict(x: Any) -> Any:
        return made().family.predict(x)

    yield from every("Family", "logits, rows", ROWS, logits, "x")
    yield from every("Family", "predict, rows", ROWS, predict, "x")
    silent = {name: wrong for name, wrong in SILENT.items() if name not in ("a name", "in float64")}  # these mean something
    yield from every("Family", "a model", silent, lambda f: hf.Family.from_models([f]).predict(made().x), "model")
    for place in (3, -4, 99):
        yield Misuse("Family", f"member {place}", lambda place=place: made().family[place], IndexError, "3 members")
    for place in (1.5, "a", None, [0]):
        yield Misuse(
            "Family", f"member {place!r}", lambda place=place: made().family[place], TypeError, "whole number"
        )
    for places in ([3], [-4], [0, 99]):
        yield Misuse(
            "Family", f"chosen {places}", lambda places=places: made().family.chosen(places), IndexError, "3 members"
        )
    for places in (1, "a", None, [1.5], ["a"], [None]):
        yield Misuse(
            "Family", f"chosen {places!r}", lambda places=places: made().family.chosen(places), TypeError, "chosen"
        )
    for groups in (3, None, "ab", ((0,),), ((0, 1),), ((0,), (0, 1)), ((0,), (2,)), ((0, 1), ()), (0, 1), ((0.5,), (1,))):
        for of, merge in {"Family": lambda g: made().family.merged(g), "merged": lambda g: hf.merged(made().model, g)}.items():
            yield Misuse(
                of, f"groups {groups!r}", lambda merge=merge, groups=groups: merge(groups),
                (TypeError, ValueError), "groups",
            )  # fmt: skip
    yield Misuse(
        "merged", "groups of three classes", lambda: hf.merged(made().model, ((0,), (1, 2)))(made().x), ValueError, "3 classes"
    )
    yield Misuse("merged", "no model", lambda: hf.merged(None, ((0,), (1,))), TypeError, "cannot be called")
    yield Misuse("Family", "no models", lambda: hf.Family.from_models([]), ValueError, "one model or more")
    yield Misuse("Family", "from a model", lambda: hf.Family.from_models(made().model), TypeError, "a list of models")
    yield Misuse("Family", "from None", lambda: hf.Family.from_models(None), TypeError, "a list of models")
    yield Misuse("Family", "from a number", lambda: hf.Family.from_models([3]), TypeError, "cannot be called")
    yield Misuse("Family", "too few kinds", lambda: hf.Family.from_models([made().model], kind=[]), ValueError, "kind")
    yield Misuse("Family", "kinds that are numbers", lambda: hf.Family.from_models([made().model], kind=3),
                 TypeError, "kind")  # fmt: skip
    yield Misuse("Family", "the weights of merged classes", lambda: made().family.merged(((0,), (1,)))[0],
                 TypeError, "before merging")  # fmt: skip
    trainings: dict[str, tuple[dict[str, Any], str]] = {
        "no function": ({"function": None}, "function"),
        "no changes": ({"changes": []}, "changes"),
        "a change alone": ({"changes": 3}, "changes"),
        "changes that are none": ({"changes": [3]}, "changes"),
        "no rows": ({"rows": 0}, "rows"),
        "rows themselves": ({"rows": "x"}, "rows"),
        "half a row": ({"rows": 2.5}, "rows"),
        "no workers": ({"workers": 0}, "workers"),
        "half a worker": ({"workers": 1.5}, "workers"),
    }
    for what, (wrong, says) in trainings.items():
        yield Misuse(
            "Family", f"from_training, {what}",
            lambda wrong=wrong: hf.Family.from_training(
                **{"function": lambda rows, seed: made().model, "changes": hf.seeds(1), "rows": 24, "workers": 1, **wrong}
            ),
            (TypeError, ValueError), says,
        )  # fmt: skip
    yield Misuse("Network", "rows of other columns", lambda: made().model(made().x[:, :3]), ValueError, "5 columns")
    yield Misuse("Network", "rows that are numpy", lambda: made().model(made().x.numpy()), TypeError, "torch tensor")
    yield Misuse("Network", "rows in float64", lambda: made().model(made().x.double()), ValueError, "torch.float64")
    yield Misuse(
        "save_family", "models made elsewhere",
        lambda: hf.save_family(hf.Family.from_models([made().model]), made().folder), ValueError, "made elsewhere",
    )  # fmt: skip
    yield Misuse("load_family", "no such folder", lambda: hf.load_family(made().folder / "none"),
                 (FileNotFoundError, ValueError, RuntimeError), "none")  # fmt: skip


# ---- what models say, and what was found ----


def _answers() -> Iterator[Misuse]:
    for of in ("predict", "other_class"):
        yield from every(of, "rows", ROWS, lambda x, of=of: getattr(hf, of)(made().model, x), "x")
        yield from every(of, "a model", SILENT, lambda f, of=of: getattr(hf, of)(f, made().x), "model")
        yield Misuse(
            of, "a model of NaN", lambda of=of: getattr(hf, of)(lambda r: made().model(r) * math.nan, made().x),
            ValueError, "answers NaN for 24 of 24 rows",
        )  # fmt: skip
    yield Misuse(
        "other_class", "three classes", lambda: hf.other_class(lambda r: r[:, :3], made().x), ValueError, "two classes"
    )
    assess: dict[str, tuple[Wrong, str, Callable[[Any], Any]]] = {
        "origin": (
            ROWS | NOT_FINITE, "x", lambda v: hf.assess(made().model, v, made().x, made().target, made().space)
        ),
        "point": (ROWS, "x", lambda v: hf.assess(made().model, made().x, v, made().target, made().space)),
        "targets": (TARGETS, "target", lambda v: hf.assess(made().model, made().x, made().x, v, made().space)),
        "a model": (SILENT, "model", lambda v: hf.assess(v, made().x, made().x, made().target, made().space)),
        "a space": (SPACES, "space", lambda v: hf.assess(made().model, made().x, made().x, made().target, v)),
    }
    for what, (wrong, given, call) in assess.items():
        yield from every("assess", what, wrong, call, given)
    for what, also in {"too few": lambda t: t[:3].bool(), "of numbers": lambda t: t, "a list": lambda t: t.tolist()}.items():
        yield Misuse(
            "assess", f"also {what}",
            lambda also=also: hf.assess(
                made().model, made().x, made().x, made().target, made().space, also=also(made().target)
            ),
            (TypeError, ValueError), "also",
        )  # fmt: skip
    yield Misuse(
        "assess", "points of other rows",
        lambda: hf.assess(made().model, made().x, made().x[:3], made().target, made().space), ValueError, "point",
    )  # fmt: skip
    parts: dict[str, dict[str, Callable[[Any], Any]]] = {
        "origin": {"a list": lambda v: v.tolist(), "of one row": lambda v: v[0], "numpy": lambda v: v.numpy()},
        "point": {"of other width": lambda v: v[:, :3], "of other rows": lambda v: v[:3], "None": lambda v: None,
                  "of whole numbers": lambda v: v.long()},
        "target": {"float": lambda v: v.float(), "of other length": lambda v: v[:3], "a class": lambda v: 1},
        "found": {"numbers": lambda v: v.long(), "of other length": lambda v: v[:3], "a list": lambda v: v.tolist()},
        "before": {"of other length": lambda v: v[:3], "a list": lambda v: v.tolist()},
    }  # fmt: skip
    for field, wrongs in parts.items():
        for what, spoil in wrongs.items():
            yield Misuse(
                "Counterfactuals", f"{field} {what}",
                lambda field=field, spoil=spoil: replace(made().found, **{field: spoil(getattr(made().found, field))}),
                (TypeError, ValueError), field,
            )  # fmt: skip
    rows: dict[str, Any] = {
        "a mask of other length": torch.ones(3, dtype=torch.bool), "a row that is not there": torch.tensor([24]),
        "a row before the first": torch.tensor([-25]), "half a row": torch.tensor([0.5]), "a name": "first",
        "None": None, "a table of rows": torch.zeros(2, 2, dtype=torch.long), "a list of names": ["a"],
    }  # fmt: skip
    for what, chosen in rows.items():
        yield Misuse("Counterfactuals", f"rows, {what}", lambda chosen=chosen: made().found[chosen],
                     (TypeError, ValueError, IndexError), "rows")  # fmt: skip
        yield Misuse("Audit", f"rows, {what}", lambda chosen=chosen: made().audit.of_rows(chosen),
                     (TypeError, ValueError, IndexError), "rows")  # fmt: skip
    for norm in ("2", None, -1, math.nan, True):
        yield Misuse("Counterfactuals", f"cost of norm {norm!r}", lambda norm=norm: made().found.cost(norm),
                     (TypeError, ValueError), "norm")  # fmt: skip
    yield Misuse(
        "Counterfactuals", "a frame of other rows",
        lambda: made().found.to_frame(made().encoding, made().table[:3]), ValueError, "the table has 3 rows",
    )  # fmt: skip
    for call in ("to_frame", "changes"):
        yield Misuse("Counterfactuals", f"{call} without encoding", lambda call=call: getattr(made().found, call)(None),
                     TypeError, "expected an Encoding")  # fmt: skip
    yield Misuse("Counterfactuals", "a frame of an array",
                 lambda: made().found.to_frame(made().encoding, made().table.to_numpy()), TypeError, "DataFrame")  # fmt: skip

    def why(**other: Any) -> Any:
        answer = replace(made().found, found=torch.zeros(24, dtype=torch.bool))
        return hf.why_not(**{"model": made().model, "answer": answer, "space": made().space, "tries": 5, **other})

    yield from every("why_not", "a model", SILENT, lambda f: why(model=f), "model")
    yield from every("why_not", "a space", SPACES, lambda s: why(space=s), "space")
    for value in NO_COUNT:
        yield Misuse("why_not", f"tries={value!r}", lambda value=value: why(tries=value), (TypeError, ValueError), "tries")
    for value in NO_SEED:
        yield Misuse("why_not", f"seed={value!r}", lambda value=value: why(seed=value), (TypeError, ValueError), "seed")
    yield Misuse("why_not", "an answer that is none", lambda: why(answer=made().x), TypeError, "expected Counterfactuals")
    for of in ("neighbour_distance", "outlier_factor"):
        def ask(of: str = of, **other: Any) -> Any:
            return getattr(hf, of)(**{"answer": made().found, "x": made().x, "y": made().y, **other})

        yield from every(of, "rows", ROWS | NOT_FINITE, lambda x, ask=ask: ask(x=x), "x")
        for value in NO_COUNT:
            yield Misuse(of, f"k={value!r}", lambda ask=ask, value=value: ask(k=value), (TypeError, ValueError), "k ")
        yield Misuse(of, "too few classes", lambda ask=ask: ask(y=made().y[:-1]), ValueError, "classes (m,)")
        yield Misuse(of, "classes in a list", lambda ask=ask: ask(y=made().y.tolist()), TypeError, "y must be")
        yield Misuse(of, "classes that are numbers", lambda ask=ask: ask(y=made().y.float()), ValueError, "int64")
        yield Misuse(of, "an answer that is none", lambda ask=ask: ask(answer=None), TypeError, "expected Counterfactuals")
    for name in ("nothing", "pgd+nothing", "sns", "pgd+pgd", "", "+", "pgd+", "PGD"):
        yield Misuse("named", f"{name!r}", lambda name=name: hf.named(name), ValueError, "methods are min-l1")
    for name in (None, 3, ["pgd"]):
        yield Misuse("named", f"{name!r}", lambda name=name: hf.named(name), TypeError, "the name of a method")
    for name in ("prototype", "latent"):
        yield Misuse(
            CLASSES[name], "not fitted", lambda name=name: hf.METHODS[name]()(
                made().model, made().x, made().target, made().space), ValueError, "fit(x, y, space)",
        )  # fmt: skip

        def fit(name: str = name, **other: Any) -> Any:
            m = made()
            return replace(method(name)).fit(**{"x": m.x, "y": m.y, "space": m.space, **other})

        yield from every(CLASSES[name], "fit, rows", ROWS | NOT_FINITE, lambda x, fit=fit: fit(x=x), "x")
        yield from every(CLASSES[name], "fit, a space", SPACES, lambda s, fit=fit: fit(space=s), "space")
    for value in NO_SEED:
        yield Misuse("Latent", f"fit, seed={value!r}", lambda value=value: method("latent").fit(
            made().x, made().y, made().space, seed=value), (TypeError, ValueError), "seed")  # fmt: skip


# ---- audits and what is read off them ----


def _audits() -> Iterator[Misuse]:
    others: dict[str, tuple[Callable[[], Any], Any, str]] = {
        "no counterfactuals": (lambda: hf.audit(None, made().family), TypeError, "expected Counterfactuals"),
        "rows": (lambda: hf.audit(made().x, made().family), TypeError, "expected Counterfactuals"),
        "a list of models": (lambda: hf.audit(made().found, [made().model]), TypeError, "Family.from_models"),
        "one model": (lambda: hf.audit(made().found, made().model), TypeError, "Family.from_models"),
        "no family": (lambda: hf.audit(made().found, None), TypeError, "Family.from_models"),
        "no members": (lambda: hf.audit(made().found, made().family[:0]), ValueError, "0 members"),
        "a member twice": (lambda: hf.audit(made().found, made().family.chosen([0, 0])), ValueError, "more than once"),
        "the deployed model": (
            lambda: hf.audit(made().found, hf.Family.from_models([made().model])), ValueError, "the search has seen",
        ),
        "other classes": (
            lambda: hf.audit(made().found, hf.Family.from_models([torch.nn.Linear(5, 3)])), ValueError, "2 classes",
        ),
        "other columns": (
            lambda: hf.audit(replace(made().found, origin=made().x[:, :3], point=made().x[:, :3]), made().family),
            ValueError, "columns",
        ),
        "models of other columns": (
            lambda: hf.audit(made().found, hf.Family.from_models([torch.nn.Linear(7, 2)])), ValueError,
            "does not take rows of 5 columns",
        ),
    }  # fmt: skip
    for what, (call, error, says) in others.items():
        yield Misuse("audit", what, call, error, says)
    for confidence in (0, 1, -1, 95, math.nan, "0.95", None, True):
        for call in ("interval", "interval_of_new_rows", "per_row_interval"):
            yield Misuse(
                "Audit", f"{call}({confidence!r})",
                lambda call=call, confidence=confidence: getattr(made().audit, call)(confidence),
                (TypeError, ValueError), "confidence",
            )  # fmt: skip
        yield Misuse("Comparison", f"differences({confidence!r})", lambda confidence=confidence: hf.compare(
            {"a": made().audit, "b": made().audit}).differences(confidence), (TypeError, ValueError), "confidence")  # fmt: skip
    yield Misuse("Audit", "a kind nobody has", lambda: made().audit.of("bootstrap"), ValueError, "there are seeds")
    yield Misuse("Audit", "predictions of other shape", lambda: replace(made().audit, predictions=made().x), ValueError,
                 "predictions have shape")  # fmt: skip
    yield Misuse("Audit", "predictions in a list", lambda: replace(made().audit, predictions=[[1]]), TypeError, "predictions")
    yield Misuse("Audit", "counterfactuals that are rows", lambda: replace(made().audit, counterfactuals=made().x),
                 TypeError, "expected Counterfactuals")  # fmt: skip
    yield Misuse("Audit", "a table of another network", lambda: made().audit.table(lambda r: r), TypeError, "perceptron")
    yield Misuse("Audit", "rows with seconds that are text", lambda: made().audit.rows(
        dataset="a", method="b", space="free", seconds="3"), TypeError, "seconds")  # fmt: skip
    compares: dict[str, tuple[Any, Any, str]] = {
        "None": (lambda: None, TypeError, "by the name of their method"),
        "a list": (lambda: [made().audit, made().audit], TypeError, "by the name of their method"),
        "one audit": (lambda: made().audit, TypeError, "by the name of their method"),
        "nothing": (dict, ValueError, "two audits or more"),
        "one of them": (lambda: {"a": made().audit}, ValueError, "two audits or more"),
        "counterfactuals": (lambda: {"a": made().found, "b": made().found}, ValueError, "Counterfactuals"),
        "other rows": (
            lambda: {"a": made().audit, "b": made().audit.of_rows(torch.arange(3))}, ValueError, "the same rows"),
        "other members": (
            lambda: {"a": made().audit, "b": hf.audit(made().found, made().family[:2])}, ValueError, "one family"),
    }  # fmt: skip
    for what, (audits, error, says) in compares.items():
        yield Misuse("compare", what, lambda audits=audits: hf.compare(audits()), error, says)
        yield Misuse("Comparison", what, lambda audits=audits: hf.Comparison(audits()), error, says)
    for norm in ("2", None, -1, math.nan):
        yield Misuse("compare", f"norm={norm!r}", lambda norm=norm: hf.compare(
            {"a": made().audit, "b": made().audit}, norm), (TypeError, ValueError), "norm")  # fmt: skip
    untils: dict[str, tuple[dict[str, Any], str]] = {
        **{f"width={value!r}": ({"width": value}, "width") for value in (0, 1, 5, -1, math.nan, "1", None, True)},
        **{f"confidence={v!r}": ({"confidence": v}, "confidence") for v in (0, 1, 95, math.nan, "1", None, True)},
        "no families": ({"families": []}, "no families"),
        "one family": ({"families": 3}, "families"),
        "families of models": ({"families": [3]}, "Family"),
        "None": ({"families": None}, "families"),
        "no counterfactuals": ({"counterfactuals": None}, "expected Counterfactuals"),
    }
    for what, (wrong, says) in untils.items():
        yield Misuse(
            "audit_until", what,
            lambda wrong=wrong: hf.audit_until(
                **{"counterfactuals": made().found, "families": [made().family], **wrong}
            ),
            (TypeError, ValueError), says,
        )  # fmt: skip
    yield Misuse("audit_until", "a family itself", lambda: hf.audit_until(made().found, made().family),
                 TypeError, "families")  # fmt: skip
    yield Misuse(
        "audit_until", "nothing found",
        lambda: hf.audit_until(replace(made().found, found=torch.zeros(24, dtype=torch.bool)), [made().family]),
        ValueError, "nothing was found",
    )  # fmt: skip
    yield Misuse("Sequential", "limits of other lengths", lambda: hf.Sequential(
        made().audit, np.zeros(2), np.ones(3), 0.1, 0.95), ValueError, "low and high")  # fmt: skip
    yield Misuse("Sequential", "no audit", lambda: hf.Sequential(None, np.zeros(1), np.ones(1), 0.1, 0.95),
                 TypeError, "Audit")  # fmt: skip
    needed = {
        "width": (0, 1, -1, 5, math.nan, "1", None, True), "rate": (-0.1, 1.5, math.nan, "1", None, True),
        "spread": (-0.1, 0.9, math.nan, "1"), "confidence": (0, 1, math.nan, "1", None, True), "most": NO_COUNT,
    }  # fmt: skip
    for field, values in needed.items():
        for value in values:
            yield Misuse("members_needed", f"{field}={value!r}", lambda field=field, value=value: hf.members_needed(
                **{"width": 0.2, field: value}), (TypeError, ValueError), field)  # fmt: skip
    yield Misuse("save_audit", "no audit", lambda: hf.save_audit(None, made().folder / "audit"), TypeError, "Audit")
    yield Misuse("load_audit", "no such folder", lambda: hf.load_audit(made().folder / "none"),
                 (FileNotFoundError, ValueError), "none")  # fmt: skip


def _intervals() -> Iterator[Misuse]:
    of = "auditing.intervals"
    draws: dict[str, Any] = {
        "none": [], "above 1": [0.2, 1.2], "below 0": [-0.1], "NaN": [math.nan], "words": ["a"], "two dimensions": [[0.1]],
        "None": None, "a dictionary": {"a": 1},
    }  # fmt: skip
    for call in ("mean_interval", "running_interval"):
        for what, values in draws.items():
            yield Misuse(of, f"{call} of {what}", lambda call=call, values=values: getattr(part(of), call)(values),
                         (TypeError, ValueError), "draws")  # fmt: skip
    for what, (successes, trials) in {
        "more than all": ([5], 3), "negative": ([-1], 3), "NaN": ([math.nan], 3), "no trials": ([0], 0),
        "half a trial": ([1], 2.5), "words": (["a"], 3), "trials in words": ([1], "3"),
    }.items():  # fmt: skip
        yield Misuse(of, f"clopper_pearson, {what}", lambda successes=successes, trials=trials: part(
            of).clopper_pearson(successes, trials), (TypeError, ValueError), "trials")  # fmt: skip
    for what, table in {"numbers": [[0.1]], "one row": [True], "words": [["a"]], "None": None}.items():
        yield Misuse(of, f"bootstrap_interval of {what}", lambda table=table: part(of).bootstrap_interval(table),
                     ValueError, "table of booleans")  # fmt: skip
    for value in NO_COUNT:
        yield Misuse(of, f"bootstrap_interval, draws={value!r}", lambda value=value: part(of).bootstrap_interval(
            np.ones((2, 30), bool), draws=value), (TypeError, ValueError), "draws")  # fmt: skip


def _predictors() -> Iterator[Misuse]:
    def known(**other: Any) -> Any:
        m = made()
        return hf.predictors(**{"model": m.model, "answer": m.found, "x": m.x, "y": m.y, **other})

    yield from every("predictors", "a model", MODELS, lambda f: known(model=f), "model")
    yield from every("predictors", "rows", ROWS | NOT_FINITE, lambda x: known(x=x), "x")
    yield Misuse("predictors", "too few labels", lambda: known(y=made().y[:3]), ValueError, "classes (m,)")
    yield Misuse("predictors", "labels in a list", lambda: known(y=made().y.tolist()), TypeError, "y must be")
    yield Misuse("predictors", "no answer", lambda: known(answer=None), TypeError, "expected Counterfactuals")
    for what, network in {"None": lambda: None, "a module": lambda: torch.nn.Linear(5, 2), "a function": lambda: len}.items():
        yield Misuse("diagnostics", f"a network that is {what}", lambda network=network: hf.diagnostics(
            network(), made().found), TypeError, "perceptron")  # fmt: skip
    for value in (-1.0, math.nan, "1", None, math.inf, True):
        yield Misuse("diagnostics", f"radius={value!r}", lambda value=value: hf.diagnostics(
            made().model, made().found, value), (TypeError, ValueError), "radius")  # fmt: skip
    yield Misuse("diagnostics", "no answer", lambda: hf.diagnostics(made().model, None), TypeError,
                 "expected Counterfactuals")  # fmt: skip
    yield Misuse("diagnostics", "nothing found", lambda: hf.diagnostics(made().model, replace(
        made().found, found=torch.zeros(24, dtype=torch.bool))), ValueError, "nothing was found")  # fmt: skip

    def told(**other: Any) -> Any:
        table = pd.DataFrame({"cost": np.arange(24.0)})
        return hf.what_predicts(**{"audits": {"a": made().audit}, "known": {"a": table}, **other})

    whats: dict[str, tuple[dict[str, Any], str]] = {
        "audits None": ({"audits": None}, "audits"),
        "audits a list": ({"audits": [1]}, "audits"),
        "audits none": ({"audits": {}, "known": {}}, "expected predictors"),
        "audits of another name": ({"audits": {"b": 1}}, "expected predictors"),
        "audits that are none": ({"audits": {"a": 3}}, "Audit"),
        "known None": ({"known": None}, "known"),
        "known no table": ({"known": {"a": 3}}, "DataFrame"),
        "known of other rows": ({"known": {"a": pd.DataFrame({"cost": [1.0]})}}, "1 rows but its audit 24"),
        "known of words": ({"known": {"a": pd.DataFrame({"cost": ["x"] * 24})}}, "cost"),
        **{f"confidence={v!r}": ({"confidence": v}, "confidence") for v in (0, 1, 95, math.nan, "1", None, True)},
        **{f"seed={v!r}": ({"seed": v}, "seed") for v in NO_SEED},
    }
    for what, (wrong, says) in whats.items():
        yield Misuse("what_predicts", what, lambda wrong=wrong: told(**wrong), (TypeError, ValueError), says)


# ---- theory ----

NO_NETWORK: Wrong = {
    "None": (lambda n: None, TypeError, "perceptron"),
    "a module": (lambda n: torch.nn.Linear(5, 2), TypeError, "perceptron"),
    "a function": (lambda n: lambda r: r, TypeError, "perceptron"),
    "a family": (lambda n: made().family, TypeError, "dimensions"),
}


def _theory() -> Iterator[Misuse]:
    m = made
    networks: dict[str, tuple[str, Callable[..., Any], bool]] = {
        "margin_bound": ("certificates", lambda f, n, x, t: f(n, x, t, 0.01), True),
        "certified_radius": ("certificates", lambda f, n, x, t: f(n, x, t), True),
        "lipschitz_bound": ("lipschitz", lambda f, n, x, t: f(n, x, 0.1, output="margin", target=t), True),
        "lipschitz_bound_on_segment": ("lipschitz", lambda f, n, x, t: f(n, x, x, output="margin", target=t), True),
        "pattern": ("regions", lambda f, n, x, t: f(n, x), False),
        "linear_map": ("regions", lambda f, n, x, t: f(n, x), False),
        "polytope": ("regions", lambda f, n, x, t: f(n, x), False),
        "facet_distance": ("regions", lambda f, n, x, t: f(n, x), False),
        "nearest_facet": ("regions", lambda f, n, x, t: f(n, x), False),
        "boundary_distance_inside": ("regions", lambda f, n, x, t: f(n, x, t), True),
        "exact_boundary_distance": ("regions", lambda f, n, x, t: f(n, x), False),
        "theorem2": ("theorems", lambda f, n, x, t: f(n, n, x), False),
    }
    for name, (home, call, targeted) in networks.items():
        of = f"theory.{home}"

        def ask(of: str = of, name: str = name, call: Any = call, **other: Any) -> Any:
            given = {"n": m().model, "x": m().x, "t": m().target, **other}
            return call(getattr(part(of), name), given["n"], given["x"], given["t"])

        yield from every(of, f"{name}, a network", NO_NETWORK, lambda n, ask=ask: ask(n=n), "model")
        rows = ROWS if home == "certificates" else ROWS | NOT_FINITE  # what is not finite is not certified
        yield from every(of, f"{name}, rows", rows, lambda x, ask=ask: ask(x=x), "x")
        if targeted:
            wrong = {key: value for key, value in TARGETS.items() if key != "None"}
            yield from every(of, f"{name}, targets", wrong, lambda t, ask=ask: ask(t=t), "target")

    def theory(of: str, what: str, call: Call, says: str, error: Any = (TypeError, ValueError)) -> Misuse:
        return Misuse(f"theory.{of}", what, call, error, says)

    certificates, lipschitz, regions, theorems, influence, paths = (
        functools.partial(part, f"theory.{name}")
        for name in ("certificates", "lipschitz", "regions", "theorems", "influence", "paths")
    )
    for value in (-1.0, math.nan, "1", None, torch.ones(3), True):
        yield theory("certificates", f"margin_bound, delta={value!r}", lambda value=value: certificates().margin_bound(
            m().model, m().x, m().target, value), "delta")  # fmt: skip
    for value in ((1.0,), (1.0, -1.0), (1.0, math.nan), (1.0, "a"), 3):
        for kind in ("Absolute", "Relative"):
            yield theory(
                "certificates", f"{kind}(scales={value!r})",
                lambda kind=kind, value=value: certificates().certified_radius(
                    m().model, m().x, m().target, getattr(certificates(), kind)(value)
                ),
                "scales",
            )  # fmt: skip
    yield theory("certificates", "a change that is none", lambda: certificates().certified_radius(
        m().model, m().x, m().target, 3), "change")  # fmt: skip
    for value in (-1.0, math.nan, "1", None, math.inf, True, torch.ones(3)):
        yield theory("lipschitz", f"lipschitz_bound, radius={value!r}", lambda value=value: lipschitz().lipschitz_bound(
            m().model, m().x, value), "radius")  # fmt: skip
    for value in (-1.0, math.nan, "1", None, math.inf, True):
        yield theory("lipschitz", f"sampled_lipschitz, radius={value!r}", lambda value=value: lipschitz(
            ).sampled_lipschitz(m().model, m().x, value), "radius")  # fmt: skip
        yield theory("influence", f"Ball(radius={value!r})", lambda value=value: influence().Ball(value), "radius")
        yield theory("influence", f"Gaussian(scale={value!r})", lambda value=value: influence().Gaussian(value), "scale")
    yield theory("lipschitz", "norm 1", lambda: lipschitz().lipschitz_bound(m().model, m().x, 0.1, norm=1), "norm")
    yield theory("lipschitz", "an output nobody knows", lambda: lipschitz().lipschitz_bound(
        m().model, m().x, 0.1, output="sum"), "output")  # fmt: skip
    yield theory("lipschitz", "a margin without target", lambda: lipschitz().lipschitz_bound(
        m().model, m().x, 0.1, output="margin"), "target=")  # fmt: skip
    yield theory("lipschitz", "another class that is not there", lambda: lipschitz().lipschitz_bound(
        m().model, m().x, 0.1, output="margin", target=m().target, other=m().target + 5), "other")  # fmt: skip
    for value in NO_COUNT:
        yield theory("lipschitz", f"pieces={value!r}", lambda value=value: lipschitz().lipschitz_bound_on_segment(
            m().model, m().x, m().x, pieces=value), "pieces")  # fmt: skip
        yield theory("lipschitz", f"count={value!r}", lambda value=value: lipschitz().sampled_lipschitz(
            m().model, m().x, 0.1, count=value), "count")  # fmt: skip
        yield theory("influence", f"Line(count={value!r})", lambda value=value: influence().influence(
            m().model, m().x, m().target, influence().Line(m().x[0], value)), "count")  # fmt: skip
        yield theory("paths", f"count={value!r}", lambda value=value: paths().line(m().x, m().x, value), "count")
        yield theory("regions", f"limit={value!r}", lambda value=value: regions().exact_boundary_distance(
            m().model, m().x[:1], limit=value), "limit")  # fmt: skip
        yield theory("theorems", f"theorem2, count={value!r}", lambda value=value: theorems().theorem2(
            m().model, m().model, m().x, count=value), "count")  # fmt: skip
    yield theory("paths", "a rule nobody knows", lambda: paths().line(m().x, m().x, 3, "simpson"), "rule")
    yield theory("paths", "a start of other width", lambda: paths().line(m().x[0, :3], m().x, 3), "start")
    yield theory("paths", "an end that is a list", lambda: paths().line(m().x, m().x.tolist(), 3), "torch tensor")
    yield from every("theory.lipschitz", "sampled_lipschitz, rows", ROWS, lambda x: lipschitz().sampled_lipschitz(
        m().model, x, 0.1), "x")  # fmt: skip
    yield from every("theory.influence", "a model", MODELS, lambda f: influence().influence(
        f, m().x, m().target, influence().Ball(0.1, 3)), "model")  # fmt: skip
    yield from every("theory.influence", "rows", ROWS, lambda x: influence().influence(
        m().model, x, m().target, influence().Ball(0.1, 3)), "x")  # fmt: skip
    yield from every("theory.influence", "targets", TARGETS, lambda t: influence().influence(
        m().model, m().x, t, influence().Ball(0.1, 3)), "target")  # fmt: skip
    yield theory("influence", "an interest that is none", lambda: influence().influence(
        m().model, m().x, m().target, None), "interest")  # fmt: skip
    yield theory("influence", "a baseline of other width", lambda: influence().influence(
        m().model, m().x, m().target, influence().Line(m().x[0, :3])), "baseline")  # fmt: skip
    yield theory("influence", "a baseline that is a list", lambda: influence().Line([0.0]), "baseline")
    yield theory("influence", "no points", lambda: influence().influence(
        m().model, m().x, m().target, influence().Data(m().x[:0])), "points")  # fmt: skip
    yield theory("influence", "points of other width", lambda: influence().influence(
        m().model, m().x, m().target, influence().Data(m().x[:, :3])), "points")  # fmt: skip
    for value in NO_COUNT[:-2]:
        yield theory("influence", f"Data(nearest={value!r})", lambda value=value: influence().Data(m().x, value), "nearest")
    yield theory("theorems", "theorem2 of other networks", lambda: theorems().theorem2(
        m().model, m().family[0], m().x), "top layer")  # fmt: skip
    yield theory("theorems", "theorem2, places outside", lambda: theorems().theorem2(
        m().model, m().model, m().x, at=torch.tensor([2.0])), "[0, 1]")  # fmt: skip
    yield theory("theorems", "theorem2, shares that are no list", lambda: theorems().theorem2(
        m().model, m().model, m().x, at=[0.5], share=[1.0]), "at")  # fmt: skip
    for value in (-0.1, 1.5, math.nan, "1", None, True, torch.ones(3)):
        yield theory("theorems", f"proposition1, t={value!r}", lambda value=value: theorems().proposition1(
            lambda r: m().model(r)[:, 0], m().x, value), "t ")  # fmt: skip
    yield theory("theorems", "proposition1 of logits", lambda: theorems().proposition1(m().model, m().x, 0.5), "q gave")
    yield theory("theorems", "proposition1 of nothing", lambda: theorems().proposition1(None, m().x, 0.5), "q ")
    yield theory("theorems", "proposition1 of numpy", lambda: theorems().proposition1(
        lambda r: r.detach().numpy()[:, 0], m().x, 0.5), "q gave")  # fmt: skip
    for place in (2, -1, "a", 1.5):
        yield theory("regions", f"boundary_piece, second={place!r}", lambda place=place: regions().boundary_piece(
            m().model, m().x[0], 0, place), "second")  # fmt: skip
    yield theory("regions", "boundary_piece of many rows", lambda: regions().boundary_piece(m().model, m().x), "(d,)")
    yield theory("regions", "piece_distance of many rows", lambda: regions().piece_distance(
        regions().boundary_piece(m().model, m().x[0]), m().x), "(d,)")  # fmt: skip
    yield theory("regions", "piece_distance of no piece", lambda: regions().piece_distance(None, m().x[0]), "Piece")
    yield theory("theorems", "Theorem 1 without pieces", lambda: theorems().further_but_no_safer(m().x[0], None, None),
                 "Piece")  # fmt: skip
    yield theory("theorems", "Theorem 1 of many rows", lambda: theorems().further_but_no_safer(
        m().x, *[regions().boundary_piece(m().model, m().x[0])] * 2), "(d,)")  # fmt: skip


# ---- tables, from elsewhere, studies and reports ----


def _tables() -> Iterator[Misuse]:
    m = made
    others: list[tuple[str, str, Call, Any, str]] = [
        ("Encoding", "a table that is an array", lambda: hf.Encoding.fit(m().table.to_numpy(), m().schema), TypeError, "DataFrame"),
        ("Encoding", "no schema", lambda: hf.Encoding.fit(m().table, None), TypeError, "expected a Schema"),
        ("Encoding", "a scaling nobody knows", lambda: hf.Encoding.fit(m().table, m().schema, "log"), ValueError, "scaling"),
        ("Encoding", "an empty table", lambda: hf.Encoding.fit(m().table[:0], m().schema), ValueError, "empty"),
        ("Encoding", "a column that is missing", lambda: m().encoding.encode(m().table.drop(columns="age")), ValueError, "age"),
        ("Encoding", "a value that is missing", lambda: m().encoding.encode(
            m().table.assign(income=math.nan)), ValueError, "income"),
        ("Encoding", "a level nobody knows", lambda: m().encoding.encode(m().table.assign(job="pilot")), ValueError, "pilot"),
        ("Encoding", "rows of other width", lambda: m().encoding.decode(m().x[:, :3]), ValueError, "5 columns"),
        ("Encoding", "a class nobody knows", lambda: m().encoding.target("maybe", 3), ValueError, "maybe"),
        ("Schema", "no features", lambda: hf.Schema((), "y", ("a", "b")), ValueError, "feature"),
        ("Schema", "one class", lambda: hf.Schema((hf.Feature("a", "real"),), "y", ("a",)), ValueError, "classes"),
        ("Schema", "a label that is a feature", lambda: hf.Schema((hf.Feature("a", "real"),), "a", (0, 1)), ValueError, "label"),
        ("Schema", "a feature nobody knows", lambda: m().schema["wealth"], KeyError, "wealth"),
        ("Schema", "a setting nobody knows", lambda: m().schema.revise("age", changeable=False), TypeError, "changeable"),
        ("Schema", "a label nobody knows", lambda: hf.Schema.infer(m().table, "wealth"), ValueError, "wealth"),
        ("Feature", "a kind nobody knows", lambda: hf.Feature("a", "number"), ValueError, "kind"),
        ("Feature", "bounds the wrong way", lambda: hf.Feature("a", "real", lower=2, upper=1), ValueError, "lower"),
        ("Feature", "a step of nothing", lambda: hf.Feature("a", "real", step=0), ValueError, "step"),
        ("Feature", "levels in one word", lambda: hf.Feature("a", "categorical", levels="ab"), TypeError, "levels"),
        ("Feature", "mutable in words", lambda: hf.Feature("a", "real", mutable="yes"), TypeError, "mutable"),
        ("Space", "no rows", lambda: hf.Space.free(m().x[:0]), ValueError, "row"),
        ("Space", "bounds the wrong way", lambda: hf.Space.box(torch.ones(2), torch.zeros(2)), ValueError, "lower"),
        ("Group", "columns that are all off", lambda: replace(
            hf.Space.box(torch.zeros(2), torch.zeros(2)), groups=(hf.Group((0, 1)),)), ValueError, "group"),
        ("read_table", "no such file", lambda: hf.read_table(m().folder / "none.csv"), FileNotFoundError, "none.csv"),
        ("load", "a dataset nobody knows", lambda: hf.load("germany"), (KeyError, ValueError), "germany"),
        ("from_tables", "no model", lambda: hf.from_tables(m().table, m().table, m().encoding, None), TypeError, "model"),
        ("from_tables", "no encoding", lambda: hf.from_tables(m().table, m().table, None, m().model), TypeError, "Encoding"),
        ("from_tables", "points in an array", lambda: hf.from_tables(
            m().table, m().x.numpy(), m().encoding, m().model), TypeError, "DataFrame"),
        ("from_tables", "a class nobody knows", lambda: hf.from_tables(
            m().table, m().table, m().encoding, m().model, target="maybe"), ValueError, "maybe"),
        ("from_tables", "points without columns", lambda: hf.from_tables(
            m().table, m().table[["age"]], m().encoding, m().model), ValueError, "income"),
        ("from_paired", "no table", lambda: hf.from_paired(None, m().encoding, m().model), TypeError, "DataFrame"),
        ("from_paired", "columns of other names", lambda: hf.from_paired(
            m().table, m().encoding, m().model), ValueError, "income_before"),
        ("from_paired", "no pattern", lambda: hf.from_paired(
            m().table, m().encoding, m().model, before="old"), ValueError, "before"),
        ("ImportedCounterfactuals", "targets for other rows", lambda: hf.from_tables(
            m().table, m().table, m().encoding, m().model, target=m().target[:3]), ValueError, "target"),
    ]  # fmt: skip
    for entry in others:
        yield Misuse(*entry)


def _studies() -> Iterator[Misuse]:
    def study(**other: Any) -> Any:
        return part("studies.study").Study(**{"name": "tiny", "datasets": ("german",), "methods": ("pgd",), **other})

    wrong: dict[str, tuple[Any, ...]] = {
        "name": (None, 3, ""), "datasets": ("german", (), None, ("nowhere",), ("german", "german"), 3),
        "methods": ("pgd", (), None, ("pgd+nothing",), ("pgd", "pgd"), (3,), (("own", 3),)),
        "changes": ((), None, (("seeds", 0),), (("seeds", 1.5),), (("noise", 3),), ("seeds",), (("seeds", "3"),)),
        "rows": (0, -1, 2.5, "3", True), "base_seeds": ((), None, (-1,), (1000,), (0.5,), ("a",), 0),
        "space": ("box", None), "scalings": (None, {"nowhere": "none"}, {"german": "log"}),
        "recipes": (None, {"german": 3}), "splits": (None, {"german": 3}, {"german": (0, 5)}, {"german": (1, "a")}),
        "settings": (None, 3), "device": (None, "gpu", 3),
    }  # fmt: skip
    for field, values in wrong.items():
        for value in values:
            yield Misuse("studies.study", f"Study({field}={value!r})", lambda field=field, value=value: study(
                **{field: value}), (TypeError, ValueError), "nowhere" if "nowhere" in str(value) else field.rstrip("s"))  # fmt: skip
    runs: dict[str, tuple[Call, Any, str]] = {
        "no study": (lambda: part("studies.runner").run(None, "rows.jsonl"), TypeError, "expected a Study"),
        "no file": (lambda: part("studies.runner").run(study(), None), TypeError, "file"),
        "only what it does not have": (
            lambda: part("studies.runner").run(study(), made().folder / "r.jsonl", only=("heloc",)), ValueError, "heloc"),
        "only a number": (lambda: part("studies.runner").run(study(), made().folder / "r.jsonl", only=3), TypeError, "only"),
    }  # fmt: skip
    for what, entry in runs.items():
        yield Misuse("studies.runner", what, *entry)
    for call in ("read", "frame", "each"):
        yield Misuse("studies.results", f"{call}, no such file", lambda call=call: getattr(part("studies.results"), call)(
            made().folder / "none.jsonl"), FileNotFoundError, "none.jsonl")  # fmt: skip
        yield Misuse("studies.results", f"{call}, no file", lambda call=call: getattr(part("studies.results"), call)(None),
                     TypeError, "file")  # fmt: skip
        yield Misuse("studies.results", f"{call}, no study", lambda call=call: getattr(part("studies.results"), call)(
            _odd_file(), 3), TypeError, "expected a Study")  # fmt: skip
        yield Misuse("studies.results", f"{call}, another file", lambda call=call: getattr(part("studies.results"), call)(
            _odd_file()), ValueError, "line 1")  # fmt: skip
        yield Misuse("studies.results", f"{call}, a folder", lambda call=call: getattr(part("studies.results"), call)(
            made().folder), (ValueError, FileNotFoundError), "folder")  # fmt: skip
    yield Misuse("studies.results", "join, nothing", lambda: part("studies.results").join([], made().folder / "j.jsonl"),
                 FileNotFoundError, "no files to join")  # fmt: skip
    yield Misuse("studies.results", "join, one path", lambda: part("studies.results").join("a.jsonl", "j.jsonl"),
                 TypeError, "list")  # fmt: skip
    yield Misuse("studies.results", "join, None", lambda: part("studies.results").join(None, "j.jsonl"), TypeError, "list")
    yield Misuse("studies.trials", "no study", lambda: part("studies.trials").trial(None, "german"), TypeError,
                 "expected a Study")  # fmt: skip
    for field, values in {"settings": ("words", None), "device": ("gpu", None), "rows": (-1, 2.5, "3"),
                          "members": (-1, 2.5, "3"), "bases": (-1, 99, 2.5, "3")}.items():  # fmt: skip
        for value in values:
            yield Misuse("studies.reproduce", f"declared({field}={value!r})", lambda field=field, value=value: part(
                "studies.reproduce").declared(**{field: value}), (TypeError, ValueError), field)  # fmt: skip


def _odd_file() -> Path:
    file = made().folder / "odd.jsonl"
    file.write_text("[1]\n")
    return file


def _reports() -> Iterator[Misuse]:
    def rows(**other: Any) -> Any:
        own = made().audit.rows(dataset="german", method="pgd", space="free", seconds=1.0)
        return pd.DataFrame(own).assign(**other)

    figures = {"cost": "cost_against_invalidation", "sensitivity": "sensitivity"}
    wrong: dict[str, tuple[Call, Any, str]] = {
        "None": (lambda: None, TypeError, "DataFrame"),
        "a list": (lambda: made().audit.rows(dataset="a", method="b", space="free", seconds=1.0), TypeError, "DataFrame"),
        "no rows": (lambda: rows()[:0], ValueError, "no rows"),
        "no columns": (lambda: rows().drop(columns=["rate"]), ValueError, "rate"),
        "another change": (lambda: rows(change="noise"), ValueError, "noise"),
    }
    for home, name in figures.items():
        for what, (make, error, says) in wrong.items():
            yield Misuse(f"report.figures.{home}", what, lambda home=home, name=name, make=make: getattr(
                part(f"report.figures.{home}"), name)(make()), error, says)  # fmt: skip
    for what, make in {"None": lambda: None, "a list": lambda: [1]}.items():
        yield Misuse("report.paper_comparison", f"beside {what}", lambda make=make: part(
            "report.paper_comparison").beside(make()), TypeError, "DataFrame")  # fmt: skip
    yield Misuse("report.paper_comparison", "beside what has no columns", lambda: part(
        "report.paper_comparison").beside(pd.DataFrame({"a": [1]})), ValueError, "columns")  # fmt: skip
    yield Misuse("report.tables", "method_table of None", lambda: part("report.tables").method_table(None), TypeError, "rows")
    yield Misuse("report.tables", "method_table of other rows", lambda: part("report.tables").method_table([{"a": 1}]),
                 ValueError, "method")  # fmt: skip
    tell = functools.partial(lambda **other: part("report.story").tell(**{
        "audits": {"pgd": made().audit}, "row": int(made().found.found.nonzero()[0]), "alike": [0], "person": 1,
        "encoding": made().encoding, **other}))  # fmt: skip
    for what, (wrongs, says) in {
        "no audits": ({"audits": {}}, "audits"), "audits None": ({"audits": None}, "audits"),
        "audits that are none": ({"audits": {"pgd": 3}}, "Audit"), "a row that is not there": ({"row": 99}, "row"),
        "half a row": ({"row": 0.5}, "row"), "nobody alike": ({"alike": []}, "alike"),
        "people that are not there": ({"alike": [99]}, "alike"), "no encoding": ({"encoding": None}, "Encoding"),
    }.items():  # fmt: skip
        yield Misuse("report.story", what, lambda wrongs=wrongs: tell(**wrongs), (TypeError, ValueError, IndexError), says)


MISUSES: list[Misuse] = [
    *_searches(), *_stabilisers(), *_settings(), *_changes(), *_training(), *_families(), *_answers(), *_audits(),
    *_intervals(), *_predictors(), *_theory(), *_tables(), *_studies(), *_reports(),
]  # fmt: skip
