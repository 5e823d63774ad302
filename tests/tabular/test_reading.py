"""Files of all kinds: read as they are, or refused with a sentence that names the file or the column."""

import re

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
