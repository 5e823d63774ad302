"""The attacks of `bench/attack.py`: generators that yield a `Try` for each thing they do."""
