"""What the documents say can be done: their Python blocks run as pasted, and the commands they name are real."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import skops.io
from pages import FENCE, PAGES, ROOT, blocks, commands, plain, sentences, shown
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from torch import Tensor

import holdfast as hf
import small_demo
from commands import HANG, invoke
from holdfast.datasets.prepared import Prepared, prepare
from holdfast.families.perceptron import Network

# Pages whose blocks take hardly longer than to start a process. Those of the others are slow tests.
FAST = {"docs/howto/schema.md"}

# Commands of holdfast that the documents name. Those that are small run as they stand; the files are those of `files`.
AS_NAMED = (
    "holdfast methods",
    "holdfast datasets",
    "holdfast families list",
    "holdfast init train.csv --label risk --out risk.toml",
    "holdfast plan --width 0.05 --rate 0.02 --spread 0.01",
    "holdfast audit --data german --counterfactuals points.csv --retrained family",
    "holdfast audit --data german --people asked.csv --index person --counterfactuals dice.json --retrained family",
    "holdfast audit --data train.csv --schema schema.toml --people asked.csv --counterfactuals points.csv "
    "--model now.safetensors --retrained march.safetensors --retrained june.safetensors",
)
# The others run at a size for tests: there may be no GPU, and only German Credit ships with the package.
# {family} is the name of one in the store.
PAPER = "--datasets german --methods pgd --rows 3 --members 2 --no-figures --workers 1"
SMALL = {
    "holdfast init": "holdfast init --help",
    "holdfast explain": "holdfast explain --help",
    "holdfast letter": "holdfast letter --help",
    "holdfast demo": "holdfast demo --rows 12 --members 2 --workers 1",
    "holdfast paper": f"holdfast paper {PAPER}",
    "holdfast paper --quick": f"holdfast paper --quick {PAPER}",
    "holdfast paper --settings release --datasets heloc,ctg": f"holdfast paper --settings release {PAPER}",
    "holdfast paper --device cuda --settings both": f"holdfast paper --device cpu --settings both {PAPER}",
    "holdfast promise --data heloc --train --rate 0.05 --rows 100": (
        "holdfast promise --data german --train --rate 0.9 --rows 3 --rehearsal 2 --selection 4 --audit 2 "
        "--hidden 8 --epochs 2"
    ),
    "holdfast promise": "holdfast promise --help",
    "holdfast families show 3f9a": "holdfast families show {family}",
    "holdfast families remove 3f9a": "holdfast families remove {family} --yes",
    "holdfast audit": "holdfast audit --help",
    "holdfast audit --model": "holdfast audit --help",
    "holdfast audit --data train.csv --label risk --counterfactuals points.csv --train --hidden 64,32 "
    "--retrain seeds:50": (
        "holdfast audit --data train.csv --label risk --counterfactuals points.csv --train --hidden 8 --epochs 2 "
        "--retrain seeds:2"
    ),
    "holdfast audit --data train.csv --schema schema.toml --counterfactuals points.csv --model model.skops "
    "--retrain bootstrap:50": (
        "holdfast audit --data train.csv --schema schema.toml --counterfactuals points.csv --model model.skops "
        "--retrain bootstrap:3"
    ),
}
# The commands of docs/start/command_line.md and of the front page. They run in the folder that the blocks of that page
# write, after the commands whose files they need.
INIT = "holdfast init train.csv --label risk"
EXPLAIN = (
    "holdfast explain --data train.csv --schema edited.toml --people people.csv --model model.skops --want good "
    "--retrain bootstrap:24 --hold 0.9 --out advice"
)
AUDIT = (
    "holdfast audit --data train.csv --schema edited.toml --people people.csv --model model.skops --want good "
    "--retrain bootstrap:24 --counterfactuals advice"
)
PROMISE = EXPLAIN.replace("holdfast explain", "holdfast promise").replace(
    "--hold 0.9 --out advice", "--rate 0.2 --rows 4 --out promised"
)
FROM_MODELS = EXPLAIN.replace("--retrain bootstrap:24 --hold 0.9", "--retrained months --hold 0.75")
LETTER = "holdfast letter advice --person 805 --language de --fields bank.toml --out letter.html"
MORE = (("edited.toml", "schema.toml"), ("bootstrap:24", "bootstrap:96"))
FRONT_EXPLAIN, FRONT_AUDIT = (line.replace(*MORE[0]).replace(*MORE[1]) for line in (EXPLAIN, AUDIT))
NEEDS = {
    INIT: (),
    EXPLAIN: (),
    AUDIT: (EXPLAIN,),
    PROMISE: (),
    FROM_MODELS: (),
    LETTER: (EXPLAIN,),
    FRONT_EXPLAIN: (INIT,),
    FRONT_AUDIT: (INIT, FRONT_EXPLAIN),
}
COMMANDS = {line: line for line in (*AS_NAMED, *NEEDS)} | SMALL

WITH_BLOCKS = [page for page, text in PAGES.items() if blocks(text) and page != "README.md"]
NAMED = {command for text in PAGES.values() for command in commands(text)}
OTHER = sorted({command.line for command in NAMED if command.program != "holdfast"})


# ---- Python blocks ----


def run_as_pasted(page: str, folder: Path) -> str:
    """What the blocks of a page print."""
    return run_code(blocks(PAGES[page]), folder)


def run_code(code: str, folder: Path) -> str:
    """What it prints in a fresh process and an empty folder, with no dataset but the shipped one."""
    script, empty = folder / "page.py", folder / "empty"
    script.write_text(code, encoding="utf-8")
    empty.mkdir()
    here = {"HOLDFAST_DATA": str(folder / "no-data"), "HOLDFAST_FAMILIES": str(folder / "families")}
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True,
        cwd=empty,
        timeout=HANG,
        env=os.environ | here | {"PYTHONUTF8": "1"},
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_shown(page: str, printed: str) -> None:
    for output in shown(PAGES[page]):
        missing = [sentence for sentence in sentences(output) if sentence not in plain(printed)]
        assert not missing, f"{page} shows {missing}, but its blocks print\n{printed}"


@pytest.mark.slow
def test_the_example_of_the_front_page_runs_as_pasted(tmp_path):
    check_shown("README.md", run_as_pasted("README.md", tmp_path))
    assert (tmp_path / "empty" / "report.html").is_file()


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=() if page in FAST else pytest.mark.slow) for page in WITH_BLOCKS]
)
def test_the_blocks_of_a_page_run_as_pasted_and_print_what_it_shows(page, tmp_path):
    check_shown(page, run_as_pasted(page, tmp_path))


def test_no_block_is_left_out():
    """A block is Python, which runs, or text or a console session: nothing that looks like code and is not run."""
    kinds = {(page, language) for page, text in PAGES.items() for language, _ in FENCE.findall(text)}
    assert {language for _, language in kinds} <= {"python", "text", "sh"}, kinds
    outputs = [code for text in PAGES.values() for language, code in FENCE.findall(text) if language == "text"]
    assert not [code for code in outputs if re.search(r"^(import|from) \w|^def |^class ", code, flags=re.MULTILINE)]


# ---- commands of holdfast ----


@pytest.fixture(scope="module")
def german() -> Prepared:
    return prepare("german")


@pytest.fixture(scope="module")
def family(german) -> hf.Family:
    """The deployed model and ten retrained ones."""
    x, y = german.encoding.encode(german.train), german.encoding.labels(german.train)
    members = [hf.Retraining(), *hf.seeds(5), *hf.changes.leave_one_out(5, rows=len(x))]
    return hf.train(x, y, hf.Recipe((32,), epochs=20), members)


@pytest.fixture(scope="module")
def advice(german, family) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forty people and a counterfactual for each: cheap ones, of which retrained models invalidate many.

    For five of them it is one that the schema tells nobody to move to, as the page on audits shows.
    """
    fixed = {
        ("savings", "below 100 DM"): "unknown or none",
        ("savings", "500 to 1000 DM"): "unknown or none",
        ("checking_account", "overdrawn"): "none",
        ("property", "car or other"): "unknown or none",
        ("checking_account", "below 200 DM"): "none",
    }
    left, bad = german.table.drop(index=german.train.index), {}
    for (feature, before), after in fixed.items():
        person = left.index[(left[feature] == before) & ~left.index.isin(bad)][0]
        bad[person] = (feature, after)
    people = pd.concat([left.loc[list(bad)], left.drop(index=list(bad))[:35]])
    x, space = german.encoding.encode(people), german.encoding.space
    found = hf.MinCost(norm=1)(family[0], x, hf.other_class(family[0], x), space)
    points = found.to_frame(german.encoding, people).assign(risk=people["risk"])
    for person, (feature, after) in bad.items():
        points.loc[person, feature] = after
    return people, points


@pytest.fixture(scope="module")
def files(tmp_path_factory, german, family, advice) -> Path:
    """A folder with the files that the documents speak of, by their names."""
    folder = tmp_path_factory.mktemp("files")
    people, points = advice
    german.table.to_csv(folder / "train.csv")
    german.encoding.schema.save(folder / "schema.toml")
    people.to_csv(folder / "asked.csv")
    points.to_csv(folder / "points.csv")
    columns = [*german.encoding.schema.names, "risk"]
    answers = {
        "feature_names_including_target": columns,
        "test_data": [[row] for row in people[columns].to_numpy().tolist()],
        "cfs_list": [[row] for row in points[columns].to_numpy().tolist()],
        "data_interface": {"outcome_name": "risk"},
    }
    (folder / "dice.json").write_text(json.dumps(answers), encoding="utf-8")
    hf.save_family(family, folder / "family")
    x, y = german.encoding.encode(german.table), german.encoding.labels(german.table)
    own = LogisticRegression(max_iter=1000).fit(pd.DataFrame(x.numpy(), columns=list(german.encoding.columns)), y)
    skops.io.dump(own, folder / "model.skops")
    for place, name in enumerate(("now", "march", "june")):
        save_file(as_state(family[place]), folder / f"{name}.safetensors")
    return folder


@pytest.fixture(scope="module")
def first_files(tmp_path_factory) -> Path:
    """The folder that docs/start/command_line.md writes for its commands, with the fields of docs/howto/letter.md and
    the models of docs/howto/retrained.md."""
    pages = ("start/command_line", "howto/letter", "howto/retrained")
    text = "\n".join(PAGES[f"docs/{page}.md"] for page in pages)
    written = ("to_csv", '"bank.toml"', "skops.io.dump")
    parts = [code for kind, code in FENCE.findall(text) if kind == "python" and any(one in code for one in written)]
    folder = tmp_path_factory.mktemp("first")
    run_code("\n".join(parts), folder)
    return folder / "empty"


def as_state(network: Network) -> dict[str, Tensor]:
    """Its layers as the state_dict() of a torch module names them."""
    layers = enumerate(zip(network.weights, network.biases, strict=True))
    named = {f"{place}.{part}": one for place, (w, b) in layers for part, one in {"weight": w.T, "bias": b}.items()}
    return {name: tensor.contiguous() for name, tensor in named.items()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A store for what the commands train, so that they train it once."""
    return tmp_path_factory.mktemp("trained")


@pytest.fixture(scope="module")
def ran(first_files, trained, tmp_path_factory) -> Callable[[tuple[str, ...]], tuple[Path, str]]:
    """``ran(lines)`` is the folder after these commands and what the last one printed; each is run once."""

    @functools.cache
    def after(lines: tuple[str, ...]) -> tuple[Path, str]:
        before = after(lines[:-1])[0] if lines[1:] else first_files
        folder = shutil.copytree(before, tmp_path_factory.mktemp("ran") / "here")
        return folder, run_command(lines[-1].replace("bootstrap:96", "bootstrap:6"), folder, trained)

    return after


@pytest.fixture
def store(german, tmp_path) -> Path:
    """A store with one family in it."""
    x, y = german.encoding.encode(german.train), german.encoding.labels(german.train)
    hf.train(x, y, hf.Recipe((4,), epochs=1), hf.seeds(2), store=tmp_path)
    return tmp_path


def test_every_command_of_holdfast_that_a_document_names_is_known_here():
    named = {command.line for command in NAMED if command.program == "holdfast"}
    assert not named - set(COMMANDS), "add it to AS_NAMED, or to SMALL with a size for tests"
    assert not set(COMMANDS) - named, "no document names it any more"


@pytest.mark.parametrize("line", [line for line in COMMANDS if line not in NEEDS])
def test_a_command_of_holdfast_that_a_document_names_runs_and_prints_what_it_shows(
    line, files, trained, store, advice, monkeypatch
):
    small_demo.shrink(monkeypatch.setattr)
    people, _ = advice
    people.rename_axis("person" if "--index person" in line else None).to_csv(files / "asked.csv")
    (family,) = (folder.name for folder in store.iterdir())
    words = COMMANDS[line].replace("{family}", family)
    check_printed(line, run_command(words, files, store if words.startswith("holdfast families") else trained))


@pytest.mark.slow
@pytest.mark.parametrize("line", NEEDS)
def test_a_command_of_the_first_page_runs_after_those_before_it(line, ran):
    _, printed = ran((*NEEDS[line], line))
    check_printed(line, printed)


def run_command(line: str, folder: Path, families: Path) -> str:
    """What it prints."""
    folders = {"HOLDFAST_FAMILIES": str(families), "HOLDFAST_DATA": str(folder / "no-data")}
    done = invoke(*shlex.split(line)[1:], cwd=folder, **folders, COLUMNS="200")
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_printed(line: str, printed: str) -> None:
    outputs = [command.output for command in NAMED if command.line == line]
    # A change of one person, "credit amount: 652 → 250": a small run tells of another person.
    expected = [sentence for output in outputs for sentence in sentences(output) if "→" not in sentence]
    assert not [sentence for sentence in expected if sentence not in plain(printed)], printed


# ---- other commands ----


@pytest.mark.parametrize("line", OTHER)
def test_a_script_or_a_target_that_a_document_names_exists(line):
    """Each script is run small by the tests of bench/."""
    program, *rest = shlex.split(re.sub(r"^(\w+=\S+ )+", "", line))
    if program == "make":
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
        assert rest, "name a target"
        assert set(rest) <= targets
    elif program == "python":
        script = ROOT / rest[0]
        assert script.is_file()
        source = script.read_text(encoding="utf-8") + (ROOT / "bench" / "_side_by_side.py").read_text(encoding="utf-8")
        assert all(f'"{word}"' in source for word in rest[1:] if word.startswith("--"))
    elif program == ".venv/bin/pytest":
        assert all((ROOT / word).exists() for word in rest)
    elif program == "pip":
        assert rest[0] == "install"
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
        assert all(set(re.findall(r"\w+", word)) <= set(extras) for word in rest[1:])
    elif program == ".ci/run":
        assert os.access(ROOT / program, os.X_OK)
    else:
        pytest.fail(f"a document names '{line}', and this test does not know how to check it")
