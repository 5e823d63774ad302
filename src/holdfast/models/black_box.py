"""A function of the user's: a table to probabilities, logits or labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.deployed import LEAST_PROBABILITY, Deployed, How
from holdfast.tabular.encoding import Encoding


def knows(model: Any) -> bool:
    return callable(model)


def deployed(model: Any, encoding: Encoding, how: How) -> Deployed:
    def ask(table: pd.DataFrame) -> NDArray[np.float64]:
        logits: NDArray[np.float64] = np.log(np.clip(np.asarray(model(table)), LEAST_PROBABILITY, 1))
        return logits

    return Deployed(model, encoding, ask, f"{type(model).__name__}, asked for probabilities")
