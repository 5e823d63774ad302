"""What an auditor asks of advice later: from which rows, which model and which retrained models it was made."""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from holdfast.explaining.saving import ASKED, answers_of, table_hash
from holdfast.families.kinds import what_changes
from holdfast.families.resemblance import compared_rows
from holdfast.models.identity import known_run
from holdfast.models.model import predict
from holdfast.utils.digests import file_digest

if TYPE_CHECKING:
    from holdfast.explaining.explainer import Explainer

DECIMALS = 2  # of the answers that are hashed: one model gives them on every machine
FILE = "file:"  # begins the name of a model that was read from one


def provenance(explainer: Explainer) -> dict[str, Any]:
    """All that JSON can say of where advice comes from, and does not depend on the people."""
    return {
        "data": _data(explainer),
        **_model(explainer),
        **_retrained(explainer),
        "accuracy": _accuracy(explainer),
        "versions": _versions(getattr(explainer.deployed, "wrapped", None)),
    }


def _data(explainer: Explainer) -> dict[str, Any]:
    schema = explainer.encoding.schema
    return {
        "rows": len(explainer.rows),
        "features": len(schema.names),
        "label": schema.label,
        "classes": list(schema.classes),
        "sha256": table_hash(explainer.encoding, explainer.rows),
    }


def _model(explainer: Explainer) -> dict[str, str]:
    """What tells the deployed model from another one: the hash of its file, or else of its answers."""
    read, run = explainer.model, known_run(explainer.deployed) or ""
    if run.startswith(FILE):
        return {"model_sha256": run.removeprefix(FILE), "model_sha256_of": "its file"}
    if isinstance(read, (str, Path)) and Path(read).is_file():
        return {"model_sha256": file_digest(read), "model_sha256_of": "its file"}
    answers = answers_of(explainer)
    rows = f"{len(answers)} rows" if len(answers) == ASKED else f"all {len(answers)} rows"
    hashed = f"its answers to {rows} of the table, rounded to {DECIMALS} decimals"
    return {"model_sha256": _hash_of(answers), "model_sha256_of": hashed}


def _hash_of(answers: Sequence[Sequence[float]]) -> str:
    rounded = [[round(logit, DECIMALS) + 0.0 for logit in row] for row in answers]  # + 0.0: there is no -0.0
    return hashlib.sha256(repr(rounded).encode()).hexdigest()


def _retrained(explainer: Explainer) -> dict[str, Any]:
    """Where the retrained models come from, and what each kind of change changes; nothing where there are none."""
    if explainer.retrain is None:
        return {"retrained_from": None, "kinds_of_change": {}}
    family = explainer.family
    sentences = {kind: what_changes(kind) for kind in dict.fromkeys(family.kinds)}
    return {"retrained_from": explainer.retrained_from(family), "kinds_of_change": sentences}


def _accuracy(explainer: Explainer) -> dict[str, Any]:
    """Whether the retrained models are as good as the deployed one; nothing where nobody knows the classes."""
    if explainer.encoding.schema.label not in explainer.rows:
        return {}
    x, y, where = compared_rows(explainer.encoding, explainer.rows, None)
    accuracy = {
        "rows": len(x),
        "of": where,
        "deployed": float((predict(explainer.deployed, x).cpu() == y).double().mean()),
    }
    if explainer.retrain is None:
        return accuracy
    audit = (explainer.roles.audit.predict(x).cpu() == y).double().mean(1)
    return accuracy | {"audit": {"least": float(audit.min()), "greatest": float(audit.max())}}


def _versions(model: Any) -> dict[str, str]:
    """Of what the advice was made with; the library of the user's model is one of them."""
    from holdfast import __version__

    known = {"holdfast": __version__, "python": platform.python_version(), "torch": str(torch.__version__)}
    library = type(model).__module__.partition(".")[0]
    version = None if library == "__main__" else getattr(sys.modules.get(library), "__version__", None)
    return known if version is None else known | {library: str(version)}
