"""Models in ONNX: onnxruntime says what they answer; dense networks are searched in torch and trees as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.adapters.adapter import Adapter, Call, How
from holdfast.models.adapters.output_spec import matched_classes
from holdfast.models.adapters.probing import rows_to_compare, says_the_same
from holdfast.models.adapters.seen import See, is_of
from holdfast.models.frameworks.onnx_graphs import prefix, translated, tree_node, trees_of
from holdfast.models.frameworks.torch_modules import Network, exact_of
from holdfast.models.trees.grown import Grown
from holdfast.models.trees.reading import checked_ensemble
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding

TYPES: dict[str, Any] = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
    "tensor(int32)": np.int32, "tensor(bool)": np.bool_, "tensor(string)": np.object_,
}  # fmt: skip
NUMBERS = ("tensor(float)", "tensor(double)", "tensor(float16)")
LABELS = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")


def knows(model: Any) -> bool:
    return is_of(model, "onnx", "ModelProto")


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    opened = _opened(model)
    how = _in_their_order(opened, encoding, how)
    if opened.takes_table(encoding):
        how = replace(how, takes="table")
    return network_of(model, opened).adapter(encoding, how, "ONNX model")


def helped(adapter: Adapter) -> WrappedModel:
    """With the same network in torch, or with its trees."""
    opened = _opened(adapter.model)
    network = opened.in_torch()
    exact = None if network is None else exact_of(adapter, network)
    if exact is not None and says_the_same(exact, adapter, rows_to_compare(adapter.encoding)):
        return WrappedModel(adapter, exact)
    return WrappedModel(adapter, ensemble=checked_ensemble(adapter, lambda: _trees(opened, adapter)))


def call_of(model: Any, way: str = "onnx") -> Call:
    return _opened(model).call


def network_of(model: Any, opened: Opened | None = None) -> Network:
    opened = _opened(model) if opened is None else opened
    return Network(model, "onnx", opened.call, opened.like, opened.in_torch())


def _opened(model: Any) -> Opened:
    graph, labels = without_dictionaries(model)
    session = session_of(graph)
    return Opened(graph, session, labels, _answer(session))


@dataclass(frozen=True, eq=False)
class Opened:
    """A graph, the session that runs it, and which of its outputs is asked for."""

    graph: Any
    session: Any
    labels: tuple[Any, ...]  # the classes in the order of the outputs, where the graph says
    output: str

    @cached_property
    def inputs(self) -> list[Any]:
        return list(self.session.get_inputs())

    @property
    def like(self) -> Tensor:
        """Of the dtype that its numbers have."""
        return torch.empty(0, dtype=torch.float64 if self.inputs[0].type == "tensor(double)" else torch.float32)

    def takes_table(self, encoding: Encoding) -> bool:
        """Whether it takes columns by their names, or text, rather than a matrix of numbers."""
        names = {graph_input.name for graph_input in self.inputs}
        if len(names) == 1 and self.inputs[0].type in NUMBERS and not names <= set(encoding.schema.names):
            return False
        unknown = sorted(names - set(encoding.schema.names))
        if unknown and len(names) > 1:
            raise ValueError(
                f"the ONNX model has the inputs {', '.join(unknown[:5])}, which are no columns of the schema; expected "
                "one input for all numbers, or one for each column with its name"
            )
        return True

    def call(self, given: Any) -> NDArray[Any]:
        answer: NDArray[Any] = self.session.run([self.output], self.fed(given))[0]
        return answer

    def fed(self, given: Any) -> dict[str, Any]:
        """A matrix for the one input, or a column for each."""
        first = self.inputs[0]
        if not isinstance(given, pd.DataFrame):
            return {first.name: given.detach().cpu().numpy().astype(TYPES[first.type])}
        if len(self.inputs) == 1 and first.name not in given:
            return {first.name: given.astype(str).to_numpy(dtype=object)}
        return {graph_input.name: _column(given[graph_input.name], graph_input.type) for graph_input in self.inputs}

    def in_torch(self) -> torch.nn.Module | None:
        """The same network in torch; None where it has other steps, or takes several inputs."""
        return None if len(self.inputs) > 1 else translated(self.graph, self.inputs[0].name, self.output)


def _column(column: pd.Series[Any], kind: str) -> NDArray[Any]:
    if kind not in TYPES:
        raise ValueError(f"the ONNX model takes '{column.name}' as {kind}; expected one of {', '.join(TYPES)}")
    text = kind == "tensor(string)"
    values = column.astype(str).to_numpy(dtype=object) if text else column.to_numpy(dtype=TYPES[kind])
    return values.reshape(-1, 1)


def session_of(graph: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # its errors are raised: no need to print them too
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # those of onnxruntime have no class in common
        raise ValueError(
            f"onnxruntime {onnxruntime.__version__} cannot run the ONNX model: {error}; update onnxruntime, or export "
            "the model for an older version of ONNX"
        ) from error


def without_dictionaries(model: Any) -> tuple[Any, tuple[Any, ...]]:
    """The graph without the last step of converters, a dictionary for every row; and the classes that it names."""
    import onnx

    graph = onnx.ModelProto()
    graph.CopyFrom(model)
    labels = labels_of(graph.graph)
    for node in [node for node in graph.graph.node if node.op_type == "ZipMap"]:
        graph.graph.node.remove(node)
        for output in graph.graph.output:
            if output.name == node.output[0]:
                output.Clear()
                output.name = node.input[0]
    return graph, labels


def labels_of(graph: Any) -> tuple[Any, ...]:
    from onnx import numpy_helper

    nodes = sorted(graph.node, key=lambda node: node.op_type != "ZipMap")
    for node in nodes:
        for attribute in node.attribute:
            if attribute.name in LABELS and (len(attribute.strings) or len(attribute.ints)):
                return tuple(text.decode() for text in attribute.strings) or tuple(attribute.ints)
    chosen = [node.input[0] for node in nodes if node.op_type == "ArrayFeatureExtractor"]  # by number, at the end
    kept = {tensor.name: tensor for tensor in graph.initializer}
    for name in [name for name in chosen if name in kept]:
        values = numpy_helper.to_array(kept[name]).reshape(-1).tolist()
        return tuple(value.decode() if isinstance(value, bytes) else value for value in values)
    return ()


def _answer(session: Any) -> str:
    """The output to ask for: numbers rather than labels."""
    outputs = session.get_outputs()
    return str(next((output for output in outputs if output.type in NUMBERS), outputs[0]).name)


def _in_their_order(opened: Opened, encoding: Encoding, how: How) -> How:
    """The classes that the graph names, unless the user has said."""
    if how.classes is not None or not opened.labels:
        return how
    classes = encoding.schema.classes
    _, places, _ = matched_classes(opened.labels, classes, "the ONNX model")
    return replace(how, classes=tuple(classes[places.index(output_index)] for output_index in range(len(classes))))


def _trees(opened: Opened, adapter: Adapter) -> tuple[See, Grown] | None:
    """The trees of the graph and what they see, whatever steps lie before them; None where there are none."""
    node = tree_node(opened.graph)
    if node is None:
        return None
    before = prefix(opened.graph, node.input[0])
    session = None if before is None else session_of(before)

    def see(table: pd.DataFrame) -> Any:
        rows = opened.fed(adapter.rows(table))
        return next(iter(rows.values())) if session is None else session.run([node.input[0]], rows)[0]

    return see, trees_of(node)
