"""alibi's CFProto guided by k-d trees, one row after another. That takes seconds a row, so it is asked fewer."""

from __future__ import annotations

import logging

import tensorflow as tf
from _question import Points, Question, answer
from alibi.explainers import CounterfactualProto

tf.compat.v1.disable_eager_execution()
logging.disable(logging.WARNING)


def network(question: Question) -> tf.keras.Model:
    """The same layers, answering probabilities: CFProto's loss is written in them."""
    last = len(question.weights) - 1
    layers = [
        tf.keras.layers.Dense(weight.shape[1], activation="softmax" if place == last else "relu")
        for place, weight in enumerate(question.weights)
    ]
    net = tf.keras.Sequential([tf.keras.Input((question.rows.shape[1],)), *layers])
    net.set_weights([part for layer in zip(question.weights, question.biases, strict=True) for part in layer])
    return net


def prototypes(question: Question) -> Points:
    tf.keras.backend.clear_session()
    explainer = CounterfactualProto(
        network(question),
        shape=(1, question.rows.shape[1]),
        use_kdtree=True,
        theta=100.0,
        max_iterations=100,
        feature_range=(question.lower, question.upper),
    )
    explainer.fit(question.known)
    point = question.rows.copy()
    for place in range(len(point)):
        found = explainer.explain(question.rows[place : place + 1], k=20).cf
        if found is not None:
            point[place] = found["X"][0]
    return point


if __name__ == "__main__":
    answer({"prototype": (prototypes, 50)})
