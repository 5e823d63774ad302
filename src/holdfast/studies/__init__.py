"""Experiments declared as values, the runner that computes them, and their results on disk."""
