"""Hostile files of LightGBM and XGBoost: what a checker could read otherwise than the library does."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from itertools import pairwise

import lightgbm
import xgboost

from _hostile.cases import Hostile, pickled, replaced, table, zipped

LIGHTGBM, JSON, UBJSON = "honest.txt", "honest.json", "honest.ubj"


def honest() -> dict[str, bytes]:
    return {LIGHTGBM: _lightgbm().encode(), JSON: _xgboost("json"), UBJSON: _xgboost("ubj")}


def hostile() -> Iterator[Hostile]:
    yield from _texts()
    yield from _jsons()
    yield from _ubjsons()


def _lightgbm() -> str:
    x, y = table(3)
    model = lightgbm.LGBMClassifier(n_estimators=1, num_leaves=4, min_child_samples=2, verbose=-1, n_jobs=1)
    return model.fit(x, y).booster_.model_to_string()


def _xgboost(form: str) -> bytes:
    x, y = table(3)
    model = xgboost.XGBClassifier(n_estimators=1, max_depth=2, n_jobs=1).fit(x, y)
    return bytes(model.get_booster().save_raw(form))


# ---- LightGBM ----


def _texts() -> Iterator[Hostile]:
    text = _lightgbm()
    first, all_left = re.search(r"(left_child=-?[0-9]+)[-0-9 ]*", text).group(1, 0)  # of the first node, and of all
    bad = re.sub("-?[0-9]+", "9999", all_left)
    for file, old, new, tries, error in (
        ("blank-line", "left_child=", f"{bad}\n\nleft_child=",
         "has bad children before a blank line, where LightGBM stops, and good ones after it", "is wrong about"),
        ("blank-line-split", "split_feature=", "split_feature=9999 9999 9999\n\nsplit_feature=",
         "has bad columns before a blank line, where LightGBM stops, and good ones after it", "is wrong about"),
        ("two-lists", "left_child=", f"{bad}\nleft_child=",
         "has two lists of children, of which LightGBM takes the first", "there twice"),
        ("separator", "left_child=", f"{bad}\nx=1\u2028left_child=",
         "has a line separator that Python takes for the end of a line, and LightGBM does not", "is wrong about"),
        ("next-line", "left_child=", f"{bad}\nx=1\x85left_child=",
         "has a next-line character that Python takes for the end of a line", "is wrong about"),
        ("form-feed", "right_child=", "x=1\x0cright_child=",
         "has a form feed that Python takes for the end of a line", "right_child"),
        ("digits", "left_child=", "left_child=\u0661 ", "has Arabic digits, which only Python reads", "a list"),
        ("underscore", first, "left_child=1_0", "writes 10 as 1_0, which only Python reads", "a list"),
        ("circle", first, "left_child=0", "has a tree that leads back to its first node", "children of nodes"),
        ("child-far", first, "left_child=9999999", "has a child 9,999,999", "children of nodes"),
        ("two-classes", "num_class=3", "num_class=3\nnum_class=4", "has two numbers of classes", "there twice"),
        ("objective-classes", "num_class:3", "num_class:1000000", "has a million classes in its objective",
         "number of classes"),
        ("columns", "max_feature_idx=3", "max_feature_idx=99999999", "has a hundred million columns",
         "number of columns"),
        ("leaves-more", "leaf_value=", "leaf_value=0.5 ", "has a leaf more than it says", "length of a list"),
        ("shrinkage-nan", "shrinkage=1", "shrinkage=nan", "shrinks by what is no number", "a list of numbers"),
        ("leaves-negative", "num_leaves=", "num_leaves=-", "has less than no leaves", "number of leaves"),
        ("leaves-many", "num_leaves=4", "num_leaves=999999999", "has a thousand million leaves", "number of leaves"),
        ("words", "tree\n", "tree\nwhatever\n", "has a word in its head that nobody knows", "its head"),
        ("no-end", "end of trees", "end of tries", "has trees that do not end", "end of the trees"),
        ("levels-deep", "pandas_categorical:null", f"pandas_categorical:{'[' * 5_000}",
         "nests the levels of columns so deeply that a parser ends the process", "deep"),
    ):  # fmt: skip
        changed = _resized(replaced(text.encode(), old.encode(), new.encode()))
        yield Hostile(f"{file}.txt", changed, tries, error)
    infinite = re.sub(r"leaf_value=\S+", "leaf_value=inf", text, count=1)
    yield Hostile("leaf-inf.txt", _resized(infinite.encode()), "has an infinite leaf", "a list of numbers")
    yield Hostile("cut.txt", text.encode()[: len(text) // 3], "is cut short", "is damaged")
    yield Hostile("pickle.txt", pickled(3), "is a pickle that runs a program", "is a pickle")


def _resized(contents: bytes) -> bytes:
    """With the sizes of the trees that LightGBM reads them by."""
    end = contents.find(b"end of trees")
    starts = [found.start() for found in re.finditer(rb"^Tree=", contents[:end], re.MULTILINE)]
    sizes = b" ".join(str(next_ - start).encode() for start, next_ in pairwise([*starts, end]))
    return re.sub(rb"tree_sizes=.*", b"tree_sizes=" + sizes, contents, count=1)


# ---- XGBoost ----


def _jsons() -> Iterator[Hostile]:
    contents = _xgboost("json")
    left = b'"left_children":['
    circle = re.search(rb'"left_children":\[[-0-9,]*\]', contents)[0].replace(b"[1,", b"[0,")
    far = circle.replace(b"[0,", b"[9999999,")
    for file, old, new, tries, error in (
        ("escaped-two", left, b'"left\\u005fchildren":[9,9,9],"left_children":[',
         "has one key twice, once escaped, which XGBoost takes for another key", "there twice"),
        ("escaped-hides-circle", left, circle + b',"left\\u005fchildren":[',
         "hides a tree without an end behind an escaped key", "there twice"),
        ("escaped-hides-far", left, far + b',"left\\u005fchildren":[', "hides a child 9,999,999 behind an escaped key",
         "there twice"),
        ("escaped-circle", b'"left_children":[1', b'"left\\u005fchildren":[0',
         "has an escaped key with a tree that leads back to its first node", "children of nodes"),
        ("two-keys", left, b'"left_children":[9,9,9],"left_children":[', "has one key twice", "there twice"),
        ("circle", b'"left_children":[1', b'"left_children":[0', "has a tree that leads back to its first node",
         "children of nodes"),
        ("child-far", b'"left_children":[1', b'"left_children":[9999999', "has a child 9,999,999", "children of nodes"),
        ("leaf-child", b',-1],"loss_changes"', b',-2],"loss_changes"',
         "has a leaf whose child is -2, which is a node to XGBoost", "children of leaves"),
        ("child-half", b'"left_children":[1', b'"left_children":[1.5', "has a child one and a half", "whole numbers"),
        ("columns", b'"num_feature":"4"', b'"num_feature":"9999999"', "has ten million columns", "number of columns"),
        ("classes", b'"num_class":"3"', b'"num_class":"99999999"', "has a hundred million classes", "of classes"),
        ("split-column", b'"split_indices":[', b'"split_indices":[77777,', "splits by a column that is not there",
         "split_indices"),
        ("base-score-word", b'"base_score":"', b'"base_score":"nothing', "has a word for a base score", "is damaged"),
        ("base-score-inf", b'"base_score":"[', b'"base_score":"[1e999,', "has an infinite base score", "base_score"),
        ("trees-many", b'"num_trees":"3"', b'"num_trees":"999999999"', "announces a thousand million trees",
         "number of trees"),
        ("nodes-many", b'"num_nodes":"', b'"num_nodes":"99999999', "announces millions of nodes", "the length of"),
    ):  # fmt: skip
        changed = contents.replace(old, new) if file == "columns" else replaced(contents, old, new)
        yield Hostile(f"{file}.json", changed, tries, error)
    deep = replaced(contents, b'"learner":', b'"more":' + b"[" * 5_000 + b"]" * 5_000 + b',"learner":')
    yield Hostile("deep.json", deep, "nests values so deeply that a parser ends the process", "deep")
    yield Hostile("cut.json", contents[: len(contents) // 2], "is cut in half", "is damaged")
    yield Hostile("archive.json", zipped({"model.json": contents}), "is an archive", "is damaged")


def _ubjsons() -> Iterator[Hostile]:
    contents = _xgboost("ubj")
    place = contents.index(b"left_children[$l#L") + len(b"left_children[$l#L") + 8
    for file, child, tries in (("circle", 0, "has a tree that leads back to its first node"),
                               ("child-far", 9_999_999, "has a child 9,999,999")):  # fmt: skip
        changed = contents[:place] + struct.pack(">i", child) + contents[place + 4 :]
        yield Hostile(f"{file}.ubj", changed, tries, "children of nodes")
    start = contents.index(b"left_children[$l#L") + len(b"left_children[$l#L")
    more = contents[:start] + struct.pack(">q", 1 << 40) + contents[start + 8 :]
    yield Hostile("announces.ubj", more, "announces a million million children", "are announced")
    less = contents[:start] + struct.pack(">q", -4) + contents[start + 8 :]
    yield Hostile("negative.ubj", less, "announces less than no children", "a length is -4")
    twice = b"{" + _key("learner") + b"{}" + contents[1:]
    yield Hostile("two-keys.ubj", twice, "has one key twice", "twice")
    yield Hostile("deep.ubj", b"{" + _key("learner") + b"[" * 5_000, "nests values without end", "deep")
    yield Hostile("cut.ubj", contents[: len(contents) // 2], "is cut in half", "is damaged")
    four, many = (b"num_featureSL" + struct.pack(">q", len(size)) + size for size in (b"4", b"9999999"))
    columns = contents.replace(four, many)
    yield Hostile("columns.ubj", columns, "has ten million columns", "number of columns")


def _key(name: str) -> bytes:
    return b"L" + struct.pack(">q", len(name)) + name.encode()
