"""Hostile .onnx files: numbers of other files, functions that grow, and small descriptions of large values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _hostile.cases import SECRET, Hostile, pickled, zipped

HONEST = "honest.onnx"
OUTSIDE, SPARSE, LARGE = "takes numbers from other files", "sparse numbers", "too many numbers of few"
node = helper.make_node


def honest() -> dict[str, bytes]:
    return {HONEST: _bytes(_network())}


def hostile() -> Iterator[Hostile]:
    yield from _external()
    yield from _functions()
    yield from _large()
    yield from _steps()
    yield from _damaged()


def _network() -> onnx.ModelProto:
    weights = [
        numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(4, 2) / 8, "w"),
        numpy_helper.from_array(np.zeros(2, np.float32), "b"),
    ]
    return _model([node("Gemm", ["x", "w", "b"], ["z"]), node("Softmax", ["z"], ["y"])], weights, ends=True)


def _model(
    nodes: Sequence[Any], weights: Sequence[Any] = (), functions: Sequence[Any] = (), ends: bool = False
) -> onnx.ModelProto:
    """A graph from x to y; what the nodes make beside y is thrown away, after it was made."""
    given, said = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, size]) for name, size in (("x", 4), ("y", None))
    )
    all_nodes = [*nodes] if ends else [*nodes, node("Identity", ["x"], ["y"])]
    graph = helper.make_graph(all_nodes, "graph", [given], [said], list(weights))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def _bytes(model: onnx.ModelProto) -> bytes:
    return bytes(model.SerializeToString(deterministic=True))


# ---- numbers of other files ----


def _taken() -> TensorProto:
    """Numbers that lie in another file of the folder."""
    tensor = TensorProto(name="taken", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", SECRET
    return tensor


def _external() -> Iterator[Hostile]:
    def file(name: str, model: onnx.ModelProto, where: str, error: str = OUTSIDE) -> Hostile:
        return Hostile(f"outside-{name}.onnx", _bytes(model), f"takes numbers of another file in {where}", error)

    plain = [node("Relu", ["x"], ["r"])]
    model = _model(plain, [_taken()])
    yield file("weights", model, "its weights")
    model = _model([node("Add", ["x", "taken"], ["y"])], ends=True)
    model.graph.sparse_initializer.add(dims=[4], values=_taken(), indices=_numbers("places", 0, 1, 2, 3))
    yield file("sparse-values", model, "the values of sparse weights", "numbers")
    model = _model(plain)
    model.graph.sparse_initializer.add(dims=[4]).indices.CopyFrom(_taken())
    yield file("sparse-indices", model, "the places of sparse weights", "numbers")
    said = helper.make_tensor_value_info("taken", TensorProto.FLOAT, [4])
    branch = helper.make_graph([], "branch", [], [said], [_taken()])
    choice = node("If", ["yes"], ["t"], then_branch=branch, else_branch=branch)
    nodes = [choice, node("Add", ["x", "t"], ["y"])]
    model = _model(nodes, [numpy_helper.from_array(np.array(True), "yes")], ends=True)
    yield file("subgraph", model, "a graph inside it that has no nodes")
    model = _model(plain)
    attribute = model.graph.node[0].attribute.add(name="a", type=onnx.AttributeProto.SPARSE_TENSORS)
    attribute.sparse_tensors.add().indices.CopyFrom(_taken())
    yield file("attribute", model, "sparse numbers of a step", "numbers")
    body = [node("Constant", [], ["b"], value=_taken())]
    function = helper.make_function("own", "f", [], ["b"], body, [helper.make_opsetid("", 17)])
    yield file("function", _model(plain, functions=[function]), "a function")
    model = _model(plain)
    model.training_info.add().initialization.initializer.append(_taken())
    yield file("training", model, "what it says of its training")
    tensor = _taken()
    tensor.ClearField("data_location")
    yield file("silent", _model(plain, [tensor]), "weights that do not say so")
    tensor = _taken()
    tensor.external_data[0].value = "../../../../../../etc/passwd"
    yield file("path", _model(plain, [tensor]), "a folder far above")
    model = _model(plain)
    model.graph.sparse_initializer.add(
        dims=[2**40],
        values=numpy_helper.from_array(np.ones(1, np.float32), "s"),
        indices=numpy_helper.from_array(np.zeros(1, np.int64), "i"),
    )
    yield Hostile("sparse-large.onnx", _bytes(model), "is a million million numbers of which one is given", SPARSE)


# ---- functions ----


def _calling(name: str, *called: str) -> Any:
    """A function that calls others one after the other."""
    names = ["a", *(f"v{number}" for number in range(len(called) - 1)), "b"]
    steps = [
        node(one, [names[number]], [names[number + 1]], domain="" if one == "Relu" else "own")
        for number, one in enumerate(called)
    ]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, ["a"], ["b"], steps, opsets)


def _functions() -> Iterator[Hostile]:
    doubling = [_calling("f0", "Relu"), *(_calling(f"f{n}", f"f{n - 1}", f"f{n - 1}") for n in range(1, 27))]
    for file, functions, last, tries in (
        ("double", doubling, "f26", "has 26 functions of which each calls the last one twice"),
        ("circle", [_calling("f", "g"), _calling("g", "f")], "f", "has functions that call each other"),
        ("row", [_calling("f0", "Relu"), *(_calling(f"f{n}", f"f{n - 1}") for n in range(1, 300))], "f299",
         "has 300 functions that call one another in a row"),
    ):  # fmt: skip
        model = _model([node(last, ["x"], ["z"], domain="own")], functions=functions)
        yield Hostile(f"functions-{file}.onnx", _bytes(model), tries, "defines functions")


# ---- large values of small descriptions ----


def _numbers(name: str, *values: int) -> Any:
    return numpy_helper.from_array(np.array(values, dtype=np.int64), name)


def _large() -> Iterator[Hostile]:
    joins = ["x", *(f"j{number}" for number in range(40))]
    doubled = [
        node("Concat", [one, other], [made], axis=1) for one, other, made in zip(joins, joins, joins[1:], strict=False)
    ]
    scalars = [numpy_helper.from_array(np.array(value), name) for name, value in (("a", 0), ("s", 10**12), ("b", 1))]
    as_whole = node("Cast", ["x"], ["i"], to=TensorProto.INT64)
    products = [node("MatMul", [f"p{number}", f"p{number}"], [f"p{number + 1}"]) for number in range(4)]
    regressor = node("LinearRegressor", ["x"], ["z"], domain="ai.onnx.ml", targets=10**9, coefficients=[0.0])
    for file, nodes, weights, tries in (
        ("constant", [node("ConstantOfShape", ["s"], ["z"])], [_numbers("s", 100_000, 100_000)],
         "makes a constant of ten thousand million numbers"),
        ("expand", [node("Expand", ["x", "s"], ["z"])], [_numbers("s", 10**9, 1, 1)], "repeats its rows without end"),
        ("tile", [node("Tile", ["x", "s"], ["z"])], [_numbers("s", 1, 10**9)], "repeats its columns without end"),
        ("range", [node("Range", ["a", "s", "b"], ["z"])], scalars, "counts to a million million"),
        ("pad", [node("Pad", ["x", "s"], ["z"])], [_numbers("s", 0, 0, 0, 10**10)], "pads a row without end"),
        ("one-hot", [as_whole, node("OneHot", ["i", "s", "v"], ["z"])], [_numbers("s", 10**10), _numbers("v", 0, 1)],
         "makes ten thousand million columns of one"),
        ("joined", doubled, [], "joins a value to itself forty times"),
        ("products", [node("ConstantOfShape", ["s"], ["p0"]), *products], [_numbers("s", 3000, 3000)],
         "multiplies large matrices again and again"),
        ("targets", [regressor], [], "answers with a thousand million numbers"),
    ):  # fmt: skip
        yield Hostile(f"large-{file}.onnx", _bytes(_model(nodes, weights)), tries, LARGE)
    unknown = [as_whole, node("Reshape", ["i", "m"], ["f"]), node("Expand", ["x", "f"], ["z"])]
    contents = _bytes(_model(unknown, [_numbers("m", -1)]))
    yield Hostile("large-data.onnx", contents, "makes as many numbers as a person's row says", "nothing says how many")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**40], raw_data=bytes(16))
    yield Hostile("short.onnx", _bytes(_model([], [tensor])), "announces more weights than it holds", "are there")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-4, -1], raw_data=bytes(16))
    yield Hostile("negative.onnx", _bytes(_model([], [tensor])), "has weights of a negative shape", "have the shape")


# ---- steps, and files that are none ----


def _steps() -> Iterator[Hostile]:
    for kind, domain, tries in (
        ("Loop", "", "has a loop that may have no end"),
        ("PyOp", "com.microsoft", "calls a function of Python"),
        ("Relu", "mine", "calls a step of a library of its own"),
    ):
        contents = _bytes(_model([node(kind, ["x"], ["z"], domain=domain)]))
        yield Hostile(f"step-{kind.lower()}.onnx", contents, tries, f"has the step '{kind}'")


def _damaged() -> Iterator[Hostile]:
    contents = _bytes(_network())
    yield Hostile("cut.onnx", contents[: len(contents) // 2], "is cut in half", "is damaged")
    yield Hostile("archive.onnx", zipped({"model.onnx": contents}), "is an archive", "it is an archive")
    yield Hostile("pickle.onnx", pickled(4), "is a pickle that runs a program", "is a pickle")
    deep = b""
    for _ in range(500):  # an attribute with a graph with a node with an attribute
        for field in (b"\x32", b"\x2a", b"\x0a"):
            deep = field + _varint(len(deep)) + deep
    yield Hostile("deep.onnx", b"\x3a" + _varint(len(deep)) + deep, "nests graphs without end", "is damaged")


def _varint(number: int) -> bytes:
    written = b""
    while number > 127:
        written, number = written + bytes([number % 128 + 128]), number // 128
    return written + bytes([number])
