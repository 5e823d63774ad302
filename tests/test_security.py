"""The promises of SECURITY.md: files are data, no network unless asked, nothing is collected."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import EVERYTHING, everything

import holdfast
from holdfast.tabular.encoding import Encoding

PACKAGE = Path(holdfast.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# Modules that execute what they read, start programs, or open connections, and the files that may import them.
FORBIDDEN_MODULES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("_pickle", "cloudpickle", "code", "codeop", "dbm", "dill", "marshal", "shelve", "yaml"), ()),
    "pickle": ("utils/workers.py",),  # what a process and its own workers hand over: never a file
    "ctypes": ("search/engine/interview.py",),  # for a function of its own that compiled code calls: no library
    **dict.fromkeys(("pty", "runpy", "subprocess"), ()),
    **dict.fromkeys(("ftplib", "imaplib", "poplib", "requests", "smtplib", "socket", "ssl", "telnetlib", "xmlrpc"), ()),
    **dict.fromkeys(("http", "urllib"), ("datasets/fetch.py",)),
}
FORBIDDEN_BUILTINS = {"__import__", "compile", "eval", "exec"}
# Calls by their last two names: torch.load, np.load, pd.read_pickle, os.system ...
FORBIDDEN_CALLS = {
    *(("torch", name) for name in ("load", "save", "jit")), ("jit", "load"), ("hub", "load"), ("package", "load"),
    *(("joblib", name) for name in ("load", "dump")), *((module, "load") for module in ("np", "numpy")),
    *((module, "read_pickle") for module in ("pd", "pandas")), *((module, "eval") for module in ("pd", "pandas")),
    *(("os", name) for name in ("system", "popen", "execv", "execve", "execvp", "spawnv", "posix_spawn", "startfile")),
}  # fmt: skip
SAFE = "safetensors"  # its torch.load reads nothing but numbers


def names_of(node: ast.expr) -> tuple[str, ...]:
    """("safetensors", "torch", "load") of safetensors.torch.load."""
    if isinstance(node, ast.Attribute):
        return (*names_of(node.value), node.attr)
    return (node.id,) if isinstance(node, ast.Name) else ("",)


def breaches(source: str, file: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            tops = [module.split(".")[0] for module in modules]
            found += [f"imports {top}" for top in tops if file not in FORBIDDEN_MODULES.get(top, (file,))]
            pairs = [(modules[0].split(".")[-1], alias.name) for alias in node.names]
            found += [f"imports {'.'.join(pair)}" for pair in pairs if pair in FORBIDDEN_CALLS and tops[0] != SAFE]
        elif isinstance(node, ast.Call):
            names = names_of(node.func)
            if (len(names) == 1 and names[0] in FORBIDDEN_BUILTINS) or (
                names[-2:] in FORBIDDEN_CALLS and names[0] != SAFE
            ):
                found.append(f"calls {'.'.join(names)}")
            found += [f"sets {word.arg}" for word in node.keywords if word.arg in ("allow_pickle", "shell")]
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_module_executes_a_file_starts_a_program_or_opens_a_connection(path):
    assert breaches(path.read_text(encoding="utf-8"), path.relative_to(PACKAGE).as_posix()) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle", "from urllib.request import urlopen", "torch.load(path)", "np.load(path, allow_pickle=True)",
        "pd.read_pickle(path)", "joblib.load(path)", "eval(text)", "exec(text)", "os.system(text)", "import subprocess",
        "from torch import load", "from os import system as run",
    ],
)  # fmt: skip
def test_the_check_sees_what_is_forbidden(line):
    assert breaches(line, "tabular/reading.py")


def test_the_check_knows_what_is_harmless():
    assert breaches("safetensors.torch.load(contents); module.eval(); re.compile(text)", "store.py") == []


# Runs a command and says which of its steps reach out of the process. torch asks the system about itself at import, so
# what is started or unpickled counts from then on.
WATCHED = """
import sys

reached = []
NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.gethostbyname", "urllib.Request")
LOCAL = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pickle.find_class", "marshal.load")
watched = set(NETWORK)
sys.addaudithook(lambda event, given: reached.append((event, str(given))) if event in watched else None)

import torch, pandas, pyarrow, sklearn.neighbors, holdfast
for name in holdfast.__all__:
    getattr(holdfast, name)
watched.update(LOCAL)
"""
COMMAND = """
from holdfast.cli import main

try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
REPORT = """
print("reached:", reached)
"""


def reached(program: str, *words: object, cwd: Path) -> str:
    command = [sys.executable, "-c", WATCHED + program + REPORT, *map(str, words)]
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


def test_an_import_and_an_audit_reach_nothing_outside(tmp_path):
    """From files alone: a table, a schema, counterfactuals; networks are trained in this process."""
    table = everything()
    encoding = Encoding.fit(table, EVERYTHING)
    table.to_csv(tmp_path / "table.csv", index_label="id")
    encoding.decode(encoding.encode(table)).head(3).to_csv(tmp_path / "points.csv", index_label="id")
    EVERYTHING.save(tmp_path / "schema.toml")
    words = (
        "audit", "--data", "table.csv", "--index", "id", "--schema", "schema.toml", "--counterfactuals", "points.csv",
        "--train", "--hidden", "4", "--epochs", "1", "--retrain", "seeds:2",
    )  # fmt: skip
    assert reached(COMMAND, *words, cwd=tmp_path) == "reached: []"
    assert (tmp_path / "holdfast-audit" / "rows.csv").exists()


@pytest.mark.slow
def test_the_watch_sees_a_connection_a_program_and_a_pickle(tmp_path):
    program = """
import contextlib, pickle, socket, subprocess
with contextlib.suppress(OSError), socket.socket() as end:
    end.connect(("127.0.0.1", 9))
subprocess.run([sys.executable, "-c", ""])
pickle.loads(pickle.dumps(holdfast.Recipe))
"""
    seen = reached(program, cwd=tmp_path)
    for event in ("socket.connect", "subprocess.Popen", "pickle.find_class"):
        assert f"('{event}'" in seen
