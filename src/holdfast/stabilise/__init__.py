"""The ways to make a counterfactual hold. A new one is a new file and a line in STABILISERS."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.counterfactuals import Stabiliser
from holdfast.stabilise.certified import Certified
from holdfast.stabilise.confidence import Confidence
from holdfast.stabilise.sns import SNS
from holdfast.stabilise.sparse import Sparse

STABILISERS: dict[str, Callable[..., Stabiliser]] = {
    "sns": SNS,
    "confidence": Confidence,
    "certified": Certified,
    "sparse": Sparse,
}

__all__ = ["SNS", "STABILISERS", "Certified", "Confidence", "Sparse"]
