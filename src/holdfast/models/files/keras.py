"""Files of Keras 3: only layers that are arithmetic are read, whatever Keras itself would load."""

from __future__ import annotations

import json
import tempfile
import warnings
import zipfile
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

from holdfast.models.files.checking import dictionaries
from holdfast.models.files.untrusted import RefusedError, check_json, check_size, damaged

CONFIG, WEIGHTS, METADATA = "config.json", "model.weights.h5", "metadata.json"

MODELS = frozenset({"Functional", "Model", "Sequential"})
LAYERS = frozenset({
    "Activation", "ActivityRegularization", "Add", "AlphaDropout", "Average", "BatchNormalization", "CategoryEncoding",
    "Concatenate", "Dense", "Discretization", "Dot", "Dropout", "ELU", "Embedding", "Flatten", "GaussianDropout",
    "GaussianNoise", "GroupNormalization", "Identity", "InputLayer", "LayerNormalization", "LeakyReLU", "Maximum",
    "Minimum", "Multiply", "Normalization", "PReLU", "Permute", "RMSNormalization", "ReLU", "RepeatVector", "Rescaling",
    "Reshape", "Softmax", "SpectralNormalization", "Subtract", "UnitNormalization",
})  # fmt: skip
VALUES = frozenset({"DTypePolicy", "__keras_tensor__", "__numpy__", "__tensor__"})
WIDEST_LAYER = 10_000_000  # values that a layer gives for a row
ARITHMETIC = ("keras.initializers", "keras.regularizers", "keras.constraints")  # modules with nothing else in them


def read_keras(path: Path) -> Any:
    """The model of a .keras file, if it is layers of numbers and nothing else."""
    with zipfile.ZipFile(path) as archive:
        config, weights, metadata = (archive.read(name) for name in (CONFIG, WEIGHTS, METADATA))
    check_json(path, config)
    check_json(path, metadata)
    described = json.loads(config)
    described.pop("compile_config", None)  # how it was trained
    for part in dictionaries(described):
        if "class_name" in part:  # what Keras is asked to make
            _check_known(path, part)
    numbers = _check_weights(path, weights)
    import keras

    checked_config = json.dumps(described)
    with warnings.catch_warnings(action="ignore"):
        _check_asks_for_no_more(path, described, numbers)  # Keras takes things out of the dictionary
    with tempfile.TemporaryDirectory() as folder:  # what was looked at is what is read
        checked = Path(folder, "model.keras")
        with zipfile.ZipFile(checked, "w") as archive:
            for name, contents in ((CONFIG, checked_config), (WEIGHTS, weights), (METADATA, metadata)):
                archive.writestr(name, contents)
        with warnings.catch_warnings(action="ignore"):  # that it was saved with an optimizer, which is left out
            return keras.saving.load_model(checked, compile=False, safe_mode=True)


def _check_known(path: Path, part: dict[str, Any]) -> None:
    name, module, registered = (part.get(key) for key in ("class_name", "module", "registered_name"))
    is_of_keras = module is None or (isinstance(module, str) and (module == "keras" or module.startswith("keras.")))
    known = name in MODELS | LAYERS | VALUES or module in ARITHMETIC
    if not (is_of_keras and known and (registered is None or registered == name)) or not isinstance(name, str):
        raise RefusedError(
            f"{path} holds {name!r} of {module or registered!r}, which is no layer that holdfast reads from a file: it "
            "could run a program of its own. If you trust the file, load it yourself, keras.saving.load_model(path), "
            "and pass the model to as_model"
        )


def _check_asks_for_no_more(path: Path, described: dict[str, Any], numbers: int) -> None:
    """Raise where the layers have more weights than the file holds, before memory is taken for any of them.

    In a `StatelessScope` Keras knows the shape of a weight, and makes its values later, when the scope is left.
    """
    import keras

    try:
        with keras.StatelessScope(initialize_variables=False):
            model = keras.saving.deserialize_keras_object(described, safe_mode=True)
        weights = sum(prod(weight.shape) for weight in model.variables)
        widest = max(
            (prod(size or 1 for size in layer.output.shape) for layer in model.layers if layer.built), default=0
        )
        if weights > numbers or widest > WIDEST_LAYER:
            raise RefusedError(
                f"{path} describes layers of {weights} weights and up to {widest} values a row, and holds {numbers} "
                "weights; a model does not: is it made to harm?"
            )
    except BaseException:
        keras.utils.clear_session()  # or Keras would make these values at the end of another such scope
        raise


def _check_weights(path: Path, contents: bytes) -> int:
    """How many numbers the weights are. Raise where they come from elsewhere, or are more than the file can hold."""
    import h5py

    size = numbers = 0
    with h5py.File(BytesIO(contents), "r") as file:
        groups = [file]
        while groups:
            group = groups.pop()
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise RefusedError(f"{path}: its weights are taken from another place, {name!r}")
                value = group[name]
                if isinstance(value, h5py.Group):
                    groups.append(value)
                elif value.external or value.is_virtual or value.dtype.hasobject:
                    raise RefusedError(f"{path}: its weights are taken from another file, or are no numbers: {name!r}")
                else:
                    size += value.nbytes
                    numbers += value.size
            if len(groups) > 10_000:
                raise damaged(path, ValueError("its weights have no end"))
    check_size(path, size)
    return numbers
