"""Install the wheel and the sdist of a folder, each into an empty environment, and run them there.

    python tools/check_dist.py dist

Dependencies have the versions of the locks, torch first, so that pip does not choose another build of it. Nothing is
built in isolation. The environments are made in a temporary folder and removed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from locks import pins

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "holdfast"
TO_BUILD = ("hatchling",)  # what an sdist needs to be installed
OURS = ("HOLDFAST_", "PYTHON")  # settings of the caller that an empty environment does not have


def files_of_the_package() -> set[str]:
    """Every file that belongs into an artefact, code and data, by its path below src."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(PACKAGE.parent).as_posix() for path in files}


def files_in(artefact: Path) -> set[str]:
    if artefact.suffix == ".whl":
        with zipfile.ZipFile(artefact) as wheel:
            return set(wheel.namelist())
    with tarfile.open(artefact) as sdist:
        return {name.partition("/src/")[2] for name in sdist.getnames()}


def check_contents(artefact: Path) -> None:
    missing = files_of_the_package() - files_in(artefact)
    if missing:
        raise SystemExit(f"{artefact.name} lacks {', '.join(sorted(missing))}")


def call(*command: str | Path, cwd: Path) -> str:
    """What a command printed; the script ends where the command fails."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    ran = subprocess.run(list(map(str, command)), cwd=cwd, env=own, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {ran.returncode}:\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def check_installed(artefact: Path) -> str:
    """What `holdfast --version` says in an environment that has nothing but the artefact and what it needs."""
    with tempfile.TemporaryDirectory(prefix="holdfast-dist-") as name:
        folder = Path(name)
        home, work = folder / "environment", folder / "work"
        work.mkdir()
        venv.create(home, with_pip=True)
        install = [home / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation"]
        locked = pins()
        versions = folder / "versions.txt"  # without hashes: pip would then ask for one of the artefact too
        versions.write_text("\n".join(pin.requirement for pin in locked.values()) + "\n", encoding="utf-8")
        first = ["torch", *(TO_BUILD if artefact.suffix != ".whl" else ())]
        call(*install, "--constraint", versions, *(locked[name].requirement for name in first), cwd=work)
        call(*install, "--constraint", versions, artefact, cwd=work)
        command = home / "bin" / "holdfast"
        version = call(command, "--version", cwd=work).strip()
        call(command, "demo", "--rows", "6", "--members", "2", cwd=work)
        written = sorted(path.name for path in (work / "holdfast-demo").iterdir())
        if written != ["counterfactuals.csv", "results.json"]:
            raise SystemExit(f"{artefact.name}: the demo wrote {written}")
    return version


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder that `python -m build` wrote to")
    folder = parser.parse_args().folder.resolve()
    artefacts = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    if [artefact.suffix for artefact in artefacts] != [".whl", ".gz"]:
        raise SystemExit(f"expected one wheel and one sdist in {folder}, found {[one.name for one in artefacts]}")
    for artefact in artefacts:
        check_contents(artefact)
        said = check_installed(artefact)
        (version,) = re.findall(r"^holdfast-(\d+(?:\.\w+)*?)(?:-py3|\.tar)", artefact.name)
        if said != f"holdfast {version}":
            raise SystemExit(f"{artefact.name} says '{said}'")
        print(f"{artefact.name}: {artefact.stat().st_size:,} bytes, installs, and the demo runs", flush=True)


if __name__ == "__main__":
    sys.exit(main())
