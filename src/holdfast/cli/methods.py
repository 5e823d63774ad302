"""`holdfast methods`."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.cli.options import errors_as_sentences
from holdfast.utils.terminal import console

# Written by `make listing` and compared by a test: to ask the methods themselves would load torch.
LISTING = Path(__file__).with_name("methods.json")


def list_methods() -> None:
    """List the methods and the stabilisers that + adds: what each does, where it comes from, its defaults."""
    with errors_as_sentences():
        from holdfast.reporting.listings import method_list

        console().print(method_list(json.loads(LISTING.read_text(encoding="utf-8"))))
