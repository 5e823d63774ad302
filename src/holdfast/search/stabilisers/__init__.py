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
"""The stabilisers by name. Each entry makes a stabiliser: with its defaults, or with the settings that you pass.

Examples:
    >>> import holdfast as hf
    >>> list(hf.STABILISERS)
    ['sns', 'confidence', 'certified', 'sparse']
    >>> hf.STABILISERS["confidence"](radius=1.0)
    Confidence(radius=1.0, steps=200, norm=2)

Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.3, for ``sns``.
"""

__all__ = ["SNS", "STABILISERS", "Certified", "Confidence", "Sparse"]
