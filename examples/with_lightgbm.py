"""LightGBM on a table with categories: searched inside its own trees, and several plans for each applicant."""

from __future__ import annotations

from lightgbm import LGBMClassifier

import holdfast as hf

table, schema = hf.load("german")
levels = {feature.name: "category" for feature in schema.features if not feature.is_numeric}
table = table.astype(levels)
known, asked = table[:800], table[800:]

booster = LGBMClassifier(n_estimators=100, num_leaves=8, verbose=-1)
booster.fit(known[list(schema.names)], known[schema.label])

encoding = hf.Encoding.fit(known, schema)
model = hf.as_model(booster, encoding)
print(model)
refused = asked[booster.predict(asked[list(schema.names)]) == "bad"]
x, wanted = encoding.encode(refused), encoding.target("good", len(refused))
choices = hf.plans(hf.MinCost(norm=1), model, x, wanted, encoding.space, count=2)
print(choices)
print(choices.changes(encoding).head(8))

family = hf.refit(model, known, hf.changes.leave_out(20, share=0.1))
print(hf.audit(choices.answers[0], family))
