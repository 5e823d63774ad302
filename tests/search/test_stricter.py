"""A stricter search keeps what is good enough still, leaves out who had nothing, and searches for the others alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from holdfast import Margin, MinCost, Rehearsed, other_class
from holdfast.search.stricter import search_stricter

ROWS = 24


@pytest.fixture
def question(family, rows, encoding):
    x = rows[0][:ROWS]
    return family[0], x, other_class(family[0], x), encoding.space


def pairs(family):
    """A method, and the same one with a larger parameter."""
    return [
        (Rehearsed(family[1:], share=0.5), Rehearsed(family[1:])),
        (Rehearsed(family[1:]), Rehearsed(family[1:], temperature=1.0)),
        (Margin(log_odds=0.5), Margin(log_odds=2.0)),
    ]


@pytest.mark.parametrize("place", range(3))
def test_what_holds_stays_and_the_others_are_searched_as_ever(family, question, place):
    lenient, strict = pairs(family)[place]
    before, whole = lenient(*question), strict(*question)
    found = search_stricter(strict, *question, before)
    holds = before.found & strict.holds(question[0], before)
    rest = before.found & ~holds
    assert rest.any()
    assert torch.equal(found.point[holds], before.point[holds])
    assert found.found[holds].all()
    assert torch.equal(found.found[rest], whole.found[rest])
    assert torch.equal(found.point[rest & found.found], whole.point[rest & found.found])
    assert strict.holds(question[0], found)[found.found].all()
    assert not found.found[~before.found].any()
    assert found.seen == whole.seen


def test_only_those_are_searched_for_whom_that_is_open(family, question):
    class Noted(Rehearsed):
        def __call__(self, model, x, target, space):
            asked.append(len(x))
            return super().__call__(model, x, target, space)

    asked = []
    strict = Noted(family[1:], temperature=1.0)
    before = Rehearsed(family[1:])(*question)
    nobody = replace(before, found=torch.zeros_like(before.found))
    assert not search_stricter(strict, *question, nobody).found.any()
    search_stricter(strict, *question, before)
    assert asked[0] == 0
    assert asked[1] == int((before.found & ~strict.holds(question[0], before)).sum())


def test_a_method_that_does_not_say_what_it_asks_for_is_searched_anew(question):
    before = replace(MinCost(norm=1)(*question), found=torch.zeros(ROWS, dtype=torch.bool))
    assert search_stricter(MinCost(norm=1), *question, before).found.any()
