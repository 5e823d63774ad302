import numpy as np
import pandas as pd
import pytest
from conftest import EVERYTHING, everything

from holdfast import Feature, Schema


def test_infer_reads_kinds_off_a_table():
    table = everything().assign(
        grade=lambda t: pd.Categorical(t["grade"], categories=["low", "middle", "high"], ordered=True)
    )
    schema = Schema.infer(table, label="outcome")
    kinds = {feature.name: feature.kind for feature in schema.features}
    assert kinds == {
        "income": "real",
        "age": "integer",
        "debt": "integer",
        "owner": "binary",
        "grade": "ordinal",
        "job": "categorical",
        "delay": "integer",
    }
    assert schema["grade"].levels == ("low", "middle", "high")
    assert schema.classes == ("no", "yes")
    schema.check(table, labelled=True)


def test_revise_changes_only_what_is_named():
    schema = EVERYTHING.revise("age", "debt", mutable=False)
    assert not schema["age"].mutable
    assert not schema["debt"].mutable
    assert schema["debt"].step == 100
    assert schema["income"] == EVERYTHING["income"]
    with pytest.raises(KeyError, match="did you mean 'income'"):
        EVERYTHING.revise("incom", mutable=False)


@pytest.mark.parametrize("name", ["schema.toml", "schema.json"])
def test_round_trip_through_a_file(tmp_path, name):
    path = EVERYTHING.save(tmp_path / name)
    assert Schema.load(path) == EVERYTHING
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_file_that_is_no_schema_is_named(tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text('label = "y"\n')
    with pytest.raises(ValueError, match=r"odd\.toml.*is not a valid schema.*'features'"):
        Schema.load(path)


def _with(**columns):
    return everything().assign(**columns)


def test_whole_numbers_kept_as_floats_are_integers():
    assert Schema.infer(_with(age=everything()["age"].astype(float)), "outcome")["age"].kind == "integer"


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(ValueError, match=r"(?s)'age' has 60 missing.*'job' has levels 'pilot'.*'outcome' has levels"):
        EVERYTHING.check(_with(age=np.nan, job="pilot", outcome="maybe"), labelled=True)
    with pytest.raises(ValueError, match=r"(?s)'outcome' has 60 missing.*'age' has values that are not finite"):
        Schema.infer(_with(age=[0.0, np.inf] * 30, outcome=None), "outcome")


def test_a_schema_prints_a_line_a_feature():
    lines = str(EVERYTHING).splitlines()
    assert lines[0] == "label outcome: no, yes"
    assert lines[1].strip() == "income (real) lower=0, upper=200, direction=rise"
    assert lines[2].strip() == "age (integer) mutable=False"
    assert len(lines) == 8


BROKEN = {
    "unseen level": (_with(job="pilot"), r"'job' has levels 'pilot' .*lists 'clerk', 'nurse'.*revise..job., levels="),
    "missing value": (_with(age=[np.nan] + [30.0] * 59), r"'age' has 1 missing values \(rows 0\).*fill them"),
    "missing level": (_with(job=[None] + ["clerk"] * 59), r"'job' has 1 missing values"),
    "text for numbers": (_with(income="12,5"), r"'income' should hold numbers but is .*'12,5'.*to_numeric"),
    "a word among numbers": (
        _with(income=[1.5, "2", "many", 4] + [5] * 55 + ["?"]).set_axis([f"p{row}" for row in range(60)]),
        r"'income' should hold numbers but is object, 'many' in row 'p2', '\?' in row 'p59'; correct the cells",
    ),
    "truth for numbers": (_with(age=True), r"'age' should hold numbers but is bool"),
    "fractions for integers": (_with(age=30.5), r"'age' should hold whole numbers but has 30\.5"),
    "infinite": (_with(income=np.inf), r"'income' has values that are not finite: inf"),
    "lacking column": (everything().drop(columns="debt"), r"lacks columns \['debt'\].*it has 'income'"),
    "renamed column": (everything().rename(columns={"debt": "debts"}), r"did you mean 'debts'"),
    "no rows": (everything().iloc[:0], r"the table is empty \(0 rows, 8 columns\)"),
    "copied column": (pd.concat([everything(), everything()[["age"]]], axis=1), r"\['age'\] appear more than once"),
    "unknown class": (_with(outcome="maybe"), r"'outcome' has levels 'maybe'.*classes=\.\.\."),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_table_is_refused_with_its_column_value_and_remedy(case):
    table, message = BROKEN[case]
    with pytest.raises(ValueError, match=message):
        EVERYTHING.check(table, labelled=True)


def test_only_tables_are_tables():
    with pytest.raises(TypeError, match=r"expected a pandas DataFrame, got list"):
        EVERYTHING.check([[1, 2]])


def test_infer_refuses_what_it_cannot_read():
    with pytest.raises(ValueError, match="'wage' has 60 different values in 60 rows.*numbers kept as text"):
        Schema.infer(_with(wage=[f"{i + 20},500" for i in range(60)]), "outcome")
    with pytest.raises(ValueError, match="at least one feature beside its label 'outcome'; 'id' is left out"):
        Schema.infer(_with(id=[f"p{i}" for i in range(60)])[["id", "outcome"]], "outcome")
    with pytest.raises(ValueError, match="label 'income' has .* different values.*name a column of classes"):
        Schema.infer(everything(), "income")
    with pytest.raises(ValueError, match=r"columns 0, 1 have names that are not text.*astype\(str\)"):
        Schema.infer(pd.DataFrame(np.zeros((3, 2))), "outcome")
    with pytest.raises(TypeError, match="label must be the name of a column, got Series"):
        Schema.infer(everything(), everything()["outcome"])
    with pytest.raises(ValueError, match=r"lacks columns \['outcom'\] \(did you mean 'outcome'"):
        Schema.infer(everything(), "outcom")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "number"}, "choose one of real, integer"),
        ({"kind": "real", "lower": 3, "upper": 2}, "lower 3 is above upper 2"),
        ({"kind": "real", "step": 0}, "step is 0"),
        ({"kind": "integer", "step": 0.5}, "not whole"),
        ({"kind": "real", "levels": ("a",)}, "levels are for columns of levels"),
        ({"kind": "binary", "levels": ("a",)}, "two levels"),
        ({"kind": "categorical"}, "needs its levels"),
        ({"kind": "categorical", "levels": ("a", "a")}, "repeat"),
        ({"kind": "categorical", "levels": ("a", "b"), "zero_level": "a"}, "stands among levels too"),
        ({"kind": "categorical", "levels": ("a", "b"), "avoid": ("c",)}, r"avoid \['c'\] must be levels"),
        ({"kind": "categorical", "levels": ("a", "b"), "avoid": ("a", "b")}, "mutable=False"),
        ({"kind": "ordinal", "levels": ("a", "b"), "lower": 1}, "are for numbers"),
        ({"kind": "real", "direction": "up"}, "choose one of any, rise, fall"),
        ({"kind": "real", "difficulty": 0}, "difficulty is 0; it must be above 0"),
        ({"kind": "real", "difficulty": -1.5}, "difficulty is -1.5"),
        ({"kind": "real", "ranges": ((2, 1),)}, r"ranges has \(2, 1\), which ends before it begins"),
        ({"kind": "real", "ranges": ((3, 4), (1, 2))}, r"ranges has \(1, 2\) after \(3, 4\); list them in order"),
        ({"kind": "real", "ranges": ((1, 3), (3, 4))}, "join those that touch or overlap"),
        ({"kind": "real", "ranges": ((0, 9),), "upper": 8}, "must lie between lower None and upper 8"),
        ({"kind": "real", "ranges": ((0, 9),), "lower": 1}, "must lie between lower 1 and upper None"),
        ({"kind": "integer", "ranges": ((0, 1e20),)}, r"whole numbers end before 2\^63"),
        ({"kind": "ordinal", "levels": ("a", "b"), "ranges": ((0, 1),)}, "ranges are for numbers"),
        ({"kind": "binary", "levels": ("a", "b"), "missing": True}, "make it categorical"),
        (
            {"kind": "categorical", "levels": ("a", "b"), "zero_level": "c", "missing": True},
            "missing values and zero_level 'c' would both be written as all zeros; move 'c' to levels, or fill",
        ),
    ],
)
def test_a_feature_that_makes_no_sense_is_refused(settings, message):
    with pytest.raises(ValueError, match=f"feature 'f': .*{message}"):
        Feature("f", **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "real", "mutable": "no"}, "mutable is 'no'; it must be True or False"),
        (
            {"kind": "categorical", "levels": "North"},
            r"levels is 'North'; give a tuple or a list, such as \('North',\)",
        ),
        ({"kind": "real", "lower": float("nan")}, "lower is nan; it must be a finite number"),
        ({"kind": "real", "step": "100"}, "step is '100'; it must be a finite number"),
        ({"kind": "real", "upper": True}, "upper is True"),
        ({"kind": "real", "missing": "yes"}, "missing is 'yes'; it must be True or False"),
        ({"kind": "real", "difficulty": "hard"}, "difficulty is 'hard'; it must be a finite number above 0"),
        ({"kind": "real", "difficulty": float("inf")}, "difficulty is inf"),
        ({"kind": "real", "ranges": (0, 1)}, r"ranges is \(0, 1\); give pairs of finite numbers"),
        ({"kind": "real", "ranges": ((0, 1, 2),)}, "ranges is .*; give pairs"),
        ({"kind": "real", "ranges": ((0, float("inf")),)}, "ranges is .*; give pairs"),
    ],
)
def test_settings_of_the_wrong_type_are_refused(settings, message):
    with pytest.raises(TypeError, match=f"feature 'f': {message}"):
        Feature("f", **settings)


def test_revise_refuses_what_it_would_have_to_guess():
    with pytest.raises(TypeError, match="no setting 'mutabel' .did you mean 'mutable'"):
        EVERYTHING.revise("age", mutabel=False)
    with pytest.raises(TypeError, match="name the features one by one"):
        EVERYTHING.revise(mutable=False)
    with pytest.raises(TypeError, match="name the features one by one"):
        EVERYTHING.revise(["age", "income"], mutable=False)


def test_numbers_of_numpy_are_numbers(tmp_path):
    schema = EVERYTHING.revise("age", upper=everything()["age"].max())
    assert type(schema["age"].upper) is int
    assert Schema.load(schema.save(tmp_path / "schema.toml")) == schema


@pytest.mark.parametrize("name", ["schema.toml", "schema.json"])
def test_ranges_difficulty_and_missing_go_through_a_file(tmp_path, name):
    schema = EVERYTHING.revise("age", ranges=[(18, 40), [np.int64(50), np.float32(50)]], difficulty=2.5, missing=True)
    assert schema["age"].ranges == ((18, 40), (50, 50))
    assert Schema.load(schema.save(tmp_path / name)) == schema


def test_levels_come_in_an_order_only_where_somebody_lists_it():
    with pytest.raises(ValueError, match=r"feature 'job': .* revise\('job', kind='ordinal', levels=\(\.\.\.\)\)"):
        EVERYTHING.revise("job", kind="ordinal")
    with pytest.raises(ValueError, match="feature 'job': categories have no order"):
        EVERYTHING.revise("job", direction="rise")
    listed = EVERYTHING.revise("job", kind="ordinal", levels=("none", "clerk", "nurse", "baker"), avoid=())
    assert listed["job"].levels == ("none", "clerk", "nurse", "baker")


def test_new_bounds_cut_or_stretch_the_ranges():
    schema = EVERYTHING.revise("debt", ranges=((0, 1000), (2000, 3000), (3500, 3500)))
    assert schema.revise("debt", upper=2500)["debt"].ranges == ((0, 1000), (2000, 2500))
    assert schema.revise("debt", upper=1500)["debt"].ranges == ((0, 1500),)
    assert schema.revise("debt", lower=-100, upper=9000)["debt"].ranges == ((-100, 1000), (2000, 3000), (3500, 9000))
    assert schema.revise("debt", upper=3000, ranges=())["debt"].ranges == ()
    assert schema.revise("debt", lower=3600)["debt"].ranges == ()
    with pytest.raises(TypeError, match="upper is '9'"):
        schema.revise("debt", upper="9")


def test_a_new_kind_leaves_what_it_has_no_room_for():
    coded = EVERYTHING.revise("debt", kind="categorical", levels=(0, 100))["debt"]
    assert coded == Feature("debt", "categorical", levels=(0, 100))
    assert EVERYTHING.revise("job", kind="integer")["job"] == Feature("job", "integer")


def test_a_schema_needs_different_features_and_classes():
    f = Feature("f", "real")
    with pytest.raises(ValueError, match=r"\['f'\] are listed twice"):
        Schema((f, f), "y", (0, 1))
    with pytest.raises(ValueError, match="both the label and a feature"):
        Schema((f,), "f", (0, 1))
    with pytest.raises(ValueError, match="two or more different classes"):
        Schema((f,), "y", (0,))


F = Feature("f", "real")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Feature(3, "real"), "the name of a feature must be text, got 3 .int."),
        (lambda: Feature(None, "real"), "the name of a feature must be text, got None"),
        (lambda: Schema((F,), 3, (0, 1)), "label must be the name of a column, got 3 .int."),
        (lambda: Schema((F,), "y", "ab"), "classes is 'ab'; give a tuple"),
        (lambda: Schema((F,), "y", 2), "classes is 2; give a tuple"),
        (lambda: Schema((F,), "y", (0, float("nan"))), "classes has nan; a level or class is text"),
        (lambda: Schema((F,), "y", ("no", "y\0es")), "a level or class is text without zero characters"),
        (lambda: Feature("a", "binary", levels=("u\0", "v")), "a level or class is text without zero characters"),
        (lambda: Schema((F,), "y", (0, None)), "classes has None"),
        (lambda: Schema((F,), "y", (0, [1])), r"classes has \[1\]"),
        (lambda: Schema(("age",), "y", (0, 1)), r"feature number 1 is 'age' .str.; expected Feature\(name, kind\)"),
        (lambda: Schema((F, {"name": "g"}), "y", (0, 1)), "feature number 2 is {'name': 'g'} .dict."),
        (lambda: Schema(F, "y", (0, 1)), "features is Feature.*; give a tuple"),
        (lambda: Schema("age", "y", (0, 1)), "features is 'age'; give a tuple"),
        (lambda: Feature("f", "categorical", levels=("a", float("nan"))), "feature 'f': levels has nan; a level"),
        (lambda: Feature("f", "categorical", levels=("a", np.float64("inf"))), "feature 'f': levels has inf"),
        (lambda: Feature("f", "categorical", levels=("a", None)), "feature 'f': levels has None"),
        (lambda: Feature("f", "categorical", levels=("a", ["b"])), r"feature 'f': levels has \['b'\]"),
        (lambda: Feature("f", "categorical", levels=("a", b"b")), "feature 'f': levels has b'b'"),
        (lambda: Feature("f", "categorical", levels=("a", "b"), zero_level=[1]), r"zero_level is \[1\]"),
        (lambda: Feature("f", "categorical", levels=("a", "b"), avoid=({},)), "feature 'f': avoid has {}"),
        (lambda: Feature("f", "categorical", levels=("a", 10**400)), "levels has a number of about 401 digits"),
        (lambda: Feature("f", "real", lower=-(10**400)), "feature 'f': lower is a number of about 401 digits; it must"),
        (lambda: Feature("f", "real", upper=10**9000), "feature 'f': upper is a number of about 9001 digits"),
    ],
)
def test_what_a_schema_is_made_of_has_the_right_type(make, says):
    with pytest.raises(TypeError, match=says):
        make()


def test_classes_of_numpy_are_plain(tmp_path):
    schema = Schema((F,), "y", np.array([0, 1]))
    assert [type(value) for value in schema.classes] == [int, int]
    assert Schema.load(schema.save(tmp_path / "schema.json")) == schema


GOOD = 'label = "y"\nclasses = ["a", "b"]\n'


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.toml", b"", "'label' is missing"),
        ("empty.json", b"", "Expecting value"),
        ("junk.toml", bytes(range(128, 256)), "is not text in UTF-8"),
        ("junk.json", bytes(range(128, 256)), "is not text in UTF-8"),
        ("zero.toml", b"\0\1\2", "Invalid statement"),
        ("zero.json", b"\0\1\2", "Expecting value"),
        ("list.json", b"[1, 2]", r"expected a table of settings, got \[1, 2\] .list."),
        ("number.json", b"3", "expected a table of settings, got 3 .int."),
        ("deep.json", b"[" * 100_000, "too deep to read"),
        ("deep.toml", b"x = " + b"[" * 100_000, "too deep to read"),
        ("digits.json", b'{"label": ' + b"1" * 5000 + b"}", "Exceeds the limit|integer string conversion"),
        (
            "label.toml",
            b'label = 3\nclasses = ["a", "b"]\n[[features]]\nname = "f"\nkind = "real"',
            "label must be the name",
        ),
        ("classes.toml", b'label = "y"\nclasses = "ab"\n[[features]]\nname = "f"\nkind = "real"', "classes is 'ab'"),
        ("key.toml", (GOOD + "clases = 1\nfeatures = []").encode(), "no setting 'clases' .did you mean 'classes'"),
        ("none.toml", (GOOD + "features = []").encode(), "at least one feature"),
        ("map.toml", (GOOD + '[features]\nname = "f"').encode(), "'features' is .*; give a tuple or a list"),
        ("text.toml", (GOOD + 'features = "f"').encode(), "'features' is 'f'; give"),
        ("int.toml", (GOOD + "features = 3").encode(), "'features' is 3; give"),
        ("item.toml", (GOOD + 'features = ["f"]').encode(), "feature number 1: expected a table of settings, got 'f'"),
        ("bare.toml", (GOOD + 'features = [{name = "f"}]').encode(), "feature number 1 'f': 'kind' is missing"),
        (
            "odd.toml",
            (GOOD + 'features = [{name = "f", kind = "real", uper = 3}]').encode(),
            "feature number 1 'f': no setting 'uper' .did you mean 'upper'",
        ),
        (
            "huge.toml",
            (GOOD + f'features = [{{name = "f", kind = "real", lower = {10**400}}}]').encode(),
            "feature 'f': lower is a number of about 401 digits",
        ),
        (
            "date.toml",
            (GOOD + 'features = [{name = "f", kind = "categorical", levels = ["a", 2020-01-01]}]').encode(),
            "feature 'f': levels has datetime.date",
        ),
        ("name.toml", (GOOD + 'features = [{name = 3, kind = "real"}]').encode(), "the name of a feature must be text"),
        (
            "kind.toml",
            (GOOD + 'features = [{name = "f", kind = ["real"]}]').encode(),
            r"feature 'f': kind is \['real'\]",
        ),
        (
            "nan.toml",
            (GOOD + 'features = [{name = "f", kind = "real", upper = nan}]').encode(),
            "feature 'f': upper is nan",
        ),
    ],
)
def test_a_file_that_is_no_schema_is_refused_in_a_sentence(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"(?s){name}.*({says})"):
        Schema.load(tmp_path / name)


def test_a_schema_is_read_from_a_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder; name the schema's file in it"):
        Schema.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*gone\.toml; check the name"):
        Schema.load(tmp_path / "gone.toml")
    marked = tmp_path / "marked.toml"
    marked.write_bytes(b"\xef\xbb\xbf" + EVERYTHING.save(tmp_path / "schema.toml").read_bytes())
    assert Schema.load(marked) == EVERYTHING


@pytest.mark.parametrize("odd", [[1], {"a": 1}, {1}, np.ones(2), b"x", 1j, pd.Interval(0, 1)])
def test_cells_that_are_no_level_are_named(odd):
    column = np.empty(60, dtype=object)
    column[:] = [odd] * 30 + ["a", "b"] * 15
    with pytest.raises(ValueError, match="column 'job' holds .*; convert it to text or numbers"):
        Schema.infer(_with(job=column), "outcome")
    with pytest.raises(ValueError, match="column 'outcome' holds .*; convert it to text or numbers"):
        Schema.infer(_with(outcome=column), "outcome")
    with pytest.raises(ValueError, match="column 'job' (holds|has levels)"):
        EVERYTHING.check(_with(job=column))
    with pytest.raises(ValueError, match="column 'income' (holds|should hold numbers)"):
        EVERYTHING.check(_with(income=column))


def test_complex_numbers_and_cut_numbers_are_not_inferred():
    with pytest.raises(ValueError, match=r"column 'age' holds .* \(complex\); convert it to text or numbers"):
        Schema.infer(_with(age=1j * np.arange(60)), "outcome")
    with pytest.raises(ValueError, match=r"column 'age' holds Interval.*; convert it to text or numbers"):
        Schema.infer(_with(age=pd.cut(everything()["age"], 3)), "outcome")
    with pytest.raises(ValueError, match="column 'age' has values that are not finite: inf"):
        Schema.infer(_with(age=[0.0, np.inf] * 30), "outcome")
