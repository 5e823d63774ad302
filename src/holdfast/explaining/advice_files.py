"""Advice as files: tables for people and programs, and a summary that says what was decided and why."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from holdfast.explaining.advice_folder import ADVICE, SUMMARY
from holdfast.explaining.frames import one_type
from holdfast.utils.digests import file_digest
from holdfast.utils.files import all_or_none, appearing, as_path, write_text
from holdfast.utils.sealing import sealed
from holdfast.utils.spreadsheets import as_csv

if TYPE_CHECKING:
    from holdfast.explaining.advice import Advice

SCHEMA = "schema.toml"


def save_advice(advice: Advice, folder: str | Path, also: Mapping[str, str] | None = None) -> list[Path]:
    """advice and changes (.csv and .parquet), not_durable.csv, problems.csv, schema.toml, texts that are to be there
    ``also`` (name of the file -> text), and summary.json with the checksums of all these: every file, or none."""
    folder, own = as_path(folder, "a folder for the advice"), replace(advice, polars=False)
    tables = {"advice": own.wide(), "changes": own.table(), "not_durable": own.not_durable(), "problems": own.problems}
    with all_or_none(folder) as parts:
        paths = [write_text(parts / f"{name}.csv", as_csv(table, index=False)) for name, table in tables.items()]
        paths += [_write_parquet(parts / f"{name}.parquet", tables[name]) for name in ("advice", "changes")]
        paths.append(advice.encoding.schema.save(parts / SCHEMA))
        paths += [write_text(parts / name, text) for name, text in (also or {}).items()]
        paths.append(_write_summary(parts / SUMMARY, advice, paths))
    return [folder / path.name for path in paths]


def summary_of(advice: Advice) -> dict[str, Any]:
    """What JSON can say of advice; JSON has no NaN."""
    plain: dict[str, Any] = _without_nan(advice.summary())
    return plain


def _write_summary(path: Path, advice: Advice, paths: list[Path]) -> Path:
    from holdfast import __version__

    files = {one.name: file_digest(one) for one in paths}
    about = {"version": __version__, **summary_of(advice), "files": files}
    return write_text(path, json.dumps(sealed(ADVICE, about), indent=1, allow_nan=False, default=str) + "\n")


def _write_parquet(path: Path, table: pd.DataFrame) -> Path:
    """A Parquet column has one type, so values of several types are text there."""
    plain = pd.DataFrame({name: one_type(table[name]) for name in table.columns})
    contents = io.BytesIO()
    plain.to_parquet(contents, index=False)
    with appearing(path) as file:
        file.write(contents.getvalue())
    return path


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _without_nan(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
