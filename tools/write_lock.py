"""Write requirements.lock and torch.lock from what is installed beside this interpreter (`make lock`).

    .venv-lock/bin/python tools/write_lock.py

requirements.lock pins every package but torch, with the SHA-256 of every file of that version, so that it serves other
platforms and versions of Python too. torch has a file of its own, without hashes: its builds for CPUs and for CUDA have
one version and different files. pip-tools collects the hashes; it is installed last and is not part of the lock.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK, TORCH = ROOT / "requirements.lock", ROOT / "torch.lock"
NOT_OURS = ("pip", "wheel")  # what an empty environment begins with; setuptools is needed, by torch
HEADER = """\
# Every package but torch, which torch.lock has. `make lock` writes both. Install with --require-hashes --no-deps.
"""
SILENT = (
    "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host", "--no-emit-options", "--no-annotate",
    "--no-header", "--quiet",
)  # fmt: skip


def frozen() -> list[str]:
    """name==version of all that is installed; a build's own suffix, such as +cpu, is not part of a version here."""
    leave = [word for name in NOT_OURS for word in ("--exclude", name)]
    command = [sys.executable, "-m", "pip", "freeze", "--all", "--exclude-editable", *leave]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [line.partition("+")[0] for line in lines]


def with_hashes(pins: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "pins.in"), Path(folder, "pins.lock")
        given.write_text("\n".join(pins) + "\n", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "pip-tools"], check=True)
        words = ["--generate-hashes", "--allow-unsafe", "--strip-extras", *SILENT, "--output-file", made, given]
        subprocess.run([sys.executable, "-m", "piptools", "compile", *words], check=True)
        lines = made.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line and not line.startswith("#")) + "\n"


def main() -> None:
    pins = frozen()
    torch = [pin for pin in pins if pin.startswith("torch==")]
    lock = with_hashes([pin for pin in pins if pin not in torch])
    LOCK.write_text(HEADER + lock, encoding="utf-8")
    TORCH.write_text("\n".join(torch) + "\n", encoding="utf-8")
    print(f"{LOCK.name}: {lock.count('==')} packages, {lock.count('--hash=')} files; {TORCH.name}: {', '.join(torch)}")


if __name__ == "__main__":
    main()
