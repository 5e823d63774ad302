"""SNS's settings, varied one at a time around the paper's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast import PGD, SNS, Recipe
from holdfast.paper import declared
from holdfast.paper.declared import PAPER_DATASETS
from holdfast.paper.results import frame
from holdfast.paper.runner import run
from holdfast.paper.sensitivity import (
    PAPERS_VALUES,
    QUICK,
    SENSITIVITY,
    SETTINGS,
    START,
    VALUES,
    Setting,
    method_name,
    setting,
    varied,
)

NAMES = [name for name, _ in SENSITIVITY.methods]


def test_a_name_says_what_was_varied():
    assert [setting(method_name(one)) for one in SETTINGS] == list(SETTINGS)
    assert [method_name(setting(name)) for name in NAMES[1:]] == NAMES[1:]
    assert setting("pgd+sns:radius=0.4") == Setting("radius", 0.4)


@pytest.mark.parametrize("name", ["pgd", "pgd+sns", "pgd+sns:", "pgd+sns:radius", "pgd+sns:norm=2", "radius=0.4"])
def test_other_methods_vary_nothing(name):
    assert setting(name) is None


def test_one_setting_is_varied_and_the_others_are_the_papers():
    fields = {"radius": "radius", "points": "points", "steps": "steps"}
    for one in SETTINGS:
        own = varied("ctg", one)
        rest = {field: getattr(declared.sns("ctg"), field) for name, field in fields.items() if name != one.name}
        assert own == replace(own, **rest)
    assert varied("ctg", Setting("radius", 0.4)).radius == pytest.approx(0.4 * 0.2)
    assert varied("german", Setting("points", 2)) == SNS(radius=declared.sns("german").radius, steps=200, points=2)
    assert varied("german", Setting("steps", 50)) == SNS(radius=declared.sns("german").radius, steps=50, points=10)


def test_every_setting_has_the_papers_value_and_that_is_the_papers_method():
    assert PAPERS_VALUES.keys() == VALUES.keys()
    for name, value in PAPERS_VALUES.items():
        assert value in VALUES[name]
        assert varied("heloc", Setting(name, value)) == declared.sns("heloc")


def test_the_study_starts_from_the_papers_pgd_on_all_datasets():
    assert SENSITIVITY.datasets == PAPER_DATASETS
    assert SENSITIVITY.method("taiwan", START) == PGD(radius=5.0)
    assert all(SENSITIVITY.method("taiwan", name).method == PGD(radius=5.0) for name in NAMES[1:])
    assert SENSITIVITY.changes == (("seeds", 100),)
    assert QUICK.datasets == ("german",)
    assert {cell.key for cell in QUICK.cells} <= {cell.key for cell in SENSITIVITY.cells}  # the same numbers


def test_a_larger_ball_costs_more_and_the_papers_value_is_searched_for_once(tmp_path, monkeypatch):
    calls = []
    original = SNS.__call__
    monkeypatch.setattr(SNS, "__call__", lambda self, *args: calls.append(self) or original(self, *args))
    study = replace(QUICK, recipes={"german": Recipe((8,), epochs=5)}, changes=(("seeds", 3),), rows=6)
    rows = frame(run(study, tmp_path / "rows.jsonl", store=tmp_path, workers=1))
    assert list(rows["method"]) == NAMES
    assert len(calls) == len(set(calls)) == len(SETTINGS) - 2
    cost = rows.set_index("method")["cost_l2"]
    along = [cost[START], *(cost[method_name(Setting("radius", value))] for value in VALUES["radius"])]
    assert along == sorted(along)
    assert len({cost[method_name(Setting(name, value))] for name, value in PAPERS_VALUES.items()}) == 1
