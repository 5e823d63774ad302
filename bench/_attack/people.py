"""Attacks on what people get: letters of people with odd names, explainers of exchanged parts, forked processes."""

from __future__ import annotations

import random
import shutil
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression

import holdfast as hf
from _attack.processes import FORK
from _attack.trying import Try, is_sentence, judged, outcome, short
from holdfast.cli.letter import _written
from holdfast.utils.files import write_text

LETTERS = 40  # in a folder
FORKED = 60  # seconds that a forked process may take for what takes two
ODD = "xX _-.23/\\:?*\x00\n\u00e9e\u0301\u9280\u0130i\u0131\u00df\u1e9e\u212a\u200b"


# ---- letters ----


@dataclass(frozen=True)
class Letter:
    """Whose it is, and nothing else."""

    person: str

    def save(self, path: Path) -> Path:
        return write_text(path, repr(self.person))  # as a real letter does


def letters(folder: Path, draw: random.Random) -> Iterator[Try]:
    """Each person's letter is in a file of its own, also on disks where upper and lower case are one."""
    people = {
        "a number that another has": ["x_y-3", "x y", "x_y"],
        "upper and lower case": ["Anna", "ANNA", "anna-2", "anna"],
        "one character in two ways": ["\u00e9", "e\u0301"],
        "80 Chinese characters": ["\u9280" * 80 + "a", "\u9280" * 80 + "b"],
        "300 characters": ["x" * 300, "x" * 299],
        "folders": ["../a", "/a", "..", ".", "a/b"],
    }
    for _ in range(12):
        drawn = ("".join(draw.choices(ODD, k=draw.choice([1, 2, 3, 90]))) for _ in range(LETTERS))
        people[f"random characters {len(people)}"] = list(dict.fromkeys(drawn))
    for number, (what, names) in enumerate(people.items()):
        what = "random characters" if what.startswith("random") else what
        yield _letters_of(f"letters to people whose names have {what}", names, folder / str(number))


def _letters_of(what: str, names: list[str], out: Path) -> Try:
    got = outcome(lambda: _written({name: Letter(name) for name in names}, out))
    expected = "a file for each person"
    if isinstance(got, Exception):
        return judged(what, False, expected, got, short(names))
    held = [path.read_text() for path in out.iterdir()]
    if sorted(held) != sorted(map(repr, names)):
        return judged(what, False, expected, f"{len(set(held))} letters in files for {len(names)} people", short(names))
    as_one = {unicodedata.normalize("NFC", path.name.casefold()) for path in got}
    told = [path.read_text() for path in got] == [repr(name) for name in names]
    happened = "names that are one on some disks" if len(as_one) < len(names) else "the files of others"
    return judged(what, len(as_one) == len(names) and told, expected, happened, short(names))


# ---- explainers ----


def _table(draw: random.Random) -> pd.DataFrame:
    numbers = np.random.default_rng(draw.randrange(1000))
    table = pd.DataFrame({name: numbers.integers(0, 50, 120) for name in ("income", "savings", "age")})
    return table.assign(approved=np.where(table.sum(axis=1) > 75, "yes", "no"))


def _schema() -> hf.Schema:
    columns = [hf.Feature("income", "integer"), hf.Feature("savings", "integer")]
    return hf.Schema((*columns, hf.Feature("age", "integer", mutable=False)), "approved", ("no", "yes"))


def _explainer(table: pd.DataFrame, members: int = 4, workers: int = 1) -> hf.Explainer:
    model = LogisticRegression().fit(table[["income", "savings", "age"]], table["approved"])
    retrain = hf.changes.bootstrap(members)
    return hf.Explainer(model, table, want="yes", schema=_schema(), retrain=retrain, workers=workers)


def folders(folder: Path, draw: random.Random) -> Iterator[Try]:
    """A saved explainer with a part of another one is refused; whole, it is loaded."""
    table = _table(draw)
    own = _explainer(table)
    own.save(folder / "own")
    replace(own, schema=_schema().revise("age", mutable=True)).save(folder / "schema")
    _explainer(table, members=5).save(folder / "members")
    loaded = outcome(lambda: hf.Explainer.load(folder / "own", model=own.model, table=table, workers=1))
    yield judged("a saved explainer", isinstance(loaded, hf.Explainer), "an explainer", loaded)
    exchanges: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
        "another's schema": ("schema", lambda to, other: shutil.copy(other / "schema.toml", to)),
        "another's models": ("members", _other_models),
        "another's models and description": (
            "members", lambda to, other: (_other_models(to, other), shutil.copy(other / "explainer.json", to))
            and shutil.copy(folder / "schema" / "schema.toml", to)),
        "another's description": ("members", lambda to, other: shutil.copy(other / "explainer.json", to)),
        "a model more": ("members", lambda to, _: (to / "models" / "more.safetensors").write_bytes(b"0")),
        "no schema": ("members", lambda to, _: (to / "schema.toml").unlink()),
    }  # fmt: skip
    for what, (other, exchange) in exchanges.items():
        copy = shutil.copytree(folder / "own", folder / what)
        exchange(copy, folder / other)
        got = outcome(lambda copy=copy: hf.Explainer.load(copy, model=own.model, table=table, workers=1))
        fine = isinstance(got, (ValueError, FileNotFoundError)) and is_sentence(got, copy)
        happened = got if isinstance(got, Exception) else "an explainer"
        yield judged(f"a saved explainer with {what}", fine, "an error that names the folder", happened)


def _other_models(to: Path, other: Path) -> None:
    shutil.rmtree(to / "models")
    shutil.copytree(other / "models", to / "models")


# ---- forked processes ----


def forks(folder: Path, draw: random.Random) -> Iterator[Try]:
    """A process that was forked after its parent has explained can explain, too, and says the same."""
    table = _table(draw)
    people = table.drop(columns="approved").iloc[:8]
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        for workers in (1, 2):
            explainer = _explainer(table, workers=workers)
            said = explainer.explain(people, hold=0.5).wide()
            torch.sin(torch.zeros(20_000, 60))  # all threads of this process have worked; a forked one has none of them
            yield _forked(f"explain in a forked process, {workers} workers", explainer, people, said)
    finally:
        torch.set_num_threads(before)


def _forked(what: str, explainer: hf.Explainer, people: pd.DataFrame, said: pd.DataFrame) -> Try:
    def work() -> None:
        torch.sin(torch.zeros(20_000, 60))
        if not explainer.explain(people, hold=0.5).wide().equals(said):
            raise SystemExit(3)

    child = FORK.Process(target=work)
    child.start()
    until = time.monotonic() + FORKED
    while child.exitcode is None and time.monotonic() < until:
        child.join(0.2)
    code = child.exitcode
    with suppress(ProcessLookupError):
        child.kill()
    child.join()
    happened = {None: f"no end in {FORKED} s", 3: "other advice"}.get(code, f"exit code {code}")
    return judged(what, code == 0, "the same advice", happened)
