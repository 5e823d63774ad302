"""All figures at once."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from matplotlib.image import imread

from holdfast import PGD, SNS, Recipe
from holdfast.paper.declared import PAPER
from holdfast.paper.figures import gallery
from holdfast.paper.figures.shared import save
from holdfast.paper.reproduce import Reproduction
from holdfast.paper.results import frame
from holdfast.paper.runner import run
from holdfast.search.pipeline import Pipeline

SHORT = PGD(levels=2, steps=5)
METHODS = {"pgd": SHORT, "pgd+sns": Pipeline(SHORT, (SNS(steps=5),))}


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_FAMILIES", str(tmp_path / "families"))
    study = replace(
        PAPER["text"],
        datasets=("german",),
        methods=tuple(METHODS.items()),
        changes=(("seeds", 2),),
        rows=4,
        base_seeds=(0,),
        recipes={"german": Recipe((8,), epochs=2)},
    )
    return [Reproduction(study, frame(run(study, tmp_path / "rows.jsonl", workers=1)))]


def words_in(svg):
    """Every text of a figure. An SVG has them as outlines, each below a comment that says what it shows."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.parse(svg, parser).getroot()
    assert root.tag.endswith("svg")
    return {element.text.strip() for element in root.iter(ElementTree.Comment)}


@pytest.mark.slow
def test_every_figure_is_drawn_twice_and_only_what_there_are_rows_for(results, tmp_path, monkeypatch):
    legends, labels = {}, {}

    def remember(figure, path):  # before saving, which empties the figure
        legends[path.name] = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
        labels[path.name] = {label for axes in figure.axes for label in (axes.get_xlabel(), axes.get_ylabel())} - {""}
        return save(figure, path)

    monkeypatch.setattr(gallery, "save", remember)
    files = gallery.draw(results, [], tmp_path / "new" / "figures")
    names = ["figure-1", "figure-2a", "figure-2b", "cost-text"]
    assert [file.name for file in files] == [f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    assert sorted(files) == sorted((tmp_path / "new" / "figures").iterdir())

    for name, svg, png in zip(names, files[::2], files[1::2], strict=True):
        assert len(labels[name]) >= 2  # what lies along x, and along y
        assert len(legends[name]) >= 2
        assert labels[name] | legends[name] <= words_in(svg)
        picture = imread(png)
        assert picture.shape[1] >= 200 * 4
        assert picture.std() > 0.01  # not blank
    assert set(METHODS) <= legends["cost-text"]
    assert any("cost" in label for label in labels["cost-text"])
    assert any("invalidation" in label for label in labels["cost-text"])
