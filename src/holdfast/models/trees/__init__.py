"""Trees of any library as arrays."""
