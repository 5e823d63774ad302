"""What holds for every entry of METHODS, alone and followed by every stabiliser.

A property that does not depend on how long is searched is shown with few steps; the slow tests take the defaults.
"""

from __future__ import annotations

import functools
from dataclasses import fields, is_dataclass, replace

import pandas as pd
import pytest
import torch

from holdfast import (
    METHODS,
    STABILISERS,
    Encoding,
    Recipe,
    Retraining,
    Space,
    assess,
    make_method,
    other_class,
    predict,
    train,
)
from holdfast.datasets import DATASETS
from holdfast.families.perceptron import Network
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.merged import merged

NAMES = [*METHODS, *(f"pgd+{stabiliser}" for stabiliser in STABILISERS)]
OTHER_PAIRS = [f"{method}+{stabiliser}" for method in METHODS if method != "pgd" for stabiliser in STABILISERS]
GRADES = {"low": 0, "middle": 1, "high": 2}
EASY = ("heloc", "warfarin", "seizure")  # few steps find enough; test_believable.py has every method in full there
FEW = {"steps": 8, "levels": 3, "constants": 2, "epochs": 10, "samples": 200, "sizes": (64, 8)}


def in_full(method):
    return method


def in_few_steps(value):
    """The same method, or methods, with settings that take a fraction of the time."""
    if isinstance(value, tuple):
        return tuple(map(in_few_steps, value))
    if not is_dataclass(value):
        return value
    own = {field.name: getattr(value, field.name) for field in fields(value)}
    return replace(value, **{name: FEW.get(name, in_few_steps(setting)) for name, setting in own.items()})


lengths = pytest.mark.parametrize("length", [in_few_steps, pytest.param(in_full, marks=pytest.mark.slow)])


@functools.cache
def fitted(name, space, known, length):
    """A method that has been fitted to known rows, once."""
    return length(make_method(name)).fit(known, torch.zeros(len(known), dtype=torch.long), space)


def find(name, model, x, target, space, known=None, length=in_full):
    """What a method answers that has been fitted to known rows, or to those asked about."""
    return fitted(name, space, x if known is None else known, length)(model, x, target, space)


def searched_once(model, x, target, spaces, known=None, length=in_full):
    """``answer(name, "free")`` is what a method finds for these rows, searched for once: stabilisers share it too.

    That a name with a + does the one after the other is what test_pipeline shows.
    """

    @functools.cache
    def answer(name, space):
        if "+" not in name:
            return find(name, model, x, target, spaces[space], known, length)
        method, stabiliser = name.split("+")
        return length(STABILISERS[stabiliser]())(model, answer(method, space), spaces[space])

    return answer


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    """Tests of one method follow one another, and share what it found."""
    return request.param


@pytest.fixture(scope="session")
def question(family, rows):
    """The deployed network, all rows, and for each the class it did not get."""
    return family[0], rows[0], other_class(family[0], rows[0])


@pytest.fixture(scope="module")
def spaces(question, encoding):
    return {"schema": encoding.space, "free": Space.free(question[1])}


@pytest.fixture(scope="module")
def answers(question, spaces):
    return searched_once(*question, spaces)


def check_what_is_found(answer, question, space):
    model, x, target = question
    assert torch.equal(answer.origin, x)
    assert torch.equal(answer.target, target)
    found = answer.found
    assert not space.violations(answer.point[found], x[found]).any()
    assert (predict(model, answer.point[found]) == target[found]).all()


def test_what_is_found_is_in_the_space_and_in_the_class(name, answers, question, spaces):
    for key, space in spaces.items():
        check_what_is_found(answers(name, key), question, space)
        assert answers(name, key).success > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("pair", OTHER_PAIRS)
def test_every_pair_finds_what_is_in_the_space_and_in_the_class(pair, answers, question, spaces):
    for key, space in spaces.items():
        check_what_is_found(answers(pair, key), question, space)
        assert answers(pair, key).success > 0.5


def test_no_bit_of_what_is_immutable_moves_and_units_stay_whole(name, answers, question, encoding):
    _, x, _ = question
    answer = answers(name, "schema")
    assert torch.equal(answer.point[:, 1], x[:, 1])
    before, after = encoding.decode(x), answer.to_frame(encoding)
    assert (after["debt"] % 100 == 0).all()
    assert (after["income"] >= before["income"] - 1e-4).all()
    assert (after["grade"].map(GRADES) >= before["grade"].map(GRADES)).all()
    assert not ((after["job"] == "none") & (before["job"] != "none")).any()
    assert not ((after["delay"] == -9) & (before["delay"] != -9)).any()
    assert torch.equal(encoding.encode(after)[answer.found], answer.point[answer.found])


@pytest.mark.slow
@lengths
def test_batched_is_one_by_one_in_any_order(name, length, question, encoding):
    """In float64, so that the last bit of a matrix product decides nothing."""
    network, x, target = question
    x = x.double()
    exact = replace(
        network, weights=tuple(w.double() for w in network.weights), biases=tuple(b.double() for b in network.biases)
    )

    for space in (encoding.space, Space.free(x)):
        x = space.snap(x, x)
        together = find(name, exact, x, target, space, length=length)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))[:12]
        shuffled = find(name, exact, x[order], target[order], space, known=x, length=length)
        torch.testing.assert_close(shuffled.point, together.point[order])
        assert shuffled.found.any()
        assert torch.equal(shuffled.found, together.found[order])
        row = int(order[0])
        alone = find(name, exact, x[row : row + 1], target[row : row + 1], space, known=x, length=length)
        torch.testing.assert_close(alone.point[0], together.point[row])


@pytest.mark.slow
@lengths
def test_the_same_call_gives_the_same_bytes(name, length, question, encoding):
    one, two = (find(name, *question, encoding.space, length=length) for _ in range(2))
    assert torch.equal(one.point, two.point)
    assert torch.equal(one.found, two.found)


@lengths
def test_a_model_that_never_changes_its_mind_fails_every_row_and_keeps_it(name, length, rows, encoding):
    x = rows[0][:20]
    constant = Network((torch.zeros(x.shape[1], 2),), (torch.tensor([2.0, 0.0]),), Retraining())

    answer = find(name, constant, x, torch.ones(len(x), dtype=torch.long), encoding.space, length=length)
    assert len(answer) == len(x)
    assert not answer.found.any()
    assert answer.cost().isnan().all()


@pytest.mark.parametrize("method", METHODS)
def test_who_is_there_already_need_not_move(method, question, encoding):
    model, x, _ = question
    if method == "margin":  # who is there but not sure enough has to move
        x = x[model(x).softmax(1).amax(1) > 0.76]
    answer = find(method, model, x, predict(model, x), encoding.space)
    assert len(x) > 10
    assert answer.found.all()
    assert torch.equal(answer.point, x)


@pytest.mark.parametrize("stabiliser", STABILISERS)
@lengths
def test_a_stabiliser_keeps_who_is_there_already_in_the_class_the_space_and_the_ball(
    stabiliser, length, question, encoding
):
    model, x, _ = question
    target = predict(model, x)
    for space in (encoding.space, Space.free(x)):
        start = assess(model, x, x, target, space)
        assert start.found.all()
        method = length(STABILISERS[stabiliser]())
        moved = method(model, start, space)
        assert moved.found.all()
        assert (predict(model, moved.point) == target).all()
        assert not space.violations(moved.point, x).any()
        if stabiliser == "sparse":
            assert torch.equal(moved.point, x)  # there is no change that it could take back
        else:
            assert (moved.cost(method.norm) <= method.radius * (1 + 1e-5)).all()
            assert not torch.equal(moved.point, x)


@lengths
def test_no_rows_give_no_rows(name, length, question, encoding):
    model, x, target = question
    assert len(find(name, model, x[:0], target[:0], encoding.space, known=x, length=length)) == 0


@pytest.mark.parametrize(
    ("dataset", "rows", "length"),
    [
        ("german", 8, in_few_steps),
        *(pytest.param(name, 20, in_full, marks=pytest.mark.slow) for name in DATASETS if name not in EASY),
        *(pytest.param(name, 20, in_few_steps, marks=pytest.mark.slow) for name in EASY),
    ],
)
def test_every_dataset_keeps_its_space(dataset, rows, length, loaded):
    """Real tables with their own constraints; small networks suffice."""
    table, schema = loaded(dataset)
    card = DATASETS[dataset]
    known, asked = card.divide(table)
    encoding = Encoding.fit(known, schema, card.scaling)
    x, y = encoding.encode(known[:800]), encoding.labels(known[:800])
    recipe = Recipe(PAPER_RECIPES[dataset].hidden, epochs=40)  # fewer, and Taiwan's would give all rows one class
    network = train(x, y, recipe, [Retraining()], classes=len(schema.classes))[0]
    model = merged(network, ((0,), (1, 2))) if dataset == "warfarin" else network
    question = encoding.encode(asked[:rows])
    spaces = {"schema": encoding.space, "free": Space.free(x)}
    answers = searched_once(model, question, other_class(model, question), spaces, x, length)
    for name in NAMES:
        if name == "pgd+certified" and model is not network:
            continue  # certificates are of perceptrons themselves
        for key, space in spaces.items():
            answer = answers(name, key)
            found = answer.found
            assert found.any()
            assert not space.violations(answer.point[found], question[found]).any()
            if space.discrete:
                back = encoding.encode(answer.to_frame(encoding))
                assert torch.equal(back[found], answer.point[found])  # what was judged is what a person becomes
                moves = space.mutable | space.follows
                assert torch.equal(answer.point[:, ~moves], question[:, ~moves])


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
@pytest.mark.parametrize("method", METHODS)
def test_questions_that_do_not_fit_are_refused(method, change, error, message, question, encoding):
    model, x, target = question
    asked = {"model": model, "x": x, "target": target, "space": encoding.space} | change
    with pytest.raises(error, match=message):
        fitted(method, encoding.space, x, in_few_steps)(**asked)
