"""Rows and stories as a person reads them on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from holdfast.auditing.audit_files import FileAudit
from holdfast.auditing.intervals import upper_limit
from holdfast.families.entries import Entry, read_manifest
from holdfast.families.store import load_family
from holdfast.guarantees.promise_files import FilePromise
from holdfast.guarantees.promises import Promise, knob_of
from holdfast.reporting.fitted import FittedTable
from holdfast.reporting.listings import family_line
from holdfast.reporting.story import Story


def method_table(
    rows: Sequence[dict[str, Any]],
    paper: dict[tuple[str, str], float] | None = None,
    title: str = "Invalidation rate: how often a retrained model invalidates a counterfactual",
) -> FittedTable:
    """One row per method and kind of change, beside the paper's invalidation rates where they are given."""
    columns = ("method", "change", "found", "rate %", "95 % interval", *(["paper"] if paper else []), "l1", "l2")
    cells = [
        (
            row["method"],
            row["change"],
            f"{row['found']}/{row['rows']}",
            _percent(row["rate"]),
            f"{_percent(row['low'])} - {_percent(row['high'])}",
            *([_percent(paper.get((row["method"], row["change"])))] if paper else []),
            _cost(row["cost_l1"]),
            _cost(row["cost_l2"]),
        )
        for row in rows
    ]
    return FittedTable(title, columns, cells, names=2)


def file_audit_text(result: FileAudit, most: int = 5) -> Group:
    """How many counterfactuals are valid, what is wrong with the others, and how well they hold."""
    counts = result.imported.problems["problem"].value_counts()
    answer = result.imported.counterfactuals
    valid = f"{int(answer.found.sum())} of {len(answer)} counterfactuals are valid and were audited"
    texts = [*_sources(result.model, result.retrained, result.matched), Text(valid, style="bold")]
    for problem, count in counts.items():
        shown = result.imported.problems[result.imported.problems["problem"] == problem].head(most)
        texts.append(Text(f"  {problem}: {count}", style="yellow"))
        texts += [
            Text(f"    {row}: {detail}", style="dim") for row, detail in zip(shown["row"], shown["detail"], strict=True)
        ]
        texts += [Text(f"    and {count - most} more, in problems.csv", style="dim")] if count > most else []
    return Group(*texts, Text(f"\n{result.audit}\n"), *_beside_promise(result))


def _sources(model: str, retrained: str, labels: str) -> list[Text]:
    """What was judged and by what, so that nobody takes one model for another."""
    lines = [f"deployed model: {model}", f"retrained models: {retrained}"] if model else []
    return [Text(line) for line in [*lines, *([labels] if labels else [])]]


def _beside_promise(result: FileAudit) -> list[Text]:
    """The rate promised, and the rate realised, of each kind of change that the promise is for."""
    promise = result.promised
    if promise is None or promise.rate is None or not result.audit.invalidated.size:
        return []
    return [
        Text(
            f"{kind}: promised at most {promise.rate:.1%} on average; realised {part.rate:.1%}, at most "
            f"{upper_limit(part.per_member):.1%} at 95 % confidence\n"
        )
        for kind, part in result.audit.by_kind.items()
        if kind in promise.kinds
    ]


def file_promise_text(result: FilePromise, most: int = 10) -> Group:
    """What is promised, how it was chosen, what models that chose nothing say, and whom nothing is promised."""
    promise = result.promise
    texts: list[Text | FittedTable] = [
        *_sources(result.model, result.retrained, result.labelled),
        Text(f"\n{promise.statement}\n", style="" if promise.promised else "yellow"),
    ]
    if promise.steps:
        texts.append(_curve_table(promise))
    if promise.realised is not None:
        texts.append(_realised_table(promise))
    if promise.promised:
        left = result.left
        more = f" and {len(left) - most} more" if len(left) > most else ""
        labels = f": {', '.join(map(str, left[:most]))}{more}" if len(left) else ""
        texts.append(
            Text(f"not promised, because nothing was found: {len(left)} of {len(result.people)} rows{labels}\n")
        )
    return Group(*texts)


def _curve_table(promise: Promise) -> FittedTable:
    name = knob_of(promise.method)
    rows = [
        (
            row["kind"],
            f"{row['knob']:g}",
            f"{row['found']}/{len(promise.promised_rows)}",
            _percent(row["loss"]),
            _percent(row["bound"]),
            _cost(row["cost_l1"]),
            _cost(row["cost_l2"]),
            "chosen" if row["knob"] == promise.knob else "",
        )
        for row in promise.curve.to_dict("records")
    ]
    columns = ("change", name, "found", "invalidated %", "bound %", "l1", "l2", "")
    return FittedTable(f"What each {name} costs, and could promise", columns, rows)


def _realised_table(promise: Promise) -> FittedTable:
    rows = [
        (
            kind,
            str(len(part.kinds)),
            _percent(promise.rate),
            _percent(part.rate),
            _percent(promise.realised_limit(kind)),
        )
        for kind, part in ({} if promise.realised is None else promise.realised.by_kind).items()
    ]
    columns = ("change", "models", "promised %", "realised %", "95 % upper limit")
    return FittedTable("Promised, and realised by models that chose nothing", columns, rows)


def family_text(entry: Entry) -> Text:
    """All that is known of one family."""
    text = family_line(entry).append(f"\nfolder    {entry.folder}")
    if not entry.complete:
        return text
    manifest = read_manifest(entry.folder)
    if manifest.get("models"):
        return text.append(_estimators_text(manifest))
    family = load_family(entry.folder)
    text.append(f"\nnetworks  {family}\nrecipe    {family.recipe}\ndata      {(family.data or '-')[:20]}")
    text.append(f"\ntorch     {manifest['torch']}")
    if family.accuracy is not None:
        low, high = min(family.accuracy), max(family.accuracy)
        text.append(f"\naccuracy  {low:.1%} to {high:.1%}; did not learn: {list(family.suspects) or 'none'}")
    return text


def _estimators_text(manifest: dict[str, Any]) -> str:
    """Of estimators, which are asked through an encoding that is not kept: what their manifest says."""
    versions = ", ".join(f"{name} {number}" for name, number in manifest["models"][0]["versions"].items())
    lines = [f"{', '.join(manifest['networks'])}", f"data      {(manifest['data'] or '-')[:20]}", versions]
    if manifest["accuracy"]:
        lines.append(f"accuracy  {min(manifest['accuracy']):.1%} to {max(manifest['accuracy']):.1%}")
    if manifest.get("surrogates"):
        lines.append(f"surrogates: {manifest['surrogates']}")
    return "".join(f"\n{line}" for line in lines)


def story_text(story: Story, chosen: str) -> Group:
    opening = Text(f"Applicant {story.person}", style="bold").append(f" ({chosen}) was turned down.\n", style="")
    if story.unlikeness is not None and story.unlikeness > 1:
        opening.append(
            f"They are unusual as they are: {story.unlikeness:.3g} times as far from people classified "
            f"'{story.wanted}' as the limit for advice. The advice does not make them more unusual.\n",
            style="",
        )
    usual = ", ".join(f"{advice.method} {advice.usual:.1%} at {advice.usual_cost:.2f}" for advice in story.advice)
    closing = Text(
        f"The share of the retrained models that accept the advice, and its cost, on average over all {story.people} "
        f"people who were turned down and helped by each: {usual}.\n"
    )
    plans = [
        Text(f"To be classified '{story.wanted}', ").append(advice.method, style="bold")
        .append("\n".join([" advises:", *advice.plan.lines(), ""]), style="")
        for advice in story.advice
    ]  # fmt: skip
    return Group(opening, *plans, closing)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}"


def _cost(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
