"""Models in ONNX: what onnxruntime says is what counts; networks have gradients, trees are arrays."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from conftest import everything
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast import Encoding, Feature, MinCost, Schema, as_model, other_class, predict, read_model
from holdfast.models.files.untrusted import RefusedError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType  # noqa: E402


def assembled(nodes, inputs, outputs, weights=()):
    """A graph by hand; sizes by name."""
    ends = [
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [None, size]) for name, size in end.items()]
        for end in (inputs, outputs)
    ]
    graph = onnx.helper.make_graph(nodes, "graph", *ends, weights)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)


def converted(model, *types, zipmap=True):
    with warnings.catch_warnings(action="ignore"):
        return skl2onnx.to_onnx(model, initial_types=list(types), options=None if zipmap else {"zipmap": False})


@pytest.fixture(scope="module")
def fitted(encoding, rows):
    """name -> a model of encoded rows whose classes are the words of the schema."""
    x, words = rows[0].numpy(), everything()["outcome"].to_numpy()
    with warnings.catch_warnings(action="ignore"):
        return {
            name: model.fit(x, words)
            for name, model in {
                "network": MLPClassifier((8,), max_iter=60, random_state=0),
                "linear": make_pipeline(StandardScaler(), LogisticRegression()),
                "forest": RandomForestClassifier(5, max_depth=4, random_state=0),
                "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
            }.items()
        }


@pytest.mark.parametrize("name", ["network", "linear"])
def test_a_network_is_searched_in_torch(name, fitted, encoding, rows, tmp_path):
    graph = converted(fitted[name], ("x", FloatTensorType([None, encoding.width])))
    model = as_model(graph, encoding)
    assert "searched by its gradient" in repr(model)
    theirs = fitted[name].predict_proba(rows[0].numpy())
    np.testing.assert_allclose(model(rows[0]).softmax(1).numpy(), theirs, atol=1e-5)
    np.testing.assert_allclose(model.exact(rows[0]).softmax(1).numpy(), theirs, atol=1e-5)
    onnx.save(graph, tmp_path / "model.onnx")
    read = read_model(tmp_path / "model.onnx", encoding)
    x = rows[0][:8]
    found = MinCost(norm=1)(read, x, other_class(read, x), encoding.space.without_people())
    assert bool(found.found.all())
    assert (fitted[name].predict(found.point.numpy()) == np.array(["no", "yes"])[found.target.numpy()]).all()


@pytest.mark.parametrize("name", ["forest", "boosting"])
@pytest.mark.parametrize("zipmap", [True, False])
def test_trees_are_read(name, zipmap, fitted, encoding, rows):
    model = as_model(converted(fitted[name], ("x", FloatTensorType([None, encoding.width])), zipmap=zipmap), encoding)
    assert model.ensemble is not None
    theirs = fitted[name].predict_proba(rows[0].numpy())
    for says in (model, model.ensemble):
        np.testing.assert_allclose(says(rows[0]).softmax(1).numpy(), theirs, atol=1e-5)


def test_classes_in_another_order_are_matched_by_their_names(rows):
    """The schema has them the other way round than the alphabet, which converters follow."""
    table = everything().rename(columns={"outcome": "label"})
    features = (Feature("income", "real"), Feature("age", "integer"), Feature("debt", "integer"))
    turned = Encoding.fit(table, Schema(features, label="label", classes=("yes", "no")))
    x = turned.encode(table)
    own = LogisticRegression().fit(x.numpy(), table["label"])
    model = as_model(converted(own, ("x", FloatTensorType([None, 3]))), turned)
    assert (np.array(["yes", "no"])[predict(model, x).numpy()] == own.predict(x.numpy())).all()


def test_a_pipeline_of_named_columns(encoding, rows):
    table = everything()
    columns = make_column_transformer((OneHotEncoder(), ["job"]), ("passthrough", ["income", "age"]))
    pipeline = make_pipeline(columns, RandomForestClassifier(5, max_depth=4, random_state=0))
    pipeline.fit(table[["job", "income", "age"]], table["outcome"])
    kinds = {"job": StringTensorType, "income": FloatTensorType, "age": Int64TensorType}
    model = as_model(converted(pipeline, *((name, kind([None, 1])) for name, kind in kinds.items())), encoding)
    assert "given the table" in repr(model)
    assert model.ensemble is not None
    assert (np.array(["no", "yes"])[predict(model, rows[0]).numpy()] == pipeline.predict(table)).all()


def test_a_module_of_torch_as_onnx_is_the_module(encoding, rows):
    """Written by hand, as torch exports them: Gemm, Relu, Gemm, Sigmoid of one number."""
    torch.manual_seed(0)
    first, second = torch.nn.Linear(encoding.width, 6), torch.nn.Linear(6, 1)
    parts = {"w1": first.weight, "b1": first.bias, "w2": second.weight, "b2": second.bias}
    node = onnx.helper.make_node
    nodes = [
        node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
        node("Relu", ["h"], ["r"]),
        node("Gemm", ["r", "w2", "b2"], ["z"], transB=1),
        node("Sigmoid", ["z"], ["p"]),
    ]
    weights = [onnx.numpy_helper.from_array(part.detach().numpy(), name) for name, part in parts.items()]
    model = as_model(assembled(nodes, {"x": encoding.width}, {"p": 1}, weights), encoding)
    z = second(first(rows[0]).relu()).detach()[:, 0]
    torch.testing.assert_close(model.exact(rows[0]), torch.stack([-z / 2, z / 2], 1), atol=1e-5, rtol=1e-4)


def test_numbers_from_other_files_are_refused(encoding, tmp_path, fitted):
    graph = converted(fitted["network"], ("x", FloatTensorType([None, encoding.width])))
    (tmp_path / "secret").write_bytes(b"0" * 4096)
    tensor = graph.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.ClearField("float_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "secret"
    (tmp_path / "model.onnx").write_bytes(graph.SerializeToString())
    with pytest.raises(RefusedError, match="takes numbers from other files"):
        read_model(tmp_path / "model.onnx", encoding)


def test_inputs_that_are_no_columns_are_named(encoding):
    added = onnx.helper.make_node("Add", ["income", "height"], ["sum"])
    with pytest.raises(ValueError, match="inputs height, which are no columns of the schema"):
        as_model(assembled([added], {"income": 1, "height": 1}, {"sum": 1}), encoding)
