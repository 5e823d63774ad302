"""Attacks on files: a flipped bit, a version of the future, a store with odd things in it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import holdfast as hf
from _attack import material
from _attack.processes import holdfast, killed_at_rename
from _attack.trying import Try, is_sentence, judged, kind_of, outcome

FLIPS = 12  # of each kind of file in a round
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Kind:
    """A kind of file: a folder that holds some, how to read it, and what must come out."""

    folder: Path
    files: tuple[str, ...]  # patterns
    read: Callable[[Path], dict[str, Any]]
    checked: bool = True  # whether a change must be noticed

    def paths(self, folder: Path) -> list[Path]:
        return sorted(path for pattern in self.files for path in folder.glob(pattern))


def flips(folder: Path, draw: random.Random) -> Iterator[Try]:
    """One bit flipped: an error that names the file, or the same value as before."""
    for name, kind in _kinds(folder, draw.randrange(1000)).items():
        before = kind.read(shutil.copytree(kind.folder, folder / f"{name}-whole"))
        for number in range(FLIPS):
            copy = shutil.copytree(kind.folder, folder / f"{name}-{number}")
            path = draw.choice(kind.paths(copy))
            place, size = _flip(path, draw), path.stat().st_size
            what = f"one bit of {name}'s {_ending(path)} flipped"
            got, same = outcome(lambda kind=kind, copy=copy: kind.read(copy)), before if kind.checked else None
            yield _same_or_refused(what, got, same, copy, f"bit {place} of {size} bytes")
            shutil.rmtree(copy)


def _kinds(folder: Path, seed: int) -> dict[str, Kind]:
    family, audit, study = folder / "family", folder / "audit", folder / "study"
    stored, cut, schema = folder / "stored", folder / "cut", folder / "schema"
    hf.save_family(material.family(seed), family)
    hf.save_audit(material.audit(seed), audit)
    material.run_study(study / "rows.jsonl", folder / "families")
    material.family(seed, store=stored)
    killed_at_rename(MANIFEST, lambda: material.family(seed, store=cut))
    material.schema().save(schema / "schema.toml")

    def trained(store: Path) -> dict[str, Any]:
        return material.family_parts(material.family(seed, store=store))

    tensors = (MANIFEST, "family*.safetensors")
    return {
        "family": Kind(family, tensors, lambda path: material.family_parts(hf.load_family(path))),
        "audit": Kind(audit, ("audit.json", "*.parquet"), lambda path: material.audit_parts(hf.load_audit(path))),
        "study": Kind(study, ("*.jsonl",), lambda path: material.study_parts(path / "rows.jsonl", seconds=True)),
        "stored family": Kind(stored, tuple(f"*/{name}" for name in tensors), trained),
        "cut-off training": Kind(cut, ("*/parts/*.safetensors",), trained),
        "schema": Kind(schema, ("*.toml",), lambda path: hf.Schema.load(path / "schema.toml").to_dict(), checked=False),
    }


def _flip(path: Path, draw: random.Random) -> int:
    contents = bytearray(path.read_bytes())
    place = draw.randrange(8 * len(contents))
    contents[place // 8] ^= 1 << place % 8
    path.write_bytes(contents)
    return place


def _ending(path: Path) -> str:
    return path.name if path.suffix in (".json", ".toml") else path.suffix


def _same_or_refused(what: str, got: Any, before: dict[str, Any] | None, folder: Path, detail: str = "") -> Try:
    expected = "an error that names the file" + (", or the same value" if before is not None else ", or a value")
    if isinstance(got, Exception):
        return judged(what, is_sentence(got, folder), expected, kind_of(got), f"{detail}: {got}")
    other = "" if before is None else material.difference(before, got)
    return judged(what, not other, expected, f"another value of {other}", detail)


# ---- files of another version ----


def versions(folder: Path, draw: random.Random) -> Iterator[Try]:
    """A format of the future, and settings that do not exist: refused in a sentence."""
    kinds = _kinds(folder, draw.randrange(1000))
    places = {"family": MANIFEST, "stored family": f"*/{MANIFEST}", "audit": "audit.json"}
    for name, pattern in places.items():
        (path,) = kinds[name].folder.glob(pattern)
        about = json.loads(path.read_bytes())
        for word in ("algorithm", "format"):
            if word in about:
                yield _edited(folder, kinds[name], pattern, about | {word: 99}, f"{name} whose {word} is 99")
        if name == "family":
            odd = about | {"recipe": about["recipe"] | {"dropout": 0.5}}
            yield _edited(folder, kinds[name], pattern, odd, f"{name} whose recipe has an unknown setting")
            odd = about | {"members": [about["members"][0] | {"wings": 2}, *about["members"][1:]]}
            yield _edited(folder, kinds[name], pattern, odd, f"{name} whose first member has an unknown setting")


def _edited(folder: Path, kind: Kind, pattern: str, about: dict[str, Any], what: str) -> Try:
    copy = shutil.copytree(kind.folder, folder / what)
    (path,) = copy.glob(pattern)
    path.write_text(json.dumps(about, indent=1) + "\n")
    got = outcome(lambda: kind.read(copy))
    fine = isinstance(got, ValueError) and is_sentence(got, copy)
    return judged(what, fine, "a ValueError that names the file", got if isinstance(got, Exception) else "a value")


# ---- odd things in a store ----


def store(folder: Path, draw: random.Random) -> Iterator[Try]:
    yield _symbolic_link(folder / "linked", folder / "outside")
    yield from _damaged_entry(folder / "damaged", draw)
    yield from _wrong_folders(folder / "wrong")


def _symbolic_link(store: Path, outside: Path) -> Try:
    """Removing a family that is a link must leave what it points to."""
    hf.save_family(material.family(), outside)
    (outside / "notes.txt").write_text("not a family's file")
    store.mkdir()
    (store / "abcdef").symlink_to(outside, target_is_directory=True)
    before = _contents(outside)
    ran = holdfast("families", "remove", "abcdef", "--yes", "--store", store, cwd=store)
    lost = sorted(set(before) - set(_contents(outside)))
    fine = not lost and _contents(outside) == before and not ran.traceback
    what = "`families remove` of a link to a folder outside the store"
    return judged(what, fine, "nothing outside to change", f"{', '.join(lost)} removed; {ran}")


def _damaged_entry(store: Path, draw: random.Random) -> Iterator[Try]:
    """One damaged entry must not hide the others."""
    material.family(store=store)
    (good,) = [path.name for path in store.iterdir()]
    damages = {"no JSON": b"{", "another's JSON": b'{"name": "app"}', "a list": b"[]", "no text": draw.randbytes(40)}
    for what, contents in damages.items():
        bad = store / draw.choice(["0-odd", "z-odd"])
        bad.mkdir()
        (bad / MANIFEST).write_bytes(contents)
        ran = holdfast("families", "list", "--store", store, cwd=store)
        fine = good in ran.out and bad.name in ran.out + ran.err and not ran.traceback
        yield judged(f"`families list` with a manifest that is {what}", fine, "the good family and the bad one", ran)
        shutil.rmtree(bad)


def _wrong_folders(folder: Path) -> Iterator[Try]:
    """Who names the wrong folder must not be told to remove it."""
    wrong = {
        "unrelated files": {"letter.txt": "Dear Sir"},
        "the manifest of another program": {MANIFEST: '{"name": "app", "icons": []}'},
        "a manifest that is no JSON": {MANIFEST: "Manifest-Version: 1.0"},
        "nothing": {},
    }
    for number, (what, files) in enumerate(wrong.items()):
        own = folder / str(number)
        own.mkdir(parents=True)
        for name, text in files.items():
            (own / name).write_text(text)
        got = outcome(lambda path=own: hf.load_family(path))
        fine = isinstance(got, Exception) and is_sentence(got, own) and "remove" not in str(got)
        yield judged(f"load_family of a folder with {what}", fine, "a sentence that does not say remove", got)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
