"""How large the values of an ONNX graph become, before onnxruntime makes any of them.

A few bytes can ask for any amount: a constant of a given shape, a column times a row, a value joined to itself thirty
times. Shapes are therefore worked out for a few rows by the shape inference of ONNX, on a twin of the graph that holds
no weights; where that cannot tell, the size is bounded by the sizes of what the step is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

BATCH_ROWS = 64  # that a batch is taken to have where the graph does not say
MOST_VALUES = 50_000_000  # in all values of a graph together
MOST_WORK = 10**10  # multiplications and values
MOST_SHAPE_NUMBERS = 1024  # numbers of a tensor that may be a shape

# no more values than they are given
NARROW = frozenset({
    "Abs", "Acos", "Acosh", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "BitwiseNot",
    "Cast", "CastLike", "Ceil", "Celu", "Clip", "Compress", "Concat", "Constant", "Cos", "Cosh", "CumProd", "CumSum",
    "Det", "Dropout", "Elu", "Erf", "Exp", "Flatten", "Floor", "Gelu", "GlobalAveragePool", "GlobalMaxPool",
    "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "InstanceNormalization", "IsInf", "IsNaN",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish",
    "Neg", "Not", "PRelu", "RMSNormalization", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu",
    "Reshape", "ReverseSequence", "Round", "Scatter", "ScatterElements", "ScatterND", "Selu", "Shape", "Shrink",
    "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Slice", "Softmax", "Softplus", "Softsign", "Split", "Sqrt", "Squeeze",
    "StringNormalizer", "Swish", "Tan", "Tanh", "ThresholdedRelu", "TopK", "Transpose", "Trilu", "Unsqueeze",
})  # fmt: skip
# no more values than the product of what they are given
WIDE = frozenset({
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "DequantizeLinear", "Div",
    "DynamicQuantizeLinear", "Einsum", "Equal", "Gather", "GatherElements", "GatherND", "Gemm", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "MatMul", "MatMulInteger", "Max", "Mean", "Min", "Mod", "Mul", "NonZero",
    "Or", "Pow", "QLinearMatMul", "QuantizeLinear", "Sub", "Sum", "Where", "Xor",
})  # fmt: skip
# as many as a number among their arguments says, so that it must be known
MADE = frozenset({"ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Tile"})
LEARNED = frozenset({
    "ArrayFeatureExtractor", "Binarizer", "CategoryMapper", "FeatureVectorizer", "Imputer", "LabelEncoder",
    "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder", "SVMClassifier", "SVMRegressor", "Scaler",
    "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "ZipMap",
})  # fmt: skip
KNOWN_STEPS = {("", name) for name in NARROW | WIDE | MADE} | {("ai.onnx.ml", name) for name in LEARNED}

PRODUCTS = frozenset({"Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"})
SAME_SHAPE = frozenset({"Binarizer", "CategoryMapper", "Imputer", "LabelEncoder", "Normalizer", "Scaler"})
LABELS = (
    "base_values", "cats_int64s", "cats_strings", "classlabels_int64s", "classlabels_ints", "classlabels_strings",
    "inputdimensions", "intercepts",
)  # fmt: skip
Shape = tuple[int, ...]
Shapes = dict[str, tuple[int, Shape]]  # of values: the type of their numbers, and their sizes


def weigh(model: Any) -> None:
    """Raise `TooMuchError` where a graph asks for more values, or more work, than a model of tables."""
    nodes, known = _inferred(model)
    counts = {name: _count(shape) for name, (_, shape) in known.items()}
    values = work = 0
    for node in nodes:
        inputs = [counts.get(name, 1) for name in node.input if name]
        for name in node.output:
            counts[name] = counts[name] if name in known else _bound(node, inputs)
            values += counts[name]
        work += _work(node, inputs, [counts[name] for name in node.output], known)
        if values > MOST_VALUES or work > MOST_WORK:
            raise TooMuchError(f"the step {node.op_type} makes too many numbers of few")


def _inferred(model: Any) -> tuple[list[Any], Shapes]:
    """The steps of the twin in their order, and the shapes that are known in full."""
    import onnx

    twin, large = onnx.GraphProto(name="twin"), {}
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= MOST_SHAPE_NUMBERS:
            twin.initializer.append(tensor)
        else:
            large[tensor.name] = tensor.data_type, tuple(tensor.dims)
    for node in model.graph.node:
        constant = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        if node.op_type == "Constant" and constant is not None and math.prod(constant.dims) > MOST_SHAPE_NUMBERS:
            large[node.output[0]] = constant.data_type, tuple(constant.dims)
        else:
            twin.node.extend(_twins(node))
    small = {tensor.name: (tensor.data_type, tuple(tensor.dims)) for tensor in twin.initializer}
    outside = {given.name: _typed(given) for given in model.graph.input if given.name not in small} | large
    for name, (kind, shape) in outside.items():
        twin.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
    for name, sizes in ((FLAT, [-1]), (ONE_MORE, [0, 0, 1])):
        twin.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(sizes)], sizes))
    small_model = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=twin)
    inferred = onnx.shape_inference.infer_shapes(small_model, data_prop=True).graph
    found = {known.name: _typed(known) for known in inferred.value_info if _is_known(known)}
    return list(inferred.node), found | outside | small


class TooMuchError(Exception):
    pass


def _typed(value: Any) -> tuple[int, Shape]:
    """The type and shape of an input; what it leaves open is a batch of rows."""
    tensor = value.type.tensor_type
    return tensor.elem_type or 1, tuple(size.dim_value or BATCH_ROWS for size in tensor.shape.dim)


def _is_known(value: Any) -> bool:
    tensor = value.type.tensor_type
    return tensor.HasField("shape") and all(size.HasField("dim_value") for size in tensor.shape.dim)


def _count(shape: Shape) -> int:
    """A size of 0 counts as 1: a later step can take it away."""
    return math.prod(max(size, 1) for size in shape)


def _bound(node: Any, inputs: list[int]) -> int:
    if node.op_type in MADE:
        raise TooMuchError(f"nothing says how many numbers the step {node.op_type} makes")
    return math.prod(inputs) if node.op_type in WIDE else max(sum(inputs), 1)


def _work(node: Any, inputs: list[int], outputs: list[int], known: Shapes) -> int:
    if node.op_type == "Einsum":
        return math.prod(inputs)
    if node.op_type not in PRODUCTS:
        return sum(outputs)
    _, shape = known.get(node.input[0], (1, ()))
    return sum(outputs) * (max(shape, default=1) if shape else inputs[0])


# ---- the twin of a step of ai.onnx.ml, for which there is no shape inference ----

FLAT, ONE_MORE = "the shape of a row", "the shape of a column more"  # no converter gives such names


def _twins(node: Any) -> Iterator[Any]:
    """Steps of ONNX itself whose values have the shapes of this step's."""
    from onnx import helper

    if node.domain != "ai.onnx.ml":
        yield node
        return
    first, made = node.input[0], list(node.output)
    match node.op_type:
        case "ZipMap":  # dictionaries, for nobody but the caller
            return
        case "FeatureVectorizer":
            yield helper.make_node("Concat", list(node.input), made, axis=1)
        case "ArrayFeatureExtractor":
            yield helper.make_node("Reshape", [node.input[1], FLAT], [f"{made[0]} flat"])
            yield helper.make_node("Gather", [first, f"{made[0]} flat"], made, axis=-1)
        case name if name in SAME_SHAPE:
            yield helper.make_node("Cast", [first], made, to=_kind(node))
        case "OneHotEncoder":
            yield helper.make_node("Cast", [first], [f"{made[0]} cast"], to=1)
            yield helper.make_node("Reshape", [f"{made[0]} cast", ONE_MORE], [f"{made[0]} narrow"])
            yield from _widened(f"{made[0]} narrow", made[0], _classes(node))
        case _:
            yield from _scores(node)


def _kind(node: Any) -> int:
    """The type of the numbers that a step makes: of a LabelEncoder, that of the list it takes them from."""
    kinds = {"values_int64s": 7, "values_strings": 8, "cats_int64s": 7, "values_floats": 1}
    return next((kinds[attribute.name] for attribute in node.attribute if attribute.name in kinds), 1)


def _scores(node: Any) -> Iterator[Any]:
    """A number for every row and class, after the label of every row where that is an output too."""
    from onnx import helper

    scores, labels = node.output[-1], node.output[:-1]
    for label in labels:
        yield helper.make_node("ArgMax", [node.input[0]], [label], axis=1, keepdims=0)
    yield helper.make_node("ArgMax", [node.input[0]], [f"{scores} row"], axis=1, keepdims=1)
    yield helper.make_node("Cast", [f"{scores} row"], [f"{scores} narrow"], to=1)
    yield from _widened(f"{scores} narrow", scores, _classes(node))


def _widened(name: str, made: str, size: int) -> Iterator[Any]:
    from onnx import TensorProto, helper

    shape, weights = f"{made} shape", f"{made} weights"
    value = helper.make_tensor(shape, TensorProto.INT64, [2], [1, size])
    yield helper.make_node("Constant", [], [shape], value=value)
    yield helper.make_node("ConstantOfShape", [shape], [weights])
    yield helper.make_node("MatMul", [name, weights], [made])


def _classes(node: Any) -> int:
    labels = [attribute for attribute in node.attribute if attribute.name in LABELS]
    lists = [len(label.ints) + len(label.strings) + len(label.floats) for label in labels]
    numbers = [int(attribute.i) for attribute in node.attribute if attribute.name in ("n_targets", "targets")]
    return max(2, *lists, *numbers)
