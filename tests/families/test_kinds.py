"""Every kind of change that there is can be said in a sentence."""

from __future__ import annotations

import holdfast as hf
from holdfast.families.kinds import WHAT_CHANGES, what_changes

CHANGES = {
    "seeds": hf.seeds(1),
    "leave_one_out": hf.changes.leave_one_out(1, 10),
    "leave_out": hf.changes.leave_out(1, 0.1),
    "bootstrap": hf.changes.bootstrap(1),
    "shift": hf.changes.shift(1, 0, 0.5),
    "windows": hf.changes.windows(1, 5, 10),
    "append": hf.changes.append(1),
    "label_noise": hf.changes.label_noise(1, 0.1),
    "weight_noise": hf.changes.weight_noise(1, 0.1),
    "fine_tune": hf.changes.fine_tune(1, 2),
    "hyperparameters": hf.changes.hyperparameters(1, epochs=(1, 2)),
    "parameters": hf.changes.parameters(1, C=(1, 2)),
    "architecture": hf.changes.architecture(1, widths=[4]),
    "base": [hf.Retraining()],
    "own": hf.Family.from_models([lambda x: x]).retrainings,
}


def test_every_kind_of_change_has_its_sentence():
    made = {name for name, value in vars(hf.changes).items() if getattr(value, "__module__", "") == hf.changes.__name__}
    assert {name for name in made if not name.startswith("_")} - {"both"} <= set(CHANGES)
    assert {change.kind for changes in CHANGES.values() for change in changes} == set(WHAT_CHANGES)
    assert len(set(WHAT_CHANGES.values())) == len(WHAT_CHANGES)
    assert all(sentence.endswith(".") for sentence in WHAT_CHANGES.values())


def test_two_changes_at_once_are_two_sentences():
    (joined,) = hf.changes.both(hf.seeds(1), hf.changes.bootstrap(1))
    assert what_changes(joined.kind) == f"{WHAT_CHANGES['seeds']} {WHAT_CHANGES['bootstrap']}"


def test_a_kind_that_only_the_user_knows_is_the_users():
    assert what_changes("the 2024 model") == "Called 'the 2024 model' by the user, who knows what was changed."
