"""Finding counterfactuals, and moving them to where they hold."""
