"""One attack, round after round, each try a line of a file: `python -m _attack MODULE NAME SEED SECONDS FILE`."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict
from importlib import import_module
from itertools import count
from pathlib import Path


def main(module: str, name: str, seed: str, seconds: str, file: str) -> None:
    end, attack = time.monotonic() + float(seconds), getattr(import_module(f"_attack.{module}"), name)
    with open(file, "a", buffering=1) as tries:
        for number in count():
            draw = random.Random(f"{seed} {name} {number}")
            with tempfile.TemporaryDirectory(dir=Path.cwd()) as own, closing(attack(Path(own), draw)) as tried:
                for one in tried:
                    tries.write(json.dumps(asdict(one)) + "\n")
                    if number and time.monotonic() > end:  # the first round is always a whole one
                        return
            if time.monotonic() > end:
                return


if __name__ == "__main__":
    main(*sys.argv[1:])
