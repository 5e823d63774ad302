"""A scikit-learn pipeline: what it refuses, and advice that it still accepts after it is fitted again."""

from __future__ import annotations

from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:820]

# The model as you have it: fitted on your table, in your units.
numbers = [feature.name for feature in schema.features if feature.is_numeric]
levels = [name for name in schema.names if name not in numbers]
columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), levels), (StandardScaler(), numbers))
pipeline = make_pipeline(columns, LogisticRegression(max_iter=1000))
pipeline.fit(known[list(schema.names)], known[schema.label])

explainer = hf.Explainer(pipeline, known, want="good", schema=schema, retrain=hf.changes.bootstrap(24))
print(explainer)  # how the model is asked, and how it is searched
advice = explainer.explain(asked, hold=0.9)
print(advice)
print(advice.table())
