"""Attacks from outside: files that are programs, and whether anything calls home."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch import nn

import holdfast as hf
from _attack import material
from _attack.kills import works
from _attack.processes import in_fork
from _attack.trying import Try, answer_or_sentence, judged
from holdfast.demo import demo
from holdfast.paper import results

CALLS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request")


class Program:
    """Unpickled, it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return Path.mkdir, (self.folder,)


def pickles(folder: Path, draw: random.Random) -> Iterator[Try]:
    """A pickle in the place of any file is not run; only a CSV file may hold such text."""
    ran, seed = folder / "ran", draw.randrange(1000)
    contents = pickle.dumps(Program(ran), protocol=draw.randrange(pickle.HIGHEST_PROTOCOL + 1))
    family = hf.save_family(material.family(seed), folder / "family")
    audit = hf.save_audit(material.audit(seed), folder / "audit")
    readers: dict[str, Callable[[Path], Any]] = {
        **{f"family/{path.name}": lambda _: hf.load_family(family) for path in family.iterdir()},
        **{f"audit/{path.name}": lambda _: hf.load_audit(audit) for path in audit.iterdir()},
        "rows.jsonl": results.read,
        "schema.toml": hf.Schema.load,
        "schema.json": hf.Schema.load,
        "model.safetensors": lambda path: hf.Family.from_models([path], like=nn.Linear(4, 2)),
        "model.pt": lambda path: hf.Family.from_models([path], like=nn.Linear(4, 2)),
        **{f"table.{ending}": hf.read_table for ending in ("csv", "parquet", "pkl", "pickle")},
    }
    for name, read in readers.items():
        path = folder / name
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(contents + b"\n")
        kind = f"*{path.suffix}" if "-" in name else name
        yield answer_or_sentence(f"a pickle called {kind}", lambda read=read, path=path: read(path))
        yield judged(f"a pickle called {kind}", not ran.exists(), "it to be data", "it was run")
        path.write_bytes(before)


def network(folder: Path, draw: random.Random) -> Iterator[Try]:
    """Training, searching, auditing, saving and loading open no connection."""
    for number, (name, work) in enumerate(works(draw.randrange(1000)).items()):
        place = folder / str(number)
        place.mkdir()
        yield _offline(name, lambda work=work, place=place: (work.write(place), work.read(place)))
    yield _offline("the demo", lambda: demo(rows=1, members=1, workers=1).save(folder / "demo"))


def _offline(name: str, work: Callable[[], Any]) -> Try:
    def watched() -> list[str]:
        called: list[str] = []
        sys.addaudithook(lambda event, given: called.append(f"{event} {given[-1]}") if event in CALLS else None)
        work()
        return called

    code, answer = in_fork(watched)
    called = answer[1] if answer and answer[0] == "gave" else [f"{answer}, exit code {code}"]
    return judged(name, not called, "no connection", ", ".join(map(str, called)))
