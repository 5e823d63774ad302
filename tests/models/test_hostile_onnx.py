"""ONNX files made to harm: numbers of other files, functions that grow, and small descriptions of large values."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest

from holdfast.models.files.reading import read_own
from holdfast.models.files.untrusted import RefusedError

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, inliner, numpy_helper  # noqa: E402

SECONDS = 5
node = helper.make_node


def built(nodes, weights=(), functions=(), width=4, domains=()):
    given, said = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, size])
        for name, size in (("x", width), ("y", None))
    )
    graph = helper.make_graph([*nodes, node("Identity", ["x"], ["y"])], "graph", [given], [said], list(weights))
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in ("own", *domains))]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def outside():
    """A tensor whose numbers lie in another file of the folder."""
    tensor = TensorProto(name="taken", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "secret"
    return tensor


def constant(name, *values, kind=np.int64):
    return numpy_helper.from_array(np.array(values, dtype=kind), name)


def refused(model, folder, match):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    start = time.perf_counter()
    with pytest.raises(RefusedError, match=match) as error:
        read_own(path)
    assert str(path) in str(error.value)
    assert time.perf_counter() - start < SECONDS


# ---- numbers of other files ----


def in_sparse_values(model):
    model.graph.sparse_initializer.add(dims=[4]).values.CopyFrom(outside())


def in_sparse_indices(model):
    model.graph.sparse_initializer.add(dims=[4]).indices.CopyFrom(outside())


def in_a_graph_without_nodes(model):
    attribute = model.graph.node[0].attribute.add(name="body", type=onnx.AttributeProto.GRAPH)
    attribute.g.initializer.append(outside())


def in_a_sparse_attribute(model):
    attribute = model.graph.node[0].attribute.add(name="a", type=onnx.AttributeProto.SPARSE_TENSOR)
    attribute.sparse_tensor.values.CopyFrom(outside())


def in_sparse_attributes(model):
    attribute = model.graph.node[0].attribute.add(name="a", type=onnx.AttributeProto.SPARSE_TENSORS)
    attribute.sparse_tensors.add().indices.CopyFrom(outside())


def in_a_function(model):
    body = [node("Constant", [], ["b"], value=outside())]
    model.functions.append(helper.make_function("own", "f", [], ["b"], body, [helper.make_opsetid("", 17)]))


def in_a_default_of_a_function(model):
    function = helper.make_function("own", "f", ["a"], ["b"], [node("Relu", ["a"], ["b"])], [])
    function.attribute_proto.add(name="a", type=onnx.AttributeProto.TENSOR).t.CopyFrom(outside())
    model.functions.append(function)


def in_training(model):
    model.training_info.add().initialization.initializer.append(outside())


def in_the_algorithm_of_training(model):
    model.training_info.add().algorithm.initializer.append(outside())


def without_saying_that_it_is(model):
    tensor = outside()
    tensor.ClearField("data_location")
    model.graph.initializer.append(tensor)


@pytest.mark.parametrize(
    "place",
    [
        in_sparse_values, in_sparse_indices, in_a_graph_without_nodes, in_a_sparse_attribute, in_sparse_attributes,
        in_a_function, in_a_default_of_a_function, in_training, in_the_algorithm_of_training, without_saying_that_it_is,
    ],
    ids=lambda place: place.__name__,
)  # fmt: skip
def test_numbers_of_another_file_are_refused_wherever_they_are_named(place, tmp_path):
    (tmp_path / "secret").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    model = built([node("Relu", ["x"], ["r"])])
    place(model)
    refused(model, tmp_path, "takes numbers from other files|sparse numbers")


# ---- functions ----


def calling(name, *called):
    """A function that calls others one after the other."""
    names = ["a", *(f"v{place}" for place in range(len(called) - 1)), "b"]
    steps = [
        node(one, [names[place]], [names[place + 1]], domain="" if one == "Relu" else "own")
        for place, one in enumerate(called)
    ]
    return helper.make_function(
        "own", name, ["a"], ["b"], steps, [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    )


FUNCTIONS = {
    "double": [
        calling("f0", "Relu"),
        *(calling(f"f{place}", f"f{place - 1}", f"f{place - 1}") for place in range(1, 27)),
    ],
    "in a circle": [calling("f26", "g"), calling("g", "f26")],
    "once": [calling("f26", "Relu")],
}


@pytest.mark.parametrize("functions", FUNCTIONS)
def test_functions_are_refused_until_they_are_written_out(functions, tmp_path):
    refused(built([node("f26", ["x"], ["z"], domain="own")], functions=FUNCTIONS[functions]), tmp_path, "inline_local")


def test_a_function_that_is_written_out_is_read(tmp_path):
    model = built([node("f", ["x"], ["z"], domain="own")], functions=[calling("f", "Relu")])
    onnx.save(inliner.inline_local_functions(model), tmp_path / "a.onnx")
    assert read_own(tmp_path / "a.onnx").graph.node[0].op_type == "Relu"


# ---- large values of small descriptions ----


def joined(times):
    """A value joined to itself again and again."""
    names = ["x", *(f"j{place}" for place in range(times))]
    return [node("Concat", [one, one], [other], axis=1) for one, other in pairwise(names)]


HOSTILE = {
    "ConstantOfShape": ([node("ConstantOfShape", ["s"], ["z"])], [constant("s", 100_000, 100_000)]),
    "Expand": ([node("Expand", ["x", "s"], ["z"])], [constant("s", 1_000_000_000, 1, 1)]),
    "Tile": ([node("Tile", ["x", "s"], ["z"])], [constant("s", 1, 1_000_000_000)]),
    "Range": (
        [node("Range", ["a", "s", "b"], ["z"])],
        [numpy_helper.from_array(np.array(v), k) for k, v in (("a", 0), ("s", 10**12), ("b", 1))],
    ),
    "Pad": ([node("Pad", ["x", "s"], ["z"])], [constant("s", 0, 0, 0, 10**10)]),
    "OneHot": (
        [node("Cast", ["x"], ["i"], to=7), node("OneHot", ["i", "s", "v"], ["z"])],
        [constant("s", 10**10), constant("v", 0, 1)],
    ),
    "a shape from the data": (
        [node("Cast", ["x"], ["i"], to=7), node("Reshape", ["i", "m"], ["f"]), node("Expand", ["x", "f"], ["z"])],
        [constant("m", -1)],
    ),
    "a column times a row": (
        [node("Mul", ["c", "r"], ["z"])],
        [
            numpy_helper.from_array(np.zeros((100_000, 1), np.float32), "c"),
            numpy_helper.from_array(np.zeros((1, 100_000), np.float32), "r"),
        ],
    ),
    "what is not zero, times itself": (
        [
            node("ConstantOfShape", ["s"], ["o"], value=constant("v", 1)),
            node("NonZero", ["o"], ["n"]),
            node("Transpose", ["n"], ["t"]),
            node("Mul", ["n", "t"], ["z"]),
        ],
        [constant("s", 1_000_000)],
    ),
    "joined to itself": (joined(40), []),
    "many products": (
        [
            node("ConstantOfShape", ["s"], ["p0"]),
            *(node("MatMul", [f"p{i}", f"p{i}"], [f"p{i + 1}"]) for i in range(4)),
        ],
        [constant("s", 3000, 3000)],
    ),
    "classes of trees": (
        [node("LinearRegressor", ["x"], ["z"], domain="ai.onnx.ml", targets=10**9, coefficients=[0.0])],
        [],
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_large_values_are_refused_before_they_are_made(name, tmp_path):
    nodes, weights = HOSTILE[name]
    refused(built(nodes, weights, domains=["ai.onnx.ml"]), tmp_path, "too many numbers of few|nothing says how")


def test_a_shape_that_the_numbers_do_not_fill_is_refused(tmp_path):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**40], raw_data=bytes(16))
    refused(built([], [tensor]), tmp_path, "and 16 are there")
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[-4, -1], raw_data=bytes(16))
    refused(built([], [tensor]), tmp_path, "should have the shape")


@pytest.mark.parametrize(
    ("kind", "domain"), [("Loop", ""), ("Scan", ""), ("RandomNormal", ""), ("PyOp", "com.microsoft"), ("Relu", "mine")]
)
def test_a_step_that_is_not_known_is_refused(kind, domain, tmp_path):
    model = built([node(kind, ["x"], ["z"], domain=domain)])
    refused(model, tmp_path, f"has the step '{kind}'.*as_model")
