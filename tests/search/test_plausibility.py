import pytest
import torch

from holdfast import Counterfactuals
from holdfast.search.plausibility import neighbour_distance, outlier_factor


@pytest.fixture
def known():
    x = torch.randn(300, 3, generator=torch.Generator().manual_seed(0))
    return torch.cat([x, x + 10]), torch.tensor([0] * 300 + [1] * 300)


def answers(points, target, found=None):
    found = torch.ones(len(points), dtype=torch.bool) if found is None else found
    return Counterfactuals(torch.zeros_like(points), points, target, found)


def test_distance_is_to_the_nearest_rows_of_the_target_class(known):
    x, y = known
    points, target = torch.tensor([[0.0, 0, 0], [0.0, 0, 0], [10.0, 10, 10]]), torch.tensor([0, 1, 1])
    by_hand = [
        torch.cdist(points[row : row + 1], x[y == target[row]]).sort().values[0, :5].mean().item() for row in range(3)
    ]
    torch.testing.assert_close(neighbour_distance(answers(points, target), x, y), torch.tensor(by_hand))


def test_an_outlier_has_a_larger_factor_than_an_ordinary_point(known):
    factor = outlier_factor(answers(torch.tensor([[0.1, 0, 0], [6.0, 6, 6]]), torch.tensor([0, 0])), *known)
    assert 0.8 < factor[0] < 1.3
    assert factor[1] > 2


def test_rows_not_found_and_classes_without_rows_have_no_number(known):
    x, y = known
    points, target = torch.zeros(3, 3), torch.tensor([0, 0, 2])
    distance = neighbour_distance(answers(points, target, torch.tensor([True, False, True])), x, y)
    assert distance.isnan().tolist() == [False, True, True]


def test_rows_that_do_not_fit_are_refused(known):
    x, y = known
    with pytest.raises(ValueError, match=r"\(n, 3\)"):
        neighbour_distance(answers(torch.zeros(1, 3), torch.tensor([0])), x[:, :2], y)
