"""Model files read in a process of their own: what each one did there, its processor time and its memory.

The process reads one file after another. Where one ends it, or takes too long, the next file gets a new process. It
runs in a temporary folder, so that a file which would write or start something does it there, and is noticed.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MOST_SECONDS, MOST_MEGABYTES = 5, 300  # of a hostile file, the megabytes above those of the honest one
DEADLINE = 4 * MOST_SECONDS  # seconds of processor time after which a file's process is ended
PATIENCE = 180  # seconds for a process that waits, and does not work
MOST_ADDRESSES = 3 << 30  # bytes of memory that a process may ask for when its libraries are there
SECRET = "secret"  # a file of the folder that hostile ones try to read: 16 bytes, numbers and a table
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect")


@dataclass(frozen=True)
class Reading:
    """What came of one file."""

    file: str
    ended: str = ""  # how the process ended, if it did
    error: str = ""  # the type of the error
    says: str = ""
    ours: bool = False  # the error was raised by holdfast, not by a library
    memory: bool = False  # the error is that memory is short
    answer: str = ""  # what was read, and what became of a question to it
    seconds: float = 0.0
    megabytes: float = 0.0  # above those of the honest file
    did: tuple[str, ...] = ()  # outside: files written, programs started

    def surprise(self) -> str:
        """What a file must not do, whatever it holds; empty if all is well."""
        if self.ended:
            return self.ended
        if self.did:
            return f"it did something outside: {', '.join(self.did)}"
        if self.memory:
            return "it asked for more memory than there may be"
        if self.seconds > MOST_SECONDS:
            return f"it took more than {MOST_SECONDS} s of processor time"
        if self.megabytes > MOST_MEGABYTES:
            return f"it took more than {MOST_MEGABYTES} MB more than an honest file"
        if self.error and not (self.ours and self.file in self.says and self.error in CLEAR):
            return f"an unclear error, a {self.error}: {self.says[:120]}"
        return ""


CLEAR = ("ValueError", "RefusedError", "UnknownTypeError")


def readings(files: Iterable[tuple[Path, Path]], folder: Path, **environment: str) -> Iterator[Reading]:
    """Of each (file, honest file of its format), in order. The processes run in ``folder``, which is empty."""
    (folder / SECRET).write_bytes(b"1,2,3,4\n5,6,7,8\n")
    process: subprocess.Popen[str] | None = None
    try:
        for path, honest in files:
            if process is None or process.poll() is not None:
                process = _started(folder, environment)
            yield _asked(process, path, honest, folder)
    finally:
        if process is not None:
            process.kill()
            process.communicate()


def _started(folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    quiet = {"OMP_NUM_THREADS": "1", "KERAS_BACKEND": "torch", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.Popen(
        [sys.executable, __file__, str(DEADLINE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
        env=os.environ | quiet | environment,
    )


def _asked(process: subprocess.Popen[str], path: Path, honest: Path, folder: Path) -> Reading:
    there = set(folder.iterdir())
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps([str(path), str(honest)]) + "\n")
        process.stdin.flush()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        line = process.stdout.readline() if selector.select(PATIENCE) else None
    if line is None:
        process.kill()
        process.wait()
        reading = Reading(path.name, ended=f"it hung for {PATIENCE} s without working")
    elif line:
        values = json.loads(line)
        reading = Reading(**values | {"did": tuple(values["did"])})
    else:
        reading = Reading(path.name, ended=_ended(process.wait()))
    if set(reading.did) & set(STARTS):
        time.sleep(1)  # what was started does its work after the file was read
    made = sorted(one.name for one in set(folder.iterdir()) - there)
    for name in made:
        if (folder / name).is_file():
            (folder / name).unlink()  # the next file makes its own
    written = (f"made {name}" for name in made)
    return Reading(**asdict(reading) | {"did": (*reading.did, *written)})


def _ended(code: int) -> str:
    if code == -signal.SIGPROF:
        return f"it did not end in {DEADLINE} s of processor time"
    return f"it ended the process: {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"


# ---- in the process ----


def main() -> None:
    import joblib

    from holdfast.models.files.reading import read_own

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    warnings.simplefilter("ignore")
    joblib.cpu_count(only_physical_cores=True)  # LightGBM asks a program for it, once, before it answers
    deadline, did = float(sys.argv[1]), list[str]()
    known: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as own:
        tempfile.tempdir = own
        sys.addaudithook(lambda event, given: _watch(event, given, did, own))
        for line in sys.stdin:
            path, honest = json.loads(line)
            if honest not in known:
                _tried(read_own, Path(honest), deadline)  # imports what the format needs
                known[honest] = _tried(read_own, Path(honest), deadline).megabytes
            did.clear()
            reading = _tried(read_own, Path(path), deadline)
            more = {"megabytes": round(reading.megabytes - known[honest], 1), "did": tuple(dict.fromkeys(did))}
            answers.write(json.dumps(asdict(reading) | more) + "\n")
            answers.flush()


def _tried(read: Any, path: Path, deadline: float) -> Reading:
    _limit_memory()
    signal.setitimer(signal.ITIMER_PROF, deadline)  # ends the process, also inside compiled code
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    before, start = _megabytes("VmRSS"), time.process_time()
    try:
        answer, error = _answer(read(path)), None
    except Exception as raised:
        answer, error = "", raised
    seconds, megabytes = time.process_time() - start, _megabytes("VmHWM") - before
    signal.setitimer(signal.ITIMER_PROF, 0)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    measured = {"seconds": round(seconds, 2), "megabytes": megabytes, "answer": answer}
    if error is None:
        return Reading(path.name, **measured)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    ours = f"{os.sep}holdfast{os.sep}" in frame.filename
    return Reading(path.name, "", type(error).__name__, str(error), ours, _short_of_memory(error), **measured)


def _answer(model: Any) -> str:
    """What was read is asked of four people, in whatever way: nothing that a file holds may crash or hang here."""
    import numpy as np

    name, rows = type(model).__name__, np.zeros((4, 4), dtype=np.float32)
    try:
        if type(model).__module__.startswith("xgboost") and name == "Booster":
            import xgboost

            model.predict(xgboost.DMatrix(rows))
        elif name == "ModelProto":
            import onnxruntime

            onnxruntime.InferenceSession(model.SerializeToString()).run(None, {model.graph.input[0].name: rows})
        elif name == "Layers" or "keras" in type(model).__module__:
            import torch

            model(torch.from_numpy(rows))
        else:
            getattr(model, "predict", lambda x: None)(rows)
    except Exception as error:
        return f"{name}, which does not answer: {type(error).__name__}"
    return name


def _short_of_memory(error: BaseException | None) -> bool:
    while error is not None:
        text = str(error)
        if isinstance(error, MemoryError) or "allocate" in text or "bad_alloc" in text:
            return True
        error = error.__cause__ or error.__context__
    return False


def _limit_memory() -> None:
    most = int(_megabytes("VmSize") * (1 << 20)) + MOST_ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def _megabytes(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _watch(event: str, given: tuple[Any, ...], did: list[str], own: str) -> None:
    if event in STARTS:
        did.append(event)
    if event == "open" and isinstance(given[0], str) and isinstance(given[2], int):
        writes, allowed = bool(given[2] & 3), given[0].startswith((own, "/proc/self/", "/dev/"))
        if (writes and not allowed) or given[0] == SECRET:
            did.append(f"{'wrote' if writes else 'read'} {given[0]}")


if __name__ == "__main__":
    main()
