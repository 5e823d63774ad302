"""The same road on a GPU: everything works on the device of its input, and agrees with the CPU up to rounding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from holdfast import (
    METHODS,
    PGD,
    SNS,
    Latent,
    Recipe,
    Retraining,
    Space,
    audit,
    changes,
    compare,
    load_audit,
    make_method,
    other_class,
    save_audit,
    seeds,
    train,
)
from holdfast.auditing.predictors import predictors, what_predicts
from holdfast.families import stacked_training, training
from holdfast.families.changes import leave_one_out
from holdfast.paper.release import ReleasedLatent, ReleasedPGD, ReleasedSNS
from holdfast.paper.results import each
from holdfast.paper.runner import run
from holdfast.paper.study import Study
from holdfast.search.pipeline import Pipeline

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def test_training_agrees_with_the_cpu(rows):
    x, y = (value.double() if value.is_floating_point() else value for value in rows)
    changes = [Retraining(), *seeds(5), *leave_one_out(4, len(x))]
    recipe = Recipe((16, 8), epochs=10, batch=16)
    on_cpu, on_gpu = train(x, y, recipe, changes), train(x.cuda(), y.cuda(), recipe, changes)
    assert on_gpu.weights[0].is_cuda
    for ours, theirs in zip((*on_cpu.weights, *on_cpu.biases), (*on_gpu.weights, *on_gpu.biases), strict=True):
        torch.testing.assert_close(theirs.cpu(), ours, rtol=1e-6, atol=1e-7)


def test_the_captured_step_is_the_step(rows, monkeypatch):
    """With a CUDA graph and without: the same bits, for every kind of change."""
    x, y = rows[0].cuda(), rows[1].cuda()
    members = [*seeds(4), *leave_one_out(3, len(x)), *changes.label_noise(2, 0.2), *changes.windows(2, 33, len(x))]
    members += changes.fine_tune(2, epochs=3, top_only=True) + changes.hyperparameters(2, weight_decay=(1e-3, 1e-2))
    recipe = Recipe((16, 8), epochs=10, batch=16)
    base = train(x, y, recipe, [Retraining()])[0]
    captured = train(x, y, recipe, members, new=(x, y), base=base)
    assert torch.equal(captured[11].weights[0], base.weights[0])  # top layer only
    monkeypatch.setattr(stacked_training, "_captured", lambda blocks, changed, adam: blocks)
    launched = train(x, y, recipe, members, new=(x, y), base=base)
    for ours, theirs in zip((*captured.weights, *captured.biases), (*launched.weights, *launched.biases), strict=True):
        assert torch.equal(ours, theirs)


def test_the_same_family_twice_is_the_same_bits(rows):
    x, y = rows[0].cuda(), rows[1].cuda()
    one, two = (train(x, y, Recipe((16, 8), epochs=10, batch=16), seeds(5)) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.weights, two.weights, strict=True))


def test_a_store_gives_back_what_a_gpu_trained(rows, tmp_path):
    x, y = rows[0].cuda(), rows[1].cuda()
    one, two = (train(x, y, Recipe((8,), epochs=3), seeds(3), store=tmp_path) for _ in range(2))
    assert two.weights[0].is_cuda
    assert torch.equal(one.weights[0], two.weights[0])


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.batch, self.drop = nn.Linear(12, 16), nn.BatchNorm1d(16), nn.Dropout(0.2)
        self.layer, self.leave = nn.LayerNorm(16), nn.Linear(16, 2)

    def forward(self, x):
        hidden = self.drop(torch.relu(self.batch(self.enter(x))))
        return self.leave(hidden + torch.tanh(self.layer(hidden)))


def test_modules_agree_with_the_cpu_and_with_steps_that_are_not_captured(rows, monkeypatch):
    """Dropout included, since its masks come from a hash; a last batch that is short has a graph of its own."""
    x, y = rows[0].double(), rows[1]
    members = [*seeds(4), *leave_one_out(3, len(x)), *changes.hyperparameters(3, learning_rate=(1e-4, 1e-2))]
    recipe = Recipe(network=Mixed, epochs=10, batch=16)
    on_cpu, on_gpu = train(x, y, recipe, members), train(x.cuda(), y.cuda(), recipe, members)
    monkeypatch.setattr(stacked_training, "_captured", lambda blocks, changed, adam: blocks)
    launched = train(x.cuda(), y.cuda(), recipe, members)
    for ours, theirs, third in zip(on_cpu, on_gpu, launched, strict=True):
        for name, tensor in theirs.state_dict().items():
            assert tensor.is_cuda
            torch.testing.assert_close(tensor.cpu(), ours.state_dict()[name], rtol=1e-6, atol=1e-7)
            torch.testing.assert_close(tensor, third.state_dict()[name], rtol=1e-9, atol=1e-12)


def test_a_stack_that_does_not_fit_the_memory_is_divided(rows, monkeypatch):
    x, y = rows[0].double().cuda(), rows[1].cuda()
    recipe = Recipe((16, 8), epochs=10, batch=16)
    whole = train(x, y, recipe, seeds(9))
    stacks, one_stack = [], training.train_stack
    monkeypatch.setattr(training, "train_stack", lambda *job: stacks.append(len(job[-1])) or one_stack(*job))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (200_000, 200_000))
    divided = train(x, y, recipe, seeds(9))
    assert len(stacks) > 2
    for one, other in zip(whole.weights, divided.weights, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["schema", "free"])
def test_searches_and_audits_run_on_the_device_of_their_input(name, rows, encoding):
    x, y = rows[0].cuda(), rows[1].cuda()
    space = encoding.space if name == "schema" else Space.free(x)
    family = train(x, y, Recipe((16, 8), epochs=30, batch=16), [Retraining(), *seeds(6)])
    model, target = family[0], other_class(family[0], x)
    found = PGD(radius=6.0)(model, x, target, space)
    stable = SNS(radius=4.0)(model, found, space)
    assert stable.point.is_cuda
    assert found.success > 0.5
    assert not space.violations(stable.point[stable.found], x[stable.found]).any()
    assert audit(stable, family[1:]).rate < audit(found, family[1:]).rate
    assert len(stable.to_frame(encoding)) == len(x)


@pytest.mark.parametrize("name", [*METHODS, "pgd+confidence", "pgd+sparse"])
@pytest.mark.parametrize("where", ["schema", "free"])
def test_every_method_runs_on_the_device_of_its_input(name, where, rows, encoding):
    x, y = rows[0].cuda(), rows[1].cuda()
    space = encoding.space if where == "schema" else Space.free(x)
    model = train(x, y, Recipe((16, 8), epochs=30, batch=16), [Retraining()])[0]
    answer = make_method(name).fit(x, y, space)(model, x, other_class(model, x), space)
    assert answer.point.is_cuda
    assert answer.success > 0.5
    assert not space.violations(answer.point[answer.found], x[answer.found]).any()


def test_an_audit_on_a_gpu_says_what_it_says_on_a_cpu(rows, encoding, tmp_path):
    x, y = rows[0].cuda(), rows[1].cuda()
    family = train(x, y, Recipe((16, 8), epochs=30, batch=16), [Retraining(), *seeds(6)])
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    stable = SNS(radius=2.0, norm=1)(family[0], found, Space.free(x))
    result = audit(found, family[1:])
    save_audit(result, tmp_path / "saved")
    home = load_audit(tmp_path / "saved")
    assert not home.predictions.is_cuda
    assert (home.rate, home.interval(), home.baseline_flips) == (result.rate, result.interval(), result.baseline_flips)
    assert repr(compare({"pgd": result, "pgd+sns": audit(stable, family[1:])}))
    values = predictors(family[0], found, x, y)
    assert what_predicts({"pgd": result}, {"pgd": values})["spearman"].notna().any()


def test_a_study_on_a_gpu_finds_what_it_finds_on_a_cpu(tmp_path):
    """Networks and answers differ by rounding, but neither what is found nor, by much, what it costs."""
    pgd = ReleasedPGD(radius=6.0, levels=3, steps=60)
    latent = ReleasedLatent(radius=1.0, samples=20, latent=Latent(sizes=(16, 4), epochs=2, unit_codes=False))
    study = Study(
        name="both",
        datasets=("german",),
        methods=(
            ("pgd", PGD(radius=6.0, levels=3, steps=60)),
            ("released", pgd),
            ("released+sns", Pipeline(pgd, (ReleasedSNS(radius=1.0, steps=20),))),
            ("latent", latent),
        ),
        changes=(("seeds", 2), ("leave-one-out", 2)),
        rows=20,
        recipes={"german": Recipe((8,), epochs=2, batch=64)},
    )
    here, there = (
        each(run(replace(study, device=device), tmp_path / f"{device}.jsonl", store=tmp_path / device, workers=1))
        for device in ("cpu", "cuda")
    )
    assert here["found"].any()
    assert there["found"].tolist() == here["found"].tolist()
    assert there["cost_l2"].tolist() == pytest.approx(here["cost_l2"].tolist(), rel=0.05, nan_ok=True)
