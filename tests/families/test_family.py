import pytest
import torch

from families.sameness import same
from holdfast import Recipe, Retraining, changes, seeds, train
from holdfast.families import members as module
from holdfast.families.changes import leave_one_out
from holdfast.models.merged import merged


def test_a_family_says_what_its_members_say(family, rows):
    x, _ = rows
    logits = family.logits(x)
    assert logits.shape == (11, 60, 2)
    for place in range(len(family)):
        torch.testing.assert_close(family[place](x), logits[place], rtol=1e-5, atol=1e-5)
    assert torch.equal(family.predict(x), logits.argmax(-1))


def test_pieces_do_not_matter(family, rows, monkeypatch):
    whole = family.logits(rows[0])
    monkeypatch.setattr(module, "IN_CACHE", 1)
    assert torch.equal(family.logits(rows[0]), whole)


def test_slices_are_families_and_places_are_networks(family, rows):
    x, _ = rows
    part = family[1:7]
    assert len(part) == 6
    assert set(part.kinds) == {"seeds"}
    assert torch.equal(part.logits(x), family.logits(x)[1:7])
    assert torch.equal(family[-1](x), family[10](x))
    assert repr(family) == "Family(12-16-8-2: 1 base, 6 seeds, 4 leave-one-out)"
    with pytest.raises(IndexError):
        family[11]


def test_merging_classes_of_a_family_is_merging_them_of_each_member():
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(90, 4, generator=draw)
    family = train(x, x[:, 0].argsort().argsort() // 30, Recipe((8,), epochs=5), seeds(4))
    groups = ((0,), (1, 2))
    joint = family.merged(groups)
    assert joint.logits(x).shape == (4, 90, 2)
    for place in range(4):
        torch.testing.assert_close(joint.logits(x)[place], merged(family[place], groups)(x))
    # The merged class is the group of the old one: nothing that was class 0 becomes class 1 by merging.
    assert torch.equal(joint.predict(x), (family.predict(x) > 0).long())
    with pytest.raises(TypeError, match="before merging"):
        joint[0]


def test_members_of_several_shapes_keep_their_places(rows):
    x, y = rows
    members = [*changes.architecture(7, widths=(4, 8), depths=(1, 2)), Retraining(), *seeds(2)]
    family = train(x, y, Recipe((8,), epochs=2), members, held_out=(x, y))
    assert len(family.stacks) > 2
    assert repr(family).startswith(f"Family({len(family.stacks)} shapes from 12-")
    logits = family.logits(x)
    for place, member in enumerate(members):
        assert family[place].retraining == member
        torch.testing.assert_close(family[place](x), logits[place], rtol=1e-5, atol=1e-5)
        assert family.accuracy[place] == float((logits[place].argmax(-1) == y).double().mean())
    assert torch.equal(family.predict(x), logits.argmax(-1))
    for part in (slice(2, 9), slice(None, None, 3), slice(9, 0, -2)):
        some = family[part]
        assert some.retrainings == family.retrainings[part]
        assert some.accuracy == family.accuracy[part]
        torch.testing.assert_close(some.logits(x), logits[list(range(10))[part]], rtol=1e-5, atol=1e-5)
        assert [same(one, other) for one, other in zip(some, list(family)[part], strict=True)] == [True] * len(some)
    assert len(family[7:]) == 3
    assert torch.equal(family[7:].weights[0][1], family[8].weights[0])
    backwards = family[9:6:-1]
    assert torch.equal(backwards.weights[0][0], family[9].weights[0])
    with pytest.raises(TypeError, match="not a stack of perceptrons of one shape"):
        _ = family.weights


def test_seeds_never_meet_the_base():
    assert Retraining() not in seeds(100)
    assert {(s.init_seed, s.order_seed) for s in seeds(3, start=50)} == {(50, 50), (51, 51), (52, 52)}
    assert not {s.init_seed for s in seeds(100)} & {s.init_seed for s in seeds(100, start=101)}


def test_leaving_one_out_keeps_the_base_seeds_and_takes_different_rows():
    base = Retraining(init_seed=3, order_seed=4)
    members = leave_one_out(50, rows=60, base=base)
    assert {(m.init_seed, m.order_seed) for m in members} == {(3, 4)}
    assert len({m.left_out for m in members}) == 50
    assert all(0 <= m.left_out < 60 for m in members)
    assert members == leave_one_out(50, rows=60, base=base)
    assert members != leave_one_out(50, rows=60, base=base, seed=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: seeds(0), "one member or more, got 0"),
        (lambda: seeds(3, start=-1), "start must be 0 or more"),
        (lambda: leave_one_out(61, rows=60), "cannot leave out 61 different rows of 60"),
    ],
)
def test_impossible_families_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
