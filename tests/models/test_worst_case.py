"""Several models as one that is only as sure as the least sure of them."""

from __future__ import annotations

import math

import pytest
import torch

from holdfast import Family, Recipe, Retraining, seeds, train
from holdfast.models.identity import identities
from holdfast.models.merged import merged
from holdfast.models.scores import margin
from holdfast.models.worst_case import WorstCaseEnsemble, margins


def networks(classes=2, members=7, dtype=torch.float32):
    """A deployed network and others, of random rows: they agree on little."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(40, 5, generator=generator, dtype=dtype)
    y = torch.randint(classes, (40,), generator=generator)
    family = train(x, y, Recipe((6,), epochs=3, batch=8), [Retraining(), *seeds(members)], classes=classes)
    return family[0], family[1:], torch.randn(300, 5, generator=generator, dtype=dtype)


def by_hand(deployed, family, x, share):
    """r_t for every class, member by member."""
    own = [margin(deployed, x, torch.full((len(x),), label)) for label in range(deployed(x).shape[1])]
    theirs = [
        torch.stack([margin(family[i], x, torch.full((len(x),), label)) for i in range(len(family))])
        for label in range(len(own))
    ]
    needed = math.ceil(share * len(family))
    reached = [each.sort(0, descending=True).values[needed - 1] for each in theirs]
    return torch.stack([torch.minimum(mine, their) for mine, their in zip(own, reached, strict=True)], 1)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("share", [1.0, 0.8, 0.5, 0.01])
@pytest.mark.parametrize("wanted", [0.0, 0.3])
def test_the_margin_of_every_class_is_what_the_share_of_members_reach(classes, share, wanted):
    deployed, family, x = networks(classes)
    model = WorstCaseEnsemble(deployed, family, share, wanted)
    expected = by_hand(deployed, family, x, share)
    for label in range(classes):
        target = torch.full((len(x),), label)
        torch.testing.assert_close(margin(model, x, target), expected[:, label] - wanted, atol=1e-5, rtol=1e-5)
    agreed = expected.amax(1) > wanted
    torch.testing.assert_close(model(x).argmax(1), torch.where(agreed, expected.argmax(1), classes))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_the_gradient_is_that_of_the_member_which_decides(classes, share):
    deployed, family, x = networks(classes)
    model, target = WorstCaseEnsemble(deployed, family, share, 0.1), torch.arange(len(x)) % classes
    x = x.requires_grad_()
    (found,) = torch.autograd.grad(margin(model, x, target).sum(), x)
    expected, decided = by_hand(deployed, family, x.detach(), share), set()
    for row in range(0, len(x), 5):
        point, wanted = x[row : row + 1].detach().requires_grad_(), target[row : row + 1]
        models = [deployed, *(family[i] for i in range(len(family)))]
        own = [margin(one, point, wanted) for one in models]
        place = min(range(len(own)), key=lambda i: abs(own[i].item() - expected[row, wanted].item()))
        (slope,) = torch.autograd.grad(own[place].sum(), point)
        torch.testing.assert_close(found[row], slope[0], atol=1e-5, rtol=1e-4)
        decided.add(place)
    assert len(decided) > 4  # or the test would show nothing


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_soft_minimum_is_below_the_hard_one_and_its_gradient_is_that_of_the_formula(share):
    deployed, family, x = networks()
    target = torch.ones(len(x), dtype=torch.int64)
    hard, soft = (WorstCaseEnsemble(deployed, family, share, 0.0, temperature) for temperature in (0.0, 0.3))
    assert bool((margin(soft, x, target) <= margin(hard, x, target) + 1e-6).all())
    x = x.requires_grad_()
    own = torch.stack([margin(one, x, target) for one in (deployed, *(family[i] for i in range(len(family))))])
    needed = math.ceil(share * len(family))
    counted = torch.cat([own[:1], own[1:].sort(0, descending=True).values[:needed]])
    tau = 0.3 * counted.detach().std(0, correction=0)
    expected = -tau * torch.logsumexp(-counted / tau, 0)
    torch.testing.assert_close(margin(soft, x, target), expected, atol=1e-5, rtol=1e-4)
    (slope,) = torch.autograd.grad(expected.sum(), x)
    (found,) = torch.autograd.grad(margin(soft, x, target).sum(), x)
    away = torch.linalg.vector_norm(found - slope, dim=1) / torch.linalg.vector_norm(slope, dim=1)
    assert float(away.quantile(0.99)) < 0.1  # members that weigh next to nothing are left out


def test_one_member_that_is_the_deployed_model_changes_nothing():
    deployed, _, x = networks()
    model = WorstCaseEnsemble(deployed, Family.from_models([deployed]))
    target = torch.ones(len(x), dtype=torch.int64)
    torch.testing.assert_close(margin(model, x, target), margin(deployed, x, target))


def test_rows_are_asked_a_few_at_a_time_with_the_same_answers(monkeypatch):
    deployed, family, x = networks()
    whole = WorstCaseEnsemble(deployed, family)(x)
    monkeypatch.setattr("holdfast.models.worst_case.PAIRS_AT_ONCE", 21)
    torch.testing.assert_close(WorstCaseEnsemble(deployed, family)(x), whole)


def test_merged_classes_and_families():
    deployed, family, x = networks(4)
    groups = ((0, 2), (1, 3))
    model = WorstCaseEnsemble(merged(deployed, groups), family.merged(groups))
    assert model(x).shape == (len(x), 3)
    torch.testing.assert_close(
        model.agreement(x, torch.zeros(len(x), dtype=torch.int64)),
        (family.merged(groups).predict(x) == 0).double().mean(0),
    )


def test_it_is_known_by_all_of_its_models():
    deployed, family, _ = networks()
    assert identities(WorstCaseEnsemble(deployed, family)) == identities(deployed) | set(family.fingerprints)


def test_rows_in_float64_and_members_in_float32():
    deployed, family, x = networks()
    own = WorstCaseEnsemble(lambda rows: deployed(rows.float()).double(), family)
    x = x.double().requires_grad_()
    (slope,) = torch.autograd.grad(own(x).sum(), x)
    assert slope.dtype == own(x).dtype == torch.float64


def test_nothing_asked_nothing_answered():
    deployed, family, x = networks()
    empty = x[:0].requires_grad_()
    assert WorstCaseEnsemble(deployed, family)(empty).shape == (0, 3)


def test_margins_of_several_classes():
    logits = torch.tensor([[3.0, 1.0, 2.5], [0.0, 0.0, -1.0]])
    expected = torch.tensor([[0.5, -2.0, -0.5], [0.0, 0.0, -1.0]])
    torch.testing.assert_close(margins(logits), expected)
    torch.testing.assert_close(margins(logits[:, :2]), torch.tensor([[2.0, -2.0], [0.0, 0.0]]))


def test_a_member_that_answers_nan_agrees_with_nothing():
    deployed, family, x = networks()
    broken = Family.from_models([family[0], lambda rows: family[1](rows) * torch.nan, family[2]])
    assert bool((WorstCaseEnsemble(deployed, broken, 1.0)(x).argmax(1) == 2).all())
    alone = Family.from_models([family[0], family[2]])
    torch.testing.assert_close(WorstCaseEnsemble(deployed, broken, 2 / 3)(x), WorstCaseEnsemble(deployed, alone)(x))
