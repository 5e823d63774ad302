"""Relations between columns: what they say, what they refuse, and which rows of a table break them."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from holdfast import Determines, Exclusive, Feature, Follows, Implies, Ordered, Schema, Sums
from holdfast.tabular.relations import relation_from_dict, relation_to_dict

FEATURES = (
    Feature("education", "categorical", levels=("HS", "BSc", "MSc")),
    Feature("years", "integer", lower=0),
    Feature("marital", "categorical", levels=("Single", "Married")),
    Feature("role", "categorical", levels=("Husband", "Wife", "Child")),
    Feature("gain", "integer"),
    Feature("loss", "integer"),
    Feature("total", "real"),
    Feature("age", "integer", mutable=False),
    Feature("before", "ordinal", levels=("low", "middle", "high")),
    Feature("after", "ordinal", levels=("low", "middle", "high")),
    Feature("delay", "categorical", levels=(0, 1, 2)),
)
FIXES = Determines(("education",), "years", (("HS", 9), ("BSc", 13), ("MSc", 14)))
MARRIED = Implies({"marital": ("Married",)}, {"role": ("Husband", "Wife")})
YOUNG = Implies({"age": (0, 17), "education": ("HS",)}, {"gain": (0, 100), "delay": (0, 2)})
ONE = Exclusive(("gain", "loss"))
RISES = Ordered(("before", "after"))
WITHIN = Ordered(("gain", "loss", "total"))
SUM = Sums("total", ("gain", "loss"))
AGES = Follows("age", "education", by={"HS": 0, "BSc": 3, "MSc": 5})
AGES_BY_DELAY = Follows("age", "delay", by={0: 0, 1: 2.5, 2: 3})
AGES_BY_YEARS = Follows("age", "years", rate=1)
ALL = (FIXES, MARRIED, YOUNG, ONE, RISES, WITHIN, SUM, AGES)


def schema(*relations):
    return Schema(FEATURES, "y", (0, 1), relations)


TABLE = pd.DataFrame(
    {
        "education": ["HS", "BSc", "BSc", "MSc"],
        "years": [9, 13, 9, 14],
        "marital": ["Single", "Married", "Married", "Married"],
        "role": ["Child", "Wife", "Child", "Husband"],
        "gain": [0, 200, 5, 1],
        "loss": [0, 0, 7, 2],
        "total": [0.0, 200.0, 12.5, 3.0],
        "age": [16, 30, 40, 50],
        "before": ["low", "high", "low", "high"],
        "after": ["low", "middle", "high", "high"],
        "delay": [1, 0, 0, 2],
        "y": [0, 1, 0, 1],
    },
    index=["p", "q", "r", "s"],
)


@pytest.mark.parametrize(
    ("relation", "says"),
    [
        (FIXES, "education fixes years"),
        (Determines(("education", "marital", "role"), "years"), "education, marital and role fix years"),
        (MARRIED, "if marital is Married, then role is Husband or Wife"),
        (YOUNG, "if age is 0 to 17 and education is HS, then gain is 0 to 100 and delay is 0 to 2"),
        (schema(YOUNG).relations[0],
         "if age is 0 to 17 and education is HS, then gain is 0 to 100 and delay is 0 or 2"),
        (Implies({"age": (18, np.inf)}, {"gain": (-np.inf, 5)}), "if age is at least 18, then gain is at most 5"),
        (Implies({"age": (18, 18)}, {"role": tuple("abcdef")}), "if age is 18, then role is a, b, c, d or 2 more"),
        (ONE, "at most one of gain and loss is above 0"),
        (WITHIN, "gain <= loss <= total"),
        (SUM, "total = gain + loss"),
        (AGES, "age rises with education"),
    ],
)  # fmt: skip
def test_a_relation_reads_as_a_sentence(relation, says):
    assert str(relation) == says


@pytest.mark.parametrize(
    ("relation", "rows", "says"),
    [
        (FIXES, "r", "education is 'BSc' and years is 9; education fixes years to 13"),
        (
            Determines(("education",), "years", (("HS", 9), ("BSc", 13))), "rs",
            "education is 'BSc' and years is 9; education fixes years to 13",
        ),
        (
            Determines(("education", "marital"), "role", (("BSc", "Married", "Wife"),)), "prs",
            "education is 'HS', marital is 'Single' and role is 'Child'; education and marital fix role, and no row "
            "lists 'HS', 'Single'",
        ),
        (
            MARRIED, "r",
            "marital is 'Married' and role is 'Child'; if marital is Married, then role is Husband or Wife",
        ),
        (
            YOUNG, "p",
            "age is 16, education is 'HS', gain is 0 and delay is 1; if age is 0 to 17 and education is HS, then gain "
            "is 0 to 100 and delay is 0 or 2",
        ),
        (ONE, "rs", "gain is 5 and loss is 7; at most one of gain and loss is above 0"),
        (RISES, "q", "before is 'high' and after is 'middle'; before <= after"),
        (WITHIN, "q", "gain is 200, loss is 0 and total is 200; gain <= loss <= total"),
        (SUM, "r", "total is 12.5, gain is 5 and loss is 7; total = gain + loss"),
        (AGES, "", ""),
    ],
)  # fmt: skip
def test_rows_that_break_a_relation_are_told_with_their_values(relation, rows, says):
    broken = schema(relation).broken(TABLE)
    assert list(broken.columns) == ["row", "relation", "why"]
    assert list(broken["row"]) == list(rows)
    assert not rows or broken["why"][0] == says


def test_breaches_come_in_the_order_of_the_rows():
    broken = schema(ONE, MARRIED, FIXES).broken(TABLE)
    assert list(broken["row"]) == ["r", "r", "r", "s"]
    assert list(broken["relation"])[:2] == [str(ONE), str(MARRIED)]


def test_rows_that_differ_from_the_most_are_found_without_a_table_of_values():
    table = pd.concat([TABLE, TABLE.iloc[[1]].rename(index={"q": "t"})])
    assert list(schema(Determines(("education",), "years")).broken(table)["row"]) == ["r"]


@pytest.mark.parametrize("relation", [FIXES, MARRIED, YOUNG, ONE, RISES, WITHIN, SUM, AGES])
def test_a_missing_value_breaks_nothing(relation):
    for name in relation.columns:
        assert schema(relation).broken(TABLE.assign(**{name: None})).empty
        assert schema(relation).broken(TABLE.assign(**{name: np.nan})).empty
    rows = schema(relation).broken(TABLE)["row"]
    assert schema(relation).broken(TABLE.convert_dtypes())["row"].equals(rows)


def test_sums_forgive_what_rounding_does_and_no_more():
    table = TABLE.assign(gain=[0, 1, 2, 3], loss=[0, 1, 2, 3], total=[0.0, 2 + 1e-9, 4.01, 6.0])
    assert list(schema(SUM).broken(table)["row"]) == ["r"]


# ---- learning ----


def test_a_table_teaches_what_fixes_what():
    table = TABLE.drop(index="r")
    bare = Determines(("education",), "years")
    learned = schema(bare, ONE).learned(table)
    assert learned.relations == (FIXES, ONE)
    assert learned.learned(TABLE) is learned, "what is known is not learned again"
    assert bare.learn(table.assign(years=[9, np.nan, 14])).rows == (("HS", 9), ("MSc", 14))
    shuffled = table.sample(frac=1, random_state=1)
    assert bare.learn(shuffled) == bare.learn(table), "the order of the rows does not matter"


def test_a_table_with_two_answers_is_refused_with_their_counts():
    says = (
        r"'education fixes years' does not hold.*where education is 'BSc', years is 13 \(1 row\), 9 \(1 row\)\. Correct"
    )
    with pytest.raises(ValueError, match=says):
        schema(Determines(("education",), "years")).learned(TABLE)
    with pytest.raises(ValueError, match=r"lacks columns \['years'\]"):
        Determines(("education",), "years").learn(TABLE.drop(columns="years"))


# ---- in a schema ----


def test_relations_are_added_and_taken_away():
    assert schema().relate(ONE).relate(SUM, FIXES) == schema(ONE, SUM, FIXES)
    assert schema(ONE, SUM).without(ONE) == schema(SUM)
    with pytest.raises(ValueError, match=r"no relation 'gain <= loss <= total' .*its relations are 'total = gain"):
        schema(SUM).without(WITHIN)
    assert str(schema(SUM, ONE)).splitlines()[-2:] == [f"  relation: {SUM}", f"  relation: {ONE}"]


@pytest.mark.parametrize("name", ["schema.toml", "schema.json"])
@pytest.mark.parametrize(
    "relations", [ALL, (AGES_BY_DELAY,), (AGES_BY_YEARS, Sums("total", ("gain", "loss"), "loss")), ()]
)
def test_relations_come_back_from_a_file(tmp_path, name, relations):
    path = schema(*relations).save(tmp_path / name)
    back = Schema.load(path)
    assert back == schema(*relations)
    assert back.broken(TABLE).equals(schema(*relations).broken(TABLE))
    assert ("relations" in path.read_text()) == bool(relations)


@pytest.mark.parametrize(
    "relation", [*ALL, AGES_BY_DELAY, AGES_BY_YEARS, Implies({"age": (0, np.inf)}, {"gain": (1,)})]
)
def test_a_relation_is_a_plain_value(relation):
    assert relation_from_dict(relation_to_dict(relation)) == relation
    assert pickle.loads(pickle.dumps(relation)) == relation
    assert len({relation, relation_from_dict(relation_to_dict(relation))}) == 1
    hash(schema(relation))


def test_relations_are_read_as_a_person_writes_them(tmp_path):
    path = schema().save(tmp_path / "schema.toml")
    written = """
[[relations]]
kind = "implies"
if = { marital = ["Married"] }
then = { role = ["Husband", "Wife"] }

[[relations]]
kind = "follows"
column = "age"
of = "delay"
by = [[0, 0], [1, 2.5], [2, 3]]
"""
    path.write_text(path.read_text() + written)
    assert Schema.load(path).relations == (MARRIED, AGES_BY_DELAY)


def test_numbers_of_numpy_become_plain():
    relation = Determines(("education",), "years", [("HS", np.int64(9)), ("BSc", np.float64(13))])
    assert [type(value) for row in relation.rows for value in row] == [str, int, str, float]
    assert type(Follows("age", "years", rate=np.float64(1)).rate) is float


def test_a_revision_that_a_relation_needs_otherwise_is_refused_by_its_name():
    says = f"relation '{MARRIED}': 'role' has no level 'Wife'; its levels are 'Husband', 'Child'"
    with pytest.raises(ValueError, match=says):
        schema(MARRIED).revise("role", levels=("Husband", "Child"))
    with pytest.raises(ValueError, match=r"relation 'age rises with education': 'age' moves only with 'education'"):
        schema(AGES).revise("age", mutable=True)
    with pytest.raises(
        ValueError, match=r"relation 'before <= after': 'before' is ordinal, so 'after' must be ordinal"
    ):
        schema(RISES).revise("after", levels=("low", "high"))
    both = schema(RISES).revise("before", "after", levels=("high", "middle", "low"))
    assert list(both.broken(TABLE)["row"]) == ["r"], "the order is the one of the levels now"


# ---- what is refused ----


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Determines("education", "years"), r"Determines: by is 'education'; give a tuple"),
        (lambda: Determines((3,), "years"), "Determines: by must be the name of a column, got 3"),
        (lambda: Determines(("education",), 3), "Determines: column must be the name of a column, got 3"),
        (lambda: Determines(("education",), "years", "HS"), "Determines: rows is 'HS'; give a tuple"),
        (lambda: Determines(("education",), "years", ("HS",)), "Determines: a row of rows is 'HS'; give a tuple"),
        (
            lambda: Determines(("education",), "years", (("HS", None),)),
            "Determines: rows has None; a level or class is",
        ),
        (lambda: Implies(("marital",), {}), r"Implies: when is \('marital',\); give a mapping, such as"),
        (lambda: Implies({"marital": "Married"}, {}), r"'marital'.* is 'Married'; give a tuple .*\('Married',\)"),
        (lambda: Implies({3: ("a",)}, {}), "Implies: when must name columns, got 3"),
        (lambda: Implies({"age": (np.nan, 3)}, {}), "Implies: when.*'age'.* has nan"),
        (lambda: Exclusive("gain"), "Exclusive: columns is 'gain'; give a tuple"),
        (lambda: Sums("total", {"a": 1}), "Sums: parts is {'a': 1}; give a tuple"),
        (lambda: Sums("total", ("a", "b"), 3), "Sums: absorbs must be the name of a column, got 3"),
        (lambda: Follows("age", "education", by=3), "Follows: by is 3; give a mapping"),
        (
            lambda: Follows("age", "education", by={"HS": "0"}),
            "Follows: by has '0' for 'HS'; it must be a finite number",
        ),
        (lambda: Follows("age", "education", rate="1"), "Follows: rate is '1'; it must be a finite number, or None"),
        (lambda: Follows("age", "education", rate=np.inf), "Follows: rate is inf"),
        (lambda: schema("a <= b"), r"relation number 1 is 'a <= b' \(str\); expected one of Determines, Implies"),
        (lambda: Schema(FEATURES, "y", (0, 1), ONE), r"relations is Exclusive\(.*give a tuple"),
        (lambda: Schema(FEATURES, "y", (0, 1), None), r"relations is None; give a tuple"),
    ],
)
def test_a_relation_is_made_of_the_right_types(make, says):
    with pytest.raises(TypeError, match=says):
        make()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Determines((), "years"), r"Determines: by needs a name, got \[\]"),
        (lambda: Determines(("a", "a"), "years"), r"Determines: by has \['a'\] more than once"),
        (lambda: Determines(("years",), "years"), "'years' cannot fix itself"),
        (lambda: Determines(("a",), "b", ((1, 2, 3),)), r"the row \(1, 2, 3\) has 3 values; expected 2"),
        (lambda: Determines(("a",), "b", ((1, 2), (1, 3))), "rows list 1 more than once"),
        (lambda: Implies({}, {"a": ("b",)}), "Implies: when is empty; name a column"),
        (lambda: Implies({"a": ("b",)}, {"c": ()}), "Implies: then.*'c'.* allows nothing"),
        (lambda: Implies({"a": ("b",)}, {"a": ("c",)}), "'a' stands in when and in then"),
        (lambda: Implies({"a": ("b", "b")}, {"c": ("c",)}), r"when.*'a'.* has \['b'\] more than once"),
        (lambda: Ordered(("a",)), r"Ordered: columns needs two or more names, got \['a'\]"),
        (lambda: Sums("a", ("a", "b")), "Sums: 'a' cannot be a part of itself"),
        (
            lambda: Sums("a", ("part", "b"), "prat"),
            r"absorbs is 'prat' \(did you mean 'part'\?\); choose one of a, part",
        ),
        (lambda: Follows("age", "age", rate=1), "'age' cannot follow itself"),
        (lambda: Follows("age", "years"), "say how far 'age' moves, either with by"),
        (lambda: Follows("age", "years", by={"a": 1}, rate=1), "either with by"),
        (lambda: Follows("age", "years", rate=0), "rate is 0, so 'age' would never move"),
        (lambda: schema(Exclusive(("gain", "los"))), r"relation '.*': no feature 'los' \(did you mean 'loss'\?\)"),
        (lambda: schema(Exclusive(("gain", "y"))), "no feature 'y'"),
        (lambda: schema(Exclusive(("gain", "role"))), "'role' is categorical; expected a number"),
        (lambda: schema(Sums("total", ("gain", "before"))), "'before' is ordinal; expected a number"),
        (lambda: schema(Ordered(("gain", "before"))), "'before' is ordinal; expected a number"),
        (lambda: schema(Ordered(("before", "gain"))), "'before' is ordinal, so 'gain' must be ordinal with the same"),
        (lambda: schema(Determines(("education",), "years", (("HSc", 9),))), r"no level 'HSc' \(did you mean"),
        (
            lambda: schema(Determines(("education",), "years", (("HS", "nine"),))),
            "'years' is a number, but .* has 'nine'",
        ),
        (lambda: schema(Implies({"age": ("young",)}, {"gain": (0, 1)})), r"'age' is a number, so give its lowest and"),
        (lambda: schema(Implies({"age": (30, 20)}, {"gain": (0, 1)})), "age from 30 to 20 is empty; swap them"),
        (
            lambda: schema(Implies({"delay": (0, 5)}, {"gain": (0, 1)})),
            "'delay' has no level 5; its levels are 0, 1, 2",
        ),
        (lambda: schema(Follows("gain", "years", rate=1)), r'revise\("gain", mutable=False\)'),
        (lambda: schema(Follows("age", "education", rate=1)), "'education' is categorical, so give by="),
        (lambda: schema(Follows("age", "years", by={9: 0})), "'years' is a number, so give a rate"),
        (lambda: schema(Follows("age", "education", by={"HS": 0})), "by has no number for 'BSc', 'MSc' of 'education'"),
        (lambda: schema(Follows("age", "delay", by={"0": 0})), r"no level '0'.*in pairs: by = \[\[1, 0\], \[2, 4\]\]"),
        (lambda: schema(AGES, AGES_BY_YEARS), "'age' follows both 'education' and 'years'; keep one"),
        (lambda: schema(AGES, Determines(("role",), "age")), "'role fixes age': 'age' follows 'education' already"),
        (lambda: schema(ONE, SUM, ONE), "'at most one of gain and loss is above 0' is given twice"),
        (
            lambda: schema(AGES_BY_YEARS, Follows("years", "age", rate=1)).revise("years", mutable=False),
            "'years' moves only with 'age'",
        ),
    ],
)
def test_a_relation_that_makes_no_sense_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_columns_that_follow_one_another_in_a_circle_are_refused():
    features = Schema(FEATURES, "y", (0, 1)).revise("years", mutable=False).features
    with pytest.raises(ValueError, match="'age' follows 'years' follows 'age', a circle"):
        Schema(features, "y", (0, 1), (AGES_BY_YEARS, Follows("years", "age", rate=1)))


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("relations = 3", "'relations' is 3; give a tuple or a list"),
        ('relations = ["a <= b"]', "relation number 1: expected a table of settings, got 'a <= b'"),
        ('relations = [{columns = ["gain", "loss"]}]', "relation number 1: kind is None; choose one of"),
        ('relations = [{kind = "exclusiv"}]', r"kind is 'exclusiv' \(did you mean 'exclusive'\?\)"),
        ('relations = [{kind = 3}]', "kind is 3; choose one of"),
        ('relations = [{kind = "exclusive"}]', "'columns' is missing; there are columns"),
        (
            'relations = [{kind = "sums", total = "total", parts = ["gain", "loss"], absorb = "gain"}]',
            r"no setting 'absorb' \(did you mean 'absorbs'\?\); there are total, parts, absorbs",
        ),
        (
            'relations = [{kind = "implies", when = {marital = ["Married"]}, then = {role = ["Wife"]}}]',
            "'if' is missing; there are if, then",
        ),
        ('relations = [{kind = "ordered", columns = "gain"}]', "relation number 1: Ordered: columns is 'gain'"),
        ('relations = [{kind = "ordered", columns = ["gain", "lss"]}]', r"no feature 'lss' \(did you mean 'loss'\?\)"),
        ('relation = []', r"no setting 'relation' \(did you mean 'relations'\?\)"),
    ],
)  # fmt: skip
def test_a_relation_in_a_file_is_refused_in_a_sentence(tmp_path, written, says):
    path = schema().save(tmp_path / "schema.toml")
    path.write_text(f"{written}\n{path.read_text()}")
    with pytest.raises(ValueError, match=f"(?s)schema.toml: .*{says}"):
        Schema.load(path)


def test_a_table_without_the_columns_is_refused():
    for relation in ALL:
        with pytest.raises(ValueError, match="the table lacks columns"):
            schema(relation).broken(TABLE.drop(columns=relation.columns[-1]))
    with pytest.raises(ValueError, match="column 'gain' should hold numbers but is"):
        schema(ONE).broken(TABLE.assign(gain="much"))
    with pytest.raises(TypeError, match="expected a pandas DataFrame"):
        schema(ONE).broken([1])


def test_relations_load_without_pandas_and_torch():
    program = "import sys, holdfast.tabular.schema; assert not {'torch', 'pandas'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
