"""Some of the rows rule out pairs of columns, and never one that all rows would show."""

import numpy as np
import pytest

from holdfast.tabular import screening


def table(seed, rows=400):
    """Columns of few values, some of which fix others, or never meet them, or are missing now and then."""
    draw = np.random.default_rng(seed)
    base = draw.integers(0, 6, rows)
    columns = [base, base // 2, np.where(base < 3, 0, draw.integers(0, 3, rows)), draw.integers(0, 4, rows)]
    columns += [np.where(base % 2 == 0, 1, draw.integers(0, 2, rows)), np.minimum(draw.geometric(0.3, rows) - 1, 9)]
    codes = np.stack(columns, axis=1)
    codes[draw.random(codes.shape) < 0.05] = -1
    counts = [np.bincount(one[one >= 0], minlength=int(one.max()) + 1) for one in codes.T]
    return codes, counts


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("seen", [7, 60, 400])
@pytest.mark.parametrize("cells", [screening.CELLS, 200])
def test_no_pair_of_levels_is_lost(seed, seen, cells, monkeypatch):
    monkeypatch.setattr(screening, "CELLS", cells)  # few: one column at a time
    codes, counts = table(seed)
    fixes, missed = screening.of_levels(codes[screening.chosen_rows(400, seen)], counts, 400)
    for a, b in np.ndindex(fixes.shape):
        both = (codes[:, [a, b]] >= 0).all(1)
        meet = np.zeros((len(counts[a]), len(counts[b])), dtype=int)
        np.add.at(meet, (codes[both, a], codes[both, b]), 1)
        if ((meet > 0).sum(1) <= 1).all():
            assert fixes[a, b]
        expected = meet.sum(1, keepdims=True) * meet.sum(0) / meet.sum()
        assert missed[a, b] >= expected[meet == 0].max(initial=0) - 1e-9
    if seen == 400 and cells == screening.CELLS:
        assert not fixes[1, 0]
        assert fixes[0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_numbers_are_those_that_a_look_at_each_finds(seed):
    draw = np.random.default_rng(seed)
    numbers = draw.integers(0, 3, (80, 6)) * (draw.random((80, 6)) < 0.2).astype(float)
    numbers[:, 4] = numbers[:, 3] + draw.integers(0, 2, 80)
    numbers[draw.random(numbers.shape) < 0.05] = np.nan
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    larger = [pair for pair in pairs if not (numbers[:, pair[0]] > numbers[:, pair[1]]).any()]
    assert [tuple(pair) for pair in screening.never_larger(numbers).tolist()] == larger
    both = [pair for pair in pairs if pair[0] < pair[1] and not (numbers[:, list(pair)] > 0).all(1).any()]
    assert [tuple(pair) for pair in screening.never_both(numbers > 0).tolist()] == both
