"""Rows and stories as a person reads them on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from holdfast.auditing.intervals import upper_limit
from holdfast.explaining.file_audit import FileAudit
from holdfast.families.entries import Entry, read_manifest
from holdfast.families.store import load_family
from holdfast.reporting.listings import family_line
from holdfast.reporting.story import Story


def method_table(
    rows: Sequence[dict[str, Any]],
    paper: dict[tuple[str, str], float] | None = None,
    title: str = "Invalidation rate: how often a retrained model invalidates a counterfactual",
) -> Table:
    """One row per method and kind of change, beside the paper's invalidation rates where they are given."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))  # fits 80 columns
    for name in ("method", "change"):
        table.add_column(name, no_wrap=True)
    for name in ("found", "rate %", "95 % interval", *(["paper"] if paper else []), "l1", "l2"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(row["method"]),
            Text(row["change"]),
            f"{row['found']}/{row['rows']}",
            _percent(row["rate"]),
            f"{_percent(row['low'])} - {_percent(row['high'])}",
            *([_percent(paper.get((row["method"], row["change"])))] if paper else []),
            _cost(row["cost_l1"]),
            _cost(row["cost_l2"]),
        )
    return table


def file_audit_text(result: FileAudit, most: int = 5) -> Group:
    """How many counterfactuals are valid, what is wrong with the others, and how well they hold."""
    counts = result.imported.problems["problem"].value_counts()
    answer = result.imported.counterfactuals
    valid = f"{int(answer.found.sum())} of {len(answer)} counterfactuals are valid and were audited"
    # What was judged and by what, so that nobody takes one model for another.
    sources = [f"deployed model: {result.model}", f"retrained models: {result.retrained}"] if result.model else []
    texts = [Text(line) for line in (*sources, result.matched) if line] + [Text(valid, style="bold")]
    for problem, count in counts.items():
        shown = result.imported.problems[result.imported.problems["problem"] == problem].head(most)
        texts.append(Text(f"  {problem}: {count}", style="yellow"))
        texts += [
            Text(f"    {row}: {detail}", style="dim") for row, detail in zip(shown["row"], shown["detail"], strict=True)
        ]
        texts += [Text(f"    and {count - most} more, in problems.csv", style="dim")] if count > most else []
    return Group(*texts, Text(f"\n{result.audit}\n"), *_beside_promise(result))


def _beside_promise(result: FileAudit) -> list[Text]:
    """The rate promised, and the rate realised, of each kind of change that the promise is for."""
    excluded, rate = result.excluded, result.promised_rate
    if excluded is None or rate is None or not result.audit.invalidated.size:
        return []
    return [
        Text(
            f"{kind}: promised at most {rate:.1%} on average; realised {part.rate:.1%}, at most "
            f"{upper_limit(part.per_member):.1%} at 95 % confidence\n"
        )
        for kind, part in result.audit.by_kind.items()
        if kind in excluded.kinds
    ]


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
