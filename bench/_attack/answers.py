"""Attacks on answers: NaN, the same bits, nothing at all, and calls that make no sense."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import torch
from torch import Tensor

import holdfast as hf
from _attack import material
from _attack.trying import Try, answer_or_sentence, is_sentence, judged, outcome
from holdfast.auditing.predictors import diagnostics, predictors, what_predicts
from holdfast.models.model import Model
from holdfast.search.plausibility import neighbour_distance, outlier_factor

TABLE = Path(__file__).parents[2] / "tests" / "misuses.py"


# ---- models that answer NaN ----


def nan(folder: Path, draw: random.Random) -> Iterator[Try]:
    """No class at all is not the wanted class."""
    x, y = material.rows(draw.randrange(1000))
    deployed = hf.train(x, y, material.RECIPE, [hf.Retraining()])[0]
    for what, columns in {"every logit": [0, 1], "the first logit": [0], "the second logit": [1]}.items():
        broken = _answering_nan(deployed, columns)
        got = outcome(lambda broken=broken: hf.predict(broken, x))
        fine = isinstance(got, ValueError) and is_sentence(got)
        yield judged(f"predict of a model that answers NaN in {what}", fine, "a ValueError", got)
        for target in (0, 1):
            points = hf.Counterfactuals(x, x, torch.full((len(x),), target), torch.ones(len(x), dtype=torch.bool), 2)
            got = outcome(lambda broken=broken, points=points: hf.audit(points, hf.Family.from_models([broken])))
            fine = is_sentence(got) if isinstance(got, Exception) else got.rate == 1
            happened = got if isinstance(got, Exception) else f"{got.rate:.0%} invalidated"
            yield judged(f"an audit with NaN in {what}, target {target}", fine, "100 % invalidated", happened)


def _answering_nan(model: Model, columns: list[int]) -> Model:
    def broken(x: Tensor) -> Tensor:
        logits = model(x).clone()
        logits[:, columns] = torch.nan
        return logits

    return broken


# ---- the same bits ----


def bits(folder: Path, draw: random.Random) -> Iterator[Try]:
    """A network is the same alone, beside others, in any number of processes; a search on any number of threads."""
    x, y = material.rows(draw.randrange(1000), count=draw.randrange(30, 90), columns=draw.randrange(1, 12))
    drawn = tuple(draw.randrange(1, 40) for _ in range(draw.choice([1, 2])))
    recipes = [hf.Recipe(own, epochs=3, batch=draw.choice([8, 16, 32])) for own in ((10,), (5,), (7,), (33, 5), drawn)]
    many = [*hf.seeds(5), *hf.changes.leave_one_out(2, len(x))]
    single = [hf.train(x, y, recipe, many, workers=1) for recipe in recipes]
    for recipe in recipes:
        yield from _trained_in_company(x, y, recipe)
    for workers in (2, 3):
        for recipe, family in zip(recipes, single, strict=True):
            got = hf.train(x, y, recipe, many, workers=workers)
            yield _same_bits(f"networks trained by {workers} workers", family, got, str(recipe))
    for workers in (1, 3):
        with _default_double():
            got = hf.train(x, y, recipes[0], many, workers=workers)
        fine = got.fingerprints != single[0].fingerprints
        yield (
            Try("other fingerprints")
            if fine
            else _same_bits("networks trained when torch's default is float64", single[0], got, "")
        )
    yield from _searched_by_threads(draw.randrange(1000))


def _trained_in_company(x: Tensor, y: Tensor, recipe: hf.Recipe) -> Iterator[Try]:
    alone = hf.train(x, y, recipe, hf.seeds(1))
    company = {
        "beside one other": [*hf.seeds(1), *hf.seeds(1, start=50)],
        "beside many others": [*hf.seeds(1), *hf.seeds(12, start=50), *hf.changes.leave_one_out(6, len(x))],
        "after others": [*hf.seeds(4, start=50), *hf.seeds(1)],
    }
    for what, members in company.items():
        family = hf.train(x, y, recipe, members, workers=1)
        place = family.fingerprints.index(alone.fingerprints[0])
        yield _same_bits(f"a network trained {what}", alone, family[place : place + 1], str(recipe))


def _same_bits(what: str, one: hf.Family, other: hf.Family, detail: str) -> Try:
    names = ("weights", "fingerprints")
    parts = [{name: material.family_parts(family)[name] for name in names} for family in (one, other)]
    return judged(what, parts[0] == parts[1], "the same bits", f"other {material.difference(*parts)}", detail)


@contextmanager
def _default_double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def _searched_by_threads(seed: int) -> Iterator[Try]:
    """So many numbers that several threads would pay; most rows are where they want to be, which saves time."""
    x, y = material.rows(seed, count=20_000, columns=60)
    network = hf.train(x[:500], y[:500], hf.Recipe((16,), epochs=2), [hf.Retraining()])[0]
    target, space = hf.predict(network, x), hf.Space.free(x)
    target[::16] = hf.other_class(network, x)[::16]
    searches = {"min-l1": hf.MinCost(norm=1, steps=3, constants=1), "pgd": hf.PGD(radius=3.0, levels=1, steps=3)}
    for name, search in searches.items():
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(search(network, x, target, space))
        torch.set_num_threads(1)
        other = int((found[0].point != found[1].point).any(1).sum())
        happened = "some rows that differ" if other else ""
        yield judged(
            f"{name} on 20,000 rows with 1 and 2 threads", not other, "the same bits", happened, f"{other} rows"
        )


# ---- nothing at all ----


def empties(folder: Path, draw: random.Random) -> Iterator[Try]:
    """No rows, nothing found, no members: a sentence or an answer."""
    for what, call in _calls_on_nothing(folder, draw.randrange(1000)).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield answer_or_sentence(what, call)


def _calls_on_nothing(folder: Path, seed: int) -> dict[str, Callable[[], Any]]:
    x, y = material.rows(seed)
    network, family, space = (
        hf.train(x, y, material.RECIPE, [hf.Retraining()])[0],
        material.family(seed),
        hf.Space.free(x),
    )
    target, yes = hf.other_class(network, x), torch.ones(len(x), dtype=torch.bool)
    every = hf.Counterfactuals(x, x, target, yes, 2)
    answers = {"all rows found": every, "none found": hf.Counterfactuals(x, x, target, ~yes, 2), "no rows": every[:0]}
    table = pd.DataFrame({"a": [1.5, 2.5, 4.0], "b": ["x", "y", "z"], "y": ["no", "yes", "no"]})
    schema = hf.Schema.infer(table, "y")
    encoding = hf.Encoding.fit(table, schema)
    calls: dict[str, Callable[[], Any]] = {
        "audit, no members": lambda: hf.audit(every, family[:0]),
        "a family of no models": lambda: hf.Family.from_models([]),
        "logits of no rows": lambda: family.logits(x[:0]),
        "classes of no rows": lambda: family.predict(x[:0]),
        "predict of no rows": lambda: hf.predict(network, x[:0]),
        "save_family of no members": lambda: hf.load_family(hf.save_family(family[:0], folder / "none")),
        "train on no rows": lambda: hf.train(x[:0], y[:0], material.RECIPE, hf.seeds(1)),
        "train of nothing": lambda: hf.train(x, y, material.RECIPE, []),
        "the free space of no rows": lambda: hf.Space.free(x[:0]),
        "encode of no rows": lambda: encoding.encode(table[:0]),
        "labels of no rows": lambda: encoding.labels(table[:0]),
        "decode of no rows": lambda: encoding.decode(torch.zeros(0, encoding.width)),
        "a schema of no rows": lambda: hf.Schema.infer(table[:0], "y"),
        "a schema of no columns": lambda: hf.Schema.infer(table[["y"]], "y"),
        "compare of no audits": lambda: hf.compare({}),
        "what_predicts of no audits": lambda: what_predicts({}, {}),
        "seeds of none": lambda: hf.seeds(0),
        "leave_one_out of none": lambda: hf.changes.leave_one_out(0, 0),
    }
    for name in [*hf.METHODS, *(f"pgd+{stabiliser}" for stabiliser in hf.STABILISERS)]:
        calls[f"{name}, no rows"] = lambda name=name: hf.make_method(name).fit(x, y, space)(
            network, x[:0], target[:0], space
        )
    for what, answer in answers.items():
        for name, call in _uses(network, family, space, x, y, folder).items():
            calls[f"{name}, {what}"] = lambda call=call, answer=answer: call(answer)
        for name, stabiliser in hf.STABILISERS.items():
            calls[f"{name}, {what}"] = lambda one=stabiliser, answer=answer: one()(network, answer, space)
    return calls


def _uses(
    network: Any, family: hf.Family, space: hf.Space, x: Tensor, y: Tensor, folder: Path
) -> dict[str, Callable[[hf.Counterfactuals], Any]]:
    """What can be done with an answer."""

    def asked_everything(answer: hf.Counterfactuals) -> None:
        result = hf.audit(answer, family)
        _ = (result.rate, result.interval(), result.per_row, result.per_member, result.summary(), repr(result))
        _ = (result.table(), result.by_kind, result.by_class, result.baseline_flips, result.found_and_held)
        _ = (result.interval_of_new_rows(), result.per_row_interval(), result._repr_html_(), result.spread)
        result.rows(dataset="d", method="m", space="free", seconds=0.0)

    def compared(answer: hf.Counterfactuals) -> None:
        both = hf.compare({"one": hf.audit(answer, family), "two": hf.audit(answer, family)})
        _ = (both.table(), both.differences(), both.front, both.r_squared, repr(both))

    def predicted(answer: hf.Counterfactuals) -> None:
        known = predictors(network, answer, x, y)
        what_predicts({"one": hf.audit(answer, family)}, {"one": known})

    return {
        "why_not": lambda answer: hf.why_not(network, answer, space, tries=20),
        "audit": asked_everything,
        "compare": compared,
        "predictors": predicted,
        "predictors with no rows to compare": lambda answer: predictors(network, answer, x[:0], y[:0]),
        "diagnostics": lambda answer: diagnostics(network, answer),
        "neighbour_distance": lambda answer: neighbour_distance(answer, x, y),
        "outlier_factor": lambda answer: outlier_factor(answer, x, y),
        "neighbour_distance to no rows": lambda answer: neighbour_distance(answer, x[:0], y[:0]),
        "save_audit": lambda answer: hf.load_audit(hf.save_audit(hf.audit(answer, family), folder / "audit")),
        "cost": lambda answer: (answer.cost(1), answer.sparsity, answer.success, repr(answer)),
    }


# ---- calls that make no sense ----


def misuses(folder: Path, draw: random.Random) -> Iterator[Try]:
    """Every call of `tests/misuses.py` raises the error that the table says, in the words that it says."""
    if not TABLE.exists():
        yield judged("the table of misuses", False, f"a file tests/{TABLE.name}", "no file")
        return
    for misuse in _module(TABLE).MISUSES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got = outcome(misuse.call)
        fine = isinstance(got, misuse.error) and misuse.says in str(got)
        errors = misuse.error if isinstance(misuse.error, tuple) else (misuse.error,)
        expected = f"a {' or '.join(error.__name__ for error in errors)} that says {misuse.says!r}"
        yield judged(misuse.name, fine, expected, got if isinstance(got, Exception) else f"a {type(got).__name__}")


def _module(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
