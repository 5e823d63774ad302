"""The command line: one file per command, each of which parses, calls the library, and shows what came back.

Exit codes: 0 done, 1 could not be done (a file, a download, the data), 2 the command was not understood,
130 interrupted (Ctrl-C), 143 terminated (SIGTERM). What a command needs is imported inside its body, so that `--help`
answers at once.
"""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper
from typing import Any


def main() -> None:
    from holdfast.cli.app import app
    from holdfast.cli.options import end_like_ctrl_c_when_terminated
    from holdfast.utils.messages import printable

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "→" shows "?" and goes on
    as_python_does = warnings.formatwarning

    def as_a_sentence(message: Warning | str, category: type[Warning], *given: Any, **more: Any) -> str:
        if issubclass(category, UserWarning):  # meant for the user, whom no line of our code helps
            return printable(f"holdfast: warning: {message}\n")
        return printable(as_python_does(message, category, *given, **more))

    warnings.formatwarning = as_a_sentence
    end_like_ctrl_c_when_terminated()
    app()
