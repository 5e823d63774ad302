"""Distances between categories: known answers, and what must not change them."""

import numpy as np
import pytest
import torch

from holdfast import Prototype, other_class
from holdfast.search.methods.categories import association, lines, value_difference
from holdfast.search.methods.prototype import prototypes
from holdfast.tabular.space import Group, Space

# One number, one group of three levels, another of two.
SPACE = Space.box(torch.zeros(6), torch.ones(6))
SPACE = type(SPACE)(
    SPACE.lower, SPACE.upper, SPACE.mutable, SPACE.direction, SPACE.step, SPACE.shift, SPACE.scale,
    groups=(Group((1, 2, 3)), Group((4, 5))),
)  # fmt: skip


def rows_where_two_levels_keep_the_same_company(count=3000):
    """Levels 0 and 1 of the first group have the same law for all else; level 2 another."""
    draw = np.random.default_rng(0)
    level = draw.integers(0, 3, count)
    often = np.where(level == 2, 0.9, 0.2)
    other = (draw.random(count) < often).astype(int)
    number = draw.random(count) * 0.5 + 0.5 * (level == 2)
    x = np.column_stack([number, np.eye(3)[level], np.eye(2)[other]])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(other)


def test_known_distances():
    shares = np.array([[0.5, 0.5], [0.5, 0.5], [0.8, 0.2]])
    assert value_difference(shares) == pytest.approx(np.array([[0, 0, 0.6], [0, 0, 0.6], [0.6, 0.6, 0]]))
    # KL(p‖q) + KL(q‖p) for p = (.5, .5), q = (.8, .2)
    there = 0.5 * np.log(0.5 / 0.8) + 0.5 * np.log(0.5 / 0.2)
    back = 0.8 * np.log(0.8 / 0.5) + 0.2 * np.log(0.2 / 0.5)
    assert association(shares)[0, 2] == pytest.approx(there + back)
    assert association(shares)[0, 1] == 0


@pytest.mark.parametrize("categories", ["abdm", "mvdm"])
def test_levels_that_keep_the_same_company_are_near(categories):
    x, predicted = rows_where_two_levels_keep_the_same_company()
    line = lines(SPACE, x, predicted, categories)[:, 0][1:4]
    assert abs(line[0] - line[1]) < 0.05 * abs(line[0] - line[2])


def test_every_group_has_one_number_and_every_number_its_own():
    x, predicted = rows_where_two_levels_keep_the_same_company()
    table = lines(SPACE, x, predicted, "abdm")
    assert table.shape == (6, 3)
    assert torch.equal(table[0], torch.tensor([0.0, 0.0, 1.0]))  # the number keeps its unit
    assert (table[1:4, 1:] == 0).all()
    assert (table[4:, [0, 2]] == 0).all()
    spans = table.amax(0) - table.amin(0)
    assert float(spans[:2].max()) == pytest.approx(1)  # the longest line is as long as its columns are wide
    torch.testing.assert_close(table[:, :2].amax(0), -table[:, :2].amin(0))  # and each is centred


def test_the_order_of_rows_changes_nothing_and_levels_keep_their_places():
    x, predicted = rows_where_two_levels_keep_the_same_company()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        lines(SPACE, x, predicted, "abdm"), lines(SPACE, x[order], predicted[order], "abdm"), rtol=1e-4, atol=1e-4
    )


def test_the_nearest_prototype_is_one_of_a_near_level():
    """All candidates differ from the row in their level alone: by one-hot columns all are as far."""
    x, _ = rows_where_two_levels_keep_the_same_company()
    known = torch.tensor([[0.0, 0, 0, 1, 1, 0], [0.0, 0, 1, 0, 1, 0]])  # level 2, level 1

    def always(points):
        return torch.stack([torch.zeros(len(points)), torch.ones(len(points))], 1)

    row, target = torch.tensor([[0.0, 1, 0, 0, 1, 0]]), torch.tensor([1])  # level 0
    scale = lines(SPACE, x, torch.ones(len(x), dtype=torch.long), "abdm")
    found, _ = prototypes(always, known, row, target, 1, scale)
    assert torch.equal(found, known[1:])


@pytest.mark.slow
@pytest.mark.parametrize("categories", ["one-hot", "abdm", "mvdm"])
def test_whatever_is_near_the_answer_is_valid(categories, family, rows, encoding):
    x, y = rows
    target = other_class(family[0], x)
    answer = Prototype(categories=categories).fit(x, y, encoding.space)(family[0], x, target, encoding.space)
    assert answer.success > 0.9
    assert not encoding.space.violations(answer.point, x)[answer.found].any()


def test_distances_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="categories must be one of one-hot, abdm, mvdm"):
        Prototype(categories="hamming")
