"""The ways to make a counterfactual hold. A new one is a new file and a line in STABILISERS."""

from __future__ import annotations

from holdfast.counterfactuals import Stabiliser
from holdfast.stabilise.sns import SNS

STABILISERS: dict[str, type[Stabiliser]] = {"sns": SNS}

__all__ = ["SNS", "STABILISERS"]
