"""The paper's tables with ours beside them: `sheets` lays them out, `terminal` and `markdown` show one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.paper.comparison import COST_SHARE, LEAST, SPREADS, Cell, Key, beside, methods_in, r2, reached
from holdfast.paper.printed import METHODS, printed, printed_r2
from holdfast.paper.reproduce import Reproduction, size
from holdfast.paper.study import Study
from holdfast.search.counterfactuals import Method
from holdfast.search.pipeline import Then


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
        methods_in(comparison),
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


def overview(done: Reproduction) -> list[RenderableType]:
    """All tables of a reading and how much of the paper is reached, for a terminal."""
    return [
        Text(f"\nSettings {done.study.settings}\n", style="bold"),
        *(terminal(sheet) for sheet in sheets(done.rows, done.study)),
        Text(LEGEND, style="dim"),
        Text(f"settings {done.study.settings}, {summary(done.rows)}"),
    ]


def document(done: Reproduction) -> str:
    """All tables of a reading, in Markdown."""
    parts = [
        f"# The paper's tables, and ours beside them: settings {done.study.settings}\n",
        f"Of {size(done.study)}; {summary(done.rows)}.\n",
        LEGEND.replace("*", r"\*") + "\n",
    ]
    return "\n".join([*parts, *(markdown(sheet) for sheet in sheets(done.rows, done.study))])
