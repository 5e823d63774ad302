"""ART's elastic-net attack with its own settings, all rows in one batch, logits as outputs.

It caps what moves at 0 and at 1, whatever the bounds are. Where the bounds are others it is asked a second time with
rows and network scaled to [0, 1]: one factor for all columns, so what is nearest stays nearest. As the paper's authors
called it, it is handed probabilities for logits and asked for a margin of 0.5 between them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from _question import Points, Question, answer, module
from art.attacks.evasion import ElasticNet
from art.estimators.classification import PyTorchClassifier


def elastic_net(rule: str, beta: float, question: Question) -> Points:
    return attacked(question, module(question), rule, beta, confidence=0.0, iterations=100)


def as_the_paper(rule: str, beta: float, question: Question) -> Points:
    probabilities = torch.nn.Sequential(module(question), torch.nn.Softmax(1))
    return attacked(question, probabilities, rule, beta, confidence=0.5, iterations=300)


def attacked(
    question: Question, outputs: torch.nn.Module, rule: str, beta: float, confidence: float, iterations: int
) -> Points:
    network = PyTorchClassifier(
        outputs,
        loss=torch.nn.CrossEntropyLoss(),
        input_shape=question.rows.shape[1:],
        nb_classes=question.weights[-1].shape[1],
        clip_values=(question.lower, question.upper),
        device_type="cpu",
    )
    attack = ElasticNet(
        network,
        targeted=True,
        decision_rule=rule,
        beta=beta,
        confidence=confidence,
        max_iter=iterations,
        binary_search_steps=9,
        batch_size=200,
        verbose=False,
    )
    return attack.generate(question.rows.astype(np.float32), question.target)


def scaled(rule: str, beta: float, question: Question) -> Points | None:
    """The same question where the bounds are 0 and 1, its answer scaled back; None where they are already."""
    lower, width = question.lower, question.upper - question.lower
    if (lower, width) == (0, 1):
        return None
    first, *others = question.weights
    bias, *biases = question.biases
    within = replace(
        question,
        weights=(first * np.float32(width), *others),
        biases=(bias + np.float32(lower) * first.sum(0), *biases),
        rows=((question.rows - lower) / width).astype(np.float32),
        lower=0.0,
        upper=1.0,
    )
    point = elastic_net(rule, beta, within)
    return np.where(point == within.rows, question.rows, lower + width * point).astype(np.float32)


if __name__ == "__main__":
    answer(
        {
            "l1": (partial(elastic_net, "L1", 1.0), 200),
            "l1_default": (partial(elastic_net, "L1", 1e-3), 200),
            "l2": (partial(elastic_net, "L2", 0.0), 200),
            "l1_scaled": (partial(scaled, "L1", 1e-3), 200),
            "l2_scaled": (partial(scaled, "L2", 0.0), 200),
            "l1_paper": (partial(as_the_paper, "L1", 1.0), 200),
            "l2_paper": (partial(as_the_paper, "L2", 0.0), 200),
        }
    )
