"""Figures show every method and dataset of their rows, and their files are whole and the same on every run."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread

from holdfast.paper import plane
from holdfast.paper.declared import PAPER_DATASETS
from holdfast.paper.figures.cost import _marks, _method_looks, cost_against_invalidation
from holdfast.paper.figures.disagreement import disagreement
from holdfast.paper.figures.paths import paths
from holdfast.paper.figures.regions import regions
from holdfast.paper.figures.sensitivity import sensitivity
from holdfast.paper.figures.shared import save
from holdfast.paper.sensitivity import SETTINGS, START, method_name

METHODS = (
    "min-l1-art", "min-l1-art+sns", "pgd", "pgd+sns", "pgd+confidence", "pgd+sns+sparse", "margin", "brand-new",
    "brand-new+sns",
)  # fmt: skip


def row(dataset: str, method: str, rate: float, cost: float, **more: object) -> dict[str, object]:
    own = {"dataset": dataset, "method": method, "change": "seeds", "base_seed": 0, "space": "free", "settings": "text"}
    numbers = {"rate": rate, "low": max(rate - 0.02, 0), "high": rate + 0.05, "cost_l2": cost, "found": 90, "rows": 100}
    return own | numbers | more


@pytest.fixture
def methods() -> pd.DataFrame:
    """Two datasets, two deployed networks."""
    return pd.DataFrame(
        row(dataset, name, 0.8 / (1 + place), 0.3 * (1 + place), base_seed=seed)
        for dataset in ("heloc", "german")
        for seed in (0, 1)
        for place, name in enumerate(METHODS)
    )


@pytest.fixture
def settings() -> pd.DataFrame:
    return pd.DataFrame(
        row(dataset, name, 0.9 / (1 + place), 0.3 * (1 + place))
        for dataset in reversed(PAPER_DATASETS)
        for place, name in enumerate([START, *map(method_name, SETTINGS)])
    )


@pytest.fixture(scope="module")
def values() -> dict[str, object]:
    """Small ones, with numbers that need no training."""
    axis = np.linspace(-2.5, 2.5, 21)
    tilted = axis[None, :] + 0.2 * axis[:, None]
    twins = plane.Twins(
        np.stack([tilted, axis[None, :] - 0.2 * axis[:, None]]),
        np.array([[0.5, 1.0], [0.5, -1.0]]), np.full(2, 1.8), np.array([True, False]), 0.04,
    )  # fmt: skip
    draw = np.random.default_rng(0)
    cloud = plane.Disagreement(draw.normal(size=(20, 2)), np.arange(20) % 2, axis, np.array([-1.0, 0]), twins, twins)
    t = np.linspace(0, 1, 11)
    low, high = np.outer([0.5, 0.6, 0.7], t), np.outer([0.8, 0.9, 1.0], t)
    lines = plane.Paths(t, low, high, low[:2], high[:2], 0.3, 0.9)
    return {"disagreement": cloud, "regions": plane.regions(plane.small_network()), "paths": lines}


@pytest.fixture
def drawn(values, methods, settings):
    """Every figure by name, drawn anew at each call."""

    def draw(name: str) -> Figure:
        rows = {"sensitivity": settings, "cost_against_invalidation": methods}
        return FIGURES[name](rows.get(name, values.get(name)))

    return draw


FIGURES = {one.__name__: one for one in (disagreement, regions, paths, sensitivity, cost_against_invalidation)}
NAMES = tuple(FIGURES)


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


# ---- files ----


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "disagreement" else ()) for name in NAMES]
)
def test_files_are_whole_and_the_same_on_every_run(drawn, tmp_path, name):
    first = save(drawn(name), tmp_path / "one" / f"{name}.v1")
    second = save(drawn(name), tmp_path / "two" / f"{name}.v1")
    assert [path.name for path in first] == [f"{name}.v1.svg", f"{name}.v1.png"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    root = ElementTree.parse(first[0]).getroot()
    assert root.tag.endswith("svg")
    assert "matplotlib" not in first[0].read_text().split("<defs>")[0].lower()  # no version, no date
    picture = imread(first[1])
    assert picture.shape[1] >= 200 * 4
    assert picture.std() > 0.01
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == [f"{name}.v1.png", f"{name}.v1.svg"]


@pytest.mark.slow
def test_another_process_writes_the_same_bytes_and_touches_no_window_system(settings, tmp_path):
    settings.to_json(tmp_path / "rows.json", orient="records")
    program = (
        "import pandas as pd; import sys; import holdfast.paper.figures.gallery;"
        "from holdfast.paper.figures.sensitivity import sensitivity;"
        "from holdfast.paper.figures.shared import save;"
        "rows = pd.read_json(sys.argv[1] + '/rows.json', orient='records', precise_float=True);"
        "save(sensitivity(rows), sys.argv[1] + '/theirs'); print('matplotlib.pyplot' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
    rows = pd.read_json(tmp_path / "rows.json", orient="records", precise_float=True)
    save(sensitivity(rows), tmp_path / "ours")
    for ending in ("svg", "png"):
        assert (tmp_path / f"theirs.{ending}").read_bytes() == (tmp_path / f"ours.{ending}").read_bytes()


def test_an_interrupted_save_leaves_no_half_file(drawn, tmp_path, monkeypatch):
    path = tmp_path / "figure"
    save(drawn("paths"), path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def stops(self, file, **settings):
        file.write(b"half a fig")
        raise KeyboardInterrupt

    figure = drawn("sensitivity")
    monkeypatch.setattr(Figure, "savefig", stops)
    with pytest.raises(KeyboardInterrupt):
        save(figure, path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    with pytest.raises(KeyboardInterrupt):
        save(figure, tmp_path / "other")
    assert not list(tmp_path.glob("*other*"))
    assert figure.axes  # still there to be saved


def test_saving_empties_the_figure(drawn, tmp_path):
    figure = drawn("paths")
    save(figure, tmp_path / "paths")
    assert not figure.axes


def test_the_callers_style_neither_matters_nor_changes(drawn, tmp_path):
    usual = save(drawn("paths"), tmp_path / "usual")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "axes.facecolor": "red"}):
        before = dict(matplotlib.rcParams)
        own = save(drawn("paths"), tmp_path / "own")
        assert dict(matplotlib.rcParams) == before
    assert [path.read_bytes() for path in own] == [path.read_bytes() for path in usual]


def test_the_command_line_starts_without_matplotlib():
    program = "import sys; from holdfast import cli; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr


# ---- what they show ----


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_off_and_no_legend_lies_on_data(drawn, name):
    figure = drawn(name)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    whole, renderer = figure.bbox.padded(1), canvas.get_renderer()
    for legend in figure.legends:
        box = legend.get_window_extent(renderer)
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
        assert not any(box.overlaps(axes.get_window_extent(renderer)) for axes in figure.axes)
    for axes in figure.axes:
        box = axes.get_tightbbox(renderer)
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
        below = axes.get_subplotspec().is_last_row()
        assert not below or axes.get_xlabel()
        left = axes.get_subplotspec().is_first_col()
        assert not left or axes.get_ylabel()


def test_titles_say_what_was_computed(values):
    same = plane.Twins(**vars(values["disagreement"].linear) | {"holds": np.array([True, True])})
    shown = plane.Disagreement(**vars(values["disagreement"]) | {"linear": same})
    titles = [axes.get_title(loc="left") for axes in disagreement(shown).axes]
    assert titles == ["Deep: same cost, different fates", "Linear: same cost, the same fate"]


def test_every_method_is_in_the_legend_with_a_look_of_its_own(methods):
    figure = cost_against_invalidation(methods)
    assert [name for name in METHODS if name not in labels(figure)] == []
    looks = [
        (handle.get_marker(), handle.get_markeredgecolor(), handle.get_markerfacecolor(), handle.get_fillstyle())
        for handle in figure.legends[0].legend_handles[: len(METHODS)]
    ]
    assert len(set(looks)) == len(METHODS)
    shapes = {label.split("+")[0]: look[:2] for label, look in zip(METHODS, looks, strict=True)}
    assert len({shape for shape, _ in shapes.values()}) == len({colour for _, colour in shapes.values()}) == len(shapes)


def test_a_method_looks_the_same_whatever_stands_beside_it(methods):
    alone = _method_looks(["pgd+sns", "margin"])
    among = _method_looks(METHODS)
    assert alone == {name: among[name] for name in alone}


def test_each_dataset_has_a_panel_and_each_sns_an_arrow(methods):
    figure = cost_against_invalidation(methods)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["german", "heloc"]
    for axes in figure.axes:
        arrows = [text for text in axes.texts if text.arrow_patch is not None]
        assert len(arrows) == sum(name.endswith("+sns") for name in METHODS)


def test_a_whisker_is_the_wider_of_networks_and_interval():
    rows = [row("german", "pgd", rate, 1.0, base_seed=seed) for seed, rate in enumerate((0.2, 0.4))]
    mark = _marks(pd.DataFrame(rows))["pgd"]
    assert (mark.rate, mark.low, mark.high) == pytest.approx((0.3, 0.2, 0.4))
    wide = [own | {"low": 0.1, "high": 0.6} for own in rows]
    mark = _marks(pd.DataFrame(wide))["pgd"]
    assert (mark.rate, mark.low, mark.high) == pytest.approx((0.3, 0.1, 0.6))


def test_a_method_that_found_little_says_so_and_one_that_found_nothing_is_no_mark(methods):
    few = row("german", "latent", 0.5, 1.0, found=17)
    none = row("german", "prototype-alibi", np.nan, np.nan, found=0, low=np.nan, high=np.nan)
    figure = cost_against_invalidation(pd.concat([methods, pd.DataFrame([few, none])]))
    assert "17 %" in [text.get_text() for text in figure.axes[0].texts]
    assert {"latent", "prototype-alibi"} <= set(labels(figure))
    assert "prototype-alibi" not in _marks(pd.DataFrame([few, none]))
    both = _marks(pd.DataFrame([few, none | {"method": "latent", "base_seed": 1}]))["latent"]
    assert (both.found, both.rate) == pytest.approx((0.085, 0.5))


def test_sensitivity_has_a_line_a_dataset_through_every_value(settings):
    figure = sensitivity(settings)
    assert labels(figure) == [*PAPER_DATASETS, "the paper's value"]
    radius, points, steps = figure.axes[3:]
    assert radius.get_lines()[0].get_xdata().tolist() == [0, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert points.get_lines()[1].get_xdata().tolist() == [1, 2, 5, 10, 20]
    assert steps.get_lines()[1].get_xdata().tolist() == [10, 50, 100, 200, 400]
    assert radius.get_lines()[0].get_ydata()[0] == settings["cost_l2"].iloc[0]


@pytest.mark.parametrize("draw", [sensitivity, cost_against_invalidation])
def test_rows_that_do_not_belong_together_are_refused(draw, settings):
    with pytest.raises(ValueError, match="no rows with the change 'seeds'; there are leave-one-out"):
        draw(settings.assign(change="leave-one-out"))
    with pytest.raises(ValueError, match="no rows with the change 'seeds'; there are none at all"):
        draw(settings.iloc[:0])
    with pytest.raises(ValueError, match=r"rows of different space do not compare \(free, schema\)"):
        draw(pd.concat([settings, settings.assign(space="schema")]))
