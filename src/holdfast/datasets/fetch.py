"""Download a dataset's file: whole and with the right checksum, or not at all."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from holdfast.datasets.cards import Card, data_folder
from holdfast.utils.files import appearing

LOG = logging.getLogger(__name__)
CHUNK = 1 << 16
LARGEST = 64 << 20  # bytes that a download may have: the largest of the files has 8 million
Progress = Callable[[int], None]  # so many more bytes have come


class FetchError(OSError):
    """A dataset's file did not come. Whatever was in its place before is still there."""


def fetch(card: Card, url: str | None = None, timeout: float = 30.0, progress: Progress | None = None) -> Path:
    """Where the dataset's file is, after downloading it if it was not here or not the right one.

    url       another address of the same file, such as a mirror
    timeout   how many seconds the server may be silent

    A server that sends more than 64 MB is cut off.
    German Credit ships with holdfast: that copy is here from the start and nothing is downloaded.
    """
    if card.state() == "here":
        return card.path()
    target, address = data_folder() / card.file, url or card.url
    if address is None:
        raise FetchError(
            f"dataset '{card.name}': {target}: {card.state()}, and there is no address that holdfast may download "
            f"this file from (licence: {card.licence}); {card.how_to_get()}"
        )
    try:
        with appearing(target) as file:
            _download(card, address, file, timeout, progress)
    except FetchError:
        raise
    except OSError as error:  # what went wrong on the network is a FetchError already
        raise FetchError(
            f"dataset '{card.name}': cannot write {target} ({error}); make that possible, or point "
            "HOLDFAST_DATA at a folder you can write to"
        ) from error
    return target


def _download(card: Card, address: str, file: BinaryIO, timeout: float, progress: Progress | None) -> None:
    """Copy what the address sends into the file; raise unless it is all there and the file we know."""
    digest, size = hashlib.sha256(), 0
    LOG.info("downloading %s", address)
    with _explained(card, address, timeout):
        response = urlopen(address, timeout=timeout)
    with response:
        announced = response.headers.get("Content-Length", "")
        total = int(announced) if announced.isdigit() else None
        if total is not None and total > LARGEST:
            raise _failure(card, f"{address} announces {total} bytes, more than the {LARGEST} that a download may have")
        while True:
            with _explained(card, address, timeout):
                chunk = response.read(CHUNK)
            if not chunk:
                break
            if size + len(chunk) > LARGEST:
                raise _failure(card, f"{address} sent more than the {LARGEST} bytes that a download may have")
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            if progress is not None:
                progress(len(chunk))
    if total is not None and size != total:
        raise _failure(card, f"{address} broke off after {size} of {total} bytes")
    if digest.hexdigest() != card.sha256:
        raise _failure(
            card,
            f"{address} sent another file than the one we know: {size} bytes with sha256 {digest.hexdigest()[:16]}..., "
            f"expected {card.sha256[:16]}...",
        )


@contextmanager
def _explained(card: Card, address: str, timeout: float) -> Iterator[None]:
    """Turn the ways a network fails into one sentence each."""
    try:
        yield
    except HTTPError as error:
        error.close()
        raise _failure(card, f"{address} answered {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        cause = error.reason if isinstance(error, URLError) else error
        if isinstance(cause, TimeoutError):
            raise _failure(card, f"{address} was silent for {timeout:g} seconds") from error
        raise _failure(card, f"{address} could not be read ({cause})") from error


def _failure(card: Card, what: str) -> FetchError:
    target = data_folder() / card.file
    return FetchError(f"dataset '{card.name}': {what}; try again later, or get it from {card.home} as {target}")
