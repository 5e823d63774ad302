"""One name for equal values."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(value: Any) -> str:
    """Of anything that JSON can say: the same for equal values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
