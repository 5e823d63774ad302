"""What is installed with holdfast: pinned, with hashes, listed, and under licences that allow any use."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import holdfast

ROOT = Path(__file__).parents[1]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
TORCH = (ROOT / "torch.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    """Those that hold here, without extras."""
    parsed = map(Requirement, requirements)
    return {normal(one.name) for one in parsed if one.marker is None or one.marker.evaluate({"extra": ""})}


LINES = [line for line in LOCK.replace("\\\n", "").splitlines() if not line.startswith("#")]
PINS = {normal(line.partition("==")[0]): line.split()[0].partition("==")[2] for line in [*LINES, TORCH.strip()]}
STAMP = Path(sys.prefix, ".installed")  # the Makefile's; "newest" where the versions of the lock were not asked for

# ---- the lock ----


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split("==")[0])
def test_a_line_of_the_lock_is_one_version_and_the_hashes_of_its_files(line):
    assert re.fullmatch(r"[\w.-]+==[\w.]+(\s+--hash=sha256:[0-9a-f]{64})+", line)


def test_torch_alone_stands_apart():
    assert re.fullmatch(r"torch==\d+\.\d+\.\d+\n", TORCH)  # no +cpu: other platforms have no such build
    assert "torch" not in {normal(line.partition("==")[0]) for line in LINES}


def test_no_package_is_pinned_twice():
    assert len(PINS) == len(LINES) + 1


@pytest.mark.parametrize("path", ["requirements.lock", "torch.lock", "peers.lock", *sorted((ROOT / "peers").iterdir())])
def test_a_lock_says_what_and_not_from_where(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not re.search(r"://|\s@\s|--(index|extra-index|find-links|trusted-host)", text)


def test_the_lock_has_all_that_the_project_asks_for():
    asked = names([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]])
    assert asked <= PINS.keys()
    wrong = [one for one in map(Requirement, PROJECT["dependencies"]) if PINS[normal(one.name)] not in one.specifier]
    assert wrong == []


@pytest.mark.skipif(
    not STAMP.exists() or STAMP.read_text().strip() == "newest", reason="not installed from the lock: run `make test`"
)
def test_the_environment_of_the_makefile_is_the_lock():
    installed = {name: version(name).partition("+")[0] for name in PINS}
    assert installed == PINS


def test_the_lock_is_complete():
    """pip installs it with --no-deps: what a locked package needs is locked too."""
    needed = {name: names(distribution(name).requires or []) for name in PINS}
    assert {name: lacking for name, all_of_it in needed.items() if (lacking := all_of_it - PINS.keys())} == {}


# ---- the bill of materials ----


def written(path: Path, hash_seed: str = "0") -> bytes:
    command = [sys.executable, ROOT / "tools" / "sbom.py", path]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | {"PYTHONHASHSEED": hash_seed})
    return path.read_bytes()


@pytest.fixture(scope="module")
def sbom(tmp_path_factory):
    return json.loads(written(tmp_path_factory.mktemp("sbom") / "new" / "sbom.cdx.json"))


def test_the_bill_has_the_same_bytes_each_time(tmp_path, sbom):
    again = written(tmp_path / "sbom.cdx.json", hash_seed="1")
    assert json.loads(again) == sbom
    assert not {"serialNumber", "timestamp"} & {*sbom, *sbom["metadata"]}


def test_the_bill_lists_every_package_that_a_user_installs_and_no_tool(sbom):
    expected, waiting = set(), names(PROJECT["dependencies"])
    while waiting:
        expected |= waiting
        waiting = {need for name in waiting for need in names(distribution(name).requires or [])} - expected
    listed = {component["name"]: component for component in sbom["components"]}
    assert listed.keys() == expected
    assert not {"pytest", "ruff", "mypy", "hypothesis"} & listed.keys()
    assert {name: component["version"] for name, component in listed.items()} == {
        name: version(name) for name in listed
    }
    for name, component in listed.items():
        (files,) = component.get("externalReferences", [{"hashes": []}])
        assert all(one["content"] in LOCK for one in files["hashes"])
        assert len(files["hashes"]) == sum(line.count("--hash=") for line in LINES if line.startswith(f"{name}=="))
    assert sbom["metadata"]["component"]["version"] == holdfast.__version__


def test_the_bill_says_who_needs_whom(sbom):
    uses = {line["ref"]: line["dependsOn"] for line in sbom["dependencies"]}
    known = {component["bom-ref"] for component in sbom["components"]}
    assert {need for needs in uses.values() for need in needs} == known
    assert f"pkg:pypi/numpy@{version('numpy')}" in uses[f"pkg:pypi/pandas@{version('pandas')}"]


# ---- licences ----

# SPDX identifiers, then names that packages without one use. All allow any use, closed products included.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0",
    "HPND", "ISC", "MIT", "MIT-CMU", "PSF-2.0", "Zlib",
    "Apache Software License", "BSD", "BSD License", "ISC License", "MIT License", "Python Software Foundation License",
}  # fmt: skip


def not_allowed(licences: list[dict]) -> list[str]:
    """The terms of a bill's licences that the table does not have; a package without a licence has one such term."""
    stated = [one.get("expression") or one["license"]["name"] for one in licences] or ["no licence is stated"]
    terms = [term.strip(" ()") for text in stated for term in re.split(r"\s(?:AND|OR)\s", text)]
    return [term for term in terms if term not in ALLOWED]


def test_every_package_has_a_licence_that_allows_any_use(sbom):
    refused = {component["name"]: not_allowed(component["licenses"]) for component in sbom["components"]}
    refused = {name: terms for name, terms in refused.items() if terms}
    assert refused == {}, "read these licences, then add them to ALLOWED or do without the package"


@pytest.mark.parametrize(
    ("licences", "refused"),
    [
        ([], ["no licence is stated"]),
        ([{"expression": "MIT AND (GPL-3.0-only OR Zlib)"}], ["GPL-3.0-only"]),
        ([{"license": {"name": "Dual License"}}, {"license": {"name": "BSD"}}], ["Dual License"]),
        ([{"expression": "Apache-2.0 WITH LLVM-exception AND MIT"}], []),
    ],
)
def test_a_licence_that_is_not_understood_is_refused(licences, refused):
    assert not_allowed(licences) == refused


# ---- one version ----


def test_the_citation_and_the_changelog_are_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.M) == [holdfast.__version__]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## (\S+)( \(unreleased\))?$", changelog, re.M)[0]
    release, development = re.fullmatch(r"([\d.]+?)(\.dev\d+)?", holdfast.__version__).groups()
    assert (newest[0], bool(newest[1])) == (release, bool(development))
