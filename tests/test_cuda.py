"""The same road on a GPU: everything works on the device of its input, and agrees with the CPU up to rounding."""

from __future__ import annotations

import pytest
import torch

from holdfast import PGD, SNS, Recipe, Retraining, Space, audit, leave_one_out, other_class, seeds, train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def test_training_agrees_with_the_cpu(rows):
    x, y = (value.double() if value.is_floating_point() else value for value in rows)
    changes = [Retraining(), *seeds(5), *leave_one_out(4, len(x))]
    recipe = Recipe((16, 8), epochs=10, batch=16)
    on_cpu, on_gpu = train(x, y, recipe, changes), train(x.cuda(), y.cuda(), recipe, changes)
    assert on_gpu.weights[0].is_cuda
    for ours, theirs in zip((*on_cpu.weights, *on_cpu.biases), (*on_gpu.weights, *on_gpu.biases), strict=True):
        torch.testing.assert_close(theirs.cpu(), ours, rtol=1e-6, atol=1e-7)


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
