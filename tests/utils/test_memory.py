import resource

import pytest

from holdfast.utils import memory
from holdfast.utils.memory import available, check_memory

GB = 10**9


def system(folder, files):
    """A machine of 8 GB, and whatever else its files say."""
    files = {"proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable:    8000000 kB\n", **files}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return available(folder / "proc", folder / "cgroup")


def test_without_limits_it_is_what_the_machine_has_left(tmp_path):
    assert system(tmp_path, {}) == 8_000_000 * 1024


@pytest.mark.parametrize("place", ["/", "/jobs/mine", "/not/visible/from/inside"])
def test_a_container_has_what_its_limit_leaves(tmp_path, place):
    files = {
        "proc/self/cgroup": f"0::{place}\n",
        "cgroup/memory.max": f"{4 * GB}\n",
        "cgroup/memory.current": f"{3 * GB}\n",
    }
    assert system(tmp_path, files) == GB


def test_every_group_around_counts_and_max_is_no_limit(tmp_path):
    files = {
        "proc/self/cgroup": "0::/jobs/mine\n",
        "cgroup/jobs/mine/memory.max": "max\n",
        "cgroup/jobs/mine/memory.current": f"{GB}\n",
        "cgroup/jobs/memory.max": f"{2 * GB}\n",
        "cgroup/jobs/memory.current": f"{GB}\n",
        "cgroup/memory.max": f"{5 * GB}\n",
        "cgroup/memory.current": f"{GB}\n",
    }
    assert system(tmp_path, files) == GB


def test_files_that_were_read_make_way(tmp_path):
    files = {
        "proc/self/cgroup": "0::/\n",
        "cgroup/memory.max": f"{4 * GB}\n",
        "cgroup/memory.current": f"{4 * GB}\n",
        "cgroup/memory.stat": f"anon {GB}\ninactive_file {3 * GB}\n",
    }
    assert system(tmp_path, files) == 3 * GB


def test_groups_of_version_1(tmp_path):
    files = {
        "proc/self/cgroup": "5:cpu,cpuacct:/box\n4:memory:/box\n0::/\n",
        "cgroup/memory/box/memory.limit_in_bytes": f"{3 * GB}\n",
        "cgroup/memory/box/memory.usage_in_bytes": f"{GB}\n",
        "cgroup/memory/box/memory.stat": f"inactive_file 5\ntotal_inactive_file {GB}\n",
        "cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "cgroup/memory/memory.usage_in_bytes": f"{GB}\n",
    }
    assert system(tmp_path, files) == 3 * GB


def test_more_used_than_allowed_leaves_nothing(tmp_path):
    files = {"proc/self/cgroup": "0::/\n", "cgroup/memory.max": "5\n", "cgroup/memory.current": "9\n"}
    assert system(tmp_path, files) == 0


def test_a_limit_on_the_address_space_counts(tmp_path, monkeypatch):
    page = resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1000 * page, -1))
    assert system(tmp_path, {"proc/self/statm": "400 30 20 1 0 100 0\n"}) == 600 * page


def test_a_system_that_says_nothing_is_asked_in_another_way(tmp_path, monkeypatch):
    assert available(tmp_path, tmp_path) > 0
    monkeypatch.delattr("os.sysconf")
    assert available(tmp_path, tmp_path) is None


def test_this_machine_has_memory_left():
    assert available() > memory.NEVER_CHECKED


def test_what_does_not_fit_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 2_100_000_000)
    check_memory("sorting", 2_100_000_000, "sort less")
    said = "sorting needs about 4.8 GB of memory, and 2.1 GB are available; sort less"
    with pytest.raises(ValueError, match=said):
        check_memory("sorting", 4_800_000_000, "sort less")
    monkeypatch.setattr(memory, "available", lambda: None)
    check_memory("sorting", 10**18, "sort less")
    monkeypatch.setattr(memory, "available", lambda: 0)
    check_memory("sorting", 1000, "sort less")
