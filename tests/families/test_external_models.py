"""Models that somebody else made or trains are a family like ours."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import nn

from holdfast import PGD, Family, Space, audit, changes, other_class, predict, seeds
from holdfast.families.changes import leave_one_out


@pytest.fixture(scope="module")
def found(family, rows):
    x, _ = rows
    return PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))


def test_the_same_networks_as_models_give_the_same_audit(family, rows, found):
    own = Family.from_models([family[place] for place in range(1, 7)], kind="seeds")
    ours = audit(found, family[1:7])
    theirs = audit(found, own)
    assert theirs.rate == ours.rate
    assert theirs.kinds == ours.kinds
    torch.testing.assert_close(own.logits(rows[0]), family[1:7].logits(rows[0]), rtol=1e-5, atol=1e-5)
    assert audit(found, own[:3]).rate == audit(found, family[1:4]).rate
    joint = own.merged(((0,), (1,)))
    assert torch.equal(joint.predict(rows[0]), own.predict(rows[0]))


def test_modules_are_put_into_evaluation_and_files_are_read(tmp_path, rows, found):
    torch.manual_seed(0)
    modules = [nn.Sequential(nn.Linear(12, 8), nn.Dropout(), nn.Linear(8, 2)) for _ in range(3)]
    family = Family.from_models(modules)
    assert torch.equal(family.predict(rows[0]), family.predict(rows[0]))  # dropout is off
    paths = [tmp_path / f"{place}.safetensors" for place in range(3)]
    for module, path in zip(modules, paths, strict=True):
        safetensors.torch.save_file(module.state_dict(), path)
    from_files = Family.from_models(paths, like=modules[0])
    assert torch.equal(from_files.logits(rows[0]), family.logits(rows[0]))
    assert audit(found, from_files).rate == audit(found, family).rate
    with pytest.raises(ValueError, match=r"0\.safetensors holds weights only; pass the module that they belong to"):
        Family.from_models(paths)
    with pytest.raises(ValueError, match=r"0\.safetensors does not hold the weights of Linear"):
        Family.from_models(paths, like=nn.Linear(12, 2))


def test_models_that_are_none_are_refused():
    with pytest.raises(TypeError, match="dict cannot be called"):
        Family.from_models([{}])
    with pytest.raises(ValueError, match="one model or more"):
        Family.from_models([])
    with pytest.raises(ValueError, match="2 models, 1 kinds"):
        Family.from_models([lambda x: x, lambda x: x], kind=["one"])


def nearest_mean(x: torch.Tensor, y: torch.Tensor):
    """A user's own training: written in a test, so it travels to the workers by value."""

    def training(rows: np.ndarray, seed: int):
        if seed == 3:
            raise ValueError("no luck with three")
        kept, labels = x[rows], y[rows]
        means = torch.stack([kept[labels == label].mean(0) for label in (0, 1)])
        means = means + 0.01 * seed
        return lambda asked: -torch.cdist(asked, means)

    return training


def test_ones_own_training_runs_in_workers_and_failures_keep_the_rest(rows, found):
    x, y = rows
    members = seeds(5) + leave_one_out(2, len(x)) + changes.bootstrap(2)
    with pytest.warns(UserWarning, match="1 of 9 trainings failed .* ValueError: no luck with three"):
        family = Family.from_training(nearest_mean(x, y), members, rows=len(x), workers=2)
    assert family.kinds == ("seeds",) * 4 + ("leave-one-out",) * 2 + ("bootstrap",) * 2
    (failure,) = family.failures
    assert failure.retraining == seeds(5)[2]
    assert "no luck with three" in failure.details
    kept = np.array([row for row in range(len(x)) if row != members[5].left_out])
    by_hand = nearest_mean(x, y)(kept, 0)
    assert torch.equal(predict(family[4], x), predict(by_hand, x))
    assert set(audit(found, family).by_kind) == {"seeds", "leave-one-out", "bootstrap"}


def test_a_training_that_never_works_is_reported_with_its_traceback(rows):
    def broken(kept, seed):
        return {}["weights"]

    with pytest.raises(RuntimeError, match=r"(?s)none of 2 trainings gave a model.*KeyError: 'weights'"):
        Family.from_training(broken, seeds(2), rows=60, workers=1)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (changes.label_noise(1, 0.1), "changes more than rows and seeds; make that change inside your own function"),
        (changes.append(1), "changes more than rows"),
        (changes.hyperparameters(1, epochs=(2, 3)), "changes more than rows"),
        (leave_one_out(1, 900, seed=3), "leaves out a row that is not there; there are 60"),
    ],
)
def test_what_a_function_of_rows_cannot_do_is_refused(members, message, rows):
    with pytest.raises(ValueError, match=message):
        Family.from_training(nearest_mean(*rows), members, rows=60)
