"""DiCE's random and genetic searches on a raw table, under the rules it can express: what may vary, and how far.

A question holds a network's layers, how a raw row is encoded for it, raw training rows, raw rows to explain with their
targets, and for every row the range of each number and the levels it may take. A raw row is one number a feature: a
number is itself, a level its place among the feature's levels, which DiCE gets as a category. An answer holds for each
method `<method>_values` (k, f), the points it found, `<method>_row` (k,), whose they are, `<method>_seconds`, how
many rows took too long (`_late`) or made it fail (`_failed`, what it said).

Its points before and after it makes them sparser both count. Numbers come before categories in its table, since it
looks up the precision of a number by its place among the numbers. It is told the decimals of the training rows, since
it would read them off the commonest value, which is 0.0 for many a rate below 0.1. Rows are added that hold the levels
which no training row has: it refuses a category that it has not seen.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import random
import signal
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
import torch
from _question import module
from raiutils.exceptions import UserConfigValidationException

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)

METHODS = ("random", "genetic")
COUNTERFACTUALS = 4  # a row
SECONDS = 20.0  # a row and method


@dataclass(frozen=True)
class Question:
    weights: tuple[np.ndarray, ...]  # (in, out) each
    biases: tuple[np.ndarray, ...]
    groups: np.ndarray  # (c,) the class that each of the network's outputs stands for
    owner: np.ndarray  # (d,) the feature of an encoded column
    level: np.ndarray  # (d,) the level that it marks, -1 where it holds a number
    shift: np.ndarray  # (d,)
    scale: np.ndarray  # (d,)
    names: np.ndarray  # (f,)
    levels: np.ndarray  # (f,) how many a feature has, 0 for a number
    whole: np.ndarray  # (f,) bool
    vary: np.ndarray  # (f,) bool
    known: np.ndarray  # (r, f) training rows
    classes: np.ndarray  # (r,) that the model gives them
    rows: np.ndarray  # (n, f)
    target: np.ndarray  # (n,)
    low: np.ndarray  # (n, f)
    high: np.ndarray  # (n, f)
    allowed: np.ndarray  # (n, f, levels) bool


def read(file: Path) -> Question:
    with np.load(file) as held:
        layers = range(sum(name.startswith("weight_") for name in held))
        weights, biases = (tuple(held[f"{part}_{layer}"] for layer in layers) for part in ("weight", "bias"))
        others = {name: held[name] for name in held if not name.startswith(("weight_", "bias_"))}
    return Question(weights, biases, **others)


# ---- raw tables ----


def order(question: Question) -> list[int]:
    """The features as DiCE gets them: numbers first."""
    return [*np.flatnonzero(question.levels == 0), *np.flatnonzero(question.levels)]


def table(question: Question, values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({question.names[place]: column(question, place, values[:, place]) for place in order(question)})


def column(question: Question, place: int, values: np.ndarray) -> Any:
    if question.levels[place]:
        return [str(int(value)) for value in values]
    return values.astype(np.int64) if question.whole[place] else values


def raw(question: Question, told: pd.DataFrame) -> np.ndarray:
    """A table as DiCE has it, whatever types it made of the columns: (n, f)."""
    return told[list(question.names)].to_numpy(dtype=object).astype(np.float64)


class Classifier:
    """Our model on raw tables."""

    def __init__(self, question: Question) -> None:
        self.question, self.network = question, module(question)
        if (self.predict(table(question, question.known)) != question.classes).any():
            raise ValueError("the classifier for DiCE does not answer as the model does on the training rows")

    def predict_proba(self, told: pd.DataFrame) -> np.ndarray:
        question = self.question
        values = raw(question, told)[:, question.owner]
        numbers = np.where(question.level < 0, values, values == question.level)
        logits = self.network(torch.tensor(((numbers - question.shift) / question.scale).astype(np.float32)))
        merged = [logits[:, question.groups == group].amax(1) for group in range(question.groups.max() + 1)]
        return torch.stack(merged, 1).softmax(1).numpy()

    def predict(self, told: pd.DataFrame) -> np.ndarray:
        return self.predict_proba(told).argmax(1)


# ---- its searches ----


def data(question: Question) -> Any:
    unseen = np.repeat(question.known[:1], question.levels.max(), axis=0)
    for place in np.flatnonzero(question.levels):
        missing = sorted(set(range(question.levels[place])) - set(question.known[:, place]))
        unseen[: len(missing), place] = missing
    held = table(question, np.concatenate([question.known, unseen[(unseen != question.known[0]).any(1)]]))
    held["outcome"] = [*question.classes, *np.repeat(question.classes[:1], len(held) - len(question.known))]
    return dice_ml.Data(
        dataframe=held,
        continuous_features=[str(name) for name in question.names[question.levels == 0]],
        continuous_features_precision={
            str(question.names[place]): decimals(question.known[:, place]) for place in np.flatnonzero(~question.whole)
        },
        outcome_name="outcome",
    )


def decimals(values: np.ndarray) -> int:
    """How many the values have, up to six."""
    return next((places for places in range(6) if np.allclose(values, values.round(places), rtol=0, atol=1e-9)), 6)


def permitted(question: Question, row: int) -> dict[str, list[Any]]:
    ranges = {}
    for place in np.flatnonzero(question.vary):
        kind = int if question.whole[place] else float
        ends = [kind(question.low[row, place]), kind(question.high[row, place])]
        levels = [str(level) for level in np.flatnonzero(question.allowed[row, place])]
        ranges[str(question.names[place])] = levels if question.levels[place] else ends
    return ranges


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again each second: a library may swallow the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def explain(explainer: Any, question: Question, row: int) -> np.ndarray:
    """The counterfactuals of one row, none where DiCE says that there are none: (k, f)."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), limited(SECONDS):
            told = explainer.generate_counterfactuals(
                table(question, question.rows[row : row + 1]),
                total_CFs=COUNTERFACTUALS,
                desired_class=int(question.target[row]),
                features_to_vary=[str(name) for name in question.names[question.vary]],
                permitted_range=permitted(question, row),
                posthoc_sparsity_algorithm="binary",
            ).cf_examples_list[0]
    except UserConfigValidationException as error:
        if "No counterfactuals found" not in str(error):
            raise
        return question.rows[:0]
    found = [held for held in (told.final_cfs_df, told.final_cfs_df_sparse) if held is not None and len(held)]
    return np.concatenate([question.rows[:0], *(raw(question, held) for held in found)])


def search(method: str, question: Question) -> dict[str, np.ndarray]:
    model = dice_ml.Model(model=Classifier(question), backend="sklearn")
    explainer = dice_ml.Dice(data(question), model, method=method)
    random.seed(0)
    np.random.seed(0)
    values, late, failed = [], 0, []
    start = time.perf_counter()
    for row in range(len(question.rows)):
        found = question.rows[:0]
        try:
            found = explain(explainer, question, row)
        except TimeoutError:
            late += 1
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # its own, deep inside
            failed.append(f"row {row}: {error!r}")
        values.append(found)
    seconds = time.perf_counter() - start
    whose = np.repeat(np.arange(len(values)), [len(found) for found in values])
    told = {"values": np.concatenate(values), "row": whose, "seconds": seconds, "late": late, "failed": failed}
    return {f"{method}_{part}": np.array(value) for part, value in told.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("question", type=Path)
    parser.add_argument("answer", type=Path)
    files = parser.parse_args()
    question = read(files.question)
    np.savez(files.answer, **{part: told for method in METHODS for part, told in search(method, question).items()})


if __name__ == "__main__":
    main()
