"""A Keras model with a softmax, and a function that trains it again."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:820]
encoding = hf.Encoding.fit(known, schema)
x, y = encoding.encode(known).numpy(), encoding.labels(known).numpy()


def train(rows, seed: int) -> keras.Model:
    """A network of these rows of the table, by number."""
    keras.utils.set_random_seed(seed)
    layers = [keras.Input((encoding.width,)), keras.layers.Dense(32, activation="relu")]
    network = keras.Sequential([*layers, keras.layers.Dense(len(schema.classes), activation="softmax")])
    network.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy")
    network.fit(x[rows], y[rows], epochs=10, batch_size=128, verbose=0)
    return network


deployed = train(range(len(known)), seed=0)
explainer = hf.Explainer(deployed, known, want="good", schema=schema, retrain=(train, hf.seeds(12)))
print(explainer)
advice = explainer.explain(asked, hold=0.75)
print(advice)
print(advice.table())
