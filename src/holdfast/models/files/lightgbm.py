"""Files of LightGBM: parsed, checked, and written anew. LightGBM is given what was checked, and nothing else.

LightGBM ends the process on some damaged files, and reads others otherwise than Python would: it stops at an empty
line, and takes the first of two values. So the text that it gets is made of the parts that were understood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from holdfast.models.files.checking import (
    MOST_CLASSES,
    MOST_COLUMNS,
    check_is_tree,
    expect,
    inside,
    rises,
    whole_numbers,
    without_repeats,
    written_numbers,
)
from holdfast.models.files.untrusted import check_json, damaged

HEAD = (
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective", "feature_names",
    "monotone_constraints", "feature_infos",
)  # fmt: skip
WHOLE_HEAD = ("num_class", "num_tree_per_iteration", "label_index", "max_feature_idx")
LISTS = (
    "split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child", "leaf_value",
    "leaf_weight", "leaf_count", "internal_value", "internal_weight", "internal_count",
)  # fmt: skip
WHOLE = ("split_feature", "decision_type", "left_child", "right_child")
CATEGORIES = ("cat_boundaries", "cat_threshold")
# Values that LightGBM reads without looking at them again.
_VERSION = re.compile(r"v[0-9]{1,3}")
_OBJECTIVE = re.compile(r"[a-z_]+( [a-z_]+(:[-+0-9.eE]{1,30})?)*")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def checked_lightgbm(path: Path, contents: bytes) -> str:
    """The text of a model of LightGBM, written anew, if its trees are trees; without the settings of its training."""
    try:
        return _written_anew(path, contents.decode())
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise damaged(path, error) from None


def _written_anew(path: Path, text: str) -> str:
    head, found, after_head = text.partition("\nTree=0\n")
    expect(bool(found), "its trees: there is none")
    trees, found, after = f"Tree=0\n{after_head}".partition("\nend of trees\n")
    expect(bool(found), "the end of the trees")
    flags, known = _head(head)
    classes, columns = int(known["num_class"]), int(known["max_feature_idx"]) + 1
    blocks = [block for block in trees.split("\n\n") if block.strip("\n")]
    expect(len(blocks) % classes == 0, "the number of trees")
    sizes = known.pop("tree_sizes", None)
    expect(sizes is None or len(sizes.split(" ")) == len(blocks), "the number of trees")
    written = [_tree(block, number, columns) for number, block in enumerate(blocks)]
    lines = [*flags[:1], *(f"{name}={known[name]}" for name in HEAD if name in known), *flags[1:]]
    lines.append("tree_sizes=" + " ".join(str(len(tree.encode())) for tree in written))
    levels = _levels(path, after)
    return "\n".join(lines) + "\n\n" + "".join(written) + f"end of trees\n\npandas_categorical:{levels}\n"


def _levels(path: Path, after: str) -> str:
    """What lightgbm's Python keeps of pandas, in the last line."""
    expect(after.count("pandas_categorical:") <= 1, "the levels of columns")
    levels = after.partition("pandas_categorical:")[2].strip() or "null"
    check_json(path, levels.encode())
    found = json.loads(levels)
    expect(found is None or (isinstance(found, list) and all(isinstance(part, list) for part in found)), "the levels")
    return json.dumps(found)


def _head(text: str) -> tuple[list[str], dict[str, str]]:
    lines = [line for line in text.split("\n") if line]
    expect(not any(_CONTROL.search(line) for line in lines), "its head: it has control characters")
    flags = [line for line in lines if "=" not in line]
    expect(flags in (["tree"], ["tree", "average_output"]) and lines[0] == "tree", "its head")
    known = without_repeats((name, value) for name, _, value in (line.partition("=") for line in lines if "=" in line))
    for name in WHOLE_HEAD:
        expect(bool(re.fullmatch(r"-?[0-9]{1,9}", known[name], re.ASCII)), name)
    classes, columns = int(known["num_tree_per_iteration"]), int(known["max_feature_idx"]) + 1
    expect(0 < columns <= MOST_COLUMNS, "the number of columns")
    for name in ("feature_names", "feature_infos"):
        expect(len(known[name].split(" ")) == columns, "the number of columns")
    expect(0 < classes <= MOST_CLASSES and classes == int(known["num_class"]), "the number of classes")
    expect(bool(_VERSION.fullmatch(known.get("version", "v4"))), "its version")
    _check_objective(known.get("objective", "binary"), classes)
    if "monotone_constraints" in known:
        written_numbers(known["monotone_constraints"], columns)
    return flags, known


def _check_objective(text: str, classes: int) -> None:
    expect(bool(_OBJECTIVE.fullmatch(text)), "its objective")
    settings = dict(word.split(":") for word in text.split(" ")[1:] if ":" in word)
    expect(int(settings.get("num_class", classes)) == classes, "the number of classes")
    expect(0 < float(settings.get("sigmoid", 1)) < np.inf, "its sigmoid")


def _tree(text: str, number: int, columns: int) -> str:
    """One tree, written anew with the lists that it must have."""
    lines = [line for line in text.split("\n") if line]
    fields = without_repeats((name, value) for name, _, value in (line.partition("=") for line in lines))
    expect(fields["Tree"] == str(number), "the numbers of the trees")
    expect(fields.get("is_linear", "0") == "0", "its leaves: linear ones are not read from a file")
    leaves, sets = (int(written_numbers(fields[name], 1)[0]) for name in ("num_leaves", "num_cat"))
    expect(0 < leaves <= len(text) and 0 <= sets <= len(text), "the number of leaves")
    lists = _lists(fields, leaves)
    if leaves > 1:
        lists |= _checked_splits(lists, fields, leaves, sets, columns)
    (shrinkage,) = written_numbers(fields.get("shrinkage", "1"), 1)
    kept = [f"{name}={' '.join(values)}" for name, values in lists.items()]
    whole = [f"Tree={number}", f"num_leaves={leaves}", f"num_cat={sets if leaves > 1 else 0}", *kept]
    return "\n".join([*whole, "is_linear=0", f"shrinkage={shrinkage}"]) + "\n\n\n"


def _lists(fields: Mapping[str, str], leaves: int) -> dict[str, list[str]]:
    found = {}
    for name in LISTS:
        optional = name in ("leaf_weight", "leaf_count") or name.startswith(("split_gain", "internal"))
        if optional and not fields.get(name):
            continue
        if leaves == 1 and name != "leaf_value":  # LightGBM reads no more of a tree without a split
            continue
        found[name] = written_numbers(fields[name], leaves if name.startswith("leaf") else leaves - 1)
    return found


def _checked_splits(
    lists: Mapping[str, list[str]], fields: Mapping[str, str], leaves: int, sets: int, columns: int
) -> dict[str, list[str]]:
    """The lists of categories, if every split is of a column and every node in its place."""
    split, kind, left, right = (whole_numbers([int(word) for word in lists[name]]) for name in WHOLE)
    expect(inside(split, 0, columns) and inside(kind, 0, 16), "the column of a split")
    children = np.concatenate([left, right])
    check_is_tree(children[children >= 0], leaves - 1)
    expect(sorted((~children[children < 0]).tolist()) == list(range(leaves)), "the leaves")
    if not sets and not bool((kind & 1).any()):
        return {}
    found = {name: written_numbers(fields[name], len(fields[name].split(" "))) for name in CATEGORIES}
    starts, codes = (whole_numbers([int(word) for word in found[name]]) for name in CATEGORIES)
    expect(len(starts) == sets + 1 and starts[0] == 0 and starts[-1] == len(codes), "the categories")
    threshold = np.array([float(word) for word in lists["threshold"]])
    expect(rises(starts) and inside(threshold[(kind & 1) == 1], 0, sets), "the categories of a split")
    expect(inside(codes, 0, 1 << 32), "the categories")
    return found
