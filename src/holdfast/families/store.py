"""Families on disk: trained once, found again by what they are made of, resumed where they were cut off.

A family is a folder with two files: `family.safetensors` (the stacked tensors) and `manifest.json` (recipe, members and
their fingerprints, versions, a checksum of the other file), written last. While it is being trained, members lie in
`parts/` as their chunks finish. Every file appears whole or not at all, so a run that is killed at any moment
loses only the chunks it was at; since a member does not depend on its company, the family ends with the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from holdfast.families.architecture import Architecture, State
from holdfast.families.family import Family
from holdfast.families.material import Pool
from holdfast.families.module import TorchModule
from holdfast.families.perceptron import Network, Perceptron
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.stack import Stack
from holdfast.files import appearing, sweep, write_text
from holdfast.models import Model

ALGORITHM = 2  # to be raised whenever training comes to give other bits


MANIFEST = {"sha256", "members", "recipe", "data", "accuracy", "networks", "places"}


class StoreError(ValueError):
    """A file in a store is not what it should be. It is named, and nothing of it was used."""


# ---- what a network is made of ----


def fingerprint_data(pool: Pool, base: Model | None = None) -> str:
    """Of all rows there are, and of the network that some members continue from."""
    hashed = hashlib.sha256(f"{tuple(pool.x.shape)} {pool.x.dtype} {pool.old} {pool.classes}".encode())
    for tensor in (pool.x, pool.y, *_tensors_of(base)):
        hashed.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()


def fingerprint_member(data: str, recipe: Recipe, retraining: Retraining, network: str | None = None) -> str:
    """The same for the same network, whatever it is called: all that decides its weights, and nothing else.

    ``network`` describes the recipe's own module, if it has one.
    """
    own = {name: value for name, value in asdict(retraining).items() if name not in ("kind", "settings")}
    recipe = retraining.recipe(recipe)
    return digest([ALGORITHM, torch.__version__, data, _plain(recipe), network, own, retraining.own_rates])


def _tensors_of(base: Model | None) -> list[Tensor]:
    if isinstance(base, Network):
        return [*base.weights, *base.biases]
    return list(base.state_dict().values()) if isinstance(base, nn.Module) else []


def _plain(recipe: Recipe) -> dict[str, Any]:
    """A recipe but for its network, which is no data."""
    return {field.name: getattr(recipe, field.name) for field in fields(recipe) if field.name != "network"}


def digest(value: Any) -> str:
    """Of anything that JSON can say: the same for equal values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# ---- a family in a folder ----


def save(family: Family, folder: str | Path) -> Path:
    """Write a family; the manifest last, so that a folder with one is whole."""
    folder = Path(folder)
    if family.groups is not None:
        raise ValueError("save the family before merging its classes; merging again after loading costs nothing")
    stacks = [stack for stack in family.stacks if isinstance(stack, Stack)]
    if len(stacks) < len(family.stacks):
        raise ValueError(f"{family} holds models that were made elsewhere; save those where they were made")
    named = {f"{place}/{name}": tensor for place, stack in enumerate(stacks) for name, tensor in stack.state.items()}
    contents = safetensors.torch.save(_on_cpu(named))
    with appearing(folder / "family.safetensors") as file:
        file.write(contents)
    manifest = {
        "holdfast": "family",
        "algorithm": ALGORITHM,
        "torch": torch.__version__,
        "sha256": hashlib.sha256(contents).hexdigest(),
        "recipe": None if family.recipe is None else _plain(family.recipe),
        "data": family.data,
        "networks": [stack.architecture.description for stack in stacks],
        "places": list(family.places),
        "members": [
            {"fingerprint": fingerprint, **_settings(retraining)}
            for fingerprint, retraining in zip(_padded(family), family.retrainings, strict=True)
        ],
        "accuracy": None if family.accuracy is None else list(family.accuracy),
    }
    write_text(folder / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    return folder


def load(
    folder: str | Path, network: nn.Module | Callable[[], nn.Module] | None = None, like: Tensor | None = None
) -> Family:
    """Read a family back, after checking that both files are whole and belong together.

    A family of torch modules needs the ``network`` of its recipe again, since code is not kept, and rows ``like``
    those it was trained on.
    """
    folder = Path(folder)
    architectures = None
    if network is not None:
        if like is None:
            raise ValueError("to read a family of modules give some of its rows as well: load_family(..., like=x)")
        architectures = {(): TorchModule.of(network, like)}
    return _read(folder, architectures or {}, like)


def _read(folder: Path, architectures: Mapping[Any, Architecture], like: Tensor | None) -> Family:
    manifest = read_manifest(folder)
    path = folder / "family.safetensors"
    contents = _bytes(path)
    if hashlib.sha256(contents).hexdigest() != manifest["sha256"]:
        raise StoreError(f"{path} is not the file its manifest speaks of: it was changed or cut; remove {folder}")
    known = {architecture.description: architecture for architecture in architectures.values()}
    states: list[dict[str, Tensor]] = [{} for _ in manifest["networks"]]
    for name, tensor in safetensors.torch.load(contents).items():
        place, _, own = name.partition("/")
        states[int(place)][own] = tensor if like is None else tensor.to(like.device)
    stacks = tuple(
        Stack(_architecture(folder, description, known, state), state)
        for description, state in zip(manifest["networks"], states, strict=True)
    )
    fingerprints = tuple(member["fingerprint"] for member in manifest["members"])
    return Family(
        stacks,
        retrainings=tuple(_retraining(member) for member in manifest["members"]),
        places=tuple(manifest["places"]),
        fingerprints=() if None in fingerprints else fingerprints,
        accuracy=None if manifest["accuracy"] is None else tuple(manifest["accuracy"]),
        recipe=None if manifest["recipe"] is None else Recipe(**_untangled(manifest["recipe"])),
        data=manifest["data"],
    )


def _architecture(folder: Path, description: str, known: Mapping[str, Architecture], state: State) -> Architecture:
    if description in known:
        return known[description]
    if not description.startswith("perceptron"):
        raise StoreError(
            f"{folder} holds networks of a torch module, and code is not kept; pass the module, "
            f"load_family(folder, network=..., like=x), just as it was: {description.splitlines()[0]}"
        )
    return Perceptron.of(state)


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        manifest = json.loads(_bytes(path))
        if manifest["holdfast"] == "family" and set(manifest) >= MANIFEST:
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
        return cls(Path(store).expanduser() / digest(list(fingerprints))[:20])

    @property
    def complete(self) -> bool:
        return (self.folder / "manifest.json").exists()

    @property
    def exists(self) -> bool:
        return self.complete or (self.folder / "parts").is_dir()

    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def load(self, fingerprints: Sequence[str], architectures: Mapping[Any, Architecture], like: Tensor) -> Family:
        family = _read(self.folder, architectures, like)
        if family.fingerprints != tuple(fingerprints):
            raise StoreError(f"{self.folder} holds another family than the one its name says; remove it")
        return family

    def remove(self) -> None:
        """The manifest first, so that a family is never there by half."""
        (self.folder / "manifest.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder)

    def members(self) -> dict[str, State]:
        """What earlier, interrupted runs have finished: fingerprint -> network."""
        sweep(self.folder / "parts")
        found: dict[str, State] = {}
        for path in sorted((self.folder / "parts").glob("*.safetensors")):
            try:
                found |= _read_part(path)
            except StoreError:
                if path.exists():
                    raise  # else another process has finished the family meanwhile
        return found

    def add(self, fingerprints: Sequence[str], state: State) -> None:
        """Keep a chunk of members that has finished."""
        named = _on_cpu(state)
        about = json.dumps({"members": list(fingerprints), "sha256": _tensor_digest(named)})
        try:
            with appearing(self.folder / "parts" / f"{fingerprints[0][:20]}.safetensors") as file:
                file.write(safetensors.torch.save(named, metadata={"holdfast": about}))
        except FileNotFoundError:
            if not self.complete:
                raise  # else another process has finished the family meanwhile, and its parts are gone

    def finish(self, family: Family) -> None:
        """Keep it whole, unless another process has done so meanwhile, and drop the parts."""
        if not self.complete:
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


def _read_part(path: Path) -> dict[str, State]:
    try:
        contents = _bytes(path)
        length = int.from_bytes(contents[:8], "little")
        about = json.loads(json.loads(contents[8 : 8 + length])["__metadata__"]["holdfast"])
        tensors = safetensors.torch.load(contents)
        if _tensor_digest(tensors) != about["sha256"]:
            raise ValueError("checksum")
        return {
            member: {name: tensor[place] for name, tensor in tensors.items()}
            for place, member in enumerate(about["members"])
        }
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError) as error:
        raise StoreError(f"{path} is damaged or not ours ({type(error).__name__}); remove it and run again") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise StoreError(f"there is no {path}; is this the folder of a family?") from error


def _on_cpu(state: State) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


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
    return Retraining(**_untangled({name: value for name, value in member.items() if name != "fingerprint"}))


def _untangled(settings: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where our values have tuples."""
    return {name: _as_tuple(value) for name, value in settings.items()}


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _padded(family: Family) -> Sequence[str | None]:
    return family.fingerprints or (None,) * len(family)
