"""A member is the same network alone and beside others, whatever its widths; workers are in test_training.py."""

from __future__ import annotations

import pytest
import torch

from holdfast import Recipe, Retraining, seeds, train
from holdfast.families.changes import fine_tune
from holdfast.families.perceptron import aligned

MEMBERS = seeds(7)


def data(columns: int, classes: int):
    draw = torch.Generator().manual_seed(columns)
    return torch.randn(83, columns, generator=draw), torch.randint(0, classes, (83,), generator=draw)


def tensors(family, member):
    return [tensor[member] for tensor in (*family.weights, *family.biases)]


@pytest.mark.parametrize("hidden", [(10,), (5,), (7,), (33, 5), (1,), (3, 2), (), (12,)], ids=str)
@pytest.mark.parametrize(("columns", "classes", "batch"), [(13, 2, 32), (21, 3, 7)])
def test_alone_is_beside_others_to_the_last_bit(hidden, columns, classes, batch):
    x, y = data(columns, classes)
    recipe = Recipe(hidden, epochs=2, batch=batch)
    together = train(x, y, recipe, MEMBERS, workers=1, classes=classes)
    assert [tuple(weight.shape[1:]) for weight in together.weights] == list(
        zip((columns, *hidden), (*hidden, classes), strict=True)
    )
    for member, one in enumerate(MEMBERS):
        alone = train(x, y, recipe, [one], workers=1, classes=classes)
        for ours, theirs in zip(tensors(together, member), tensors(alone, 0), strict=True):
            assert torch.equal(ours, theirs)


def test_units_that_fill_up_a_layer_change_nothing():
    """A plain Adam on the true widths, by autograd, to within rounding."""
    x, y = data(13, 2)
    x = x.double()
    recipe = Recipe((5, 3), epochs=3, batch=83)
    ours = train(x, y, recipe, [Retraining()], workers=1)
    from holdfast.families.perceptron import Perceptron

    start = Perceptron((13, 5, 3, 2)).initial(Retraining(), x)
    leaves = {
        name: start[name][tuple(slice(size) for size in shape)].clone().requires_grad_()
        for name, shape in Perceptron((13, 5, 3, 2)).shapes.items()
    }
    adam = torch.optim.Adam(leaves.values(), recipe.learning_rate, eps=recipe.epsilon)
    for _ in range(recipe.epochs):
        hidden = x
        for layer in range(2):
            hidden = torch.relu(hidden @ leaves[f"weight.{layer}"] + leaves[f"bias.{layer}"])
        loss = torch.nn.functional.cross_entropy(hidden @ leaves["weight.2"] + leaves["bias.2"], y)
        adam.zero_grad()
        loss.backward()
        adam.step()
    for layer in range(3):
        torch.testing.assert_close(ours.weights[layer][0], leaves[f"weight.{layer}"].detach())


def test_a_network_of_odd_widths_can_be_continued():
    x, y = data(13, 2)
    base = train(x, y, Recipe((5,), epochs=2), [Retraining()])[0]
    tuned = train(x, y, Recipe((5,), epochs=2), fine_tune(2, epochs=1, top_only=True), new=(x, y), base=base)
    assert torch.equal(tuned[0].weights[0], base.weights[0])


def test_widths_that_memory_likes_stay_as_they_are():
    assert aligned((61, 128, 64, 16, 2)) == (61, 128, 64, 16, 2)
    assert aligned((21, 100, 3)) == (21, 100, 3)
    assert aligned((13, 5, 33, 2)) == (13, 8, 36, 2)
    assert aligned((13, 2)) == (13, 2)
