"""Graphs of ONNX step by step: dense networks as torch modules, ensembles of trees as arrays."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from holdfast.models.adapters.probing import SAME_PROBABILITY
from holdfast.models.trees.grown import Grown, UnreadableError

LOG = logging.getLogger(__name__)
Attributes = Mapping[str, Any]
Step = Callable[..., Tensor]

# ---- dense networks ----


def translated(graph: Any, given: str, output: str) -> nn.Module | None:
    """The steps from one input to one output in torch; None where one of them is not known here."""
    from onnx import helper, numpy_helper

    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.graph.initializer}
    steps: list[tuple[Step, Attributes, list[str], str]] = []
    wanted, made = {output}, {given, ""}
    for node in reversed(graph.graph.node):  # which lie in the order in which they can be run
        for output_index, name in enumerate(node.output):
            if name not in wanted:
                continue
            attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
            if node.op_type == "Constant" and "value" in attributes:
                constants[name] = numpy_helper.to_array(attributes["value"])
                continue
            if (node.op_type, output_index) not in STEPS:
                LOG.info("the ONNX model is not searched in torch: no step %s of its graph is known", node.op_type)
                return None
            steps.append((STEPS[node.op_type, output_index], attributes, list(node.input), name))
            wanted |= set(node.input)
            made.add(name)
    return None if wanted - made - constants.keys() else Steps(steps[::-1], constants, given, output).eval()


class Steps(nn.Module):
    """A graph, run step by step."""

    def __init__(
        self,
        steps: list[tuple[Step, Attributes, list[str], str]],
        constants: dict[str, NDArray[Any]],
        given: str,
        output: str,
    ) -> None:
        super().__init__()
        self.steps, self.given, self.output = steps, given, output
        self.names = {name: f"constant_{number}" for number, name in enumerate(constants)}
        for name, value in constants.items():
            if value.dtype.kind in "fiub":
                self.register_buffer(self.names[name], torch.from_numpy(np.array(value)))

    def forward(self, x: Tensor) -> Tensor:
        values: dict[str, Tensor | None] = {name: getattr(self, buffer, None) for name, buffer in self.names.items()}
        values[self.given] = x
        values[""] = None  # an argument that is left out
        for step, attributes, inputs, name in self.steps:
            values[name] = step(attributes, *(values[input_name] for input_name in inputs))
        answer = values[self.output]
        assert answer is not None
        return answer


def _gemm(how: Attributes, a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
    product: Tensor = (a.T if how.get("transA") else a) @ (b.T if how.get("transB") else b) * how.get("alpha", 1.0)
    return product if c is None else product + c * how.get("beta", 1.0)


def _reshape(how: Attributes, x: Tensor, shape: Tensor) -> Tensor:
    sizes = [x.shape[axis] if size == 0 else size for axis, size in enumerate(shape.tolist())]
    return x.reshape([len(x), *sizes[1:]] if sizes[0] == 1 and len(x) > 1 else sizes)


def _flatten(how: Attributes, x: Tensor) -> Tensor:
    if how.get("axis", 1) != 1:
        raise ValueError("rows are flattened into one another")
    return x.reshape(len(x), -1)


def _batch_normalization(
    how: Attributes, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor
) -> Tensor:
    return (x - mean) / torch.sqrt(variance + how.get("epsilon", 1e-5)) * scale + bias


def _linear_classifier(how: Attributes, x: Tensor) -> Tensor:
    intercepts = torch.tensor(how["intercepts"]).to(x)
    scores = x @ torch.tensor(how["coefficients"]).to(x).reshape(len(intercepts), -1).T + intercepts
    last: dict[bytes, Callable[[Tensor], Tensor]]
    last = {b"LOGISTIC": torch.sigmoid, b"SOFTMAX": lambda z: torch.softmax(z, 1), b"NONE": lambda z: z}
    return last[how.get("post_transform", b"NONE")](scores)


def _normalizer(how: Attributes, x: Tensor) -> Tensor:
    if how.get("norm") != b"L1":
        raise ValueError("it normalises by another norm")
    return x / x.abs().sum(1, keepdim=True)


def _cast(how: Attributes, x: Tensor) -> Tensor:
    kinds = {1: torch.float32, 11: torch.float64}
    return x.to(kinds[how["to"]])


def _clip(how: Attributes, x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    return x if low is None and high is None else torch.clamp(x, low, high)


STEPS: dict[tuple[str, int], Step] = {
    ("Add", 0): lambda how, a, b: a + b,
    ("BatchNormalization", 0): _batch_normalization,
    ("Cast", 0): _cast,
    ("Clip", 0): _clip,
    ("Concat", 0): lambda how, *parts: torch.cat(parts, how["axis"]),
    ("Div", 0): lambda how, a, b: a / b,
    ("Dropout", 0): lambda how, x, *rest: x,
    ("Elu", 0): lambda how, x: nn.functional.elu(x, how.get("alpha", 1.0)),
    ("Flatten", 0): _flatten,
    ("Gelu", 0): lambda how, x: nn.functional.gelu(x, approximate=how.get("approximate", b"none").decode()),
    ("Gemm", 0): _gemm,
    ("Identity", 0): lambda how, x: x,
    ("LeakyRelu", 0): lambda how, x: nn.functional.leaky_relu(x, how.get("alpha", 0.01)),
    ("LinearClassifier", 1): _linear_classifier,
    ("LogSoftmax", 0): lambda how, x: torch.log_softmax(x, how.get("axis", -1)),
    ("MatMul", 0): lambda how, a, b: a @ b,
    ("Mul", 0): lambda how, a, b: a * b,
    ("Neg", 0): lambda how, x: -x,
    ("Normalizer", 0): _normalizer,
    ("Relu", 0): lambda how, x: x.relu(),
    ("Reshape", 0): _reshape,
    ("Scaler", 0): lambda how, x: (x - torch.tensor(how["offset"]).to(x)) * torch.tensor(how["scale"]).to(x),
    ("Sigmoid", 0): lambda how, x: torch.sigmoid(x),
    ("Softmax", 0): lambda how, x: torch.softmax(x, how.get("axis", -1)),
    ("Softplus", 0): lambda how, x: nn.functional.softplus(x),
    ("Sub", 0): lambda how, a, b: a - b,
    ("Tanh", 0): lambda how, x: x.tanh(),
}

# ---- trees ----

MODES = {b"BRANCH_LEQ": np.less_equal, b"BRANCH_LT": np.less}


def tree_node(graph: Any) -> Any:
    """The one ensemble of trees in a graph; None where there is none, or more happens to its answers."""
    nodes = [node for node in graph.graph.node if node.op_type == "TreeEnsembleClassifier"]
    return nodes[0] if len(nodes) == 1 else None


def prefix(graph: Any, name: str) -> Any:
    """The graph up to one of its values; None where that is what it is given."""
    import onnx

    if name in {graph_input.name for graph_input in graph.graph.input}:
        return None
    part = onnx.ModelProto()
    part.CopyFrom(graph)
    del part.graph.output[:]
    part.graph.output.append(onnx.ValueInfoProto(name=name))
    return part


def trees_of(node: Any) -> Grown:
    """The trees of a node; outputs are in the order of its classes."""
    from onnx import helper

    how = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    modes = set(how["nodes_modes"]) - {b"LEAF"}
    transform = how.get("post_transform", b"NONE")
    if len(modes) > 1 or not modes <= set(MODES) or transform not in (b"NONE", b"LOGISTIC", b"SOFTMAX"):
        raise UnreadableError(f"its nodes are {modes}, its last step {transform!r}")
    below = MODES[next(iter(modes), b"BRANCH_LEQ")]
    inner = np.array([mode != b"LEAF" for mode in how["nodes_modes"]])
    trees = how["nodes_treeids"]
    index = {pair: number for number, pair in enumerate(zip(trees, how["nodes_nodeids"], strict=True))}
    left, right = (
        [index[tree, child] if is_inner else 0 for tree, child, is_inner in zip(trees, how[name], inner, strict=True)]
        for name in ("nodes_truenodeids", "nodes_falsenodeids")
    )
    classes = len(how.get("classlabels_strings", [])) or len(how.get("classlabels_int64s", []))
    single = classes == 2 and len(set(how["class_ids"])) == 1
    value = np.zeros((len(trees), 1 if single else classes))
    leaves = [index[pair] for pair in zip(how["class_treeids"], how["class_nodeids"], strict=True)]
    np.add.at(value, (leaves, 0 if single else how["class_ids"]), how["class_weights"])
    base = np.zeros(value.shape[1])
    given = how.get("base_values", ())[: len(base)]
    base[: len(given)] = given
    made = Grown.of(
        inner,
        how["nodes_featureids"],
        how["nodes_values"],
        how.get("nodes_missing_value_tracks_true") or np.zeros(len(trees)),
        left,
        right,
        value,
        link="probability" if transform == b"NONE" else "logit",
        below=lambda numbers, thresholds: below(numbers.astype(np.float32), thresholds.astype(np.float32)),
        rounding=SAME_PROBABILITY,
    )
    return replace(made, roots=np.unique(trees, return_index=True)[1], base=base)
