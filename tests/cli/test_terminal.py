"""What a terminal is sent: text is text, whatever a file, a label or an option is called."""

from __future__ import annotations

import ast
import logging
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import everything

import holdfast as package
import small_demo
from commands import invoke
from holdfast import Recipe, save_family, seeds, train
from holdfast.utils.messages import printable

ODD = "\x1b[31mred\x07\x9b2J\b\u202etxt"  # colour, bell, erase, backspace, right to left
SHOWN = r"\x1b[31mred\x07\x9b2J\x08\u202etxt"
# Text that goes through rich's own Text loses what rich drops there: bell, backspace and returns.
SHOWN_BY_RICH = r"\x1b[31mred\x9b2J\u202etxt"


def controls(text: str) -> set[str]:
    """What a terminal would obey, but new lines."""
    return set(re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("naïve → 日本語\n\tok 👍🏽", "naïve → 日本語\n\tok 👍🏽"),
        (ODD, SHOWN),
        ("a\rb\x00\x7f\u2028\u2066\udc80", r"a\x0db\x00\x7f\u2028\u2066\udc80"),
        ("[bold]x[/]", "[bold]x[/]"),
    ],
)
def test_only_what_a_terminal_would_obey_is_shown_by_its_code(text, shown):
    assert printable(text) == shown
    assert printable(shown) == shown
    assert not controls(shown)


# ---- real processes, real files ----


@pytest.fixture(scope="module")
def files(tmp_path_factory, rows):
    """A table whose labels, columns and levels are odd, and a family of networks."""
    folder = tmp_path_factory.mktemp("odd")
    table = everything()
    table = table.assign(job=table["job"].replace("baker", f"baker{ODD}[/x]")).rename(columns={"debt": f"debt{ODD}[b]"})
    table.index = [f"row {place} [/x]{ODD}" for place in range(len(table))]
    table.to_csv(folder / "table.csv", index_label="id")
    odd = [replace(change, kind=f"seeds{ODD}[/y]") for change in seeds(2)]
    save_family(train(*rows, Recipe((4,), epochs=1), odd), folder / "family")
    return folder, table


def test_an_audit_of_odd_labels_columns_and_levels_sends_no_control_character(files, tmp_path):
    folder, table = files
    points = table.head(4).drop(columns="outcome")
    points.iloc[0, 0] = -5.0
    points.to_csv(tmp_path / "points.csv", index_label="id")
    words = (
        "audit", "--data", folder / "table.csv", "--index", "id", "--label", "outcome", "--counterfactuals",
        "points.csv", "--train", "--hidden", 4, "--epochs", 1, "--retrain", "seeds:1",
        "--retrain", "leave-one-out:1", "--out", f"o[/x]{ODD}",
    )  # fmt: skip
    done = invoke("--verbose", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"o[/x]{SHOWN}/rows.csv" in done.stdout
    assert f"row 0 [/x]{SHOWN_BY_RICH}: " in done.stdout
    assert not controls(done.stdout + done.stderr)
    assert (tmp_path / f"o[/x]{ODD}" / "rows.csv").exists()
    assert ODD in (tmp_path / f"o[/x]{ODD}" / "rows.csv").read_text()  # in files, names stay what they are


def test_an_error_about_odd_names_is_one_sentence_of_plain_text(files, tmp_path):
    folder, _ = files
    words = ("audit", "--data", folder / "table.csv", "--index", "id")
    done = invoke(*words, "--counterfactuals", f"[/x]{ODD}.csv", "--label", "outcome", cwd=tmp_path)
    assert (done.returncode, f"[/x]{SHOWN}.csv" in done.stderr, controls(done.stderr)) == (1, True, set())
    points = ("--counterfactuals", folder / "table.csv")
    done = invoke(*words, *points, "--label", f"[bold]{ODD}[/]", cwd=tmp_path)
    assert (done.returncode, f"[bold]{SHOWN}[/]" in done.stderr, controls(done.stderr)) == (1, True, set())


def _with_a_damaged_manifest(family: Path, command):
    whole = (family / "manifest.json").read_text()
    (family / "manifest.json").write_text(whole.replace("seeds", f"seeds{ODD}", 1))
    done = command()
    (family / "manifest.json").write_text(whole)
    return done


def test_a_store_with_odd_names_sends_no_control_character(files, tmp_path):
    folder, _ = files
    odd = tmp_path / f"store {ODD}" / f"family {ODD}[b]"
    shutil.copytree(folder / "family", odd)
    listed = invoke("families", "list", "--store", odd.parent, cwd=tmp_path)
    assert listed.returncode == 0
    assert f"family {SHOWN_BY_RICH}[b]" in listed.stdout
    assert f"seeds{SHOWN_BY_RICH}[/y]" in listed.stdout
    said = [
        listed,
        invoke("families", "show", "family", "--store", odd.parent, cwd=tmp_path),
        invoke("families", "show", "other", "--store", odd.parent, cwd=tmp_path),
        invoke("families", "remove", "family", "--store", odd.parent, cwd=tmp_path),
        _with_a_damaged_manifest(odd, lambda: invoke("families", "list", "--store", odd.parent, cwd=tmp_path)),
        invoke("families", "remove", "family", "--yes", "--store", odd.parent, cwd=tmp_path),
        invoke("families", "list", "--store", odd.parent, cwd=tmp_path),  # that there are none
    ]
    for one in said:
        assert r"\x1b[31mred" in one.stdout + one.stderr
        assert not controls(one.stdout + one.stderr)
        assert "Traceback" not in one.stderr


WARNING_COMMAND = """
import sys, warnings
import holdfast.cli.app
from holdfast.cli import main

holdfast.cli.app.app = lambda: warnings.warn(f"column {sys.argv[1]} is constant")
main()
"""


def test_a_warning_about_an_odd_name_sends_no_control_character():
    ran = subprocess.run([sys.executable, "-c", WARNING_COMMAND, ODD], capture_output=True, text=True, check=True)
    assert f"holdfast: warning: column {SHOWN} is constant" in ran.stderr
    assert not controls(ran.stderr)


@pytest.mark.slow
def test_brackets_in_out_are_part_of_its_name(tmp_path, monkeypatch):
    small_demo.shrink(monkeypatch.setattr)
    for out in ("o[/x]", "o[v2]", "o[bold]:smile:"):
        done = invoke("demo", "--rows", 2, "--members", 1, "--workers", 1, "--out", out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"{out}/results.json\n" in done.stdout
        assert (tmp_path / out / "results.json").exists()


# ---- options that are not understood ----


@pytest.mark.parametrize(
    "words",
    [
        ("demo", "--members"), ("demo", "--rows"), ("demo", "--seed"), ("paper", "--datasets"), ("paper", "--methods"),
        ("paper", "--settings"), ("paper", "--device"), ("plan", "--width"), ("families",), ("datasets",), (),
        ("demo", "--workers", "1", "--nothing"), ("audit", "--scaling"), ("audit", "--hidden"), ("datasets", "fetch"),
        ("families", "show"),
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("value", ["[/x]", "[bold]x[/]", f"x{ODD}", "\udc80\r"], ids=ascii)
def test_a_value_that_is_not_understood_is_refused_in_plain_text(words, value, tmp_path):
    more = ("--data", "german", "--counterfactuals", "x.csv") if words[:1] == ("audit",) else ()
    done = invoke(*words, value, *more, cwd=tmp_path, HOLDFAST_FAMILIES=str(tmp_path / "none"))
    assert done.returncode == (1 if words[-1:] in (("fetch",), ("show",)) else 2)
    assert not controls(done.stdout + done.stderr)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [("paper", "--datasets"), ("paper", "--methods"), ("datasets", "fetch")], ids=" ".join
)
@pytest.mark.parametrize(("value", "shown"), [("[/x]", "'[/x]'"), ("[bold]x[/]", "'[bold]x[/]'"), (ODD, f"'{SHOWN}'")])
def test_an_unknown_name_is_shown_as_it_was_typed(words, value, shown, tmp_path):
    assert shown in invoke(*words, value, cwd=tmp_path).stderr


HUGE = "9" * 5000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("demo", "--members", 10**9), "got 1000000000; choose a whole number from 1 to 700"),
        (("promise", "--selection", 10**9), "got 1000000000; choose a whole number from 1 to 100000"),
        (("audit", "--epochs", 10**12), "got 1000000000000; choose a whole number from 1 to 1000000"),
        (("audit", "--batch", 10**12), "choose a whole number from 1 to 100000000"),
        (("audit", "--hidden", "10000000000,5"), "'10000000000' is no width; give whole numbers from 1 to 100000"),
        (("audit", "--hidden", "8,many"), "'many' is no width"),
        (("audit", "--hidden", "8,0"), "'0' is no width"),
        (("audit", "--hidden", "8,²"), "'²' is no width"),
        (("audit", "--hidden", ",".join(["4"] * 101)), "got 101 layers; give 100 or fewer"),
        (("audit", "--hidden", HUGE), "'99999999999999999999...' is no width"),
        (("demo", "--members", HUGE), "Invalid value for '--members'"),
        (("demo", "--members", "9" * 4000), "got 99999999999999999999... (4000 digits); choose a whole number"),
        (("promise", "--selection", HUGE), "Invalid value for '--selection'"),
        (("promise", "--selection", "9" * 4000), "got 99999999999999999999... (4000 digits); choose a whole number"),
        (("demo", "--workers", 100_000), "got 100000; choose a whole number from 1 to 1024"),
        (("demo", "--seed", 10**30), "(31 digits); choose a whole number from 0 to 9000000000000000000"),
        (("demo", "--seed", HUGE), "Invalid value for '--seed'"),
        (("paper", "--rows", 10**12), "choose a whole number from 1 to 100000000"),
        (("paper", "--workers", 100_000), "choose a whole number from 1 to 1024"),
    ],
    ids=lambda given: " ".join(map(str, given))[:40] if isinstance(given, tuple) else "",
)
def test_a_number_that_nobody_means_is_refused_before_the_work(words, message, tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.cli.audit.writing_to", None)  # the first step of each command
    monkeypatch.setattr("holdfast.cli.explain.writing_to", None)
    monkeypatch.setattr("holdfast.cli.demo.writing_to", None)
    monkeypatch.setattr("holdfast.cli.paper.writing_to", None)
    more = {"audit": ("--data", "german", "--counterfactuals", "x.csv"), "promise": ("--data", "german")}.get(
        words[0], ()
    )
    done = invoke(*words, *more, cwd=tmp_path)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert len(done.stderr) < 2000
    assert list(tmp_path.iterdir()) == []


# ---- no command can forget it ----


def printed(path: Path) -> list[str]:
    """Calls that write to the terminal in another way than console().print."""
    calls = [node.func for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    names = [ast.unparse(call) for call in calls]
    pattern = r"(.*\.)?(print|echo|secho|Console|get_console|print_exc|(stdout|stderr)\.write)"
    return [
        name for name in names if re.fullmatch(pattern, name) and not re.fullmatch(r"console(\(.*\))?\.print", name)
    ]


def test_every_text_goes_through_the_one_console():
    home = Path(package.__file__).parent
    found = {path.relative_to(home).as_posix(): names for path in home.rglob("*.py") if (names := printed(path))}
    assert found == {"cli/verbose.py": ["print"]}


# ---- what --verbose says ----


STEPS = (
    "tabular.reading: read .*table.csv: 60 rows",
    "tabular.reading: read points.csv: 4 rows",
    "tabular.encoding: encoded 60 rows of 7 columns as",
    "families.training: training 1 of 1 networks",
    "families.training: training 2 of 2 networks",
    "families.training: trained 2 networks on 60 rows",
    r"auditing.audit: auditing Counterfactuals\(.*\) with Family\(",
    "auditing.audit: audited 4 counterfactuals with 2 models",
    "utils.files: wrote out/rows.csv",
)


@pytest.mark.parametrize("option", ["--verbose", "-v"])
def test_verbose_logs_the_steps_to_standard_error_and_changes_no_output(option, files, tmp_path):
    folder, table = files
    table.head(4).drop(columns="outcome").to_csv(tmp_path / "points.csv", index_label="id")
    words = (
        "audit", "--data", folder / "table.csv", "--index", "id", "--label", "outcome", "--counterfactuals",
        "points.csv", "--train", "--hidden", 4, "--epochs", 1, "--retrain", "seeds:1",
        "--retrain", "leave-one-out:1", "--out", "out",
    )  # fmt: skip
    store = {"HOLDFAST_FAMILIES": str(tmp_path / "families")}  # an empty one, so that networks are trained
    loud, quiet = invoke(option, *words, cwd=tmp_path, **store), invoke(*words, cwd=tmp_path)
    assert (loud.returncode, loud.stdout, quiet.stderr) == (0, quiet.stdout, "")
    assert re.search(".*".join(STEPS), loud.stderr, re.DOTALL)
    assert all(re.match(r" +\d+\.\d\d s  [a-z_.]+: ", line) for line in loud.stderr.splitlines())
    assert not controls(loud.stderr)


def test_the_library_is_silent_by_default(tmp_path, capfd):
    logger = logging.getLogger("holdfast.some.module")
    logger.error("nobody asked")
    assert tuple(capfd.readouterr()) == ("", "")
