"""Files of all kinds: read as they are, or refused with a sentence that names the file or the column."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast import Encoding, Schema
from holdfast.tabular.reading import read_table

ODD = ["", " ", "a", "b", "x", "y", "1", "2.5", "-3", "1e5", "1e400", "-inf", "nan", "NA", "True", "False", "none"]
ODD += ["9" * 30, "1" * 400, "1" * 5000, "0x1F", "1_000", "1,5", "é", "日本", '"', '""', '"a"', '"a,b"', '"a\nb"', "'"]
ODD += ["=1+1", "'=1+1", "-x", "@", "\t", "\ufeff", "\x00", "\x1a", "\x85", "z" * 140_000, "2020-01-01", "#", "1e200"]
CELLS = st.one_of(
    st.sampled_from(ODD), st.text(max_size=4), st.floats().map(repr), st.integers(-(10**30), 10**30).map(str)
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
MARKS = st.sampled_from(["", "\ufeff", "\n", "\r\n", '"', "\x00", " "])


@st.composite
def csv_bytes(draw):
    """Rows of cells, most of them as long as the header; quotes open and closed; now and then any bytes at all."""
    width, end = draw(st.integers(1, 4)), draw(ENDS)
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=6))
    if draw(st.integers(0, 4)) == 0:
        rows += draw(st.lists(st.lists(CELLS, max_size=6), max_size=2))
    if draw(st.booleans()):
        rows = [["x", "y", "z", "x.1"][:width], *rows]
    text = draw(MARKS) + end.join(",".join(row) for row in rows) + draw(MARKS)
    content = text.encode("utf-8", "surrogatepass")
    return content + draw(st.binary(max_size=4)) if draw(st.integers(0, 9)) == 0 else content


@settings(deadline=None, max_examples=150)
@given(content=csv_bytes(), label=st.integers(0, 3))
@example(content=b"", label=0)
@example(content=b"\n\n\r\n", label=0)
@example(content=b"x,y\n", label=0)
@example(content=b"\xef\xbb\xbf", label=0)
@example(content=b"x,y\n1,a\n2,b\n3,a\n", label=1)
@example(content=b'x,y\n"1,a\n2,b\n', label=0)
@example(content=b"x,y\n1,2,3\n4,5,6\n", label=0)
@example(content=b"x,y\n1e200,a\n2e200,b\n3e200,a\n", label=1)
def test_any_file_is_encoded_or_refused_in_a_sentence(content, label, tmp_path_factory):
    file = tmp_path_factory.getbasetemp() / "odd.csv"
    file.write_bytes(content)
    try:
        table = read_table(file)
        names = list(table.columns)
        schema = Schema.infer(table, names[label % len(names)] if names else "y")
        encoding = Encoding.fit(table, schema)
        assert encoding.encode(table).isfinite().all()
        encoding.decode(encoding.encode(table))
    except (ValueError, TypeError) as error:
        said = str(error)
        assert "odd.csv" in said or "the table" in said or re.search("column|feature|label", said), said


@pytest.mark.parametrize(
    "header",
    [
        "age,income,age",
        '"age",income,"age"',
        '\ufeff"age",income,age',
        "\n\nage,income,age",
        "age,age.1,age",
        "=x,y,'=x",
    ],
)
def test_columns_of_one_name_are_refused(tmp_path, header):
    """pandas would call the second one age.1, in silence."""
    file = tmp_path / "twice.csv"
    file.write_text(f"{header}\n1,2,3\n4,5,6\n", encoding="utf-8")
    name = "=x" if "=" in header else "age"
    with pytest.raises(ValueError, match=f"twice.csv: columns '{name}' appear more than once; rename or delete"):
        read_table(file)


def test_parquet_columns_of_one_name_are_refused(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.table([[1, 2], [3, 4], [5, 6]], names=["age", "x", "age"]), tmp_path / "twice.parquet")
    with pytest.raises(ValueError, match=r"twice\.parquet: columns 'age' appear more than once"):
        read_table(tmp_path / "twice.parquet")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a,b\n1,2,3\n4,5,6\n", "its rows have more cells than its first line has names .'a', 'b'."),
        (b"a,b\n1,2,3,4\n5,6,7,8\n", "its rows have more cells"),
        (b"a,,b,\n1,2,3,4\n", "columns number 2, 4 have no name; only the first"),
        (b"a,b\nx\0y,1\nx,2\n", "it holds bytes of value 0.*save it as CSV in UTF-8"),
        (b'a,b\n1,2\n"1,2\n', "a quotation mark in about line 3 is never closed"),
        (b"", "is empty; it needs a first line with the names of the columns"),
        (b"\n\r\n\n", "is empty; it needs a first line"),
        (b"\xef\xbb\xbf", "is empty; it needs a first line"),
        (b"a,b\n1,2\n3,4\n5,6,7\n", "line 4 has 3 cells, but the lines before it have 2; put text that holds a comma"),
        (b'a,b\n2,x\n"1,5",y\n', "column 'a' has numbers with commas in them, such as '1,5' in row 1; write them"),
        (b'a,b\n"1.500,25",y\n"-2,5",y\n,x', "column 'a' has numbers with commas"),
        (b"PK\x03\x04\0\0", "is not a valid CSV file but a spreadsheet"),
        (b"\x1f\x8b\x08\0", "is not a valid CSV file but compressed"),
        (b"PAR1\0\0", "is not a valid CSV file but a Parquet file; give it a name that ends in .parquet"),
    ],
)
def test_what_pandas_would_misread_is_refused(tmp_path, content, says):
    (tmp_path / "odd.csv").write_bytes(content)
    with pytest.raises(ValueError, match=f"odd.csv.*{says}"):
        read_table(tmp_path / "odd.csv")


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
def test_other_separators_are_refused(tmp_path, mark, name):
    file = tmp_path / "table.csv"
    file.write_text(f"\ufeffa{mark}b\r\n1{mark}x\r\n2,5{mark}y\r\n", encoding="utf-8", newline="")
    with pytest.raises(ValueError, match=f"separated by {name}"):
        read_table(file)


@pytest.mark.parametrize(
    ("encoding", "says"),
    [
        ("cp1252", r"is not text in UTF-8: byte 0xe9 in line 3 is no character of it .*it is 'é'\); save it"),
        ("utf-16", "is text in UTF-16, not in UTF-8; save it"),
    ],
)
def test_other_encodings_are_refused(tmp_path, encoding, says):
    file = tmp_path / "names.csv"
    file.write_bytes("name,age\nAnn,30\nJosé,40\nZoë,50\n".encode(encoding))
    with pytest.raises(ValueError, match=says):
        read_table(file)


@pytest.mark.parametrize("broken", ["first", "edge", "last"])
def test_the_line_of_a_byte_that_is_no_text_is_told_however_far_it_is(tmp_path, broken):
    """Files are read in pieces, and a character may lie across two of them."""
    line = "é,1\n".encode()
    lines = [b"a,b\n", *[line] * 300_000]
    place = {"first": 1, "edge": (1 << 20) // len(line), "last": 300_000}[broken]
    lines[place] = b"\xe9,1\n"
    file = tmp_path / "large.csv"
    file.write_bytes(b"".join(lines))
    with pytest.raises(ValueError, match=f"byte 0xe9 in line {place + 1} is no character"):
        read_table(file)
    file.write_bytes(b"".join(lines[:place]) + "é".encode()[:1])
    with pytest.raises(ValueError, match=f"byte 0xc3 in line {place + 1} is no character"):
        read_table(file)


@pytest.mark.parametrize("cells", ['"1,5"\nx', '"1,2,3"\n1', '"a,5"\n"b,5"', '","\n1'])
def test_text_with_commas_that_is_no_number_stays_text(tmp_path, cells):
    (tmp_path / "text.csv").write_text(f"a\n{cells}\n")
    assert len(read_table(tmp_path / "text.csv")) == 2


def test_a_folder_is_no_table(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match=r"folder\.csv is a folder; name the file in it"):
        read_table(tmp_path / "folder.csv")


def test_an_empty_cell_is_missing_beside_very_long_numbers_too(tmp_path):
    (tmp_path / "long.csv").write_text(f"a,b\n{'9' * 30},1\n,2\nx,3\n")
    assert read_table(tmp_path / "long.csv")["a"].isna().tolist() == [False, True, False]


@pytest.mark.parametrize(
    "content", [b"x,y\r\n1,a\r\n2,b\r\n", b"\xef\xbb\xbfx,y\n1,a\n2,b\n", b'"x","y"\n1,"a"\n2,b', b"x,y\n1,a,\n2,b,\n"]
)
def test_common_ways_to_write_a_table_are_one_table(tmp_path, content):
    (tmp_path / "table.csv").write_bytes(content)
    assert read_table(tmp_path / "table.csv").to_dict("list") == {"x": [1, 2], "y": ["a", "b"]}


def test_a_header_without_rows_is_an_empty_table(tmp_path):
    (tmp_path / "header.csv").write_text("x,y\n")
    table = read_table(tmp_path / "header.csv")
    assert list(table.columns) == ["x", "y"]
    with pytest.raises(ValueError, match=r"the table is empty \(0 rows, 2 columns\)"):
        Schema.infer(table, "y")


def test_very_long_fields_are_read(tmp_path):
    (tmp_path / "long.csv").write_text(f"{'n' * 200_000},y\n{'z' * 300_000},1\n")
    table = read_table(tmp_path / "long.csv")
    assert [len(table.columns[0]), len(table.iloc[0, 0])] == [200_000, 300_000]
