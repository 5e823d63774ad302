"""Counterfactual explanations that still hold after the model is retrained."""

from holdfast.audit import Audit, audit
from holdfast.counterfactuals import Counterfactuals, Method, Stabiliser, assess, other_class
from holdfast.datasets import DATASETS, load
from holdfast.encoding import Encoding
from holdfast.families import (
    PAPER_RECIPES,
    Family,
    Network,
    Recipe,
    Retraining,
    changes,
    leave_one_out,
    load_family,
    save_family,
    seeds,
    train,
)
from holdfast.methods import METHODS, PGD, Latent, Margin, MinCost, Prototype
from holdfast.models import Model, merged, predict
from holdfast.named import named
from holdfast.plausible import neighbour_distance, outlier_factor
from holdfast.reasons import why_not
from holdfast.schema import Feature, Schema
from holdfast.space import Group, Space
from holdfast.stabilise import SNS, STABILISERS, Confidence, Sparse

__version__ = "0.1.0"

__all__ = [
    "DATASETS",
    "METHODS",
    "PAPER_RECIPES",
    "PGD",
    "SNS",
    "STABILISERS",
    "Audit",
    "Confidence",
    "Counterfactuals",
    "Encoding",
    "Family",
    "Feature",
    "Group",
    "Latent",
    "Margin",
    "Method",
    "MinCost",
    "Model",
    "Network",
    "Prototype",
    "Recipe",
    "Retraining",
    "Schema",
    "Space",
    "Sparse",
    "Stabiliser",
    "__version__",
    "assess",
    "audit",
    "changes",
    "leave_one_out",
    "load",
    "load_family",
    "merged",
    "named",
    "neighbour_distance",
    "other_class",
    "outlier_factor",
    "predict",
    "save_family",
    "seeds",
    "train",
    "why_not",
]
