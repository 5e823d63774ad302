"""Counterfactual explanations that still hold after the model is retrained.

Names load when they are first used: importing holdfast loads neither torch nor pandas.
"""

from __future__ import annotations

import logging

import lazy_loader

__version__ = "0.2.0.dev0"
"""The version of holdfast, as text.

Examples:
    >>> import holdfast as hf
    >>> hf.__version__
    '0...'

Versions follow [PEP 440](https://peps.python.org/pep-0440/).
"""

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent, unless the program that uses it wants logs

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
