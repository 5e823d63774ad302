"""What is written is read back; what was changed in any way is refused."""

import json
import random

import pytest

from holdfast.utils.sealing import Kind, SealError, sealed, unsealed

NEW, OLD = Kind("thing", "thing", format=2, unsealed=1), Kind("thing", "thing", format=1, unsealed=1)
VALUE = {"rate": 0.1 + 0.2, "names": ["ü", "=1"], "more": {"2": None, "1": True}, "version": "9.1"}


def test_a_value_is_read_as_it_was_written():
    text = json.dumps(sealed(NEW, VALUE), indent=1)
    assert unsealed(NEW, text.encode(), "here") == VALUE
    assert json.loads(text)["format"] == 2


def test_every_flipped_bit_is_noticed_or_changes_nothing():
    whole = bytearray(json.dumps(sealed(NEW, VALUE), indent=1).encode())
    refused = 0
    for bit in range(8 * len(whole)):
        whole[bit // 8] ^= 1 << bit % 8
        try:
            assert unsealed(NEW, bytes(whole), "here") == VALUE
        except SealError as error:
            refused += str(error).startswith("here ")
        whole[bit // 8] ^= 1 << bit % 8
    assert refused > 8 * len(whole) - 20  # the hexadecimal digits of an escaped letter may be large or small


def test_values_from_before_there_were_checksums_are_read():
    assert unsealed(NEW, b'{"holdfast": "thing", "format": 1, "a": 3}', "here") == {"a": 3}
    assert unsealed(NEW, b'{"a": 3}', "here") == {"a": 3}


def test_a_newer_format_is_refused_with_the_version_to_get():
    newer = json.dumps(sealed(Kind("thing", "thing", 3, 1), VALUE)).encode()
    with pytest.raises(
        SealError, match="here has format 3, written by holdfast 9.1; this version reads up to format 2"
    ):
        unsealed(NEW, newer, "here")


@pytest.mark.parametrize(
    "text",
    [b"", b"null", b"[1]", b"\xff", b"[" * 100_000, b'{"holdfast": "other"}', b'{"holdfast": []}', b'{"format": 2}',
     b'{"format": 1.0}', b'{"format": true}', b'{"format": -1}', b'{"format": "1"}', b'{"checksum": "0"}'],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(SealError, match="here is not a valid thing"):
        unsealed(NEW, text, "here")


def test_numbers_keep_their_last_bit():
    draw = random.Random(0)
    numbers = [draw.random() * 10 ** draw.randrange(-300, 300) for _ in range(1000)]
    assert unsealed(NEW, json.dumps(sealed(NEW, {"numbers": numbers})).encode(), "here") == {"numbers": numbers}
