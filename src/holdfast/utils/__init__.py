"""Files, progress and threads: what has nothing to do with counterfactuals."""
