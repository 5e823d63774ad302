from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import linear

from holdfast import Confidence, Counterfactuals, Encoding, Feature, Schema, Space, Sparse, assess, other_class

MODEL = linear(torch.tensor([1.0, 0.0]), 0.0)


def test_assess_alone_decides_what_found_means(encoding, rows):
    """Snapped, kept to the space, in the class: a point that loses its class by snapping is not found."""
    x, _ = rows
    income, owner = 0, 3
    point = x[:1].clone()
    point[0, owner] = (encoding.space.lower[owner] + encoding.space.upper[owner]) / 2 * 1.001 + 1e-3
    point[0, income] += 1.0
    half = float(point[0, owner])

    def model(r):  # class 1 exactly between the two values of `owner`
        return torch.stack([(r[:, owner] - half).abs() - 1e-4, 0 * r[:, 0]], -1)

    answer = assess(model, x[:1], point, torch.tensor([1]), encoding.space)
    assert model(point).argmax() == 1
    assert not answer.found.any()
    assert not encoding.space.violations(answer.point, x[:1]).any()


def test_assess_does_not_take_snapping_on_trust(monkeypatch):
    one = torch.ones(2)
    space = Space(-one, one, one.bool(), 0 * one, 0.5 * one, 0 * one, one)
    origin, point = torch.tensor([[-0.5, 0.0]]), torch.tensor([[0.3, 0.0]])
    assert assess(MODEL, origin, point, torch.tensor([1]), space).found.all()
    monkeypatch.setattr(Space, "snap", lambda self, x, origin: x)
    assert not assess(MODEL, origin, point, torch.tensor([1]), space).found.any()


@pytest.mark.parametrize("astray", [torch.inf, -torch.inf, torch.nan])
def test_a_search_that_ran_off_the_map_leaves_the_person_where_they_are(astray):
    origin = torch.tensor([[-0.5, 0.5]])
    box = Space.box(torch.full((2,), -1.0), torch.ones(2))
    answer = assess(MODEL, origin, torch.tensor([[astray, 0.5]]), torch.tensor([1]), box)
    assert torch.equal(answer.point, origin)
    assert not answer.found.any()


def test_costs_are_distances_and_nan_where_nothing_was_found():
    origin = torch.zeros(2, 2)
    answer = Counterfactuals(
        origin, torch.tensor([[3.0, 4.0], [1.0, 1.0]]), torch.tensor([1, 1]), torch.tensor([True, False])
    )
    assert answer.cost(1)[0] == 7
    assert answer.cost(2)[0] == 5
    assert answer.cost(torch.inf)[0] == 4
    assert answer.cost()[1].isnan()
    assert answer.sparsity.tolist() == [2, 2]
    assert answer.success == 0.5
    assert repr(answer) == "Counterfactuals(1 of 2 found)"


def test_a_frame_has_every_row_in_the_tables_units(encoding, rows):
    x, _ = rows
    found = torch.arange(len(x)) % 2 == 0
    frame = Counterfactuals(x, x.roll(1, 0), torch.zeros(len(x)).long(), found).to_frame(encoding)
    assert len(frame) == len(x)
    assert frame["found"].tolist() == found.tolist()
    assert frame["job"][1] == encoding.decode(x)["job"][1]  # not found: the row itself
    assert frame["job"][2] == encoding.decode(x)["job"][1]  # found: where they could be


def test_a_frame_made_with_the_table_leaves_what_stays_to_the_last_digit():
    schema = Schema((Feature("loan", "integer", mutable=False), Feature("income", "real")), "y", (0, 1))
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"loan": draw.integers(10**9, 10**10, 50), "income": draw.normal(4e4, 1e4, 50)})
    table.index = table.index + 500
    encoding = Encoding.fit(table, schema)
    x = encoding.encode(table)
    found = torch.arange(50) < 30
    answer = Counterfactuals(x, x + torch.tensor([0.0, 1.0]), torch.ones(50).long(), found)
    frame = answer.to_frame(encoding, table)
    assert frame.index.equals(table.index)
    assert (frame["loan"] == table["loan"]).all()
    assert (frame["income"][~found.numpy()] == table["income"][~found.numpy()]).all()
    assert (frame["income"][found.numpy()] > table["income"][found.numpy()] + 5000).all()
    with pytest.raises(ValueError, match="the table has 49 rows but there are 50 counterfactuals"):
        answer.to_frame(encoding, table[1:])


def test_changes_are_listed_feature_by_feature_for_found_rows(encoding, rows):
    x, _ = rows
    clerk, baker = (int(torch.nonzero(x[:, column] > 0)[0]) for column in (5, 7))
    point = x.clone()
    point[clerk, 5:9] = x[baker, 5:9]
    point[baker, 0] += 1
    found = torch.zeros(len(x), dtype=torch.bool)
    found[clerk] = True
    listed = Counterfactuals(x, point, torch.zeros(len(x)).long(), found).changes(encoding)
    assert listed.to_dict("records") == [{"row": clerk, "feature": "job", "before": "clerk", "after": "baker"}]
    found[baker] = True
    both = Counterfactuals(x, point, torch.zeros(len(x)).long(), found).changes(encoding)
    assert set(both["feature"]) == {"job", "income"}


def test_labels_say_whose_every_row_is(encoding, rows):
    x, _ = rows
    people = pd.Index([f"p{row}" for row in range(len(x))], name="id")[::-1]
    point = x.clone()
    point[[2, 5], 0] += 1
    plain = Counterfactuals(x, point, torch.zeros(len(x)).long(), torch.ones(len(x)).bool())
    answer = plain.labelled(people)
    assert plain.changes(encoding)["row"].tolist() == [2, 5]
    assert answer.changes(encoding)["row"].tolist() == [people[2], people[5]]
    assert answer.to_frame(encoding).index.equals(people)
    assert answer.costs(encoding).index.equals(people)
    mask = torch.arange(len(x)) % 2 == 1
    assert answer[mask].labels.equals(people[1::2])
    assert answer[3:5].labels.equals(people[3:5])
    assert answer[torch.tensor([5, 2, 5])].changes(encoding)["row"].tolist() == [people[5], people[2], people[5]]
    assert answer.where(mask, plain).labels.equals(people)
    assert replace(answer, found=mask).labels.equals(people)


@pytest.mark.parametrize("stabiliser", [Confidence(), Sparse()])
def test_a_stabiliser_keeps_whose_rows_they_are(stabiliser):
    x = torch.tensor([[-1.0, 0.0], [-2.0, 1.0]])
    space = Space.box(torch.full((2,), -9.0), torch.full((2,), 9.0))
    start = assess(MODEL, x, x + 4, torch.tensor([1, 1]), space).labelled(["ann", "bob"])
    assert stabiliser(MODEL, start, space).labels.tolist() == ["ann", "bob"]


def test_labels_are_one_for_each_row():
    answer = Counterfactuals(torch.zeros(2, 1), torch.zeros(2, 1), torch.zeros(2).long(), torch.ones(2).bool())
    with pytest.raises(ValueError, match="there are 3 labels for 2 counterfactuals"):
        answer.labelled([1, 2, 3])
    with pytest.raises(TypeError, match="labels are one for each row, such as table.index, got str"):
        answer.labelled("ab")
    with pytest.raises(TypeError, match=r"must be a pandas Index, got list; use answer\.labelled"):
        replace(answer, labels=[1, 2])


@pytest.mark.parametrize("kind", [float, "Int64"])
def test_a_missing_value_that_stays_is_no_change(kind):
    schema = Schema(
        (
            Feature("age", "integer", missing=True),
            Feature("income", "real", missing=True),
            Feature("job", "categorical", levels=("clerk", "nurse"), missing=True),
        ),
        "y",
        (0, 1),
    )
    table = pd.DataFrame(
        {"age": [30, None, 50], "income": [None, 20.5, 30.0], "job": ["clerk", None, None]}, index=["a", "b", "c"]
    ).astype({"age": kind})
    encoding = Encoding.fit(table, schema)
    x = encoding.encode(table)
    point = encoding.encode(table.assign(age=pd.Series([31, None, 50], index=table.index, dtype=kind)))
    point[2, 2:] = x[0, 2:]
    answer = Counterfactuals(x, point, torch.ones(3).long(), torch.ones(3).bool())
    told = answer.changes(encoding).to_dict("records")
    assert told[0] == {"row": 0, "feature": "age", "before": 30, "after": 31}
    assert pd.isna(told[1].pop("before"))
    assert told[1:] == [{"row": 2, "feature": "job", "after": "clerk"}]
    for frame in (answer.to_frame(encoding), answer.to_frame(encoding, table)):
        assert frame["age"].isna().tolist() == [False, True, False]
        assert frame["income"].isna().tolist() == [True, False, False]
        assert frame["job"].isna().tolist() == [False, True, False]
        assert frame["age"].dropna().tolist() == [31, 50]


def test_a_model_without_an_answer_finds_nothing():
    box = Space.box(torch.full((2,), -1.0), torch.ones(2))
    x = torch.zeros(3, 2)
    answer = assess(lambda r: torch.full((len(r), 2), torch.nan), x, x, torch.zeros(3, dtype=torch.long), box)
    assert not answer.found.any()


def test_the_other_class_needs_two():
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert other_class(MODEL, x).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"needs two classes, the model has 3; use merged"):
        other_class(lambda r: torch.zeros(len(r), 3), x)
