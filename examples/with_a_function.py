"""Anything that predicts: a function from a table to probabilities, here a scorecard over a random forest."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:810]
numbers = [feature.name for feature in schema.features if feature.is_numeric]


def train(rows, seed: int):
    """A service of yours, say: what it does inside is nobody's business."""
    own = known.iloc[rows]
    forest = RandomForestClassifier(50, min_samples_leaf=10, random_state=seed)
    forest.fit(own[numbers], own[schema.label] == "good")

    def probabilities(table: pd.DataFrame) -> np.ndarray:
        savings = table["savings"].ne("below 100 DM").to_numpy(dtype=float)
        return 0.8 * forest.predict_proba(table[numbers])[:, 1] + 0.2 * savings

    return probabilities  # one probability per row: that of the second class, "good"


deployed = train(range(len(known)), seed=0)
explainer = hf.Explainer(deployed, known, want="good", schema=schema, retrain=(train, hf.seeds(9)))
print(explainer)
advice = explainer.explain(asked, hold=0.6)
print(advice)
print(advice.table())
