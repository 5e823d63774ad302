"""Experiments declared as values: what is run is written here, how it is run in `holdfast.study`."""
