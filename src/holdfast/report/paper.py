"""A study's rows beside what the paper prints (Black et al., ICLR 2022): numbers first, then tables of them.

`beside`, `r2` and `reached` compare. `sheets` lays the comparison out once, as plain cells; `terminal` and `markdown`
show a sheet.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from holdfast.counterfactuals import Method
from holdfast.named import Then
from holdfast.studies.paper import DATASETS
from holdfast.studies.printed import METHODS, printed, printed_r2
from holdfast.studies.reproduce import Reproduction, size
from holdfast.study import Study

# A quantity -> the kind of change it is of (costs and success are of none), its column and that of its spread.
QUANTITIES: dict[str, tuple[str | None, str, str | None]] = {
    "iv_loo": ("leave-one-out", "rate", "spread"),
    "iv_seeds": ("seeds", "rate", "spread"),
    "cost_l1": (None, "cost_l1", "cost_l1_spread"),
    "cost_l2": (None, "cost_l2", "cost_l2_spread"),
    "success": (None, "success", None),
}
KINDS = {"iv": ("iv_loo", "iv_seeds"), "cost": ("cost_l1", "cost_l2"), "all": tuple(QUANTITIES)}

SPREADS = 2.0  # an invalidation may differ by so many of the paper's spreads,
LEAST = 0.05  # or by so much, whichever is more
COST_SHARE = 0.2  # a cost by this share of the paper's
ROUNDING = 1e-9  # so that a difference of exactly as much is within

KEY = ["dataset", "method", "quantity"]
SUMS = ("sum_c", "sum_u", "sum_cc", "sum_cu", "sum_uu")  # of costs c and shares undone u, over a cell

Key = tuple[str, str, str]  # dataset, method, quantity
Cell = dict[Hashable, Any]  # a line of `beside` or of `printed`


# ---- compare ----


def beside(rows: pd.DataFrame) -> pd.DataFrame:
    """One line a dataset, method and quantity: ours, the paper's, and whether the two are within tolerance.

    ``ours`` is the mean over deployed networks and ``over_bases`` their standard deviation, NaN of a single one;
    ``ours_spread`` is the paper's kind of spread: over retrained networks for invalidation, over counterfactuals for
    costs. ``within`` is None where the paper prints nothing, and for success, which is shown and not judged. Where we
    found nothing and the paper did, it is False.
    """
    columns = [*KEY, "ours", "ours_spread", "over_bases", "printed", "printed_spread", "within"]
    if rows.empty:
        return pd.DataFrame(columns=columns)
    _check_one_reading(rows)
    ours = pd.concat([_averaged(rows, quantity) for quantity in QUANTITIES], ignore_index=True)
    theirs = printed().rename(columns={"value": "printed", "spread": "printed_spread"})
    table = ours.merge(theirs, on=KEY, how="left")
    judged = zip(table["quantity"], table["ours"], table["printed"], table["printed_spread"], strict=True)
    table["within"] = pd.Series([is_within(*cell) for cell in judged], dtype=object)
    return _in_order(table)[columns].reset_index(drop=True)


def _check_one_reading(rows: pd.DataFrame) -> None:
    readings = list(rows["settings"].unique())
    if len(readings) > 1:
        raise ValueError(
            f"these rows are of the settings {' and '.join(readings)}; compare one at a time, such as "
            f"rows[rows['settings'] == '{readings[0]}']"
        )


def _averaged(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Over deployed networks."""
    change, value, spread = QUANTITIES[quantity]
    own = rows.drop_duplicates("cell") if change is None else rows[rows["change"] == change]
    own = own.assign(value=own[value].astype(float), spread=own[spread].astype(float) if spread else float("nan"))
    groups = own.groupby(["dataset", "method"], sort=False)
    averages = {"ours": groups["value"].mean(), "ours_spread": groups["spread"].mean()}
    return pd.DataFrame({**averages, "over_bases": groups["value"].std()}).reset_index().assign(quantity=quantity)


def is_within(quantity: str, ours: float, theirs: float, spread: float) -> bool | None:
    """Whether a figure is within tolerance of a printed one; None where that is not judged."""
    if quantity in KINDS["iv"] and not pd.isna(theirs):
        return abs(ours - theirs) <= max(SPREADS * spread, LEAST) + ROUNDING
    if quantity in KINDS["cost"] and not pd.isna(theirs):
        return abs(ours - theirs) <= COST_SHARE * theirs + ROUNDING
    return None


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The paper's order of datasets and methods, then our own methods as they come."""
    orders: dict[Hashable, tuple[str, ...]] = {
        "dataset": DATASETS,
        "method": _methods(table),
        "quantity": tuple(QUANTITIES),
    }
    return table.sort_values(KEY, key=lambda names: names.map(orders[names.name].index))


def _methods(table: pd.DataFrame) -> tuple[str, ...]:
    there = list(table["method"].unique())
    return (*(name for name in METHODS if name in there), *(name for name in there if name not in METHODS))


def r2(rows: pd.DataFrame) -> pd.Series[float]:
    """R² of the regression of invalidation on l2 cost, by dataset: the paper's methods pooled, SNS included.

    Of each deployed network by itself, then averaged. NaN where all costs or all rates are the same.
    """
    own = rows[rows["method"].isin(METHODS)].drop_duplicates("cell")  # a cell's sums are the same in all its rows
    sums = own.groupby(["dataset", "base_seed"], sort=False)[["found", *SUMS]].sum()
    n, c, u, cc, cu, uu = (sums[name] for name in ("found", *SUMS))
    squared = (cu - c * u / n) ** 2 / ((cc - c**2 / n) * (uu - u**2 / n))
    mean: pd.Series[float] = squared.groupby("dataset", sort=False).mean()
    return mean


def reached(comparison: pd.DataFrame) -> pd.DataFrame:
    """How many cells are within tolerance: one line a group and kind.

    Groups are "all", every dataset and every method of the paper; kinds are "iv", "cost" and "all". ``share`` is NaN
    where there are no cells.
    """
    judged = comparison[comparison["within"].notna()]
    groups = {"all": judged}
    for column in ("dataset", "method"):
        groups |= {name: judged[judged[column] == name] for name in judged[column].unique()}
    counted = [
        (group, kind, *_counted(own[own["quantity"].isin(KINDS[kind])]))
        for group, own in groups.items()
        for kind in KINDS
    ]
    table = pd.DataFrame(counted, columns=["group", "kind", "within", "cells"])
    return table.assign(share=table["within"] / table["cells"])


def _counted(cells: pd.DataFrame) -> tuple[int, int]:
    return int(cells["within"].sum()), len(cells)


# ---- lay out ----


@dataclass(frozen=True)
class Entry:
    """What stands in one place of a table."""

    text: str = ""
    out: bool = False  # of tolerance

    def __str__(self) -> str:
        return f"*{self.text}" if self.out else self.text  # in front, so that numbers stay in line


@dataclass(frozen=True)
class Line:
    entries: tuple[Entry, ...]
    heading: bool = False  # of the lines below it


@dataclass(frozen=True)
class Sheet:
    """A table as plain cells, however it is shown."""

    title: str
    head: tuple[str, ...]
    lines: tuple[Line, ...]
    words: int = 1  # columns of words, on the left; the others are numbers


@dataclass(frozen=True)
class _Comparison:
    """All that the sheets are made from, by dataset, method and quantity."""

    study: Study
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    ours: Mapping[Key, Cell]
    theirs: Mapping[Key, Cell]
    r2: Mapping[str, float]
    several: bool  # deployed networks

    def mine(self, key: Key, spread: bool = False) -> Entry:
        """Blank where it was not computed, "none" where nothing was found."""
        cell = self.ours.get(key)
        if cell is None:
            return Entry()
        text: str = "none" if pd.isna(cell["ours"]) else _number(cell["ours"], cell["ours_spread"] if spread else None)
        return Entry(text, cell["within"] is False)

    def their(self, key: Key, spread: bool = False) -> Entry:
        cell = self.theirs.get(key)
        return Entry("-") if cell is None else Entry(_number(cell["value"], cell["spread"] if spread else None))

    def over_bases(self, key: Key) -> Entry:
        cell = self.ours.get(key)
        return Entry() if cell is None or pd.isna(cell["over_bases"]) else Entry(f"±{cell['over_bases']:.2f}")


def _number(value: float, spread: float | None = None) -> str:
    return f"{value:.2f}" if spread is None else f"{value:.2f}±{spread:.2f}"


def sheets(rows: pd.DataFrame, study: Study) -> list[Sheet]:
    """The paper's tables with ours beside them, and how many cells are within tolerance.

    Of the datasets and methods that the rows have; what is missing of those is left blank.
    """
    comparison = beside(rows)
    compared = _Comparison(
        study,
        tuple(comparison["dataset"].unique()),
        _methods(comparison),
        _by_key(comparison),
        _by_key(printed()),
        {} if rows.empty else {str(name): value for name, value in r2(_with_all_methods(rows)).items()},
        bool(comparison["over_bases"].notna().any()),
    )
    return [
        _first_table(compared),
        _settings_and_success(compared),
        _spreads(compared, "Invalidation, ± over retrained networks", IV),
        _spreads(compared, "Costs, ± over counterfactuals", COSTS),
        _shares(reached(comparison)),
    ]


def _by_key(table: pd.DataFrame) -> dict[Key, Cell]:
    return {(cell["dataset"], cell["method"], cell["quantity"]): cell for cell in table.to_dict("records")}


FIRST_TABLE = {"iv_loo": "IV, leave one out", "iv_seeds": "IV, new seeds", "cost_l2": "l2 cost"}
IV = {"iv_loo": "leave one out", "iv_seeds": "new seeds"}
COSTS = {"cost_l2": "l2 cost", "cost_l1": "l1 cost"}


def _with_all_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """The deployed networks on which all of the paper's methods were run: R² of some would be another figure."""
    own = rows[rows["method"].isin(METHODS)]
    return own[own.groupby(["dataset", "base_seed"])["method"].transform("nunique") == len(METHODS)]


def _first_table(compared: _Comparison) -> Sheet:
    """Ours and the paper's next to each other."""
    lines = [
        line
        for quantity, title in FIRST_TABLE.items()
        for line in (
            _heading(title),
            *(_pairs(method, _of(compared, method, quantity)) for method in compared.methods),
        )
    ]
    theirs = printed_r2()
    r2 = [(_r2_entry(compared.r2.get(name)), Entry(_number(theirs[name]))) for name in compared.datasets]
    head = chain.from_iterable((name, "paper") for name in compared.datasets)
    title = "Table 1: invalidation (IV), cost, and R² of the one on the other"
    return Sheet(title, ("", *head), (*lines, _heading("paper's methods"), _pairs("R²", r2)))


def _of(compared: _Comparison, method: str, quantity: str) -> list[tuple[Entry, Entry]]:
    keys = [(dataset, method, quantity) for dataset in compared.datasets]
    return [(compared.mine(key), compared.their(key)) for key in keys]


def _pairs(name: str, pairs: Iterable[tuple[Entry, Entry]]) -> Line:
    return Line((Entry(name), *chain.from_iterable(pairs)))


def _r2_entry(value: float | None) -> Entry:
    return Entry() if value is None or pd.isna(value) else Entry(_number(value))


def _heading(title: str) -> Line:
    return Line((Entry(title),), heading=True)


def _spreads(compared: _Comparison, title: str, quantities: Mapping[str, str]) -> Sheet:
    """Ours above the paper's, since with spreads they do not fit next to each other."""
    lines = [
        line
        for quantity, name in quantities.items()
        for line in (_heading(name), *chain.from_iterable(_stacked(compared, quantity)))
    ]
    return Sheet(title, ("", "", *compared.datasets), tuple(lines), words=2)


def _stacked(compared: _Comparison, quantity: str) -> Iterator[list[Line]]:
    for method in compared.methods:
        keys = [(dataset, method, quantity) for dataset in compared.datasets]
        lines = [_line(method, "ours", (compared.mine(key, spread=True) for key in keys))]
        if compared.several:
            lines.append(_line("", "over bases", map(compared.over_bases, keys)))
        if method in METHODS:
            lines.append(_line("", "paper", (compared.their(key, spread=True) for key in keys)))
        yield lines


def _line(method: str, what: str, entries: Iterable[Entry]) -> Line:
    return Line((Entry(method), Entry(what), *entries))


# The settings to show, by the last part of a method's name: what the tables call a field.
SETTINGS: dict[str, dict[str, str]] = {
    "min-l1-art": {"step size": "learning_rate", "steps": "steps"},
    "min-l2-art": {"step size": "learning_rate", "steps": "steps"},
    "pgd": {"max. ε": "radius", "radii": "levels", "steps": "steps"},
    "sns": {"radius": "radius", "steps": "steps", "points": "points"},
    "prototype-alibi": {"θ": "theta", "k": "nearest", "steps": "steps"},
    "latent": {"radius": "radius", "samples": "samples"},
    "min-l1": {"step size": "learning_rate", "steps": "steps"},
    "min-l2": {"step size": "learning_rate", "steps": "steps"},
    "confidence": {"radius": "radius", "steps": "steps"},
    "margin": {"level": "level"},
}


def _settings_and_success(compared: _Comparison) -> Sheet:
    lines = chain.from_iterable(_settings_of(compared, method) for method in compared.methods)
    return Sheet("Settings and success", ("", "", *compared.datasets), tuple(lines), words=2)


def _settings_of(compared: _Comparison, method: str) -> list[Line]:
    values = [_last_part(compared.study.method(dataset, method)) for dataset in compared.datasets]
    shown = SETTINGS.get(method.split("+")[-1], {})
    settings = [(what, [_setting(value, field) for value in values]) for what, field in shown.items()]
    keys = [(dataset, method, "success") for dataset in compared.datasets]
    lines = [*settings, ("success", [compared.mine(key) for key in keys])]
    if method in METHODS:
        lines.append(("paper", [compared.their(key) for key in keys]))
    names = [method, *[""] * len(lines)]
    return [_line(name, what, entries) for name, (what, entries) in zip(names, lines, strict=False)]


def _last_part(method: Method) -> object:
    """What the name's last part stands for: SNS in "pgd+sns"."""
    return method.stabilisers[-1] if isinstance(method, Then) else method


def _setting(value: object, field: str) -> Entry:
    found = getattr(value, field, None)
    return Entry() if found is None else Entry(f"{found:g}")


def _shares(table: pd.DataFrame) -> Sheet:
    names = {"iv": "invalidation", "cost": "costs", "all": "together"}
    cells = {(cell["group"], cell["kind"]): Entry(_share(cell)) for cell in table.to_dict("records")}
    lines = [Line((Entry(group), *(cells[group, kind] for kind in names))) for group in table["group"].unique()]
    return Sheet("Cells within tolerance", ("", *names.values()), tuple(lines))


def _share(counted: Cell) -> str:
    return f"{counted['within']} of {counted['cells']} ({counted['share']:.0%})" if counted["cells"] else ""


def summary(rows: pd.DataFrame) -> str:
    """How much of the paper is reached, in a sentence."""
    table = reached(beside(rows))
    told = {cell["kind"]: _share(cell) for cell in table[table["group"] == "all"].to_dict("records")}
    if not told["all"]:
        return "nothing here is printed in the paper"
    return f"within tolerance: {told['iv']} invalidation rates and {told['cost']} costs, together {told['all']}"


LEGEND = (
    "Under a dataset's name stands ours. * out of tolerance: further from the paper's invalidation than "
    f"{SPREADS:g} of its printed spreads or {LEAST:g}, whichever is more, or from its cost than {COST_SHARE:.0%}; "
    "success and R² are not judged. - the paper prints nothing. none: nothing was found. Blank: not computed yet; R² "
    "waits for all of the paper's methods."
)


# ---- show ----


def terminal(sheet: Sheet) -> Group:
    """Six datasets fit 120 columns."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for place, name in enumerate(sheet.head):
        table.add_column(name, justify="left" if place < sheet.words else "right", no_wrap=True)
    for line in sheet.lines:
        if line.heading:
            table.add_section()
        table.add_row(*(Text(str(entry), style=_style(entry, line)) for entry in line.entries))
    return Group(Text(sheet.title, style="bold"), table)


def _style(entry: Entry, line: Line) -> str:
    return "bold" if line.heading else "red" if entry.out else ""


def markdown(sheet: Sheet) -> str:
    """The same as a Markdown table, its title a heading."""
    rules = ["---" if place < sheet.words else "--:" for place in range(len(sheet.head))]
    lines = [_markdown_line([_markdown_entry(entry, line) for entry in line.entries], sheet) for line in sheet.lines]
    head = _markdown_line(sheet.head, sheet)
    return "\n".join([f"### {sheet.title}", "", head, _markdown_line(rules, sheet), *lines, ""])


def _markdown_line(texts: Sequence[str], sheet: Sheet) -> str:
    return f"| {' | '.join([*texts, *[''] * (len(sheet.head) - len(texts))])} |"


def _markdown_entry(entry: Entry, line: Line) -> str:
    text = str(entry).replace("*", r"\*")
    return f"**{text}**" if line.heading else text


def document(done: Reproduction) -> str:
    """All tables of a reading, in Markdown."""
    parts = [
        f"# The paper's tables, and ours beside them: settings {done.study.settings}\n",
        f"Of {size(done.study)}; {summary(done.rows)}.\n",
        LEGEND.replace("*", r"\*") + "\n",
    ]
    return "\n".join([*parts, *(markdown(sheet) for sheet in sheets(done.rows, done.study))])
