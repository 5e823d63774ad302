"""The command line: its output, its files and its exit codes.

Most commands run in this process (`invoke`). Those that need a process of their own (`holdfast`, `interrupt`) are about
what only a real one has: its entry point, signals, an encoding, and a reader of its output who may go away.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import small_demo
from commands import HANG, holdfast, interrupt, interrupted, invoke, paused
from holdfast import Recipe, __version__, seeds, train
from holdfast.datasets import DATASETS, german
from holdfast.families.changes import leave_one_out

# ---- a process of its own ----


def test_a_real_process_says_its_version(tmp_path):
    done = holdfast("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"holdfast {__version__}\n", "")


def test_a_cut_german_file_is_an_error_without_a_traceback(tmp_path):
    path = tmp_path / german.CARD.file
    path.parent.mkdir()
    path.write_bytes(german.CARD.packaged.read_bytes()[:1000])
    done = invoke("demo", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert done.returncode == 1
    message = " ".join(done.stderr.split())
    assert message.startswith(f"holdfast: dataset 'german': {path} (1000 bytes) is not the expected file")
    assert message.endswith("remove it to use the copy that ships with holdfast")
    assert "Traceback" not in done.stderr


DEMO_FILES = ["counterfactuals.csv", "letter.html", "report.html", "results.json"]
DEMO_ROWS = (8, 10)  # of results: two more where advice is promised
TINY_DEMO = ("demo", "--rows", 6, "--members", 1, "--workers", 1, "--out")


@pytest.fixture
def _small_networks(monkeypatch):
    small_demo.shrink(monkeypatch.setattr)


@pytest.mark.slow
def test_a_terminal_that_knows_only_ascii_shows_all_it_can_and_loses_no_file(tmp_path):
    done = holdfast(*TINY_DEMO, "out", cwd=tmp_path, program=[small_demo.__file__], PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert " ? " in done.stdout  # where an arrow stands elsewhere
    assert done.stdout.isascii()
    assert len(json.loads((tmp_path / "out" / "results.json").read_text())) in DEMO_ROWS


@pytest.mark.slow
def test_a_reader_who_goes_away_costs_no_file(tmp_path):
    command = [sys.executable, small_demo.__file__, *map(str, TINY_DEMO), "out"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        running.stdout.close()  # as `| head -0` does
        running.wait(HANG)
    assert len(json.loads((tmp_path / "out" / "results.json").read_text())) in DEMO_ROWS


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("by", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow), (signal.SIGTERM, 143)]
)
def test_an_interrupt_ends_the_command_and_writes_nothing(by, code, tmp_path):
    """While two worker processes are training."""
    words = ("demo", "--rows", 2, "--members", 2, "--workers", 2, "--out", "out")
    done = interrupt(*words, at="holdfast.families.training:_train_chunk", by=by, cwd=tmp_path)
    assert done.returncode == code
    assert done.stderr.strip().endswith("holdfast: interrupted; nothing was written")
    assert list(tmp_path.iterdir()) == []  # the folder is gone again


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.usefixtures("_small_networks")
def test_a_second_command_on_the_same_folder_is_told(tmp_path):
    words = ("demo", "--rows", 2, "--members", 2, "--workers", 1, "--out", "out")
    with paused(*words, at="holdfast.demo:train", cwd=tmp_path):
        second = invoke(*words, cwd=tmp_path)
        assert second.returncode == 1
        told = "another command is writing to --out out; wait until it has ended, or name another folder"
        assert told in " ".join(second.stderr.split())
    assert invoke(*words, cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == DEMO_FILES


# ---- in this process ----


def test_help_names_every_command_and_its_options(tmp_path):
    usage = invoke("--help", cwd=tmp_path)
    assert usage.returncode == 0
    assert "still hold after the model is retrained" in usage.stdout
    for command in ("demo", "paper", "methods", "audit", "plan", "promise", "datasets", "families"):
        assert f" {command} " in usage.stdout
    assert "--members" in invoke("demo", "--help", cwd=tmp_path).stdout


@pytest.mark.usefixtures("_small_networks")
def test_demo_shows_and_writes(tmp_path):
    done = invoke(*TINY_DEMO, "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = " ".join(done.stdout.split())
    assert re.search(r"a network trained on 700 applicants is right for \d+% of 6 others", shown)
    for word in ("min-l1+sns", "pgd+sns", "leave-one-out", "95 % interval", "was turned down", "of 2 audit models"):
        assert word in shown
    assert "…" not in done.stdout  # nothing is cut off on 80 columns
    rows = json.loads((tmp_path / "results" / "results.json").read_text())
    assert len(rows) in DEMO_ROWS
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == DEMO_FILES
    assert [path.name for path in tmp_path.iterdir()] == ["results"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo", "--rows", -3), "Invalid value for '--rows': got -3; choose a whole number from 1 to 200"),
        (("demo", "--rows", "many"), "Invalid value for '--rows': Input should be a valid integer"),
        (("demo", "--members", 0), "got 0; choose a whole number from 1 to 700"),
        (("explane",), "No such command 'explane'"),
    ],
)
def test_a_command_that_is_not_understood_exits_with_2(words, message, tmp_path):
    done = invoke(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_out_that_is_a_file_is_an_error_before_the_work(tmp_path):
    (tmp_path / "taken").write_text("mine")
    done = invoke("demo", "--out", "taken", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "holdfast: --out taken is a file; name a folder\n")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write to")
def test_an_out_that_cannot_be_written_is_an_error_before_the_work(tmp_path):
    done = invoke("demo", "--out", "/proc/self", cwd=tmp_path)
    assert done.returncode == 1
    assert "--out /proc/self cannot be written to" in done.stderr
    assert done.stdout == ""


def test_datasets_lists_all_six_with_what_is_here(tmp_path):
    done = invoke("datasets", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert done.returncode == 0
    for name, card in DATASETS.items():
        line = next(line for line in done.stdout.splitlines() if line.startswith(name))
        assert f"{card.rows:,} rows, {card.features} features" in line
        assert line.endswith("here" if name == "german" else "missing")
        assert card.licence in done.stdout
    assert "holdfast datasets fetch ctg" in done.stdout
    assert "fetch heloc" not in done.stdout


def test_a_wrong_file_is_listed_as_wrong(tmp_path):
    path = tmp_path / DATASETS["heloc"].file
    path.parent.mkdir()
    path.write_text("not it")
    done = invoke("datasets", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert next(line for line in done.stdout.splitlines() if line.startswith("heloc")).endswith("wrong checksum")


def test_fetch_says_what_it_cannot_do(tmp_path):
    unknown = invoke("datasets", "fetch", "nowhere", cwd=tmp_path)
    assert unknown.returncode == 1
    assert "no dataset 'nowhere'; there are german, seizure" in unknown.stderr
    closed = invoke("datasets", "fetch", "heloc", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert closed.returncode == 1
    assert "no redistribution" in closed.stderr
    shipped = invoke("datasets", "fetch", "german", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert shipped.returncode == 0
    assert "german.data" in shipped.stdout


def test_families_are_listed_shown_and_removed(tmp_path):
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long()
    train(
        x, y, Recipe((8,), epochs=2), [*seeds(3), *leave_one_out(2, 50)], store=tmp_path / "families", held_out=(x, y)
    )
    (name,) = (path.name for path in (tmp_path / "families").iterdir())
    place = {"HOLDFAST_FAMILIES": str(tmp_path / "families")}
    listed = invoke("families", "list", cwd=tmp_path, **place)
    assert listed.stdout.startswith(name)
    assert "3 seeds, 2 leave-one-out" in listed.stdout
    assert listed.stdout.splitlines()[-1].startswith("1 family, ")
    shown = invoke("families", "show", name[:5], "--store", tmp_path / "families", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for word in (name, "Family(4-8-2: 3 seeds, 2 leave-one-out)", "epochs=2", "did not learn"):
        assert word in shown.stdout
    unknown = invoke("families", "show", "zzz", cwd=tmp_path, **place)
    assert (unknown.returncode, "no family begins with 'zzz'" in unknown.stderr) == (1, True)
    asked = invoke("families", "remove", name, cwd=tmp_path, **place)  # nobody there to say yes
    assert asked.returncode != 0
    assert (tmp_path / "families" / name / "manifest.json").exists()
    assert invoke("families", "remove", name, "--yes", cwd=tmp_path, **place).returncode == 0
    assert "no families" in invoke("families", "list", cwd=tmp_path, **place).stdout


def test_one_damaged_family_does_not_hide_the_others(tmp_path):
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    for members in (2, 3, 4):
        train(x, (x[:, 0] > 0).long(), Recipe((8,), epochs=2), seeds(members), store=tmp_path)
    first = sorted(tmp_path.iterdir())[0]
    (first / "manifest.json").write_bytes(b"\x00")
    listed = invoke("families", "list", "--store", tmp_path, cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    lines = listed.stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith(first.name)
    assert "damaged" in lines[0]
    assert all("seeds" in line for line in lines[1:3])


def test_removing_a_link_says_and_does_no_more(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "manifest.json").write_text("{}")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "linked").symlink_to(tmp_path / "outside")
    done = invoke("families", "remove", "linked", "--yes", "--store", tmp_path / "store", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "outside" / "manifest.json").read_text() == "{}"
    assert not (tmp_path / "store" / "linked").is_symlink()


def test_methods_are_listed_with_their_source_and_defaults(tmp_path):
    listed = invoke("methods", cwd=tmp_path)
    assert listed.returncode == 0
    for words in ("min-l1", "Chen et al. 2018", "MinCost(norm=2", "+sns", "Black et al. 2022", "Prototype(", "Latent("):
        assert words in listed.stdout


# ---- the paper ----

SMALL = ("paper", "--datasets", "german", "--rows", 3, "--members", 2, "--workers", 1, "--no-figures")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Families that are trained once."""
    return {"HOLDFAST_FAMILIES": str(tmp_path_factory.mktemp("families"))}


def test_paper_shows_the_tables_and_computes_nothing_twice(tmp_path, store):
    first = invoke(*SMALL, "--methods", "pgd,pgd+sns", cwd=tmp_path, **store)
    assert first.returncode == 0, first.stderr
    for words in (
        "settings text: the first 3 test rows of a dataset, 1 deployed network retrained 2 times with new seeds",
        "Table 1: invalidation (IV), cost, and R²",
        "Settings and success",
        "Invalidation, ± over retrained networks",
        "Costs, ± over counterfactuals",
        "Cells within tolerance",
        "* out of tolerance",
        "holdfast-paper/tables-text.md",
    ):
        assert words in " ".join(first.stdout.split())
    assert max(map(len, first.stdout.splitlines())) <= 120
    folder = tmp_path / "holdfast-paper"
    assert sorted(path.name for path in folder.iterdir()) == ["tables-text.md", "text.jsonl"]
    rows, tables = (folder / "text.jsonl").read_bytes(), (folder / "tables-text.md").read_text()
    assert "of a dataset, 1 deployed network retrained 2 times" in tables
    assert tables.count("### ") == 5

    (folder / "tables-text.md").unlink()
    again = invoke(*SMALL, "--methods", "pgd", "--methods", "pgd+sns", cwd=tmp_path, **store)
    assert again.stdout == first.stdout
    assert (folder / "text.jsonl").read_bytes() == rows  # seconds and all
    assert (folder / "tables-text.md").read_text() == tables

    (folder / "sensitivity.jsonl").write_text("my notes\n")  # an error at once, though it would be needed last
    drawn = [word for word in SMALL if word != "--no-figures"]
    refused = invoke(*drawn, "--methods", "min-l1", cwd=tmp_path, **store)
    assert (refused.returncode, "sensitivity.jsonl is not a valid study result" in refused.stderr) == (1, True)
    assert (folder / "text.jsonl").read_bytes() == rows

    other = invoke(*SMALL, "--methods", "pgd", "--rows", 4, cwd=tmp_path, **store)
    assert (other.returncode, "text.jsonl has results of another size" in other.stderr) == (1, True)
    assert (folder / "text.jsonl").read_bytes() == rows


@pytest.mark.slow
def test_paper_reads_the_settings_both_ways(tmp_path, store):
    done = invoke(*SMALL, "--methods", "pgd", "--settings", "both", "--bases", 2, "--out", "o", cwd=tmp_path, **store)
    assert done.returncode == 0, done.stderr
    names = ["release.jsonl", "tables-release.md", "tables-text.md", "text.jsonl"]
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == names
    assert "over bases" in done.stdout
    for reading in ("text", "release"):
        assert f"settings {reading}, within tolerance: " in " ".join(done.stdout.split())
        assert f"settings {reading}\n" in (tmp_path / "o" / f"tables-{reading}.md").read_text()


def test_paper_goes_on_where_it_was_interrupted(tmp_path, store):
    words = (*SMALL, "--methods", "pgd,pgd+sns,margin", "--out", "my results")
    stopped = interrupted(*words, at="holdfast.paper.runner:audit", after=2, cwd=tmp_path, **store)  # two a cell
    assert stopped.returncode == 130
    file = tmp_path / "my results" / "text.jsonl"
    before = file.read_bytes()
    assert before.count(b"\n") == 1
    assert before.endswith(b"\n")
    message = " ".join(stopped.stderr.split())
    assert "interrupted; finished work is kept in my results; to resume, run the same command again: " in message
    assert message.endswith("--no-figures --methods pgd,pgd+sns,margin --out 'my results'")
    assert not (tmp_path / "my results" / "tables-text.md").exists()
    done = invoke(*words, cwd=tmp_path, **store)
    assert done.returncode == 0, done.stderr
    assert file.read_bytes().startswith(before)
    assert file.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--datasets", "german,nowhere"), 2, "there is no dataset 'nowhere'; choose from german, seizure, ctg"),
        (("--methods", "pgd", "--methods", "dice"), 2, "there is no method 'dice'; choose from min-l1-art, min-l1-art"),
        (("--datasets", ""), 2, "there is no dataset ''; choose from german"),
        (("--settings", "release", "--methods", "pgd+confidence"), 1, "no dataset or method 'pgd+confidence'"),
        (("--settings", "mine"), 2, "Invalid value for '--settings'"),
        (("--bases", 6), 2, "got 6; choose a whole number from 1 to 5"),
        (("--members", 0), 2, "got 0; choose a whole number from 1 to 700"),
        (("--device", "tpu"), 2, "Invalid value for '--device'"),
        (("--quick", "--datasets", "ctg"), 1, "study 'paper-quick' has no dataset or method 'ctg'"),
        (("--quick", "--settings", "release"), 1, "the quick study has the settings text, not release"),
        (("--datasets", "german,ctg"), 1, "dataset 'ctg': no file at"),
    ],
    ids=str,
)
def test_paper_says_what_it_cannot_do_before_any_work(words, code, message, tmp_path):
    done = invoke("paper", *words, cwd=tmp_path, HOLDFAST_DATA=str(tmp_path), HOLDFAST_FAMILIES=str(tmp_path / "f"))
    assert done.returncode == code
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.jsonl"))
    assert not (tmp_path / "f").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_paper_on_a_gpu_that_is_not_there(tmp_path):
    done = invoke("paper", "--device", "cuda", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "holdfast: torch finds no CUDA device here; choose the device cpu\n")
    assert list(tmp_path.iterdir()) == []
