"""How long holdfast takes to start: CPU seconds of a script's imports and of the commands that train nothing.

    python bench/startup.py

Each line runs several times in fresh processes, in turn with the others, and the fastest run counts. Seconds are those
of the CPU, user and system together, so other programs on the machine hardly change them. The script's line is divided
by `import torch, pandas` of the same run, which every user of those two libraries pays in any case.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from _side_by_side import flags, show

WITHOUT_US = "import torch, pandas"
SCRIPT = "import holdfast as hf; hf.Encoding, hf.PGD, hf.train, hf.audit"
RATIO = 1.15  # of the script to the imports without us
COMMANDS = {  # the most CPU seconds that each may take
    ("--version",): 0.5,
    ("--help",): 0.5,
    ("datasets",): 1.0,
    ("families", "list"): 1.0,
    ("methods",): 1.0,
}


def cpu_seconds(command: list[str]) -> float:
    """User and system time of one fresh process."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()  # until the process closes it
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{said.decode()[-2000:]}")
    return used.ru_utime + used.ru_stime


def fastest(commands: dict[str, list[str]], repeats: int) -> dict[str, float]:
    """The least CPU seconds of each command; they take turns, so that a busy minute meets all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            seconds[name].append(cpu_seconds(command))
    return {name: min(several) for name, several in seconds.items()}


def main() -> None:
    options = flags(__doc__ or "")
    commands = {text: [sys.executable, "-c", text] for text in (WITHOUT_US, SCRIPT)}
    commands |= {" ".join(["holdfast", *words]): [sys.executable, "-m", "holdfast", *words] for words in COMMANDS}
    measured = fastest(commands, 2 if options.quick else 7)
    base, most = measured[WITHOUT_US], dict(zip(list(commands)[2:], COMMANDS.values(), strict=True))
    rows: list[dict[str, Any]] = []
    for name, seconds in measured.items():
        row = {"command": name, "CPU_seconds": seconds, "at_most": most.get(name, ""), "ratio": "", "ratio_at_most": ""}
        if name == SCRIPT:
            row |= {"at_most": RATIO * base, "ratio": seconds / base, "ratio_at_most": RATIO}
        missed = name != WITHOUT_US and seconds > row["at_most"]
        rows.append(row | {"reached": "" if name == WITHOUT_US else "no" if missed else "yes"})
    show("Starting: CPU seconds, the fastest run of each", rows, options.json)


if __name__ == "__main__":
    main()
