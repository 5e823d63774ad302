"""Every change of the data is training on other data: rows, labels or weights that can be looked at."""

from __future__ import annotations

import pytest
import torch

from holdfast import Recipe, Retraining, changes, seeds, train
from holdfast.families.training_data import Pool, labels_of, rows_of

RECIPE = Recipe((8,), epochs=3, batch=16)
OLD, NEW = 120, 30


@pytest.fixture(scope="module")
def pool() -> Pool:
    x = torch.randn(OLD + NEW, 5, generator=torch.Generator().manual_seed(0))
    return Pool(x, (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long(), OLD, 3)


def trained(pool: Pool, members: list[Retraining]):
    new = pool.x[pool.old :], pool.y[pool.old :]
    return train(pool.x[: pool.old], pool.y[: pool.old], RECIPE, members, new=new, classes=3)


KINDS = {
    "leave-one-out": changes.leave_one_out(6, OLD),
    "leave-out": changes.leave_out(6, 0.2),
    "bootstrap": changes.bootstrap(6),
    "shift": changes.shift(6, column=2, strength=1.0),
    "window": changes.windows(6, 50, rows=OLD),
    "append": changes.append(6, 0.5),
    "label-noise": changes.label_noise(6, 0.3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_is_the_base_trained_on_its_rows_and_labels(kind, pool):
    family = trained(pool, KINDS[kind])
    assert set(family.kinds) == {kind}
    for place, change in enumerate(KINDS[kind][:3]):
        rows, labels = rows_of(change, pool), labels_of(change, pool)
        by_hand = train(pool.x[rows], labels[rows], RECIPE, [Retraining()], classes=3)[0]
        assert torch.equal(by_hand.weights[0], family[place].weights[0])


@pytest.mark.parametrize("kind", [*KINDS, "weight-noise"])
def test_members_differ_from_one_another_and_from_the_base_and_come_again(kind, pool):
    members = KINDS.get(kind) or changes.weight_noise(6, 0.1)
    family = trained(pool, [Retraining(), *members])
    first = family.weights[0]
    different = (first[:, None] != first[None]).flatten(2).any(-1)
    assert (different | torch.eye(7, dtype=torch.bool)).all()
    again = trained(pool, members)
    assert torch.equal(again.weights[0], first[1:])


def test_leave_out_drops_its_share_once_each(pool):
    for change in changes.leave_out(20, 0.25):
        rows = rows_of(change, pool)
        assert len(rows) == len(set(rows.tolist())) == 90
        assert rows.max() < OLD


def test_bootstrap_draws_as_many_with_repetitions(pool):
    seen = [rows_of(change, pool) for change in changes.bootstrap(200)]
    assert all(len(rows) == OLD and rows.max() < OLD for rows in seen)
    unique = sum(len(set(rows.tolist())) for rows in seen) / (200 * OLD)
    assert unique == pytest.approx(1 - (1 - 1 / OLD) ** OLD, abs=0.01)


@pytest.mark.parametrize("strength", [-1.0, 0.5])
def test_shift_moves_the_mean_of_its_column_by_its_strength(strength):
    x = torch.randn(5000, 3, generator=torch.Generator().manual_seed(1))
    pool = Pool(x, torch.zeros(5000, dtype=torch.long), 5000, 2)
    moved = torch.stack([x[rows_of(change, pool)].mean(0) for change in changes.shift(30, 1, strength)]).mean(0)
    assert moved[1] - x[:, 1].mean() == pytest.approx(strength, abs=0.1)
    assert (moved - x.mean(0))[[0, 2]].abs().max() < 0.1


def test_windows_are_stretches_from_the_first_row_to_the_last(pool):
    stretches = [rows_of(change, pool).tolist() for change in changes.windows(8, 50, rows=OLD)]
    assert all(rows == list(range(rows[0], rows[0] + 50)) for rows in stretches)
    assert (stretches[0][0], stretches[-1][-1]) == (0, OLD - 1)


def test_append_adds_new_rows_to_all_old_ones(pool):
    for change in changes.append(5, 0.5):
        rows = rows_of(change, pool)
        assert rows[:OLD].tolist() == list(range(OLD))
        assert len(set(rows[OLD:].tolist())) == NEW // 2
        assert rows[OLD:].min() >= OLD
    assert len(rows_of(changes.append(1)[0], pool)) == OLD + NEW


def test_label_noise_turns_its_share_into_other_classes(pool):
    turned = torch.stack([labels_of(change, pool) != pool.y for change in changes.label_noise(200, 0.3)])
    assert turned.float().mean() == pytest.approx(0.3, abs=0.01)
    assert turned.float().mean(0).min() > 0.15  # every row's turn comes
    assert all(
        0 <= labels_of(change, pool).min() <= labels_of(change, pool).max() <= 2 for change in KINDS["label-noise"]
    )


def test_rows_and_labels_are_drawn_apart(pool):
    """One seed for both, but a stream each: which rows come again says nothing about which labels turn."""
    members = changes.both(changes.bootstrap(300), changes.label_noise(300, 0.3))
    counts = torch.stack([rows_of(m, pool).bincount(minlength=OLD)[:OLD] for m in members]).float().flatten()
    turned = torch.stack([(labels_of(m, pool) != pool.y)[:OLD] for m in members]).float().flatten()
    assert torch.corrcoef(torch.stack([counts, turned]))[0, 1].abs() < 0.02


def test_weight_noise_is_in_standard_deviations_of_each_layer(pool):
    base, *noisy = trained(pool, [Retraining(), *changes.weight_noise(40, 0.1)])
    for layer, weight in enumerate(base.weights):
        noise = torch.stack([member.weights[layer] - weight for member in noisy])
        assert noise.std() / weight.std() == pytest.approx(0.1, rel=0.1)
    assert all(torch.equal(member.biases[0], base.biases[0]) for member in noisy)


def test_fine_tuning_goes_on_from_the_base_on_new_rows_only(pool):
    base = trained(pool, [Retraining()])[0]
    new = pool.x[OLD:], pool.y[OLD:]
    members = changes.fine_tune(4, epochs=5, share=0.5, learning_rate=1e-2)
    family = train(pool.x[:OLD], pool.y[:OLD], RECIPE, members, new=new, base=base, classes=3)
    assert set(family.kinds) == {"fine-tune"}
    for member in members:
        rows = rows_of(member, pool)
        assert len(rows) == NEW // 2
        assert rows.min() >= OLD
    first = family.weights[0]
    assert (first[:, None] != first[None]).flatten(2).any(-1).sum() == 12  # no two alike
    moved = (first - base.weights[0]).abs().amax((1, 2))
    assert (moved > 0).all()
    assert (moved < 0.2).all()  # ten steps of 1e-2 from where the base was
    still = [Retraining(continued=True, appended=1.0, settings=(("epochs", 1), ("learning_rate", 1e-30)))]
    same = train(pool.x[:OLD], pool.y[:OLD], RECIPE, still, new=new, base=base, classes=3)[0]
    torch.testing.assert_close(same.weights[0], base.weights[0], rtol=0, atol=1e-20)


def test_top_only_moves_no_bit_below_the_last_layer(pool):
    base = trained(pool, [Retraining()])[0]
    new = pool.x[OLD:], pool.y[OLD:]
    members = changes.fine_tune(2, epochs=5, top_only=True) + changes.fine_tune(2, epochs=5)
    family = train(pool.x[:OLD], pool.y[:OLD], RECIPE, members, new=new, base=base, classes=3)
    for place in (0, 1):
        assert torch.equal(family[place].weights[0], base.weights[0])
        assert torch.equal(family[place].biases[0], base.biases[0])
        assert not torch.equal(family[place].weights[1], base.weights[1])
    assert not torch.equal(family[2].weights[0], base.weights[0])
    alone = train(pool.x[:OLD], pool.y[:OLD], RECIPE, members[:1], new=new, base=base, classes=3)[0]
    assert torch.equal(alone.weights[1], family[0].weights[1])


def test_another_base_is_another_network(pool, tmp_path):
    new = pool.x[OLD:], pool.y[OLD:]
    one, two = trained(pool, [Retraining(), *seeds(1)])
    tuned = [
        train(
            pool.x[:OLD], pool.y[:OLD], RECIPE, changes.fine_tune(1, 2), new=new, base=base, classes=3, store=tmp_path
        )
        for base in (one, two)
    ]
    assert tuned[0].fingerprints != tuned[1].fingerprints
    assert not torch.equal(tuned[0].weights[0], tuned[1].weights[0])


def test_a_network_is_recognised_whatever_else_is_at_hand(pool):
    """New rows and a base that a member does not use are no part of what it is."""
    x, y = pool.x[:OLD], pool.y[:OLD]
    members = [Retraining(), *seeds(1), *changes.bootstrap(1)]
    alone = train(x, y, RECIPE, members, classes=3)
    beside = trained(pool, [*members, *changes.append(1)])
    assert beside.fingerprints[:3] == alone.fingerprints
    assert torch.equal(beside.weights[0][:3], alone.weights[0])
    other = train(x, y, RECIPE, changes.append(1), new=(pool.x[:9], pool.y[:9]), classes=3)
    assert other.fingerprints[0] != beside.fingerprints[3]


def test_hyperparameters_are_those_of_another_recipe(pool):
    ranges = {"epochs": (2, 6), "learning_rate": (1e-4, 1e-2), "batch": (8, 16), "weight_decay": (1e-4, 1e-1)}
    members = changes.hyperparameters(8, **ranges)
    pool = Pool(pool.x.double(), pool.y, pool.old, pool.classes)  # where rates apart and one rate round alike
    family = trained(pool, members)
    for place, member in enumerate(members[:4]):
        recipe = member.recipe(RECIPE)
        assert 2 <= recipe.epochs <= 6
        assert recipe.batch in (8, 16)
        by_hand = train(pool.x[:OLD], pool.y[:OLD], recipe, [Retraining()], classes=3)[0]
        torch.testing.assert_close(by_hand.weights[0], family[place].weights[0], rtol=1e-10, atol=1e-12)
    rates = [member.recipe(RECIPE).learning_rate for member in changes.hyperparameters(300, learning_rate=(1e-4, 1e-2))]
    assert sum(rate < 1e-3 for rate in rates) == pytest.approx(150, abs=30)  # even on a log scale
    assert members == changes.hyperparameters(8, **ranges)


def test_architectures_are_those_of_another_recipe(pool):
    members = changes.architecture(12, widths=(4, 6), depths=(0, 1, 2))
    family = trained(pool, members)
    shapes = {member.recipe(RECIPE).hidden for member in members}
    assert shapes <= {(), (4,), (6,), (4, 4), (6, 4), (6, 6)}
    assert len(shapes) > 3
    for place, member in enumerate(members):
        recipe = member.recipe(RECIPE)
        alone = Retraining(init_seed=member.init_seed, order_seed=member.order_seed)
        by_hand = train(pool.x[:OLD], pool.y[:OLD], recipe, [alone], classes=3)
        assert [weight.shape[1] for weight in family[place].weights] == [*recipe.hidden, 3]
        assert torch.equal(by_hand[0].weights[-1], family[place].weights[-1])
        assert by_hand.fingerprints[0] == family.fingerprints[place]  # the same network, however it is asked for
    assert len(set(family.fingerprints)) == 12
    assert members == changes.architecture(12, widths=(4, 6), depths=(0, 1, 2))
    assert {len(member.recipe(RECIPE).hidden) for member in changes.architecture(50, widths=range(4, 9))} == {1, 2, 3}


def test_weight_decay_is_adams_l2(pool):
    """Against torch.optim.Adam itself, one batch a step, in float64."""
    x, y = pool.x[:OLD].double(), pool.y[:OLD]
    start = train(x, y, Recipe((), epochs=1, batch=OLD, learning_rate=1e-30), [Retraining()])[0]
    layer = torch.nn.Linear(5, 3, dtype=torch.float64)
    layer.weight.data, layer.bias.data = start.weights[0].T.clone(), start.biases[0].clone()
    adam = torch.optim.Adam(layer.parameters(), lr=1e-3, eps=1e-7, weight_decay=0.1)
    for _ in range(20):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(layer(x), y).backward()
        adam.step()
    ours = train(x, y, Recipe((), epochs=20, batch=OLD, weight_decay=0.1), [Retraining()])[0]
    torch.testing.assert_close(ours.weights[0], layer.weight.T, rtol=1e-6, atol=1e-8)


def test_both_applies_two_changes_to_one_member(pool):
    members = changes.both(seeds(3), changes.bootstrap(3))
    assert {member.kind for member in members} == {"seeds & bootstrap"}
    for member, seed, drawn in zip(members, seeds(3), changes.bootstrap(3), strict=True):
        assert (member.init_seed, member.order_seed) == (seed.init_seed, seed.order_seed)
        assert torch.equal(rows_of(member, pool), rows_of(drawn, pool))
    assert trained(pool, members).kinds == ("seeds & bootstrap",) * 3


def test_a_retraining_prints_what_it_changes():
    assert repr(Retraining()) == "Retraining()"
    assert (
        repr(changes.leave_out(1, 0.1, start=4)[0]) == "Retraining(left_out_share=0.1, data_seed=4, kind='leave-out')"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: changes.leave_out(3, 0.0), "share must be above 0 and below 1, got 0.0"),
        (lambda: changes.leave_out(3, 1.0), "below 1, got 1.0"),
        (lambda: changes.append(3, 1.5), "at most 1, got 1.5"),
        (lambda: changes.label_noise(3, -0.1), "rate must be above 0"),
        (lambda: changes.weight_noise(3, 0), "scale must be above 0"),
        (lambda: changes.bootstrap(0), "one member or more"),
        (lambda: changes.windows(3, 200, rows=OLD), "a window of 200 rows does not fit 120"),
        (lambda: changes.windows(30, 110, rows=OLD), "only 11 different windows of 110, not 30"),
        (lambda: changes.fine_tune(3, 5, share=2.0), "at most 1, got 2.0"),
        (lambda: changes.hyperparameters(3), "name a setting to vary"),
        (lambda: changes.hyperparameters(3, learning_rate=(1e-2, 1e-3)), r"a range \(low, high\)"),
        (lambda: changes.architecture(3, widths=(0, 4)), "widths must be 1 or more"),
        (lambda: changes.architecture(3, widths=(4,), depths=(-1, 2)), "depths must be 0 or more"),
        (lambda: changes.both(seeds(3), changes.bootstrap(2)), "as many members, got 3 and 2"),
        (lambda: changes.both(seeds(3), seeds(3, start=9)), r"both changes set \['init_seed', 'order_seed'\]"),
    ],
)
def test_changes_that_make_no_sense_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (changes.append(1)[0], r"appends new rows but there are none; pass train\(..., new="),
        (changes.shift(1, column=9, strength=1)[0], "tilts a column that is not there; there are 5"),
        (Retraining(window=(100, 200)), "a window that is not inside the 120 rows"),
        (Retraining(left_out=120), "leaves out a row that is not there"),
        (Retraining(top_only=True, settings=(("weight_decay", 0.1),)), "which weight decay would shrink"),
    ],
)
def test_what_the_data_does_not_have_is_refused(member, message, pool):
    with pytest.raises(ValueError, match=message):
        train(pool.x[:OLD], pool.y[:OLD], RECIPE, [member], classes=3)


def test_new_rows_must_be_like_the_old(pool):
    with pytest.raises(ValueError, match="new rows have 4 columns, the old ones 5"):
        train(pool.x, pool.y, RECIPE, changes.append(1), new=(pool.x[:, :4], pool.y))


def test_fine_tuning_needs_the_network_it_starts_from(pool):
    new = pool.x[OLD:], pool.y[OLD:]
    with pytest.raises(ValueError, match=r"continues from the deployed network; pass train\(..., base=network\)"):
        train(pool.x[:OLD], pool.y[:OLD], RECIPE, changes.fine_tune(1, 2), new=new, classes=3)
    other = train(pool.x, pool.y, Recipe((4,), epochs=1), [Retraining()], classes=3)[0]
    with pytest.raises(ValueError, match=r"base is Network\(5-4-3.*make networks of 5-8-3"):
        train(pool.x[:OLD], pool.y[:OLD], RECIPE, changes.fine_tune(1, 2), new=new, base=other, classes=3)
