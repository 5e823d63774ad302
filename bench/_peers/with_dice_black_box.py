"""DiCE's random and genetic searches on a model that only answers, and how many rows each of them asks it about.

The question is that of `with_dice_schema.py` without a network. The model runs in the process that asks: every table
goes there as one number per feature, and probabilities come back. An answer holds what that of `with_dice_schema.py`
does, and for each method `<method>_calls` (n,), the rows asked about for each person, and `<method>_before`, those that
were asked about before the first.
"""

from __future__ import annotations

import argparse
import random
import signal
import time
from multiprocessing.connection import Client, Connection
from pathlib import Path

import dice_ml
import numpy as np
import pandas as pd
from with_dice_schema import METHODS, Question, data, explain, raw, read


class Asked:
    """The model at the other end."""

    def __init__(self, question: Question, line: Connection) -> None:
        self.question, self.line, self.rows = question, line, 0

    def predict_proba(self, told: pd.DataFrame) -> np.ndarray:
        values = raw(self.question, told)
        self.rows += len(values)
        # The time limit of a row waits for the answer: the next question must not be told it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        try:
            self.line.send_bytes(values.tobytes())
            answer = self.line.recv_bytes()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        return np.frombuffer(answer).reshape(len(values), -1)

    def predict(self, told: pd.DataFrame) -> np.ndarray:
        return self.predict_proba(told).argmax(1)


def search(method: str, question: Question, line: Connection) -> dict[str, np.ndarray]:
    model = Asked(question, line)
    explainer = dice_ml.Dice(data(question), dice_ml.Model(model=model, backend="sklearn"), method=method)
    random.seed(0)
    np.random.seed(0)
    before, values, calls, late, failed = model.rows, [], [], 0, []
    start = time.perf_counter()
    for row in range(len(question.rows)):
        found, asked = question.rows[:0], model.rows
        try:
            found = explain(explainer, question, row)
        except TimeoutError:
            late += 1
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # its own, deep inside
            failed.append(f"row {row}: {error!r}")
        values.append(found)
        calls.append(model.rows - asked)
    seconds = time.perf_counter() - start
    told = {
        "values": np.concatenate(values),
        "row": np.repeat(np.arange(len(values)), [len(found) for found in values]),
        "seconds": seconds,
        "late": late,
        "failed": failed,
        "calls": calls,
        "before": before,
    }
    return {f"{method}_{part}": np.array(value) for part, value in told.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("question", "answer", "line"):
        parser.add_argument(name, type=Path)
    files = parser.parse_args()
    question = read(files.question)
    with Client(str(files.line), "AF_UNIX") as line:
        told = {part: value for method in METHODS for part, value in search(method, question, line).items()}
    np.savez(files.answer, **told)


if __name__ == "__main__":
    main()
