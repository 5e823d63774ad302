"""Warnings about a model that answers, but hardly as its owner meant; before long work, one of them is an error."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from holdfast.models.adapters.adapter import Adapter, Ask
from holdfast.models.adapters.output_spec import BY_POSITION, shown
from holdfast.models.adapters.probing import sample
from holdfast.models.model import Model, predict_or_none
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding

ASKED_ROWS = 1000  # rows of a table that are enough to see whether its classes are in order
FEWEST_ROWS = 30  # known rows below which accuracy says little
MOST_CLASSES = 5  # whose orders are tried
ACCURACY_MARGIN = 0.1  # by which one accuracy must exceed another to be worth a word
ZERO_SHARE = 0.05  # of the rows whose gradient may be zero

Labels = NDArray[np.int64]
Others = Callable[[], dict[str, Ask]]  # other ways to ask the same model: in words -> how


class ClassOrderWarning(UserWarning):
    """The model's outputs seem to be for other classes than they are taken for."""


def warn_of(deployed: WrappedModel, others: Others | None = None, stacklevel: int = 3) -> None:
    """Warn of what looks wrong with a model on rows that the encoding knows."""
    try:
        failed = list(_failed_checks(deployed, others))
    except Exception:  # a model that cannot be asked says so itself when it is
        return
    for message in failed:
        warnings.warn(message, stacklevel=stacklevel)


def check_order(adapter: Adapter, found: Labels, labels: Labels | None) -> None:
    """Raise where numbers were matched with classes by position and another order fits the known labels far better."""
    if labels is None or not adapter.output.note.startswith(BY_POSITION):
        return
    ours = adapter.encoding.schema.classes
    better = _better_order(found, labels, ours)
    if better is not None:
        raise ValueError(
            f"{adapter.name} has the classes {shown(adapter.output.classes)}: as {ours}, the schema's order, it is "
            f"right for {better.right:.0%} of the known rows, as {better.order} for {better.otherwise:.0%}; pass "
            f"classes={better.order} or classes={ours}"
        )


def check_class_order(model: Model, encoding: Encoding, table: pd.DataFrame) -> None:
    """Raise where another order of its classes fits the labels of a table far better: advice would lead people away.

    A model that names its classes has them in no wrong order, however bad it is.
    """
    schema, named = encoding.schema, getattr(getattr(model, "wrapped", None), "classes_", ())
    if schema.label not in table or len(table) < FEWEST_ROWS or set(map(str, named)) == set(map(str, schema.classes)):
        return
    table = table.iloc[np.linspace(0, len(table) - 1, min(len(table), ASKED_ROWS)).astype(int)]
    given = predict_or_none(model, encoding.encode(table)).cpu().numpy()
    better = _better_order(given, encoding.labels(table).numpy(), schema.classes)
    if better is not None:
        order = better.order
        listed = ", ".join(json.dumps(label) if isinstance(label, (str, bool)) else str(label) for label in order)
        raise ValueError(
            f"the model is right for {better.right:.0%} of {len(table)} rows of its own table with its outputs as "
            f"{schema.classes}, the schema's order, and for {better.otherwise:.0%} as {better.order}. It does not name "
            f"its classes: write them in its order into the schema's file, classes = [{listed}] (holdfast init makes "
            f"such a file), or in Python pass classes={better.order}"
        )


def _failed_checks(deployed: WrappedModel, others: Others | None) -> Iterable[str | Warning]:
    table, labels = sample(deployed.encoding)
    x = deployed.encoding.encode(table)
    yield from _flat(deployed, x)
    if labels is None or len(labels) < FEWEST_ROWS:
        return
    classes, given = deployed.encoding.schema.classes, deployed(x).argmax(1).cpu().numpy()
    right, balanced = _right(given, labels), _balanced(given, labels)
    commonest = np.bincount(labels).max() / len(labels)
    better = _better_order(given, labels, classes)
    least = max(right + _much(labels), commonest, 0 if better is None else better.otherwise)  # the likeliest is told
    for source, ask in (others() if others is not None else {}).items():
        other = ask(table).argmax(1)
        if _right(other, labels) > least and _balanced(other, labels) > balanced:
            yield (
                f"the model is right for {right:.0%} of the known rows as it is asked here, and for "
                f"{_right(other, labels):.0%} with {source}: are its inputs scaled twice, or not at all? Say what it "
                "takes: as_model(..., takes=...)"
            )
            return
    if better is not None:
        yield ClassOrderWarning(
            f"the model is right for {better.right:.0%} of the known rows with its outputs as {classes}, and for "
            f"{better.otherwise:.0%} as {better.order}; did you mean as_model(..., classes={better.order})?"
        )
    elif right < commonest - _much(labels) and balanced < 1 / len(classes) + ACCURACY_MARGIN / 2:
        yield (
            f"the model is right for {right:.0%} of the known rows, less often than always answering "
            f"{classes[int(np.bincount(labels).argmax())]!r} ({commonest:.0%}); check that it takes what it is given, "
            f"{deployed.about}, and that the labels are those it was trained on"
        )


def _flat(deployed: WrappedModel, x: torch.Tensor) -> Iterable[str]:
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


@dataclass(frozen=True)
class Better:
    """Another order of the classes, and how often a model is right with its own and with that one."""

    right: float
    otherwise: float
    order: tuple[Any, ...]


def _better_order(given: Labels, labels: Labels, classes: tuple[Any, ...]) -> Better | None:
    if len(classes) > MOST_CLASSES or (given < 0).any():
        return None
    right, balanced = _right(given, labels), _balanced(given, labels)
    orders = [np.array(order) for order in permutations(range(len(classes)))]
    best = max(orders, key=lambda order: _balanced(order[given], labels))
    otherwise = _right(best[given], labels)
    if otherwise > right + _much(labels) and _balanced(best[given], labels) > balanced + ACCURACY_MARGIN:
        return Better(right, otherwise, tuple(classes[label_index] for label_index in best))
    return None


def _much(labels: Labels) -> float:
    """A difference of two accuracies that is more than chance: three standard deviations at most."""
    return max(ACCURACY_MARGIN, 3 / math.sqrt(len(labels)))


def _right(given: Labels, labels: Labels) -> float:
    return float((given == labels).mean())


def _balanced(given: Labels, labels: Labels) -> float:
    """The mean over classes of the share that is recognised."""
    return float(np.mean([(given[labels == label] == label).mean() for label in np.unique(labels)]))
