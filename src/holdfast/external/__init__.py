"""Counterfactuals that were found elsewhere, judged as they are.

Nothing is rounded, clipped or snapped, and whatever is wrong with a row is written down.
"""
