"""Counterfactuals that someone else has found, as ours, so that an audit can judge them.

They are judged as they came: nothing is rounded, clipped or snapped, and whatever is wrong with a row is written down.
"""

from holdfast.brought.files import read_table
from holdfast.brought.judging import PROBLEMS, Brought
from holdfast.brought.libraries import from_alibi, from_dice
from holdfast.brought.tables import from_paired, from_tables

__all__ = ["PROBLEMS", "Brought", "from_alibi", "from_dice", "from_paired", "from_tables", "read_table"]
