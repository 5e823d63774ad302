"""Every class and function checks its settings with these few functions: what they refuse is pinned here once."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from holdfast.utils.settings import (
    check_count,
    check_flag,
    check_number,
    check_positive,
    check_seed,
    check_settings,
    check_share,
    check_whole,
)


@pytest.mark.parametrize("value", [2.5, 2.0, math.nan, "3", None, True, [3], np.float64(3), np.True_])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(TypeError, match="epochs.*whole number") as caught:
        check_whole("epochs", value)
    assert repr(value) in str(caught.value)


def test_a_whole_number_may_have_a_least():
    for value in (3, 4, np.int64(3)):
        check_whole("epochs", value, least=3)
    check_whole("epochs", -7)
    for value in (2, 0, -1):
        with pytest.raises(ValueError, match=f"epochs must be 3 or more, got {value}"):
            check_whole("epochs", value, least=3)
    check_whole("epochs", 0, least=0)
    with pytest.raises(ValueError, match="-1"):
        check_whole("epochs", -1, least=0)


@pytest.mark.parametrize(
    "value", ["1", None, True, [1.0], torch.ones(3), torch.ones(1), np.ones(1), 1j, torch.tensor(True)]
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match="radius must be a number"):
        check_number("radius", value)


@pytest.mark.parametrize("value", [1, -2.5, math.inf, math.nan, np.float32(1), torch.tensor(1.0), np.array(1)])
def test_what_is_a_number_passes(value):
    check_number("radius", value)


@pytest.mark.parametrize("value", ["yes", 1, 0, None, np.True_])
def test_what_is_neither_true_nor_false_is_refused(value):
    check_flag("raw", True)
    check_flag("raw", False)
    with pytest.raises(TypeError, match="raw must be True or False"):
        check_flag("raw", value)


@pytest.mark.parametrize("value", [0, 1, -1, 95, math.nan, math.inf])
def test_a_share_lies_between_0_and_1(value):
    check_share("confidence", 0.95)
    with pytest.raises(ValueError, match=f"confidence .*got {value}"):
        check_share("confidence", value)


@pytest.mark.parametrize("value", ["0.95", None, True])
def test_a_share_is_a_number(value):
    with pytest.raises(TypeError, match="confidence"):
        check_share("confidence", value)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", None, True])
def test_a_positive_number_is_above_0_and_finite(value):
    check_positive("radius", 1e-9)
    with pytest.raises((TypeError, ValueError), match="radius"):
        check_positive("radius", value)


@pytest.mark.parametrize("value", [0, -1, 1.5, None, True])
def test_a_count_is_a_whole_number_of_1_or_more(value):
    check_count("steps", 1)
    with pytest.raises((TypeError, ValueError), match="steps"):
        check_count("steps", value)


@pytest.mark.parametrize("value", [-1, 1.5, "a", None, True])
def test_a_seed_is_a_whole_number_of_0_or_more(value):
    check_seed("seed", 0)
    with pytest.raises((TypeError, ValueError), match="seed"):
        check_seed("seed", value)


def test_the_fields_of_a_value_are_checked_each_in_its_way():
    right = {"steps": 3, "levels": 0, "radius": 0.5, "raw": True, "seed": 7, "points": 1, "rate": 0.1}
    kinds = {"whole": "steps levels", "numbers": "radius", "flags": "raw", "seeds": "seed"}
    names = kinds | {"counts": "points", "positive": "rate"}
    check_settings(SimpleNamespace(**right), **names)
    wrong_fields = {"steps": 0.5, "levels": None, "radius": "1", "raw": 1, "seed": -1, "points": 0, "rate": 0.0}
    for field, wrong in wrong_fields.items():
        with pytest.raises((TypeError, ValueError), match=field):
            check_settings(SimpleNamespace(**right | {field: wrong}), **names)
