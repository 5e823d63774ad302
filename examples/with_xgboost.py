"""XGBoost on a table with categories: searched inside its own trees, and promised."""

from __future__ import annotations

from xgboost import XGBClassifier

import holdfast as hf

table, schema = hf.load("german")
levels = {feature.name: "category" for feature in schema.features if not feature.is_numeric}
table = table.astype(levels)
known, asked = table[:800], table[800:820]

# XGBoost wants classes as numbers: 0 and 1 are taken in the order of schema.classes.
label = known[schema.label].map({name: place for place, name in enumerate(schema.classes)}).astype(int)
booster = XGBClassifier(n_estimators=60, max_depth=3, learning_rate=0.1, enable_categorical=True)
booster.fit(known[list(schema.names)], label)

explainer = hf.Explainer(booster, known, want="good", schema=schema, retrain=hf.changes.bootstrap(30))
print(explainer)
advice = explainer.explain(asked, promise=0.2)  # one more refit invalidates at most 20 % of it, on average
print(advice)
print(advice.promise.statement)
