"""Models of scikit-learn and whatever follows its conventions: pipelines, XGBClassifier, LGBMClassifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.deployed import LEAST_PROBABILITY, Deployed, How
from holdfast.tabular.encoding import Encoding


def knows(model: Any) -> bool:
    return hasattr(model, "predict_proba")


def deployed(model: Any, encoding: Encoding, how: How) -> Deployed:
    places = [list(model.classes_).index(label) for label in encoding.schema.classes]

    def ask(table: pd.DataFrame) -> NDArray[np.float64]:
        logits: NDArray[np.float64] = np.log(np.clip(model.predict_proba(table)[:, places], LEAST_PROBABILITY, 1))
        return logits

    return Deployed(model, encoding, ask, f"{type(model).__name__}, asked for probabilities")
