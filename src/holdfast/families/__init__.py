"""Many retrained networks as one value."""

from holdfast.families import changes
from holdfast.families.changes import leave_one_out, seeds
from holdfast.families.family import Family
from holdfast.families.perceptron import Network
from holdfast.families.recipe import PAPER_RECIPES, Recipe, Retraining
from holdfast.families.store import load as load_family
from holdfast.families.store import save as save_family
from holdfast.families.training import train

__all__ = [
    "PAPER_RECIPES",
    "Family",
    "Network",
    "Recipe",
    "Retraining",
    "changes",
    "leave_one_out",
    "load_family",
    "save_family",
    "seeds",
    "train",
]
