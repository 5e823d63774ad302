"""`holdfast --verbose`: what the library logs, on standard error."""

from __future__ import annotations

import logging
import sys
import time

from holdfast.utils.messages import printable


class _Lines(logging.Handler):
    """One line per record: seconds since the command began, the module, what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.time()

    def emit(self, record: logging.LogRecord) -> None:
        module = record.name.removeprefix("holdfast.")
        line = f"{record.created - self.began:8.2f} s  {module}: {record.getMessage()}"
        print(
            printable(line).replace("\n", " "), file=sys.stderr, flush=True
        )  # above the progress bar, if there is one


def log_to_stderr(wanted: bool) -> None:
    logger = logging.getLogger("holdfast")
    for handler in [known for known in logger.handlers if isinstance(known, _Lines)]:  # of an earlier command, in tests
        logger.removeHandler(handler)
    logger.setLevel(logging.DEBUG if wanted else logging.NOTSET)
    if wanted:
        logger.addHandler(_Lines())
