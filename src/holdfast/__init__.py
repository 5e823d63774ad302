"""Counterfactual explanations that still hold after the model is retrained."""

from holdfast.audit import Audit, audit
from holdfast.brought import Brought, from_alibi, from_dice, from_paired, from_tables, read_table
from holdfast.compare import Comparison, compare
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
from holdfast.intervals import members_needed
from holdfast.kept import load_audit, save_audit
from holdfast.methods import METHODS, PGD, Latent, Margin, MinCost, Prototype
from holdfast.models import Model, merged, predict
from holdfast.named import named
from holdfast.plausible import neighbour_distance, outlier_factor
from holdfast.predictors import diagnostics, predictors, what_predicts
from holdfast.reasons import why_not
from holdfast.schema import Feature, Schema
from holdfast.sequential import Sequential, audit_until
from holdfast.space import Group, Space
from holdfast.stabilise import SNS, STABILISERS, Certified, Confidence, Sparse

__version__ = "0.1.0"

__all__ = [
    "DATASETS",
    "METHODS",
    "PAPER_RECIPES",
    "PGD",
    "SNS",
    "STABILISERS",
    "Audit",
    "Brought",
    "Certified",
    "Comparison",
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
    "Sequential",
    "Space",
    "Sparse",
    "Stabiliser",
    "__version__",
    "assess",
    "audit",
    "audit_until",
    "changes",
    "compare",
    "diagnostics",
    "from_alibi",
    "from_dice",
    "from_paired",
    "from_tables",
    "leave_one_out",
    "load",
    "load_audit",
    "load_family",
    "members_needed",
    "merged",
    "named",
    "neighbour_distance",
    "other_class",
    "outlier_factor",
    "predict",
    "predictors",
    "read_table",
    "save_audit",
    "save_family",
    "seeds",
    "train",
    "what_predicts",
    "why_not",
]
