"""Attacks on tables: odd CSV files on their way from the file to numbers and back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import holdfast as hf
from _attack.trying import Try, is_sentence, judged, outcome

EXAMPLES = 60  # in a round
NAMES = ["a", "b", "A", "y", " y", "", "a b", '"q"', "ä", "\ufeffa", "1", "a\x00", "Unnamed: 0", "found", "x" * 300]
CELLS = [
    "", "0", "1", "-1", "0.1", "1e308", "-1e308", "1e400", "1e-320", "9007199254740993", "99999999999999999999", "NaN",
    "inf", "-inf", "NA", "none", "True", "False", '"', '"a', '"a,b"', '"a\nb"', "a'b", "\x00", "é", "\x1b[31m",
    "2020-01-01", " 1", "1 ", "+1", "0x10", "1_000", "16777216", "16777217", "1e15", "1000000000000001", "z" * 70_000,
]  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1e300", "1e300", "-1e300", "1e16", "10000000000000002", "5e-324", "0"]),
)
ENCODINGS = ["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A table whose label is y: ordinary columns of numbers, or odd cells, with now and then a ragged row."""
    names = draw(st.one_of(st.just(["a", "b"]), st.lists(st.sampled_from(NAMES), min_size=0, max_size=4)))
    cells = draw(st.sampled_from([NUMBERS, NUMBERS, st.sampled_from(CELLS), st.text(max_size=5)]))
    lines = [[*names, "y"]]
    for number in range(draw(st.integers(0, 12))):
        row = [draw(cells) for _ in names]
        extra = draw(st.sampled_from([[], [], [], [], [], [], [], ["more"]]))
        lines.append([*row, draw(st.sampled_from(["no", "yes"])) if number > 1 else ["no", "yes"][number], *extra])
    newline = draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    return newline.join(",".join(line) for line in lines).encode(draw(st.sampled_from(ENCODINGS)), errors="replace")


def csvs(folder: Path, draw: random.Random) -> Iterator[Try]:
    """A file is read, encoded and decoded, with finite numbers and nothing lost, or refused in a sentence."""
    tries: list[Try] = []

    @seed(draw.randrange(2**32))
    @settings(
        max_examples=EXAMPLES, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(files(), st.sampled_from(["standard", "standard-numeric", "minmax", "minmax-global", "none"]))
    def tried(contents: bytes, scaling: str) -> None:
        path = folder / "table.csv"
        path.write_bytes(contents)
        got = outcome(lambda: _there_and_back(path, scaling))
        detail = f"{scaling}: {contents[:200]!r}"
        fine = is_sentence(got) if isinstance(got, Exception) else not got
        happened = f"a {type(got).__name__}" if isinstance(got, Exception) else got
        tries.append(judged("an odd CSV file", fine, "numbers or a sentence", happened, f"{got!s:.200} {detail}"))

    tried()
    yield from tries


def _there_and_back(path: Path, scaling: str) -> str:
    """What is wrong with the numbers; nothing if all is well."""
    table = hf.read_table(path)
    encoding = hf.Encoding.fit(table, hf.Schema.infer(table, "y"), scaling)  # type: ignore[arg-type]
    for dtype in (torch.float64, torch.float32):
        x = encoding.encode(table, dtype=dtype)
        encoding.labels(table)
        if not x.isfinite().all():
            return f"numbers that are not finite ({dtype})"
        for feature, place in encoding.places:
            if table[feature.name].nunique() > 1 and bool((x[:, place] == x[:1, place]).all()):
                return f"a varying {feature.kind} column that became constant ({dtype})"
        back = encoding.decode(x)
        for feature in encoding.schema.features:
            before, after = table[feature.name], back[feature.name]
            if list(after.isna()) != list(before.isna()):
                return f"other missing values of a {feature.kind} column"
            if not feature.is_numeric and list(after.dropna()) != list(before.dropna()):
                return f"other levels of a {feature.kind} column"
    return ""
