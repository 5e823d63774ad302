"""What a model is, and what can be said of any of them."""
