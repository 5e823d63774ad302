import errno
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from commands import started
from holdfast.utils.files import (
    DAY,
    RESULTS,
    InUseError,
    all_or_none,
    appearing,
    check_writable,
    make_folder,
    no_empty_folders,
    only_writer,
    write_text,
)
from killing import posix


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_whole(tmp_path):
    path = write_text(tmp_path / "new" / "a.txt", "done")
    assert path.read_text() == "done"
    assert names(path.parent) == ["a.txt"]


def test_what_goes_wrong_leaves_the_old_file(tmp_path):
    path = write_text(tmp_path / "a.txt", "old")
    with pytest.raises(KeyboardInterrupt), appearing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


WRITER = """
import sys, time
from holdfast.utils.files import appearing
with appearing(sys.argv[1]) as file:
    file.write(b"half"); file.flush(); print("on", flush=True)
    while True: time.sleep(1)
"""


def test_what_a_killed_writer_leaves_is_swept_a_day_later(tmp_path):
    path = tmp_path / "a.txt"
    with started([sys.executable, "-c", WRITER, str(path)]) as writer:
        assert writer.stdout.readline() == "on\n"
        assert not path.exists()
        write_text(path, "another writer while the first is at work").unlink()
        (part,) = tmp_path.iterdir()  # the living writer's
        writer.kill()
        writer.wait()
    write_text(path, "done")
    assert part.exists()  # its writer may live in another container: nobody can tell
    os.utime(part, (time.time() - DAY - 60,) * 2)
    write_text(path, "again")
    assert names(tmp_path) == ["a.txt"]


def test_threads_that_write_one_file_do_not_meet(tmp_path):
    texts = [str(number) * 100_000 for number in range(6)]
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(partial(write_text, tmp_path / "a.txt"), texts * 5))
    assert (tmp_path / "a.txt").read_text() in texts
    assert names(tmp_path) == ["a.txt"]


@posix
def test_files_and_folders_are_never_writable_for_everybody(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from holdfast.utils.files import append, only_writer, write_text\n"
        "os.umask(int(sys.argv[2], 8)); new = Path(sys.argv[1]) / 'one' / 'two'\n"
        "write_text(new / 'a.txt', 'a'); append(new / 'b.txt', b'b')\n"
        "with only_writer(new / 'c.txt'): print([oct(p.stat().st_mode & 0o777) for p in sorted(new.parent.rglob('*'))])"
    )
    for umask, file, folder in (("0", "0o664", "0o775"), ("77", "0o600", "0o700")):
        said = subprocess.check_output([sys.executable, "-c", code, tmp_path / umask, umask], text=True)
        assert said == f"{[folder, file, file, file]}\n"


@posix
def test_a_full_disk_names_the_file_and_leaves_the_old_one(tmp_path):
    code = (
        "import resource, sys; from pathlib import Path; from holdfast.utils.files import append, write_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # stands for a disk without room\n"
        "for write in (write_text, lambda path, text: append(Path(path), text.encode())):\n"
        "    try: write(sys.argv[1], 'new' * 1000)\n"
        "    except OSError as error: print(error, error.errno)"
    )
    path = write_text(tmp_path / "a.txt", "old")
    said = subprocess.check_output([sys.executable, "-c", code, path], text=True)
    told = f"could not write {path}: File too large; make room there, or name another place {errno.EFBIG}\n"
    assert said == told * 2
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_several_files_appear_together_or_not_at_all(tmp_path):
    with all_or_none(tmp_path / "new") as parts:
        write_text(parts / "a.csv", "a")
        write_text(parts / "deep" / "b.json", "b")
        assert len(names(tmp_path / "new")) == 1  # none of them yet
    assert names(tmp_path / "new") == ["a.csv", "deep"]
    with pytest.raises(OSError, match="full"), all_or_none(tmp_path / "new") as parts:
        write_text(parts / "a.csv", "another")
        raise OSError("full")
    assert names(tmp_path / "new") == ["a.csv", "deep"]
    assert (tmp_path / "new" / "a.csv").read_text() == "a"


def test_what_a_killed_writer_of_several_files_left_is_swept_by_the_next(tmp_path):
    (tmp_path / f".{RESULTS}.0123.part").mkdir()
    (tmp_path / f".{RESULTS}.0123.part" / "a.csv").write_text("half")
    with all_or_none(tmp_path):  # it may be another's, who is at work
        assert f".{RESULTS}.0123.part" in names(tmp_path)
    with only_writer(tmp_path / RESULTS):  # nobody else is
        assert f".{RESULTS}.0123.part" not in names(tmp_path)


def test_folders_that_stay_empty_are_removed_and_no_others(tmp_path):
    (tmp_path / "mine").mkdir()
    with no_empty_folders(tmp_path / "mine" / "one" / "two"):
        make_folder(tmp_path / "mine" / "one" / "two")
    assert names(tmp_path / "mine") == []
    with no_empty_folders(tmp_path / "mine"):
        pass
    with no_empty_folders(tmp_path / "one" / "two"):
        write_text(make_folder(tmp_path / "one" / "two") / ".." / "a.txt", "a")
    assert names(tmp_path) == ["mine", "one"]
    assert names(tmp_path / "one") == ["a.txt"]


HOLDER = """
import sys, time
from pathlib import Path
from holdfast.utils.files import only_writer
with only_writer(Path(sys.argv[1])):
    print("on", flush=True)
    while True: time.sleep(1)
"""


def test_a_second_writer_is_told_and_a_killed_one_holds_nothing(tmp_path):
    path = tmp_path / "new" / "a.txt"
    with started([sys.executable, "-c", HOLDER, str(path)]) as holder:
        assert holder.stdout.readline() == "on\n"
        with pytest.raises(InUseError, match=f"another process is writing to {re.escape(str(path))}; wait"):
            only_writer(path).__enter__()
        with only_writer(tmp_path / "new" / "b.txt"):  # another file is nobody's business
            pass
        holder.kill()
        holder.wait()
    with only_writer(path):
        pass
    assert names(path.parent) == []


def test_a_second_thread_is_told_or_waits(tmp_path):
    path, inside, most = tmp_path / "a.txt", [], []

    def take_turns(number):
        with only_writer(path, wait=True):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0)
            inside.remove(number)

    with only_writer(path), pytest.raises(InUseError), ThreadPoolExecutor(1) as other:
        other.submit(only_writer(path).__enter__).result()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(take_turns, range(20)))
    assert most == [1] * 20
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_written_to_is_known_at_once(tmp_path):
    check_writable(tmp_path / "new" / "folder")
    assert names(tmp_path / "new" / "folder") == []
    write_text(tmp_path / "file", "")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="file"):
            check_writable(place)
