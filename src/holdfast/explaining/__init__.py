"""The front door: one object for a table and a model, and the advice that it gives."""
