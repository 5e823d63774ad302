"""Write what `holdfast methods` shows, asked of the methods themselves; the command reads it without loading torch."""

from __future__ import annotations

import json

from holdfast import METHODS, STABILISERS
from holdfast.cli.methods import LISTING
from holdfast.reporting.listings import describe_methods
from holdfast.utils.files import write_text

if __name__ == "__main__":
    lines = describe_methods(METHODS, STABILISERS)
    print(write_text(LISTING, json.dumps(lines, indent=1, ensure_ascii=False) + "\n"))
