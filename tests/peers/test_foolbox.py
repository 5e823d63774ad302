"""Our PGD against foolbox's, the one the paper's authors called, on a trained German Credit network."""

import foolbox
import pytest
import torch

from holdfast import PGD, Encoding, Retraining, Space, other_class, predict, train
from holdfast.datasets import card
from holdfast.families.recipe import PAPER_RECIPES


@pytest.fixture(scope="module")
def question():
    german = card("german")
    table, schema = german.load()
    known, asked = german.divide(table)
    encoding = Encoding.fit(known, schema, german.scaling)
    x = encoding.encode(known)
    network = train(x, encoding.labels(known), PAPER_RECIPES["german"], [Retraining()])[0]
    rows = encoding.encode(asked)
    return network, rows, other_class(network, rows), Space.free(x)


class Module(torch.nn.Module):
    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)


# Not larger: where p rounds to 1 the gradient fades, and foolbox stops at 1e-12 while we go on.
@pytest.mark.parametrize("radius", [0.3, 0.6, 1.0])
def test_one_rung_is_foolboxs_l2_pgd(radius, question):
    network, rows, target, space = question
    bounds = (float(space.lower[0]), float(space.upper[0]))
    model = foolbox.PyTorchModel(Module(network).eval(), bounds=bounds)
    inside = (rows >= bounds[0]).all(1) & (rows <= bounds[1]).all(1)  # foolbox takes no row outside its bounds
    rows, target = rows[inside], target[inside]
    attack = foolbox.attacks.L2PGD(abs_stepsize=2 * radius / 100, steps=100, random_start=False)
    _, theirs, _ = attack(model, rows, foolbox.criteria.TargetedMisclassification(target), epsilons=radius)
    ours = PGD(radius=radius, levels=1, random_start=False)(network, rows, target, space)
    reached = predict(network, theirs) == target
    assert reached.any()
    agree = (ours.found == reached).float().mean()
    assert agree >= 0.98  # a row at the very edge of the ball may go either way by a rounding
    both = ours.found & reached
    gap = (ours.point - theirs)[both].norm(dim=1) / radius
    assert gap.median() < 1e-5
    assert (gap < 0.01).float().mean() > 0.95
