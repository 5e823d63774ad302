"""Make docs/results.md from results/ and the words of results.template.md; with --figures, make the figures as well.

    python docs/make_results.py --figures

The tables, the shares and the list of cells out of tolerance come from the files in results/. The page is not made if a
cell is out of tolerance and `REASONS` has no reason for it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd

from holdfast.paper.comparison import beside, is_within, reached
from holdfast.paper.declared import PAPER
from holdfast.paper.figures.gallery import draw
from holdfast.paper.reproduce import Reproduction
from holdfast.paper.tables import LEGEND, markdown, sheets
from holdfast.utils.files import write_text

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
READINGS = ("release", "text")

# Why a cell of the release reading is out of tolerance: dataset, method, quantity (* for any) -> a heading of the page.
REASONS = {
    ("ctg", "*", "iv_loo"): "batches",
    ("heloc", "*", "iv_loo"): "batches",
    ("taiwan", "*", "iv_loo"): "batches",
    ("german", "min-l2-art*", "*"): "caps",
    ("seizure", "min-l2-art", "*"): "caps",
    ("german", "*", "iv_loo"): "draw",
    ("seizure", "latent", "*"): "latent",
    ("heloc", "latent", "*"): "latent",
    ("seizure", "*", "*"): "seizure",
    ("ctg", "*", "*"): "ctg",
    ("taiwan", "*", "*"): "taiwan",
    ("*", "pgd", "iv_seeds"): "pgd",
    ("*", "min-l1-art", "cost_l1"): "l1",
    ("warfarin", "*", "iv_loo"): "warfarin",
}


# What a column of a file in results/ is called on the page.
HEADINGS = {"undone": "invalidated", "drawn anew": "drawn again"}


def flat(name: str) -> pd.DataFrame:
    lines = (RESULTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return pd.DataFrame([json.loads(line) for line in lines])


def per_base(rows: pd.DataFrame) -> pd.DataFrame:
    """Which judged cells are within tolerance: one column per deployed model."""
    columns = {}
    for seed, own in rows.groupby("base_seed"):
        cells = beside(own).set_index(["dataset", "method", "quantity"])["within"]
        columns[seed] = cells[cells.notna()].astype(bool)
    return pd.DataFrame(columns)


def shares(reading: str, rows: pd.DataFrame) -> dict[str, str]:
    counted = reached(beside(rows)).query("group == 'all'").set_index("kind")
    bases = per_base(rows)
    return {
        **{
            f"{reading}_{kind}": f"{line['within']} of {line['cells']} ({line['share']:.0%})"
            for kind, line in counted.to_dict("index").items()
        },
        f"{reading}_bases": f"{bases.mean().min():.0%} to {bases.mean().max():.0%}",
        f"{reading}_any": f"{bases.any(axis=1).mean():.0%}",
    }


def counts(reading: str, rows: pd.DataFrame) -> dict[str, str]:
    """How many cells of some groups are within tolerance, for the sentences of the page."""
    cells = beside(rows)
    judged = cells[cells["within"].notna()]
    sns = judged[judged["method"].str.endswith("+sns")]
    iv = sns["quantity"].str.startswith("iv")
    plain = judged[judged["quantity"].str.startswith("iv") & ~judged["method"].str.endswith("+sns")]
    same = judged[~judged["dataset"].isin(["ctg", "taiwan"])]  # scaled alike in both readings
    found = {"sns_iv": sns[iv], "sns_cost": sns[~iv], "plain_iv": plain, "same": same}
    found["latent"] = judged[judged["method"] == "latent"]
    return {f"{reading}_{name}": f"{int(own['within'].sum())} of {len(own)}" for name, own in found.items()}


def reason(dataset: str, method: str, quantity: str) -> str:
    for patterns, heading in REASONS.items():
        if all(fnmatch(one, pattern) for one, pattern in zip((dataset, method, quantity), patterns, strict=True)):
            return heading
    raise SystemExit(f"{dataset} {method} {quantity} is out of tolerance and REASONS says nothing about it")


def out_of_tolerance(rows: pd.DataFrame) -> str:
    """One row per cell, sorted by reason."""
    comparison, within = beside(rows), per_base(rows).sum(axis=1)
    words = {"iv_loo": "IV, leave one out", "iv_seeds": "IV, new seeds", "cost_l1": "l1 cost", "cost_l2": "l2 cost"}
    lines = []
    for cell in comparison[comparison["within"].eq(False)].to_dict("records"):
        key = (str(cell["dataset"]), str(cell["method"]), str(cell["quantity"]))
        lines.append(
            {
                "reason": f"[{reason(*key)}](#{reason(*key)})",
                "dataset": key[0],
                "method": key[1],
                "quantity": words[key[2]],
                "ours": f"{cell['ours']:.2f} ± {cell['over_bases']:.2f}",
                "paper": f"{cell['printed']:.2f} ± {cell['printed_spread']:.2f}",
                "within": f"{within[key]} of {rows['base_seed'].nunique()}",
            }
        )
    return table(sorted(lines, key=lambda line: line["reason"]))


def with_kept_batches(rows: pd.DataFrame) -> dict[str, str]:
    """How many cells would be within tolerance if left-out rows kept the deployed model's batches on three datasets."""
    kept = {(row["dataset"], row["method"]): row["masked"] for row in saved("left_out") if row["dataset"] != "german"}
    cells = beside(rows)
    judged = cells[cells["within"].notna()]
    mended = 0
    for cell in judged[judged["quantity"] == "iv_loo"].to_dict("records"):
        rate = kept.get((cell["dataset"], cell["method"]))
        if rate is not None:
            within = is_within("iv_loo", rate, cell["printed"], cell["printed_spread"])
            mended += bool(within) - bool(cell["within"])
    total = int(judged["within"].sum()) + mended
    return {"kept_mended": str(mended), "kept_total": f"{total} of {len(judged)} ({total / len(judged):.0%})"}


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as Markdown."""
    lines = [[HEADINGS.get(name, name) for name in rows[0]], ["---"] * len(rows[0])]
    lines += [[f"{value:.3g}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def saved(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return rows


def fitting(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The paper's row and the variants that explain something about it: German, min-l2."""
    shown = ("paper", "margin, free, rate 0.01", "class, free, rate 0.01, decay 2")
    shown += ("class, capped, rate 0.001, decay 2", "class, capped, rate 0.05, decay 0.5")
    own = [row for row in rows if row["dataset"] == "german" and row["norm"] == 2]
    return [row for row in own if row["variant"].startswith(shown)]


def _telling(row: dict[str, Any]) -> bool:
    """SNS's settings, and PGD itself where it is printed or nearly explained."""
    printed_or_near = row["trained"].startswith("as printed") or row["trained"] == "batch 32"
    return row["trained"] == "settings of SNS" or (row["method"] == "pgd" and printed_or_near)


def page() -> str:
    rows = flat("paper")
    readings = {name: rows[rows["settings"] == name] for name in READINGS}
    values = {"legend": LEGEND.replace("*", r"\*"), "out": out_of_tolerance(readings["release"])}
    for name, own in readings.items():
        titles = ("table_1", "settings", "iv_table", "costs", "shares")
        values |= shares(name, own) | counts(name, own)
        values |= {
            f"{name}_{title}": markdown(replace(sheet, title=f"{sheet.title} ({name})"))
            for title, sheet in zip(titles, sheets(own, PAPER[name]), strict=True)
        }
    values |= with_kept_batches(readings["release"])
    values["matched"] = table(saved("matched"))
    values["seizure"] = table([row for row in saved("seizure") if "sns" in row["method"] or _telling(row)])
    values["left_out"] = table(saved("left_out"))
    values["variants"] = table(fitting(saved("art_variants")))
    values["versions"] = ", ".join(
        f"{name} {' and '.join(rows[name].unique())}" for name in ("holdfast", "torch", "numpy")
    )
    text = (DOCS / "results.template.md").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", action="store_true")
    if parser.parse_args().figures:
        rows = flat("paper")
        results = [Reproduction(PAPER[name], rows[rows["settings"] == name]) for name in READINGS]
        draw(results, [flat("sensitivity")], DOCS / "figures", progress=True)
    print(write_text(DOCS / "results.md", page()))


if __name__ == "__main__":
    main()
