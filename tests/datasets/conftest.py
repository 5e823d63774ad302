"""Real data for tests: skipped where a file is missing, unless HOLDFAST_REQUIRE_DATA=1 says that is a failure."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from holdfast import datasets
from holdfast.datasets.card import data_folder
from holdfast.schema import Schema


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
    """``data_file("ctg/ctg_data.csv")`` is a file of the data folder that no dataset's card speaks of."""

    def find(file: str) -> Path:
        path = data_folder() / file
        if not path.is_file():
            missing(file)
        return path

    return find
