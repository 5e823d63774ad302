"""Many retrained models as one value: recipes, kinds of change, training, the store."""

import lazy_loader

# The package's stub takes `changes` from here, as a module; nothing loads before it is used.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["changes"])
