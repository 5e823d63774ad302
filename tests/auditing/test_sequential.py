"""How many retrainings are enough: audit as they come, and stop when the interval is as narrow as asked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from holdfast import PGD, Counterfactuals, Family, Recipe, Space, audit, other_class, seeds, train
from holdfast.auditing.intervals import running_interval
from holdfast.auditing.sequential import audit_until
from holdfast.families.changes import leave_one_out

ROWS = 20
ANSWER = Counterfactuals(
    torch.zeros(ROWS, 1), torch.arange(1.0, 1 + ROWS)[:, None], torch.ones(ROWS).long(), torch.ones(ROWS).bool(), 2
)


def batch(*invalidated: int, kind: str = "own") -> Family:
    """Models each of which undoes so many of the rows: those whose point is at most that."""
    return Family.from_models([lambda x, u=u: torch.cat([x * 0 + 0.5, (x > u).float()], 1) for u in invalidated], kind)


class Counted:
    """Families made as they are asked for, and how many have been."""

    def __init__(self, *makers):
        self.makers, self.made = makers, 0

    def __iter__(self):
        for maker in self.makers:
            self.made += 1
            yield maker()


def always(rates, most=50):
    return Counted(*[lambda: batch(*rates)] * most)


def test_it_stops_at_the_first_batch_that_is_narrow_enough():
    rates, width = (2, 5, 3, 4), 0.25
    families = always(rates)
    result = audit_until(ANSWER, families, width)
    low, high = running_interval(np.array(rates * 50) / ROWS)
    wide = (high - low)[3::4]  # after every batch
    batches = int((wide <= width).argmax()) + 1
    assert 1 < batches < 50
    assert families.made == batches  # not one more was made
    assert result.members == len(result.audit.kinds) == 4 * batches
    assert result.reached
    assert result.interval == pytest.approx((low[4 * batches - 1], high[4 * batches - 1]), abs=1e-9)
    assert "as narrow as asked" in repr(result)
    assert "not yet" not in repr(result)
    assert f"after {4 * batches} members" in repr(result)


def test_a_wider_interval_takes_fewer():
    assert audit_until(ANSWER, always((2, 4)), 0.6).members < audit_until(ANSWER, always((2, 4)), 0.2).members


def test_limits_are_those_of_all_members_joined():
    families = [batch(2, 5), batch(3), batch(9, 0, 1)]
    result = audit_until(ANSWER, families, 0.01, confidence=0.9)
    assert not result.reached
    assert result.audit.per_member.tolist() == pytest.approx([0.1, 0.25, 0.15, 0.45, 0, 0.05])
    low, high = running_interval(result.audit.per_member, 0.9)
    np.testing.assert_array_equal(result.low, low)
    np.testing.assert_array_equal(result.high, high)
    parts = [audit(ANSWER, family) for family in families]
    assert torch.equal(result.audit.predictions, torch.cat([part.predictions for part in parts]))
    assert torch.equal(result.audit.before, torch.cat([part.before for part in parts]))
    assert result.audit.counterfactuals is ANSWER
    assert result.audit.rate == pytest.approx(1 / 6)
    assert "16.7% invalidated, 90% interval" in repr(result)
    assert "not yet as narrow as 1.0%" in repr(result)


def test_limits_that_cross_end_the_audit_but_reach_nothing():
    """Half of the batches invalidate nothing, half all: no single rate explains that, nor would more help."""
    families = Counted(*[lambda: batch(*[0] * 40)] * 2, *[lambda: batch(*[20] * 40)] * 20)
    with pytest.warns(UserWarning, match="their mean seems to move"):
        result = audit_until(ANSWER, families, 0.02)
    assert families.made < 22
    assert not result.reached
    assert result.low[-1] > result.high[-1]


def test_networks_of_ones_own_training(family, rows):
    x, y = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    recipe = Recipe((16, 8), epochs=30, batch=16)
    made = []
    result = audit_until(
        found, (made.append(part) or train(x, y, recipe, seeds(4, start=100 + 4 * part)) for part in range(9)), 0.6
    )
    assert made == list(range(result.members // 4))
    assert result.reached
    whole = audit(found, train(x, y, recipe, seeds(result.members, start=100)))
    assert torch.equal(result.audit.predictions, whole.predictions)


def test_what_gives_no_one_rate_is_refused(family, rows):
    x, y = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    with pytest.raises(ValueError, match=r"several ways \(leave-one-out, seeds\)"):
        audit_until(found, [family[1:]])
    with pytest.raises(ValueError, match="several ways"):
        audit_until(found, [family[1:3], family[7:]], 0.01)
    with pytest.raises(ValueError, match="holds members of an earlier family; draw other seeds"):
        audit_until(found, [family[1:3], family[3:5], family[4:6]], 0.01)
    with pytest.raises(ValueError, match="networks that the search has seen"):
        audit_until(found, [family[:1]], 0.01)
    others = train(x, y, Recipe((16, 8), epochs=30, batch=16), leave_one_out(2, len(x)))
    with pytest.raises(ValueError, match="holds members of an earlier family"):
        audit_until(found, [family[7:9], others], 0.01)  # trained again, but the same networks


def test_what_makes_no_sense_is_refused_before_anything_is_trained():
    families = always((1, 2))
    for width in (0, 1, -0.1, 5.0, float("nan")):
        with pytest.raises(ValueError, match="width and confidence must lie between 0 and 1"):
            audit_until(ANSWER, families, width)
    with pytest.raises(ValueError, match="got 0.05 and 95"):
        audit_until(ANSWER, families, confidence=95)
    nothing = dataclasses.replace(ANSWER, found=torch.zeros(ROWS).bool())
    with pytest.raises(ValueError, match="nothing was found"):
        audit_until(nothing, families)
    assert families.made == 0
    with pytest.raises(ValueError, match="no families to audit with"):
        audit_until(ANSWER, [])
