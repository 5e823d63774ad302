"""Run the notebooks of docs/notebooks and store what they print and draw.

    python tools/run_notebooks.py          all of them
    python tools/run_notebooks.py bank     one of them

The site shows what is stored, so it is the same on every machine but for figures that another machine rounds otherwise:
no times, no paths, no names of kernels. A notebook that fails, warns or prints a path of this machine is not stored.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets import default
from traitlets.config import Config

from holdfast.utils.files import write_text

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")  # of an object in memory: another one in every run


class ThisPython(KernelSpecManager):
    """The kernel is the interpreter that runs this file, whatever kernels the user has installed."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        settings = ["--HistoryManager.enabled=False", "--InlineBackend.figure_formats={'retina'}"]
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", *settings]
        return KernelSpec(argv=command, display_name="Python 3", language="python", interrupt_mode="signal")


class Kernel(AsyncKernelManager):
    """It talks over sockets in the folder of its connection file: on no network, and to this user only."""

    @default("kernel_spec_manager")
    def _this_python(self) -> ThisPython:
        return ThisPython(parent=self)

    @default("transport")
    def _no_network(self) -> str:
        return "ipc"


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def run(notebook: NotebookNode, folder: Path, **environment: str) -> NotebookNode:
    """The notebook with what its cells print and draw, run from the top in a new kernel and in this empty folder.

    Any error is raised. There is no time limit: a slow machine is no reason to fail.
    """
    done = copy.deepcopy(notebook)
    with TemporaryDirectory() as own:
        # The user's settings, startup files and history of IPython have no part in it.
        apart = {"IPYTHONDIR": own, "JUPYTER_CONFIG_DIR": own, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        client = NotebookClient(
            done,
            kernel_manager_class=Kernel,
            config=Config({"Kernel": {"connection_file": str(Path(own) / "kernel.json")}}),
            resources={"metadata": {"path": str(folder)}},
            coalesce_streams=True,
            timeout=None,
        )
        client.execute(env=os.environ | apart | environment)
    return cleaned(done)


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """Without what differs from run to run. A cell is known by its own text."""
    notebook.metadata = nbformat.from_dict(METADATA)
    seen: set[str] = set()
    for cell in notebook.cells:
        cell.id = _id_of(cell.source, seen)
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = None
    return notebook


def _id_of(source: str, seen: set[str]) -> str:
    """Of the text of the cell; a second cell with the same text gets another one."""
    name = hashlib.sha256(source.encode()).hexdigest()[:8]
    while name in seen:
        name = hashlib.sha256(name.encode()).hexdigest()[:8]
    seen.add(name)
    return name


def texts(notebook: NotebookNode) -> Iterator[tuple[int, str, str]]:
    """Every output that is text: the number of its cell, its kind, and the text."""
    for number, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                yield number, output.name, output.text
            elif output.output_type == "error":
                yield number, "error", "\n".join(output.traceback)
            else:
                parts: dict[str, Any] = output.data
                yield from ((number, kind, text) for kind, text in parts.items() if kind.startswith("text/"))


def faults(notebook: NotebookNode) -> list[str]:
    """What is stored in a notebook and should not be: errors, warnings, paths of this machine, addresses."""
    places = [str(ROOT), str(Path.home()) + os.sep, sys.prefix, "/tmp/", "/site-packages/"]
    found = []
    for number, kind, text in texts(notebook):
        if kind in ("stderr", "error"):
            found.append(f"cell {number} ends in an error or warns: {text[-300:]}")
        found += [f"cell {number} shows the path {place} of this machine" for place in places if place in text]
        found += [f"cell {number} shows an address in memory: {match}" for match in ADDRESS.findall(text)]
    return found


def store(name: str) -> None:
    """Run a notebook and keep it: all of it, or the old one."""
    path = NOTEBOOKS[name]
    with TemporaryDirectory() as folder:
        done = run(read(path), Path(folder))
    wrong = faults(done)
    if wrong:
        raise SystemExit("\n".join([f"{path.relative_to(ROOT)} is not stored:", *wrong]))
    write_text(path, nbformat.writes(done) + "\n")
    print(path.relative_to(ROOT))


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in NOTEBOOKS]
    if unknown:
        raise SystemExit(f"no notebook is called {', '.join(unknown)}; there are {', '.join(NOTEBOOKS)}")
    for name in names or NOTEBOOKS:
        store(name)


if __name__ == "__main__":
    main(sys.argv[1:])
