"""Any torch module is trained k at a time, and comes out as if it had been trained alone, the ordinary way."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from families.sameness import same, tensors
from holdfast import (
    PGD,
    Family,
    Recipe,
    Retraining,
    Space,
    audit,
    changes,
    load_family,
    other_class,
    save_family,
    seeds,
    train,
)
from holdfast.families.changes import leave_one_out
from holdfast.families.entries import StoreError
from holdfast.families.module import Dropout, TorchModule


def data(rows: int = 65, dtype=torch.float32):
    """Six numbers and a category, which the first column holds by its number."""
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 7, generator=draw, dtype=dtype)
    x[:, 0] = torch.randint(5, (rows,), generator=draw)
    return x, (x[:, 1] + (x[:, 0] == 2) > 0.2).long()


class Mixed(nn.Module):
    """One of everything: an embedding, both normalisations, dropout, a branch that skips, an activation with curves."""

    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        self.category = nn.Embedding(5, 3)
        self.enter = nn.Linear(9, 16, bias=False)  # normalisation cancels a bias, which then follows rounding
        self.batch = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(dropout)
        self.layer = nn.LayerNorm(16)
        self.inside = nn.Sequential(nn.Linear(16, 16, bias=False), nn.GELU(), nn.Dropout(dropout))
        self.leave = nn.Linear(16, 2)

    def forward(self, x):
        hidden = torch.cat([x[:, 1:], self.category(x[:, 0].long())], 1)
        hidden = self.drop(torch.relu(self.batch(self.enter(hidden))))
        return self.leave(hidden + self.inside(self.layer(hidden)))


class Glorot(nn.Module):
    """The library's own perceptron as a module, drawn the same way."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList()
        for inputs, outputs in pairwise(sizes):
            limit = math.sqrt(6 / (inputs + outputs))
            self.weights.append(nn.Parameter((2 * torch.rand(inputs, outputs) - 1) * limit))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(outputs)) for outputs in sizes[1:])

    def forward(self, x):
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = (torch.relu(x) if layer else x) @ weight + bias
        return x


RECIPE = Recipe(network=Mixed, epochs=3, batch=16)
CHANGES = [
    *seeds(3),
    Retraining(),
    *leave_one_out(2, 65),
    *changes.bootstrap(2),
    *changes.label_noise(2, 0.2),
    *changes.weight_noise(2, 0.1),
    *changes.append(2, 0.5),
    *changes.hyperparameters(3, learning_rate=(1e-4, 1e-2), epochs=(2, 4)),
]


def test_the_two_paths_give_the_same_weights():
    """The perceptron's gradient written by hand, and autograd through vmap: every kind of change, in float64."""
    x, y = data(85, torch.float64)
    x, y, new = x[:65], y[:65], (x[65:], y[65:])
    by_hand = Recipe((16, 8), epochs=5, batch=16)
    stacked = Recipe(network=lambda: Glorot(7, 16, 8, 2), epochs=5, batch=16)
    ours, theirs = (train(x, y, recipe, CHANGES, new=new) for recipe in (by_hand, stacked))
    for place in range(len(CHANGES)):
        layers = zip([*ours[place].weights, *ours[place].biases], theirs[place].parameters(), strict=True)
        for one, other in layers:
            torch.testing.assert_close(one, other.detach(), rtol=1e-9, atol=1e-11)


def test_stacked_training_is_plain_training():
    """Embedding, batch and layer normalisation against a loop with torch.optim.Adam, running means included."""
    x, y = data(65, torch.float64)
    members = seeds(3) + leave_one_out(1, 65)
    family = train(x, y, Recipe(network=lambda: Mixed(dropout=0.0), epochs=4, batch=16), members)
    for place, change in enumerate(members):
        torch.manual_seed(change.init_seed)
        net = Mixed(dropout=0.0).double().train()
        adam = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-7)
        kept = torch.tensor([row for row in range(65) if row != change.left_out])
        draw = torch.Generator().manual_seed(change.order_seed)
        for _ in range(4):
            order = kept[torch.randperm(len(kept), generator=draw)]
            for batch in order.split(16):
                if len(batch) == 1:  # 65 rows: a batch of one has nothing to normalise over
                    continue
                adam.zero_grad()
                nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
                adam.step()
        ours = family[place].state_dict()
        for name, tensor in net.state_dict().items():
            torch.testing.assert_close(ours[name], tensor, rtol=1e-8, atol=1e-10)


def test_a_member_does_not_depend_on_its_company(tmp_path):
    x, y = data(85)
    x, y, new = x[:65], y[:65], (x[65:], y[65:])
    together = train(x, y, RECIPE, CHANGES, new=new, workers=1)
    assert repr(together).startswith("Family(Mixed: 3 seeds, 1 base")
    for place, change in enumerate(CHANGES):
        alone = train(x, y, RECIPE, [change], new=new)[0]
        for one, other in zip(tensors(together[place]), tensors(alone), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
    assert same(together, train(x, y, RECIPE, CHANGES, new=new, workers=1))


@pytest.mark.slow
def test_workers_train_the_same_members():
    x, y = data(85)
    x, y, new = x[:65], y[:65], (x[65:], y[65:])
    here, there = (train(x, y, RECIPE, CHANGES, new=new, workers=workers) for workers in (1, 2))
    for place in range(len(CHANGES)):
        for one, other in zip(tensors(here[place]), tensors(there[place]), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_a_family_of_modules_says_what_its_members_say_and_is_audited():
    x, y = data(200)
    family = train(x, y, Recipe(network=Mixed, epochs=40, batch=32), [Retraining(), *seeds(5)], held_out=(x, y))
    logits = family.logits(x)
    for place in range(6):
        assert isinstance(family[place], Mixed)
        torch.testing.assert_close(family[place](x), logits[place], rtol=1e-4, atol=1e-5)
    assert min(family.accuracy) > 0.75
    target = other_class(family[0], x)
    found = PGD(radius=8.0)(family[0], x, target, Space.free(x))
    result = audit(found, family[1:])
    by_hand = Family.from_models([family[place] for place in range(1, 6)], kind="seeds")
    assert result.rate == audit(found, by_hand).rate
    with pytest.raises(ValueError, match="networks that the search has seen"):
        audit(found, family)


def test_a_module_is_drawn_anew_for_every_seed_and_left_alone():
    x, y = data()
    module = Mixed()
    before = copy.deepcopy(module.state_dict())
    state = torch.get_rng_state()
    family = train(x, y, Recipe(network=module, epochs=1), [*seeds(2), Retraining()])
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(module.state_dict()[name], tensor) for name, tensor in before.items())
    still = Recipe(network=module, epochs=1, learning_rate=1e-30)
    one, two = train(x, y, still, seeds(2))
    assert not torch.equal(one.enter.weight, two.enter.weight)
    built = train(x, y, Recipe(network=Mixed, epochs=1), [*seeds(2), Retraining()])
    assert same(family, built)  # parts are reset in the order in which they were built


def test_fine_tuning_goes_on_from_the_base_and_can_keep_all_but_the_last_layer():
    x, y = data(85)
    old, new = (x[:65], y[:65]), (x[65:], y[65:])
    base = train(*old, RECIPE, [Retraining()])[0]
    members = changes.fine_tune(2, epochs=2, top_only=True) + changes.fine_tune(2, epochs=2)
    top, _, whole, _ = train(*old, RECIPE, members, new=new, base=base)
    assert torch.equal(top.enter.weight, base.enter.weight)
    assert torch.equal(top.inside[0].weight, base.inside[0].weight)
    assert not torch.equal(top.leave.weight, base.leave.weight)
    assert not torch.equal(top.leave.bias, base.leave.bias)
    assert not torch.equal(whole.enter.weight, base.enter.weight)
    assert (whole.enter.weight - base.enter.weight).abs().max() < 0.02
    with pytest.raises(ValueError, match=r"base has no .*enter\.weight"):
        train(*old, RECIPE, members, new=new, base=nn.Linear(7, 2))
    with pytest.raises(ValueError, match="base is a Network, but the recipe makes networks of Mixed"):
        train(*old, RECIPE, members, new=new, base=train(*old, Recipe((4,), epochs=1), seeds(1))[0])


def test_parameters_that_ask_for_no_gradient_stay():
    class Frozen(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Linear(7, 8), nn.Tanh(), nn.Linear(8, 2))
            self[0].requires_grad_(False)

    x, y = data()
    trained = train(x, y, Recipe(network=Frozen, epochs=2), seeds(2))
    start = train(x, y, Recipe(network=Frozen, epochs=1, learning_rate=1e-30), seeds(2))
    for one, other in zip(trained, start, strict=True):
        assert torch.equal(one[0].weight, other[0].weight)
        assert not torch.equal(one[2].weight, other[2].weight)


def test_dropout_keeps_its_share_and_has_a_mask_a_seed_a_step_and_a_layer():
    x = torch.ones(400, 50)
    masks = []
    for key in (0, 1):
        layer = Dropout(0.3, key).train()
        masks += [layer(x) for _ in range(3)]
    for mask in masks:
        assert sorted(mask.unique().tolist()) == [0.0, pytest.approx(1 / 0.7)]
        assert (mask == 0).float().mean() == pytest.approx(0.3, abs=0.02)
    zeros = torch.stack([(mask == 0).float().flatten() for mask in masks])
    apart = torch.corrcoef(zeros) - torch.eye(6)
    assert apart.abs().max() < 0.03
    columns = torch.corrcoef((masks[0] == 0).float().T) - torch.eye(50)
    assert columns.abs().max() < 0.25  # 400 draws: chance alone gives 0.17
    assert torch.equal(Dropout(0.3, 0).train()(x), masks[0])
    assert torch.equal(Dropout(0.3, 0).eval()(x), x)


def test_dropout_is_used_in_training_and_off_in_members():
    x, y = data()
    with_it, without = (
        train(x, y, Recipe(network=lambda p=p: Mixed(p), epochs=2), [Retraining()])[0] for p in (0.5, 0.0)
    )
    assert not torch.equal(with_it.enter.weight, without.enter.weight)
    assert type(with_it.drop) is nn.Dropout
    assert torch.equal(with_it(x), with_it(x))


def test_modules_are_stored_found_by_content_and_resumed(tmp_path, monkeypatch):
    from holdfast.families import training

    x, y = data()
    members = seeds(4) + leave_one_out(4, 65)
    trained, one_stack = [], training.train_stack

    def counting(*job):
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(len(job[-1]))
        return one_stack(*job)

    monkeypatch.setattr(training, "CACHE", 60_000)
    whole = train(x, y, RECIPE, members, store=tmp_path / "whole", workers=1)
    monkeypatch.setattr(training, "train_stack", counting)
    with pytest.raises(KeyboardInterrupt):
        train(x, y, RECIPE, members, store=tmp_path / "cut", workers=1)
    monkeypatch.setattr(training, "train_stack", one_stack)
    resumed = train(x, y, RECIPE, members, store=tmp_path / "cut", workers=1)
    assert same(resumed, whole)
    files = [sorted((tmp_path / name).rglob("*.safetensors")) for name in ("whole", "cut")]
    assert files[0][0].read_bytes() == files[1][0].read_bytes()
    monkeypatch.setattr(training, "train_stack", counting)  # which raises by now
    again = train(x, y, RECIPE, members, store=tmp_path / "cut")
    assert same(again, whole)
    other = Recipe(network=lambda: Mixed(0.3), epochs=3, batch=16)
    with pytest.raises(KeyboardInterrupt):  # another network is another family
        train(x, y, other, members, store=tmp_path / "cut", workers=1)


def test_a_family_of_modules_is_read_back_with_its_module(tmp_path):
    x, y = data()
    family = train(x, y, RECIPE, seeds(2))
    folder = save_family(family, tmp_path / "saved")
    assert same(load_family(folder, network=Mixed, like=x), family)
    with pytest.raises(StoreError, match="code is not kept; pass the module"):
        load_family(folder)
    with pytest.raises(StoreError, match="just as it was"):
        load_family(folder, network=lambda: Mixed(0.5), like=x)
    with pytest.raises(ValueError, match=r"like=x"):
        load_family(folder, network=Mixed)
    with pytest.raises(ValueError, match="made elsewhere"):
        save_family(Family.from_models([Mixed()]), tmp_path / "other")


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(7, 2)

    def forward(self, x):
        return self.layer(x) if x.sum() > 0 else -self.layer(x)


class Noisy(Branching):
    def forward(self, x):
        return nn.functional.dropout(self.layer(x), training=self.training)


class NoReset(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(7, 2))

    def forward(self, x):
        return x @ self.weight


class Slicing(nn.Module):
    """A slice of a ParameterList is a new list of new parameters, whose gradient goes nowhere."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(torch.randn(7, 7) for _ in range(2))
        self.last = nn.Linear(7, 2)

    def forward(self, x):
        for weight in self.weights[:2]:
            x = x @ weight
        return self.last(x)


ONE = Branching()


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Branching, r"(?s)cannot be stacked with torch\.func\.vmap.*branches on values.*from_training"),
        (Noisy, "random numbers other than nn.Dropout's"),
        (Slicing, r"the gradient of weights\.0 is lost when networks of Slicing are stacked"),
        (NoReset(), r"NoReset holds parameters but has no reset_parameters\(\).*Recipe\(network=lambda"),
        (lambda: ONE, "one and the same module"),
        (lambda: nn.Linear(5, 2), "does not take rows of 7 columns"),
        (lambda: nn.Linear(7, 1), r"gave \(3, 1\) for 3 rows"),
        (lambda: nn.Flatten(), "has no parameter to train"),
    ],
)
def test_modules_that_cannot_be_stacked_are_refused(network, message):
    with pytest.raises(ValueError, match=message):
        train(*data(), Recipe(network=network, epochs=1), seeds(2))


def test_what_else_does_not_fit_is_refused():
    x, y = data()
    with pytest.raises(TypeError, match="network is a str"):
        Recipe(network="resnet")
    with pytest.raises(TypeError, match="returned dict; expected nn.Module"):
        train(x, y, Recipe(network=dict, epochs=1), seeds(1))
    with pytest.raises(ValueError, match="gives 2 logits a row, but there are 3 classes"):
        train(x, y + (x[:, 1] > 1), RECIPE, seeds(1))
    with pytest.raises(ValueError, match="choose a batch of two or more"):
        train(x, y, Recipe(network=Mixed, epochs=1, batch=1), seeds(1))
    with pytest.raises(ValueError, match="are for perceptrons"):
        train(x, y, RECIPE, changes.architecture(4, widths=(4, 8)))
    with pytest.raises(TypeError, match="not a stack of perceptrons of one shape"):
        _ = train(x, y, RECIPE, seeds(1)).weights


def test_more_logits_than_labels_show_are_kept():
    x, y = data()
    assert train(x, y, Recipe(network=lambda: nn.Linear(7, 4), epochs=1), seeds(1)).classes == 4
    assert TorchModule.of(nn.Linear(7, 4), x).width == 4
