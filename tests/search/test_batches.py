"""A search in batches gives what the method gives for each row, and tells how far it is."""

from __future__ import annotations

import pytest
import torch

from holdfast import Counterfactuals, MinCost, Rehearsed, other_class, plans
from holdfast.search import batches
from holdfast.search.batches import search_in_batches

ROWS, SIZE = 10, 4  # people, and those of a batch: the last batch is smaller


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(batches, "ROWS_AT_ONCE", SIZE)


@pytest.fixture
def question(family, rows, encoding):
    x = rows[0][:ROWS]
    return family[0], x, other_class(family[0], x), encoding.space


def same(one: Counterfactuals, other: Counterfactuals) -> bool:
    tensors = ("origin", "point", "target", "found")
    return one.seen == other.seen and all(torch.equal(getattr(one, name), getattr(other, name)) for name in tensors)


@pytest.mark.parametrize("count", [1, 2])
def test_batches_are_what_one_search_of_all_rows_finds(family, question, count):
    method = Rehearsed(family[1:])
    found = search_in_batches(method, *question, count)
    whole = plans(method, *question, count)
    assert found.answers[0].found.any()
    assert all(same(*pair) for pair in zip(found.answers, whole.answers, strict=True))
    torch.testing.assert_close(found.cost.nan_to_num(-1), whole.cost.nan_to_num(-1))


def test_people_keep_their_own_bounds_in_every_batch(question):
    model, x, target, space = question
    kept = torch.zeros(x.shape, dtype=torch.bool)
    kept[::2, :3] = True  # every second person keeps the first columns
    answer = search_in_batches(MinCost(norm=1), model, x, target, space.without_people().keeping(kept), 1).answers[0]
    assert answer.found.any()
    assert not (answer.point != answer.origin)[::2, :3].any()
    assert (answer.point != answer.origin)[1::2, :3].any()


def test_progress_is_told_in_rows(question):
    done = []
    search_in_batches(MinCost(norm=1), *question, 1, lambda amount, doing=None: done.append(amount))
    assert done == [4, 4, 2]


def test_nobody_gets_an_empty_answer(question):
    model, x, target, space = question
    assert len(search_in_batches(MinCost(norm=1), model, x[:0], target[:0], space, 1)) == 0


def test_a_wrong_row_is_told_before_the_search(question):
    model, x, target, space = question
    broken, searched = x.clone(), []
    broken[ROWS - 1, 0] = torch.nan
    with pytest.raises(ValueError, match="not finite"):
        search_in_batches(lambda *given: searched.append(given), model, broken, target, space, 1)
    assert not searched
