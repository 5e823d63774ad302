"""Attacks with model files: a corpus of hostile ones, and honest ones that were changed at random."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import skops.io
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from _attack.mutations import mutated
from _attack.trying import Try, judged

TESTS = Path(__file__).parents[2] / "tests"
CORPUS = TESTS / "fixtures" / "hostile"
MUTANTS = 24  # of each honest file in a round


def hostile(folder: Path, draw: random.Random) -> Iterator[Try]:
    """Every file of the corpus is refused in a sentence that names it, in little time and memory, and does nothing."""
    if not CORPUS.exists():
        yield judged("the hostile files", False, "a folder tests/fixtures/hostile", "no folder")
        return
    entries = json.loads((CORPUS / "manifest.json").read_text(encoding="utf-8"))["hostile"]
    by_format = sorted(entries, key=lambda name: (entries[name]["honest"], name))
    files = [(CORPUS / name, CORPUS / entries[name]["honest"]) for name in by_format]
    (folder / "work").mkdir()
    for reading in _measuring().readings(files, folder / "work"):
        what = f"{reading.file}: {entries[reading.file]['tries'].rstrip('.')}"
        happened = reading.surprise() or ("" if reading.error else f"no error: {reading.answer}")
        yield judged(what, not happened, "an error that names the file", happened)


def mutants(folder: Path, draw: random.Random) -> Iterator[Try]:
    """An honest file whose parts were changed is refused in a sentence, or read; then it may be asked."""
    if not CORPUS.exists():
        yield judged("the honest files", False, "a folder tests/fixtures/hostile", "no folder")
        return
    (folder / "work").mkdir()
    changes: list[tuple[str, str, int]] = []
    same = [(path, path) for path in sorted(CORPUS.glob("honest.*"))]

    def files() -> Iterator[tuple[Path, Path]]:
        for honest, compared in [*same, *((path, CORPUS / "honest.skops") for path in _estimators(folder))]:
            for number in range(MUTANTS):
                seed = draw.randrange(1 << 32)
                contents, what = mutated(honest.suffix, honest.read_bytes(), random.Random(seed))
                path = folder / f"{number}{honest.suffix}"
                path.write_bytes(contents)
                changes.append((honest.name.replace("honest", "model"), what, seed))
                yield path, compared

    for number, reading in enumerate(_measuring().readings(files(), folder / "work")):
        name, what, seed = changes[number]
        surprise = reading.surprise()
        yield judged(f"{name} {what}", not surprise, "a sentence or a model", surprise, f"seed {seed}")


def _estimators(folder: Path) -> Iterator[Path]:
    """Files of estimators whose arrays compiled code trusts."""
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(60, 4)).round(1), draw.integers(0, 3, 60)
    for model in (
        DecisionTreeClassifier(max_depth=3), RandomForestClassifier(2, max_depth=3), SVC(), KNeighborsClassifier(),
        HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=5), OneHotEncoder(handle_unknown="ignore"),
        LGBMClassifier(n_estimators=1, min_child_samples=5, verbose=-1), XGBClassifier(n_estimators=1, max_depth=2),
    ):  # fmt: skip
        path = folder / f"{type(model).__name__}.skops"
        skops.io.dump(model.fit(x, y), path)
        yield path


def _measuring() -> ModuleType:
    """Of tests/measured_reading.py, which tests use too."""
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    import measured_reading

    return measured_reading
