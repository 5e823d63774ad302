"""Rows beside what the paper prints: known answers, and tables that read the same however they are shown."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from holdfast.paper.comparison import beside, r2, reached
from holdfast.paper.declared import PAPER, PAPER_DATASETS
from holdfast.paper.printed import METHODS, printed
from holdfast.paper.reproduce import METHODS as IN_THE_STUDY
from holdfast.paper.reproduce import Reproduction
from holdfast.paper.tables import LEGEND, document, markdown, sheets, summary, terminal

STUDY = PAPER["text"]
# The paper's for PGD on German: IV .28±.03 and .61±.04, l1 cost 6.31±3.56, l2 cost 1.02±.57, success .90.


def cell(dataset="german", method="pgd", base_seed=0, seeds=0.5, loo=0.2, **more):
    """A cell's two rows as `holdfast.paper.results.frame` has them."""
    shared = {
        "dataset": dataset, "method": method, "base_seed": base_seed, "settings": "text", "members": 100, "rows": 200,
        "found": 180, "success": 0.9, "spread": 0.03, "cost_l1": 6.0, "cost_l2": 1.0, "cost_l1_spread": 3.0,
        "cost_l2_spread": 0.5, "sum_c": 0.0, "sum_u": 0.0, "sum_cc": 0.0, "sum_cu": 0.0, "sum_uu": 0.0,
        "cell": f"{dataset} {base_seed} {method}",
    }  # fmt: skip
    return [
        shared | {"change": "seeds", "rate": seeds} | more,
        shared | {"change": "leave-one-out", "rate": loo} | more,
    ]


def table(*cells):
    return pd.DataFrame([row for rows in cells for row in rows])


def line(comparison, quantity, dataset="german", method="pgd"):
    own = comparison.set_index(["dataset", "method", "quantity"])
    return own.loc[(dataset, method, quantity)]


def whole(bases=1, datasets=PAPER_DATASETS, methods=IN_THE_STUDY):
    """Rows as full as they get, large numbers among them; costs grow with the base seed."""
    return table(
        *(
            cell(
                dataset, method, seed, seeds=0.5 + seed / 100, cost_l1=145.36, cost_l1_spread=77.67, cost_l2=1.0 + seed
            )
            for dataset in datasets
            for seed in range(bases)
            for method in methods
        )
    )


def shown(sheet, width=120, **more):
    out = StringIO()
    Console(file=out, width=width, **more).print(terminal(sheet))
    return out.getvalue()


# ---- compare ----


def test_ours_stands_beside_the_papers():
    comparison = beside(table(cell(seeds=0.6, loo=0.3)))
    assert list(comparison["quantity"]) == ["iv_loo", "iv_seeds", "cost_l1", "cost_l2", "success"]
    seeds = line(comparison, "iv_seeds")
    assert list(seeds[["ours", "ours_spread", "printed", "printed_spread"]]) == [0.6, 0.03, 0.61, 0.04]
    assert list(line(comparison, "iv_loo")[["ours", "printed"]]) == [0.3, 0.28]
    cost = line(comparison, "cost_l2")
    assert list(cost[["ours", "ours_spread", "printed", "printed_spread"]]) == [1.0, 0.5, 1.02, 0.57]
    assert np.isnan(cost["over_bases"])
    success = line(comparison, "success")
    assert list(success[["ours", "printed", "within"]]) == [0.9, 0.9, None]
    assert np.isnan(success["ours_spread"])


@pytest.mark.parametrize(
    ("change", "quantity", "within"),
    [
        ({"seeds": 0.69}, "iv_seeds", True),  # .61 ± 2 × .04
        ({"seeds": 0.53}, "iv_seeds", True),
        ({"seeds": 0.690001}, "iv_seeds", False),
        ({"seeds": 0.529999}, "iv_seeds", False),
        ({"method": "pgd+sns", "loo": 0.05}, "iv_loo", True),  # .00 ± .00: then .05
        ({"method": "pgd+sns", "loo": 0.050001}, "iv_loo", False),
        ({"method": "pgd+sns", "seeds": 0.06}, "iv_seeds", True),  # .12 ± .03: .06 is more than .05
        ({"method": "pgd+sns", "seeds": 0.059999}, "iv_seeds", False),
        ({"cost_l2": 1.224}, "cost_l2", True),  # 1.02 and a fifth of it
        ({"cost_l2": 0.816}, "cost_l2", True),
        ({"cost_l2": 1.224001}, "cost_l2", False),
        ({"cost_l2": 0.815999}, "cost_l2", False),
        ({"cost_l1": 7.572}, "cost_l1", True),
        ({"cost_l1": 7.573}, "cost_l1", False),
        ({"success": 0.1}, "success", None),  # shown, not judged
        ({"seeds": None}, "iv_seeds", False),  # the paper found some
        ({"cost_l2": None}, "cost_l2", False),
    ],
    ids=str,
)
def test_tolerance_at_its_edge(change, quantity, within):
    method = change.get("method", "pgd")
    assert line(beside(table(cell(**change))), quantity, method=method)["within"] is within


def test_the_mean_over_deployed_networks():
    rows = table(*(cell(base_seed=seed, seeds=rate, spread=spread, cost_l2=cost) for seed, rate, spread, cost in [
        (0, 0.5, 0.02, 0.9), (1, 0.6, 0.03, 1.0), (2, 0.7, 0.07, 1.4),
    ]))  # fmt: skip
    seeds, cost = line(beside(rows), "iv_seeds"), line(beside(rows), "cost_l2")
    assert list(seeds[["ours", "ours_spread", "over_bases"]]) == pytest.approx([0.6, 0.04, 0.1])
    assert list(cost[["ours", "ours_spread"]]) == pytest.approx([1.1, 0.5])
    assert cost["over_bases"] == pytest.approx(np.std([0.9, 1.0, 1.4], ddof=1))


def test_a_network_without_counterfactuals_does_not_hide_the_others():
    rows = table(cell(seeds=0.6), cell(base_seed=1, seeds=None, loo=None, success=0.0))
    assert line(beside(rows), "iv_seeds")["ours"] == 0.6
    assert line(beside(rows), "success")["ours"] == pytest.approx(0.45)


def test_nothing_printed_is_not_judged():
    comparison = beside(table(cell(method="margin"), cell("seizure", "min-l1-art")))
    assert comparison["within"].map(lambda one: one is None).all()
    assert comparison["printed"].notna().sum() == 1  # Seizure's success
    assert summary(table(cell(method="margin"))) == "nothing here is printed in the paper"


def test_the_order_is_the_papers_then_ours():
    rows = table(*(cell(dataset, method) for dataset in reversed(PAPER_DATASETS) for method in reversed(IN_THE_STUDY)))
    comparison = beside(rows)
    assert tuple(comparison["dataset"].unique()) == PAPER_DATASETS
    assert list(comparison["method"].unique()) == [*METHODS, *(m for m in reversed(IN_THE_STUDY) if m not in METHODS)]


def test_two_readings_are_not_mixed():
    rows = pd.concat([table(cell()), table(cell(settings="release"))])
    with pytest.raises(ValueError, match="these rows are of the settings text and release; compare one at a time"):
        beside(rows)


def test_the_papers_own_numbers_are_all_within():
    theirs = printed().set_index(["dataset", "method", "quantity"])["value"].unstack()
    rows = table(
        *(
            cell(*key, seeds=row["iv_seeds"], loo=row["iv_loo"], cost_l1=row["cost_l1"], cost_l2=row["cost_l2"])
            for key, row in theirs.dropna(subset="iv_loo").iterrows()
        )
    )
    share = reached(beside(rows))
    assert (share["share"] == 1).all()
    assert share.set_index(["group", "kind"]).loc[("all", "all"), "cells"] == 4 * (6 * 8 - 2)


def test_reached_counts_by_kind_dataset_and_method():
    rows = table(
        cell(seeds=0.61, loo=0.9, cost_l1=6.31, cost_l2=1.02),  # three of four
        cell(method="pgd+sns", seeds=0.9, loo=0.9, cost_l1=14.21, cost_l2=9.0),  # one of four
        cell("ctg", seeds=0.09, loo=0.04, cost_l1=9.0, cost_l2=9.0),  # two of four
        cell(method="margin"),
    )
    counts = reached(beside(rows)).set_index(["group", "kind"])
    assert list(counts.columns) == ["within", "cells", "share"]
    expected = {
        ("all", "all"): (6, 12), ("all", "iv"): (3, 6), ("all", "cost"): (3, 6), ("german", "iv"): (1, 4),
        ("ctg", "iv"): (2, 2), ("ctg", "cost"): (0, 2), ("pgd", "all"): (5, 8), ("pgd+sns", "cost"): (1, 2),
    }  # fmt: skip
    for key, (within, cells) in expected.items():
        assert tuple(counts.loc[key]) == (within, cells, within / cells), key
    assert "margin" not in counts.index.get_level_values(0)
    assert summary(rows) == (
        "within tolerance: 3 of 6 (50%) invalidation rates and 3 of 6 (50%) costs, together 6 of 12 (50%)"
    )


# ---- R² ----


def sums(cost, invalidated):
    return {
        "found": len(cost), "sum_c": cost.sum(), "sum_u": invalidated.sum(), "sum_cc": (cost**2).sum(),
        "sum_cu": (cost * invalidated).sum(), "sum_uu": (invalidated**2).sum(),
    }  # fmt: skip


def test_r2_is_that_of_the_raw_points():
    draw = np.random.default_rng(0)
    cells, points = [], {}
    for seed in (0, 1):
        for place, method in enumerate(("min-l1-art", "pgd", "pgd+sns", "margin")):
            cost = draw.gamma(2, 1 + place, 30 + place)
            invalidated = np.clip(0.7 - 0.1 * cost + draw.normal(0, 0.2, len(cost)), 0, 1)
            cells.append(cell(method=method, base_seed=seed, **sums(cost, invalidated)))
            if method in METHODS:
                points.setdefault(seed, []).append(np.stack([cost, invalidated]))
    expected = [np.corrcoef(np.concatenate(own, axis=1))[0, 1] ** 2 for own in points.values()]
    result = r2(table(*cells))
    assert list(result.index) == ["german"]
    assert result["german"] == pytest.approx(np.mean(expected))
    assert expected[0] != pytest.approx(expected[1])


def test_r2_of_what_does_not_vary_is_not_a_number():
    cost = np.linspace(1, 2, 10)
    assert np.isnan(r2(table(cell(**sums(cost, np.ones(10)))))["german"])
    assert np.isnan(r2(table(cell(found=0)))["german"])


def test_r2_is_shown_when_all_methods_are_there():
    draw = np.random.default_rng(1)
    cells = [cell(method=name, **sums(draw.random(20), draw.random(20))) for name in METHODS]
    value = r2(table(*cells))["german"]
    for rows, text in [(table(*cells), f"{value:.2f}"), (table(*cells[:-1]), "")]:
        last = sheets(rows, STUDY)[0].lines[-1]
        assert list(last) == ["R²", text, "0.05"]
    # A network that is half done does not count: its figure would be of fewer methods.
    more = table(*cells, cell(base_seed=1, **sums(draw.random(20), draw.random(20))))
    assert sheets(more, STUDY)[0].lines[-1][1] == f"{value:.2f}"


# ---- lay out and show ----


@pytest.mark.parametrize("bases", [1, 5])
def test_the_whole_study_fits_120_columns(bases):
    for sheet in sheets(whole(bases), STUDY):
        text = shown(sheet)
        assert max(map(len, text.splitlines())) <= 120
        assert "…" not in text


def test_marks_are_there_without_colour_and_with_it():
    first, *_ = sheets(table(cell(seeds=0.9, cost_l2=1.0)), STUDY)
    plain = shown(first, no_color=True)
    assert "*0.90   0.61" in plain
    assert " 1.00   1.02" in plain
    assert "*1.00" not in plain
    assert re.search(r"\x1b\[31m *\*0.90", shown(first, force_terminal=True, color_system="standard", _environ={}))
    assert r"| pgd | \*0.90 | 0.61 |" in markdown(first)
    assert "* out of tolerance" in LEGEND


@pytest.mark.parametrize("rows", [whole(1), whole(2), table(cell(), cell("ctg", "margin"))], ids=["one", "two", "few"])
def test_the_terminal_and_markdown_hold_the_same(rows):
    for sheet in sheets(rows, STUDY):
        text = shown(sheet).replace("─", "")
        document = markdown(sheet).replace(r"\*", "*").replace("**", "")
        plain = document.replace("|", " ").replace("--:", "").replace("---", "").removeprefix("### ")
        assert plain.split() == text.split()
        every = [entry for line in sheet.lines for entry in line]
        assert [word for entry in every for word in entry.split()] == text.split()[len(f"{sheet.title}".split()) + sum(
            len(name.split()) for name in sheet.head) :]  # fmt: skip
        assert all(line.count("|") == len(sheet.head) + 1 for line in document.splitlines()[2:])


def test_spreads_stand_with_the_numbers():
    _, _, rates, costs, _ = sheets(table(cell(seeds=0.6, loo=0.3), cell(method="margin")), STUDY)
    entries = [list(line) for line in rates.lines]
    assert entries == [
        ["leave one out"],
        ["pgd", "ours", "0.30±0.03"],
        ["", "paper", "0.28±0.03"],
        ["margin", "ours", "0.20±0.03"],
        ["new seeds"],
        ["pgd", "ours", "0.60±0.03"],
        ["", "paper", "0.61±0.04"],
        ["margin", "ours", "0.50±0.03"],
    ]
    assert list(costs.lines[1]) == ["pgd", "ours", "1.00±0.50"]
    assert rates.head == ("", "", "german")


def test_the_spread_over_deployed_networks_is_shown_where_there_are_several():
    rates = sheets(table(cell(seeds=0.5), cell(base_seed=1, seeds=0.6)), STUDY)[2]
    assert ["", "over bases", "±0.07"] in [list(line) for line in rates.lines]


def test_settings_are_those_of_the_study():
    methods = ("pgd", "pgd+sns", "min-l1-art", "margin")
    rows = table(*(cell(dataset, method) for dataset in ("german", "ctg") for method in methods))
    lines = [list(line) for line in sheets(rows, STUDY)[1].lines]
    assert lines[: lines.index(["pgd", "max. ε", "3", "0.2"])] == [
        ["min-l1-art", "step size", "0.05", "0.05"],
        ["", "steps", "300", "300"],
        ["", "success", "0.90", "0.90"],
        ["", "paper", "0.35", "1.00"],
    ]
    assert ["pgd+sns", "radius", "2.4", "0.16"] in lines
    assert lines[-2:] == [["margin", "level", "0.75", "0.75"], ["", "success", "0.90", "0.90"]]
    other = replace(
        STUDY, methods=(*STUDY.methods[1:], ("min-l1-art", PAPER["release"].method("german", "min-l1-art")))
    )
    released = [list(line) for line in sheets(rows, other)[1].lines]
    assert released[0] == ["min-l1-art", "step size", "0.001", "0.001"]


def test_every_method_of_the_studies_has_settings_to_show():
    for study in PAPER.values():
        lines = sheets(whole(1, ("heloc",), study.names), study)[1].lines
        assert all(line[2] for line in lines)
        assert [line[0] for line in lines if line[0]] == [
            *METHODS,
            *(name for name in study.names if name not in METHODS),
        ]


def test_a_half_run_study_has_blanks():
    rows = table(cell(), cell("ctg", "pgd+sns", seeds=None, loo=None, found=0, cost_l1=None, cost_l2=None, success=0.0))
    first, *others = sheets(rows, STUDY)
    assert first.head == ("", "german", "paper", "ctg", "paper")
    lines = [list(line) for line in first.lines]
    assert lines[1:3] == [["pgd", "*0.20", "0.28", "", "0.04"], ["pgd+sns", "", "0.00", "*none", "0.00"]]
    assert lines[4:6] == [["pgd", "*0.50", "0.61", "", "0.09"], ["pgd+sns", "", "0.12", "*none", "0.00"]]
    for sheet in (first, *others):
        assert "nan" not in shown(sheet).lower()
        assert "nan" not in markdown(sheet).lower()


@pytest.mark.parametrize("change", ["seeds", "leave-one-out"])
def test_one_kind_of_change_alone(change):
    rows = whole(2)
    text = "".join(map(shown, sheets(rows[rows["change"] == change], STUDY)))
    assert "nan" not in text


def test_no_rows_at_all():
    empty = sheets(pd.DataFrame(), STUDY)
    assert [len(sheet.head) for sheet in empty] == [1, 2, 2, 2, 4]
    assert all(shown(sheet) and markdown(sheet) for sheet in empty)
    assert summary(pd.DataFrame()) == "nothing here is printed in the paper"


def test_the_papers_dash_and_our_own_methods():
    rows = table(cell("seizure", "min-l1-art"), cell("seizure", "margin"))
    first, _, rates, *_ = sheets(rows, STUDY)
    assert list(first.lines[1]) == ["min-l1-art", "0.20", "-"]
    assert list(first.lines[4]) == ["min-l1-art", "0.50", "-"]
    assert list(first.lines[5]) == ["margin", "0.50", "-"]
    assert list(rates.lines[2]) == ["", "paper", "-"]


def test_the_document_has_every_table():
    text = document(Reproduction(PAPER["release"], whole(1, methods=PAPER["release"].names)))
    assert text.startswith("# The paper's tables, and ours beside them: settings release\n")
    assert text.count("### ") == 5
    assert "all test rows" in text
    assert text.count("within tolerance:") == 1
