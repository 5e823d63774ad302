"""Models from files: what is data is read back as it was, and nothing that a file holds is ever run."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")

import numpy as np
import pytest
import safetensors.torch
import torch
from conftest import everything
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from torch import nn

from holdfast import MinCost, Recipe, Retraining, audit, other_class, read_model, save_model, train
from holdfast.families.members import read_perceptron
from holdfast.models.files.reading import FORMATS, PROGRAMS
from holdfast.models.files.ubjson import from_ubjson
from holdfast.models.files.untrusted import RefusedError, check_json
from holdfast.models.identity import identities


class Hostile:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, (str(self.path),)


def zipped(**parts: bytes) -> bytes:
    contents = io.BytesIO()
    with zipfile.ZipFile(contents, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(name.replace("__", "."), part)
    return contents.getvalue()


# ---- networks of ours ----


def test_a_saved_network_is_the_same_network(family, rows, encoding, tmp_path):
    x, _ = rows
    path = save_model(family[0], tmp_path / "deployed.safetensors")
    model, network = read_model(path, encoding), read_perceptron(path)
    assert network.retraining == family[0].retraining
    for read in (model, network):
        assert identities(read) == identities(family[0])
        torch.testing.assert_close(read(x).float(), family[0](x))
    found = MinCost(norm=1)(model, x[:10], other_class(model, x[:10]), encoding.space.without_people())
    own = MinCost(norm=1)(family[0], x[:10], other_class(family[0], x[:10]), encoding.space.without_people())
    assert torch.equal(found.found, own.found)
    assert 0 <= audit(found, family[1:]).rate <= 1
    with pytest.raises(ValueError, match="a model agrees with itself"):
        audit(found, family)


def test_what_a_retraining_changed_is_read_back(rows, tmp_path):
    change = Retraining(window=(3, 50), settings=(("hidden", (4,)), ("epochs", 1)), kind="window")
    network = train(*rows, Recipe((8,), epochs=1), [change])[0]
    assert read_perceptron(save_model(network, tmp_path / "a.safetensors")).retraining == change


def test_a_module_is_read_into_one_like_it(encoding, rows, tmp_path):
    module = nn.Sequential(nn.Linear(encoding.width, 4), nn.Tanh(), nn.Linear(4, 2))
    network = train(*rows, Recipe(network=module, epochs=1), [Retraining()])[0]
    path = save_model(network, tmp_path / "module.safetensors")
    model = read_model(path, encoding, like=module)
    torch.testing.assert_close(model(rows[0]).float(), network(rows[0]).detach())
    assert identities(model) >= identities(network)
    with pytest.raises(ValueError, match="like=module"):
        read_model(path, encoding)


def test_a_network_that_was_changed_afterwards_is_refused(family, encoding, tmp_path):
    path = save_model(family[0], tmp_path / "a.safetensors")
    contents = bytearray(path.read_bytes())
    contents[-1] ^= 1
    path.write_bytes(contents)
    with pytest.raises(ValueError, match="not those that were saved"):
        read_model(path, encoding)
    path.write_bytes(path.read_bytes().replace(b"perceptron", b"perceptroN"))
    with pytest.raises(ValueError, match="checksum does not fit"):
        read_model(path, encoding)


def test_what_is_no_network_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="no network of train"):
        save_model(lambda x: x, tmp_path / "a.safetensors")


# ---- files of other libraries ----


@pytest.fixture(scope="module")
def pipeline():
    table = everything()
    columns = make_column_transformer((OneHotEncoder(), ["job", "grade"]), remainder="passthrough")
    return make_pipeline(columns, LogisticRegression(max_iter=5000)).fit(
        table.drop(columns="outcome"), table["outcome"]
    )


def test_a_model_of_scikit_learn(pipeline, encoding, rows, tmp_path):
    import skops.io

    path = tmp_path / "model.skops"
    skops.io.dump(pipeline, path)
    assert (read_model(path, encoding)(rows[0]).argmax(1).numpy() == (pipeline.predict(everything()) == "yes")).all()


@pytest.mark.parametrize("suffix", ["ubj", "json"])
def test_a_model_of_xgboost(suffix, encoding, rows, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    x, y = rows
    own = xgboost.XGBClassifier(n_estimators=5, max_depth=3).fit(x.numpy(), y.numpy())
    own.save_model(tmp_path / f"model.{suffix}")
    model = read_model(tmp_path / f"model.{suffix}", encoding, takes="encoded")
    np.testing.assert_allclose(model(x).softmax(1).numpy(), own.predict_proba(x.numpy()), atol=1e-6)


@pytest.mark.parametrize("suffix", ["txt", "model"])
def test_a_model_of_lightgbm(suffix, encoding, rows, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    x, y = rows
    own = lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=5, verbose=-1).fit(x.numpy(), y.numpy())
    own.booster_.save_model(tmp_path / f"model.{suffix}")
    model = read_model(tmp_path / f"model.{suffix}", encoding, takes="encoded")
    np.testing.assert_allclose(model(x).softmax(1).numpy(), own.booster_.predict(x.numpy())[:, None] * [-1, 1] + [1, 0])


def test_a_changed_archive_is_damaged(pipeline, encoding, tmp_path):
    import skops.io

    path = tmp_path / "model.skops"
    contents = bytearray(skops.io.dumps(pipeline))
    place = contents.index(b"sklearn")
    contents[place] ^= 1
    path.write_bytes(contents)
    with pytest.raises(ValueError, match="is damaged"):
        read_model(path, encoding)


@pytest.mark.parametrize("function", [print, os.system, np.save])
def test_a_function_in_a_skops_file_is_refused(function, encoding, tmp_path):
    import skops.io

    path = tmp_path / "model.skops"
    skops.io.dump(make_pipeline(FunctionTransformer(function), LogisticRegression()), path)
    with pytest.raises(RefusedError, match=r"no estimator.*skops.io.load"):
        read_model(path, encoding)


def test_weights_of_linear_layers(encoding, rows, tmp_path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(encoding.width, 5), nn.ReLU(), nn.Linear(5, 2))
    safetensors.torch.save_file(module.state_dict(), tmp_path / "model.safetensors")
    torch.testing.assert_close(
        read_model(tmp_path / "model.safetensors", encoding)(rows[0]).float(), module(rows[0]).detach()
    )


# ---- files that are made to harm ----


@pytest.mark.parametrize("suffix", [*FORMATS, *PROGRAMS, ".bin"])
@pytest.mark.parametrize("kind", ["pickle", "torch", "archive"])
def test_a_pickle_is_not_run_whatever_its_name(suffix, kind, encoding, tmp_path):
    trap = tmp_path / "trap"
    contents = pickle.dumps(Hostile(trap))
    path = tmp_path / f"model{suffix}"
    if kind == "torch":
        torch.save(Hostile(trap), path)
    else:
        path.write_bytes(
            contents if kind == "pickle" else zipped(schema__json=b"{}", config__json=b"{}", part=contents)
        )
    with pytest.raises(RefusedError, match=r"to run whatever program it holds.*skops.io.dump.*save_model"):
        read_model(path, encoding)
    assert not trap.exists()


@pytest.mark.parametrize("suffix", PROGRAMS)
def test_a_suffix_of_pickles_is_refused_whatever_it_holds(suffix, encoding, tmp_path):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"harmless")
    with pytest.raises(RefusedError, match="load it yourself"):
        read_model(path, encoding)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    "contents",
    [b"", b"\x00" * 64, b"{", b"tree\n", b"tree\nversion=v4\n", b"cos\nmkdir\n(S'trap'\ntR.", os.urandom(200)],
)
def test_a_damaged_file_is_named(suffix, contents, encoding, tmp_path, capfd):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match="model.*(empty|damaged|not a valid safetensors)"):
        read_model(path, encoding)


def test_a_header_that_announces_more_than_there_is(encoding, tmp_path):
    path = tmp_path / "model.safetensors"
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}).encode()
    for contents in (struct.pack("<Q", 2**62) + header, struct.pack("<Q", len(header)) + header + b"1234"):
        path.write_bytes(contents)
        with pytest.raises(ValueError, match="not a valid safetensors file"):
            read_model(path, encoding)


@pytest.mark.parametrize(
    "contents", [b'{"learner":' + b"[" * 100_000, b"{L" + struct.pack(">q", 1) + b"a" + b"[" * 100_000]
)
def test_values_inside_values_without_end(contents, encoding, tmp_path):
    """They would end the process: the parser of XGBoost calls itself."""
    path = tmp_path / "model.json"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match="nest"):
        read_model(path, encoding)


def test_brackets_in_text_do_not_count(tmp_path):
    check_json(tmp_path, b'{"a": "' + b"[" * 500 + b'\\"[", "b": [[1], [2]]}')
    with pytest.raises(RefusedError):
        check_json(tmp_path, b'["]",' * 500)


def test_an_array_longer_than_the_file():
    with pytest.raises(ValueError, match="bytes are announced"):
        from_ubjson(b"{U\x01a[$d#L" + struct.pack(">q", 2**60) + b"1234")


def test_what_ubjson_says():
    said = from_ubjson(b"{U\x01a[#U\x02i\x05SU\x02hiU\x01b[$d#U\x01" + struct.pack(">f", 1.5) + b"U\x01c[TF]}")
    assert {**said, "b": said["b"].tolist()} == {"a": [5, "hi"], "b": [1.5], "c": [True, False]}


def altered(text, name, place, value):
    """A list of LightGBM's text with another number at one place."""
    start = text.index(f"{name}=") + len(name) + 1
    end = text.index("\n", start)
    numbers = text[start:end].split()
    numbers[place] = str(value)
    new = text[:start] + " ".join(numbers) + text[end:]
    sizes = [
        len(tree)
        for tree in new[new.index("Tree=0") : new.index("end of trees")].replace("Tree=", "\0Tree=").split("\0")[1:]
    ]
    return new.replace(
        new[new.index("tree_sizes=") : new.index("\n", new.index("tree_sizes="))],
        f"tree_sizes={' '.join(map(str, sizes))}",
    )


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left_child", 0, 999),
        ("right_child", 0, 0),
        ("split_feature", 0, 999),
        ("leaf_value", 0, "x"),
        ("left_child", 1, -99),
    ],
)
def test_trees_of_lightgbm_that_are_no_trees(name, place, value, encoding, rows, tmp_path):
    """LightGBM would end the process, or read memory that is not its own."""
    lightgbm = pytest.importorskip("lightgbm")
    own = lightgbm.LGBMClassifier(n_estimators=2, min_child_samples=5, verbose=-1).fit(rows[0].numpy(), rows[1].numpy())
    text = own.booster_.model_to_string()
    path = tmp_path / "model.txt"
    path.write_text(altered(text, "shrinkage", 0, 1))
    assert len(read_model(path, encoding, takes="encoded")(rows[0])) == 60
    path.write_text(altered(text, name, place, value))
    with pytest.raises(ValueError, match=r"model\.txt is damaged"):
        read_model(path, encoding)
    for length in range(0, len(text), 97):  # cut short anywhere
        path.write_text(text[:length])
        if "end of trees\n" not in text[:length]:
            with pytest.raises(ValueError, match=r"model\.txt is (damaged|empty)"):
                read_model(path, encoding)


@pytest.mark.parametrize(
    ("name", "place", "value"), [("left_children", 0, 999), ("right_children", 0, 0), ("split_indices", 0, 999)]
)
@pytest.mark.parametrize("form", ["json", "ubj"])
def test_trees_of_xgboost_that_are_no_trees(form, name, place, value, encoding, rows, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    own = xgboost.XGBClassifier(n_estimators=2, max_depth=3).fit(rows[0].numpy(), rows[1].numpy()).get_booster()
    whole = bytes(own.save_raw(form))
    path = tmp_path / f"model.{form}"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is damaged"):
        read_model(path, encoding)
    if form == "json":
        model = json.loads(whole)
        model["learner"]["gradient_booster"]["model"]["trees"][0][name][place] = value
        path.write_text(json.dumps(model))
    else:
        start = whole.index(name.encode() + b"[$l#L") + len(name) + 5
        path.write_bytes(whole[: start + 8 + 4 * place] + struct.pack(">i", value) + whole[start + 12 + 4 * place :])
    with pytest.raises(ValueError, match="it is wrong about the (children|column)"):
        read_model(path, encoding)


@pytest.mark.parametrize("suffix", [".keras", ".skops"])
def test_an_archive_that_unpacks_without_end(suffix, encoding, tmp_path):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(zipped(config__json=b"{}", schema__json=b"{}", part=bytes(70 << 20)))
    with pytest.raises(RefusedError, match="would unpack to"):
        read_model(path, encoding)


def test_a_file_that_is_not_there_and_a_format_that_is_not_read(encoding, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_model(tmp_path / "model.onnx", encoding)
    (tmp_path / "model.csv").write_text("a,b")
    with pytest.raises(ValueError, match=r"no model is read from a '.csv' file; the formats are .safetensors"):
        read_model(tmp_path / "model.csv", encoding)
