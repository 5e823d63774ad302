"""XGBoost on a table with categories: searched inside its own trees."""

from __future__ import annotations

from xgboost import XGBClassifier

import holdfast as hf

table, schema = hf.load("german")
levels = {feature.name: "category" for feature in schema.features if not feature.is_numeric}
table = table.astype(levels)
known, asked = table[:800], table[800:]

# XGBoost wants classes as numbers: 0 and 1 are taken in the order of schema.classes.
label = known[schema.label].map({name: place for place, name in enumerate(schema.classes)}).astype(int)
booster = XGBClassifier(n_estimators=100, max_depth=3, learning_rate=0.1, enable_categorical=True)
booster.fit(known[list(schema.names)], label)

encoding = hf.Encoding.fit(known, schema)
model = hf.as_model(booster, encoding)
print(model)
refused = asked[booster.predict(asked[list(schema.names)]) == schema.classes.index("bad")]
x, wanted = encoding.encode(refused), encoding.target("good", len(refused))
cheapest = hf.MinCost(norm=1)(model, x, wanted, encoding.space)
sure = hf.Margin(level=0.8, search=hf.MinCost(norm=1))(model, x, wanted, encoding.space)

family = hf.refit(model, known, hf.changes.bootstrap(20))
print(hf.audit(cheapest, family))
print(hf.audit(sure, family))  # the model is asked to be surer: dearer, and less often invalidated
