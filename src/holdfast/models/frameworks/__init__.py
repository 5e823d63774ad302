"""One file per framework that models come from."""
