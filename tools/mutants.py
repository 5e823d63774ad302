"""Draw small faults in lines that some tests execute, and count how many of them these tests catch.

    python tools/mutants.py draw tests/test_misuses.py        # a list of 60, into tests/fixtures/mutants.json
    python tools/mutants.py run tests/test_misuses.py ...     # how many of the list these tests catch

Needs `coverage`, which no lock file has: pip install coverage. Each mutant is written into a copy of the package, and
the tests that execute its line run there, up to the first failure or 60 seconds of processor time. So whoever replaces
tests by fewer ones can show that the fewer protect as well. Kernels are left alone: a changed one is compiled anew,
which takes longer than its tests may.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import importlib
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "tests" / "fixtures" / "mutants.json"
KERNELS = "search/engine/"
SECONDS = 60
NUMBER, SEED = 60, 32
LIBRARIES = (
    "torch",
    "pandas",
    "pyarrow",
    "scipy.stats",
    "sklearn.linear_model",
    "joblib",
    "numba",
    "matplotlib.pyplot",
)

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
Executed = dict[tuple[str, int], list[str]]  # a file below src/holdfast and a line: the tests that execute it


@dataclass(frozen=True)
class Mutant:
    """One line of one file, as it is and as it is made."""

    file: str
    line: int
    before: str
    after: str

    def applied(self, text: str) -> str | None:
        """The file's text with the fault in it; None where the line is gone. It may have moved."""
        lines = text.splitlines(keepends=True)
        places = [number for number, line in enumerate(lines, 1) if line.rstrip("\n") == self.before]
        if not places:
            return None
        nearest = min(places, key=lambda number: abs(number - self.line))
        lines[nearest - 1] = self.after + "\n"
        return "".join(lines)


# ---- what may go wrong in a line ----


def candidates(text: str) -> Iterator[tuple[int, str]]:
    """Every fault of a file that changes one line: the line's number, and what it is then."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        for start, end, then in _faults(node):
            (first, low), (last, high) = start, end
            if first == last:
                # Columns of ast count bytes.
                line = lines[first - 1].encode()
                yield first, (line[:low] + _replaced(line[low:high].decode(), then).encode() + line[high:]).decode()


def _replaced(old: str, then: tuple[str, str]) -> str:
    return old.replace(*then, 1) if then[0] else then[1]


def _faults(node: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[str, str]]]:
    """Spans of the text, and what to replace in each: a word by another, or all of it."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            old, new = COMPARISONS[type(operator)]
            yield _end(left), _start(right), (old, new)
        case ast.BoolOp(op=operator, values=[first, second, *_]):
            words = ("and", "or") if isinstance(operator, ast.And) else ("or", "and")
            yield _end(first), _start(second), words
        case ast.UnaryOp(op=ast.Not()):
            yield _start(node), _end(node), ("not ", "")
        case ast.Constant(value=bool() as value):
            yield _start(node), _end(node), ("", str(not value))
        case ast.Constant(value=int() as value):
            yield _start(node), _end(node), ("", str(value + 1))
        case ast.If(test=test):
            yield _start(test), _end(test), ("", f"not ({ast.unparse(test)})")
        case ast.Return(value=ast.expr() as value):
            yield _start(value), _end(value), ("", "None")
        case ast.Raise(exc=ast.Call() as error, cause=None):  # the error is made, and dropped
            yield _start(node), _start(error), ("raise ", "")
        case _:
            pass


def _start(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def drawn(executed: Executed, number: int, seed: int) -> list[Mutant]:
    every: list[Mutant] = []
    for file in sorted({file for file, _ in executed}):
        text = (ROOT / "src" / "holdfast" / file).read_text(encoding="utf-8")
        lines = text.splitlines()
        mutants = {Mutant(file, line, lines[line - 1], after) for line, after in candidates(text)}
        every += sorted(
            (mutant for mutant in mutants if (file, mutant.line) in executed and mutant.before != mutant.after),
            key=lambda mutant: (mutant.line, mutant.after),
        )
    return random.Random(seed).sample(every, number)


# ---- running tests in a copy of the package ----


class Copy:
    """A copy of src/ in a folder that stays: so the kernels are compiled once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "src"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(ROOT / "src", self.folder)
        compileall.compile_dir(self.folder, quiet=2)
        for library in LIBRARIES:  # once, and not for each mutant
            importlib.import_module(library)
        os.environ["PYTHONPATH"] = str(self.folder)  # for processes that tests start
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")

    def run(self, paths: list[str], plugin: object, seconds: int | None = None) -> int | None:
        """The exit code of pytest in a process of its own; None where it took longer."""
        process = multiprocessing.get_context("fork").Process(target=self._tested, args=(paths, plugin, seconds))
        process.start()
        process.join()
        return process.exitcode if process.exitcode is not None and process.exitcode >= 0 else None

    def _tested(self, paths: list[str], plugin: object, seconds: int | None) -> None:
        sys.path.insert(0, str(self.folder))
        sys.dont_write_bytecode = True
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        os.chdir(ROOT)
        options = ["-q", "-x", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]
        with open(self.folder.parent / "pytest.log", "w") as log, redirect_stdout(log), redirect_stderr(log):
            code = pytest.main([*options, *paths], plugins=[plugin])
        sys.stdout.flush()
        os._exit(int(code))


class Watch:
    """A plugin that writes down which test executes which line. What fixtures execute belongs to no test."""

    def __init__(self, package: Path, file: Path) -> None:
        self.package, self.file = package, file

    def pytest_sessionstart(self) -> None:
        from coverage import Coverage

        self.coverage = Coverage(data_file=None, source=[str(self.package)], messages=False)
        self.coverage.start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        yield
        self.coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        found = []
        for name in filter(re.compile(r"\.py$").search, data.measured_files()):  # templates are measured too
            file = Path(name).relative_to(self.package).as_posix()
            for line, tests in data.contexts_by_lineno(name).items():
                found.append((file, line, [test for test in tests if test]))
        self.file.write_text(json.dumps(found))


class Only:
    """A plugin that leaves out all tests but some."""

    def __init__(self, tests: list[str]) -> None:
        self.tests = set(tests)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.tests]


def executed_by(copy: Copy, paths: list[str]) -> Executed:
    file = copy.folder.parent / "executed.json"
    file.unlink(missing_ok=True)
    code = copy.run(paths, Watch(copy.folder / "holdfast", file))
    if code != 0:
        raise SystemExit(f"the tests must pass before faults are made; see {file.with_name('pytest.log')}")
    lines = json.loads(file.read_text())
    return {(file, line): tests for file, line, tests in lines if tests and not file.startswith(KERNELS)}


def outcome(copy: Copy, mutant: Mutant, executed: Executed) -> str:
    """Caught, missed, slow (it ran out of time), not run (no test executes the line) or gone (no such line)."""
    path = copy.folder / "holdfast" / mutant.file
    right = path.read_text(encoding="utf-8") if path.exists() else ""
    wrong = mutant.applied(right)
    if wrong is None:
        return "gone"
    moved = next(n for n, (a, b) in enumerate(zip(right.splitlines(), wrong.splitlines(), strict=True), 1) if a != b)
    tests = executed.get((mutant.file, moved), [])
    if not tests:
        return "not run"
    path.write_text(wrong, encoding="utf-8")
    try:
        code = copy.run(sorted({test.partition("::")[0] for test in tests}), Only(tests), SECONDS)
    finally:
        path.write_text(right, encoding="utf-8")
    return {0: "missed", None: "slow"}.get(code, "caught")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("draw", "run"))
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--number", type=int, default=NUMBER)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--start", type=int, default=0, help="go on with this mutant of the list")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "holdfast-mutants")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    copy = Copy(given.folder)
    executed = executed_by(copy, given.tests)
    if given.command == "draw":
        mutants = drawn(executed, given.number, given.seed)
        MUTANTS.write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1, ensure_ascii=False) + "\n")
        return
    counts: dict[str, int] = defaultdict(int)
    for fields in json.loads(MUTANTS.read_text(encoding="utf-8"))[given.start :]:
        mutant = Mutant(**fields)
        word = outcome(copy, mutant, executed)
        counts[word] += 1
        print(f"{word:8} {mutant.file}:{mutant.line}: {mutant.before.strip()}  ->  {mutant.after.strip()}", flush=True)
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
