"""What notebooks show of values can be read on a dark page and on a light one, whatever the system prefers."""

from __future__ import annotations

import pytest

import holdfast as hf
from browsing import PHONE, sideways, violations
from holdfast.guarantees.promises import Promise
from holdfast.utils.messages import printable
from misuses import made

# A notebook's page, and rules that notebooks have for tables: every other row has a background of the theme.
NOTEBOOK = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Notebook</title><style>
body {{ background: {page}; color: {ink}; font: 14px sans-serif }}
.output thead {{ border-bottom: 1px solid {ink} }}
.output tbody tr:nth-child(odd) {{ background: {stripe} }}
</style></head><body><main><h1>Notebook</h1>{cells}</main></body></html>"""
THEMES = {
    "dark": {"page": "#111111", "ink": "rgba(255, 255, 255, 0.87)", "stripe": "#212121"},
    "light": {"page": "#ffffff", "ink": "rgba(0, 0, 0, 0.87)", "stripe": "#f5f5f5"},
}


@pytest.fixture(scope="module")
def promised() -> Promise:
    own = made()
    given = (hf.Margin(), own.model, own.x, own.target, own.space)
    return hf.promise(*given, selection=own.family, rate=0.5, parameter_values=(0.0, 0.5))


@pytest.fixture(scope="module")
def values(loan_advice, promised) -> dict[str, object]:
    return {
        "advice": loan_advice,
        "audit": loan_advice.audit,
        "counterfactuals": loan_advice.counterfactuals,
        "promise": promised,
        "schema": loan_advice.encoding.schema,
    }


def notebook(values, theme, file):
    cells = "".join(f'<div class="output" id="{name}">{value._repr_html_()}</div>' for name, value in values.items())
    file.write_text(NOTEBOOK.format(**THEMES[theme], cells=cells), encoding="utf-8")
    return file


@pytest.mark.parametrize("prefers", ["light", "dark"])
@pytest.mark.parametrize("theme", THEMES)
def test_every_value_can_be_read(visit, values, tmp_path, theme, prefers):
    page = visit(notebook(values, theme, tmp_path / "notebook.html"), scheme=prefers)
    for name in values:
        assert page.locator(f"#{name}").inner_text().strip()
    assert violations(page, "color-contrast") == []


def test_a_wide_table_scrolls_by_itself(visit, values, tmp_path):
    assert sideways(visit(notebook(values, "dark", tmp_path / "notebook.html"), width=PHONE)) == 0


def test_low_contrast_would_be_seen(visit, tmp_path):
    class Faint:
        def _repr_html_(self) -> str:
            return '<table style="color: #333"><tr><td>text</td></tr></table>'

    assert violations(visit(notebook({"faint": Faint()}, "dark", tmp_path / "notebook.html")), "color-contrast")


def test_hostile_names_are_text(visit, tmp_path):
    names = ["<script>alert(1)</script>", "\"><img src=x onerror='alert(2)'>", "</style><b>\x1b[31m"]
    own = hf.Schema(
        (hf.Feature(names[0], "real"), hf.Feature(names[1], "categorical", levels=tuple(names))),
        names[2],
        ("no", names[0]),
    )
    page = visit(notebook({"schema": own}, "light", tmp_path / "notebook.html"))
    assert page.locator("script, img, b").count() == 0
    assert all(printable(name) in page.locator("#schema").inner_text() for name in names)
