"""A Keras model with a softmax, and retrained ones that you have."""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras

import holdfast as hf

table, schema = hf.load("german")
known, asked = table[:800], table[800:]
encoding = hf.Encoding.fit(known, schema)
x, y = encoding.encode(known).numpy(), encoding.labels(known).numpy()


def trained(seed: int) -> keras.Model:
    keras.utils.set_random_seed(seed)
    network = keras.Sequential(
        [
            keras.Input((encoding.width,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(len(schema.classes), activation="softmax"),
        ]
    )
    network.compile(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy")
    network.fit(x, y, epochs=10, batch_size=128, verbose=0)
    return network


model = hf.as_model(trained(seed=0), encoding)
print(model)
people = encoding.encode(asked)
refused = people[hf.predict(model, people) == schema.classes.index("bad")]
found = hf.MinCost(norm=1)(model, refused, encoding.target("good", len(refused)), encoding.space)

family = hf.Family.from_models([hf.as_model(trained(seed), encoding) for seed in range(1, 6)], kind="seeds")
print(hf.audit(found, family))
