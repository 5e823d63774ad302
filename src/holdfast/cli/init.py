"""`holdfast init`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import errors_as_sentences
from holdfast.utils.terminal import console

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.tabular.inspection import Inspection


def init(
    file: Annotated[Path, typer.Argument(help="The table that the model was trained on (.csv or .parquet).")],
    label: Annotated[str, typer.Option(help="The column with the classes.")],
    index: Annotated[str | None, typer.Option(help="The column of row labels, which is no feature.")] = None,
    out: Annotated[Path, typer.Option(help="The schema's file, .toml.")] = Path("schema.toml"),
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Read a table and write a schema with comments, for you to say what people can change."""
    with errors_as_sentences():
        _check_out(out, force)
        from holdfast.tabular.identifying import labelled_by
        from holdfast.tabular.reading import read_table
        from holdfast.utils.files import write_text

        table = read_table(file)
        if index is not None:
            table = labelled_by(table, index, what=str(file), repeats=True)
        seen = _inspected(table, label, file)
        write_text(out, seen.to_toml(guide=True))
        if quiet:
            return
        found = _summary(seen, table, file, index, out)
        console().print(json.dumps(found, indent=1) if as_json else _text(found))


def _check_out(out: Path, force: bool) -> None:
    if out.suffix.lower() != ".toml":
        raise ValueError(f"--out {out}: the schema has comments, which need TOML; give it a name that ends in .toml")
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; name a file in it")
    if out.exists() and not force:
        raise ValueError(f"{out} is there already and was not changed; name another file with --out, or pass --force")


def _inspected(table: pd.DataFrame, label: str, file: Path) -> Inspection:
    from holdfast.tabular.inspection import inspect

    try:
        return inspect(table, label)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def _summary(seen: Inspection, table: pd.DataFrame, file: Path, index: str | None, out: Path) -> dict[str, Any]:
    schema = seen.schema
    counts = table[schema.label].value_counts()
    rows = dict(zip(counts.index.tolist(), counts.tolist(), strict=True))
    return {
        "file": str(file),
        "schema": str(out),
        "rows": len(table),
        "columns": table.shape[1],
        "label": schema.label,
        "classes": [{"class": one, "rows": rows[one]} for one in schema.classes],
        "features": list(schema.names),
        "fixed": [{"feature": finding.columns[0], "why": finding.sentence} for finding in seen.fixed],
        "left_out": [{"column": finding.columns[0], "why": finding.sentence} for finding in seen.left_out],
        "asked": [{"feature": finding.columns[0], "why": finding.sentence} for finding in seen.asked],
        "next": _next(schema.classes[-1], file, index, out),
    }


def _next(wanted: Any, file: Path, index: str | None, out: Path) -> str:
    """The command to run when the schema has been looked over; words in capitals are for the reader to fill in."""
    labels = [] if index is None else ["--index", index]
    words = ["holdfast", "explain", "--data", str(file), "--schema", str(out), *labels, "--people", "PEOPLE.csv"]
    models = ["--model", "MODEL", "--retrain", "bootstrap:96", "--hold", "0.9"]
    return shlex.join([*words, *models, "--want", str(wanted), "--out", "advice"])


def _text(found: dict[str, Any]) -> str:
    classes = ", ".join(f"{one['class']!r} ({one['rows']:,} rows)" for one in found["classes"])
    fixed = {item["feature"] for item in found["fixed"]}
    lines = [
        f"{found['file']}: {found['rows']:,} rows, {found['columns']:,} columns",
        f"label {found['label']!r}: {classes}",
        f"{len(found['features']):,} features, of which {len(fixed):,} start as not changeable",
        *_listed("Left out:", found["left_out"]),
        *_listed("Not changeable:", found["fixed"]),
        *_listed("For you to decide:", found["asked"]),
        f"Wrote {found['schema']}. Look it over: no table says what a person can change. Then, for example:",
        f"  {found['next']}",
    ]
    return "\n".join(lines)


def _listed(title: str, items: list[dict[str, Any]], most: int = 12) -> list[str]:
    if not items:
        return []
    more = [f"  ... and {len(items) - most:,} more in the file's comments"] if len(items) > most else []
    return [title, *(f"  {' '.join(item['why'].split())}" for item in items[:most]), *more]
