"""Models of Keras 3: on torch they have gradients; on another backend they are asked alone."""

from __future__ import annotations

import json
import os
import zipfile
from functools import partial

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pytest
import torch

from holdfast import MinCost, as_model, other_class, predict, read_model
from holdfast.models.adapters.adapter import How
from holdfast.models.files.untrusted import RefusedError
from holdfast.models.frameworks.keras_models import asked_by_keras
from holdfast.models.frameworks.torch_modules import Network
from holdfast.models.wrapped import WrappedModel

keras = pytest.importorskip("keras")
pytestmark = [
    pytest.mark.skipif(keras.backend.backend() != "torch", reason="Keras was started on another backend"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # Keras's own
]


def network(width, *last):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(8, "relu"), keras.layers.BatchNormalization(), keras.layers.Dropout(0.5), *last]
    return keras.Sequential([keras.Input((width,)), *layers])


@pytest.fixture(scope="module")
def trained(encoding, rows):
    """One probability of 'yes'."""
    model = network(encoding.width, keras.layers.Dense(1, "sigmoid"))
    model.compile("adam", "binary_crossentropy")
    model.fit(rows[0].numpy(), rows[1].numpy(), epochs=30, verbose=0)
    return model


def test_a_model_on_torch_is_asked_and_searched_as_it_is(trained, encoding, rows, tmp_path):
    trained.save(tmp_path / "model.keras")
    share = trained.predict(rows[0].numpy(), verbose=0)[:, 0]
    for model in (as_model(trained, encoding), read_model(tmp_path / "model.keras", encoding)):
        assert "of Keras on torch" in repr(model)
        assert "gives one probability, of 'yes'" in repr(model)
        np.testing.assert_allclose(model(rows[0]).softmax(1)[:, 1].numpy(), share, atol=1e-6)
        np.testing.assert_allclose(model.exact(rows[0]).softmax(1)[:, 1].detach().numpy(), share, atol=1e-6)
    x = rows[0][:8]
    found = MinCost(norm=1)(model, x, other_class(model, x), encoding.space.without_people())
    there = found.found.numpy()
    assert there.mean() >= 0.5  # Keras trains another network each time, and for some there is nothing to find
    said = trained.predict(found.point.numpy(), verbose=0)[:, 0] > 0.5
    assert (said == found.target.bool().numpy())[there].all()


def test_a_softmax_is_searched_by_its_logits(encoding, rows):
    keras.utils.set_random_seed(0)
    layers = keras.layers.Dense(8, "tanh"), keras.layers.Dense(2)
    model = keras.Sequential(
        [keras.Input((encoding.width,)), *layers, keras.layers.Rescaling(300.0), keras.layers.Softmax()]
    )
    read = as_model(model, encoding)
    x = rows[0].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(read.exact(x)[:, 0].sum(), x)
    assert bool((gradient != 0).any(1).all())


def test_on_another_backend_keras_is_asked(trained, encoding, rows):
    """The way of other backends, on this one."""
    network = Network(trained, "keras", partial(asked_by_keras, trained), None, None)
    model = WrappedModel(network.adapter(encoding, How(outputs="probabilities"), "model"))
    share = trained.predict(rows[0].numpy(), verbose=0)[:, 0]
    np.testing.assert_allclose(model(rows[0]).softmax(1)[:, 1].numpy(), share, atol=1e-6)
    assert not model.has_gradient


# ---- files made to harm ----


def changed(model, path, change):
    """A .keras file whose description was changed by hand."""
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    change(config, parts)
    parts["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return path


def test_a_lambda_is_refused(encoding, tmp_path):
    model = network(encoding.width, keras.layers.Lambda(lambda x: x * 2), keras.layers.Dense(2))
    model.save(tmp_path / "model.keras")
    with pytest.raises(RefusedError, match="holds 'Lambda'"):
        read_model(tmp_path / "model.keras", encoding)


@pytest.mark.parametrize(
    "hostile",
    [
        {"module": "os", "class_name": "mkdir", "config": {"path": "trap"}, "registered_name": None},
        {"module": "builtins", "class_name": "function", "config": "exec", "registered_name": "function"},
        {
            "module": "keras.layers",
            "class_name": "TorchModuleWrapper",
            "config": {"module": "x"},
            "registered_name": None,
        },
        {"module": "keras.layers", "class_name": "Dense", "config": {}, "registered_name": "mine>Dense"},
        {"module": "keras.utils", "class_name": "get_file", "config": {"origin": "x"}, "registered_name": None},
        {"class_name": "__lambda__", "config": {"value": "x"}},
    ],
)
def test_what_is_no_layer_is_refused_before_keras_sees_it(hostile, trained, encoding, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = changed(trained, tmp_path / "model.keras", lambda config, parts: config["config"]["layers"].append(hostile))
    with pytest.raises(RefusedError, match="no layer that holdfast reads from a file"):
        read_model(path, encoding)
    assert not (tmp_path / "trap").exists()


def test_weights_from_another_file_are_refused(trained, encoding, tmp_path):
    import h5py

    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["numbers"] = np.zeros(3)

    def link(config, parts):
        (tmp_path / "weights.h5").write_bytes(parts["model.weights.h5"])
        with h5py.File(tmp_path / "weights.h5", "a") as file:
            file["more"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "numbers")
        parts["model.weights.h5"] = (tmp_path / "weights.h5").read_bytes()

    path = changed(trained, tmp_path / "model.keras", link)
    with pytest.raises(RefusedError, match="taken from another place"):
        read_model(path, encoding)
    assert predict(as_model(trained, encoding), torch.zeros(1, encoding.width)).shape == (1,)
