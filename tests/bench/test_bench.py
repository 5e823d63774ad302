"""Every benchmark runs, in a small size and in a process of its own, and prints its table."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch
from conftest import missing

from browsing import executable
from holdfast import datasets

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "results" / "README.md",
    *(ROOT / "docs").glob("*.md"),
]

# A script -> the title of a table that it prints.
TABLES = {
    "art_variants": "The elastic-net attack's variants",
    "audit": "An audit of drawn networks of HELOC's shape",
    "believable": "Real people as a yardstick",
    "betarce": "At equal k, whose statement holds",
    "black_box": "A model that only answers",
    "certificates": "Moving to where more is proved, in the same ball",
    "choose": "Which method for which model",
    "engine": "The compiled search beside",
    "front_door": "From a table to advice that holds",
    "helped": "Plans that hold, and where the others are lost",
    "interval_coverage": "New rows too: 95 % intervals",
    "left_out": "Invalidated by networks that miss one row",
    "many_rows": "Many rows of german",
    "matched": "At SNS's price",
    "oracle": "Cost beside the oracle",
    "paper_device": "The paper's study, means over the deployed networks",
    "paper_families": "4 networks in",
    "plans": "Three plans for everybody whom German Credit refuses",
    "promise": "Rehearsed searches beside an oracle",
    "rehearsal_variants": "Ways to ask several models at once",
    "refits": "Invalidated by retraining: boosted trees beside networks",
    "rehearsed_trees": "Rehearsed: boosted trees that agree beforehand",
    "report": "A report for many people",
    "retraining": "How memory grows",
    "schema_space": "Valid counterfactuals: german",
    "seizure": "SNS on Seizure",
    "sns_objectives": "SNS and its objectives",
    "sns_radius": "SNS after PGD(radius=10), German Credit, schema space",
    "startup": "Starting: CPU seconds, the fastest run of each",
    "theory": "Theory",
    "trees": "Inside trees, beside the optimum",
    "what_predicts": "What predicts invalidation",
}
WITH_PEERS = {"fidelity", "schema_dice"}  # these need the reference libraries
ATTACKS = (  # the quick ones, each done once
    "nan,empties,misuses,csvs,flips,versions,store,pickles,network,kills,disks,hostile,mutants,letters,folders,forks"
)
ON_LINUX = {"audit", "many_rows", "retraining", "theory"}  # these read /proc
WORDS = {
    "engine": ["--before", str(ROOT / "src")],  # beside itself: a checkout may have no history
    "paper_device": ["--device", "cpu"],
    "seizure": ["--device", "cpu"],
}
NEEDS = {"seizure": "seizure"}  # a dataset that does not ship with the package
IN_A_BROWSER = {"report"}

slow = pytest.mark.slow


def started(script: Path, *words: str | Path, folder: Path) -> CompletedProcess[str]:
    """One training process and one thread: another test may have the other core."""
    alone = {"HOLDFAST_FAMILIES": str(folder / "families"), "LOKY_MAX_CPU_COUNT": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, script, *words], capture_output=True, text=True, cwd=folder, env=os.environ | alone
    )


def scripts() -> set[str]:
    return {path.stem for path in BENCH.glob("[a-z]*.py")}


def documented() -> list[tuple[str, str]]:
    """Each benchmark's name and options in a command that a document gives."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    return sorted(set(re.findall(r"python bench/(\w+)\.py([^`\n|:;,]*)", text)))


def test_every_benchmark_is_run_by_a_test():
    assert scripts() == {*TABLES, *WITH_PEERS, "attack"}


def test_every_benchmark_that_a_document_names_exists_and_has_the_options():
    commands = documented()
    assert len(commands) > 10
    shared = (BENCH / "_side_by_side.py").read_text(encoding="utf-8")
    for name, words in commands:
        assert name in scripts(), f"there is no bench/{name}.py"
        text = shared + (BENCH / f"{name}.py").read_text(encoding="utf-8")
        for option in re.findall(r"--\w+", words):
            assert f'"{option}"' in text, f"bench/{name}.py has no option {option}"


@slow
@pytest.mark.parametrize("name", TABLES)
def test_a_benchmark_prints_its_table_and_writes_its_rows(name, tmp_path):
    if name in ON_LINUX and sys.platform != "linux":
        pytest.skip(f"bench/{name}.py reads /proc, which only Linux has")
    if name in NEEDS and datasets.card(NEEDS[name]).state() == "missing":
        missing(datasets.card(NEEDS[name]).file)
    if name in IN_A_BROWSER:
        executable()
    file = tmp_path / "rows.json"
    ran = started(BENCH / f"{name}.py", "--quick", "--json", file, *WORDS.get(name, []), folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert TABLES[name] in ran.stdout
    assert "Traceback" not in ran.stderr
    assert json.loads(file.read_text(encoding="utf-8"))


# ---- attacks ----


def test_the_page_of_guarantees_names_every_attack_and_each_guarantee_has_one(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    guaranteed, described = page.split("## What each attack does")
    attacks = import_module("attack").ATTACKS
    assert re.findall(r"^\| `(\w+)` \|", described, flags=re.MULTILINE) == list(attacks)
    named = [re.findall(r"`(\w+)`", line.split("|")[3]) for line in guaranteed.splitlines() if line.startswith("| ")][
        1:
    ]
    assert len(named) > 5
    assert all(named)
    assert {name for some in named for name in some} == set(attacks)


@slow
def test_the_quick_attacks_find_nothing(tmp_path):
    ran = started(BENCH / "attack.py", "--minutes", "0", "--only", ATTACKS, folder=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for line, name in zip(ran.stdout.splitlines(), ATTACKS.split(","), strict=True):
        assert re.fullmatch(rf"{name}: [1-9]\d* tried, 0 surprises", line)
    assert not list(tmp_path.iterdir())


@slow
def test_a_surprise_is_a_line_and_an_exit_code(tmp_path):
    copy = shutil.copytree(BENCH, tmp_path / "bench")  # the table of misuses is looked for beside this folder
    ran = started(copy / "attack.py", "--minutes", "0", "--only", "misuses", folder=tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.splitlines() == [
        "  misuses: the table of misuses: expected a file tests/misuses.py; got no file [1 times]",
        "misuses: 1 tried, 1 surprises of 1 kinds",
    ]


# ---- the paper's study: what each reading has ----


def test_the_papers_study_gives_each_reading_its_own_methods(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    study = import_module("paper_device")
    both = study.methods_of("text", study.METHODS), study.methods_of("release", study.METHODS)
    assert set(both[0]) | set(both[1]) == set(study.METHODS)
    assert "pgd+confidence" in both[0]
    assert "pgd+confidence" not in both[1]
    for settings, methods in zip(("text", "release"), both, strict=True):
        parts = study.parts(list(study.PAPER_DATASETS), methods)
        cells = [(dataset, method) for _, dataset, own in parts for method in own]
        wanted = {(dataset, method) for dataset in study.PAPER_DATASETS for method in methods}
        assert len(cells) == len(set(cells)), settings
        assert set(cells) == wanted, settings


# ---- what is not here ----


@slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
@pytest.mark.parametrize("name", ["betarce", "paper_device", "seizure"])
def test_without_a_gpu_a_benchmark_says_so_before_any_work(name, tmp_path):
    ran = started(BENCH / f"{name}.py", "--device", "cuda", folder=tmp_path)
    assert ran.returncode == 1
    assert "torch finds no CUDA device here; run with --device cpu" in ran.stderr
    assert not list(tmp_path.iterdir())


@slow
@pytest.mark.parametrize("name", sorted(WITH_PEERS))
def test_without_the_reference_libraries_a_benchmark_says_how_to_get_them(name, tmp_path):
    copy = shutil.copytree(BENCH, tmp_path / "bench")  # the environments are looked for beside this folder
    ran = started(copy / f"{name}.py", "--quick", folder=tmp_path)
    assert ran.returncode == 1
    assert "make fidelity" in ran.stderr
    assert "Traceback" not in ran.stderr


# ---- our side of the comparisons: a library that answered with our points would be as good as we are ----


@slow
def test_fidelity_finds_no_difference_to_our_own_points(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    fidelity = import_module("fidelity")
    question = fidelity.ask("german", 4)
    fidelity.write(question, tmp_path / "question.npz")
    (pair,) = (pair for pair in fidelity.PAIRS if pair.peer == "foolbox")
    answer, seconds = fidelity.ours(pair, question, 4)
    row = fidelity.compare(pair, question, {"pgd_point": answer.point.numpy(), "pgd_seconds": seconds})
    assert row["found_theirs"] == row["found_ours"] > 0
    assert row["cost_ratio"] == pytest.approx(1)
    assert row["same"] == 1
    assert (tmp_path / "question.npz").stat().st_size > 0


@slow
def test_schema_dice_finds_no_difference_to_our_own_points(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    comparison = import_module("schema_dice")
    question = comparison.ask("german", 6)
    comparison.write(question, tmp_path / "question.npz")
    answer, seconds = comparison.ours(question, 1)
    points = comparison.raw(question.encoding.decode(answer.point[answer.found]), question.encoding)
    said = {"values": points, "row": answer.found.nonzero().flatten().numpy(), "seconds": seconds, "late": 0}
    row = comparison.compare(
        question, {f"{method}_{part}": value for method in comparison.THEIRS for part, value in said.items()}, 1
    )
    assert row["found_theirs"] == row["found_ours"] == row["both"] > 0
    assert row["cost_ratio"] == pytest.approx(1)
    assert row["dearer"] == 0
    assert (tmp_path / "question.npz").stat().st_size > 0
