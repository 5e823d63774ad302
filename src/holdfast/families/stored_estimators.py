"""Members that are estimators, as a store keeps them: the bytes of a skops file each, and how they are asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from holdfast.families.architecture import State
from holdfast.families.entries import StoreError
from holdfast.families.estimator_data import asked_like
from holdfast.families.packing import unpacked, versions
from holdfast.families.table_models import TableModels, encoding_digest
from holdfast.models.frameworks.estimators import Question
from holdfast.models.identity import remember_run
from holdfast.models.questions.asking import Classes, Feed
from holdfast.tabular.encoding import Encoding

if TYPE_CHECKING:
    from holdfast.families.family import Family

FED = ("takes", "as_array", "categories", "one_hot")  # what a manifest says of a `Feed`, beside its columns


def as_tensor(contents: bytes) -> Tensor:
    return torch.frombuffer(bytearray(contents), dtype=torch.uint8)


def as_bytes(tensor: Tensor) -> bytes:
    return tensor.numpy().tobytes()


def described(stack: TableModels) -> dict[str, Any]:
    """What a manifest says of them: how they are asked, for which encoding, and by which versions they were fitted."""
    asked = stack.models[0].ask if stack.models else None
    return {
        "asked": _plain(asked) if isinstance(asked, Question) else None,
        "encoding": encoding_digest(stack.encoding),
        "refitted": stack.refitted,
        "versions": versions(stack.models[0].own) if stack.models else {},
    }


def _plain(question: Question) -> dict[str, Any]:
    own = {name: getattr(question, name) for name in ("name", "outputs", "pairs", "decides", "settles")}
    given, classes = question.feed, question.classes
    feeding = {name: getattr(given, name) for name in FED} | {"columns": list(given.columns)}
    return {**own, **feeding, "places": list(classes.places), "note": classes.note}


def _question(about: dict[str, Any], encoding: Encoding, own: Any) -> Question:
    classes = Classes(encoding, tuple(np.asarray(own.classes_).tolist()), tuple(about["places"]), about["note"])
    given = Feed(encoding, columns=tuple(about["columns"]), **{name: about[name] for name in FED if name in about})
    return Question(
        own,
        about["name"],
        given,
        about["outputs"],
        classes,
        pairs=about["pairs"],
        decides=about["decides"],
        settles=about["settles"],
    )


def read_estimators(folder: Path, about: dict[str, Any], state: State, encoding: Encoding | None) -> TableModels:
    """The members again, asked through an encoding like the one that they were made with."""
    if encoding is None:
        raise StoreError(
            f"{folder} holds estimators, which are asked about tables in the user's units; pass the encoding that they "
            "were made with: load_family(folder, encoding=encoding)"
        )
    if encoding_digest(encoding) != about["encoding"]:
        raise StoreError(
            f"{folder} holds estimators that were made with another encoding; fit it to the same table and schema, or "
            "make the family again"
        )
    estimators = [unpacked(as_bytes(state[str(place)])) for place in range(len(state))]
    members = [asked_like(_question(about["asked"], encoding, own), own, encoding) for own in estimators]
    return TableModels(tuple(members), encoding, about["refitted"])


def remember_runs(family: Family) -> None:
    """So that a member which becomes the deployed model is known for what it is."""
    for member, fingerprint in enumerate(family.fingerprints):
        stack, place = family.found(family.places[member])
        if isinstance(stack, TableModels):
            remember_run(stack.models[place].own, fingerprint)
