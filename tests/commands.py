"""The command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def holdfast(*words, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        env=os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"} | environment,
    )
