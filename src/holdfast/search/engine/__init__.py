"""The compiled search of discrete spaces: one person at a time, one feature changed at a time."""
