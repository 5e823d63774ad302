"""Files and folders by their contents."""

from __future__ import annotations

from hashlib import sha256

from holdfast.utils.digests import file_digest


def test_a_file_is_known_by_its_contents(tmp_path):
    (tmp_path / "a").write_bytes(b"rows")
    (tmp_path / "b").write_bytes(b"rows")
    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b") == sha256(b"rows").hexdigest()


def test_a_folder_is_known_by_the_names_and_contents_of_its_files(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "model").write_bytes(b"weights")
    first, second = tmp_path / "one", tmp_path / "two"
    assert file_digest(first) == file_digest(second)
    (second / ".lock").write_bytes(b"")  # a writer's own
    assert file_digest(first) == file_digest(second)
    (second / "inner" / "model").write_bytes(b"others")
    assert file_digest(first) != file_digest(second)
    (second / "inner" / "model").write_bytes(b"weights")
    (second / "inner" / "model").rename(second / "inner" / "renamed")
    assert file_digest(first) != file_digest(second)
