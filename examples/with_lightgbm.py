"""LightGBM on a table with categories: searched inside its own trees, and several plans for each applicant."""

from __future__ import annotations

from lightgbm import LGBMClassifier

import holdfast as hf

table, schema = hf.load("german")
levels = {feature.name: "category" for feature in schema.features if not feature.is_numeric}
table = table.astype(levels)
known, asked = table[:800], table[800:820]

booster = LGBMClassifier(n_estimators=60, num_leaves=8, verbose=-1)
booster.fit(known[list(schema.names)], known[schema.label])

retrain = hf.changes.leave_out(24, share=0.1)  # each time without a tenth of the rows
explainer = hf.Explainer(booster, known, want="good", schema=schema, retrain=retrain)
print(explainer)
advice = explainer.explain(asked, hold=0.8, plans=2)
print(advice)
print(advice.table())
