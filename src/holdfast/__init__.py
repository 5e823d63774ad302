"""Counterfactual explanations that still hold after the model is retrained.

Names load when they are first used: importing holdfast loads neither torch nor pandas.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.auditing.audit import Audit as Audit
    from holdfast.auditing.audit import audit as audit
    from holdfast.auditing.comparison import Comparison as Comparison
    from holdfast.auditing.comparison import compare as compare
    from holdfast.auditing.intervals import members_needed as members_needed
    from holdfast.auditing.predictors import diagnostics as diagnostics
    from holdfast.auditing.predictors import predictors as predictors
    from holdfast.auditing.predictors import what_predicts as what_predicts
    from holdfast.auditing.sequential import Sequential as Sequential
    from holdfast.auditing.sequential import audit_until as audit_until
    from holdfast.auditing.storage import load_audit as load_audit
    from holdfast.auditing.storage import save_audit as save_audit
    from holdfast.datasets import DATASETS as DATASETS
    from holdfast.datasets import load as load
    from holdfast.explaining.advice import Advice as Advice
    from holdfast.explaining.explainer import Explainer as Explainer
    from holdfast.explaining.roles import Sizes as Sizes
    from holdfast.external.alibi import from_alibi as from_alibi
    from holdfast.external.dice import from_dice as from_dice
    from holdfast.external.judging import ImportedCounterfactuals as ImportedCounterfactuals
    from holdfast.external.tables import from_paired as from_paired
    from holdfast.external.tables import from_tables as from_tables
    from holdfast.families import changes as changes
    from holdfast.families.changes import leave_one_out as leave_one_out
    from holdfast.families.changes import seeds as seeds
    from holdfast.families.family import Family as Family
    from holdfast.families.perceptron import Network as Network
    from holdfast.families.recipe import PAPER_RECIPES as PAPER_RECIPES
    from holdfast.families.recipe import Recipe as Recipe
    from holdfast.families.recipe import Retraining as Retraining
    from holdfast.families.refitting import refit as refit
    from holdfast.families.store import load_family as load_family
    from holdfast.families.store import save_family as save_family
    from holdfast.families.training import train as train
    from holdfast.guarantees.promises import Promise as Promise
    from holdfast.guarantees.promises import promise as promise
    from holdfast.models.adapting import as_model as as_model
    from holdfast.models.files.networks import save_model as save_model
    from holdfast.models.files.reading import read_model as read_model
    from holdfast.models.merged import merged as merged
    from holdfast.models.model import Model as Model
    from holdfast.models.model import predict as predict
    from holdfast.reporting.html.page import report as report
    from holdfast.reporting.letters.letter import Letter as Letter
    from holdfast.reporting.letters.letter import letter as letter
    from holdfast.reporting.plots.plotting import plot as plot
    from holdfast.search.counterfactuals import Counterfactuals as Counterfactuals
    from holdfast.search.counterfactuals import Method as Method
    from holdfast.search.counterfactuals import Stabiliser as Stabiliser
    from holdfast.search.counterfactuals import assess as assess
    from holdfast.search.counterfactuals import other_class as other_class
    from holdfast.search.failures import why_not as why_not
    from holdfast.search.holding import Holding as Holding
    from holdfast.search.holding import price_of_holding as price_of_holding
    from holdfast.search.methods import METHODS as METHODS
    from holdfast.search.methods.latent import Latent as Latent
    from holdfast.search.methods.margin import Margin as Margin
    from holdfast.search.methods.min_cost import MinCost as MinCost
    from holdfast.search.methods.pgd import PGD as PGD
    from holdfast.search.methods.prototype import Prototype as Prototype
    from holdfast.search.methods.rehearsed import Rehearsed as Rehearsed
    from holdfast.search.pipeline import named as named
    from holdfast.search.plans import Plans as Plans
    from holdfast.search.plans import plans as plans
    from holdfast.search.plausibility import neighbour_distance as neighbour_distance
    from holdfast.search.plausibility import outlier_factor as outlier_factor
    from holdfast.search.stabilisers import STABILISERS as STABILISERS
    from holdfast.search.stabilisers.certified import Certified as Certified
    from holdfast.search.stabilisers.confidence import Confidence as Confidence
    from holdfast.search.stabilisers.sns import SNS as SNS
    from holdfast.search.stabilisers.sparse import Sparse as Sparse
    from holdfast.tabular.encoding import Encoding as Encoding
    from holdfast.tabular.feature import Feature as Feature
    from holdfast.tabular.findings import Finding as Finding
    from holdfast.tabular.inspection import Inspection as Inspection
    from holdfast.tabular.inspection import inspect as inspect
    from holdfast.tabular.reading import read_table as read_table
    from holdfast.tabular.relations import Determines as Determines
    from holdfast.tabular.relations import Exclusive as Exclusive
    from holdfast.tabular.relations import Follows as Follows
    from holdfast.tabular.relations import Implies as Implies
    from holdfast.tabular.relations import Ordered as Ordered
    from holdfast.tabular.relations import Sums as Sums
    from holdfast.tabular.schema import Schema as Schema
    from holdfast.tabular.space import Group as Group
    from holdfast.tabular.space import Space as Space
    from holdfast.tabular.wishes import Wish as Wish

__version__ = "0.2.0.dev0"
"""The version of holdfast, as text.

Examples:
    >>> import holdfast as hf
    >>> hf.__version__
    '0...'

Paper: not in [Black et al. 2022](https://arxiv.org/abs/2110.03109); versions follow
[PEP 440](https://peps.python.org/pep-0440/).
"""

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent, unless the program that uses it wants logs

# Where each public name is defined. The imports above say the same to type checkers and editors; a test compares them.
_HOMES = {
    "auditing.audit": ("Audit", "audit"),
    "auditing.comparison": ("Comparison", "compare"),
    "auditing.intervals": ("members_needed",),
    "auditing.predictors": ("diagnostics", "predictors", "what_predicts"),
    "auditing.sequential": ("Sequential", "audit_until"),
    "auditing.storage": ("load_audit", "save_audit"),
    "datasets": ("DATASETS", "load"),
    "explaining.advice": ("Advice",),
    "explaining.explainer": ("Explainer",),
    "explaining.roles": ("Sizes",),
    "external.alibi": ("from_alibi",),
    "external.dice": ("from_dice",),
    "external.judging": ("ImportedCounterfactuals",),
    "external.tables": ("from_paired", "from_tables"),
    "families.changes": ("leave_one_out", "seeds"),
    "families.family": ("Family",),
    "families.perceptron": ("Network",),
    "families.recipe": ("PAPER_RECIPES", "Recipe", "Retraining"),
    "families.refitting": ("refit",),
    "families.store": ("load_family", "save_family"),
    "families.training": ("train",),
    "guarantees.promises": ("Promise", "promise"),
    "models.adapting": ("as_model",),
    "models.files.reading": ("read_model",),
    "models.merged": ("merged",),
    "models.model": ("Model", "predict"),
    "models.files.networks": ("save_model",),
    "reporting.html.page": ("report",),
    "reporting.plots.plotting": ("plot",),
    "reporting.letters.letter": ("Letter", "letter"),
    "search.counterfactuals": ("Counterfactuals", "Method", "Stabiliser", "assess", "other_class"),
    "search.failures": ("why_not",),
    "search.holding": ("Holding", "price_of_holding"),
    "search.methods": ("METHODS",),
    "search.methods.latent": ("Latent",),
    "search.methods.margin": ("Margin",),
    "search.methods.min_cost": ("MinCost",),
    "search.methods.pgd": ("PGD",),
    "search.methods.prototype": ("Prototype",),
    "search.methods.rehearsed": ("Rehearsed",),
    "search.pipeline": ("named",),
    "search.plans": ("Plans", "plans"),
    "search.plausibility": ("neighbour_distance", "outlier_factor"),
    "search.stabilisers": ("STABILISERS",),
    "search.stabilisers.certified": ("Certified",),
    "search.stabilisers.confidence": ("Confidence",),
    "search.stabilisers.sns": ("SNS",),
    "search.stabilisers.sparse": ("Sparse",),
    "tabular.encoding": ("Encoding",),
    "tabular.feature": ("Feature",),
    "tabular.findings": ("Finding",),
    "tabular.inspection": ("Inspection", "inspect"),
    "tabular.reading": ("read_table",),
    "tabular.relations": ("Determines", "Exclusive", "Follows", "Implies", "Ordered", "Sums"),
    "tabular.schema": ("Schema",),
    "tabular.space": ("Group", "Space"),
    "tabular.wishes": ("Wish",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = {"changes": "families.changes"}  # public names that are modules
_RENAMED = {"Brought": "ImportedCounterfactuals"}  # the old names go in 0.3

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        from warnings import warn

        new = _RENAMED[name]
        warn(f"holdfast.{name} is now holdfast.{new}; the old name goes in 0.3", DeprecationWarning, stacklevel=2)
        return __getattr__(new)
    if name in _MODULES:
        return import_module(f"holdfast.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute '{name}'")
    value = getattr(import_module(f"holdfast.{_HOME[name]}"), name)
    globals()[name] = value  # the next look finds it without asking here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
