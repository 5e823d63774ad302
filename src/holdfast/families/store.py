"""Families on disk: trained once, found again by what they are made of, resumed where they were cut off.

A family is a folder with two files: `family.safetensors` (the stacked layers) and `manifest.json` (recipe, members and
their fingerprints, versions, a checksum of the other file), written last. While it is being trained, members lie in
`parts/` as their chunks finish. Every file appears whole or not at all, so a run that is killed at any moment
loses only the chunks it was at; since a member does not depend on its company, the family ends with the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from holdfast.families.family import Family, Network
from holdfast.families.material import Pool
from holdfast.families.recipe import Recipe, Retraining
from holdfast.files import appearing, sweep, write_text

ALGORITHM = 1  # to be raised whenever training comes to give other bits
Layers = tuple[tuple[Tensor, ...], tuple[Tensor, ...]]  # weights and biases of one member


class StoreError(ValueError):
    """A file in a store is not what it should be. It is named, and nothing of it was used."""


# ---- what a network is made of ----


def fingerprint_data(pool: Pool, base: Network | None = None) -> str:
    """Of all rows there are, and of the network that some members continue from."""
    digest = hashlib.sha256(f"{tuple(pool.x.shape)} {pool.x.dtype} {pool.old} {pool.classes}".encode())
    for tensor in (pool.x, pool.y, *(() if base is None else (*base.weights, *base.biases))):
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def fingerprint_member(data: str, recipe: Recipe, retraining: Retraining) -> str:
    """The same for the same network, whatever it is called: all that decides its weights, and nothing else."""
    settings = {name: value for name, value in asdict(retraining).items() if name != "kind"}
    return _digest([ALGORITHM, torch.__version__, data, asdict(recipe), settings])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# ---- a family in a folder ----


def save(family: Family, folder: str | Path) -> Path:
    """Write a family; the manifest last, so that a folder with one is whole."""
    folder = Path(folder)
    if family.groups is not None:
        raise ValueError("save the family before merging its classes; merging again after loading costs nothing")
    contents = safetensors.torch.save(_named(family.weights, family.biases))
    with appearing(folder / "family.safetensors") as file:
        file.write(contents)
    manifest = {
        "holdfast": "family",
        "algorithm": ALGORITHM,
        "torch": torch.__version__,
        "sha256": hashlib.sha256(contents).hexdigest(),
        "recipe": None if family.recipe is None else asdict(family.recipe),
        "data": family.data,
        "members": [
            {"fingerprint": fingerprint, **_settings(retraining)}
            for fingerprint, retraining in zip(_padded(family), family.retrainings, strict=True)
        ],
        "accuracy": None if family.accuracy is None else list(family.accuracy),
    }
    write_text(folder / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    return folder


def load(folder: str | Path) -> Family:
    """Read a family back, after checking that both files are whole and belong together."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    path = folder / "family.safetensors"
    contents = _bytes(path)
    if hashlib.sha256(contents).hexdigest() != manifest["sha256"]:
        raise StoreError(f"{path} is not the file its manifest speaks of: it was changed or cut; remove {folder}")
    tensors = safetensors.torch.load(contents)
    recipe = manifest["recipe"]
    fingerprints = tuple(member["fingerprint"] for member in manifest["members"])
    return Family(
        *_unnamed(tensors),
        retrainings=tuple(_retraining(member) for member in manifest["members"]),
        fingerprints=() if None in fingerprints else fingerprints,
        accuracy=None if manifest["accuracy"] is None else tuple(manifest["accuracy"]),
        recipe=None if recipe is None else Recipe(**{**recipe, "betas": tuple(recipe["betas"])}),
        data=manifest["data"],
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        manifest = json.loads(_bytes(path))
        if manifest["holdfast"] == "family" and {"sha256", "members", "recipe", "data", "accuracy"} <= set(manifest):
            return dict(manifest)
    except (ValueError, TypeError, KeyError):
        pass
    raise StoreError(f"{path} does not read as the manifest of a family; remove {folder}, or name another folder")


# ---- a store of families ----


@dataclass(frozen=True)
class Entry:
    """The place of one family in a store, named by its members' fingerprints."""

    folder: Path

    @classmethod
    def of(cls, store: str | Path, fingerprints: Sequence[str]) -> Entry:
        return cls(Path(store).expanduser() / _digest(list(fingerprints))[:20])

    @property
    def complete(self) -> bool:
        return (self.folder / "manifest.json").exists()

    @property
    def exists(self) -> bool:
        return self.complete or (self.folder / "parts").is_dir()

    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def load(self, fingerprints: Sequence[str]) -> Family:
        family = load(self.folder)
        if family.fingerprints != tuple(fingerprints):
            raise StoreError(f"{self.folder} holds another family than the one its name says; remove it")
        return family

    def remove(self) -> None:
        """The manifest first, so that a family is never there by half."""
        (self.folder / "manifest.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder)

    def members(self) -> dict[str, Layers]:
        """What earlier, interrupted runs have finished: fingerprint -> layers."""
        sweep(self.folder / "parts")
        found: dict[str, Layers] = {}
        for path in sorted((self.folder / "parts").glob("*.safetensors")):
            found |= _read_part(path)
        return found

    def add(self, fingerprints: Sequence[str], weights: Iterable[Tensor], biases: Iterable[Tensor]) -> None:
        """Keep a chunk of members that has finished."""
        named = _named(tuple(weights), tuple(biases))
        about = json.dumps({"members": list(fingerprints), "sha256": _tensor_digest(named)})
        with appearing(self.folder / "parts" / f"{fingerprints[0][:20]}.safetensors") as file:
            file.write(safetensors.torch.save(named, metadata={"holdfast": about}))

    def finish(self, family: Family) -> None:
        save(family, self.folder)
        shutil.rmtree(self.folder / "parts", ignore_errors=True)


def default_store() -> Path:
    """``HOLDFAST_FAMILIES``, or else a folder of the user's."""
    chosen = os.environ.get("HOLDFAST_FAMILIES")
    home = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "holdfast" / "families"
    return (Path(chosen) if chosen else home).expanduser()


def entries(store: str | Path) -> list[Entry]:
    """Every family in a store, finished or not."""
    folder = Path(store).expanduser()
    found = [Entry(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []
    return [entry for entry in found if entry.exists]


def find(store: str | Path, name: str) -> Entry:
    """The one family whose name begins so."""
    alike = [entry for entry in entries(store) if entry.folder.name.startswith(name)] if name else []
    if len(alike) != 1:
        names = ", ".join(entry.folder.name for entry in alike or entries(store)) or "none"
        what = f"{len(alike)} families begin with" if alike else "no family begins with"
        raise ValueError(f"{what} '{name}' in {store}; choose one of: {names}")
    return alike[0]


def _read_part(path: Path) -> dict[str, Layers]:
    try:
        contents = _bytes(path)
        length = int.from_bytes(contents[:8], "little")
        about = json.loads(json.loads(contents[8 : 8 + length])["__metadata__"]["holdfast"])
        tensors = safetensors.torch.load(contents)
        if _tensor_digest(tensors) != about["sha256"]:
            raise ValueError("checksum")
        weights, biases = _unnamed(tensors)
        return {
            member: (tuple(w[place] for w in weights), tuple(b[place] for b in biases))
            for place, member in enumerate(about["members"])
        }
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError) as error:
        raise StoreError(f"{path} is damaged or not ours ({type(error).__name__}); remove it and run again") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise StoreError(f"there is no {path}; is this the folder of a family?") from error


def _named(weights: tuple[Tensor, ...], biases: tuple[Tensor, ...]) -> dict[str, Tensor]:
    layers = {f"weight.{depth}": weight for depth, weight in enumerate(weights)}
    layers |= {f"bias.{depth}": bias for depth, bias in enumerate(biases)}
    return {name: tensor.detach().cpu().contiguous() for name, tensor in layers.items()}


def _unnamed(tensors: dict[str, Tensor]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    depth = range(len(tensors) // 2)
    return tuple(tensors[f"weight.{layer}"] for layer in depth), tuple(tensors[f"bias.{layer}"] for layer in depth)


def _tensor_digest(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tuple(tensors[name].shape)} {tensors[name].dtype}".encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()


def _settings(retraining: Retraining) -> dict[str, Any]:
    base = asdict(Retraining())
    return {name: value for name, value in asdict(retraining).items() if value != base[name] or name == "kind"}


def _retraining(member: dict[str, Any]) -> Retraining:
    settings: dict[str, Any] = {name: value for name, value in member.items() if name != "fingerprint"}
    for name in ("window", "tilt"):
        if name in settings:
            settings[name] = tuple(settings[name])
    settings["settings"] = tuple((name, value) for name, value in settings.get("settings", ()))
    return Retraining(**settings)


def _padded(family: Family) -> Sequence[str | None]:
    return family.fingerprints or (None,) * len(family)
