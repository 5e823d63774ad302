import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.tabular.reading import read_table
from holdfast.utils.spreadsheets import as_csv, unmarked

FORMULAS = ["=1+1", "+1", "-x", "@cmd", "\t=1", "\r=1", "\n=1", "=", "-", "--3", "-3%", "-1,5", '=HYPERLINK("a";"b")']
HARMLESS = ["", "a", "1", "-3", "-3.5", "-.5", "-1e-7", "-inf", "'", "'a", "'-5 to 0'", "'-3", "a=1", " =1", "é"]


def cells(text):
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_a_spreadsheet_would_compute_is_marked_and_comes_back(text, tmp_path):
    table = pd.DataFrame({"x": [text, "a"], text: [1.5, -2.5]}, index=[text, "b"])
    written = as_csv(table)
    assert cells(written) == ["", "x", f"'{text}", f"'{text}", f"'{text}", "1.5", "b", "a", "-2.5"]
    (tmp_path / "table.csv").write_bytes(written.encode())
    pd.testing.assert_frame_equal(read_table(tmp_path / "table.csv"), table)
    table.index.name = text
    assert cells(as_csv(table))[0] == f"'{text}"
    (tmp_path / "table.csv").write_bytes(as_csv(table.drop(columns=text)).encode())
    pd.testing.assert_frame_equal(read_table(tmp_path / "table.csv", index=text), table.drop(columns=text))


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_is_written_as_it_is(text):
    table = pd.DataFrame({"x": [text, "a"], text: [1.5, -2.5]}, index=[text, "b"])
    assert as_csv(table) == table.to_csv()
    assert as_csv(table, index=False) == table.to_csv(index=False)
    assert unmarked(text) == text


def test_tables_without_formulas_are_written_as_before():
    table = pd.DataFrame(
        {
            "n": [-1, 2, -3],
            "r": [-0.1, np.nan, 1e-300],
            "b": [True, False, True],
            "o": [None, -2, "x"],
            "c": pd.Categorical(["a", "b", "a"]),
            "i": pd.array([-1, None, 2], dtype="Int64"),
        }
    )
    for frame in (table, table.set_index("n"), table.set_index(["c", "n"]), table.iloc[:0]):
        assert as_csv(frame) == frame.to_csv()


def test_formulas_in_categories_and_in_several_labels_are_marked():
    table = pd.DataFrame({"c": pd.Categorical(["=1", "b"]), "k": ["+x", "y"], "n": [-1, -2]})
    assert cells(as_csv(table, index=False)) == ["c", "k", "n", "'=1", "'+x", "-1", "b", "y", "-2"]
    assert cells(as_csv(table.set_index(["c", "k"]))) == ["c", "k", "n", "'=1", "'+x", "-1", "b", "y", "-2"]


def test_the_table_itself_stays_as_it_was():
    table = pd.DataFrame({"=a": ["=1"]}, index=["=b"])
    as_csv(table)
    pd.testing.assert_frame_equal(table, pd.DataFrame({"=a": ["=1"]}, index=["=b"]))


TEXT = st.text(st.sampled_from("'=+-@ax\t\r\n ,\"13.e"), max_size=6)


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4))
def test_no_cell_begins_a_formula_and_every_cell_comes_back(texts):
    written = as_csv(pd.DataFrame({"x": pd.Series(texts, dtype=object)}), index=False)
    found = list(csv.reader(io.StringIO(written, newline="")))[1:]
    for text, (cell,) in zip(texts, found, strict=True):
        assert not re.match(r"[=+@\t\r\n]", cell)
        assert not cell.startswith("-") or not np.isnan(float(cell))
        # The one exception is documented: what begins like a formula and ends in an apostrophe.
        assert unmarked(cell) == text or (cell == f"'{text}" and text.endswith("'"))
