"""All figures at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast import PGD, Recipe
from holdfast.report.figures.gallery import draw
from holdfast.studies.paper import PAPER
from holdfast.studies.reproduce import Reproduction
from holdfast.studies.results import frame
from holdfast.studies.runner import run


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_FAMILIES", str(tmp_path / "families"))
    study = replace(
        PAPER["text"],
        datasets=("german",),
        methods=(("pgd", PGD(levels=2, steps=5)),),
        changes=(("seeds", 2),),
        rows=4,
        base_seeds=(0,),
        recipes={"german": Recipe((8,), epochs=2)},
    )
    return [Reproduction(study, frame(run(study, tmp_path / "rows.jsonl", workers=1)))]


def test_every_figure_is_drawn_twice_and_only_what_there_are_rows_for(results, tmp_path):
    files = draw(results, [], tmp_path / "new" / "figures")
    names = ["figure-1", "figure-2a", "figure-2b", "cost-text"]
    assert [file.name for file in files] == [f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    assert sorted(files) == sorted((tmp_path / "new" / "figures").iterdir())
    assert all(file.stat().st_size > 5000 for file in files)
