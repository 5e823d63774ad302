"""The command line as a user meets it: a real process, its output and its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from commands import holdfast
from holdfast import DATASETS, Recipe, __version__, leave_one_out, seeds, train
from holdfast.datasets import german


def test_version_and_help(tmp_path):
    assert holdfast("--version", cwd=tmp_path).stdout == f"holdfast {__version__}\n"
    usage = holdfast("--help", cwd=tmp_path)
    assert usage.returncode == 0
    assert all(word in usage.stdout for word in ("demo", "datasets", "still hold after the model is retrained"))
    assert "--members" in holdfast("demo", "--help", cwd=tmp_path).stdout


def test_demo_shows_and_writes(tmp_path):
    done = holdfast("demo", "--rows", 12, "--members", 3, "--out", "results", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("pgd+sns", "leave-one-out", "95 % interval", "was turned down", "of 6 retrained models"):
        assert word in done.stdout
    assert "…" not in done.stdout  # nothing is cut off on 80 columns
    rows = json.loads((tmp_path / "results" / "results.json").read_text())
    assert len(rows) == 8
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["counterfactuals.csv", "results", "results.json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo", "--rows", -3), "Invalid value for '--rows': got -3; choose a whole number from 1 to 200"),
        (("demo", "--rows", "many"), "Invalid value for '--rows': Input should be a valid integer"),
        (("demo", "--members", 0), "got 0; choose a whole number from 1 to 700"),
        (("explain",), "No such command 'explain'"),
    ],
)
def test_a_command_that_is_not_understood_exits_with_2(words, message, tmp_path):
    done = holdfast(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_cut_german_file_is_told_without_a_traceback(tmp_path):
    path = tmp_path / german.CARD.file
    path.parent.mkdir()
    path.write_bytes(german.CARD.packaged.read_bytes()[:1000])
    done = holdfast("demo", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert done.returncode == 1
    message = " ".join(done.stderr.split())
    assert message.startswith(f"holdfast: dataset 'german': {path} (1000 bytes) is not the file we know")
    assert message.endswith("remove it to use the copy that ships with holdfast")
    assert "Traceback" not in done.stderr


def test_an_out_that_is_a_file_is_told_before_the_work(tmp_path):
    (tmp_path / "taken").write_text("mine")
    done = holdfast("demo", "--out", "taken", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "holdfast: --out taken is a file; name a folder\n")
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write to")
def test_an_out_that_cannot_be_written_is_told_before_the_work(tmp_path):
    done = holdfast("demo", "--out", "/proc/self", cwd=tmp_path)
    assert done.returncode == 1
    assert "--out /proc/self cannot be written to" in done.stderr
    assert done.stdout == ""


def test_a_terminal_without_arrows_or_readers_loses_nothing(tmp_path):
    words = ("demo", "--rows", 6, "--members", 2, "--out")
    plain = holdfast(*words, "plain", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert plain.returncode == 0, plain.stderr
    command = [sys.executable, "-m", "holdfast", *map(str, words), "piped"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as piped:
        piped.stdout.close()  # as `| head -0` does
        piped.wait(timeout=120)
    for folder in ("plain", "piped"):
        assert len(json.loads((tmp_path / folder / "results.json").read_text())) == 8


def test_datasets_lists_all_six_with_what_is_here(tmp_path):
    done = holdfast("datasets", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
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
    done = holdfast("datasets", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert next(line for line in done.stdout.splitlines() if line.startswith("heloc")).endswith("wrong checksum")


def test_fetch_tells_what_it_cannot_do(tmp_path):
    unknown = holdfast("datasets", "fetch", "adult", cwd=tmp_path)
    assert unknown.returncode == 1
    assert "no dataset 'adult'; there are german, seizure" in unknown.stderr
    closed = holdfast("datasets", "fetch", "heloc", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert closed.returncode == 1
    assert "no redistribution" in closed.stderr
    shipped = holdfast("datasets", "fetch", "german", cwd=tmp_path, HOLDFAST_DATA=str(tmp_path))
    assert shipped.returncode == 0
    assert "german.data" in shipped.stdout


def test_families_are_listed_shown_and_removed(tmp_path):
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long()
    train(x, y, Recipe((8,), epochs=2), [*seeds(3), *leave_one_out(2, 50)], store=tmp_path / "kept", held_out=(x, y))
    (name,) = (path.name for path in (tmp_path / "kept").iterdir())
    place = {"HOLDFAST_FAMILIES": str(tmp_path / "kept")}
    listed = holdfast("families", "list", cwd=tmp_path, **place)
    assert listed.stdout.startswith(name)
    assert "3 seeds, 2 leave-one-out" in listed.stdout
    shown = holdfast("families", "show", name[:5], "--store", tmp_path / "kept", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for word in (name, "Family(4-8-2: 3 seeds, 2 leave-one-out)", "epochs=2", "did not learn"):
        assert word in shown.stdout
    unknown = holdfast("families", "show", "zzz", cwd=tmp_path, **place)
    assert (unknown.returncode, "no family begins with 'zzz'" in unknown.stderr) == (1, True)
    asked = holdfast("families", "remove", name, cwd=tmp_path, **place)  # nobody there to say yes
    assert asked.returncode != 0
    assert (tmp_path / "kept" / name / "manifest.json").exists()
    assert holdfast("families", "remove", name, "--yes", cwd=tmp_path, **place).returncode == 0
    assert "no families" in holdfast("families", "list", cwd=tmp_path, **place).stdout


def test_methods_are_listed_with_their_source_and_defaults(tmp_path):
    listed = holdfast("methods", cwd=tmp_path)
    assert listed.returncode == 0
    for words in ("min-l1", "Chen et al. 2018", "MinCost(norm=2", "+sns", "Black et al. 2022", "Prototype(", "Latent("):
        assert words in listed.stdout


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_an_interrupt_exits_with_130_and_writes_nothing(tmp_path):
    command = [sys.executable, "-m", "holdfast", "demo", "--members", "700", "--out", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(timeout=12)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert errors.strip().endswith("holdfast: interrupted; nothing was written")
    assert list((tmp_path / "out").iterdir()) == []


# ---- the paper ----

SMALL = ("paper", "--datasets", "german", "--rows", 3, "--members", 2, "--workers", 1, "--no-figures")


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Families that were trained once."""
    return {"HOLDFAST_FAMILIES": str(tmp_path_factory.mktemp("families"))}


def test_paper_shows_the_tables_and_computes_nothing_twice(tmp_path, kept):
    first = holdfast(*SMALL, "--methods", "pgd,pgd+sns", cwd=tmp_path, **kept)
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
    again = holdfast(*SMALL, "--methods", "pgd", "--methods", "pgd+sns", cwd=tmp_path, **kept)
    assert again.stdout == first.stdout
    assert (folder / "text.jsonl").read_bytes() == rows  # seconds and all
    assert (folder / "tables-text.md").read_text() == tables

    (folder / "sensitivity.jsonl").write_text("my notes\n")  # told though it would be needed last
    drawn = [word for word in SMALL if word != "--no-figures"]
    told = holdfast(*drawn, "--methods", "min-l1", cwd=tmp_path, **kept)
    assert (told.returncode, "sensitivity.jsonl is not a valid study result" in told.stderr) == (1, True)
    assert (folder / "text.jsonl").read_bytes() == rows

    other = holdfast(*SMALL, "--methods", "pgd", "--rows", 4, cwd=tmp_path, **kept)
    assert (other.returncode, "text.jsonl has results of another size" in other.stderr) == (1, True)
    assert (folder / "text.jsonl").read_bytes() == rows


def test_paper_reads_the_settings_both_ways(tmp_path, kept):
    done = holdfast(*SMALL, "--methods", "pgd", "--settings", "both", "--bases", 2, "--out", "o", cwd=tmp_path, **kept)
    assert done.returncode == 0, done.stderr
    names = ["release.jsonl", "tables-release.md", "tables-text.md", "text.jsonl"]
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == names
    assert "over bases" in done.stdout
    for reading in ("text", "release"):
        assert f"settings {reading}, within tolerance: " in " ".join(done.stdout.split())
        assert f"settings {reading}\n" in (tmp_path / "o" / f"tables-{reading}.md").read_text()


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_paper_goes_on_where_it_was_interrupted(tmp_path, kept):
    words = (*SMALL, "--methods", "pgd,prototype-alibi,latent", "--rows", 60, "--out", "my results")
    file = tmp_path / "my results" / "text.jsonl"
    command = [sys.executable, "-m", "holdfast", *map(str, words)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | kept, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        until = time.monotonic() + 120
        while not (file.exists() and file.read_bytes().endswith(b"\n")) and time.monotonic() < until:
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    before = file.read_bytes()
    assert before.count(b"\n") in (1, 2)
    told = " ".join(errors.split())
    assert "interrupted; finished work is kept in my results; to resume, run the same command again: " in told
    assert told.endswith("--rows 60 --out 'my results'")
    assert not (tmp_path / "my results" / "tables-text.md").exists()
    done = holdfast(*words, cwd=tmp_path, **kept)
    assert done.returncode == 0, done.stderr
    assert file.read_bytes().startswith(before)
    assert file.read_bytes().count(b"\n") == 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--datasets", "german,adult"), 2, "there is no dataset 'adult'; choose from german, seizure, ctg, warfarin"),
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
    done = holdfast("paper", *words, cwd=tmp_path, HOLDFAST_DATA=str(tmp_path), HOLDFAST_FAMILIES=str(tmp_path / "f"))
    assert done.returncode == code
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.jsonl"))
    assert not (tmp_path / "f").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_paper_on_a_gpu_that_is_not_there(tmp_path):
    done = holdfast("paper", "--device", "cuda", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "holdfast: torch finds no CUDA device here; choose the device cpu\n")
    assert list(tmp_path.iterdir()) == []
