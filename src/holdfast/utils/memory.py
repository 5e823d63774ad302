"""How much memory this process may still use, and refusing at once what needs more.

Without a check, work that does not fit ends without a word: the system kills the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
NEVER_CHECKED = 1 << 24  # bytes that are never in question: looking would take longer than the work


def check_memory(what: str, needed: int, advice: str) -> None:
    """Raise a ValueError where ``what`` needs more bytes than this process may still use, with what to try instead."""
    if needed < NEVER_CHECKED:
        return
    left = available()
    if left is not None and needed > left:
        raise ValueError(f"{what} needs about {_size(needed)} of memory, and {_size(left)} are available; {advice}")


def available(proc: Path = PROC, cgroup: Path = CGROUP) -> int | None:
    """Bytes that this process may still use, or None where the system does not say.

    The least of what the machine has left, what the limit of the container (cgroup version 1 or 2) leaves, and what the
    limit on the address space (``ulimit -v``) leaves.
    """
    known = [left for left in (_machine(proc), *_containers(proc, cgroup), _address_space(proc)) if left is not None]
    return max(0, min(known)) if known else None


def _machine(proc: Path) -> int | None:
    for line in _lines(proc / "meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        try:
            return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):  # no such function, or no such name, on this system
            continue
    return None


def _containers(proc: Path, cgroup: Path) -> Iterator[int | None]:
    """What each group that this process is in leaves: a group's own limit, and those of all groups around it."""
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            yield from (_left(folder, "memory.max", "memory.current") for folder in _upwards(cgroup, group))
        elif "memory" in controllers.split(","):
            names = "memory.limit_in_bytes", "memory.usage_in_bytes"
            yield from (_left(folder, *names) for folder in _upwards(cgroup / "memory", group))


def _upwards(root: Path, group: str) -> Iterator[Path]:
    """A group's folder and all above it. A container may not see its own name: then only the root is there."""
    inside = Path(group.lstrip("/"))
    yield from (root / part for part in (inside, *inside.parents))


def _left(folder: Path, limit: str, use: str) -> int | None:
    most, used = _number(folder / limit), _number(folder / use)
    if most is None or used is None:
        return None
    # Files that were read lately count as used, but make way for whoever needs the memory.
    statistics = dict(line.split(maxsplit=1) for line in _lines(folder / "memory.stat") if " " in line)
    cached = statistics.get("total_inactive_file", statistics.get("inactive_file", "0"))
    return most - used + int(cached)


def _address_space(proc: Path) -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    used = next(iter(_lines(proc / "self" / "statm")), "").split()
    return most - int(used[0]) * resource.getpagesize() if most != resource.RLIM_INFINITY and used else None


def _number(file: Path) -> int | None:
    """What a file of one number says; None for "max"."""
    text = "".join(_lines(file)).strip()
    return int(text) if text.isdigit() else None


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
