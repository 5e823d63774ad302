"""Audits on disk: a table that opens with pandas, and a description that can be read alone.

An audit is a folder with two files. `audit-<digest>.parquet` has one row per counterfactual:

    origin_0, ...         where a person is, one column per column of the encoded space
    point_0, ...          where they could be
    target, found         the class they want, and whether the search got there
    before                the deployed model's class of the person now; empty where not known
    member_0, ...         each retrained network's class of the counterfactual
    member_0_before, ...  and of the person now; not there where not known
    label                 who the person is; not there where not known

`audit.json` names that file with its checksum, and holds the members' kinds, what the search has seen, the summary and
a checksum of its own. It is written last: whoever is killed at any moment leaves the old audit or the new one, and what
else lies about is swept away by the next to save there. Several processes that save to one folder take turns.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.auditing.audit import Audit
from holdfast.models.identity import OBJECT
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.utils.files import appearing, as_path, only_writer, sweep, write_text
from holdfast.utils.sealing import Kind, SealError, sealed, unsealed, without_nan

AUDIT = Kind("audit", "audit description", format=2, unsealed=1)
DESCRIPTION = "audit.json"
FIELDS = {"file", "sha256", "rows", "columns", "kinds", "classes", "seen", "before_known", "summary"}
INTEGER_TYPES = (np.int8, np.int16, np.int32, np.int64)


def save_audit(audit: Audit, folder: str | Path) -> Path:
    """Write an audit to a folder, in the place of the one that may be there, and return the folder.

    The table opens with pandas (``audit-<digest>.parquet``, one row per counterfactual), and ``audit.json`` describes
    it, with its checksum. The description is written last, so that an audit is never there by half.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> x, found = torch.zeros(1, 1), torch.tensor([True])
        >>> answer = hf.Counterfactuals(x, x + 1, torch.tensor([1]), found)
        >>> said = torch.tensor([[1], [0]])  # the classes that two models give
        >>> result = hf.Audit(said, answer, kinds=("seeds", "seeds"))
        >>> folder = hf.save_audit(result, "audit of March")
        >>> hf.load_audit(folder).rate
        0.5
    """
    if not isinstance(audit, Audit):
        raise TypeError(f"expected an Audit, got {type(audit).__name__}; audit(counterfactuals, family) makes one")
    folder, contents = as_path(folder, "a folder"), _as_parquet(audit)
    about = _about(audit, hashlib.sha256(contents).hexdigest())
    with only_writer(folder / DESCRIPTION, wait=True):
        sweep(folder, "audit-*", age=0)
        with appearing(folder / about["file"]) as file:
            file.write(contents)
        write_text(folder / DESCRIPTION, json.dumps(sealed(AUDIT, about), indent=1, allow_nan=False) + "\n")
        for path in folder.glob("audit-*.parquet"):
            if path.name != about["file"] and re.fullmatch(r"audit-[0-9a-f]{20}\.parquet", path.name):
                path.unlink(missing_ok=True)
    return folder


def load_audit(folder: str | Path) -> Audit:
    """Read an audit back, on the CPU, after checking that both files are whole and belong together.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> x, found = torch.zeros(1, 1), torch.tensor([True])
        >>> answer = hf.Counterfactuals(x, x + 1, torch.tensor([1]), found)
        >>> said = torch.tensor([[1], [0]])  # the classes that two models give
        >>> result = hf.Audit(said, answer, kinds=("seeds", "bootstrap"))
        >>> folder = hf.save_audit(result, "audit of March")
        >>> hf.load_audit("audit of March").kinds
        ('seeds', 'bootstrap')
    """
    folder = as_path(folder, "a folder that save_audit has written")
    about = _read_description(folder)
    path = folder / about["file"]
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder / DESCRIPTION} names {path.name}, which is missing; copy the whole folder, or save the "
            "audit again"
        )
    contents = path.read_bytes()
    digest = hashlib.sha256(contents).hexdigest()
    if digest != about["sha256"]:
        raise ValueError(
            f"{path} is not the file that its {DESCRIPTION} describes (changed or cut short): expected the sha256 "
            f"{about['sha256']}, got {digest}; copy the whole folder again, or save the audit again"
        )
    table = pd.read_parquet(io.BytesIO(contents), engine="pyarrow")
    _check_shape(path, table, about)
    return _as_audit(table, about)


# ---- the table ----


def _names(columns: int, members: int, before: bool, labelled: bool) -> dict[str, list[str]]:
    """The table's columns, by what they hold, in their order."""
    points = {name: [f"{name}_{column}" for column in range(columns)] for name in ("origin", "point")}
    answers = {"member": [f"member_{member}" for member in range(members)]}
    answers["member_before"] = [f"member_{member}_before" for member in range(members) if before]
    return points | {name: [name] for name in ("target", "found", "before")} | answers | {"label": ["label"] * labelled}


def _as_parquet(audit: Audit) -> bytes:
    answer = audit.counterfactuals
    names = _names(answer.origin.shape[1], len(audit.kinds), audit.before is not None, answer.labels is not None)
    table: dict[str, Any] = {}
    for name in ("origin", "point"):
        table |= zip(names[name], _floats(name, getattr(answer, name)).T, strict=True)
    table["target"] = _small("target", answer.target)
    table["found"] = answer.found.cpu().numpy()
    before = np.zeros(len(answer), np.int8) if answer.before is None else _small("before", answer.before)
    table["before"] = pd.arrays.IntegerArray(before, np.full(len(answer), answer.before is None))
    table |= zip(names["member"], _small("predictions", audit.predictions), strict=True)
    if audit.before is not None:
        table |= zip(names["member_before"], _small("before", audit.before), strict=True)
    if answer.labels is not None:
        table["label"] = _plain(answer.labels)
    return bytes(pd.DataFrame(table).to_parquet(engine="pyarrow", index=False))


def _as_audit(table: pd.DataFrame, about: dict[str, Any]) -> Audit:
    known, kinds = about["before_known"], tuple(about["kinds"])
    names = _names(about["columns"], len(kinds), known["members"], about.get("labelled", False))

    def numbers(name: str) -> Tensor:
        return torch.from_numpy(np.array(table[names[name]].to_numpy(), order="C"))  # a copy: the table is read-only

    def classes(name: str) -> Tensor:
        return torch.from_numpy(np.array(table[names[name]].to_numpy(dtype=np.int64).T, order="C"))

    return Audit(
        classes("member"),
        Counterfactuals(
            numbers("origin"),
            numbers("point"),
            classes("target")[0],
            numbers("found")[:, 0],
            about["classes"],
            frozenset(about["seen"]),
            classes("before")[0] if known["deployed"] else None,
            labels=pd.Index(table["label"], name=None) if about.get("labelled", False) else None,
        ),
        kinds,
        classes("member_before") if known["members"] else None,
        about.get("surrogates", ""),
        about.get("refitted", False),
    )


def _floats(name: str, values: Tensor) -> NDArray[Any]:
    if values.dtype not in (torch.float32, torch.float64) or values.ndim != 2 or not values.shape[1]:
        raise ValueError(
            f"{name} must be float32 or float64 of shape (n, d) to be kept to the last bit, got {values.dtype} of "
            f"{tuple(values.shape)}; use {name}.double()"
        )
    return values.detach().cpu().numpy()


def _plain(labels: pd.Index[Any]) -> NDArray[Any]:
    """Labels as a file keeps them: whole numbers and text as they are, others as text."""
    kept = pd.api.types.infer_dtype(labels, skipna=False) in ("integer", "string")
    return labels.to_numpy() if kept else np.array([str(label) for label in labels], dtype=object)


def _small(name: str, classes: Tensor) -> NDArray[Any]:
    """Classes in the smallest integers that hold them all."""
    if classes.is_floating_point() or classes.is_complex():
        raise ValueError(f"{name} must be class indices, got {classes.dtype}; use logits.argmax(-1)")
    values = classes.detach().cpu().numpy().astype(np.int64)
    least, most = (values.min(), values.max()) if values.size else (0, 0)
    fits = (kind for kind in INTEGER_TYPES if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
    return values.astype(next(fits))


def _check_shape(path: Path, table: pd.DataFrame, about: dict[str, Any]) -> None:
    members, before = len(about["kinds"]), about["before_known"]["members"]
    labelled = about.get("labelled", False)
    count = 2 * about["columns"] + len(("target", "found", "before")) + members * (1 + before) + labelled
    differing: list[str] = []
    if about["columns"] <= table.shape[1]:  # else their names could be more than there is memory for
        expected = [name for part in _names(about["columns"], members, before, labelled).values() for name in part]
        differing = sorted({*table.columns} ^ {*expected})
    if table.shape != (about["rows"], count) or differing:
        raise ValueError(
            f"{path} has {len(table)} rows and {table.shape[1]} columns, but its {DESCRIPTION} says "
            f"{about['rows']} and {count} (differing: {', '.join(differing[:5]) or 'none'}); save the audit again"
        )


# ---- the description ----


def _about(audit: Audit, digest: str) -> dict[str, Any]:
    from holdfast import __version__  # here, since the package loads this module before it has one

    answer = audit.counterfactuals
    return (
        {
            "version": __version__,
            "file": _file(digest),
            "sha256": digest,
            "rows": len(answer),
            "columns": answer.origin.shape[1],
            "classes": answer.classes,
            "before_known": {"deployed": answer.before is not None, "members": audit.before is not None},
            "summary": without_nan(audit.summary().to_dict("records")),
            "kinds": list(audit.kinds),
            "seen": sorted(name for name in answer.seen if not name.startswith(OBJECT)),
        }
        | ({"labelled": True} if answer.labels is not None else {})
        | ({"surrogates": audit.surrogates, "refitted": audit.refitted} if audit.refitted or audit.surrogates else {})
    )


def _file(digest: str) -> str:
    return f"audit-{digest[:20]}.parquet"


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if not path.is_file():
        what = "there is no folder" if not folder.exists() else f"there is no {DESCRIPTION} in"
        raise FileNotFoundError(f"{what} {folder}; name a folder that save_audit(audit, folder) has written")
    again = "name a folder that save_audit(audit, folder) has written, or save the audit again"
    try:
        about = unsealed(AUDIT, path.read_bytes(), str(path))
    except SealError as error:
        raise SealError(f"{error}; {again}") from None
    if not _complete(about):
        raise ValueError(f"{path} is not a valid audit description (edited, or written by another program); {again}")
    return about


def _complete(about: dict[str, Any]) -> bool:
    """Whether all is there that an audit is made of, and of its kind."""
    if not set(about) >= FIELDS:
        return False
    words, known = [about["kinds"], about["seen"]], about["before_known"]
    return (
        isinstance(about["sha256"], str)
        and about["file"] == _file(about["sha256"])
        and all(type(about[name]) is int for name in ("rows", "columns"))
        and (about["classes"] is None or type(about["classes"]) is int)
        and all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in words)
        and isinstance(known, dict)
        and all(type(known.get(name)) is bool for name in ("deployed", "members"))
        and isinstance(about.get("surrogates", ""), str)
        and isinstance(about.get("refitted", False), bool)
        and isinstance(about.get("labelled", False), bool)
    )
