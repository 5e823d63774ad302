"""What people get wrong, and what they must be told: one table of calls that cannot work.

Each entry is a call, the error it must raise and a piece of what the error must say. What a shared check refuses is
pinned where it lives (`tests/utils/test_settings.py`, `tests/models/test_checks.py`); here each function that asks it
has one entry, or two where it may be asked for less, such as rows that need not be finite.

The table knows nothing of pytest: `tests/test_misuses.py` checks every entry, and any script may run it against any
version of the package. So all of holdfast is looked up when an entry is called, and a name that a version does not have
fails that entry alone.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import math
import shutil
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
from holdfast.auditing.comparison import Comparison
from holdfast.auditing.predictors import diagnostics, predictors, what_predicts
from holdfast.auditing.sequential import Sequential, audit_until
from holdfast.external.tables import from_paired, from_tables
from holdfast.models.merged import merged
from holdfast.search.agreement_cost import AgreementCost
from holdfast.search.plans import Plans
from holdfast.tabular.space import Group

Call = Callable[[], Any]
Values = tuple[Any, ...]
WRONG = (TypeError, ValueError)


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


def _folder() -> Path:
    """A folder that is gone when the process ends."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def made() -> SimpleNamespace:
    """A table of 24 people, a deployed network, three retrained ones, counterfactuals and their audit."""
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
        table=table,
        schema=schema,
        encoding=encoding,
        x=x,
        y=y,
        recipe=recipe,
        family=audited,
        model=model,
        space=space,
        target=target,
        found=found,
        audit=hf.audit(found, audited),
        folder=_folder(),
    )


@functools.cache
def method(name: str) -> Any:
    """A method that has been fitted, with little to do."""
    m = made()
    few = {"steps": 3, "levels": 2, "constants": 2, "epochs": 2, "samples": 20, "shells": 1, "sizes": (8, 2)}
    own = hf.METHODS[name]()
    return replace(own, **{key: few[key] for key in few if hasattr(own, key)}).fit(m.x, m.y, m.space)


CLASSES = {
    "pgd": "PGD",
    "min-l1": "MinCost",
    "min-l2": "MinCost",
    "prototype": "Prototype",
    "latent": "Latent",
    "margin": "Margin",
}

# Values that a setting may not have, one for each thing that a check may forget.
NO_SIZE: Values = (0, math.nan, math.inf, True)
NO_COUNT: Values = (0, 2.5)
NO_SEED: Values = (-1,)
NO_FLAG: Values = ("yes",)
NO_RADIUS: Values = (-1.0, math.nan, math.inf, True)  # of a ball that may be a point

# ---- what people hand over for rows, targets, models and spaces: a maker, the error, what it says ----

Wrong = dict[str, tuple[Callable[[Any], Any], Any, str]]

ROWS: Wrong = {
    "a list": (lambda x: x.tolist(), TypeError, "must be a torch tensor, got list"),
    "a single row": (lambda x: x[0], ValueError, "(n, "),
    "one column too few": (lambda x: x[:, :-1], ValueError, "column"),
}
NOT_FINITE: Wrong = {
    "NaN": (lambda x: x.clone().fill_(math.nan), ValueError, "not finite"),
}
TARGETS: Wrong = {
    "too large": (lambda t: t + 2, ValueError, "from 0 to 1"),
    "too few": (lambda t: t[:-1], ValueError, "target (n,)"),
}
SILENT: Wrong = {  # models that no function can use
    "None": (lambda model: None, TypeError, "cannot be called"),
    "of other rows": (lambda model: lambda r: model(r)[:-1], ValueError, "the model gave (23, 2) for 24 rows"),
}
MODELS: Wrong = SILENT | {  # and one that no search by gradients can
    "without gradient": (lambda model: lambda r: model(r.detach()), ValueError, "no gradient"),
}
NO_NETWORK: Wrong = {
    "a module": (lambda n: torch.nn.Linear(5, 2), TypeError, "perceptron"),
}
SPACES: Wrong = {
    "its name": (lambda s: "free", TypeError, "expected a Space, got str"),
    "of other width": (lambda s: hf.Space.free(torch.randn(4, 7)), ValueError, "columns"),
}


# ---- the same for many ----


def every(of: str, what: str, wrong: Wrong, call: Callable[[Any], Any], given: str) -> Iterator[Misuse]:
    """One entry for each thing that may be wrong; ``given`` names the right one in the material."""
    for name, (spoil, error, says) in wrong.items():
        yield Misuse(of, f"{what} {name}", lambda spoil=spoil: call(spoil(getattr(made(), given))), error, says)


def each(of: str, what: str, call: Callable[..., Any], fields: dict[str, Values], says: str = "") -> Iterator[Misuse]:
    """One entry for each value that a named argument may not have; the error must name the argument."""
    for field, values in fields.items():
        for value in values:
            shown = f"{what}({field}={value!r})".replace("\n", "")
            yield Misuse(of, shown, functools.partial(call, **{field: value}), WRONG, says or field)


def calls(of: str, told: dict[str, tuple[Call, Any, str]]) -> Iterator[Misuse]:
    for what, (call, error, says) in told.items():
        yield Misuse(of, what, call, error, says)


# ---- methods and stabilisers ----


def _methods() -> Iterator[Misuse]:
    for name, of in CLASSES.items():

        def ask(name: str = name, **other: Any) -> Any:
            m = made()
            return method(name)(**{"model": m.model, "x": m.x, "target": m.target, "space": m.space, **other})

        yield from every(of, f"{name}, rows", ROWS | NOT_FINITE, lambda x, ask=ask: ask(x=x), "x")
        yield from every(of, f"{name}, targets", TARGETS, lambda t, ask=ask: ask(target=t), "target")
        yield from every(of, f"{name}, a model", MODELS, lambda f, ask=ask: ask(model=f), "model")
        yield from every(of, f"{name}, a space", SPACES, lambda s, ask=ask: ask(space=s), "space")

    def art(x: Any) -> Any:
        return part("paper.reference.art").ElasticNetART(steps=2, constants=1)(
            made().model, x, made().target, made().space
        )

    yield from every("paper.reference.art", "ElasticNetART, rows", ROWS, art, "x")
    for name in ("prototype", "latent"):
        of = CLASSES[name]

        def fit(name: str = name, **other: Any) -> Any:
            return method(name).fit(**{"x": made().x, "y": made().y, "space": made().space, **other})

        def unfitted(name: str = name) -> Any:
            return hf.METHODS[name]()(made().model, made().x, made().target, made().space)

        yield Misuse(of, "not fitted", unfitted, ValueError, "fit(x, y, space)")
        yield from every(of, "fit, rows", ROWS | NOT_FINITE, lambda x, fit=fit: fit(x=x), "x")
        yield from every(of, "fit, a space", SPACES, lambda s, fit=fit: fit(space=s), "space")
    yield from each(
        "Latent",
        "fit",
        lambda **given: method("latent").fit(made().x, made().y, made().space, **given),
        {"seed": NO_SEED},
    )
    for name in ("nothing", "pgd+nothing", "sns", "pgd+pgd", "pgd+"):
        yield Misuse(
            "make_method", f"{name!r}", lambda name=name: hf.make_method(name), ValueError, "methods are min-l1"
        )
    for name in (3, ["pgd"]):
        yield Misuse(
            "make_method", f"{name!r}", lambda name=name: hf.make_method(name), TypeError, "the name of a method"
        )


def _stabilisers() -> Iterator[Misuse]:
    for of in ("SNS", "Confidence", "Certified", "Sparse"):

        def move(of: str = of, settings: Any = None, **other: Any) -> Any:
            given = {"model": made().model, "start": made().found, "space": made().space, **other}
            return getattr(hf, of)(**(settings or {}))(**given)

        starts = {"None": lambda found: None, "rows": lambda found: made().x, "an audit": lambda found: made().audit}
        wrong = {name: (spoil, TypeError, "expected Counterfactuals") for name, spoil in starts.items()}
        yield from every(of, "a start", wrong, lambda start, move=move: move(start=start), "found")
        yield from every(of, "a space", SPACES, lambda s, move=move: move(space=s), "space")
        if of != "Certified":
            yield from every(of, "a model", MODELS, lambda f, move=move: move(model=f), "model")
        if of != "Sparse":
            for what, radius in {"of three rows": torch.ones(3), "in a column": torch.ones(24, 1)}.items():
                yield Misuse(
                    of, f"radii {what}", functools.partial(move, settings={"radius": radius}), ValueError, "radius"
                )

    def certified(model: Any) -> Any:
        return hf.Certified()(model, made().found, made().space)

    def sns(baseline: Any) -> Any:
        return hf.SNS(steps=2, baseline=baseline)(made().model, made().found, made().space)

    yield from every("Certified", "a network", NO_NETWORK, certified, "model")
    yield from every("SNS", "a baseline", BASELINES, sns, "x")
    yield from calls(
        "SNS",
        {
            "a line from an origin nobody named": (
                lambda: hf.SNS(baseline="origin").value(made().model, made().x, made().target),
                ValueError,
                "origin=x",
            ),
        },
    )
    yield from each("Sparse", "Sparse", lambda **given: hf.Sparse(**given), {"objective": (3, "sns")})


BASELINES: Wrong = {
    "of other width": (lambda x: x[0, :3], ValueError, "baseline"),
    "of whole numbers": (lambda x: x[0].long(), ValueError, "baseline"),
    "of NaN": (lambda x: x[0] * math.nan, ValueError, "baseline"),
    "of other rows": (lambda x: x[:3], ValueError, "baseline"),
    "of three dimensions": (lambda x: x[None], ValueError, "baseline"),
    "of complex numbers": (lambda x: x[0].to(torch.complex64), ValueError, "baseline"),
    "without values": (lambda x: x[0].to("meta"), ValueError, "baseline"),
    "a list": (lambda x: x[0].tolist(), ValueError, "baseline must be"),
    "None": (lambda x: None, ValueError, "baseline must be"),
    "a word": (lambda x: "mean", ValueError, "baseline must be"),
    "a numpy array": (lambda x: x[0].numpy(), ValueError, "baseline must be"),
}

# ---- settings of classes: what they may not be ----

SETTINGS: dict[str, dict[str, Values]] = {
    "PGD": {
        "radius": NO_SIZE,
        "levels": NO_COUNT,
        "steps": NO_COUNT,
        "seed": NO_SEED,
        "random_start": NO_FLAG,
    },
    "MinCost": {
        "norm": (0, 3, "1"),
        "learning_rate": (0, math.nan, math.inf, "1"),
        "steps": NO_COUNT,
        "constants": NO_COUNT,
        "first": (0, math.nan, "1"),
    },
    "Prototype": {
        "theta": (-1.0, math.nan, "1"),
        "beta": (-1.0, math.nan, "1"),
        "nearest": NO_COUNT,
        "steps": NO_COUNT,
        "constants": NO_COUNT,
        "categories": ("two-hot",),
        "learning_rate": (0, math.nan, "1"),
    },
    "Latent": {
        "radius": NO_SIZE,
        "samples": NO_COUNT,
        "shells": NO_COUNT,
        "seed": NO_SEED,
        "sizes": ((), (0,), (2.5,), 8),
        "epochs": NO_COUNT,
        "steps": NO_COUNT,
        "batch": NO_COUNT,
        "learning_rate": (0, math.nan, "1"),
        "autoencoder": (3,),
    },
    "Margin": {
        "level": (0, 1, math.nan, "0.7", True),
        "log_odds": (math.nan, math.inf, "4"),
        "search": (None, "min-l2"),
    },
    "SNS": {
        "radius": NO_SIZE,
        "steps": NO_COUNT,
        "points": NO_COUNT,
        "norm": (3, "2"),
        "objective": ("sum",),
    },
    "Confidence": {"radius": (0,), "steps": (0,), "norm": (3,)},  # the same check as SNS
    "Certified": {
        "radius": (0,),
        "steps": (0,),
        "norm": (3,),
        "delta": (-1.0, math.nan, math.inf, "1"),
        "change": (3,),
    },
    "Sparse": {"norm": (0, 3, "1"), "tolerance": (-1.0, math.nan, "1")},
    "Recipe": {
        "hidden": (8, "8", (0,), (2.5,)),
        "epochs": NO_COUNT,
        "batch": NO_COUNT,
        "learning_rate": (0, math.nan, math.inf, True),
        "betas": (0.9, (0.9,), (0.9, 1.0), (-0.1, 0.9)),
        "epsilon": (0, math.nan, "1"),
        "weight_decay": (-1.0, math.nan, math.inf, "1"),
        "network": ("mlp",),
    },
    "Retraining": {
        "init_seed": NO_SEED,
        "order_seed": NO_SEED,
        "data_seed": NO_SEED,
        "window": (3, (1,), (0.5, 2), (5, 2)),
        "left_out": (-1, 1.5),
        "left_out_share": (-0.1, 1.0, math.nan, "1"),
        "redrawn": NO_FLAG,
        "continued": NO_FLAG,
        "top_only": NO_FLAG,
        "tilt": (1.0, (0,), (0, math.nan), ("a", 1.0)),
        "appended": (-0.1, 1.5, math.nan, "1"),
        "label_noise": (-0.1, 1.5, math.nan, "1"),
        "weight_noise": (-1.0, math.nan, math.inf, "1"),
        "kind": (3,),
        "settings": (3, ("epochs", 3), (("depth", 3),)),
        "parameters": (3, ("depth", 3), ((3, "depth"),), (("depth", [3]),)),
    },
}


def _settings() -> Iterator[Misuse]:
    for of, fields in SETTINGS.items():
        yield from each(of, of, lambda of=of, **given: getattr(hf, of)(**given), fields)


# ---- families and their training ----

CHANGES: dict[str, tuple[dict[str, Any], dict[str, Values]]] = {  # right arguments, and wrong ones
    "seeds": ({"n": 2}, {"start": NO_SEED}),
    "leave_one_out": ({"n": 2, "rows": 9}, {"rows": NO_COUNT, "seed": NO_SEED, "base": (3,)}),
    "leave_out": ({"n": 2, "share": 0.1}, {"share": (0, 1, math.nan, "1")}),
    "bootstrap": ({"n": 2}, {"start": NO_SEED, "base": (None,)}),
    "shift": ({"n": 2, "column": 0, "strength": 1.0}, {"column": (-1, 1.5), "strength": (math.nan, math.inf, "1")}),
    "windows": ({"n": 2, "length": 3, "rows": 9}, {"rows": NO_COUNT}),
    "append": ({"n": 2}, {"share": (0, 1.5)}),
    "label_noise": ({"n": 2, "rate": 0.1}, {"rate": (0, 1)}),
    "weight_noise": ({"n": 2, "scale": 0.1}, {"scale": (0, math.nan, math.inf, "1")}),
    "fine_tune": ({"n": 2, "epochs": 3}, {"epochs": NO_COUNT, "share": (0, 2), "learning_rate": (0,)}),
    "hyperparameters": (
        {"n": 2, "epochs": (2, 3)},
        {
            "epochs": (3, (3,), (3, 2), (0, 2), (1.5, 2)),
            "batch": (8, (), (0,), ("a",)),
            "learning_rate": (0.1, (0, 1), (2, 1), (math.nan, 1)),
            "weight_decay": (0.1, (0, 1)),
        },
    ),
    "architecture": ({"n": 2, "widths": [8]}, {"widths": (8, (), (0,)), "depths": (3, (-1,), (1.5,))}),
}


def _changes() -> Iterator[Misuse]:
    for name, (right, wrong) in CHANGES.items():

        def change(name: str = name, right: Any = right, **given: Any) -> Any:
            return getattr(hf.changes, name)(**{**right, **given})

        of = name if name == "seeds" else "changes"
        yield from each(of, name, change, wrong)
        yield from each(of, name, change, {"n": (0,)}, says="member")
    changes = lambda **given: hf.changes.both(**{"first": hf.seeds(2), "second": hf.seeds(2), **given})  # noqa: E731
    windows = lambda **given: hf.changes.windows(**{"n": 2, "length": 3, "rows": 9, **given})  # noqa: E731
    yield from each("changes", "both", changes, {"first": ([3],), "second": (None,)}, says="changes")
    drawn = lambda **given: hf.changes.parameters(2, **given)  # noqa: E731
    yield from each("changes", "parameters", drawn, {"max_depth": (3, (), "ab", (6, 3))})
    yield from calls("changes", {"parameters of nothing": (drawn, ValueError, "name a parameter")})
    yield from each("changes", "windows", windows, {"length": (0, 10)}, says="does not fit")
    yield from each("changes", "windows", windows, {"length": (2.5,)})
    yield from calls(
        "leave_one_out",
        {
            "more rows than there are": (lambda: hf.changes.leave_one_out(10, 9), ValueError, "rows of 9"),
        },
    )
    yield from calls(
        "changes",
        {
            "too many windows": (lambda: hf.changes.windows(9, 3, 9), ValueError, "7 different windows"),
            "hyperparameters of nothing": (lambda: hf.changes.hyperparameters(2), ValueError, "name a setting"),
            "both of other lengths": (lambda: hf.changes.both(hf.seeds(2), hf.seeds(3)), ValueError, "2 and 3"),
            "both of one kind": (
                lambda: hf.changes.both(hf.seeds(2), hf.seeds(2, 5)),
                ValueError,
                "of different kinds",
            ),
        },
    )


LABELS: Wrong = {
    "a list": (lambda y: y.tolist(), TypeError, "y must be a torch tensor"),
    "float": (lambda y: y.float(), ValueError, "int64"),
    "negative": (lambda y: y - 1, ValueError, "class indices"),
    "too few": (lambda y: y[:-1], ValueError, "y (n,)"),
    "a column": (lambda y: y[:, None], ValueError, "y (n,)"),
    "without values": (lambda y: y.to("meta"), ValueError, "no values"),
}
PAIRS: Wrong = {  # of rows and labels
    "rows alone": (lambda x: x, TypeError, "(x, y)"),
    "one thing": (lambda x: (x,), TypeError, "(x, y)"),
    "of other columns": (lambda x: (x[:, :3], made().y), ValueError, "columns"),
    "of other rows": (lambda x: (x, made().y[:-1]), ValueError, "(n,)"),
    "of no rows": (lambda x: (x[:0], made().y[:0]), ValueError, "1 or more"),
}


def _training() -> Iterator[Misuse]:
    def train(**other: Any) -> Any:
        m = made()
        return hf.train(**{"x": m.x, "y": m.y, "recipe": m.recipe, "retrainings": [hf.Retraining()], **other})

    other = {"no columns": (lambda x: x[:, :0], ValueError, "d too, got (24, 0)")}  # train's own words
    rows = {name: wrong for name, wrong in (ROWS | NOT_FINITE | other).items() if name != "one column too few"}
    yield from every("train", "rows", rows, lambda x: train(x=x), "x")
    yield from every("train", "labels", LABELS, lambda y: train(y=y), "y")
    yield from every("train", "new", PAIRS, lambda pair: train(new=pair), "x")
    yield from every("train", "held_out", PAIRS, lambda pair: train(held_out=pair), "x")
    wrong: dict[str, Values] = {
        "recipe": (None,),
        "retrainings": (None, [3], []),
        "classes": (1, 2.5),
        "workers": (0, 1.5),
        "base": (3,),
        "store": (3,),
    }
    yield from each("train", "train", train, wrong)
    yield from calls(
        "train",
        {
            "no rows": (lambda: train(x=made().x[:0], y=made().y[:0]), ValueError, "1 or more"),
            "one Retraining": (lambda: train(retrainings=hf.Retraining()), TypeError, "give a list"),
            "a row that is not there": (
                lambda: train(retrainings=[hf.Retraining(left_out=99)]),
                ValueError,
                "there are 24",
            ),
            "a window too late": (lambda: train(retrainings=[hf.Retraining(window=(9, 99))]), ValueError, "24 rows"),
            "fine-tuning nothing": (lambda: train(retrainings=hf.changes.fine_tune(2, 3)), ValueError, "new="),
        },
    )


def _adapted() -> Iterator[Misuse]:
    def adapted(model: Any, **other: Any) -> Any:
        return hf.as_model(model, **{"encoding": made().encoding, **other})

    def fitted(**other: Any) -> Any:
        from sklearn.dummy import DummyClassifier

        m = made()
        return adapted(DummyClassifier().fit(m.table[["income", "age", "job"]], m.table["outcome"]), **other)

    def unfitted() -> Any:
        from sklearn.linear_model import LogisticRegression

        return adapted(LogisticRegression())

    def file(name: str, contents: bytes) -> Path:
        path = made().folder / name
        path.write_bytes(contents)
        return path

    wrong: dict[str, Values] = {
        "encoding": (None, "german"),
        "takes": ("rows", 3),
        "outputs": ("odds", 3),
        "classes": ("yes", 3, ("no",), ("a", "b")),
    }
    yield from each("as_model", "as_model", fitted, wrong)
    yield from calls(
        "as_model",
        {
            "a table": (lambda: adapted(made().table), TypeError, "cannot be asked"),
            "not fitted": (unfitted, ValueError, "not fitted yet"),
            "text for answers": (lambda: adapted(lambda table: ["maybe"] * len(table)), ValueError, "maybe"),
            "NaN for answers": (lambda: adapted(lambda table: np.full(len(table), np.nan)), ValueError, "NaN"),
        },
    )
    yield from calls(
        "read_model",
        {
            "no file": (lambda: hf.read_model(made().folder / "no.ubj", made().encoding), FileNotFoundError, "no.ubj"),
            "no path": (lambda: hf.read_model(3, made().encoding), TypeError, "got 3"),
            "a pickle": (lambda: hf.read_model(file("a.pkl", b"\x80\x04N."), made().encoding), ValueError, "pickle"),
            "a pickle in disguise": (
                lambda: hf.read_model(file("a.onnx", b"\x80\x04N."), made().encoding), ValueError, "pickle",
            ),
            "a table": (
                lambda: hf.read_model(file("a.csv", b"a,b\n1,2\n"), made().encoding), ValueError, "the formats",
            ),
        },
    )  # fmt: skip
    yield from calls(
        "save_model",
        {
            "no network": (lambda: hf.save_model(3, made().folder / "m.safetensors"), TypeError, "int"),
            "no path": (lambda: hf.save_model(made().model, 3), TypeError, "got 3"),
        },
    )


def _refits() -> Iterator[Misuse]:
    def refit(**other: Any) -> Any:
        from sklearn.linear_model import LogisticRegression

        m = made()
        right = {"model": LogisticRegression(), "table": m.table, "changes": hf.seeds(2), "encoding": m.encoding}
        return hf.refit(**{**right, **other})

    wrong: dict[str, Values] = {
        "table": (None,),
        "new": (3,),
        "held_out": ([1, 2],),
        "changes": (None, [3], []),
        "workers": (0, 1.5),
        "store": (3,),
        "encoding": (None,),
        "params": (3, {"C": 1.0}),
    }
    yield from each("refit", "refit", refit, wrong)
    yield from calls(
        "refit",
        {
            "no estimator": (lambda: refit(model=3), TypeError, "got int"),
            "a function": (lambda: refit(model=lambda table: table), TypeError, "Family.from_training"),
            "a network": (lambda: refit(model=made().model), TypeError, "got Network"),
            "a table without its label": (
                lambda: refit(table=made().table.drop(columns="outcome")), ValueError, "outcome",
            ),
            "a row that is not there": (lambda: refit(changes=[hf.Retraining(left_out=99)]), ValueError, "24"),
            "nothing changed": (lambda: refit(changes=[hf.Retraining()]), ValueError, "changes nothing"),
            "weights": (lambda: refit(changes=hf.changes.weight_noise(1, 0.1)), ValueError, "weights of a network"),
            "no such parameter": (
                lambda: refit(changes=hf.changes.parameters(1, depth=(1, 2))), ValueError, "no parameter 'depth'",
            ),
        },
    )  # fmt: skip


def _families() -> Iterator[Misuse]:
    yield from every("Family", "logits, rows", ROWS, lambda x: made().family.logits(x), "x")
    yield from every("Family", "predict, rows", ROWS, lambda x: made().family.predict(x), "x")
    yield from every("Family", "a model", SILENT, lambda f: hf.Family.from_models([f]).predict(made().x), "model")
    for place in (3, -4):
        yield from calls(
            "Family",
            {
                f"member {place}": (lambda place=place: made().family[place], IndexError, "3 members"),
                f"chosen [{place}]": (lambda place=place: made().family.chosen([place]), IndexError, "3 members"),
            },
        )
    for place in (1.5, "a"):
        yield from calls(
            "Family",
            {
                f"member {place!r}": (lambda place=place: made().family[place], TypeError, "whole number"),
                f"chosen [{place!r}]": (lambda place=place: made().family.chosen([place]), TypeError, "chosen"),
            },
        )
    yield Misuse("Family", "chosen 1", lambda: made().family.chosen(1), TypeError, "chosen")
    odd = (3, "ab", ((0,),), ((0, 1),), ((0,), (0, 1)), ((0,), (2,)), ((0, 1), ()), (0, 1), ((0.5,), (1,)))
    yield from each("Family", "merged", lambda groups: made().family.merged(groups), {"groups": (3, ((0,), (2,)))})
    yield from each("merged", "merged", lambda groups: merged(made().model, groups), {"groups": odd})
    yield from calls(
        "merged",
        {
            "three classes": (lambda: merged(made().model, ((0,), (1, 2)))(made().x), ValueError, "3 classes"),
            "no model": (lambda: merged(None, ((0,), (1,))), TypeError, "cannot be called"),
        },
    )
    shares = lambda table: [0.5] * len(table)  # noqa: E731
    yield from calls(
        "as_model",
        {
            "no encoding": (lambda: hf.as_model(shares, made().schema), TypeError, "must be an Encoding"),
            "no model": (lambda: hf.as_model(None, made().encoding), TypeError, "NoneType cannot be asked"),
            "a number": (lambda: hf.as_model(3, made().encoding), TypeError, "int cannot be asked"),
            "takes what": (lambda: hf.as_model(shares, made().encoding, takes="rows"), ValueError, "takes is 'rows'"),
            "gives what": (lambda: hf.as_model(shares, made().encoding, outputs="z"), ValueError, "outputs is 'z'"),
            "one class": (lambda: hf.as_model(shares, made().encoding, classes="good"), TypeError, "classes is 'good'"),
            "other classes": (
                lambda: hf.as_model(shares, made().encoding, classes=("x", "y")),
                ValueError,
                "the schema has",
            ),
            "too few answers": (lambda: hf.as_model(lambda table: [0.5], made().encoding), ValueError, "for"),
        },
    )
    yield from calls(
        "Family",
        {
            "no models": (lambda: hf.Family.from_models([]), ValueError, "one model or more"),
            "from a model": (lambda: hf.Family.from_models(made().model), TypeError, "a list of models"),
            "from None": (lambda: hf.Family.from_models(None), TypeError, "a list of models"),
            "from a number": (lambda: hf.Family.from_models([3]), TypeError, "cannot be called"),
            "too few kinds": (lambda: hf.Family.from_models([made().model], kind=[]), ValueError, "kind"),
            "a file that is not there": (
                lambda: hf.Family.from_models(["none.safetensors"], like=torch.nn.Linear(5, 2)),
                FileNotFoundError,
                "none.safetensors",
            ),
            "a file without a module": (
                lambda: hf.Family.from_models(["none.safetensors"], like=3),
                TypeError,
                "like must be",
            ),
            "a kind that is a number": (lambda: hf.Family.from_models([made().model], kind=3), TypeError, "kind"),
            "a member of merged classes": (lambda: made().family.merged(((0,), (1,)))[0], TypeError, "before merging"),
        },
    )

    def training(**other: Any) -> Any:
        right = {"function": lambda rows, seed: made().model, "changes": hf.seeds(1), "rows": 24, "workers": 1}
        return hf.Family.from_training(**{**right, **other})

    wrong: dict[str, Values] = {
        "function": (None,),
        "changes": ([], [3]),
        "rows": (0, 2.5),
        "workers": (0, 1.5),
    }
    yield from each("Family", "from_training", training, wrong)
    yield from calls(
        "Network",
        {
            "rows of other columns": (lambda: made().model(made().x[:, :3]), ValueError, "5 columns"),
            "rows that are numpy": (lambda: made().model(made().x.numpy()), TypeError, "torch tensor"),
            "rows in float64": (lambda: made().model(made().x.double()), ValueError, "torch.float64"),
        },
    )
    elsewhere = lambda: hf.save_family(hf.Family.from_models([made().model]), made().folder)  # noqa: E731
    yield Misuse("save_family", "models made elsewhere", elsewhere, ValueError, "made elsewhere")
    missing = lambda: hf.load_family(made().folder / "none")  # noqa: E731
    yield Misuse("load_family", "no such folder", missing, (OSError, ValueError, RuntimeError), "none")


# ---- what models say, and what was found ----


def _answers() -> Iterator[Misuse]:
    for of in ("predict", "other_class"):
        yield from every(of, "rows", ROWS, lambda x, of=of: getattr(hf, of)(made().model, x), "x")
        yield from every(of, "a model", SILENT, lambda f, of=of: getattr(hf, of)(f, made().x), "model")
        nan = lambda of=of: getattr(hf, of)(lambda r: made().model(r) * math.nan, made().x)  # noqa: E731
        yield Misuse(of, "a model of NaN", nan, ValueError, "answers NaN for 24 of 24 rows")
    three = lambda: hf.other_class(lambda r: r[:, :3], made().x)  # noqa: E731
    yield Misuse("other_class", "three classes", three, ValueError, "two classes")

    def assess(**other: Any) -> Any:
        m = made()
        right = {"model": m.model, "origin": m.x, "point": m.x, "target": m.target, "space": m.space}
        return hf.assess(**{**right, **other})

    yield from every("assess", "origin", ROWS | NOT_FINITE, lambda v: assess(origin=v), "x")
    yield from every("assess", "point", ROWS, lambda v: assess(point=v), "x")
    yield from every("assess", "targets", TARGETS, lambda v: assess(target=v), "target")
    yield from every("assess", "a model", SILENT, lambda v: assess(model=v), "model")
    yield from every("assess", "a space", SPACES, lambda v: assess(space=v), "space")
    also = (torch.ones(3, dtype=torch.bool), torch.ones(24), [True] * 24)
    yield from each("assess", "assess", assess, {"also": also})
    yield from calls(
        "assess",
        {
            "points of other rows": (lambda: assess(point=made().x[:3]), ValueError, "point"),
            "points in float64": (lambda: assess(point=made().x.double()), ValueError, "torch.float64"),
        },
    )

    def why(**other: Any) -> Any:
        answer = replace(made().found, found=torch.zeros(24, dtype=torch.bool))
        return hf.why_not(**{"model": made().model, "answer": answer, "space": made().space, "tries": 5, **other})

    yield from every("why_not", "a model", SILENT, lambda f: why(model=f), "model")
    yield from every("why_not", "a space", SPACES, lambda s: why(space=s), "space")
    yield from each("why_not", "why_not", why, {"tries": NO_COUNT, "seed": NO_SEED})
    yield from each("why_not", "why_not", why, {"answer": (None,)}, says="expected Counterfactuals")

    def several(**other: Any) -> Any:
        m = made()
        right = {"method": method("min-l1"), "model": m.model, "x": m.x, "target": m.target, "space": m.space}
        return hf.plans(**{**right, **other})

    yield from every("plans", "rows", ROWS | NOT_FINITE, lambda x: several(x=x), "x")
    yield from every("plans", "a model", SILENT, lambda f: several(model=f), "model")
    yield from every("plans", "a space", SPACES, lambda s: several(space=s), "space")
    yield from each("plans", "plans", several, {"count": NO_COUNT})
    yield from each("plans", "plans", several, {"method": (None, "pgd")}, says="expected a method")
    yield Misuse("Plans", "no answers", lambda: Plans((), torch.zeros(24, 1)), ValueError, "answers")
    yield Misuse("Plans", "a list", lambda: Plans(([1],), torch.zeros(24, 1)), TypeError, "Counterfactuals")
    short = lambda: Plans((made().found[:3],), torch.zeros(24, 1))  # noqa: E731
    yield Misuse("Plans", "of other people", short, ValueError, "the same people")
    yield from _rehearsed()
    for of in ("neighbour_distance", "outlier_factor"):

        def near(of: str = of, **other: Any) -> Any:
            return getattr(part("search.plausibility"), of)(
                **{"answer": made().found, "x": made().x, "y": made().y, **other}
            )

        yield from every(of, "rows", ROWS | NOT_FINITE, lambda x, near=near: near(x=x), "x")
        yield from each(of, of, near, {"k": NO_COUNT})
        yield from each(of, of, near, {"answer": (None,)}, says="expected Counterfactuals")
        yield from each(of, of, near, {"y": ([1], torch.ones(24))}, says="y must")
        yield from each(of, of, near, {"y": (torch.ones(3).long(),)}, says="each of 24 rows")


def _rehearsed() -> Iterator[Misuse]:
    def rehearsed(**other: Any) -> Any:
        return hf.Rehearsed(**{"family": made().family, "search": method("min-l1"), **other})

    def found(**other: Any) -> Any:
        m = made()
        return rehearsed()(**{"model": m.model, "x": m.x, "target": m.target, "space": m.space, **other})

    def price(**other: Any) -> Any:
        m = made()
        right = {"method": rehearsed(), "model": m.model, "x": m.x, "target": m.target, "space": m.space}
        return hf.agreement_cost(**{**right, "shares": (1.0,), **other})

    no_size = (-1.0, math.nan, math.inf, True)
    wrong = {"margin": no_size, "temperature": no_size, "share": (0, 1.5, math.nan, "1")}
    yield from each("Rehearsed", "Rehearsed", rehearsed, wrong | {"search": (None, "min-l1")})
    yield from each("Rehearsed", "Rehearsed", rehearsed, {"family": (None, [1])}, says="expected a Family")
    yield Misuse("Rehearsed", "no members", lambda: rehearsed(family=made().family[:0]), ValueError, "empty")
    yield from every("Rehearsed", "rows", ROWS | NOT_FINITE, lambda x: found(x=x), "x")
    yield from every("Rehearsed", "targets", TARGETS, lambda t: found(target=t), "target")
    yield from every("Rehearsed", "a model", SILENT, lambda f: found(model=f), "model")
    yield from every("Rehearsed", "a space", SPACES, lambda s: found(space=s), "space")
    yield from every("agreement_cost", "rows", ROWS | NOT_FINITE, lambda x: price(x=x), "x")
    yield from each("agreement_cost", "price", price, {"shares": ((), "all", 0.5, (0,), (2.0,))}, says="share")
    yield from each("agreement_cost", "price", price, {"method": (None, "pgd")}, says="expected a Rehearsed")

    def agreement_costs(*answers: Any) -> Any:
        return AgreementCost((1.0,), answers, torch.zeros(24, 1))

    yield Misuse("AgreementCost", "no answers", agreement_costs, ValueError, "belong together")
    yield Misuse("AgreementCost", "a list", lambda: agreement_costs([1]), TypeError, "Counterfactuals")
    yield Misuse(
        "AgreementCost", "of other people", lambda: agreement_costs(made().found[:3]), ValueError, "belong together"
    )


def _counterfactuals() -> Iterator[Misuse]:
    parts: dict[str, dict[str, Callable[[Any], Any]]] = {
        "origin": {"a list": lambda v: v.tolist(), "one row": lambda v: v[0], "numpy": lambda v: v.numpy()},
        "point": {
            "of other width": lambda v: v[:, :3],
            "of other rows": lambda v: v[:3],
            "None": lambda v: None,
            "of whole numbers": lambda v: v.long(),
        },
        "target": {"float": lambda v: v.float(), "of other length": lambda v: v[:3], "a class": lambda v: 1},
        "found": {"numbers": lambda v: v.long(), "of other length": lambda v: v[:3], "a list": lambda v: v.tolist()},
        "before": {"of other length": lambda v: v[:3], "a list": lambda v: v.tolist()},
    }
    for field, wrong in parts.items():
        for what, spoil in wrong.items():
            spoiled = lambda field=field, spoil=spoil: replace(  # noqa: E731
                made().found, **{field: spoil(getattr(made().found, field))}
            )
            yield Misuse("Counterfactuals", f"{field} {what}", spoiled, WRONG, field)
    for what, rows in CHOSEN.items():
        yield Misuse(
            "Counterfactuals", f"rows, {what}", lambda rows=rows: made().found[rows], (*WRONG, IndexError), "rows"
        )
        chosen = lambda rows=rows: made().audit.of_rows(rows)  # noqa: E731
        yield Misuse("Audit", f"rows, {what}", chosen, (*WRONG, IndexError), "rows")
    yield from each("Counterfactuals", "cost", lambda norm: made().found.cost(norm), {"norm": ("2", -1, math.nan)})
    yield from calls(
        "Counterfactuals",
        {
            "a frame of other rows": (
                lambda: made().found.to_frame(made().encoding, made().table[:3]),
                ValueError,
                "the table has 3 rows",
            ),
            "a frame of an array": (
                lambda: made().found.to_frame(made().encoding, made().table.to_numpy()),
                TypeError,
                "DataFrame",
            ),
            "a frame without encoding": (lambda: made().found.to_frame(None), TypeError, "expected an Encoding"),
            "changes without encoding": (lambda: made().found.changes(None), TypeError, "expected an Encoding"),
        },
    )


CHOSEN: dict[str, Any] = {
    "a mask of other length": torch.ones(3, dtype=torch.bool),
    "one that is not there": torch.tensor([24]),
    "one before the first": torch.tensor([-25]),
    "half of one": torch.tensor([0.5]),
    "a name": "first",
    "None": None,
    "a table": torch.zeros(2, 2, dtype=torch.long),
    "a list of names": ["a"],
}


# ---- audits and what is read off them ----

NO_CONFIDENCE = (95,)


def _audits() -> Iterator[Misuse]:
    m = made
    yield from calls(
        "audit",
        {
            "no counterfactuals": (lambda: hf.audit(None, m().family), TypeError, "expected Counterfactuals"),
            "rows": (lambda: hf.audit(m().x, m().family), TypeError, "expected Counterfactuals"),
            "a list of models": (lambda: hf.audit(m().found, [m().model]), TypeError, "Family.from_models"),
            "one model": (lambda: hf.audit(m().found, m().model), TypeError, "Family.from_models"),
            "no family": (lambda: hf.audit(m().found, None), TypeError, "Family.from_models"),
            "no members": (lambda: hf.audit(m().found, m().family[:0]), ValueError, "0 members"),
            "a member twice": (lambda: hf.audit(m().found, m().family.chosen([0, 0])), ValueError, "more than once"),
            "the deployed model": (
                lambda: hf.audit(m().found, hf.Family.from_models([m().model])),
                ValueError,
                "the search has seen",
            ),
            "other classes": (
                lambda: hf.audit(m().found, hf.Family.from_models([torch.nn.Linear(5, 3)])),
                ValueError,
                "2 classes",
            ),
            "other columns": (
                lambda: hf.audit(replace(m().found, origin=m().x[:, :3], point=m().x[:, :3]), m().family),
                ValueError,
                "columns",
            ),
            "models of other columns": (
                lambda: hf.audit(m().found, hf.Family.from_models([torch.nn.Linear(7, 2)])),
                ValueError,
                "of 5 columns",
            ),
        },
    )
    for call in ("interval", "interval_of_new_rows", "per_row_interval"):
        interval = lambda call=call, **given: getattr(m().audit, call)(**given)  # noqa: E731
        yield from each("Audit", call, interval, {"confidence": NO_CONFIDENCE})
    yield from calls(
        "Audit",
        {
            "a kind nobody has": (lambda: m().audit.of("bootstrap"), ValueError, "there are seeds"),
            "predictions of other shape": (lambda: replace(m().audit, predictions=m().x), ValueError, "predictions"),
            "predictions in a list": (lambda: replace(m().audit, predictions=[[1]]), TypeError, "predictions"),
            "rows for counterfactuals": (
                lambda: replace(m().audit, counterfactuals=m().x),
                TypeError,
                "expected Counterfactuals",
            ),
            "a table of no network": (lambda: m().audit.table(lambda r: r), TypeError, "perceptron"),
            "seconds that are text": (
                lambda: m().audit.rows(dataset="a", method="b", space="free", seconds="3"),
                TypeError,
                "seconds",
            ),
        },
    )
    compared: dict[str, tuple[Call, Any, str]] = {
        "None": (lambda: None, TypeError, "by the name of their method"),
        "a list": (lambda: [m().audit, m().audit], TypeError, "by the name of their method"),
        "one audit": (lambda: m().audit, TypeError, "by the name of their method"),
        "nothing": (dict, ValueError, "two audits or more"),
        "one of them": (lambda: {"a": m().audit}, ValueError, "two audits or more"),
        "counterfactuals": (lambda: {"a": m().found, "b": m().found}, ValueError, "Counterfactuals"),
        "other rows": (lambda: {"a": m().audit, "b": m().audit.of_rows(torch.arange(3))}, ValueError, "the same rows"),
        "other members": (lambda: {"a": m().audit, "b": hf.audit(m().found, m().family[:2])}, ValueError, "one family"),
    }
    for what, (audits, error, says) in compared.items():
        yield Misuse("compare", what, lambda audits=audits: hf.compare(audits()), error, says)
        yield Misuse("Comparison", what, lambda audits=audits: Comparison(audits()), error, says)

    def compare(**other: Any) -> Any:
        return hf.compare({"a": m().audit, "b": m().audit}, **other)

    def until(**other: Any) -> Any:
        return audit_until(**{"counterfactuals": m().found, "families": [m().family], **other})

    yield from each("compare", "compare", compare, {"norm": ("2", -1)})
    yield from each(
        "Comparison", "differences", lambda **given: compare().differences(**given), {"confidence": NO_CONFIDENCE}
    )
    widths = (0, 1, math.nan, True)
    yield from each("audit_until", "audit_until", until, {"width": widths, "confidence": NO_CONFIDENCE})
    yield from each("audit_until", "audit_until", until, {"families": ([], [3])}, says="families")
    yield from each("audit_until", "audit_until", until, {"counterfactuals": (None,)}, says="expected Counterfactuals")
    nothing = lambda: replace(m().found, found=torch.zeros(24, dtype=torch.bool))  # noqa: E731
    yield from calls(
        "audit_until",
        {
            "a family itself": (lambda: until(families=m().family), TypeError, "families"),
            "nothing found": (lambda: until(counterfactuals=nothing()), ValueError, "nothing was found"),
        },
    )
    yield from calls(
        "Sequential",
        {
            "other limits": (
                lambda: Sequential(m().audit, np.zeros(2), np.ones(3), 0.1, 0.95),
                ValueError,
                "low and high",
            ),
            "no audit": (lambda: Sequential(None, np.zeros(1), np.ones(1), 0.1, 0.95), TypeError, "Audit"),
        },
    )
    needed: dict[str, Values] = {
        "width": widths,
        "rate": (-0.1, 1.5, math.nan, True),
        "spread": (-0.1, 0.9, math.nan, "1"),
        "confidence": NO_CONFIDENCE,
        "most": NO_COUNT,
        "running": NO_FLAG,
    }
    members = lambda **given: hf.members_needed(**{"width": 0.2, **given})  # noqa: E731
    yield from each("members_needed", "members_needed", members, needed)
    missing = lambda: hf.load_audit(m().folder / "none")  # noqa: E731
    yield Misuse("save_audit", "no audit", lambda: hf.save_audit(None, m().folder / "audit"), TypeError, "Audit")
    yield Misuse("load_audit", "no such folder", missing, (FileNotFoundError, ValueError), "none")


def _promises() -> Iterator[Misuse]:
    m = made

    def promised(**other: Any) -> Any:
        given = {"method": hf.Margin(), "model": m().model, "x": m().x, "target": m().target, "space": m().space}
        return hf.promise(**{**given, "selection": m().family, "rate": 0.5, "parameter_values": (0.0,), **other})

    of = "promise"
    yield from every(of, "rows", ROWS | NOT_FINITE, lambda x: promised(x=x), "x")
    yield from every(of, "targets", TARGETS, lambda t: promised(target=t), "target")
    yield from every(of, "a model", SILENT, lambda f: promised(model=f), "model")
    yield from every(of, "a space", SPACES, lambda s: promised(space=s), "space")
    yield from each(of, of, promised, {"method": (None, hf.MinCost(), hf.Margin)}, says="Margin()")
    yield from each(
        of,
        of,
        promised,
        {
            "selection": (None, [1, 2]),
            "audit": (3,),
            "rate": (0, 1, math.nan, "5 %"),
            "parameter_values": (3, (), (1.0, 0.0), (0.0, math.nan), ("a",), (0, 0)),
            "least_found": (-0.1, 1.5, math.nan, "half"),
            "plans": NO_COUNT,
            "exhaustive": (3, ("bootstrap",)),
            "progress": NO_FLAG,
        },
    )
    surrogates = lambda: replace(m().family, surrogates="trees stand in for a forest")  # noqa: E731
    wide = hf.Margin(level=0.9)
    yield from calls(
        of,
        {
            "no members": (lambda: promised(selection=m().family[:0]), ValueError, "0 members"),
            "a member twice": (lambda: promised(selection=m().family.chosen([0, 0])), ValueError, "more than once"),
            "surrogates": (lambda: promised(selection=surrogates()), ValueError, "stand in for a forest"),
            "surrogates to audit with": (lambda: promised(audit=surrogates()), ValueError, "stand in for a forest"),
            "a level beside the parameter": (lambda: promised(method=wide), ValueError, "not both"),
            "the deployed model": (
                lambda: promised(selection=hf.Family.from_models([m().model])),
                ValueError,
                "the search has seen",
            ),
            "an audit by selection models": (lambda: promised(audit=m().family[1:]), ValueError, "share no member"),
            "an audit by another kind": (
                lambda: promised(audit=hf.Family.from_models([torch.nn.Linear(5, 2)])),
                ValueError,
                "nothing is promised for",
            ),
        },
    )
    nothing = lambda: promised(rate=0.01)  # noqa: E731
    yield from calls(
        "Promise",
        {
            "a limit without an audit": (lambda: promised().realised_limit("seeds"), ValueError, "audit=family"),
            "a limit of a refusal": (lambda: nothing().realised_limit("seeds"), ValueError, "nothing was promised"),
            "a confidence above 1": (lambda: nothing().realised_limit("seeds", 95), ValueError, "confidence"),
        },
    )


def _explainers() -> Iterator[Misuse]:
    m = made

    def explainer(**other: Any) -> Any:
        given = {"model": m().model, "table": m().table, "schema": m().schema, "want": "yes", "workers": 1}
        return hf.Explainer(**{**given, **other})

    @functools.cache
    def ready() -> Any:
        return explainer(retrain=hf.Family.from_models([m().family[place] for place in range(3)], kind="own"))

    def explained(**other: Any) -> Any:
        return ready().explain(**{"people": m().table, **other})

    of = "Explainer"
    yield from each(
        of,
        of,
        explainer,
        {
            "table": (None, {"income": [1]}),
            "want": ("maybe", ["yes", "maybe"], ["no", "yes"], []),
            "schema": (3,),
            "label": ("income", 3),
            "retrain": (3, [], {}),
            "sizes": (32,),
            "constrained": NO_FLAG,
            "progress": NO_FLAG,
            "workers": (0, 1.5),
            "plausible": (0, 1, "0.9"),
            "scaling": ("z",),
            "classes": ("yes", ("yes",), ("maybe", "no"), 3),
        },
        says=" ",
    )
    module = torch.nn.Sequential(torch.nn.Linear(5, 2))
    few = lambda: explainer(model=m().recipe, retrain=hf.seeds(2)).roles  # noqa: E731
    nobody = lambda: explainer().explain(m().table, hold=0.9)  # noqa: E731
    yield from calls(
        of,
        {
            "no label and no schema": (lambda: explainer(schema=None), ValueError, "label="),
            "no column of classes": (
                lambda: explainer(table=m().table.drop(columns="outcome"), retrain=hf.seeds(6), model=m().recipe),
                ValueError,
                "outcome",
            ),
            "a module without a recipe": (
                lambda: explainer(model=module, retrain=hf.seeds(6), takes="encoded", outputs="logits"),
                TypeError,
                "Recipe(network=",
            ),
            "two retrainings": (few, ValueError, "too few"),
            "hold without retrained models": (nobody, ValueError, "retrain=hf.seeds(96)"),
            "no folder": (lambda: hf.Explainer.load(m().folder / "none", table=m().table), FileNotFoundError, "save"),
            "a folder of a number": (lambda: explainer().save(3), TypeError, "folder"),
            "an audit of nothing": (lambda: ready().audit(None), TypeError, "DataFrame"),
        },
    )
    yield from each(
        of,
        "explain",
        explained,
        {
            "people": (None, "people.csv"),
            "hold": (0, 1.5, math.nan, "0.9", True),
            "parameter_values": ((0.0, 1.0),),  # without a promise
            "wishes": ("housing", 3, {-1: hf.Wish()}, [hf.Wish()], {0: "housing"}, hf.Wish(keep=("nothing",))),
            "promise": (0, 1, math.nan, "0.1", True),
            "plans": NO_COUNT,
            "method": ("none", 3),
            "want": ("maybe", {}),
            "index": ("nobody",),
        },
        says=" ",
    )
    lacking = lambda: explained(people=m().table.drop(columns="age"))  # noqa: E731
    yield from calls(
        of,
        {
            "people without a feature": (lacking, ValueError, "age"),
            "nobody": (lambda: explained(people=m().table[:0]), ValueError, "no rows"),
            "hold and promise": (lambda: explained(hold=0.9, promise=0.1), ValueError, "two different questions"),
            "people with one label": (lambda: explained(people=m().table.set_axis([1] * 24)), ValueError, "several"),
            "another level": (lambda: explained(people=m().table.assign(job="king")), ValueError, "king"),
            "text for a number": (lambda: explained(people=m().table.assign(age="old")), ValueError, "age"),
        },
    )
    advised = lambda: explained(people=m().table[:4])  # noqa: E731
    yield from calls(
        "Advice",
        {
            "of a stranger": (lambda: advised().of("nobody"), KeyError, "nobody is labelled"),
            "saved to a number": (lambda: advised().save(3), TypeError, "folder"),
        },
    )
    yield from _letters(functools.cache(advised))
    reported = lambda **given: hf.report(**{"advice": advised(), "path": m().folder / "report.html", **given})  # noqa: E731
    yield from each(
        "report",
        "report",
        reported,
        {"advice": (None, "advice"), "path": (3,), "groups": ("age", 3, ("nobody",)), "title": (3,)},
        says=" ",
    )
    yield from each("report", "report", reported, {"made": ("2026-11-16", 3)}, says="date")
    roles = lambda **given: hf.Sizes(**given)  # noqa: E731
    least = {"rehearsal": (-1, 1.5), "selection": (0, 1.5), "audit": (0, 1.5)}
    yield from each("Sizes", "Sizes", roles, least)


def _letters(advised: Call) -> Iterator[Misuse]:
    words = ("bank", "applicant", "decision", "good_until", "contact", "authority")
    given = {name: f"the {name}" for name in words}

    def letter(**other: Any) -> Any:
        person = next(label for label, status in advised().status.items() if status != "has the class")
        return hf.letter(**{"advice": advised(), "person": person, "fields": given, **other})

    settings: dict[str, Values] = {
        "advice": (None,),
        "template": ("uk", 3),
        "language": ("fr",),
        "fields": (None, {}, "bank", [1], {**given, "bank": ""}, {**given, "bank": 3}, {**given, "banks": "x"}),
        "reasons": ("nowhere", 3, [3], [""]),
    }
    yield from each("letter", "letter", letter, settings, says=" ")
    yield from calls(
        "letter",
        {
            "to a stranger": (lambda: letter(person="nobody"), KeyError, "nobody is labelled"),
            "without reasons": (lambda: letter(template="us", fields={}), ValueError, "needs the field 'bank'"),
        },
    )
    yield from calls(
        "Letter",
        {
            "saved to a number": (lambda: letter().save(3), TypeError, ".html or .txt"),
            "saved as another kind": (lambda: letter().save("letter.pdf"), ValueError, ".pdf"),
        },
    )


def _intervals() -> Iterator[Misuse]:
    of = "auditing.intervals"
    draws: Values = ([], [0.2, 1.2], [-0.1], [math.nan], ["a"], [[0.1]], {"a": 1})
    for name in ("mean_interval", "member_interval", "running_interval", "upper_limit"):
        values = draws if name == "mean_interval" else draws[1:2]
        yield from each(
            of, name, lambda name=name, **given: getattr(part(of), name)(**given), {"values": values}, "draws"
        )
    successes, trials = ([5], [-1], [math.nan], ["a"], [0.5]), (0,)
    exact = lambda **given: part(of).clopper_pearson(**{"successes": [1], "trials": 3, **given})  # noqa: E731
    yield from each(of, "clopper_pearson", exact, {"successes": successes, "trials": trials}, says="trials")

    def bootstrap(**given: Any) -> Any:
        return part(of).bootstrap_interval(**{"invalidated": np.ones((2, 30), bool), **given})

    tables = ([[0.1]], [True], [["a"]], None)
    yield from each(of, "bootstrap_interval", bootstrap, {"invalidated": tables}, says="table of booleans")
    yield from each(of, "bootstrap_interval", bootstrap, {"draws": NO_COUNT, "seed": NO_SEED})


def _predictors() -> Iterator[Misuse]:
    m = made

    def known(**other: Any) -> Any:
        return predictors(**{"model": m().model, "answer": m().found, "x": m().x, "y": m().y, **other})

    def diagnosed(**other: Any) -> Any:
        return diagnostics(**{"network": m().model, "answer": m().found, **other})

    def told(**other: Any) -> Any:
        table = pd.DataFrame({"cost": np.arange(24.0)})
        return what_predicts(**{"audits": {"a": m().audit}, "known": {"a": table}, **other})

    yield from every("predictors", "a model", MODELS, lambda f: known(model=f), "model")
    yield from every("predictors", "rows", ROWS | NOT_FINITE, lambda x: known(x=x), "x")
    yield from each("predictors", "predictors", known, {"answer": (None,)}, says="expected Counterfactuals")
    yield from each("predictors", "predictors", known, {"y": ([1],)}, says="y must be")
    yield from every("diagnostics", "a network", NO_NETWORK, lambda n: diagnosed(network=n), "model")
    yield from each("diagnostics", "diagnostics", diagnosed, {"radius": NO_RADIUS})
    yield from each("diagnostics", "diagnostics", diagnosed, {"answer": (None,)}, says="expected Counterfactuals")
    nothing = lambda: diagnosed(answer=replace(m().found, found=torch.zeros(24, dtype=torch.bool)))  # noqa: E731
    yield Misuse("diagnostics", "nothing found", nothing, ValueError, "nothing was found")
    yield from each("what_predicts", "what_predicts", told, {"confidence": NO_CONFIDENCE, "seed": NO_SEED})
    yield from each("what_predicts", "what_predicts", told, {"audits": (None, [1]), "known": (None, [1])})
    yield from calls(
        "what_predicts",
        {
            "nothing": (lambda: told(audits={}, known={}), ValueError, "expected predictors"),
            "another name": (lambda: told(audits={"b": m().audit}), ValueError, "expected predictors"),
            "no audit": (lambda: told(audits={"a": 3}), TypeError, "Audit"),
            "no table": (lambda: told(known={"a": 3}), TypeError, "DataFrame"),
            "other rows": (
                lambda: told(known={"a": pd.DataFrame({"cost": [1.0]})}),
                ValueError,
                "1 rows but its audit 24",
            ),
            "words": (lambda: told(known={"a": pd.DataFrame({"cost": ["x"] * 24})}), ValueError, "cost"),
        },
    )


# ---- theory ----

# A function of a perceptron, rows and perhaps targets: its home, how to call it, and if it takes targets.
OF_NETWORKS: dict[str, tuple[str, Callable[..., Any], bool]] = {
    "margin_bound": ("certificates", lambda f, n, x, t: f(n, x, t, 0.01), True),
    "certified_radius": ("certificates", lambda f, n, x, t: f(n, x, t), True),
    "lipschitz_bound": ("lipschitz", lambda f, n, x, t: f(n, x, 0.1, t), True),
    "pattern": ("regions", lambda f, n, x, t: f(n, x), False),
    "linear_map": ("regions", lambda f, n, x, t: f(n, x), False),
    "polytope": ("regions", lambda f, n, x, t: f(n, x), False),
    "facet_distance": ("regions", lambda f, n, x, t: f(n, x), False),
    "boundary_distance_inside": ("regions", lambda f, n, x, t: f(n, x, t), True),
    "theorem2": ("theorems", lambda f, n, x, t: f(n, n, x), False),
}


def _module_of(home: str) -> str:
    """Where a piece of theory lies: the theorems are the paper's alone."""
    return "paper.theorems" if home == "theorems" else f"theory.{home}"


def _networks() -> Iterator[Misuse]:
    for name, (home, call, targeted) in OF_NETWORKS.items():
        of = _module_of(home)

        def ask(of: str = of, name: str = name, call: Any = call, **other: Any) -> Any:
            given = {"n": made().model, "x": made().x, "t": made().target, **other}
            return call(getattr(part(of), name), given["n"], given["x"], given["t"])

        rows = ROWS if home == "certificates" else ROWS | NOT_FINITE  # what is not finite is not certified
        targets = TARGETS if targeted else {}
        yield from every(of, f"{name}, a network", NO_NETWORK, lambda n, ask=ask: ask(n=n), "model")
        yield from every(of, f"{name}, rows", rows, lambda x, ask=ask: ask(x=x), "x")
        yield from every(of, f"{name}, targets", targets, lambda t, ask=ask: ask(t=t), "target")


def _theory() -> Iterator[Misuse]:
    m = made

    def use(name: str, *right: Callable[[Any], Any], **given: Any) -> Any:
        """A function of a module of the theory, with what it takes from the material, and with something wrong."""
        home, _, function = name.partition(".")
        return getattr(part(_module_of(home)), function)(*(take(m()) for take in right), **given)

    def model(m: Any) -> Any:
        return m.model

    def x(m: Any) -> Any:
        return m.x

    def target(m: Any) -> Any:
        return m.target

    def value(number: Any) -> Callable[[Any], Any]:
        return lambda m: number

    def wrong(name: str, right: tuple[Any, ...], says: str = "", **fields: Values) -> Iterator[Misuse]:
        home, _, function = name.partition(".")
        yield from each(_module_of(home), function, functools.partial(use, name, *right), fields, says)

    def change(scales: Any, kind: str) -> Any:
        return use("certificates.certified_radius", model, x, target, change=use(f"certificates.{kind}", scales=scales))

    deltas = (-1.0, math.nan, torch.ones(3), True)
    yield from wrong("certificates.margin_bound", (model, x, target), delta=deltas)
    yield from wrong("certificates.certified_radius", (model, x, target), change=(3,))
    scales: Values = ((1.0,), (1.0, -1.0), (1.0, math.nan), (1.0, "a"), 3)
    for kind in ("Absolute", "Relative"):
        yield from each("theory.certificates", kind, functools.partial(change, kind=kind), {"scales": scales})
    yield from wrong("lipschitz.lipschitz_bound", (model, x), radius=(-1.0, math.nan, True, torch.ones(3)))
    yield from wrong("lipschitz.sampled_lipschitz", (model, x), radius=NO_RADIUS)
    yield from wrong("lipschitz.sampled_lipschitz", (model, x, value(0.1)), count=NO_COUNT, seed=NO_SEED)
    yield from wrong("influence.Ball", (), radius=NO_RADIUS)
    yield from wrong("influence.Ball", (value(0.1),), count=NO_COUNT, seed=NO_SEED)
    yield from wrong("influence.Line", (lambda m: m.x[0],), count=(2.5,))
    yield from wrong("influence.Line", (), baseline=([0.0],))
    yield from wrong("influence.influence", (model, x, target), interest=(3,))
    yield from wrong("paths.line", (x, x), count=NO_COUNT)
    yield from wrong("paths.line", (x, x, value(3)), rule=("simpson",))
    yield from wrong("regions.boundary_piece", (model, lambda m: m.x[0]), second=(2, -1, 1.5))
    yield from wrong("theorems.theorem2", (model, model, x), count=NO_COUNT)
    numbers = (-0.1, 1.5, math.nan, True, torch.ones(3))
    yield from wrong("theorems.proposition1", (lambda m: lambda r: m.model(r)[:, 0], x), t=numbers, says="t ")
    ball = functools.partial(use, "influence.Ball", value(0.1), count=3)
    influence = functools.partial(use, "influence.influence")
    yield from every(
        "theory.influence", "a model", MODELS, lambda f: influence(value(f), x, target, lambda m: ball()), "model"
    )
    yield from every(
        "theory.influence", "rows", ROWS, lambda v: influence(model, value(v), target, lambda m: ball()), "x"
    )
    yield from every(
        "theory.influence", "targets", TARGETS, lambda t: influence(model, x, value(t), lambda m: ball()), "target"
    )
    sampled = functools.partial(use, "lipschitz.sampled_lipschitz", model)
    yield from every("theory.lipschitz", "sampled_lipschitz, rows", ROWS, lambda v: sampled(value(v), value(0.1)), "x")

    def about(name: str, *right: Any, **given: Any) -> Call:
        return functools.partial(use, name, *right, **given)

    def piece(m: Any) -> Any:
        return use("regions.boundary_piece", model, lambda m: m.x[0])

    yield Misuse(
        "theory.influence",
        "a baseline of other width",
        about("influence.influence", model, x, target, lambda m: use("influence.Line", lambda m: m.x[0, :3])),
        ValueError,
        "baseline",
    )
    yield from calls(
        "theory.paths",
        {
            "a start of other width": (about("paths.line", lambda m: m.x[0, :3], x, value(3)), ValueError, "start"),
            "an end that is a list": (about("paths.line", x, value([1.0]), value(3)), TypeError, "torch tensor"),
        },
    )
    yield from calls(
        "theory.regions",
        {
            "a piece at many rows": (about("regions.boundary_piece", model, x), ValueError, "(d,)"),
            "distances of many rows": (about("regions.piece_distance", piece, x), ValueError, "(d,)"),
            "the distance of no piece": (
                about("regions.piece_distance", value(None), lambda m: m.x[0]),
                TypeError,
                "Piece",
            ),
        },
    )
    yield from calls(
        "paper.theorems",
        {
            "Theorem 1 without pieces": (
                about("theorems.further_but_no_safer", lambda m: m.x[0], value(None), piece),
                TypeError,
                "Piece",
            ),
            "Theorem 1 of many rows": (about("theorems.further_but_no_safer", x, piece, piece), ValueError, "(d,)"),
            "Theorem 2 of other networks": (
                about("theorems.theorem2", model, lambda m: m.family[0], x),
                ValueError,
                "top layer",
            ),
            "Proposition 1 of logits": (about("theorems.proposition1", model, x, value(0.5)), ValueError, "q gave"),
            "Proposition 1 of nothing": (about("theorems.proposition1", value(None), x, value(0.5)), TypeError, "q "),
            "Proposition 1 of numpy": (
                about("theorems.proposition1", value(lambda r: r.detach().numpy()[:, 0]), x, value(0.5)),
                ValueError,
                "q gave",
            ),
        },
    )


# ---- tables, and counterfactuals from elsewhere ----


def _tables() -> Iterator[Misuse]:
    m = made
    real = lambda name="a", **given: hf.Feature(name, "real", **given)  # noqa: E731
    yield from calls(
        "Encoding",
        {
            "an array": (lambda: hf.Encoding.fit(m().table.to_numpy(), m().schema), TypeError, "DataFrame"),
            "no schema": (lambda: hf.Encoding.fit(m().table, None), TypeError, "expected a Schema"),
            "a scaling nobody knows": (lambda: hf.Encoding.fit(m().table, m().schema, "log"), ValueError, "scaling"),
            "an empty table": (lambda: hf.Encoding.fit(m().table[:0], m().schema), ValueError, "empty"),
            "a missing column": (lambda: m().encoding.encode(m().table.drop(columns="age")), ValueError, "age"),
            "a missing value": (lambda: m().encoding.encode(m().table.assign(income=math.nan)), ValueError, "income"),
            "a level nobody knows": (lambda: m().encoding.encode(m().table.assign(job="pilot")), ValueError, "pilot"),
            "rows of other width": (lambda: m().encoding.decode(m().x[:, :3]), ValueError, "5 columns"),
            "a class nobody knows": (lambda: m().encoding.target("maybe", 3), ValueError, "maybe"),
            "targets for so many": (lambda: m().encoding.target("yes", "3"), TypeError, "rows must be a whole number"),
            "targets for fewer than none": (lambda: m().encoding.target("yes", -1), ValueError, "rows must be 0"),
            "decode, an array": (lambda: m().encoding.decode(m().x.numpy()), TypeError, "torch.from_numpy"),
            "decode, NaN": (lambda: m().encoding.decode(m().x * math.nan), ValueError, "not finite"),
            "encode as words": (lambda: m().encoding.encode(m().table, "float32"), TypeError, "dtype"),
            "encode as whole numbers": (lambda: m().encoding.encode(m().table, torch.int64), TypeError, "dtype"),
        },
    )
    yield from calls(
        "Schema",
        {
            "no features": (lambda: hf.Schema((), "y", ("a", "b")), ValueError, "feature"),
            "one class": (lambda: hf.Schema((real(),), "y", ("a",)), ValueError, "classes"),
            "a label that is a feature": (lambda: hf.Schema((real(),), "a", (0, 1)), ValueError, "label"),
            "nothing": (lambda: hf.Schema(None, "y", (0, 1)), TypeError, "features"),
            "features by name": (lambda: hf.Schema(("a",), "y", (0, 1)), TypeError, "expected Feature"),
            "classes in one word": (lambda: hf.Schema((real(),), "y", "ab"), TypeError, "classes"),
            "a label that is no name": (lambda: hf.Schema((real(),), None, (0, 1)), TypeError, "label"),
            "a file that is no name": (lambda: hf.Schema.load(None), TypeError, "expected the name of a schema"),
            "no such file": (lambda: hf.Schema.load(m().folder / "none.toml"), FileNotFoundError, "none.toml"),
            "a feature nobody knows": (lambda: m().schema["wealth"], KeyError, "wealth"),
            "a setting nobody knows": (lambda: m().schema.revise("age", changeable=False), TypeError, "changeable"),
            "a label nobody knows": (lambda: hf.Schema.infer(m().table, "wealth"), ValueError, "wealth"),
            "a relation in words": (lambda: m().schema.relate("age <= income"), TypeError, "relation number 1"),
            "a relation it has not": (lambda: m().schema.without(None), ValueError, "no relation"),
            "breaches of an array": (lambda: m().schema.broken(m().x), TypeError, "DataFrame"),
        },
    )
    yield from calls(
        "inspect",
        {
            "an array": (lambda: hf.inspect(m().table.to_numpy(), "y"), TypeError, "DataFrame"),
            "a label nobody knows": (lambda: hf.inspect(m().table, "wealth"), ValueError, "wealth"),
            "a label that is a column": (lambda: hf.inspect(m().table, m().table["age"]), TypeError, "label"),
            "an empty table": (lambda: hf.inspect(m().table[:0], "y"), ValueError, "empty"),
        },
    )
    yield from calls(
        "Feature",
        {
            "a kind nobody knows": (lambda: hf.Feature("a", "number"), ValueError, "kind"),
            "bounds the wrong way": (lambda: real(lower=2, upper=1), ValueError, "lower"),
            "a step of nothing": (lambda: real(step=0), ValueError, "step"),
            "levels in one word": (lambda: hf.Feature("a", "categorical", levels="ab"), TypeError, "levels"),
            "mutable in words": (lambda: real(mutable="yes"), TypeError, "mutable"),
            "missing in words": (lambda: real(missing="yes"), TypeError, "missing"),
            "one range without its pair": (lambda: real(ranges=(0, 1)), TypeError, "ranges"),
            "ranges that overlap": (lambda: real(ranges=((0, 2), (1, 3))), ValueError, "ranges"),
            "no difficulty": (lambda: real(difficulty=0), ValueError, "difficulty"),
            "missing and binary": (
                lambda: hf.Feature("a", "binary", levels=(0, 1), missing=True),
                ValueError,
                "categorical",
            ),
        },
    )
    yield from calls(
        "Determines",
        {
            "one name": (lambda: hf.Determines("job", "age"), TypeError, "by is 'job'; give a tuple"),
            "a table of values": (lambda: hf.Determines(("job",), "age", m().table), TypeError, "rows"),
            "learning from an array": (
                lambda: hf.Determines(("job",), "age").learn(m().table.to_numpy()), TypeError, "DataFrame",
            ),
        },
    )  # fmt: skip
    yield from calls(
        "Implies",
        {
            "names alone": (lambda: hf.Implies("job", "age"), TypeError, "when is 'job'; give a mapping"),
            "one level": (lambda: hf.Implies({"job": "nurse"}, {"age": (18, 90)}), TypeError, "('nurse',)"),
            "a level nobody knows": (
                lambda: m().schema.relate(hf.Implies({"job": ("pilot",)}, {"age": (18, 90)})), ValueError, "'pilot'",
            ),
        },
    )  # fmt: skip
    yield from calls(
        "Exclusive",
        {
            "one name": (lambda: hf.Exclusive("age"), TypeError, "columns is 'age'; give a tuple"),
            "levels": (lambda: m().schema.relate(hf.Exclusive(("age", "job"))), ValueError, "expected a number"),
            "an array": (
                lambda: m().schema.relate(hf.Exclusive(("age", "income"))).broken(m().x),
                TypeError,
                "DataFrame",
            ),
        },
    )
    yield from calls(
        "Ordered",
        {
            "one column": (lambda: hf.Ordered(("age",)), ValueError, "two or more names"),
            "nothing": (lambda: hf.Ordered(None), TypeError, "columns is None"),
            "a feature nobody knows": (lambda: m().schema.relate(hf.Ordered(("age", "incom"))), ValueError, "'income'"),
        },
    )
    yield from calls(
        "Sums",
        {
            "parts in one word": (lambda: hf.Sums("income", "age"), TypeError, "parts is 'age'; give a tuple"),
            "a part that nobody named": (lambda: hf.Sums("a", ("b", "c"), "d"), ValueError, "absorbs is 'd'"),
        },
    )
    yield from calls(
        "Follows",
        {
            "no word how far": (lambda: hf.Follows("age", "job"), ValueError, "rate=number"),
            "a rate in words": (lambda: hf.Follows("age", "income", rate="1"), TypeError, "rate is '1'"),
            "what anybody may change": (
                lambda: m().schema.relate(hf.Follows("age", "income", rate=1)), ValueError, "mutable=False",
            ),
        },
    )  # fmt: skip
    yield from calls(
        "Space",
        {
            "no rows": (lambda: hf.Space.free(m().x[:0]), ValueError, "row"),
            "free, an array": (lambda: hf.Space.free(m().x.numpy()), TypeError, "encoding.encode"),
            "free, a single row": (lambda: hf.Space.free(m().x[0]), ValueError, "rows (n, d)"),
            "free, whole numbers": (lambda: hf.Space.free(m().x.long()), TypeError, "floating"),
            "free, NaN": (lambda: hf.Space.free(m().x * math.nan), ValueError, "NaN"),
            "box, lists": (lambda: hf.Space.box([0.0, 0.0], [1.0, 1.0]), TypeError, "lower is a list"),
            "box, arrays": (lambda: hf.Space.box(torch.zeros(2), np.ones(2)), TypeError, "upper is a ndarray"),
            "box, other lengths": (lambda: hf.Space.box(torch.zeros(2), torch.ones(3)), ValueError, "(d,)"),
            "project, an array": (lambda: m().space.project(m().x.numpy(), m().x), TypeError, "x is a ndarray"),
            "project, other width": (lambda: m().space.project(m().x[:, :2], m().x), ValueError, "(n, 5)"),
            "snap, no origin": (lambda: m().space.snap(m().x, None), TypeError, "origin is a NoneType"),
            "snap, other width": (lambda: m().space.snap(m().x[:, :2], m().x[:, :2]), ValueError, "(n, 5)"),
            "violations, one row": (lambda: m().space.violations(m().x[0], m().x[0]), ValueError, "(n, 5)"),
            "bounds the wrong way": (lambda: hf.Space.box(torch.ones(2), torch.zeros(2)), ValueError, "lower"),
        },
    )
    yield from each(
        "Wish", "Wish", lambda **given: hf.Wish(**given), {"keep": ("age", 3, (3,)), "prefer": ("age", None)}
    )
    yield from each("Wish", "Wish", lambda **given: hf.Wish(**given), {"ranges": (3, (1, 2))})
    yield from calls(
        "Wish",
        {
            "one end": (lambda: hf.Wish(ranges={"age": (3,)}), TypeError, "two ends"),
            "a feature nobody knows": (lambda: m().encoding.space_for([hf.Wish(keep=("aeg",))]), ValueError, "'age'"),
            "no number of people": (lambda: m().encoding.space_for(hf.Wish()), ValueError, "rows=len(x)"),
            "a dictionary": (lambda: m().encoding.space_for({"keep": "age"}), TypeError, "expected a Wish"),
            "names for wishes": (lambda: m().encoding.space_for(["age"]), TypeError, "person 0"),
            "other people": (lambda: m().encoding.space_for([None], rows=2), ValueError, "1 wishes for 2 rows"),
        },
    )
    off = lambda: replace(hf.Space.box(torch.zeros(2), torch.zeros(2)), groups=(Group((0, 1)),))  # noqa: E731
    yield Misuse("Group", "columns that are always off", off, ValueError, "group")
    missing = lambda: hf.read_table(m().folder / "none.csv")  # noqa: E731
    yield Misuse("read_table", "no such file", missing, FileNotFoundError, "none.csv")
    yield Misuse("read_table", "None", lambda: hf.read_table(None), TypeError, "expected the name of")
    yield Misuse("save_family", "None", lambda: hf.save_family(None, m().folder), TypeError, "expected a Family")
    yield Misuse("save_family", "to None", lambda: hf.save_family(m().family, None), TypeError, "a folder")
    yield Misuse("load_family", "None", lambda: hf.load_family(None), TypeError, "a folder that save_family")
    yield Misuse("save_audit", "to None", lambda: hf.save_audit(m().audit, None), TypeError, "a folder")
    yield Misuse("load_audit", "None", lambda: hf.load_audit(None), TypeError, "a folder that save_audit")
    yield Misuse("seeds", "more than a million", lambda: hf.seeds(10**6 + 1), ValueError, "1000000 members at most")
    yield Misuse("load", "a dataset nobody knows", lambda: hf.load("germany"), (KeyError, ValueError), "germany")

    def tables(**other: Any) -> Any:
        right = {"data": m().table, "points": m().table, "encoding": m().encoding, "model": m().model}
        return from_tables(**{**right, **other})

    def paired(**other: Any) -> Any:
        return from_paired(**{"table": m().table, "encoding": m().encoding, "model": m().model, **other})

    yield from calls(
        "from_tables",
        {
            "no model": (lambda: tables(model=None), TypeError, "model"),
            "no encoding": (lambda: tables(encoding=None), TypeError, "Encoding"),
            "a space in words": (lambda: tables(space="free"), TypeError, "expected a Space"),
            "points in an array": (lambda: tables(points=m().x.numpy()), TypeError, "DataFrame"),
            "a class nobody knows": (lambda: tables(target="maybe"), ValueError, "maybe"),
            "points without columns": (lambda: tables(points=m().table[["age"]]), ValueError, "income"),
        },
    )
    yield from calls(
        "ImportedCounterfactuals",
        {
            "targets for other rows": (lambda: tables(target=m().target[:3]), ValueError, "target"),
        },
    )
    yield from calls(
        "from_paired",
        {
            "no table": (lambda: paired(table=None), TypeError, "DataFrame"),
            "columns of other names": (paired, ValueError, "income_before"),
            "no pattern": (lambda: paired(before="old"), ValueError, "before"),
            "a pattern of nothing": (lambda: paired(before=None), ValueError, "before"),
        },
    )

    def elsewhere(of: str, **other: Any) -> Any:
        given = {"data": m().table, "encoding": m().encoding, "model": m().model, **other}
        return getattr(part(f"external.{of.removeprefix('from_')}"), of)(**given)

    for of, name in {"from_alibi": "explanations", "from_dice": "result"}.items():
        theirs = functools.partial(elsewhere, of)
        yield from calls(
            of,
            {
                "no model": (functools.partial(theirs, **{name: "{}"}, model=None), TypeError, "model"),
                "no encoding": (functools.partial(theirs, **{name: "{}"}, encoding=None), TypeError, "Encoding"),
                "text that is no JSON": (functools.partial(theirs, **{name: "x"}), ValueError, SAID[of]),
            },
        )


SAID = {"from_alibi": "1 explanations for 24 rows", "from_dice": "not JSON"}


# ---- studies and reports ----

STUDY: dict[str, Values] = {
    "name": (3, ""),
    "datasets": ("german", (), ("nowhere",), ("german", "german")),
    "methods": ("pgd", (), ("pgd+nothing",), ("pgd", "pgd"), (3,), (("own", 3),)),
    "changes": ((), (("seeds", 0),), (("seeds", 1.5),), (("noise", 3),), ("seeds",)),
    "rows": NO_COUNT,
    "base_seeds": ((), (-1,), (1000,), (0.5,), 0),
    "space": ("box",),
    "scalings": (None, {"nowhere": "none"}, {"german": "log"}),
    "recipes": (None, {"german": 3}),
    "splits": (None, {"german": 3}, {"german": (0, 5)}, {"german": (1, "a")}),
    "settings": (3,),
    "device": ("gpu", 3),
}


def _studies() -> Iterator[Misuse]:
    def study(**other: Any) -> Any:
        return part("paper.study").Study(**{"name": "tiny", "datasets": ("german",), "methods": ("pgd",), **other})

    for field, values in STUDY.items():
        for value in values:
            says = "nowhere" if "nowhere" in str(value) else field.removesuffix("s")
            yield from each("paper.study", "Study", study, {field: (value,)}, says)

    def run(**other: Any) -> Any:
        return part("paper.runner").run(**{"study": study(), "file": made().folder / "rows.jsonl", **other})

    yield from each("paper.runner", "run", run, {"study": ("paper",)}, says="expected a Study")
    yield from each("paper.runner", "run", run, {"file": (3,), "only": (3,)})
    yield from each("paper.runner", "run", run, {"only": (("heloc",), "heloc")}, says="heloc")

    def odd_file() -> Path:
        file: Path = made().folder / "odd.jsonl"
        file.write_text("[1]\n")
        return file

    for name in ("read", "frame", "each"):
        read = lambda file, study=None, name=name: getattr(part("paper.results"), name)(file, study)  # noqa: E731
        yield from calls(
            "paper.results",
            {
                f"{name}, no such file": (
                    lambda read=read: read(made().folder / "none.jsonl"),
                    FileNotFoundError,
                    "none.jsonl",
                ),
                f"{name}, no file": (lambda read=read: read(None), TypeError, "file"),
                f"{name}, no study": (lambda read=read: read(odd_file(), 3), TypeError, "expected a Study"),
                f"{name}, another file": (lambda read=read: read(odd_file()), ValueError, "line 1"),
                f"{name}, a folder": (lambda read=read: read(made().folder), ValueError, "folder"),
            },
        )
    join = lambda parts: part("paper.results").join(parts, made().folder / "joined.jsonl")  # noqa: E731
    yield from each("paper.results", "join", join, {"parts": ("a.jsonl", 3)}, says="a list of files")
    yield Misuse("paper.results", "join, nothing", lambda: join([]), FileNotFoundError, "no files to join")
    trial = lambda: part("paper.trials").trial(None, "german")  # noqa: E731
    yield Misuse("paper.trials", "no study", trial, TypeError, "expected a Study")


def _reports() -> Iterator[Misuse]:
    def rows(**other: Any) -> pd.DataFrame:
        own = made().audit.rows(dataset="german", method="pgd", space="free", seconds=1.0)
        return pd.DataFrame(own).assign(**other)

    wrong: dict[str, tuple[Call, Any, str]] = {
        "None": (lambda: None, TypeError, "DataFrame"),
        "a list": (lambda: rows().to_dict("records"), TypeError, "DataFrame"),
        "no rows": (lambda: rows()[:0], ValueError, "no rows"),
        "a missing column": (lambda: rows().drop(columns=["rate"]), ValueError, "rate"),
        "another change": (lambda: rows(change="noise"), ValueError, "noise"),
    }
    for home, name in {"cost": "cost_against_invalidation", "sensitivity": "sensitivity"}.items():
        of = f"paper.figures.{home}"
        for what, (make, error, says) in wrong.items():
            drawn = lambda of=of, name=name, make=make: getattr(part(of), name)(make())  # noqa: E731
            yield Misuse(of, what, drawn, error, says)
    comparison = lambda rows: part("paper.comparison").beside(rows)  # noqa: E731
    yield from calls(
        "paper.comparison",
        {
            "None": (lambda: comparison(None), TypeError, "DataFrame"),
            "a list": (lambda: comparison([1]), TypeError, "DataFrame"),
            "other columns": (lambda: comparison(pd.DataFrame({"a": [1]})), ValueError, "columns"),
        },
    )


def _plots() -> Iterator[Misuse]:
    agreement_costs = lambda: AgreementCost((1.0,), (made().found,), torch.zeros(24, 1))  # noqa: E731
    yield from calls(
        "plot",
        {
            "None": (lambda: hf.plot(None), TypeError, "NoneType. It draws: Advice, made by explainer.explain"),
            "counterfactuals": (lambda: hf.plot(made().found), TypeError, "Audit, made by audit("),
            "a class": (lambda: hf.plot(hf.Audit), TypeError, "the class Audit"),
            "a figure for axes": (lambda: hf.plot(made().audit, ax="figure"), TypeError, "plt.subplots()"),
            "an option": (lambda: hf.plot(made().audit, colour="red"), TypeError, "no option 'colour'; it takes none"),
            "a near option": (lambda: hf.plot(agreement_costs(), rows=1), TypeError, "did you mean 'row'?"),
        },
    )
    yield from each("plot", "row", lambda row: hf.plot(agreement_costs(), row=row), {"row": ("a", 1.5, True)})
    yield Misuse("plot", "a row that is not there", lambda: hf.plot(agreement_costs(), row=24), IndexError, "0 to 23")


MISUSES: list[Misuse] = [
    *_methods(),
    *_stabilisers(),
    *_settings(),
    *_changes(),
    *_training(),
    *_adapted(),
    *_refits(),
    *_families(),
    *_answers(),
    *_counterfactuals(),
    *_audits(),
    *_promises(),
    *_explainers(),
    *_intervals(),
    *_predictors(),
    *_networks(),
    *_theory(),
    *_tables(),
    *_studies(),
    *_reports(),
    *_plots(),
]
