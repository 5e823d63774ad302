"""A search in parts gives the same answers whoever searches them, by the names that models have in this process."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from dataclasses import fields, replace
from types import ModuleType

import pytest
import torch
from conftest import EVERYTHING, everything

from holdfast import (
    Counterfactuals,
    Encoding,
    Family,
    MinCost,
    Rehearsed,
    as_model,
    audit,
    changes,
    named,
    other_class,
    plans,
    refit,
)
from holdfast.models.identity import OBJECT, identities
from holdfast.search import in_parts
from holdfast.search.in_parts import search_in_parts

ROWS, SIZE = 10, 4  # people, and those of a part: the last part is smaller


@pytest.fixture(autouse=True)
def _processes_at_once(monkeypatch):
    """Searches as small as these would end in this process before others are started."""
    monkeypatch.setattr(in_parts, "SMALL", 0.0)


TENSORS = ("origin", "point", "target", "found", "before", "unlikeness", "implausible")


def same(one: Counterfactuals, other: Counterfactuals) -> bool:
    """To the bit, and by the same names."""
    pairs = [(getattr(one, name), getattr(other, name)) for name in TENSORS]
    return (one.seen, one.calls, one.classes) == (other.seen, other.calls, other.classes) and all(
        (a is None and b is None) or torch.equal(a, b) for a, b in pairs
    )


def both(method, model, x, target, space, **more):
    """The answer of two workers and of this process."""
    return tuple(
        search_in_parts(method, model, x, target, space, workers=workers, rows_at_once=SIZE, **more)
        for workers in (2, 1)
    )


@pytest.fixture(scope="module")
def trees():
    """A table, its encoding, boosted trees and four refits of them."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    table = everything(200)
    encoding = Encoding.fit(table, EVERYTHING)
    own = HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=5, early_stopping=False, random_state=0)
    own.fit(encoding.encode(table).numpy(), encoding.labels(table).numpy())
    model = as_model(own, encoding)
    return table, encoding, model, refit(model, table, changes.bootstrap(4), workers=1)


def test_a_search_that_takes_less_time_than_starting_processes_is_done_here(family, rows, encoding, monkeypatch):
    monkeypatch.setattr(in_parts, "SMALL", 3600.0)
    monkeypatch.setattr(in_parts, "in_workers", lambda *given, **more: pytest.fail("processes were started"))
    x = rows[0][:ROWS]
    question = MinCost(norm=1), family[0], x, other_class(family[0], x), encoding.space
    assert len(search_in_parts(*question, workers=2, rows_at_once=SIZE)) == ROWS


def asked_of(model, encoding, table):
    x = encoding.encode(table)[:ROWS]
    return x, other_class(model, x)


def test_two_workers_and_this_process_give_the_same_bits_for_networks(family, rows, encoding):
    x, method = rows[0][:ROWS], Rehearsed(family[1:])
    question = method, family[0], x, other_class(family[0], x), encoding.space
    workers, here = both(*question)
    assert same(workers, here)
    assert here.found.any()
    assert torch.equal(here.origin, x)
    whole = method(*question[1:])
    assert whole.seen == here.seen
    assert torch.equal(whole.found, here.found)
    torch.testing.assert_close(whole.point, here.point)


def test_a_part_is_what_the_method_finds_for_its_rows(family, rows, encoding):
    x = rows[0][:ROWS]
    target = other_class(family[0], x)
    here = search_in_parts(MinCost(norm=1), family[0], x, target, encoding.space, workers=1, rows_at_once=SIZE)
    for start in range(0, ROWS, SIZE):
        some = slice(start, start + SIZE)
        assert torch.equal(here[some].point, MinCost(norm=1)(family[0], x[some], target[some], encoding.space).point)


def test_two_workers_and_this_process_give_the_same_bits_for_trees_and_for_their_plans(trees):
    table, encoding, model, family = trees
    question = Rehearsed(family), model, *asked_of(model, encoding, table), encoding.space
    workers, here = both(*question)
    assert same(workers, here)
    assert here.found.any()
    several = both(*question, plans=2)
    whole = plans(*question, count=2)
    assert torch.equal(several[0].cost, several[1].cost) or several[0].cost.isnan().any()
    for rank in range(2):
        assert same(several[0].answers[rank], several[1].answers[rank])
        assert torch.equal(several[0].answers[rank].point, whole.answers[rank].point)
        assert several[0].answers[rank].seen == whole.answers[rank].seen


@pytest.fixture(scope="module")
def strangers(trees):
    """Two of the refits, known by their objects alone."""
    _, encoding, _, family = trees
    return Family.from_models([as_model(family.stacks[0].models[place].own, encoding) for place in range(2)])


@pytest.fixture(scope="module")
def bounded(trees, strangers):
    """A question of people who have bounds of their own to strangers, and the answers of `both`."""
    table, encoding, model, _ = trees
    x, target = asked_of(model, encoding, table)
    kept = torch.zeros(x.shape, dtype=torch.bool)
    kept[::2, :3] = True  # every second person keeps the first columns
    question = Rehearsed(strangers), model, x, target, encoding.space.without_people().keeping(kept)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_parts, "SMALL", 0.0)
        return question, both(*question)


def test_people_keep_their_own_bounds_in_every_part(bounded):
    (method, *question), (workers, here) = bounded
    assert same(workers, here)
    assert here.found.any()
    assert torch.equal(here.point, method(*question).point)
    assert not (here.point != here.origin)[::2, :3].any()


def test_models_are_known_by_their_names_in_this_process(bounded, strangers):
    (method, model, *question), (workers, here) = bounded
    assert workers.seen == here.seen == method(model, *question).seen
    assert workers.seen == identities(model) | set(strangers.fingerprints)
    assert any(name.startswith(OBJECT) for name in workers.seen)
    with pytest.raises(ValueError, match="search has"):
        audit(workers, strangers)


def test_a_black_box_is_searched_alike_and_its_questions_are_counted(trees):
    from sklearn.naive_bayes import GaussianNB

    table, encoding, _, _ = trees
    model = as_model(GaussianNB().fit(encoding.encode(table).numpy(), encoding.labels(table).numpy()), encoding)
    x, target = asked_of(model, encoding, table)
    workers, here = both(MinCost(norm=1, calls=200), model, x, target, encoding.space)
    assert same(workers, here)
    assert here.calls > 0


# ---- what goes wrong ----


def search_and_note(model, x, target, space):
    """A search that notes which process it ran in."""
    return replace(MinCost(norm=1)(model, x, target, space), classes=os.getpid())


@pytest.fixture
def ours(monkeypatch):
    """A search of a module that no worker can import."""
    module = ModuleType("only_here")
    exec("def search(*question):\n    return noting(*question)", module.__dict__)
    module.noting = search_and_note
    monkeypatch.setitem(sys.modules, "only_here", module)
    return module.search


@pytest.fixture
def locked():
    """A search that cannot be written down."""
    lock = threading.Lock()

    def search(model, x, target, space):
        with lock:
            return search_and_note(model, x, target, space)

    return search


@pytest.fixture
def warning():
    def search(*question):
        warnings.warn("a word about the model", UserWarning, stacklevel=1)
        return search_and_note(*question)

    return search


@pytest.mark.parametrize("name", ["ours", "locked"])
def test_what_cannot_be_handed_to_a_process_is_searched_here(name, family, rows, encoding, request):
    x = rows[0][:ROWS]
    question = request.getfixturevalue(name), family[0], x, other_class(family[0], x), encoding.space
    answer = search_in_parts(*question, workers=2, rows_at_once=SIZE)
    assert answer.classes == os.getpid()
    assert len(answer) == ROWS


def test_what_a_worker_warns_of_is_said_here_once(family, rows, encoding, warning):
    x = rows[0][:ROWS]
    question = warning, family[0], x, other_class(family[0], x), encoding.space
    with pytest.warns(UserWarning, match="a word about the model") as said:
        answer = search_in_parts(*question, workers=2, rows_at_once=SIZE)
    assert len(said) == 1
    assert answer.classes != os.getpid()  # what can be handed to a process is
    assert len(answer) == ROWS


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_the_search_is_raised(trees, workers):
    table, encoding, model, _ = trees
    x, target = asked_of(model, encoding, table)
    with pytest.raises(ValueError, match="needs gradients"):
        search_in_parts(named("pgd"), model, x, target, encoding.space, workers=workers, rows_at_once=SIZE)


@pytest.mark.parametrize("name", ["workers", "rows_at_once", "plans"])
def test_numbers_must_be_whole_and_above_0(name, family, rows, encoding):
    x = rows[0][:2]
    with pytest.raises((TypeError, ValueError), match=name):
        search_in_parts(MinCost(), family[0], x, other_class(family[0], x), encoding.space, **{name: 0.5})


def test_progress_is_told_in_rows(family, rows, encoding):
    done = []
    x = rows[0][:ROWS]
    question = MinCost(norm=1), family[0], x, other_class(family[0], x), encoding.space
    tell = lambda amount, doing=None: done.append(amount)  # noqa: E731
    search_in_parts(*question, workers=1, rows_at_once=SIZE, advance=tell)
    assert done == [4, 4, 2]


def test_nobody_gets_an_empty_answer(family, rows, encoding):
    x = rows[0][:0]
    answer = search_in_parts(MinCost(norm=1), family[0], x, torch.zeros(0, dtype=torch.long), encoding.space)
    assert len(answer) == 0


def test_every_field_of_an_answer_is_put_together(family, rows, encoding):
    assert {one.name for one in fields(Counterfactuals)} == {*TENSORS, "classes", "seen", "calls", "labels"}
