"""One attack, round after round, each try a line of a file: `python -m _attack MODULE NAME SEED SECONDS FILE`."""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from importlib import import_module
from itertools import count
from pathlib import Path


@contextmanager
def _folder(path: Path) -> Iterator[Path]:
    """With the same name in every round, so that the same surprise has the same words."""
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def main(module: str, name: str, seed: str, seconds: str, file: str) -> None:
    end, attack = time.monotonic() + float(seconds), getattr(import_module(f"_attack.{module}"), name)
    with open(file, "a", buffering=1) as tries:
        for number in count():
            draw = random.Random(f"{seed} {name} {number}")
            with _folder(Path.cwd() / "round") as own, closing(attack(own, draw)) as tried:
                for one in tried:
                    tries.write(json.dumps(asdict(one)) + "\n")
                    if number and time.monotonic() > end:  # the first round is always a whole one
                        return
            if time.monotonic() > end:
                return


if __name__ == "__main__":
    main(*sys.argv[1:])
