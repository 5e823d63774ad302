import math

import pytest
import torch

from holdfast.theory.paths import line, nodes

LIKE = torch.zeros(1, dtype=torch.float64)


def integral(function, count, rule):
    parts, weights = nodes(count, rule, LIKE)
    return float((weights * function(parts)).sum())


@pytest.mark.parametrize("rule", ["riemann", "trapezoid"])
@pytest.mark.parametrize("count", [2, 3, 10, 64])
def test_weights_sum_to_one_and_points_lie_on_the_line(rule, count):
    parts, weights = nodes(count, rule, LIKE)
    assert parts.shape == weights.shape == (count,)
    assert float(weights.sum()) == pytest.approx(1, abs=1e-14)
    assert (weights > 0).all()
    assert (parts.diff() > 0).all()
    assert parts[0] >= 0
    assert parts[-1] <= 1


@pytest.mark.parametrize("count", [2, 5, 40])
def test_the_rules_miss_by_what_euler_and_maclaurin_say(count):
    """Riemann: h/2 [q] + h²/12 [q'], trapezoid: h²/12 [q'], and no more for a square."""
    assert integral(lambda t: 0 * t + 3, count, "riemann") == pytest.approx(3)
    assert integral(lambda t: t, count, "riemann") - 1 / 2 == pytest.approx(1 / (2 * count))
    assert integral(lambda t: t**2, count, "riemann") - 1 / 3 == pytest.approx(1 / (2 * count) + 1 / (6 * count**2))
    assert integral(lambda t: 5 * t - 1, count, "trapezoid") == pytest.approx(1.5)
    assert integral(lambda t: t**2, count, "trapezoid") - 1 / 3 == pytest.approx(1 / (6 * (count - 1) ** 2))


@pytest.mark.parametrize(("rule", "order"), [("riemann", 1), ("trapezoid", 2)])
def test_the_promised_order_is_measured(rule, order):
    counts = torch.tensor([21.0, 41.0, 81.0, 161.0], dtype=torch.float64)
    errors = counts.new_tensor([integral(torch.exp, int(p), rule) - (math.e - 1) for p in counts])
    slopes = errors.abs().log().diff() / (counts - (order - 1)).log().diff()
    torch.testing.assert_close(slopes, torch.full_like(slopes, -float(order)), rtol=0.02, atol=0.02)


def test_the_ends_are_where_they_should_be():
    start, end = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    riemann, trapezoid = (line(start, end, 4, rule)[0] for rule in ("riemann", "trapezoid"))
    assert riemann.shape == trapezoid.shape == (4, 5, 3)
    torch.testing.assert_close(riemann[0], start + (end - start) / 4)
    torch.testing.assert_close(riemann[-1], end)
    torch.testing.assert_close(trapezoid[0], start)
    torch.testing.assert_close(trapezoid[-1], end)


def test_one_start_serves_all_rows_and_the_dtype_is_the_rows():
    start, end = torch.randn(3, dtype=torch.float64), torch.randn(5, 3)
    points, weights = line(start, end, 7, "trapezoid")
    again, _ = line(start.float().expand(5, 3), end, 7, "trapezoid")
    assert torch.equal(points, again)
    assert points.dtype == weights.dtype == torch.float32


def test_the_papers_line_to_the_last_bit():
    """Published numbers rest on this very order of operations."""
    start, end = torch.randn(2, 50, 7, generator=torch.Generator().manual_seed(1))
    parts = torch.arange(1, 11, dtype=torch.float32) / 10
    assert torch.equal(line(start, end, 10)[0], start + parts[:, None, None] * (end - start))


@pytest.mark.parametrize(("count", "rule"), [(0, "riemann"), (1, "trapezoid"), (3, "simpson")])
def test_settings_that_make_no_sense_are_refused(count, rule):
    with pytest.raises(ValueError, match="must be"):
        line(torch.zeros(2), torch.ones(1, 2), count, rule)
