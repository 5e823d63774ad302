"""Attacks on writers: killed at any operation on a file, a disk that is full, a place that cannot be written to."""

from __future__ import annotations

import random
import resource
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import holdfast as hf
from _attack import material
from _attack.processes import in_fork, killed_at, moments_of
from _attack.trying import Try, judged, outcome, short

MOST = 12  # moments of one work in a round
Parts = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """Something that writes into a folder, and how to read it."""

    write: Callable[[Path], object]
    read: Callable[[Path], Parts]
    prepare: Callable[[Path], object] | None = None  # writes what is there before


def works(seed: int) -> dict[str, Work]:
    """Everything that the package writes; values are made here, so that a forked process only writes them."""
    old, new, later = material.family(seed), material.family(seed + 1), material.audit(seed + 1)
    first, schema, stable = material.audit(seed), material.schema(), material.schema().revise("age", mutable=True)

    def read_family(folder: Path) -> Parts:
        return material.family_parts(hf.load_family(folder / "kept"))

    def read_audit(folder: Path) -> Parts:
        return material.audit_parts(hf.load_audit(folder / "kept"))

    def train(folder: Path) -> Parts:
        return material.family_parts(material.family(seed, store=folder / "families"))

    return {
        "saving a family": Work(lambda folder: hf.save_family(new, folder / "kept"), read_family),
        "saving a family over another": Work(
            lambda folder: hf.save_family(new, folder / "kept"),
            read_family,
            lambda folder: hf.save_family(old, folder / "kept"),
        ),
        "saving an audit over another": Work(
            lambda folder: hf.save_audit(later, folder / "kept"),
            read_audit,
            lambda folder: hf.save_audit(first, folder / "kept"),
        ),
        "saving a schema over another": Work(
            lambda folder: stable.save(folder / "schema.toml"),
            lambda folder: hf.Schema.load(folder / "schema.toml").to_dict(),
            lambda folder: schema.save(folder / "schema.toml"),
        ),
        "training with a store": Work(train, train),
        "running a study": Work(
            lambda folder: material.run_study(folder / "rows.jsonl", folder / "families"),
            lambda folder: material.study_parts(folder / "rows.jsonl"),
        ),
    }


def kills(folder: Path, draw: random.Random) -> Iterator[Try]:
    """Killed at any moment: the old value or the new one is there, and the next run ends as if nothing had happened."""
    for number, (name, work) in enumerate(works(draw.randrange(1000)).items()):
        own = folder / str(number)
        old, new, moments = _uninterrupted(work, own)
        for moment in sorted(draw.sample(range(1, moments + 1), min(MOST, moments))):
            place = _prepared(work, own / f"at-{moment}")
            killed_at(moment, lambda work=work, place=place: work.write(place))
            detail = f"at operation {moment} of {moments}"
            if old is not None:
                found = _read(work, place)
                yield _judged(f"{name}, killed", found in (old, new), "the old value or the new", found, detail)
            done, answer = in_fork(lambda work=work, place=place: (work.write(place), 0)[1])
            again = _read(work, place) if answer and answer[0] == "gave" else answer or f"exit code {done}"
            yield _judged(f"{name}, killed, and again", again == new, "what no kill gives", again, detail)
            shutil.rmtree(place)
    yield _half_a_line(work, own / "after", draw)


def _half_a_line(study: Work, place: Path, draw: random.Random) -> Try:
    """A kill in the middle of a write leaves half of the last line."""
    new, file = _read(study, place), place / "rows.jsonl"
    contents = file.read_bytes()
    start = contents.rstrip(b"\n").rfind(b"\n") + 1
    file.write_bytes(contents[: draw.randrange(start, len(contents))])
    in_fork(lambda: (study.write(place), 0)[1])
    again = _read(study, place)
    return _judged("a study's last line cut short, and again", again == new, "what no kill gives", again, "")


def _uninterrupted(work: Work, folder: Path) -> tuple[Any, Any, int]:
    """What is there before, what is there after, and how many moments there are between."""
    before = _prepared(work, folder / "before")
    old = None if work.prepare is None else _read(work, before)
    after = _prepared(work, folder / "after")
    moments = moments_of(lambda: work.write(after))
    return old, _read(work, after), moments


def _prepared(work: Work, place: Path) -> Path:
    place.mkdir(parents=True)
    if work.prepare is not None:
        work.prepare(place)
    return place


def _read(work: Work, place: Path) -> Any:
    """In a process of its own too, so that this one stays fit for forking; an error is told in words."""
    _, answer = in_fork(lambda: work.read(place))
    return answer[1] if answer and answer[0] == "gave" else answer


def _judged(what: str, fine: bool, expected: str, found: Any, detail: str) -> Try:
    """The type of an error is the same for every moment; its words are a detail."""
    if isinstance(found, tuple) and found[0] == "raised":
        error, text = found[1]
        return judged(what, fine, expected, error, f"{detail}: {short(text)}")
    return judged(what, fine, expected, "another value" if isinstance(found, dict) else found, detail)


# ---- places that do not take what is written ----


def disks(folder: Path, draw: random.Random) -> Iterator[Try]:
    """A full disk, a place that is none: an error that names it, the old value still there, nothing half-written."""
    for number, (name, work) in enumerate(works(draw.randrange(1000)).items()):
        own = folder / str(number)
        old, new, _ = _uninterrupted(work, own)
        largest = max(path.stat().st_size for path in (own / "after").rglob("*") if path.is_file())
        for limit in (1, *(draw.randrange(2, largest) for _ in range(3))):
            yield from _on_a_full_disk(name, work, _prepared(work, own / f"full-{limit}"), limit, old, new)
        for place in (own / "file" / "below", Path("/proc/holdfast")):
            (own / "file").touch()
            got = outcome(lambda work=work, place=place: work.write(place))
            fine = isinstance(got, (OSError, ValueError)) and (str(place) in str(got) or str(place.parent) in str(got))
            yield judged(f"{name}, where no folder can be", fine, "an error that names the place", got)


def _on_a_full_disk(name: str, work: Work, place: Path, limit: int, old: Any, new: Any) -> Iterator[Try]:
    """A limit to the size of files stands for the disk."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        work.write(place)

    detail = f"files of {limit} bytes at most"
    before = set(place.rglob("*"))
    _, answer = in_fork(limited)
    error, text = answer[1] if answer and answer[0] == "raised" else ("no error", "")
    fine = error in ("OSError", "ValueError", "StoreError") and str(place) in text
    yield _judged(f"{name}, on a full disk", fine, "an error that names the file", ("raised", (error, text)), detail)
    left = [path.name for path in place.rglob(".*") if path not in before]
    yield judged(f"{name}, on a full disk", not left, "no half-written file", ", ".join(left), detail)
    if old is not None:
        found = _read(work, place)
        yield _judged(f"{name}, on a full disk", found == old, "the old value still there", found, detail)
    in_fork(lambda: work.write(place))
    found = _read(work, place)
    yield _judged(f"{name}, on a full disk, and again", found == new, "what a free disk gives", found, detail)
