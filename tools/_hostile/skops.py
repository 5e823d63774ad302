"""Hostile .skops files: parts that call something, modules that run when they are imported, and unsound arrays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import lightgbm
import numpy as np
import skops.io
import xgboost
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from _hostile.cases import CANARY, SECRET, Hostile, as_array, pickled, replaced, table, unzipped, with_bomb, zipped

HONEST, SCHEMA = "honest.skops", "schema.json"
UNKNOWN = "no estimator or part of one"
Node = dict[str, Any]
Parts = dict[str, bytes]


def honest() -> dict[str, bytes]:
    return {HONEST: _dumped(LogisticRegression())}


def hostile() -> Iterator[Hostile]:
    yield from _calls()
    yield from _imports()
    yield from _other_nodes()
    yield from _trees_inside()
    yield from _arrays()
    yield from _archives()


# ---- an honest file, and changes to it ----


def _dumped(model: Any) -> bytes:
    """The file of a fitted model. Python's own numbers of objects are counted anew: they differ from run to run."""
    parts = unzipped(skops.io.dumps(model.fit(*table())))
    schema, numbers = json.loads(parts.pop(SCHEMA)), {}
    for node in _nodes(schema):
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
    files = {}
    for node in _nodes(schema):
        if "file" in node:
            name = files.setdefault(node["file"], f"{len(files)}.{node['file'].rpartition('.')[2]}")
            node["file"] = name
    arrays = {files[name]: _clean(name, parts[name]) for name in files}
    return zipped({SCHEMA: json.dumps(schema).encode(), **arrays})


def _clean(name: str, contents: bytes) -> bytes:
    return as_array(np.load(BytesIO(contents))) if name.endswith(".npy") else contents


def _nodes(schema: Any) -> Iterator[Node]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _nodes(value)


def _changed(contents: bytes, change: Callable[[Node, Parts], None]) -> bytes:
    """The file with another description: ``change`` is given every node, and the other parts of the archive."""
    parts = unzipped(contents)
    schema = json.loads(parts[SCHEMA])
    for node in list(_nodes(schema)):
        change(node, parts)
    return zipped(parts | {SCHEMA: json.dumps(schema).encode()})


def _node(loader: str, module: str, name: str, **more: Any) -> Node:
    return {"__loader__": loader, "__module__": module, "__class__": name, **more}


def _plain(value: Any) -> Node:
    return _node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def _with_setting(given: Node, name: str = "C") -> bytes:
    """A logistic regression with one of its settings replaced by another part."""

    def change(node: Node, parts: Parts) -> None:
        if "coef_" in node:
            node[name] = given

    return _changed(_dumped(LogisticRegression()), change)


def _calling(module: str, name: str, *arguments: Any) -> bytes:
    content = _node("TupleNode", "builtins", "tuple", content=[_plain(one) for one in arguments])
    return _with_setting(_node("ConstructorFromReduceNode", module, name, content=content))


# ---- parts that call something, or import it ----


def _calls() -> Iterator[Hostile]:
    touch = ["touch", CANARY]
    for file, module, name, arguments, tries in (
        ("popen-subprocess", "subprocess", "Popen", [touch], "starts a program through subprocess itself"),
        ("popen-numpy", "numpy.distutils.fcompiler.gnu", "Popen", [touch],
         "starts a program through a module of numpy that imports Popen"),
        ("memmap", "numpy", "memmap", [CANARY, "uint8", "w+", 0, 4], "overwrites a file with numpy.memmap"),
        ("gzip", "sklearn.datasets._covtype", "GzipFile", [CANARY, "wb"],
         "overwrites a file through a module of scikit-learn that imports GzipFile"),
        ("dmatrix", "xgboost.core", "DMatrix", [f"{SECRET}?format=csv"], "opens another file with xgboost.DMatrix"),
        ("estimator-called", "sklearn.linear_model._logistic", "LogisticRegression", [],
         "calls a class that is known, with arguments of its own"),
    ):  # fmt: skip
        yield Hostile(f"calls-{file}.skops", _calling(module, name, *arguments), tries, UNKNOWN)


def _imports() -> Iterator[Hostile]:
    for file, module in (("f2py", "numpy.f2py.__main__"), ("antigravity", "antigravity"), ("this", "this")):
        tries = f"has {module} imported, which runs when it is"
        yield Hostile(f"imports-{file}.skops", _calling(module, "main"), tries, UNKNOWN)


def _other_nodes() -> Iterator[Hostile]:
    method = _node("MethodNode", "pathlib", "Path", content={"func": "touch", "obj": _plain(CANARY)})
    for file, given, tries in (
        ("method", method, "takes a method of an object that it makes"),
        ("partial", _node("PartialNode", "functools", "partial", content={}), "makes a function with arguments"),
        ("operator", _node("OperatorFuncNode", "operator", "methodcaller", attrs=_plain(["touch"])),
         "makes a function that calls a method"),
        ("type", _node("TypeNode", "os", "system"), "takes a function that starts programs for a type"),
        ("function", _node("FunctionNode", "numpy", "save", content={"module_path": "numpy", "function": "save"}),
         "takes a function of numpy that writes files"),
        ("no-loader", {"__class__": "LogisticRegression", "__module__": "sklearn.linear_model._logistic"},
         "names a class, and nothing that makes it"),
    ):  # fmt: skip
        yield Hostile(f"node-{file}.skops", _with_setting(given), tries, UNKNOWN)
    for name in ("memory", "machines"):
        contents = _with_setting(_plain("elsewhere"), name)
        yield Hostile(f"sets-{name}.skops", contents, "has a setting that sends work elsewhere", f"sets '{name}'")
    jobs = _with_setting(_plain(10**9), "n_jobs")
    yield Hostile("sets-jobs.skops", jobs, "asks for a thousand million processes", "sets 'n_jobs'")


# ---- what compiled code trusts ----


def _trees_inside() -> Iterator[Hostile]:
    def circle(node: Node, parts: Parts) -> None:
        if "_handle" in node:
            text = json.loads(node["_handle"]["content"])
            node["_handle"]["content"] = json.dumps(re.sub(r"left_child=-?[0-9]+", "left_child=0", text))

    boosted = _dumped(lightgbm.LGBMClassifier(n_estimators=1, num_leaves=4, min_child_samples=2, verbose=-1))
    yield Hostile(
        "lightgbm-circle.skops", _changed(boosted, circle), "holds a LightGBM tree that has no end", "children of nodes"
    )

    def cut(node: Node, parts: Parts) -> None:
        if isinstance(node.get("handle"), dict) and "file" in node["handle"]:
            name = node["handle"]["file"]
            parts[name] = parts[name][: len(parts[name]) // 2]

    boosted = _dumped(xgboost.XGBClassifier(n_estimators=1, max_depth=2))
    yield Hostile("xgboost-cut.skops", _changed(boosted, cut), "holds half an XGBoost booster", "announced")


def _with_array(model: Any, key: str, change: Callable[[np.ndarray], np.ndarray]) -> bytes:
    def harm(node: Node, parts: Parts) -> None:
        found = node.get(key)
        if isinstance(found, dict) and str(found.get("file", "")).endswith(".npy"):
            array = np.load(BytesIO(parts[found["file"]]))
            parts[found["file"]] = as_array(change(array.copy()))

    return _changed(_dumped(model), harm)


def _with_field(name: str, value: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array[name][0] = value
        return array

    return change


def _with_leaf(array: np.ndarray) -> np.ndarray:
    """The first leaf says that its children are nodes -5."""
    leaf = int(np.flatnonzero(array["left_child"] == -1)[0])
    array["left_child"][leaf] = array["right_child"][leaf] = -5
    return array


def _arrays() -> Iterator[Hostile]:
    tree, forest = DecisionTreeClassifier(max_depth=2, random_state=0), RandomForestClassifier(2, max_depth=2)
    forest.random_state = 0
    histograms = HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=4, random_state=0)
    neighbours = KNeighborsClassifier(algorithm="brute")
    for file, model, key, change, tries, error in (
        ("tree-child-far", tree, "nodes", _with_field("left_child", 10**7),
         "has a child 10,000,000 in a tree of a few nodes", "children of nodes"),
        ("tree-circle", tree, "nodes", _with_field("right_child", 0), "has a tree that leads back to its first node",
         "children of nodes"),
        ("tree-column", tree, "nodes", _with_field("feature", 10**6), "splits by a column that is not there",
         "column of a split"),
        ("tree-leaf", tree, "nodes", _with_leaf, "has a leaf whose children are nodes before the first one",
         "children of leaves"),
        ("forest-child-far", forest, "nodes", _with_field("left_child", 10**7),
         "has a forest with a child that is not there", "children of nodes"),
        ("histogram-child-far", histograms, "nodes", _with_field("left", 10**6),
         "has a boosted tree with a child that is not there", "children of nodes"),
        ("histogram-circle", histograms, "nodes", _with_field("right", 0), "has a boosted tree without an end",
         "children of nodes"),
        ("svc-vectors", SVC(), "_n_support", lambda array: array + 10**6, "counts support vectors that are not there",
         "vectors"),
        ("neighbours-labels", neighbours, "_y", lambda array: array + 10**6, "has labels that no class has", "labels"),
    ):  # fmt: skip
        yield Hostile(f"{file}.skops", _with_array(model, key, change), tries, error)

    for file, value, tries in (
        ("tree-classes", np.array([10**17]), "has a tree with so many classes that their memory overflows"),
        ("tree-outputs", np.array([2, 2, 2]), "has a tree with more lists of classes than outputs"),
    ):

        def classes(node: Node, parts: Parts, value: np.ndarray = value) -> None:
            if node.get("__loader__") == "TreeNode":
                parts[node["__reduce__"]["args"]["content"][1]["file"]] = as_array(value)

        error = "its classes" if file == "tree-classes" else "its outputs"
        yield Hostile(f"{file}.skops", _changed(_dumped(tree), classes), tries, error)

    def announces(node: Node, parts: Parts) -> None:
        for name, contents in parts.items():
            parts[name] = contents.replace(b"(1, 4)", b"(9, 4)")

    contents = _changed(_dumped(LogisticRegression()), announces)
    yield Hostile("array-short.skops", contents, "has an array that announces more than it holds", "does not fit")

    def columns(node: Node, parts: Parts) -> None:
        if "_n_features_outs" in node:
            node["_n_features_outs"] = _node("ListNode", "builtins", "list", content=[_plain(-(10**6))] * 4)

    contents = _changed(_dumped(OneHotEncoder()), columns)
    yield Hostile("one-hot-columns.skops", contents, "has an encoder with less than no columns", "number of columns")


# ---- the archive ----


def _archives() -> Iterator[Hostile]:
    contents = _dumped(LogisticRegression())
    parts = unzipped(contents)
    yield Hostile("pickle.skops", pickled(), "is a pickle that runs a program", "is a pickle")
    inside = zipped(parts | {"more.bin": pickled(4)})
    yield Hostile("pickle-inside.skops", inside, "holds a pickle that runs a program", "holds the pickle")
    bomb = with_bomb(parts, "more.bin")
    yield Hostile("bomb.skops", bomb, "unpacks to a thousand times its size", "would unpack to")
    deep = zipped(parts | {SCHEMA: b"[" * 5_000 + b"]" * 5_000})
    yield Hostile("deep.skops", deep, "nests values so deeply that a parser ends the process", "deep")
    yield Hostile("cut.skops", contents[: len(contents) // 2], "is cut in half", "is damaged")
    other = zipped({"model.bin": b"{}"})
    yield Hostile("no-schema.skops", other, "is an archive of something else", "holds no schema.json")
    lie = replaced(contents, b"schema.json", b"schemA.json")
    yield Hostile("two-names.skops", lie, "has one name at its start and another at its end", "is damaged")
    same = parts[SCHEMA].replace(b"LogisticRegression", b"_LogisticRegression")
    two = zipped([(SCHEMA, parts[SCHEMA]), (SCHEMA, same), *((n, c) for n, c in parts.items() if n != SCHEMA)])
    yield Hostile("two-schemas.skops", two, "describes itself twice", "two files of one name")
