"""Find a browser for the tests of pages, and install Debian's Chromium where there is none (`make browser`).

    python3 tools/browsers.py

HOLDFAST_BROWSER names an executable; without it, one of NAMES on PATH is taken. A machine that has a browser is left as
it is. It needs nothing but Python, so that it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
VARIABLE = "HOLDFAST_BROWSER"
TRIES = 4  # a mirror may be out for a moment
PAUSE = 10.0  # seconds between two tries
WORDS = (
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
BY_HAND = f"install Chromium or Chrome so that one of {', '.join(NAMES)} is on PATH, or name it with {VARIABLE}"


def find() -> str | None:
    """The browser's executable, or None where there is none."""
    named = os.environ.get(VARIABLE)
    if not named:
        return next((path for path in map(shutil.which, NAMES) if path), None)
    if found := shutil.which(named):
        return found
    raise FileNotFoundError(f"{VARIABLE} must name an executable; got {named!r}; correct it or unset it")


def launch(playwright: Any, program: str, **settings: Any) -> Any:
    """Start it, without a screen and without requests of its own."""
    # Chromium refuses to sandbox what root starts.
    sandbox = os.geteuid() != 0
    return playwright.chromium.launch(executable_path=program, chromium_sandbox=sandbox, args=list(WORDS), **settings)


def as_root(root: bool, sudo: bool) -> list[str]:
    """The words before a command that only root may run."""
    if root:
        return []
    if sudo:
        return ["sudo"]
    raise SystemExit("to install a browser, be root or have sudo; or " + BY_HAND)


def install(pause: float = PAUSE) -> None:
    """Debian's chromium, by apt-get."""
    if not shutil.which("apt-get"):
        raise SystemExit(f"there is no apt-get here to install a browser with; {BY_HAND}")
    before = [*as_root(os.geteuid() == 0, bool(shutil.which("sudo"))), "apt-get"]
    steps = (["update"], ["install", "--yes", "--no-install-recommends", "chromium"])
    for left in reversed(range(TRIES)):
        if all(subprocess.run([*before, *step]).returncode == 0 for step in steps):
            return
        if left:
            print(f"apt-get failed; trying again in {pause:g} s", file=sys.stderr)
            time.sleep(pause)
    raise SystemExit(f"apt-get could not install chromium, {TRIES} times; see its messages above, or {BY_HAND}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pause", type=float, default=PAUSE, help="seconds between two tries of apt-get")
    pause = parser.parse_args().pause
    try:
        found = find()
        if not found:
            install(pause)
            found = find()
    except FileNotFoundError as error:
        raise SystemExit(str(error)) from None
    if not found:
        raise SystemExit(f"apt-get installed chromium, but it is not on PATH; {BY_HAND}")
    print(f"browser: {found}")


if __name__ == "__main__":
    main()
