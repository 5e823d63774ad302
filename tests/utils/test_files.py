import sys

import pytest

from commands import started
from holdfast.utils.files import appearing, write_text


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


def test_what_a_killed_writer_leaves_is_swept_by_the_next(tmp_path):
    path = tmp_path / "a.txt"
    code = (
        "import sys, time; from holdfast.utils.files import appearing\n"
        "with appearing(sys.argv[1]) as f:\n"
        "    f.write(b'half'); f.flush(); print('on', flush=True)\n"
        "    while True: time.sleep(1)"
    )
    with started([sys.executable, "-c", code, str(path)]) as writer:
        assert writer.stdout.readline() == "on\n"
        assert not path.exists()
        other = write_text(path, "another writer while the first is at work")
        assert len(names(tmp_path)) == 2  # the living writer's part is left alone
        other.unlink()
        writer.kill()
        writer.wait()
    assert not path.exists()
    write_text(path, "done")
    assert names(tmp_path) == ["a.txt"]
