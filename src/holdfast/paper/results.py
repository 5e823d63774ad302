"""A study's results on disk: one line of JSON per cell.

    study, cell      the study's name, and a digest of all that decides the cell
    dataset, base_seed, method
    rows             one flat row per kind of change, with the keys of `Audit.rows` and what else a table needs
    each             of the single counterfactuals: which rows were found ("1101"), and for those, in order, what they
                     cost and how many members of each kind invalidate them

Each line has a format number and a checksum of its own. It is written whole and fsynced, so a run that is killed at any
moment loses only the cell it was at. Files of earlier versions are read too: `RENAMED` has what they call a key.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from holdfast.paper.study import Study, check_study
from holdfast.utils.files import append, only_writer, write_text
from holdfast.utils.sealing import Kind, SealError, sealed, unsealed

LINE = Kind("study", "study result", format=1, unsealed=0)
FIELDS = {"study", "cell", "dataset", "base_seed", "method", "rows", "each"}
RENAMED = {"undone": "invalidated", "end_to_end": "found_and_held", "clean": "baseline_flips"}  # of before 0.2


def join(parts: Sequence[str | Path], file: str | Path) -> Path:
    """One file of several, written by as many processes: of the same study, or they are not joined.

    Examples:
        >>> import holdfast as hf
        >>> from holdfast.paper.results import frame, join
        >>> from holdfast.paper.runner import run
        >>> from holdfast.paper.study import Study
        >>> study = Study(
        ...     name="tiny",
        ...     datasets=("german",),
        ...     methods=(("pgd", hf.PGD(levels=2, steps=5)),),
        ...     changes=(("seeds", 2),),
        ...     rows=4,
        ...     recipes={"german": hf.Recipe(hidden=(4,), epochs=1)},
        ... )
        >>> file = run(study, "tiny.jsonl", store="families", workers=1)
        >>> len(frame(join([file, file], "whole.jsonl")))  # a cell counts once
        1
    """
    if isinstance(parts, (str, Path)) or not isinstance(parts, Sequence):
        raise TypeError(f"expected a list of files to join, got {parts!r}")
    missing = [str(part) for part in parts if not Path(part).exists()]
    if missing or not parts:
        raise FileNotFoundError(f"no files to join: {', '.join(missing) or 'none were given'}")
    lines = [line for part in parts for line in read_lines(Path(part), None)]
    names = sorted({line["study"] for line in lines})
    if len(names) > 1:
        raise ValueError(f"these files hold the studies {', '.join(names)}; give each study a file of its own")
    with only_writer(Path(file)):
        return write_text(file, b"".join(map(_text, lines)).decode())


def read(file: str | Path, study: Study | None = None) -> list[dict[str, Any]]:
    """The flat rows of a study's file, also while it runs: one per cell and kind of change.

    Where a setting was changed in between, the newer line of a cell counts; given the ``study``, only its own cells do.
    """
    return [row for line in _newest(checked_path(file), study) for row in line["rows"]]


def frame(file: str | Path, study: Study | None = None) -> pd.DataFrame:
    """One row per dataset, deployed network, method and kind of change of a study's file, also while it runs.

    Where a setting was changed in between, the newer line of a cell counts; given the ``study``, only its own cells do.

    Examples:
        >>> import holdfast as hf
        >>> from holdfast.paper.results import frame
        >>> from holdfast.paper.runner import run
        >>> from holdfast.paper.study import Study
        >>> study = Study(
        ...     name="tiny",
        ...     datasets=("german",),
        ...     methods=(("pgd", hf.PGD(levels=2, steps=5)),),
        ...     changes=(("seeds", 2),),
        ...     rows=4,
        ...     recipes={"german": hf.Recipe(hidden=(4,), epochs=1)},
        ... )
        >>> file = run(study, "tiny.jsonl", store="families", workers=1)
        >>> frame(file)[["dataset", "method", "change", "members", "rows"]].to_dict("records")
        [{'dataset': 'german', 'method': 'pgd', 'change': 'seeds', 'members': 2, 'rows': 4}]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.2, Table 1: invalidation and cost for each
    dataset, method and kind of change.
    """
    return pd.DataFrame(read(file, study))


def each(file: str | Path, study: Study | None = None) -> pd.DataFrame:
    """One row per counterfactual: its cost, and for every kind of change the share of members that invalidate it.

    NaN where nothing was found.

    Examples:
        >>> import holdfast as hf
        >>> from holdfast.paper.results import each
        >>> from holdfast.paper.runner import run
        >>> from holdfast.paper.study import Study
        >>> study = Study(
        ...     name="tiny",
        ...     datasets=("german",),
        ...     methods=(("pgd", hf.PGD(levels=2, steps=5)),),
        ...     changes=(("seeds", 2),),
        ...     rows=4,
        ...     recipes={"german": hf.Recipe(hidden=(4,), epochs=1)},
        ... )
        >>> file = run(study, "tiny.jsonl", store="families", workers=1)
        >>> each(file).columns.tolist()
        ['dataset', 'base_seed', 'method', 'row', 'found', 'cost_l1', 'cost_l2', 'invalidated_seeds']

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1, "Metrics": the paper regresses the
    invalidation of each counterfactual on its cost (R² in Table 1).
    """
    parts = [_each(line) for line in _newest(checked_path(file), study)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _each(line: dict[str, Any]) -> pd.DataFrame:
    each_found, members = line["each"], {row["change"]: row["members"] for row in line["rows"]}
    found = np.array([letter == "1" for letter in each_found["found"]])

    def spread_out(values: Any) -> Any:
        """From found rows to all rows."""
        column = np.full(len(found), np.nan)
        column[found] = values
        return column

    columns = {name: spread_out(each_found[name]) for name in ("cost_l1", "cost_l2")}
    for kind, counts in each_found["invalidated"].items():
        columns[f"invalidated_{kind}"] = spread_out(np.array(counts) / members[kind])
    cell = {name: line[name] for name in ("dataset", "base_seed", "method")}
    return pd.DataFrame({**cell, "row": np.arange(len(found)), "found": found, **columns})


def checked_path(file: Any) -> Path:
    if not isinstance(file, (str, Path)):
        raise TypeError(f"expected the name of a results file, got {file!r}")
    if Path(file).is_dir():
        raise ValueError(f"{file} is a folder; name the file in it, which ends in .jsonl")
    return Path(file)


def _newest(path: Path, study: Study | None) -> list[dict[str, Any]]:
    if study is not None:
        check_study(study)
    if not path.exists():
        raise FileNotFoundError(f"there is no {path}; run(study, file) writes it")
    keys = None if study is None else {cell.key for cell in study.cells}
    newest = {
        (line["dataset"], line["base_seed"], line["method"]): line
        for line in read_lines(path, None if study is None else study.name)
        if keys is None or line["cell"] in keys
    }
    return list(newest.values())


def read_lines(path: Path, study: str | None) -> Iterator[dict[str, Any]]:
    """The whole lines of a file; what a killed writer left of its last one is passed over."""
    *whole, tail = path.read_bytes().split(b"\n")
    for number, text in enumerate([*whole, *_last_line(tail)], start=1):
        where = f"line {number} of {path}"
        try:
            line = unsealed(LINE, text, where)
        except SealError as error:
            raise ValueError(f"{error}; remove the line, and run the study again") from None
        if not set(line) >= FIELDS:
            raise ValueError(f"{where} is not a valid study result (edited, or written by another program); remove it")
        if study is not None and line["study"] != study:
            raise ValueError(f"{path} holds study '{line['study']}', not '{study}'; give each study a file of its own")
        yield _in_todays_words(line)


def _last_line(tail: bytes) -> list[bytes]:
    """What follows the last end of a line, unless it is half a line: an end that was damaged must not hide a line."""
    return [tail] if b"}" in (tail[-1:], tail[-2:-1]) and b'"checksum"' in tail else []


def _in_todays_words(line: dict[str, Any]) -> dict[str, Any]:
    return line | {"rows": [_renamed(row) for row in line["rows"]], "each": _renamed(line["each"])}


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    return {RENAMED.get(name, name): value for name, value in values.items()}


def end_last_line(path: Path) -> None:
    """Cut off what a killed writer left of its last line, or give the line its end if only that is missing."""
    if path.exists():
        contents = path.read_bytes()
        whole = contents.rfind(b"\n") + 1
        if _last_line(contents[whole:]):
            append(path, b"\n")
        elif whole < len(contents):
            os.truncate(path, whole)


def append_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line, whole or not at all."""
    append(path, _text(line))


def _text(line: dict[str, Any]) -> bytes:
    return (json.dumps(sealed(LINE, line), allow_nan=False, separators=(",", ":")) + "\n").encode()


def complete(study: Study, path: Path) -> None:
    """When every cell is there: the file in the study's order, without cells of settings that are no more."""
    if not path.exists():
        return
    lines = {line["cell"]: line for line in read_lines(path, study.name)}
    if all(cell.key in lines for cell in study.cells):
        text = b"".join(_text(lines[cell.key]) for cell in study.cells)
        if text != path.read_bytes():
            write_text(path, text.decode())
