"""The command line: one file per command, each of which parses, calls the library, and shows what came back.

Exit codes: 0 done, 1 could not be done (a file, a download, the data), 2 the command was not understood,
130 interrupted (Ctrl-C), 143 terminated (SIGTERM). What a command needs is imported inside its body, so that `--help`
answers at once.
"""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper


def main() -> None:
    from holdfast.cli.app import app
    from holdfast.cli.options import end_like_ctrl_c_when_terminated
    from holdfast.utils.messages import printable

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "→" shows "?" and goes on
    as_python_does = warnings.formatwarning
    warnings.formatwarning = lambda *given, **more: printable(as_python_does(*given, **more))
    end_like_ctrl_c_when_terminated()
    app()
