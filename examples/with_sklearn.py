"""A scikit-learn pipeline: what it refuses, what would change its mind, and what it says after retraining."""

from __future__ import annotations

from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:]

# The model as you have it: fitted on your table, in your units.
numbers = [feature.name for feature in schema.features if feature.is_numeric]
levels = [name for name in schema.names if name not in numbers]
columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), levels), (StandardScaler(), numbers))
pipeline = make_pipeline(columns, LogisticRegression(max_iter=1000))
pipeline.fit(known[list(schema.names)], known[schema.label])

# Ask it for counterfactuals. It decides what is found; how it is searched is its `about`.
encoding = hf.Encoding.fit(known, schema)
model = hf.as_model(pipeline, encoding)
print(model)
refused = asked[pipeline.predict(asked[list(schema.names)]) == "bad"]
found = hf.MinCost(norm=1)(model, encoding.encode(refused), encoding.target("good", len(refused)), encoding.space)
print(found)
print(found.to_frame(encoding, refused).head())

# Retrain it: on other samples of the same customers.
family = hf.refit(model, known, hf.changes.bootstrap(20))
print(hf.audit(found, family))
