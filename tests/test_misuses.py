"""Whoever gets something wrong is told so in words, by us; what can only mean one thing simply works.

`misuses.py` has the table of calls; the second half here has what works anyway, and what is empty.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

import holdfast as hf
from holdfast.auditing.predictors import predictors
from holdfast.models import identity
from holdfast.paper import theorems
from holdfast.search.plausibility import neighbour_distance, outlier_factor
from holdfast.theory import certificates, influence, lipschitz, regions
from misuses import CLASSES, MISUSES, Misuse, made, method

PACKAGE = Path(hf.__file__).parent
# What torch, numpy, pandas and Python say of their own accord, and nobody can act on.
RAW = re.compile(
    r"mat1 and mat2|RuntimeError|expected scalar type|CUDA error|aten::|c10::|torch\.Size|torch\.nn|not implemented for"
    r"|must match the (existing )?size|out of bounds for|object is not|object has no|has no len|not supported between"
)
NOT_CALLED = {  # public names that nobody calls
    "METHODS": "a dictionary",
    "STABILISERS": "a dictionary",
}


@pytest.fixture(scope="module", autouse=True)
def _material():
    """Made here, so that no test is the one that pays for it."""
    made()


@pytest.mark.parametrize("misuse", MISUSES, ids=[misuse.name for misuse in MISUSES])
def test_a_misuse_is_told_by_us_and_in_words(misuse: Misuse):
    with pytest.raises(misuse.error) as caught:
        misuse.call()
    told = str(caught.value)
    assert misuse.says in told
    assert not RAW.search(told)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert Path(last.filename).is_relative_to(PACKAGE), f"raised in {last.filename}: {told}"


def test_no_two_entries_have_one_name():
    names = [misuse.name for misuse in MISUSES]
    assert len(set(names)) == len(names)


def test_every_public_name_that_can_be_called_is_misused():
    assert {misuse.of for misuse in MISUSES} & set(hf.__all__) == set(hf.__all__) - set(NOT_CALLED)


# ---- what works anyway ----


def question():
    m = made()
    return m.model, m.x, m.target, m.space


def same(one: hf.Counterfactuals, other: hf.Counterfactuals) -> bool:
    return torch.equal(one.point, other.point) and torch.equal(one.found, other.found)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_rows_with_a_graph_give_the_same_answer_without_one(name):
    model, x, target, space = question()
    answer = method(name)(model, x.clone().requires_grad_(), target, space)
    assert same(answer, method(name)(model, x, target, space))
    assert not answer.origin.requires_grad
    assert not answer.point.requires_grad


@pytest.mark.parametrize("name", ["SNS", "Confidence", "Certified", "Sparse"])
def test_counterfactuals_with_a_graph_are_moved_without_one(name):
    model, x, _, space = question()
    found, stabiliser = made().found, getattr(hf, name)()
    if name != "Sparse":
        stabiliser = replace(stabiliser, steps=3)
    graph = replace(found, origin=x.clone().requires_grad_(), point=found.point.clone().requires_grad_())
    answer = stabiliser(model, graph, space)
    assert same(answer, stabiliser(model, found, space))
    assert not answer.point.requires_grad


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_logits_in_float64_are_searched_in_the_dtype_of_the_rows(name):
    model, x, target, space = question()
    answer = method(name)(lambda r: model(r).double(), x, target, space)
    assert answer.point.dtype == torch.float32
    assert same(answer, method(name)(lambda r: model(r), x, target, space))  # a function too: searched in the same way
    if bool(answer.found.any()):
        assert hf.SNS(steps=3)(lambda r: model(r).double(), answer, space).point.dtype == torch.float32


@pytest.mark.parametrize("name", CLASSES)
def test_rows_in_float64_are_searched_in_float64(name):
    model, x, target, space = question()
    exact = replace(
        model, weights=tuple(w.double() for w in model.weights), biases=tuple(b.double() for b in model.biases)
    )
    answer = method(name)(exact, space.snap(x.double(), x.double()), target, space)
    assert answer.point.dtype == torch.float64


def test_counterfactuals_in_float64_are_audited_in_the_dtype_of_the_members():
    m = made()
    double = replace(m.found, origin=m.found.origin.double(), point=m.found.point.double())
    assert torch.equal(hf.audit(double, m.family).predictions, m.audit.predictions)
    own = hf.Family.from_models([torch.nn.Linear(5, 2), torch.nn.Linear(5, 2).double(), m.family[0]])
    assert torch.equal(own.predict(double.point), own.predict(m.found.point))


def test_rows_with_a_graph_can_be_trained_on_and_predicted():
    m = made()
    graph = m.x.clone().requires_grad_()
    family = hf.train(graph, m.y, m.recipe, hf.seeds(1))
    assert torch.equal(family.predict(graph), hf.train(m.x, m.y, m.recipe, hf.seeds(1)).predict(m.x))
    assert not hf.predict(m.model, graph).requires_grad


def test_numbers_of_numpy_are_settings_too():
    assert hf.Recipe((torch.tensor(8).numpy()[()],), epochs=pd.Series([5])[0]) == hf.Recipe((8,), epochs=5)
    assert hf.seeds(pd.Series([2])[0]) == hf.seeds(2)


# ---- a model is looked up once, and never by what it was ----


def test_a_search_looks_a_model_up_once(monkeypatch):
    looked = []
    known = identity.identities
    for place in ("holdfast.models.checked", "holdfast.models.identity"):
        monkeypatch.setattr(f"{place}.identities", lambda model: looked.append(model) or known(model))
    hf.PGD(radius=6.0, levels=3, steps=5)(*question())
    assert len(looked) == 1


def test_weights_that_were_changed_in_place_are_another_model():
    _, x, target, space = question()
    module = torch.nn.Linear(5, 2)
    search = hf.PGD(levels=1, steps=1)
    before = search(module, x, target, space).seen
    assert search(module, x, target, space).seen == before
    with torch.no_grad():
        module.weight.add_(1)
    assert not search(module, x, target, space).seen & before


# ---- nothing at all ----


def nobody() -> hf.Counterfactuals:
    return made().found[:0]


def nothing_found() -> hf.Counterfactuals:
    return replace(made().found, found=torch.zeros(24, dtype=torch.bool))


@pytest.mark.parametrize("name", CLASSES)
def test_no_rows_have_no_counterfactuals(name):
    model, x, target, space = question()
    assert len(method(name)(model, x[:0], target[:0], space)) == 0


@pytest.mark.parametrize("start", [nobody, nothing_found])
@pytest.mark.parametrize("name", ["SNS", "Confidence", "Certified", "Sparse"])
def test_stabilisers_leave_nothing_as_it_is(name, start):
    model, _, _, space = question()
    moved = getattr(hf, name)()(model, start(), space)
    assert len(moved) == len(start())
    assert not moved.found.any()
    assert torch.equal(moved.point, start().point)


@pytest.mark.parametrize("start", [nobody, nothing_found])
def test_an_audit_of_nothing_says_so(start):
    m, answer = made(), start()
    result = hf.audit(answer, m.family)
    assert pd.isna(result.rate)
    assert pd.isna(result.found_and_held) if not len(answer) else result.found_and_held == 0
    assert all(map(pd.isna, result.interval()))
    assert result.interval_of_new_rows() is None
    assert len(result.per_row) == len(answer)
    assert len(result.table()) == len(result.table(m.model)) == len(answer)
    assert "nothing was found" in repr(result)
    assert list(result.summary()["found"]) == [0]
    (row,) = result.rows(dataset="german", method="pgd", space="free", seconds=0.0)
    assert row["rate"] is None
    assert result._repr_html_()


def test_nothing_is_told_of_nobody():
    m, answer = made(), nobody()
    assert hf.why_not(m.model, answer, m.space) == ()
    assert len(hf.why_not(m.model, nothing_found(), m.space, tries=5)) == 24
    assert len(hf.predict(m.model, m.x[:0])) == len(hf.other_class(m.model, m.x[:0])) == 0
    assert len(predictors(m.model, answer, m.x, m.y)) == 0
    assert predictors(m.model, nothing_found(), m.x, m.y).isna().all(axis=None)
    assert len(neighbour_distance(answer, m.x, m.y)) == len(outlier_factor(answer, m.x, m.y)) == 0
    assert neighbour_distance(m.found, m.x[:0], m.y[:0]).isnan().all()
    assert len(answer.cost()) == len(answer.sparsity) == len(answer.changes(m.encoding)) == 0
    assert pd.isna(answer.success)
    assert len(hf.assess(m.model, m.x[:0], m.x[:0], m.target[:0], m.space)) == 0
    assert m.family.predict(m.x[:0]).shape == (3, 0)
    assert m.family.logits(m.x[:0]).shape == (3, 0, 2)


def test_a_family_of_nobody_answers_nothing():
    m = made()
    empty = m.family[:0]
    assert len(empty) == 0
    assert "empty" in repr(empty)
    assert empty.predict(m.x).shape == (0, 24)
    assert empty.logits(m.x).shape == (0, 24, 2)
    assert empty.chosen([]).kinds == empty.suspects == empty.class_counts(m.x) == ()


def test_theory_of_no_rows_is_empty():
    m = made()
    x, target = m.x[:0], m.target[:0]
    numbers = [
        certificates.margin_bound(m.model, x, target, 0.1),
        certificates.certified_radius(m.model, x, target),
        lipschitz.lipschitz_bound(m.model, x, 0.1),
        lipschitz.sampled_lipschitz(m.model, x, 0.1),
        influence.influence(m.model, x, target, influence.Ball(0.1, 3)),
        regions.pattern(m.model, x),
        regions.facet_distance(m.model, x),
        regions.boundary_distance_inside(m.model, x).distance,
        theorems.theorem2(m.model, m.model, x).left,
        theorems.proposition1(lambda r: m.model(r)[:, 0], x, 0.5).norm,
    ]
    assert [len(number) for number in numbers] == [0] * len(numbers)
