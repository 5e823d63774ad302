"""The ways to make a counterfactual hold. A new one is a new file and a line in STABILISERS."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.search.counterfactuals import Stabiliser
from holdfast.search.stabilisers.certified import Certified
from holdfast.search.stabilisers.confidence import Confidence
from holdfast.search.stabilisers.sns import SNS
from holdfast.search.stabilisers.sparse import Sparse

STABILISERS: dict[str, Callable[..., Stabiliser]] = {
    "sns": SNS,
    "confidence": Confidence,
    "certified": Certified,
    "sparse": Sparse,
}

__all__ = ["SNS", "STABILISERS", "Certified", "Confidence", "Sparse"]
