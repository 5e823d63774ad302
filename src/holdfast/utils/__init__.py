"""Files, checksums, memory, progress, the terminal: what has nothing to do with counterfactuals."""
