"""Every file of tests/fixtures/hostile is refused with its sentence, in little time and memory, and does nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

import measured_reading
from measured_reading import MOST_MEGABYTES, MOST_SECONDS, SECRET, Reading, readings

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "fixtures" / "hostile"
MANIFEST = json.loads((CORPUS / "manifest.json").read_text(encoding="utf-8"))
HONEST, HOSTILE = MANIFEST["honest"], MANIFEST["hostile"]
LIBRARIES = ("keras", "lightgbm", "onnx", "onnxruntime", "xgboost")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc, which only Linux has")


def _need_libraries() -> None:
    missing = [library for library in LIBRARIES if find_spec(library) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> dict[str, Reading]:
    """Each file read in a process of its own, which goes on to the next file if it is still there."""
    _need_libraries()
    folder = tmp_path_factory.mktemp("hostile")
    compared = {name: name for name in HONEST} | {name: entry["honest"] for name, entry in HOSTILE.items()}
    files = [(CORPUS / name, CORPUS / honest) for name, honest in compared.items()]
    found = {reading.file: reading for reading in readings(files, folder)}
    assert [path.name for path in folder.iterdir()] == [SECRET]
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_its_sentence_and_does_nothing(name, measured):
    reading = measured[name]
    assert reading.surprise() == ""
    assert reading.answer == ""
    assert f"{CORPUS / name}" in reading.says
    assert HOSTILE[name]["error"] in reading.says
    assert reading.seconds <= MOST_SECONDS
    assert reading.megabytes <= MOST_MEGABYTES


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_file_is_read_and_answers(name, measured):
    assert measured[name].surprise() == measured[name].error == ""
    assert "does not answer" not in measured[name].answer
    assert measured[name].answer


def test_the_corpus_has_many_files_of_every_format_and_nothing_else():
    counts = Counter(Path(name).suffix for name in HOSTILE)
    assert set(counts) == {".skops", ".txt", ".json", ".ubj", ".onnx", ".keras", ".safetensors"}
    assert set(counts) == {Path(name).suffix for name in HONEST}
    assert min(counts.values()) >= 5
    assert sum(counts.values()) >= 60
    assert {path.name for path in CORPUS.iterdir()} == {*HOSTILE, *HONEST, "manifest.json"}
    assert sum(path.stat().st_size for path in CORPUS.iterdir()) < 1 << 20
    for entry in HOSTILE.values():
        assert entry["honest"] in HONEST
        assert entry["tries"].endswith(".")
        assert entry["error"]


@pytest.mark.slow
def test_the_script_writes_the_same_corpus(tmp_path):
    """Bytes may differ with the versions of the libraries; what is tried, and the sentences, do not."""
    _need_libraries()
    script = [sys.executable, str(ROOT / "tools" / "write_hostile.py"), "--out", str(tmp_path / "hostile")]
    subprocess.run(script, check=True, capture_output=True)
    assert json.loads((tmp_path / "hostile" / "manifest.json").read_text(encoding="utf-8")) == MANIFEST
    assert {path.name for path in (tmp_path / "hostile").iterdir()} == {path.name for path in CORPUS.iterdir()}


# ---- the measuring itself: what it must notice ----

READERS = {
    "a crash": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "it ended the process: SIGSEGV"),
    "an end": ("import os; os._exit(0)", "it ended the process: exit code 0"),
    "work without end": ("while True: pass", "it did not end in"),
    "much memory": ("return bytearray(400 << 20)", "it took more than 300 MB"),
    "too much memory": ("return bytearray(1 << 40)", "it asked for more memory"),
    "an unclear error": ("raise KeyError('x')", "an unclear error, a KeyError"),
    "an error that names no file": ("raise ValueError('damaged')", "an unclear error, a ValueError"),
    "a file": ("open('ran', 'w').close()", "it did something outside: wrote ran, made ran"),
    "a program": ("import subprocess; subprocess.run(['true'])", "it did something outside: subprocess.Popen"),
    "a secret": ("open('secret').close()", "it did something outside: read secret"),
}


@pytest.mark.parametrize("name", READERS)
def test_the_measuring_notices(name, tmp_path, monkeypatch):
    """With a package in the place of holdfast whose reader does the thing, unless the file is honest."""
    code, surprise = READERS[name]
    package = tmp_path / "src" / "holdfast" / "models" / "files"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").write_text("")
    (package / "reading.py").write_text(f"def read_own(path):\n    if path.name != 'honest.txt':\n        {code}\n")
    monkeypatch.setattr(measured_reading, "DEADLINE", 1)
    (tmp_path / "work").mkdir()
    files = [(tmp_path / "model.txt", tmp_path / "honest.txt")]
    (reading,) = readings(files, tmp_path / "work", PYTHONPATH=str(tmp_path / "src"))
    assert reading.surprise().startswith(surprise)
