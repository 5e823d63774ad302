"""Many retrained models as one value: recipes, kinds of change, training, the store."""
