"""DiCE's three methods, one counterfactual a row. It asks row by row and takes its time, so it is asked few rows.

DiCE reads the range of a column off its data: two more rows hold the bounds, so that its range is the space.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from functools import partial
from typing import Any

import dice_ml
import numpy as np
import pandas as pd
import torch
from _question import Points, Question, answer, module
from raiutils.exceptions import UserConfigValidationException

warnings.simplefilter("ignore")
logging.disable(logging.WARNING)


class Sure(torch.nn.Module):
    """The probability of class 1, of rows that DiCE has scaled to [0, 1]."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.network, self.lower, self.upper = module(question), question.lower, question.upper

    def forward(self, scaled: torch.Tensor) -> torch.Tensor:
        x = self.lower + (self.upper - self.lower) * scaled
        return self.network(x).softmax(-1)[..., 1:]


class Classifier:
    """What DiCE's methods without gradients ask for."""

    def __init__(self, question: Question) -> None:
        self.network = module(question)

    def predict_proba(self, table: pd.DataFrame) -> np.ndarray:
        return self.network(torch.tensor(table.to_numpy(np.float32))).softmax(1).numpy()

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        return self.predict_proba(table).argmax(1)


def data(question: Question, names: list[str]) -> Any:
    bounds = np.stack([np.full(len(names), bound) for bound in (question.lower, question.upper)])
    table = pd.DataFrame(np.concatenate([question.known, bounds]), columns=names, dtype=float)
    table["outcome"] = [*question.classes, 0, 1]
    return dice_ml.Data(dataframe=table, continuous_features=names, outcome_name="outcome")


def search(method: str, question: Question) -> Points:
    names = [f"c{place}" for place in range(question.rows.shape[1])]
    if method == "gradient":
        model = dice_ml.Model(model=Sure(question), backend="PYT", func="ohe-min-max")
    else:
        model = dice_ml.Model(model=Classifier(question), backend="sklearn")
    explainer = dice_ml.Dice(data(question, names), model, method=method)
    np.random.seed(0)
    torch.manual_seed(0)
    point = question.rows.copy()
    for place, target in enumerate(question.target):
        row = pd.DataFrame(question.rows[place : place + 1], columns=names, dtype=float)
        with (
            contextlib.suppress(UserConfigValidationException),  # how it says that it found nothing
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            told = explainer.generate_counterfactuals(
                row,
                total_CFs=1,
                desired_class=int(target),
                posthoc_sparsity_algorithm="binary",  # its own "linear" takes minutes a row after the gradient method
            )
            table = told.cf_examples_list[0].final_cfs_df
            if table is not None and len(table):
                point[place] = table[names].to_numpy(np.float32)[0]
    return point


if __name__ == "__main__":
    rows = {"random": 20, "genetic": 20, "gradient": 2}
    answer({method: (partial(search, method), count) for method, count in rows.items()})
