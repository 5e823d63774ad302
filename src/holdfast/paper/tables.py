"""The paper's tables with ours beside them: `sheets` lays them out, `terminal` and `markdown` show one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from holdfast.search.pipeline import Pipeline

Line = tuple[str, ...]  # a text by itself is the heading of the lines below it


@dataclass(frozen=True)
class Sheet:
    """A table as texts, however it is shown. What is out of tolerance has a "*" in front."""

    title: str
    head: Line
    lines: tuple[Line, ...]
    words: int = 1  # columns of words, on the left; the others are numbers


@dataclass(frozen=True)
class _Comparison:
    """All that the sheets are made from. Its texts are one per dataset."""

    study: Study
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    cells: Mapping[Key, Cell]
    printed_cells: Mapping[Key, Cell]

    def ours(self, method: str, quantity: str, spread: bool = False) -> list[str]:
        cells = [self.cells.get((dataset, method, quantity)) for dataset in self.datasets]
        return [_our_text(cell, spread) for cell in cells]

    def printed(self, method: str, quantity: str, spread: bool = False) -> list[str]:
        cells = [self.printed_cells.get((dataset, method, quantity)) for dataset in self.datasets]
        return ["-" if cell is None else _number(cell["value"], cell["spread"] if spread else None) for cell in cells]

    def over_bases(self, method: str, quantity: str) -> list[str]:
        cells = [self.cells.get((dataset, method, quantity)) for dataset in self.datasets]
        return ["" if cell is None or pd.isna(cell["over_bases"]) else f"±{cell['over_bases']:.2f}" for cell in cells]


def _our_text(cell: Cell | None, spread: bool) -> str:
    """Blank where it was not computed, "none" where nothing was found."""
    if cell is None:
        return ""
    text: str = "none" if pd.isna(cell["ours"]) else _number(cell["ours"], cell["ours_spread"] if spread else None)
    return f"*{text}" if cell["within"] is False else text  # in front, so that numbers stay in line


def _number(value: float, spread: float | None = None) -> str:
    return f"{value:.2f}" if spread is None else f"{value:.2f}±{spread:.2f}"


def sheets(rows: pd.DataFrame, study: Study) -> list[Sheet]:
    """The paper's tables with ours beside them, and how many cells are within tolerance.

    Of the datasets and methods that the rows have; what is missing of those is left blank.
    """
    comparison = beside(rows)
    datasets = tuple(comparison["dataset"].unique())
    compared = _Comparison(study, datasets, methods_in(comparison), _by_key(comparison), _by_key(printed()))
    several = bool(comparison["over_bases"].notna().any())
    return [
        _first_table(compared, rows),
        _settings_and_success(compared),
        _spreads("Invalidation, ± over retrained networks", compared, ("iv_loo", "iv_seeds"), several),
        _spreads("Costs, ± over counterfactuals", compared, ("cost_l2", "cost_l1"), several),
        _shares(reached(comparison)),
    ]


def _by_key(table: pd.DataFrame) -> dict[Key, Cell]:
    return {(cell["dataset"], cell["method"], cell["quantity"]): cell for cell in table.to_dict("records")}


FIRST_TABLE = {"iv_loo": "IV, leave one out", "iv_seeds": "IV, new seeds", "cost_l2": "l2 cost"}


def _first_table(compared: _Comparison, rows: pd.DataFrame) -> Sheet:
    """Ours and the paper's next to each other."""
    lines: list[Line] = []
    for quantity, heading in FIRST_TABLE.items():
        lines.append((heading,))
        for method in compared.methods:
            lines.append(_pairs(method, compared.ours(method, quantity), compared.printed(method, quantity)))
    ours: Mapping[str, float] = {} if rows.empty else dict(r2(_with_all_methods(rows)).dropna())
    theirs = printed_r2()
    our_texts = [_number(ours[name]) if name in ours else "" for name in compared.datasets]
    lines += [("paper's methods",), _pairs("R²", our_texts, [_number(theirs[name]) for name in compared.datasets])]
    head = _pairs("", compared.datasets, ["paper"] * len(compared.datasets))
    return Sheet("Table 1: invalidation (IV), cost, and R² of the one on the other", head, tuple(lines))


def _with_all_methods(rows: pd.DataFrame) -> pd.DataFrame:
    """The deployed networks on which all of the paper's methods were run: R² of some would be another figure."""
    papers = rows[rows["method"].isin(METHODS)]
    return papers[papers.groupby(["dataset", "base_seed"])["method"].transform("nunique") == len(METHODS)]


def _pairs(name: str, ours: Sequence[str], theirs: Sequence[str]) -> Line:
    return (name, *chain.from_iterable(zip(ours, theirs, strict=True)))


SPREAD_HEADINGS = {"iv_loo": "leave one out", "iv_seeds": "new seeds", "cost_l2": "l2 cost", "cost_l1": "l1 cost"}


def _spreads(title: str, compared: _Comparison, quantities: Sequence[str], several: bool) -> Sheet:
    """Ours above the paper's, since with spreads they do not fit next to each other."""
    lines: list[Line] = []
    for quantity in quantities:
        lines.append((SPREAD_HEADINGS[quantity],))
        for method in compared.methods:
            lines.append((method, "ours", *compared.ours(method, quantity, spread=True)))
            if several:
                lines.append(("", "over bases", *compared.over_bases(method, quantity)))
            if method in METHODS:
                lines.append(("", "paper", *compared.printed(method, quantity, spread=True)))
    return Sheet(title, ("", "", *compared.datasets), tuple(lines), words=2)


# The settings to show, by the last part of a method's name: what the tables call a field.
OF_MIN_COST = {"step size": "learning_rate", "steps": "steps"}
SETTINGS: dict[str, dict[str, str]] = {
    **dict.fromkeys(("min-l1-art", "min-l2-art", "min-l1", "min-l2"), OF_MIN_COST),
    "pgd": {"max. ε": "radius", "radii": "levels", "steps": "steps"},
    "sns": {"radius": "radius", "steps": "steps", "points": "points"},
    "prototype-alibi": {"θ": "theta", "k": "nearest", "steps": "steps"},
    "latent": {"radius": "radius", "samples": "samples"},
    "confidence": {"radius": "radius", "steps": "steps"},
    "margin": {"level": "level"},
}


def _settings_and_success(compared: _Comparison) -> Sheet:
    lines: list[Line] = []
    for method in compared.methods:
        values = [_last_part(compared.study.method(dataset, method)) for dataset in compared.datasets]
        fields = SETTINGS.get(method.split("+")[-1], {})
        of_method = [(name, *(_setting(value, field) for value in values)) for name, field in fields.items()]
        of_method.append(("success", *compared.ours(method, "success")))
        if method in METHODS:
            of_method.append(("paper", *compared.printed(method, "success")))
        lines += [(method if number == 0 else "", *line) for number, line in enumerate(of_method)]
    return Sheet("Settings and success", ("", "", *compared.datasets), tuple(lines), words=2)


def _last_part(method: Method) -> object:
    """What the name's last part stands for: SNS in "pgd+sns"."""
    return method.stabilisers[-1] if isinstance(method, Pipeline) else method


def _setting(value: object, field: str) -> str:
    found = getattr(value, field, None)
    return "" if found is None else f"{found:g}"


def _shares(table: pd.DataFrame) -> Sheet:
    names = {"iv": "invalidation", "cost": "costs", "all": "together"}
    cells = {(cell["group"], cell["kind"]): _share(cell) for cell in table.to_dict("records")}
    lines = [(group, *(cells[group, kind] for kind in names)) for group in table["group"].unique()]
    return Sheet("Cells within tolerance", ("", *names.values()), tuple(lines))


def _share(counted: Cell) -> str:
    return f"{counted['within']} of {counted['cells']} ({counted['share']:.0%})" if counted["cells"] else ""


def summary(rows: pd.DataFrame) -> str:
    """How much of the paper is reached, in a sentence."""
    table = reached(beside(rows))
    shares = {cell["kind"]: _share(cell) for cell in table[table["group"] == "all"].to_dict("records")}
    if not shares["all"]:
        return "nothing here is printed in the paper"
    return f"within tolerance: {shares['iv']} invalidation rates and {shares['cost']} costs, together {shares['all']}"


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
    for column, name in enumerate(sheet.head):
        table.add_column(name, justify="left" if column < sheet.words else "right", no_wrap=True)
    for line in sheet.lines:
        if len(line) == 1:
            table.add_section()
            table.add_row(Text(line[0], style="bold"))
        else:
            table.add_row(*(Text(text, style="red" if text.startswith("*") else "") for text in line))
    return Group(Text(sheet.title, style="bold"), table)


def markdown(sheet: Sheet) -> str:
    """The same as a Markdown table, its title a heading."""
    rules = ["---" if column < sheet.words else "--:" for column in range(len(sheet.head))]
    texts = [
        (f"**{line[0]}**",) if len(line) == 1 else [text.replace("*", r"\*") for text in line] for line in sheet.lines
    ]
    rows = [[*line, *[""] * (len(sheet.head) - len(line))] for line in (sheet.head, rules, *texts)]
    return "\n".join([f"### {sheet.title}", "", *(f"| {' | '.join(row)} |" for row in rows), ""])


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
