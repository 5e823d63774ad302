"""`make browser` and the tests agree on what a browser is. Without one, tests are skipped, or fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

import browsers
import browsing

ROOT = Path(__file__).parents[2]
ROOT_HERE = os.geteuid() == 0


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    """A folder that is all of PATH, and no browser named."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv(browsers.VARIABLE, raising=False)
    monkeypatch.delenv("HOLDFAST_REQUIRE_BROWSER", raising=False)
    return folder


def program(file: Path, text: str = "#!/bin/sh\n") -> str:
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def make_browser() -> CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "browsers.py", "--pause", "0"]
    return subprocess.run(command, capture_output=True, text=True)


# ---- which ----


def test_the_first_of_the_names_on_the_path_is_taken(path):
    assert browsers.find() is None
    for name in reversed(browsers.NAMES):
        own = program(path / name)
        assert browsers.find() == own


def test_a_browser_that_is_named_goes_first(path, tmp_path, monkeypatch):
    program(path / "chromium")
    own = program(tmp_path / "my browser")
    monkeypatch.setenv(browsers.VARIABLE, own)
    assert browsers.find() == browsing.executable() == own


def test_a_name_of_no_executable_is_an_error_even_where_there_is_a_browser(path, tmp_path, monkeypatch):
    program(path / "chromium")
    (tmp_path / "text").write_text("not a program")
    for wrong in (tmp_path / "text", tmp_path / "nothing"):
        monkeypatch.setenv(browsers.VARIABLE, str(wrong))
        with pytest.raises(FileNotFoundError, match=f"HOLDFAST_BROWSER must name an executable; got '{wrong}'"):
            browsing.executable()
        ran = make_browser()
        assert ran.returncode == 1
        assert "HOLDFAST_BROWSER must name an executable" in ran.stderr
        assert "Traceback" not in ran.stderr


# ---- skipped or failed ----


def test_without_a_browser_a_test_is_skipped_and_names_the_command(path):
    with pytest.raises(pytest.skip.Exception, match="run `make browser`"):
        browsing.executable()


def test_where_a_browser_is_required_its_absence_is_a_failure(path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="run `make browser`"):
        browsing.executable()


def test_what_must_pass_before_a_change_lands_has_a_browser():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    order = ["export HOLDFAST_REQUIRE_BROWSER=1", "make browser", "make test TESTS=all"]
    assert [line for line in lines if line in order] == order


# ---- installing ----

APT = """#!/bin/sh
echo "$@" >> {calls}
{then}
"""
BRINGS_IT = 'case "$1" in install) echo "#!/bin/sh" > {0}; /bin/chmod 755 {0};; esac'
as_root = pytest.mark.skipif(not ROOT_HERE, reason="this apt-get is called as root")


def test_a_machine_with_a_browser_is_left_as_it_is(path, tmp_path):
    own = program(path / "google-chrome")
    program(path / "apt-get", APT.format(calls=tmp_path / "calls", then="exit 1"))
    ran = make_browser()
    assert (ran.returncode, ran.stdout) == (0, f"browser: {own}\n")
    assert not (tmp_path / "calls").exists()


@as_root
def test_debians_chromium_is_installed_without_what_it_only_recommends(path, tmp_path):
    then = BRINGS_IT.format(path / "chromium")
    program(path / "apt-get", APT.format(calls=tmp_path / "calls", then=then))
    ran = make_browser()
    assert (ran.returncode, ran.stdout) == (0, f"browser: {path / 'chromium'}\n")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls == ["update", "install --yes --no-install-recommends chromium"]


@as_root
def test_a_mirror_that_is_out_for_a_moment_is_asked_again(path, tmp_path):
    down, then = tmp_path / "down", BRINGS_IT.format(path / "chromium")
    down.touch()
    program(path / "apt-get", APT.format(calls=tmp_path / "calls", then=f"/bin/rm {down} && exit 100\n{then}"))
    ran = make_browser()
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[0] for line in (tmp_path / "calls").read_text().splitlines()] == [
        "update",
        "update",
        "install",
    ]


@as_root
def test_a_mirror_that_stays_out_is_an_error_after_some_tries(path, tmp_path):
    program(path / "apt-get", APT.format(calls=tmp_path / "calls", then="exit 100"))
    ran = make_browser()
    assert ran.returncode == 1
    assert f"could not install chromium, {browsers.TRIES} times" in ran.stderr
    assert (tmp_path / "calls").read_text() == "update\n" * browsers.TRIES


def test_a_machine_without_apt_get_is_told_what_to_install(path):
    ran = make_browser()
    assert ran.returncode == 1
    assert re.search("no apt-get here.*install Chromium or Chrome.*chromium, chromium-browser", ran.stderr)


def test_only_root_needs_no_sudo_and_without_either_it_says_so():
    assert browsers.as_root(root=True, sudo=False) == browsers.as_root(root=True, sudo=True) == []
    assert browsers.as_root(root=False, sudo=True) == ["sudo"]
    with pytest.raises(SystemExit, match="be root or have sudo"):
        browsers.as_root(root=False, sudo=False)
