"""Downloads from a real server on this machine, which misbehaves on request."""

from __future__ import annotations

import dataclasses
import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from commands import HANG
from holdfast.datasets import DATASETS, german
from holdfast.datasets.fetch import LARGEST, FetchError, fetch

BODY = bytes(range(256)) * 800  # a few chunks
CARD = dataclasses.replace(
    german.CARD, name="known", file="some/known.data", sha256=hashlib.sha256(BODY).hexdigest(), packaged=None, url=None
)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        match self.path:
            case "/good":
                self.answer(BODY)
            case "/unannounced":
                self.answer(BODY, announced=False)
            case "/other":
                self.answer(BODY[::-1])
            case "/cut":
                self.answer(BODY[:100_000])
            case "/cut-unannounced":
                self.answer(BODY[:100_000], announced=False)
            case "/stalled":
                self.answer(BODY[:100_000])
                self.server.over.wait(HANG)
            case "/silent":
                self.server.over.wait(HANG)
            case _:
                self.send_error(404)

    def answer(self, body, announced=True):
        self.send_response(200)
        if announced:
            self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Keep the test run quiet."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.over = [], threading.Event()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    return tmp_path


def address(server, path):
    return f"http://127.0.0.1:{server.server_address[1]}{path}"


def files(folder):
    """Hidden ones too: a left-over part would show."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("path", ["/good", "/unannounced"])
@pytest.mark.parametrize("before", [None, b"an older, wrong file"])
def test_good_file_arrives(server, folder, path, before):
    if before:
        (folder / "some").mkdir()
        (folder / CARD.file).write_bytes(before)
    assert fetch(CARD, address(server, path)) == folder / CARD.file
    assert files(folder) == {CARD.file: BODY}


def test_the_cards_own_address_is_used(server, folder):
    assert fetch(dataclasses.replace(CARD, url=address(server, "/good"))).read_bytes() == BODY


@pytest.mark.parametrize("path", ["/good", "/unannounced"])
def test_progress_counts_up_to_the_whole(server, folder, path):
    seen = []
    fetch(CARD, address(server, path), progress=seen.append)
    assert len(seen) > 1
    assert min(seen) > 0
    assert sum(seen) == len(BODY)


def test_a_right_file_is_not_downloaded_again(server, folder):
    for _ in range(2):
        fetch(CARD, address(server, "/good"))
    assert server.asked == ["/good"]


def test_german_is_here_from_the_start(server, folder):
    assert fetch(german.CARD, address(server, "/good")) == german.CARD.packaged
    assert server.asked == []


@pytest.mark.parametrize("before", [{}, {CARD.file: b"an older file"}])
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/missing", "answered 404"),
        ("/other", r"sent another file .* expected"),
        ("/cut", f"broke off after 100000 of {len(BODY)} bytes"),
        ("/cut-unannounced", r"sent another file .* 100000 bytes"),
        ("/stalled", "was silent for 0.5 seconds"),
        ("/silent", "was silent for 0.5 seconds"),
    ],
)
def test_failure_leaves_what_was_there(server, folder, path, said, before):
    for name, contents in before.items():
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(contents)
    with pytest.raises(FetchError, match=said) as caught:
        fetch(CARD, address(server, path), timeout=0.5 if "silent" in said else HANG)
    assert address(server, path) in str(caught.value)
    assert CARD.home in str(caught.value)
    assert files(folder) == before


@pytest.mark.parametrize("before", [{}, {CARD.file: b"an older file"}])
@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/good", f"announces {len(BODY)} bytes, more than the 100000"),
        ("/unannounced", "sent more than the 100000 bytes"),
    ],
)
def test_too_large_a_file_is_cut_off(server, folder, monkeypatch, path, said, before):
    monkeypatch.setattr("holdfast.datasets.fetch.LARGEST", 100_000)
    for name, contents in before.items():
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(contents)
    seen = []
    with pytest.raises(FetchError, match=said):
        fetch(CARD, address(server, path), progress=seen.append)
    assert files(folder) == before
    assert sum(seen) <= 100_000
    assert bool(seen) == (path == "/unannounced")  # what is announced is not even begun


def test_every_dataset_is_small_enough():
    assert all(card.path().stat().st_size < LARGEST for card in DATASETS.values() if card.state() == "here")


def test_refused_connection(folder, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as nobody:  # has a port, and does not listen to it
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(FetchError, match=r"could not be read .*refused"):
            fetch(CARD, f"http://127.0.0.1:{nobody.getsockname()[1]}/good", timeout=HANG)
    assert files(folder) == {}


def test_interrupting_leaves_nothing(server, folder):
    def interrupt(more):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(CARD, address(server, "/good"), progress=interrupt)
    assert files(folder) == {}


def test_folder_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"in the way")
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "file"))
    with pytest.raises(FetchError, match=r"cannot write .*HOLDFAST_DATA"):
        fetch(CARD, address(server, "/good"))
    assert files(tmp_path) == {"file": b"in the way"}


@pytest.mark.parametrize("name", [name for name, card in DATASETS.items() if card.url is None])
def test_no_address_explains_licence_and_home(folder, name):
    card = DATASETS[name]
    with pytest.raises(FetchError) as caught:
        fetch(card)
    for expected in (card.licence, card.home, str(folder / card.file)):
        assert expected in str(caught.value)
