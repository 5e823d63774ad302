"""Families on disk: trained once, found again by what they are made of, resumed where they were cut off.

A family is a folder with two files: `family-<digest>.safetensors` (the stacked tensors; of estimators, the bytes of a
skops file each) and `manifest.json` (recipe, members and their fingerprints, versions, the other file's name and
checksum, its own checksum), written last. While it is being trained, members lie in `parts/` as their chunks finish.
Every file appears whole or not at all, so a run that is killed at any moment loses only the chunks it was at, and one
that saves a family over another leaves the old one or the new one. Since a member does not depend on its company, a
resumed family ends with the same bytes; estimators, whose files bear the time, with the same models.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from holdfast.families.entries import (
    ALGORITHM,
    FAMILY,
    NAME_ANOTHER,
    PART,
    Entry,
    StoreError,
    damaged_part,
    file_bytes,
    part_description,
    read_manifest,
    tensor_file,
)
from holdfast.families.family import Family
from holdfast.families.members import Members, Models, Stack, encoding_digest
from holdfast.families.module import Architecture, TorchModule
from holdfast.families.packing import Packed, PackingError, packed, unpacked, versions
from holdfast.families.perceptron import Network, Perceptron, State, aligned
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.training_data import Pool
from holdfast.models.adapting import read_adapter, unhelped
from holdfast.models.files.networks import with_tuples
from holdfast.models.identity import OBJECT, remember_run
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding
from holdfast.utils.digests import digest
from holdfast.utils.files import appearing, as_path, only_writer, sweep, write_text
from holdfast.utils.sealing import sealed

LOG = logging.getLogger(__name__)
NOT_OWN = ("kind", "settings", "parameters")  # what a network's fingerprint has elsewhere, or not at all
MODELS = "models"  # begins the description of members that are models of other libraries
PADDED = 3  # the algorithm's number for perceptrons that are trained with wider layers


# ---- what a network is made of ----


def fingerprint_data(pool: Pool, base: Model | None = None) -> str:
    """Of all rows there are, and of the network that some members continue from."""
    hashed = hashlib.sha256(f"{tuple(pool.x.shape)} {pool.x.dtype} {pool.old} {pool.classes}".encode())
    base_weights: Iterable[Tensor] = base.state_dict().values() if isinstance(base, nn.Module) else ()
    if isinstance(base, Network):
        base_weights = (*base.weights, *base.biases)
    for tensor in (pool.x, pool.y, *base_weights):
        hashed.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return hashed.hexdigest()


def fingerprint_member(data: str, recipe: Recipe, retraining: Retraining, network: str | None = None) -> str:
    """The same for the same network, whatever it is called: all that decides its weights, and nothing else.

    ``network`` describes the recipe's own module, if it has one.
    """
    changed = {name: value for name, value in asdict(retraining).items() if name not in NOT_OWN}
    recipe = retraining.recipe(recipe)
    sizes = (0, *recipe.hidden, 0)
    algorithm = ALGORITHM if network is not None or aligned(sizes) == sizes else PADDED
    return digest([algorithm, torch.__version__, data, _plain(recipe), network, changed, retraining.own_rates])


def _plain(recipe: Recipe) -> dict[str, Any]:
    """A recipe but for its network, which is no data."""
    return {field.name: getattr(recipe, field.name) for field in fields(recipe) if field.name != "network"}


# ---- a family in a folder ----


def save_family(family: Family, folder: str | Path) -> Path:
    """Write a family to a folder, in the place of the one that may be there. `load_family` reads it.

    The manifest is written last, so that the folder never holds half a family. Functions and torch modules that were
    made elsewhere are code and are not written: save those where they were made.

    Args:
        family: networks of `train`, estimators of `refit`, models of scikit-learn, XGBoost, LightGBM, ONNX or Keras
        folder: where to write; it comes back

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> family = hf.train(x, y, recipe, hf.seeds(2))
        >>> folder = hf.save_family(family, "retrained")
        >>> sorted(path.suffix for path in folder.iterdir())
        ['.json', '.safetensors']
    """
    if not isinstance(family, Family):
        raise TypeError(f"expected a Family, got {type(family).__name__}; train(...) makes one")
    folder = as_path(folder, "a folder")
    if family.groups is not None:
        raise ValueError("save the family before merging its classes; merging again after loading costs nothing")
    return _save(family, folder, [_tensors(family, stack) for stack in family.stacks])


def _tensors(family: Family, stack: Members) -> State:
    """What is kept of some members: the tensors of networks, the files of other models as bytes."""
    if isinstance(stack, Stack):
        return stack.state
    if stack.encoding is None:
        raise ValueError(f"{family} holds models that were made elsewhere; save those where they were made")
    try:
        return state_of(packed(model.wrapped) for model in stack.models)
    except PackingError as error:
        raise ValueError(f"{family} cannot be kept: {error}; save its models where they were made") from error


def _save(family: Family, folder: Path, states: Sequence[State]) -> Path:
    named = {f"{number}/{name}": tensor for number, state in enumerate(states) for name, tensor in state.items()}
    contents = safetensors.torch.save(_on_cpu(named))
    digest = hashlib.sha256(contents).hexdigest()
    manifest = {
        "algorithm": ALGORITHM,
        "torch": torch.__version__,
        "file": tensor_file(digest),
        "sha256": digest,
        "recipe": None if family.recipe is None else _plain(family.recipe),
        "data": family.data,
        "networks": [
            stack.architecture.description if isinstance(stack, Stack) else f"{MODELS}: {stack.name}"
            for stack in family.stacks
        ],
        "places": list(family.places),
        "members": [
            {"fingerprint": fingerprint, **_settings(retraining)}
            for fingerprint, retraining in zip(_padded(family), family.retrainings, strict=True)
        ],
        "accuracy": None if family.accuracy is None else list(family.accuracy),
    }
    models = [described(stack) for stack in family.stacks if isinstance(stack, Models)]
    if models:
        manifest |= {"models": models, "surrogates": family.surrogates, "told": family.told}
    with only_writer(folder / "manifest.json", wait=True):
        sweep(folder, "family-*", age=0)
        with appearing(folder / tensor_file(digest)) as file:
            file.write(contents)
        write_text(folder / "manifest.json", json.dumps(sealed(FAMILY, manifest), indent=1) + "\n")
        for path in [*folder.glob("family-*.safetensors"), folder / "family.safetensors"]:
            if path.name != tensor_file(digest) and re.fullmatch(r"family(-[0-9a-f]{20})?\.safetensors", path.name):
                path.unlink(missing_ok=True)
    return folder


def load_family(
    folder: str | Path,
    network: nn.Module | Callable[[], nn.Module] | None = None,
    like: Tensor | None = None,
    encoding: Encoding | None = None,
) -> Family:
    """Read a family back, after checking that both files are whole and belong together.

    Args:
        folder: what `save_family` has written
        network: of a family of torch modules, the ``network`` of its recipe again: code is not kept
        like: of a family of torch modules, rows like those it was trained on
        encoding: of a family of models that take tables, the encoding that it was made with

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> family = hf.train(x, y, recipe, hf.seeds(2))
        >>> folder = hf.save_family(family, "retrained")
        >>> again = hf.load_family("retrained")
        >>> again.predict(x).equal(family.predict(x))
        True
    """
    folder = as_path(folder, "a folder that save_family has written")
    if network is not None and like is None:
        raise ValueError("to read a family of modules give some of its rows as well: load_family(..., like=x)")
    if encoding is not None and not isinstance(encoding, Encoding):
        raise TypeError(f"encoding must be an Encoding, got {type(encoding).__name__}; Encoding.fit makes one")
    known = [] if network is None or like is None else [TorchModule.of(network, like)]
    return _read(folder, known, like, encoding)


def _read(
    folder: Path, architectures: Iterable[Architecture], like: Tensor | None, encoding: Encoding | None
) -> Family:
    LOG.info("reading the networks of %s", folder)
    manifest = with_tuples(read_manifest(folder))
    path = folder / manifest.get("file", "family.safetensors")
    contents = file_bytes(path)
    if hashlib.sha256(contents).hexdigest() != manifest["sha256"]:
        raise StoreError(
            f"{path} is not the file that its manifest describes (changed or cut short); copy the whole folder again, "
            "or save the family again"
        )
    known = {architecture.description: architecture for architecture in architectures}
    try:
        states: list[dict[str, Tensor]] = [{} for _ in manifest["networks"]]
        for name, tensor in safetensors.torch.load(contents).items():
            number, _, tensor_name = name.partition("/")
            states[int(number)][tensor_name] = tensor if like is None else tensor.to(like.device)
        abouts = list(manifest.get("models", ()))
        stacks = tuple(
            read_models(folder, abouts.pop(0), state, encoding)
            if description.startswith(MODELS)
            else Stack(_architecture(folder, description, known, state), state)
            for description, state in zip(manifest["networks"], states, strict=True)
        )
        fingerprints = tuple(member.pop("fingerprint") for member in manifest["members"])
        family = Family(
            stacks,
            retrainings=tuple(Retraining(**member) for member in manifest["members"]),
            places=manifest["places"],
            fingerprints=() if None in fingerprints else fingerprints,
            accuracy=manifest["accuracy"],
            recipe=None if manifest["recipe"] is None else Recipe(**manifest["recipe"]),
            data=manifest["data"],
            surrogates=manifest.get("surrogates", ""),
            told=manifest.get("told", ""),
        )
    except StoreError:
        raise
    except (SafetensorError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise StoreError(
            f"{folder / 'manifest.json'} describes a family that this version cannot build ({error}); {NAME_ANOTHER}"
        ) from error
    remember_runs(family)
    return family


def _architecture(folder: Path, description: str, known: Mapping[str, Architecture], state: State) -> Architecture:
    if description in known:
        return known[description]
    if not description.startswith("perceptron"):
        raise StoreError(
            f"{folder} holds networks of a torch module, and code is not kept; pass the module, "
            f"load_family(folder, network=..., like=x), just as it was: {description.splitlines()[0]}"
        )
    return Perceptron.of(state)


# ---- a store of families ----


def load_entry(
    entry: Entry,
    fingerprints: Sequence[str],
    architectures: Iterable[Architecture] = (),
    like: Tensor | None = None,
    encoding: Encoding | None = None,
) -> Family:
    """The finished family of an entry, if it is the one asked for."""
    remove = f"holdfast families remove {entry.folder.name} --store {entry.folder.parent}"
    try:
        family = _read(entry.folder, architectures, like, encoding)
    except StoreError as error:
        raise StoreError(f"{error}. To train it again, remove it first: {remove}") from error
    if family.fingerprints != tuple(fingerprints):
        raise StoreError(f"{entry.folder} holds another family than the one its name says; remove it: {remove}")
    return family


def finished_members(entry: Entry) -> dict[str, State]:
    """What earlier, interrupted runs have finished: fingerprint -> network."""
    sweep(entry.folder / "parts")
    found: dict[str, State] = {}
    for path in entry.part_files():
        with suppress(FileNotFoundError):  # another process has finished the family meanwhile
            found |= _read_part(path)
    return found


def add_members(entry: Entry, fingerprints: Sequence[str], state: State) -> None:
    """Keep a chunk of members that has finished."""
    named = _on_cpu(state)
    about = json.dumps(sealed(PART, {"members": list(fingerprints), "sha256": _tensor_digest(named)}))
    try:
        with appearing(entry.folder / "parts" / f"{fingerprints[0][:20]}.safetensors") as file:
            file.write(safetensors.torch.save(named, metadata={"holdfast": about}))
    except (FileNotFoundError, FileExistsError):  # the folder of parts has gone, or goes while it is made
        if not entry.complete:
            raise  # else another process has finished the family meanwhile
    if entry.complete:
        _drop_parts(entry)


def finish_entry(entry: Entry, family: Family, states: Sequence[State] | None = None) -> None:
    """Keep it whole, unless another process has done so meanwhile, and drop the parts.

    ``states`` are what is kept of the members, where the caller has it at hand.
    """
    if not entry.complete:
        save_family(family, entry.folder) if states is None else _save(family, entry.folder, states)
    _drop_parts(entry)


def _drop_parts(entry: Entry) -> None:
    shutil.rmtree(entry.folder / "parts", ignore_errors=True)


def _read_part(path: Path) -> dict[str, State]:
    about = part_description(path)
    try:
        tensors = safetensors.torch.load(path.read_bytes())
        if _tensor_digest(tensors) != about["sha256"]:
            raise ValueError("checksum")
        return {
            member: {name: tensor[number] for name, tensor in tensors.items()}
            for number, member in enumerate(about["members"])
        }
    except (SafetensorError, ValueError, KeyError, TypeError, IndexError) as error:
        raise damaged_part(path, error) from error


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


def _padded(family: Family) -> Sequence[str | None]:
    """Fingerprints, where they mean something in another process."""
    kept = [None if name.startswith(OBJECT) else name for name in family.fingerprints]
    return kept or (None,) * len(family)


# ---- models of other libraries: a file each, and how it is asked ----


def as_tensor(contents: bytes) -> Tensor:
    return torch.frombuffer(bytearray(contents), dtype=torch.uint8)


def as_bytes(tensor: Tensor) -> bytes:
    return tensor.numpy().tobytes()


def state_of(files: Iterable[Packed]) -> State:
    """Files as tensors, each under its number and the end of a file's name: 3.skops."""
    return {f"{number}.{file.format}": as_tensor(file.contents) for number, file in enumerate(files)}


def files_of(state: State) -> list[Packed]:
    names = sorted(state, key=lambda name: int(name.partition(".")[0]))
    return [Packed(name.partition(".")[2], as_bytes(state[name])) for name in names]


def described(stack: Models) -> dict[str, Any]:
    """What a manifest says of them: how each is asked, for which encoding, and by which versions they were fitted."""
    return {
        "asked": [model.adapter.written for model in stack.models],
        "encoding": None if stack.encoding is None else encoding_digest(stack.encoding),
        "refitted": stack.refitted,
        "versions": versions([model.wrapped for model in stack.models]),
    }


def read_models(folder: Path, about: dict[str, Any], state: State, encoding: Encoding | None) -> Models:
    """The members again, each asked as it was, through an encoding like the one that they were made with."""
    if encoding is None:
        raise StoreError(
            f"{folder} holds models that are asked about tables in the user's units; pass the encoding that they "
            "were made with: load_family(folder, encoding=encoding)"
        )
    if encoding_digest(encoding) != about["encoding"]:
        raise StoreError(
            f"{folder} holds models that were made with another encoding; fit it to the same table and schema, or "
            "make the family again"
        )
    models = map(unpacked, files_of(state))
    adapters = [read_adapter(written, model, encoding) for written, model in zip(about["asked"], models, strict=True)]
    return Models(tuple(map(unhelped, adapters)), encoding, about["refitted"])


def remember_runs(family: Family) -> None:
    """So that a member which becomes the deployed model is known for what it is."""
    for member, fingerprint in enumerate(family.fingerprints):
        stack, number = family.found(family.places[member])
        if isinstance(stack, Models) and stack.encoding is not None:
            remember_run(stack.models[number].wrapped, fingerprint)
