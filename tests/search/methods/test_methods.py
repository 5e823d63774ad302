"""What holds for every entry of METHODS, alone and followed by every stabiliser."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
import torch

from holdfast import (
    METHODS,
    PAPER_RECIPES,
    STABILISERS,
    Encoding,
    Network,
    Recipe,
    Retraining,
    Space,
    merged,
    named,
    other_class,
    predict,
    train,
)
from holdfast.datasets import DATASETS

NAMES = [*METHODS, *(f"pgd+{stabiliser}" for stabiliser in STABILISERS)]
EVERY = [*METHODS, *(f"{method}+{stabiliser}" for method in METHODS for stabiliser in STABILISERS)]
GRADES = {"low": 0, "middle": 1, "high": 2}


FITTED = {}


def find(name, model, x, target, space, known=None):
    """What a method answers that has been fitted to known rows, or to those asked about."""
    known = x if known is None else known
    if (name, id(known), id(space)) not in FITTED:  # kept with what they were fitted to, so that no id comes again
        fitted = named(name).fit(known, torch.zeros(len(known), dtype=torch.long), space)
        FITTED[name, id(known), id(space)] = fitted, known, space
    return FITTED[name, id(known), id(space)][0](model, x, target, space)


@pytest.fixture(scope="session")
def question(family, rows):
    """The deployed network, all rows, and for each the class it did not get."""
    return family[0], rows[0], other_class(family[0], rows[0])


@pytest.mark.parametrize("name", EVERY)
def test_what_is_found_is_in_the_space_and_in_the_class(name, question, encoding):
    model, x, target = question
    for space in (encoding.space, Space.free(x)):
        answer = find(name, model, x, target, space)
        assert torch.equal(answer.origin, x)
        assert torch.equal(answer.target, target)
        assert answer.found.float().mean() > 0.5
        found = answer.found
        assert not space.violations(answer.point[found], x[found]).any()
        assert (predict(model, answer.point[found]) == target[found]).all()


@pytest.mark.parametrize("name", NAMES)
def test_no_bit_of_what_is_immutable_moves_and_units_stay_whole(name, question, encoding):
    model, x, target = question
    answer = find(name, model, x, target, encoding.space)
    assert torch.equal(answer.point[:, 1], x[:, 1])
    before, after = encoding.decode(x), answer.to_frame(encoding)
    assert (after["debt"] % 100 == 0).all()
    assert (after["income"] >= before["income"] - 1e-4).all()
    assert (after["grade"].map(GRADES) >= before["grade"].map(GRADES)).all()
    assert not ((after["job"] == "none") & (before["job"] != "none")).any()
    assert not ((after["delay"] == -9) & (before["delay"] != -9)).any()
    assert torch.equal(encoding.encode(after)[answer.found], answer.point[answer.found])


@pytest.mark.parametrize("name", NAMES)
def test_batched_is_one_by_one_in_any_order(name, question, encoding):
    """In float64, so that the last bit of a matrix product decides nothing."""
    network, x, target = question
    x = x.double()
    exact = replace(
        network, weights=tuple(w.double() for w in network.weights), biases=tuple(b.double() for b in network.biases)
    )

    for space in (encoding.space, Space.free(x)):
        x = space.snap(x, x)
        together = find(name, exact, x, target, space)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))[:12]
        shuffled = find(name, exact, x[order], target[order], space, known=x)
        torch.testing.assert_close(shuffled.point, together.point[order])
        assert torch.equal(shuffled.found, together.found[order])
        row = int(order[0])
        alone = find(name, exact, x[row : row + 1], target[row : row + 1], space, known=x)
        torch.testing.assert_close(alone.point[0], together.point[row])


@pytest.mark.parametrize("name", NAMES)
def test_the_same_call_gives_the_same_bytes(name, question, encoding):
    one, two = (find(name, *question, encoding.space) for _ in range(2))
    assert torch.equal(one.point, two.point)
    assert torch.equal(one.found, two.found)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_never_changes_its_mind_fails_every_row_and_keeps_it(name, rows, encoding):
    x, _ = rows
    constant = Network((torch.zeros(x.shape[1], 2),), (torch.tensor([2.0, 0.0]),), Retraining())

    answer = find(name, constant, x, torch.ones(len(x), dtype=torch.long), encoding.space)
    assert len(answer) == len(x)
    assert not answer.found.any()
    assert answer.cost().isnan().all()


@pytest.mark.parametrize("name", NAMES)
def test_who_is_there_already_need_not_move(name, question, encoding):
    model, x, _ = question
    if name == "margin":  # who is there but not sure enough has to move
        x = x[model(x).softmax(1).amax(1) > 0.76]
    if "+" not in name:
        answer = find(name, model, x, predict(model, x), encoding.space)
        assert answer.found.all()
        assert torch.equal(answer.point, x)


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_give_no_rows(name, question, encoding):
    model, x, target = question
    assert len(find(name, model, x[:0], target[:0], encoding.space, known=x)) == 0


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_dataset_keeps_its_space(dataset, loaded):
    """Real tables with their own constraints; small networks suffice."""
    table, schema = loaded(dataset)
    card = DATASETS[dataset]
    known, asked = card.divide(table)
    encoding = Encoding.fit(known, schema, card.scaling)
    x, y = encoding.encode(known[:800]), encoding.labels(known[:800])
    recipe = Recipe(PAPER_RECIPES[dataset].hidden, epochs=5)
    network = train(x, y, recipe, [Retraining()], classes=len(schema.classes))[0]
    model = merged(network, ((0,), (1, 2))) if dataset == "warfarin" else network
    question = encoding.encode(asked[:20])
    target = other_class(model, question)
    for name in NAMES:
        if name == "pgd+certified" and model is not network:
            continue  # certificates are of perceptrons themselves
        for space in (encoding.space, Space.free(x)):
            answer = find(name, model, question, target, space, known=x)
            found = answer.found
            assert not space.violations(answer.point[found], question[found]).any()
            if space.discrete:
                back = encoding.encode(answer.to_frame(encoding))
                assert torch.equal(back[found], answer.point[found])  # what was judged is what a person becomes
                assert torch.equal(answer.point[:, ~space.mutable], question[:, ~space.mutable])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"x": torch.zeros(3)}, ValueError, r"expected x \(n, d\)"),
        ({"x": pd.DataFrame()}, TypeError, r"x must be a torch tensor, got DataFrame; encoding\.encode"),
        ({"target": "yes"}, TypeError, r"target must be a torch tensor, got str.*encoding\.target"),
        ({"target": torch.full((60,), 2)}, ValueError, r"class indices from 0 to 1 as int64, got \[2\]"),
        ({"target": torch.zeros(60)}, ValueError, r"as int64, got \[0\.0\] as torch\.float32"),
        ({"target": torch.zeros(60, dtype=torch.int32)}, ValueError, "as torch.int32"),
        ({"x": torch.full((60, 12), torch.nan)}, ValueError, "not finite; fill or drop"),
        ({"x": torch.zeros(60, 12, dtype=torch.long)}, ValueError, "floating-point numbers, got torch.int64"),
        ({"x": torch.zeros(60, 5)}, ValueError, "rows have 5 columns but the space has 12"),
        ({"model": lambda r: r[:, 0]}, ValueError, r"the model gave \(60,\) for 60 rows"),
        ({"space": "schema"}, TypeError, r"expected a Space, got str; use encoding\.space"),
    ],
)
@pytest.mark.parametrize("name", METHODS)
def test_questions_that_do_not_fit_are_told(name, change, error, message, question, encoding):
    model, x, target = question
    asked = {"model": model, "x": x, "target": target, "space": encoding.space} | change
    method = METHODS[name]().fit(x, target, encoding.space)
    with pytest.raises(error, match=message):
        method(**asked)
