"""Make the tables of docs/choose.md from results/choose.jsonl, which `bench/choose.py --rows-file` writes.

    python docs/make_choice.py

The two tables stand between markers; the words around them are the page's own. Which method the first table names
follows from the rows by `best`: of the methods that a situation allows and that help at least a third as many people as
the cheapest advice does, the one that is invalidated least often, or a cheaper one that is not told apart from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.utils.files import write_text

DOCS = Path(__file__).parent
PAGE = DOCS / "choose.md"
ROWS = DOCS.parent / "results" / "choose.jsonl"

Row = dict[str, Any]

KINDS = {
    "network": "a network",
    "logistic": "logistic regression",
    "trees": "trees",
    "black box": "a black box",
}
# What a row's method is called where the page speaks of it.
CODE = {
    "min-l1": "`MinCost(norm=1)`",
    "margin 0.7": "`Margin(level=0.7)`",
    "margin 0.9": "`Margin(level=0.9)`",
    "pgd+sns": '`make_method("pgd+sns")`',
    "rehearsed 8": "`Rehearsed`, 8 models",
    "rehearsed 32": "`Rehearsed`, 32 models",
    "promise 0.1": "`promise`, rate 10 %",
    "promise 0.05": "`promise`, rate 5 %",
}


# What somebody needs -> the methods that are then to be had.
ALONE = ("margin 0.7", "margin 0.9", "pgd+sns")
SITUATIONS = {
    "the cheapest now": ("min-l1",),
    "it holds; no retrained models": ALONE,
    "it holds; about ten retrained models": (*ALONE, "rehearsed 8"),
    "it holds; retrain at will": (*ALONE, "rehearsed 32"),
    "10 % promised": ("promise 0.1",),
    "5 % promised": ("promise 0.05",),
}


def rows(file: Path = ROWS) -> list[Row]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def of(every: Sequence[Row], model: str, method: str) -> list[Row]:
    """One row per dataset."""
    return [row for row in every if row["model"] == model and row["method"] == method]


# ---- the decision ----


def helps(every: Sequence[Row], model: str, method: str) -> bool:
    """Whether it helps at least a third as many people as the cheapest advice does, on every dataset."""
    cheapest = {row["dataset"]: row["found"] for row in of(every, model, "min-l1")}
    own = of(every, model, method)
    return bool(own) and all(3 * row["found"] >= cheapest[row["dataset"]] for row in own)


def rate(every: Sequence[Row], model: str, method: str) -> float:
    """The invalidation rate, on average over the datasets; a method that helps nobody somewhere has none."""
    own = [row["invalidated"] for row in of(every, model, method)]
    return float("inf") if None in own else sum(own) / len(own)


def best(every: Sequence[Row], model: str, methods: Sequence[str]) -> str | None:
    """The method that is invalidated least often, of those that help enough people; None where none was measured."""
    there = [method for method in methods if of(every, model, method)]
    if len(methods) > 1:
        there = [method for method in there if helps(every, model, method)]
    return min(there, key=lambda method: rate(every, model, method), default=None)


def not_told_apart(every: Sequence[Row], model: str, least: str, methods: Sequence[str]) -> list[str]:
    """The others that help enough people and whose limits of the rate overlap with that one's everywhere."""
    own = {row["dataset"]: row for row in of(every, model, least)}
    found = []
    for method in methods:
        others = of(every, model, method)
        if method == least or not helps(every, model, method):
            continue
        if all(overlap(own[row["dataset"]], row) for row in others):
            found.append(method)
    return found


def overlap(one: Row, other: Row) -> bool:
    if one["invalidated"] is None or other["invalidated"] is None:
        return False
    return bool(one["low"] <= other["high"] and other["low"] <= one["high"])


def decision(every: Sequence[Row]) -> str:
    lines = [["your model", "you need", "use", *datasets_of(every)]]
    for model, words in KINDS.items():
        for need, methods in SITUATIONS.items():
            use = chosen(every, model, methods)
            if use:
                lines.append([words, need, named(every, model, use), *why(every, model, use[0])])
                words = ""
    return table(lines)


def chosen(every: Sequence[Row], model: str, methods: Sequence[str]) -> list[str]:
    """The method that is invalidated least often and those not told apart from it, the cheapest first."""
    least = best(every, model, methods)
    if least is None:
        return []
    same = not_told_apart(every, model, least, methods)
    return sorted([least, *same], key=lambda method: times(every, model, method)) if same else [least]


def named(every: Sequence[Row], model: str, use: Sequence[str]) -> str:
    first, *others = use
    also = ", ".join(f"{CODE[one]} (×{times(every, model, one):.1f})" for one in others)
    return CODE[first] + (f"; not told apart: {also}" if also else "")


def times(every: Sequence[Row], model: str, method: str) -> float:
    """The cost over the cheapest, on average over the datasets."""
    own = of(every, model, method)
    return float(sum(row["times"] for row in own) / len(own))


def why(every: Sequence[Row], model: str, method: str) -> list[str]:
    """What came out on each dataset; a line each, so that the columns are narrow."""
    own = {row["dataset"]: row for row in of(every, model, method)}
    return [unbroken(figures(own[name])) if name in own else "-" for name in datasets_of(every)]


def unbroken(text: str) -> str:
    """One line for each part, and no other line breaks: no-break spaces and hyphens."""
    return text.replace(", ", "<br>").replace(" ", "\N{NO-BREAK SPACE}").replace("-", "\N{NON-BREAKING HYPHEN}")


def datasets_of(every: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in every))


# ---- all that was measured ----


def measured(every: Sequence[Row]) -> str:
    datasets = datasets_of(every)
    parts = []
    for model, words in KINDS.items():
        methods = [method for method in CODE if of(every, model, method)]
        if not methods:
            continue
        lines = [[words.removeprefix("a "), *datasets]]
        for method in methods:
            by = {row["dataset"]: row for row in of(every, model, method)}
            lines.append([CODE[method], *(limits(by[name]) if name in by else "" for name in datasets)])
        lines.append(["*people in common*", *(common(every, model, name) for name in datasets)])
        parts.append(table(lines))
    return "\n\n".join(parts)


def figures(row: Row) -> str:
    """24/24, 42 % (38-46), ×2.9: found, invalidated with its limits, cost over the cheapest."""
    if row["refused"]:
        return "refused"
    if not row["found"]:
        return "nobody found"
    rate = f"{100 * row['invalidated']:.0f} % ({100 * row['low']:.0f}-{100 * row['high']:.0f})"
    return f"{row['found']}/{row['people']}, {rate}, ×{row['times']:.1f}"


def limits(row: Row) -> str:
    if row["refused"] or not row["found"]:
        return figures(row)
    return figures(row) + ("" if row["l1_common"] is None else f", l1 {row['l1_common']:.3g}")


def common(every: Sequence[Row], model: str, dataset: str) -> str:
    own = [row for row in every if row["model"] == model and row["dataset"] == dataset and row["common"] is not None]
    return f"*{own[0]['common']}*" if own else ""


def table(lines: Sequence[Sequence[str]]) -> str:
    head, *body = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *body])


# ---- the page ----

TABLES: dict[str, Callable[[Sequence[Row]], str]] = {"decision": decision, "measured": measured}


def page(text: str, every: Sequence[Row]) -> str:
    """The page with its tables as the rows give them."""
    for name, made in TABLES.items():
        begin, end = f"<!-- {name}: made by docs/make_choice.py -->", f"<!-- end of {name} -->"
        if begin not in text or end not in text:
            raise SystemExit(f"docs/choose.md has no lines '{begin}' and '{end}'; the table goes between them")
        before, rest = text.split(begin, 1)
        text = f"{before}{begin}\n\n{made(every)}\n\n{end}{rest.split(end, 1)[1]}"
    return text


def main() -> None:
    print(write_text(PAGE, page(PAGE.read_text(encoding="utf-8"), rows())))


if __name__ == "__main__":
    main()
