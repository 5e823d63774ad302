import numpy as np
import pandas as pd
import pytest

from holdfast import read_table
from holdfast.tabular.identifying import matched, row_labels, shared_key, twins

FEATURES = ("age", "job", "approved")


def people(**more):
    return pd.DataFrame({"age": [30, 31, 32], "job": ["a", "b", "c"], **more})


# ---- the labels of one table ----


def test_a_named_column_gives_the_labels_and_is_no_feature_afterwards():
    table, told = row_labels(people(code=["x", "y", "z"], id=[1, 2, 3]), FEATURES, "code", "people")
    assert list(table.index) == ["x", "y", "z"]
    assert list(table) == ["age", "job", "id"]
    assert told == "people: column 'code' names the rows"


def test_a_feature_that_gives_the_labels_stays_a_feature():
    table, _ = row_labels(people(), FEATURES, "job", "people")
    assert list(table.index) == ["a", "b", "c"]
    assert list(table) == ["age", "job"]


def test_a_column_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(ValueError, match=r"rows\.csv: no column 'idd'.*did you mean 'id'.*'age', 'job', 'id'"):
        row_labels(people(id=[1, 2, 3]), FEATURES, "idd", "rows.csv")


@pytest.mark.parametrize("named", [True, False])
def test_an_index_of_its_own_stays(named):
    own = people(id=[1, 2, 3]).set_axis(pd.Index(["x", "z", "y"], name="who" if named else None))
    table, told = row_labels(own, FEATURES, None, "people")
    pd.testing.assert_frame_equal(table, own)
    assert told == ("people: the index 'who' names the rows" if named else "people: its own index names the rows")
    numbers = people(code=[1, 2, 3]).set_axis(pd.Index([7, 9, 8], name="who" if named else None))
    pd.testing.assert_frame_equal(row_labels(numbers, FEATURES, None, "people")[0], numbers)


def test_the_numbers_of_a_part_of_a_table_do_not_stand_for_its_ids():
    part = people(id=[51, 52, 53]).iloc[1:]
    table, told = row_labels(part, FEATURES, None, "people")
    assert list(table.index) == [52, 53]
    assert told == "people: column 'id' names the rows"


def test_the_index_may_be_asked_for_by_its_name():
    own = people().set_axis(pd.Index([7, 9, 8], name="who"))
    assert list(row_labels(own, FEATURES, "who", "people")[0].index) == [7, 9, 8]


@pytest.mark.parametrize(
    "column",
    [
        {"id": [8001, 8004, 8009]},
        {"customer_no": [5, 3, 4]},
        {"applicant": ["Ada", "Ben", "Cem"]},
        {"case": pd.Categorical(["k", "l", "m"])},
    ],
    ids=lambda column: next(iter(column)),
)
def test_three_rows_are_enough_to_see_a_key(column):
    ((name, values),) = column.items()
    table, told = row_labels(people(**column), FEATURES, None, "people")
    assert list(table.index) == list(values)
    assert told == f"people: column {name!r} names the rows"


@pytest.mark.parametrize(
    "column",
    [
        {"score": [0.5, 0.7, 0.1]},
        {"points": [3, 4, 5]},  # three numbers in a row are chance
        {"paid": [True, False, True]},
        {"seen": ["2020-01-31", "2020-02-01", "2020-02-02"]},
        {"seen": pd.date_range("2020-01-01", periods=3)},
        {"city": ["x", "x", "y"]},
        {"note": ["x", None, "y"]},
        {"lists": [[1], [2], [3]]},
    ],
    ids=lambda column: next(iter(column)),
)
def test_what_is_no_key_leaves_the_rows_numbered(column):
    table, told = row_labels(people(**column), FEATURES, None, "people")
    assert list(table.index) == [0, 1, 2]
    assert "numbered from 0" in told


def test_numbers_that_count_many_rows_are_a_key_whatever_they_are_called():
    table = pd.DataFrame({"age": np.arange(40) % 7, "points": np.arange(100, 140)})
    assert list(row_labels(table, FEATURES, None, "people")[0].index) == list(range(100, 140))


def test_the_column_called_like_a_key_is_preferred_to_text_that_happens_to_be_unique():
    table, _ = row_labels(people(city=["x", "y", "z"], person_id=[4, 5, 6]), FEATURES, None, "people")
    assert list(table.index) == [4, 5, 6]


@pytest.mark.parametrize(
    "columns", [{"city": ["x", "y", "z"], "name": ["u", "v", "w"]}, {"person_id": [4, 5, 6], "case_no": [1, 2, 3]}]
)
def test_several_keys_are_named(columns):
    named = ", ".join(map(repr, columns))
    with pytest.raises(ValueError, match=f"rows.csv: each of the columns {named} could name the rows.*--index NAME"):
        row_labels(people(**columns), FEATURES, None, "rows.csv")


@pytest.mark.parametrize("index", ["id", None])
def test_labels_that_repeat_are_shown(index):
    with pytest.raises(ValueError, match="people: column 'id' has labels that stand for several rows, 7; each row"):
        row_labels(people(id=[7, 7, 8]), FEATURES, index, "people")


@pytest.mark.parametrize("index", ["id", None])
def test_labels_that_are_missing_are_counted(index):
    with pytest.raises(ValueError, match=r"'id' has no label in 1 of 3 rows \(rows number 2\)"):
        row_labels(people(id=[7, None, 8]), FEATURES, index, "people")


def test_labels_that_no_csv_file_can_hold_are_refused():
    with pytest.raises(ValueError, match="'id' has labels with zero characters"):
        row_labels(people(id=["a", "b\0c", "d"]), FEATURES, "id", "people")


def test_an_index_that_repeats_is_shown():
    with pytest.raises(ValueError, match="people: index has labels that stand for several rows, 5"):
        row_labels(people().set_axis([5, 5, 6]), FEATURES, None, "people")


def test_an_id_of_something_else_may_repeat():
    table = pd.DataFrame({"age": range(6), "household_id": [1, 1, 1, 2, 2, 2]})
    assert "numbered from 0" in row_labels(table, FEATURES, None, "people")[1]


def test_an_empty_table_has_no_labels():
    table, _ = row_labels(people(id=[1, 2, 3])[:0], FEATURES, None, "people")
    assert not len(table)


# ---- the column that two tables share ----


def test_the_shared_column_says_whose_each_counterfactual_is():
    points = people(id=[8009, 8001, 8001])
    known = people(id=[8001, 8004, 8009])
    assert shared_key({"people": known, "counterfactuals": points}, FEATURES) == "id"
    first, second, told = matched(known, points, FEATURES)
    assert list(first.index) == [8001, 8004, 8009]
    assert list(second.index) == [8009, 8001, 8001]
    assert "id" not in first
    assert "id" not in second
    assert told == "people and counterfactuals are matched by column 'id', which both have"


def test_an_index_with_a_name_is_a_column_like_any_other():
    known = people(id=[8001, 8004, 8009]).set_index("id")
    _, points, _ = matched(known, people(id=[8009, 8001, 8001]), FEATURES)
    assert list(points.index) == [8009, 8001, 8001]


def test_columns_that_match_the_same_rows_are_no_doubt():
    known, points = people(ref=["x", "y", "z"], id=[1, 2, 3]), people(ref=["z", "x", "x"], id=[3, 1, 1])
    assert shared_key({"people": known, "counterfactuals": points}, FEATURES) == "id"


def test_columns_that_match_rows_differently_are_named():
    known, points = people(ref=["x", "y", "z"], id=[1, 2, 3]), people(ref=["x", "y", "z"], id=[3, 1, 1])
    with pytest.raises(ValueError, match="columns 'id', 'ref' are each in people and counterfactuals.*--index NAME"):
        matched(known, points, FEATURES)
    assert list(matched(known, points, FEATURES, "ref")[1].index) == ["x", "y", "z"]


def test_a_feature_is_never_the_shared_column():
    assert shared_key({"people": people(), "counterfactuals": people()}, FEATURES) is None
    assert "by their numbers" in matched(people(), people(), FEATURES)[2]


def test_ids_that_nobody_has_stop_it_unless_the_column_is_named():
    known, points = people(id=[1, 2, 3]), people(id=[1, 2, 99])
    with pytest.raises(ValueError, match=r"people do not have its values 99.*--index"):
        matched(known, points, FEATURES)
    assert list(matched(known, points, FEATURES, "id")[1].index) == [1, 2, 99]


def test_ids_as_text_beside_ids_as_numbers_stop_it():
    with pytest.raises(ValueError, match="do not have its values '1', '2', '3'.*int64"):
        matched(people(id=[1, 2, 3]), people(id=["1", "2", "3"]), FEATURES)


def test_ids_that_repeat_among_the_people_stop_it():
    with pytest.raises(ValueError, match="'id', .* repeats or is empty in some rows of people"):
        matched(people(id=[1, 1, 3]), people(id=[1, 1, 3]), FEATURES)


def test_ids_that_the_people_lack_stop_it():
    with pytest.raises(ValueError, match="counterfactuals have a column 'id'.*people have none"):
        matched(people(), people(id=[1, 2, 3]), FEATURES)


def test_own_indexes_match_the_tables_if_nothing_contradicts_them():
    known, points = people().set_axis([5, 6, 7]), people().set_axis([7, 7, 5])
    first, second, told = matched(known, points, FEATURES)
    assert first is known
    assert second is points
    assert "by their indexes" in told
    with pytest.raises(ValueError, match="indexes of people and counterfactuals match.*than column 'id'"):
        matched(known.assign(id=[1, 2, 3]), points.assign(id=[1, 2, 3]), FEATURES)


def test_labels_of_one_table_alone_stop_it():
    with pytest.raises(ValueError, match="rows of people have labels, 0, 2, 5, and counterfactuals do not say whose"):
        matched(people().set_axis([0, 2, 5]), people(), FEATURES)
    first, second, _ = matched(people(), people().set_axis([2, 0, 0]), FEATURES)
    assert list(first.index) == [0, 1, 2]
    assert list(second.index) == [2, 0, 0]


def test_tables_from_files_match(tmp_path):
    people(id=[8001, 8004, 8009]).to_csv(tmp_path / "people.csv", index=False)
    people(id=[8009, 8009, 8001]).to_csv(tmp_path / "points.csv", index=False)
    _, points, _ = matched(*(read_table(tmp_path / f"{name}.csv") for name in ("people", "points")), FEATURES)
    assert list(points.index) == [8009, 8009, 8001]


# ---- people who are alike ----


def test_twins_are_alike_in_every_feature():
    table = pd.DataFrame(
        {"age": [1.5, 2, 1.5, 1.5, 2], "job": ["a", None, "a", "b", None], "id": range(5)}, index=list("vwxyz")
    )
    found = twins(table, ("age", "job"))
    assert found.to_dict("list") == {"row": ["x", "z"], "of": ["v", "w"]}
    assert twins(table, ("age", "job", "id")).empty
    assert twins(table[:0], ("age", "job")).empty


def test_the_first_of_three_alike_is_whose_values_they_are():
    table = pd.DataFrame({"age": [4, 4, 5, 4]}, index=[10, 11, 12, 13])
    assert twins(table, ("age",)).to_dict("list") == {"row": [11, 13], "of": [10, 10]}


# ---- a few people beside the table that they belong to ----


def test_a_column_that_names_the_rows_of_the_larger_table_names_those_of_a_few_people():
    clients = pd.DataFrame({"age": range(50), "client": range(501, 551)})
    few = people(client=[530, 507, 544])  # three numbers in no order, in a column that is not called id
    assert "numbered from 0" in row_labels(few, FEATURES, None, "people")[1]
    labelled, told = row_labels(few, FEATURES, None, "people", clients)
    assert list(labelled.index) == [530, 507, 544]
    assert told == "people: column 'client' names the rows"
    points = people(client=[544, 530, 530])
    _, found, told = matched(few, points, FEATURES, larger=clients)
    assert list(found.index) == [544, 530, 530]
    assert "by column 'client'" in told


def test_a_column_that_only_repeats_in_the_larger_table_names_nobody():
    clients = pd.DataFrame({"age": range(50), "branch": [1, 2, 3, 4, 5] * 10})
    assert "numbered from 0" in row_labels(people(branch=[4, 1, 2]), FEATURES, None, "people", clients)[1]
