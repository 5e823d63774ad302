"""What trees say by masks is what a walk from node to node says, to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grown_trees import grown
from holdfast.models.trees.ensemble import Ensemble
from holdfast.models.trees.kernels import sums
from holdfast.models.trees.masks import LEAVES, Masks


def cells_of(ensemble: Ensemble, seed: int, rows: int = 40) -> np.ndarray:
    """Cells drawn by chance, those of missing values too."""
    draw = np.random.default_rng(seed)
    return np.stack([draw.integers(0, count, rows) for count in ensemble.counts()], axis=1).astype(np.int32)


def chain(leaves: int) -> Ensemble:
    """One tree that tests the same number again and again: so many leaves."""
    base = grown(0)
    place = next(place for place, feature in enumerate(base.features) if feature.is_numeric)
    inner = np.arange(leaves - 1)
    known = np.linspace(0, 1, leaves - 1)
    ends = np.full(leaves, -1)
    return replace(
        base,
        edges=tuple(known if own == place else edges for own, edges in enumerate(base.edges)),
        feature=np.concatenate([np.full(leaves - 1, place), ends]).astype(np.int32),
        split=np.concatenate([inner, 0 * ends]).astype(np.int32),
        missing_left=np.zeros(2 * leaves - 1, dtype=bool),
        left=np.concatenate([leaves - 1 + inner, ends]).astype(np.int32),
        right=np.concatenate([[*(inner[1:]), 2 * leaves - 2], ends]).astype(np.int32),
        value=np.arange(2 * leaves - 1, dtype=np.float64)[:, None],
        roots=np.zeros(1, dtype=np.int32),
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 3]))
def test_masks_say_what_a_walk_says(seed, outputs):
    ensemble = grown(seed, outputs=outputs, trees=9)
    cells = cells_of(ensemble, seed)
    np.testing.assert_array_equal(ensemble.masks.sums(cells), sums(cells, *ensemble.arrays))


@pytest.mark.parametrize("leaves", [2, 3, LEAVES - 1, LEAVES])
def test_a_tree_may_have_as_many_leaves_as_a_mask_has_bits(leaves):
    ensemble = chain(leaves)
    cells = cells_of(ensemble, 0, 400)
    np.testing.assert_array_equal(ensemble.masks.sums(cells), sums(cells, *ensemble.arrays))
    assert len(np.unique(ensemble.raw(cells))) > leaves // 2


def test_larger_trees_are_walked():
    ensemble = chain(LEAVES + 1)
    assert ensemble.masks is None
    cells = cells_of(ensemble, 0)
    np.testing.assert_array_equal(ensemble.raw(cells), ensemble.base + sums(cells, *ensemble.arrays))


def test_nodes_of_no_tree_count_for_nothing():
    ensemble = grown(1)
    fewer = replace(ensemble, roots=ensemble.roots[1:3])
    cells = cells_of(ensemble, 1)
    np.testing.assert_array_equal(fewer.masks.sums(cells), sums(cells, *fewer.arrays))


def test_an_ensemble_without_trees_says_nothing():
    ensemble = replace(grown(1), roots=np.zeros(0, dtype=np.int32))
    assert not Masks.of(ensemble).sums(cells_of(ensemble, 1)).any()


def test_sets_may_be_narrower_than_a_feature_that_no_node_tests():
    ensemble = chain(3)
    narrow = replace(ensemble, sets=np.zeros((1, 1), dtype=bool))
    cells = cells_of(ensemble, 1)
    np.testing.assert_array_equal(narrow.masks.sums(cells), ensemble.masks.sums(cells))
