"""Anything that predicts: a function from a table to probabilities, here a scorecard over a random forest."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:]
numbers = [feature.name for feature in schema.features if feature.is_numeric]


def scorecard(rows: pd.DataFrame, seed: int):
    """A service of yours, say: what it does inside is nobody's business."""
    forest = RandomForestClassifier(200, min_samples_leaf=10, random_state=seed)
    forest.fit(rows[numbers], rows[schema.label] == "good")

    def probabilities(table: pd.DataFrame) -> np.ndarray:
        savings = table["savings"].ne("below 100 DM").to_numpy(dtype=float)
        return 0.8 * forest.predict_proba(table[numbers])[:, 1] + 0.2 * savings

    return probabilities


encoding = hf.Encoding.fit(known, schema)
deployed = scorecard(known, seed=0)
model = hf.as_model(deployed, encoding)  # one probability per row: that of the second class, "good"
print(model)
refused = asked[deployed(asked) < 0.5]
found = hf.MinCost(norm=1)(model, encoding.encode(refused), encoding.target("good", len(refused)), encoding.space)
print(found)

retrained = [hf.as_model(scorecard(known, seed), encoding) for seed in range(1, 6)]
print(hf.audit(found, hf.Family.from_models(retrained, kind="seeds")))
