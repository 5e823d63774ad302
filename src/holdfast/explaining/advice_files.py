"""Advice as files: tables for people and programs, and a summary that says what was decided and why.

The folder is read again by letters, and by an audit, which asks for the plans and for who took part in them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from holdfast.explaining.file_audit import Excluded
from holdfast.explaining.frames import as_text, one_type
from holdfast.explaining.person import Change, PersonAdvice, PersonPlan
from holdfast.utils.digests import file_digest
from holdfast.utils.files import all_or_none, appearing, as_path, write_text
from holdfast.utils.sealing import Kind, sealed, unsealed, without_nan
from holdfast.utils.spreadsheets import as_csv

if TYPE_CHECKING:
    from holdfast.explaining.advice import Advice

ADVICE = Kind("advice", "summary of advice", format=1, unsealed=-1)
SUMMARY, PLANS, SCHEMA, PEOPLE = "summary.json", "advice.csv", "schema.toml", "people.jsonl"


def save_advice(advice: Advice, folder: str | Path, also: Mapping[str, str] | None = None) -> list[Path]:
    """advice and changes (.csv and .parquet), not_durable.csv, problems.csv, people.jsonl, schema.toml, texts that are
    to be there ``also`` (name of the file -> text), and summary.json with the checksums of all: every file, or none."""
    folder, in_pandas = as_path(folder, "a folder for the advice"), replace(advice, polars=False)
    tables = {
        "advice": in_pandas.wide(),
        "changes": in_pandas.table(),
        "not_durable": in_pandas.not_durable(),
        "problems": in_pandas.problems,
    }
    with all_or_none(folder) as parts:
        paths = [write_text(parts / f"{name}.csv", as_csv(table, index=False)) for name, table in tables.items()]
        paths += [_write_parquet(parts / f"{name}.parquet", tables[name]) for name in ("advice", "changes")]
        paths.append(write_text(parts / PEOPLE, "".join(map(_person_line, advice.view.people))))
        paths.append(advice.encoding.schema.save(parts / SCHEMA))
        paths += [write_text(parts / name, text) for name, text in (also or {}).items()]
        paths.append(_write_summary(parts / SUMMARY, advice, paths))
    return [folder / path.name for path in paths]


def summary_of(advice: Advice) -> dict[str, Any]:
    """What JSON can say of advice; JSON has no NaN."""
    plain: dict[str, Any] = without_nan(advice.summary())
    return plain


def read_people(path: Path) -> dict[str, PersonAdvice]:
    """What each person may be told, by the text of their label: the lines of people.jsonl. Wishes are not in it."""
    try:
        people = [_person(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} has a line that is no person's advice ({error}); make the advice again") from error
    return {as_text(person.person): person for person in people}


def _person_line(person: PersonAdvice) -> str:
    return json.dumps(without_nan(asdict(replace(person, wish=None))), allow_nan=False, default=str) + "\n"


def _person(values: Mapping[str, Any]) -> PersonAdvice:
    plans, not_durable = (tuple(map(_plan, values[name])) for name in ("plans", "not_durable"))
    return PersonAdvice(**{**values, "plans": plans, "not_durable": not_durable})


def _plan(values: Mapping[str, Any]) -> PersonPlan:
    return PersonPlan(**{**values, "changes": tuple(Change(**change) for change in values["changes"])})


def _write_summary(path: Path, advice: Advice, paths: list[Path]) -> Path:
    from holdfast import __version__

    files = {path.name: file_digest(path) for path in paths}
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


# ---- as an audit reads it ----


def read_advice(given: str | Path) -> tuple[Path, Excluded | None]:
    """The file of counterfactuals, and the models that no audit of it may ask: given a folder of advice, its table of
    plans, or any other file, of which nothing is known."""
    path = Path(given)
    folder = path if path.is_dir() else path.parent
    if (path.is_dir() or path.name == PLANS) and (folder / SUMMARY).is_file():
        return folder / PLANS, _excluded(folder)
    if path.is_dir():
        raise ValueError(f"{path} is a folder without a {SUMMARY}; name a file, or what holdfast explain wrote")
    return path, None


def _excluded(folder: Path) -> Excluded:
    about = unsealed(ADVICE, (folder / SUMMARY).read_bytes(), str(folder / SUMMARY))
    plans = folder / PLANS
    if file_digest(plans) != about["files"][PLANS]:
        raise ValueError(
            f"{plans} is not the file that {folder / SUMMARY} describes (it was changed later); make it again, or "
            "audit a copy in another folder"
        )
    rate = about["decided"]["promise"] if about.get("promise", {}).get("promised") else None
    excluded = about["excluded_from_audit"]
    return Excluded(rate, tuple(excluded["kinds"]), dict(excluded["taken"]), frozenset(excluded["members"]))
