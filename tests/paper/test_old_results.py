"""Files that version 0.1 wrote are read, and its results are not computed again.

`tests/fixtures/version-0.1` holds the file of `holdfast paper --quick`, a saved audit, a saved family, and what that
version said of the two.
"""

from __future__ import annotations

import json
import shutil
from copy import copy
from dataclasses import fields, is_dataclass, make_dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import holdfast
from holdfast import Recipe, load_audit, load_family
from holdfast.paper import keys, runner, study
from holdfast.paper.declared import QUICK
from holdfast.paper.keys import described
from holdfast.paper.results import each, frame, read
from holdfast.paper.runner import run

OLD = Path(__file__).parents[1] / "fixtures" / "version-0.1"
LINES = [json.loads(line) for line in (OLD / "paper-quick.jsonl").read_text(encoding="utf-8").splitlines()]
ROWS = [row for line in LINES for row in line["rows"]]
EXPECTED = json.loads((OLD / "expected.json").read_text(encoding="utf-8"))
RENAMED = {"end_to_end": "found_and_held", "clean": "baseline_flips"}
RENAMED |= {f"new_rows_{end}": f"approximate_new_rows_{end}" for end in ("low", "high")}


@pytest.fixture
def same_libraries(monkeypatch):
    """Keys as they are where the versions of torch and numpy are those of the old file."""
    (versions,) = {(row["torch"], row["numpy"]) for row in ROWS}
    today = keys.versions_in_keys()
    monkeypatch.setattr(study, "versions_in_keys", lambda: today | dict(zip(("torch", "numpy"), versions, strict=True)))


@pytest.fixture
def file(tmp_path):
    return Path(shutil.copy(OLD / "paper-quick.jsonl", tmp_path))


# ---- a study's file ----


def test_every_cell_has_the_key_that_version_0_1_gave_it(same_libraries):
    assert {row["holdfast"] for row in ROWS} == {"0.1.0"}
    assert holdfast.__version__ != "0.1.0"
    assert [cell.key for cell in QUICK.cells] == [line["cell"] for line in LINES]
    assert len(LINES) == 13


@pytest.fixture
def no_computing(monkeypatch):
    def refuse(*given):
        raise RuntimeError("a cell is computed")

    monkeypatch.setattr(runner, "start_trial", refuse)


def test_a_study_resumes_with_no_cell_to_compute(same_libraries, no_computing, file, tmp_path):
    run(QUICK, file, store=tmp_path / "families")
    assert [json.loads(line)["cell"] for line in file.read_text().splitlines()] == [line["cell"] for line in LINES]
    assert read(file, QUICK) == read(OLD / "paper-quick.jsonl")  # its own cells, to the last digit
    assert not (tmp_path / "families").exists()


def test_with_another_setting_a_cell_is_computed(same_libraries, no_computing, file):
    with pytest.raises(RuntimeError, match="a cell is computed"):
        run(replace(QUICK, rows=49), file, only=("pgd",))


def test_rows_have_todays_names_and_the_old_numbers():
    rows = read(OLD / "paper-quick.jsonl")
    assert len(rows) == len(ROWS) == 26
    for now, then in zip(rows, ROWS, strict=True):
        assert now == {RENAMED.get(name, name): value for name, value in then.items()}
        assert {"found_and_held", "baseline_flips"} <= set(now)
        assert not {"end_to_end", "clean"} & set(now)
    pd.testing.assert_frame_equal(frame(OLD / "paper-quick.jsonl"), pd.DataFrame(rows))


def test_each_counterfactual_has_todays_columns_and_the_old_numbers():
    table = each(OLD / "paper-quick.jsonl")
    kinds = ("seeds", "leave-one-out")
    cell, costs = ["dataset", "base_seed", "method"], ["cost_l1", "cost_l2"]
    assert list(table) == [*cell, "row", "found", *costs, *(f"invalidated_{kind}" for kind in kinds)]
    for line in LINES:
        own, old = table[table["method"] == line["method"]], line["each"]
        assert "".join("01"[found] for found in own["found"]) == old["found"]
        assert len(own) == 50
        found = own[own["found"]]
        assert own[~own["found"]].iloc[:, 5:].isna().all(axis=None)
        for name in costs:
            assert found[name].tolist() == old[name]
        for kind in kinds:
            np.testing.assert_allclose(found[f"invalidated_{kind}"] * 20, old["undone"][kind])


# ---- what decides a key ----

WAS = {"size": 1, "shape": "round", "gone": None}  # fields of Widget in version 0.1, and their defaults


def widget(module="holdfast.x", **fields):
    """A class Widget in that module, with these fields and defaults."""
    kind = make_dataclass("Widget", [(name, object, default) for name, default in fields.items()], frozen=True)
    kind.__module__ = module
    return kind


@pytest.fixture
def written(monkeypatch):
    """How version 0.1 wrote a Widget down."""
    monkeypatch.setitem(keys.WRITTEN, "Widget", ("holdfast.first.place.Widget", " ".join(WAS)))
    return ["holdfast.first.place.Widget", WAS]


@pytest.mark.parametrize("module", ["holdfast.first.place", "holdfast.x", "holdfast.another.place"])
def test_a_class_that_moves_keeps_its_key(module, written):
    assert described(widget(module, **WAS)()) == written


def test_dropping_a_field_that_was_always_none_keeps_the_key(written):
    assert described(widget(size=1, shape="round")()) == written


@pytest.mark.parametrize("default", [3, 0.5, None, "some", (1, 2)])
def test_a_new_field_is_part_of_the_key_only_where_it_differs_from_its_default(default, written):
    kind = widget(**WAS, later=default)
    assert described(kind()) == written
    assert described(kind(later=7)) == [written[0], WAS | {"later": 7}]


def test_a_new_field_without_a_default_is_always_part_of_the_key(written):
    kind = make_dataclass("Widget", [("later", int)], frozen=True)
    kind.__module__ = "holdfast.x"
    assert described(kind(7)) == [written[0], dict.fromkeys(WAS) | {"later": 7}]


@pytest.mark.parametrize("field", WAS)
def test_changing_a_setting_changes_the_key(field, written):
    assert described(widget(**WAS)(**{field: 2})) == [written[0], WAS | {field: 2}]


def test_another_default_of_an_old_field_changes_the_key(written):
    assert described(widget(**WAS | {"size": 2})()) != written


def test_a_class_of_another_package_is_known_by_its_module():
    assert described(widget("mine.x", **WAS)()) == ["mine.x.Widget", WAS]


@pytest.mark.parametrize("name", QUICK.names)
def test_every_setting_of_every_method_is_part_of_its_key(name):
    method = QUICK.method("german", name)
    changed = list(with_one_setting_changed(method))
    assert len(changed) >= len(fields(method))
    assert described(method) not in map(described, changed)


def with_one_setting_changed(value):
    """Values like this one that differ in one setting, of their own or of a value that they hold."""
    if isinstance(value, tuple):
        for place, part in enumerate(value):
            yield from ((*value[:place], other, *value[place + 1 :]) for other in with_one_setting_changed(part))
    elif is_dataclass(value):
        for field in fields(value):
            for other in with_one_setting_changed(getattr(value, field.name)):
                changed = copy(value)
                object.__setattr__(changed, field.name, other)  # whether or not it makes sense
                yield changed
    else:
        yield "another"


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 49},
        {"base_seeds": (1,)},
        {"changes": (("seeds", 20), ("leave-one-out", 21))},
        {"changes": (("seeds", 20),)},
        {"space": "schema"},
        {"settings": "own"},
        {"device": "cuda"},
        {"recipes": {"german": replace(QUICK.recipe("german"), epochs=99)}},
        {"scalings": {"german": "minmax"}},
        {"splits": {"german": (700, 199)}},
        {"untargeted": ("german",)},
    ],
    ids=str,
)
def test_every_setting_of_a_study_is_part_of_every_key(change):
    before, after = ({cell.key for cell in own.cells} for own in (QUICK, replace(QUICK, **change)))
    assert len(after) == 13
    assert not before & after


def test_the_name_of_a_study_is_no_part_of_its_keys():
    assert [cell.key for cell in replace(QUICK, name="mine").cells] == [cell.key for cell in QUICK.cells]


# ---- saved audits and families ----


def test_an_old_audit_has_the_old_numbers_under_todays_names():
    audit = load_audit(OLD / "audit")
    assert audit.rate == EXPECTED["rate"]
    assert audit.found_and_held == EXPECTED["end_to_end"]
    assert audit.baseline_flips == EXPECTED["clean"]
    summary = json.loads((OLD / "audit" / "audit.json").read_text(encoding="utf-8"))["summary"]
    for now, then in zip(audit.summary().to_dict("records"), summary, strict=True):
        expected = {RENAMED.get(name, name): np.nan if value is None else value for name, value in then.items()}
        low, high = expected.pop("low"), expected.pop("high")
        assert low <= now.pop("low") <= now["rate"] <= now.pop("high") <= high  # limits are narrower than in 0.1
        assert now == pytest.approx(expected, nan_ok=True)


def test_an_old_family_has_its_members_and_their_accuracy():
    family = load_family(OLD / "family")
    assert list(family.accuracy) == EXPECTED["accuracy"]
    assert family.kinds == load_audit(OLD / "audit").kinds == ("seeds",) * 4 + ("leave-one-out",) * 3
    assert family.recipe == Recipe((8,), epochs=20, batch=8)


def test_an_old_audit_is_what_the_old_family_says_today():
    audit, family = load_audit(OLD / "audit"), load_family(OLD / "family")
    assert torch.equal(audit.predictions, family.predict(audit.counterfactuals.point))
    assert torch.equal(audit.before, family.predict(audit.counterfactuals.origin))
