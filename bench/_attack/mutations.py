"""Random changes to model files that know the format: extreme fields, keys twice, children in other places."""

from __future__ import annotations

import json
import random
import re
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from typing import Any

import numpy as np

EXTREMES: tuple[Any, ...] = (
    -1, 0, 1, 2, 255, -(2**31), 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64, 10**7, 10**9, 10**30, 0.5, 1e308,
    -1e-320, "", "0", "-1", "9999999", "1e999", "nan", "inf", "\u0661", "x" * 5000, "\u2028", "\x00", None, True,
    [], {}, [[]], [0] * 1000, {"a": 1},
)  # fmt: skip
NAMES = (
    "os.system", "subprocess.Popen", "numpy.memmap", "builtins.eval", "keras.layers.Lambda", "numpy.ndarray",
    "sklearn.tree._tree.Tree", "builtins.dict", "functools.partial", "sklearn.pipeline.Pipeline",
)  # fmt: skip
Changed = tuple[bytes, str]


def mutated(suffix: str, contents: bytes, draw: random.Random) -> Changed:
    """Other contents, and what was done in words that are the same for every file."""
    if draw.random() < 0.1:
        return _of_bytes(contents, draw)
    return KINDS[suffix](contents, draw)


def _of_bytes(contents: bytes, draw: random.Random) -> Changed:
    place, end = sorted(draw.randrange(len(contents) + 1) for _ in range(2))
    match draw.randrange(4):
        case 0:
            return contents[: max(place, 1)], "cut"
        case 1:
            return contents[:place] + draw.randbytes(8) + contents[place + 8 :], "with other bytes"
        case 2:
            return contents[:end] + contents[place:], "with a piece twice"
    return contents[:place] + contents[end:] or b"{", "without a piece"


# ---- JSON: its values, wherever they are ----


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    found, left = [], [value]
    while left:
        held = left.pop()
        keys = list(held) if isinstance(held, dict) else range(len(held)) if isinstance(held, list) else ()
        found += [(held, key) for key in keys]
        left += [held[key] for key in keys]
    return found


def _json(contents: bytes, draw: random.Random) -> Changed:
    value = json.loads(contents)
    what = _change_value(value, draw)
    text = json.dumps(value)
    if draw.random() < 0.15:
        keys = re.findall(r'"\w+":', text)
        key = draw.choice(keys)
        text, what = text.replace(key, f"{key} {json.dumps(draw.choice(EXTREMES))}, {key}", 1), "with a key twice"
    elif draw.random() < 0.1:
        text, what = text.replace("_", "\\u005f"), f"{what}, and escaped"
    return text.encode(), what


def _change_value(value: Any, draw: random.Random) -> str:
    places = _places(value)
    held, key = draw.choice(places)
    match draw.randrange(5):
        case 0 | 1:
            held[key] = draw.choice(EXTREMES)
            return "with an extreme value"
        case 2:
            other, there = draw.choice(places)
            held[key], other[there] = other[there], held[key]
            if _endless(value):
                held[key], other[there] = other[there], held[key]
            return "with two values exchanged"
        case 3:
            del held[key]
            return "without a value"
    lists = [one for one in (inner[name] for inner, name in places) if isinstance(one, list) and one]
    if lists:
        chosen = draw.choice(lists)
        draw.shuffle(chosen) if draw.random() < 0.5 else chosen.insert(0, draw.choice(EXTREMES))
    return "with another list"


def _endless(value: Any) -> bool:
    try:
        json.dumps(value)
    except ValueError:
        return True
    return False


# ---- text of LightGBM ----


def _text(contents: bytes, draw: random.Random) -> Changed:
    lines = contents.decode().split("\n")
    number = draw.choice([place for place, line in enumerate(lines[:60]) if "=" in line])
    name, _, value = lines[number].partition("=")
    words = value.split(" ")
    match draw.randrange(6):
        case 0:
            words[draw.randrange(len(words))] = str(draw.choice(EXTREMES))
            what = "with an extreme value"
        case 1:
            draw.shuffle(words)
            what = "with a list in another order"
        case 2:
            words = words[1:] if draw.random() < 0.5 else [*words, words[0]]
            what = "with another length"
        case 3:
            lines.insert(number, f"{name}=9999" + draw.choice(["", "\n", "\u2028", "\x85", "\x0b", "\r", "\r\n"]))
            what = "with a field twice"
            number += 1
        case 4:
            other = draw.choice([place for place, line in enumerate(lines[:60]) if "=" in line])
            lines[other] = f"{lines[other].partition('=')[0]}={value}"
            what = "with the value of another field"
        case _:
            lines.insert(number, draw.choice(["", "\x00", "Tree=0", "end of trees", "tree", "\u2028"]))
            number += 1
            what = "with another line"
    lines[number] = f"{name}={' '.join(words)}"
    text = "\n".join(lines)
    return _resized(text).encode(), what


def _resized(text: str) -> str:
    """With the sizes of the trees, by which LightGBM finds them."""
    blocks = re.split(r"^(?=Tree=)", text.partition("end of trees")[0], flags=re.MULTILINE)[1:]
    sizes = " ".join(str(len(block.encode())) for block in blocks)
    return re.sub("tree_sizes=.*", f"tree_sizes={sizes}", text, count=1)


# ---- binary formats ----


def _ubjson(contents: bytes, draw: random.Random) -> Changed:
    """A length, or a number of a typed array."""
    arrays = list(re.finditer(rb"\[\$([lLdDUi])#L", contents))
    found = draw.choice(arrays)
    start = found.end()
    (count,) = struct.unpack(">q", contents[start : start + 8])
    if count == 0 or draw.random() < 0.3:
        size = draw.choice([0, 1, count + 1, 2**20, 2**31, 2**40, 2**62, -1])
        return contents[:start] + struct.pack(">q", size) + contents[start + 8 :], "with another length"
    width = {b"l": 4, b"L": 8, b"d": 4, b"D": 8, b"U": 1, b"i": 1}[found[1]]
    place = start + 8 + width * draw.randrange(count)
    new = draw.choice([bytes(width), b"\xff" * width, b"\x7f" + b"\xff" * (width - 1), draw.randbytes(width)])
    return contents[:place] + new[:width] + contents[place + width :], "with another number"


def _safetensors(contents: bytes, draw: random.Random) -> Changed:
    (size,) = struct.unpack("<Q", contents[:8])
    header, data = contents[8 : 8 + size], contents[8 + size :]
    if draw.random() < 0.15:
        announced = draw.choice([0, 1, size - 1, size + 1, 2**31, 2**63, 2**64 - 1])
        return struct.pack("<Q", announced) + header + data, "with another length of the header"
    if draw.random() < 0.2:
        named = json.loads(header)
        name = draw.choice(list(named))
        named[draw.choice(["\u00b2.weight", "9" * 50 + ".bias", "", "a", "__metadata__", "0.weight"])] = named.pop(name)
        header, what = json.dumps(named).encode(), "with another name"
    else:
        header, what = _json(header, draw)
    return struct.pack("<Q", len(header)) + header + data, what


def _onnx(contents: bytes, draw: random.Random) -> Changed:
    """A field of a message anywhere in the graph."""
    import onnx

    model = onnx.load_model_from_string(contents)
    messages, left = [], [model]
    while left:
        one = left.pop()
        messages.append(one)
        for field, value in one.ListFields():
            if field.message_type is not None:
                left += [value] if hasattr(value, "ListFields") else value
    if draw.random() < 0.3:
        graph = model.graph
        graph.node.add().CopyFrom(draw.choice(graph.node))
        graph.node[-1].op_type = draw.choice(
            ["Tile", "Expand", "Loop", "If", "Scan", "ConstantOfShape", "Gemm", "PyOp"]
        )
        return model.SerializeToString(), "with another step"
    message = draw.choice([one for one in messages if one.ListFields()])
    field, value = draw.choice(message.ListFields())
    if hasattr(value, "append") or hasattr(value, "add"):
        items = list(value)
        del value[:]
        value.extend(draw.choice([items * 2, items[1:], items[::-1]]))
        return model.SerializeToString(), "with another list"
    for extreme in draw.sample(EXTREMES, len(EXTREMES)):
        try:
            setattr(message, field.name, extreme)
        except (TypeError, ValueError, AttributeError):
            continue
        return model.SerializeToString(), "with an extreme value"
    message.ClearField(field.name)
    return model.SerializeToString(), "without a value"


# ---- archives ----


def _archive(contents: bytes, draw: random.Random, described: str) -> Changed:
    with zipfile.ZipFile(BytesIO(contents)) as archive:
        parts = [(name, archive.read(name)) for name in archive.namelist()]
    number = draw.randrange(len(parts))
    name, part = parts[number]
    chance = draw.random()
    if chance < 0.1:
        names = [described, "../" + name, "/" + name, name + ".pkl", "x" * 3000]
        parts[number], what = (draw.choice(names), part), "with another name of a part"
    elif chance < 0.15:
        parts.append((name, draw.choice(parts)[1]))
        what = "with a part twice"
    elif chance < 0.6 and name.endswith(".npy"):
        parts[number], what = (name, _array(part, draw)), "with another array"
    elif chance < 0.4 and name.endswith(".h5"):
        parts[number], what = (name, _of_bytes(part, draw)[0]), "with other weights"
    else:
        number = next(place for place, one in enumerate(parts) if one[0] == described)
        new, what = _description(parts[number][1], draw)
        parts[number] = (described, new)
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for one, inner in parts:
            archive.writestr(zipfile.ZipInfo(one), inner)
    return written.getvalue(), what


def _description(contents: bytes, draw: random.Random) -> Changed:
    if draw.random() < 0.5:
        return _json(contents, draw)
    value = json.loads(contents)
    named = [held for held, key in _places(value) if key in ("__class__", "class_name")]
    chosen, new = draw.choice(named), draw.choice(NAMES)
    module, _, name = new.rpartition(".")
    chosen.update({"class_name": name, "module": module} if "class_name" in chosen else
                  {"__class__": name, "__module__": module})  # fmt: skip
    if "__loader__" in chosen and draw.random() < 0.5:
        loaders = ["ConstructorFromReduceNode", "ObjectNode", "TypeNode", "FunctionNode", "NdArrayNode", "MethodNode"]
        chosen["__loader__"] = draw.choice(loaders)
    return json.dumps(value).encode(), "with another type"


def _array(contents: bytes, draw: random.Random) -> bytes:
    """An array of another shape or type, or with one extreme number, in any field of its records."""
    array = np.load(BytesIO(contents)).copy()
    if array.size and (array.dtype.names or draw.random() < 0.6):
        field = array[draw.choice(array.dtype.names)] if array.dtype.names else array
        value = draw.choice([-1, -2, -5, 0, 1, 2, 255, 10**6, 2**31 - 1, -(2**31), 2**62, -(2**62), np.nan, np.inf])
        with np.errstate(all="ignore"), suppress(OverflowError, ValueError, TypeError):
            field.reshape(-1)[draw.randrange(field.size)] = value  # a field that has one row or more is a view
    else:
        shapes = [array.reshape(-1)[:0], array.reshape(-1), np.zeros((*array.shape, 2), array.dtype)]
        array = draw.choice([*shapes, *(array.astype(kind) for kind in ("float16", "U8") if not array.dtype.names)])
    written = BytesIO()
    np.save(written, array)
    return written.getvalue()


KINDS: dict[str, Callable[[bytes, random.Random], Changed]] = {
    ".skops": lambda contents, draw: _archive(contents, draw, "schema.json"),
    ".keras": lambda contents, draw: _archive(contents, draw, "config.json"),
    ".txt": _text,
    ".json": _json,
    ".ubj": _ubjson,
    ".onnx": _onnx,
    ".safetensors": _safetensors,
}
