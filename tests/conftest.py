"""Small real things that many tests use: a table with every kind of feature, linear models, a trained family.

The six datasets too: a test is skipped where a file is missing, unless HOLDFAST_REQUIRE_DATA=1 makes that a failure.
"""

from __future__ import annotations

import functools
import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: tests are small, and the machine may be busy
# One core, so that nothing starts worker processes but what asks for them by number: each call pays seconds for them.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from holdfast import (
    PGD,
    Counterfactuals,
    Encoding,
    Family,
    Feature,
    Recipe,
    Retraining,
    Schema,
    Space,
    datasets,
    other_class,
    seeds,
    train,
)
from holdfast.datasets.cards import data_folder
from holdfast.families.changes import leave_one_out
from holdfast.models.model import Model

pytest_plugins = ["browsing"]  # not a second conftest.py: tests import names from this one
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs, and theirs, deaf to it


@pytest.fixture(scope="session", autouse=True)
def _store_of_our_own(tmp_path_factory):
    """No test puts families into the user's folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_FAMILIES", str(tmp_path_factory.mktemp("user") / "families"))
        yield


def few_or_many(name: str, few: object, many: object) -> pytest.MarkDecorator:
    """One test with few of something, and with many in the slow run."""
    return pytest.mark.parametrize(name, [few, pytest.param(many, marks=pytest.mark.slow)])


def linear(weight: Tensor, bias: float) -> Model:
    """Class 1 where x·w + b > 0, as two logits."""
    return lambda x: torch.stack([-(x @ weight + bias), x @ weight + bias], -1) / 2


def everything(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    """A table with every kind of feature; the label depends on all of them."""
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": draw.normal(50, 12, rows).round(2),
            "age": draw.integers(18, 80, rows),
            "debt": draw.integers(0, 40, rows) * 100,
            "owner": draw.choice([False, True], rows),
            "grade": draw.choice(["low", "middle", "high"], rows),
            "job": draw.choice(["clerk", "nurse", "baker", "none"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "delay": draw.choice([0, 1, 2, -9], rows),
        }
    )
    score = (table["income"] - 50) / 12 - (table["debt"] - 2000) / 1200 + table["owner"] + (table["job"] == "baker")
    return table.assign(outcome=np.where(score > 0.5, "yes", "no"))


EVERYTHING = Schema(
    (
        Feature("income", "real", lower=0, upper=200, direction="rise"),
        Feature("age", "integer", mutable=False),
        Feature("debt", "integer", lower=0, upper=4000, step=100),
        Feature("owner", "binary", levels=(False, True)),
        Feature("grade", "ordinal", levels=("low", "middle", "high"), direction="rise"),
        Feature("job", "categorical", levels=("clerk", "nurse", "baker", "none"), avoid=("none",)),
        Feature("delay", "categorical", levels=(0, 1, 2), zero_level=-9, avoid=(-9,)),
    ),
    label="outcome",
    classes=("no", "yes"),
)


@pytest.fixture(scope="session")
def encoding() -> Encoding:
    return Encoding.fit(everything(), EVERYTHING)


@pytest.fixture(scope="session")
def rows(encoding: Encoding) -> tuple[Tensor, Tensor]:
    table = everything()
    return encoding.encode(table), encoding.labels(table)


@pytest.fixture(scope="session")
def family(rows: tuple[Tensor, Tensor]) -> Family:
    """One deployed network (member 0), then six seeds and four with a row left out."""
    x, y = rows
    changes = [Retraining(), *seeds(6), *leave_one_out(4, len(x))]
    return train(x, y, Recipe((16, 8), epochs=30, batch=16), changes)


@pytest.fixture(scope="session")
def trained_census() -> tuple[pd.DataFrame, Encoding, Family, Tensor]:
    """A census with every kind of relation, and small networks: the deployed one, then four seeds."""
    from census import CENSUS, census

    table = census(400, seed=1)
    encoding = Encoding.fit(table, CENSUS)
    x, y = encoding.encode(table), encoding.labels(table)
    return table, encoding, train(x, y, Recipe((12,), epochs=12), [Retraining(), *seeds(4, start=10)]), x


def missing(what: str) -> None:
    reason = f"{what} is not below {data_folder()}; point HOLDFAST_DATA at a folder that has it"
    if os.environ.get("HOLDFAST_REQUIRE_DATA") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@functools.cache
def load_once(name: str) -> tuple[pd.DataFrame, Schema]:
    card = datasets.card(name)
    if card.state() == "missing":
        missing(card.file)
    return card.load()


@pytest.fixture(scope="session")
def loaded() -> Callable[[str], tuple[pd.DataFrame, Schema]]:
    """``loaded(name)`` is ``datasets.load(name)``, read once a session. Do not change the table."""
    return load_once


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """``data_file("ctg/ctg_data.csv")`` is a file of the data folder that no dataset's card describes."""

    def find(file: str) -> Path:
        path = data_folder() / file
        if not path.is_file():
            missing(file)
        return path

    return find


@pytest.fixture(scope="module")
def start(family: Family, rows: tuple[Tensor, Tensor], encoding: Encoding) -> dict[str, Counterfactuals]:
    """What a stabiliser starts from, in both spaces. Every tenth row counts as not found."""
    x, _ = rows
    found = {
        name: PGD(radius=6.0)(family[0], x, other_class(family[0], x), space)
        for name, space in {"schema": encoding.space, "free": Space.free(x)}.items()
    }
    others = torch.arange(len(x)) % 10 > 0
    return {name: replace(answer, found=answer.found & others) for name, answer in found.items()}
