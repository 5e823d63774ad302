"""The ways to find a counterfactual. A new one is a new file and a line in METHODS."""

from __future__ import annotations

from holdfast.counterfactuals import Method
from holdfast.methods.pgd import PGD

METHODS: dict[str, type[Method]] = {"pgd": PGD}

__all__ = ["METHODS", "PGD"]
