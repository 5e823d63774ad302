"""Warnings about a model that answers, but hardly as its owner meant. None of them raises."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from itertools import permutations

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from holdfast.models.deployed import Ask, Deployed
from holdfast.models.questions.feeding import sample

FEWEST = 30  # known rows below which accuracy says little
MOST_CLASSES = 5  # whose orders are tried
MUCH = 0.1  # by which one accuracy must exceed another to be worth a word
ZERO_SHARE = 0.05  # of the rows whose gradient may be zero

Labels = NDArray[np.int64]
Others = Callable[[], dict[str, Ask]]  # other ways to ask the same model: in words -> how


def warn_of(deployed: Deployed, others: Others | None = None, stacklevel: int = 3) -> None:
    """Warn of what looks wrong with a model on rows that the encoding knows."""
    try:
        told = list(_suspicions(deployed, others))
    except Exception:  # a model that cannot be asked says so itself when it is
        return
    for one in told:
        warnings.warn(one, stacklevel=stacklevel)


def _suspicions(deployed: Deployed, others: Others | None) -> Iterable[str]:
    table, labels = sample(deployed.encoding)
    x = deployed.encoding.encode(table)
    yield from _flat(deployed, x)
    if labels is None or len(labels) < FEWEST:
        return
    given = deployed(x).argmax(1).cpu().numpy()
    better = _fed_wrongly(table, labels, given, others) if others is not None else None
    yield from [better] if better else _out_of_order(deployed, labels, given)


def _flat(deployed: Deployed, x: torch.Tensor) -> Iterable[str]:
    """No gradient where a search starts: a probability that float32 cannot tell from 0 or 1."""
    if deployed.exact is None:
        return
    rows = x.clone().requires_grad_()
    with torch.enable_grad():
        largest = deployed.exact(rows).topk(2, dim=1).values
        (gradient,) = torch.autograd.grad((largest[:, 0] - largest[:, 1]).sum(), rows)
    share = float((gradient.abs().amax(1) <= torch.finfo(gradient.dtype).tiny).double().mean())
    if share > ZERO_SHARE:
        yield (
            f"the model has no gradient at {share:.0%} of the known rows, so a search finds no way from there: it is "
            "so sure of them that its probabilities are exactly 0 or 1, or it gives everybody the same answer. Pass "
            "the model without its last sigmoid or softmax, or in float64: model.double()"
        )


def _fed_wrongly(table: pd.DataFrame, labels: Labels, given: Labels, others: Others) -> str | None:
    """The model fits known labels much better when it is fed in another way: scaled twice, or not at all."""
    right, chance = float((given == labels).mean()), _commonest(labels)
    for told, ask in others().items():
        other = ask(table).argmax(1)
        otherwise = float((other == labels).mean())
        if (
            otherwise > right + _much(labels)
            and _balanced(other, labels) > _balanced(given, labels)
            and otherwise > chance
        ):
            return (
                f"the model is right for {right:.0%} of the known rows as it is asked here, and for {otherwise:.0%} "
                f"with {told}: are its inputs scaled twice, or not at all? Say what it takes: as_model(..., takes=...)"
            )
    return None


def _out_of_order(deployed: Deployed, labels: Labels, given: Labels) -> Iterable[str]:
    """Right less often than another order of the classes would be, or than no model at all."""
    classes = deployed.encoding.schema.classes
    right, balanced = float((given == labels).mean()), _balanced(given, labels)
    if len(classes) <= MOST_CLASSES:
        orders = [np.array(order) for order in permutations(range(len(classes)))]
        best = max(orders, key=lambda order: _balanced(order[given], labels))
        otherwise = float((best[given] == labels).mean())
        if otherwise > right + _much(labels) and _balanced(best[given], labels) > balanced + MUCH:
            order = tuple(classes[place] for place in best)
            yield (
                f"the model is right for {right:.0%} of the known rows with its outputs as {classes}, and for "
                f"{otherwise:.0%} as {order}; did you mean as_model(..., classes={order})?"
            )
            return
    commonest = _commonest(labels)
    if right < commonest - _much(labels) and balanced < 1 / len(classes) + MUCH / 2:
        yield (
            f"the model is right for {right:.0%} of the known rows, less often than always answering "
            f"{classes[int(np.bincount(labels).argmax())]!r} ({commonest:.0%}); check that it takes what it is given, "
            f"{deployed.about}, and that the labels are those it was trained on"
        )


def _much(labels: Labels) -> float:
    """A difference of two accuracies that is more than chance: three standard deviations at most."""
    return max(MUCH, 3 / math.sqrt(len(labels)))


def _commonest(labels: Labels) -> float:
    return float(np.bincount(labels).max() / len(labels))


def _balanced(given: Labels, labels: Labels) -> float:
    """The mean over classes of the share that is recognised."""
    return float(np.mean([(given[labels == label] == label).mean() for label in np.unique(labels)]))
