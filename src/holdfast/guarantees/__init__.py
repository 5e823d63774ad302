"""Promised rates: how often retrained models will invalidate counterfactuals, bounded before they are trained."""
