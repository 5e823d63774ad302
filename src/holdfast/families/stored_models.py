"""Members that are models of other libraries, as a store keeps them: a file each, and how it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.families.architecture import State
from holdfast.families.entries import StoreError
from holdfast.families.packing import Packed, PackingError, unpacked, versions
from holdfast.families.table_models import TableModels, encoding_digest
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapting import read_adapter, unhelped
from holdfast.models.identity import remember_run
from holdfast.tabular.encoding import Encoding

if TYPE_CHECKING:
    from holdfast.families.family import Family


def as_tensor(contents: bytes) -> Tensor:
    return torch.frombuffer(bytearray(contents), dtype=torch.uint8)


def as_bytes(tensor: Tensor) -> bytes:
    return tensor.numpy().tobytes()


def state_of(files: Iterable[Packed]) -> State:
    """Files as tensors, each under its number and the end of a file's name: 3.skops."""
    return {f"{place}.{file.format}": as_tensor(file.contents) for place, file in enumerate(files)}


def files_of(state: State) -> list[Packed]:
    numbered = {int(name.partition(".")[0]): name for name in state}
    return [Packed(numbered[place].partition(".")[2], as_bytes(state[numbered[place]])) for place in sorted(numbered)]


def described(stack: TableModels) -> dict[str, Any]:
    """What a manifest says of them: how each is asked, for which encoding, and by which versions they were fitted."""
    return {
        "asked": [_adapter(model.ask).written for model in stack.models],
        "encoding": encoding_digest(stack.encoding),
        "refitted": stack.refitted,
        "versions": versions([model.own for model in stack.models]),
    }


def _adapter(ask: Any) -> Adapter:
    if not isinstance(ask, Adapter):
        raise PackingError(f"how a model is asked cannot be written down: {ask!r}")
    return ask


def read_models(folder: Path, about: dict[str, Any], state: State, encoding: Encoding | None) -> TableModels:
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
    adapters = [read_adapter(written, own, encoding) for written, own in zip(about["asked"], models, strict=True)]
    return TableModels(tuple(map(unhelped, adapters)), encoding, about["refitted"])


def remember_runs(family: Family) -> None:
    """So that a member which becomes the deployed model is known for what it is."""
    for member, fingerprint in enumerate(family.fingerprints):
        stack, place = family.found(family.places[member])
        if isinstance(stack, TableModels):
            remember_run(stack.models[place].own, fingerprint)
