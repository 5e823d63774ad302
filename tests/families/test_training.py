"""A member is the same network whatever it is trained beside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from torch import nn

from commands import HANG, runs, started
from families.sameness import same
from holdfast import Recipe, Retraining, changes, seeds, train
from holdfast.families import training
from holdfast.families.changes import leave_one_out

RECIPE = Recipe((16, 8), epochs=4, batch=16)


def data(rows: int = 65, features: int = 7, classes: int = 2, dtype=torch.float32):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(rows, features, generator=draw, dtype=dtype)
    return x, (x[:, 0] + x[:, 1]).argsort().argsort() * classes // rows


# 65 rows are five batches of 16 and 64 are four: members that take different numbers of steps.
CHANGES = seeds(5) + leave_one_out(4, 65) + [Retraining()]
OTHERS = [
    *changes.leave_out(2, 0.1),
    *changes.bootstrap(2),
    *changes.label_noise(2, 0.2),
    *changes.windows(2, 40, rows=65),
    *changes.append(2, 0.5),
    *changes.weight_noise(2, 0.1),
    *changes.fine_tune(2, epochs=2),
    *changes.fine_tune(2, epochs=2, top_only=True),
    *changes.hyperparameters(5, epochs=(2, 5), batch=(8, 16), learning_rate=(1e-4, 1e-2), weight_decay=(1e-4, 1e-2)),
    *changes.architecture(4, widths=(4, 8), depths=(1, 2)),
    *changes.both(seeds(2), changes.shift(2, column=1, strength=0.5)),
]


@pytest.mark.parametrize("classes", [2, 3])
def test_together_in_chunks_in_workers_or_alone_the_same_bits(classes, monkeypatch):
    x, y = data(rows=85, classes=classes)
    x, y, new = x[:65], y[:65], (x[65:], y[65:])
    every = CHANGES + OTHERS
    base = train(x, y, RECIPE, [Retraining()], classes=classes)[0]
    rest = {"new": new, "base": base, "classes": classes}
    together = train(x, y, RECIPE, every, **rest, workers=1)
    assert together.kinds[:10] == ("seeds",) * 5 + ("leave-one-out",) * 4 + ("base",)
    if classes == 3:  # once is enough: processes take seconds to start
        assert same(together, train(x, y, RECIPE, every, **rest, workers=2))
    for place, change in enumerate(every):
        alone = train(x, y, RECIPE, [change], **rest)
        assert same(alone[0], together[place])
        assert alone[0].retraining == together[place].retraining == change
    stacks = []
    one_stack = training.train_stack
    monkeypatch.setattr(training, "train_stack", lambda *job: stacks.append(len(job[-1])) or one_stack(*job))
    monkeypatch.setattr(training, "CACHE", 20_000)
    assert same(together, train(x, y, RECIPE, every, **rest, workers=1))
    assert max(stacks) == 3  # so this was another chunking


def test_stacked_training_is_plain_training():
    """Ours against autograd and torch.optim.Adam, one network after another, on the same batches."""
    x, y = data(dtype=torch.float64)
    family = train(x, y, RECIPE, CHANGES)
    for place, change in enumerate(CHANGES):
        net = _plain(x, y, RECIPE, change)
        for layer, ours_w, ours_b in zip(
            [m for m in net if isinstance(m, nn.Linear)], family[place].weights, family[place].biases, strict=True
        ):
            torch.testing.assert_close(ours_w, layer.weight.T, rtol=1e-8, atol=1e-10)
            torch.testing.assert_close(ours_b, layer.bias, rtol=1e-8, atol=1e-10)


def _plain(x, y, recipe, change) -> nn.Sequential:
    """The same network the ordinary way, written apart from the library."""
    kept = [row for row in range(len(x)) if row != change.left_out]
    start = train(x, y, Recipe(recipe.hidden, epochs=1, learning_rate=1e-300), [change])[0]  # its initial weights
    layers: list[nn.Module] = []
    for weight, bias in zip(start.weights, start.biases, strict=True):
        layer = nn.Linear(*weight.shape, dtype=x.dtype)
        layer.weight.data, layer.bias.data = weight.T.clone(), bias.clone()
        layers += [layer, nn.ReLU()]
    net = nn.Sequential(*layers[:-1])
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-7)
    draw = torch.Generator().manual_seed(change.order_seed)
    for _ in range(recipe.epochs):
        order = torch.tensor(kept)[torch.randperm(len(kept), generator=draw)]
        for batch in order.split(recipe.batch):  # the last one is short, and is trained
            adam.zero_grad()
            nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
            adam.step()
    return net


def test_leaving_a_row_out_is_training_without_it():
    x, y = data()
    for row in (0, 31, 64):
        without = train(torch.cat([x[:row], x[row + 1 :]]), torch.cat([y[:row], y[row + 1 :]]), RECIPE, [Retraining()])
        left_out = train(x, y, RECIPE, [Retraining(left_out=row)])
        assert same(without, left_out)


def test_the_same_seed_gives_the_same_bytes_and_another_another():
    x, y = data()
    family = train(x, y, RECIPE, CHANGES)
    assert same(family, train(x, y, RECIPE, CHANGES))
    first = family.weights[0]
    different = (first[:, None] != first[None]).flatten(2).any(-1)
    assert (different | torch.eye(len(CHANGES), dtype=torch.bool)).all()


def test_each_seed_has_its_part():
    x, y = data()
    base, order, init = train(x, y, RECIPE, [Retraining(0, 0), Retraining(0, 1), Retraining(1, 0)])
    still = Recipe((16, 8), epochs=1, learning_rate=1e-30)
    start, start_order, start_init = train(x, y, still, [Retraining(0, 0), Retraining(0, 1), Retraining(1, 0)])
    assert torch.equal(start.weights[0], start_order.weights[0])
    assert not torch.equal(start.weights[0], start_init.weights[0])
    assert not same(base, order)
    assert not same(base, init)


def test_the_start_is_glorot_uniform_with_zero_biases():
    x, y = data(features=200)
    start = train(x, y, Recipe((300,), epochs=1, learning_rate=1e-30), seeds(3))
    limit = (6 / 500) ** 0.5
    for weight in start.weights[0]:
        assert weight.abs().max() <= limit
        assert weight.abs().max() > 0.999 * limit
        assert weight.mean().abs() < limit / 100
        assert weight.var() == pytest.approx(limit**2 / 3, rel=0.02)
    assert all(bias.abs().max() < 1e-20 for bias in start.biases)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_networks_learn(classes):
    x, y = data(rows=300, classes=classes)
    family = train(x, y, Recipe((32,), epochs=150, batch=32), seeds(3))
    assert (family.predict(x) == y).float().mean(1).min() > 0.9


def test_a_batch_larger_than_the_table_is_the_whole_table():
    x, y = data()
    whole, larger = (train(x, y, Recipe((8,), epochs=3, batch=batch), [Retraining()]) for batch in (65, 1000))
    torch.testing.assert_close(whole.weights[0], larger.weights[0])


def test_threads_change_nothing_and_are_given_back():
    x, y = data(rows=2000, features=64)
    recipe = Recipe((256, 256), epochs=1, batch=2000)  # large enough for a second thread to share a sum
    one = train(x, y, recipe, seeds(2))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert same(one, train(x, y, recipe, seeds(2)))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_classes_that_the_labels_do_not_show_can_be_asked_for():
    x, y = data()
    assert train(x, y, RECIPE, [Retraining()], classes=4)[0](x).shape == (65, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.zeros(3)}, r"expected x \(n, d\)"),
        ({"x": torch.zeros(0, 7), "y": torch.zeros(0).long()}, r"with n of 1 or more.* got \(0, 7\)"),
        ({"y": torch.zeros(64).long()}, r"got \(65, 7\) and \(64,\)"),
        ({"y": torch.zeros(65)}, "class indices as int64, got torch.float32 and torch.float32"),
        ({"x": torch.zeros(65, 7, dtype=torch.long)}, "floating-point numbers"),
        ({"x": torch.full((65, 7), torch.nan)}, "not finite"),
        ({"retrainings": []}, "nothing to train"),
        ({"retrainings": [Retraining(left_out=65)]}, "leaves out a row that is not there; there are 65"),
        ({"classes": 1}, "expected class indices 0 to 0"),
        ({"y": torch.full((65,), -1)}, "labels go from -1"),
        ({"workers": 0}, "workers must be 1 or more"),
    ],
)
def test_bad_input_is_refused(changes, message):
    x, y = data()
    with pytest.raises(ValueError, match=message):
        train(**({"x": x, "y": y, "recipe": RECIPE, "retrainings": seeds(2)} | changes))


def test_what_is_not_a_tensor_or_a_list_is_refused():
    x, y = data()
    with pytest.raises(TypeError, match=r"x must be a torch tensor, got ndarray; use encoding\.encode"):
        train(x.numpy(), y, RECIPE, seeds(2))
    with pytest.raises(TypeError, match=r"give a list of them, \[Retraining\(\)\]"):
        train(x, y, RECIPE, Retraining())
    with pytest.raises(TypeError, match=r"give one width a layer, \(64,\)"):
        Recipe(hidden=64)


def test_training_that_diverges_names_the_member():
    x, y = data()
    with pytest.raises(ValueError, match=r"diverged for Retraining\(init_seed=1.*lower the learning rate"):
        train(x, y, Recipe((8,), epochs=3, learning_rate=1e30), seeds(2))


@pytest.mark.parametrize(
    "settings", [{"hidden": (0,)}, {"epochs": 0}, {"batch": 0}, {"learning_rate": 0}, {"weight_decay": -1}]
)
def test_a_recipe_that_makes_no_sense_is_refused(settings):
    with pytest.raises(ValueError, match="must be|need one unit"):
        Recipe(**settings)


SCRIPT = """
import os
import torch
from holdfast import Recipe, seeds, train
from holdfast.families import training

train_chunk = training._train_chunk

def announced(*job):
    os.write(1, f"worker {{os.getpid()}}\\n".encode())  # in one piece: two workers write at once
    return train_chunk(*job)

training._train_chunk = announced
x = torch.randn(400, 10, generator=torch.Generator().manual_seed(0))
print("begin", flush=True)
family = train(x, (x[:, 0] > 0).long(), Recipe((32,), epochs={epochs}), seeds(4), workers=2)
print(family, flush=True)
"""


@pytest.mark.slow
def test_a_script_needs_no_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(epochs=2))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert [line for line in said if "worker" not in line] == ["begin", "Family(10-32-2: 4 seeds)"]  # once each
    assert any("worker" in line for line in said)  # and it was workers that trained


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals to a process group are POSIX")
@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "main process"])
def test_an_interrupt_stops_everything(tmp_path, whole_group):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(epochs=10_000_000))  # days, if it were not stopped
    with started([sys.executable, script]) as running:
        assert running.stdout.readline() == "begin\n"
        workers = {int(running.stdout.readline().removeprefix("worker ")) for _ in range(2)}
        assert all(map(runs, workers))
        (os.killpg if whole_group else os.kill)(running.pid, signal.SIGINT)
        _, errors = running.communicate()
        assert "KeyboardInterrupt" in errors
        assert running.returncode != 0
        assert len(workers - {running.pid}) == 2
        while any(map(runs, workers)):  # they have been stopped, and end
            time.sleep(0.05)
