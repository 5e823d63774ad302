"""How often retrained models invalidate a counterfactual, and how sure that is."""
