"""How a model is asked: what it is given, what it answers, and which class each answer is for."""
