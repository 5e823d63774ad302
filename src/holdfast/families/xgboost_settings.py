"""The parameters that made a booster of XGBoost, as far as it shows them.

In memory it knows them all. A file holds its trees, and of the parameters only those that are needed to answer. The
trees show more, because XGBoost keeps the hessian H and the weight w = −G / (H + λ) of every node, G being the sum of
gradients: those of a node are the sums of its children's, and a leaf's value is η w.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.families.settings_told import Settings, rounded

Floats = NDArray[np.float64]
SEVERAL = ("multi:softprob", "multi:softmax")
FITS = 1e-4  # the largest residual of sums of gradients, relative to the largest of them, that rounding explains
COMPARED = 12  # rounds whose rows are counted
EVEN = 2e-3  # by which a share of rows may differ from 1 by rounding
NEAR = 1e-4  # by which a share of labels may, likewise
FEWEST = 3  # splits that tell three unknowns

# XGBClassifier's name of what a booster's configuration holds, and the value of a booster that was read from a file.
TREE = {
    "learning_rate": 0.3, "max_depth": 6, "min_child_weight": 1.0, "gamma": 0.0, "reg_alpha": 0.0, "reg_lambda": 1.0,
    "max_delta_step": 0.0, "subsample": 1.0, "sampling_method": "uniform", "colsample_bytree": 1.0,
    "colsample_bylevel": 1.0, "colsample_bynode": 1.0, "grow_policy": "depthwise", "max_leaves": 0, "max_bin": 256,
    "max_cat_to_onehot": 4, "max_cat_threshold": 64, "monotone_constraints": "()", "interaction_constraints": "",
}  # fmt: skip
DART = {"rate_drop": 0.0, "skip_drop": 0.0, "one_drop": 0, "sample_type": "uniform", "normalize_type": "tree"}
ALL = TREE | DART | {"tree_method": "auto", "random_state": 0}
SAMPLED = ("subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode")  # below 1, a seed matters


def classifier(values: dict[str, Any]) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1, **values)


def margins(booster: Any, rows: Any, rounds: int) -> Floats:
    """What the first rounds say of rows: (n,) or (n, c)."""
    import xgboost

    names = None if hasattr(rows, "columns") else booster.feature_names
    matrix = xgboost.DMatrix(rows, enable_categorical=True, feature_names=names)
    told: Floats = booster.predict(matrix, output_margin=True, iteration_range=(0, rounds)).astype(np.float64)
    return told


def own_booster(estimator: Any) -> Any:
    return estimator.get_booster()


def settings_of(booster: Any, rows: Any = None, labels: NDArray[np.int64] | None = None) -> Settings:
    """From its configuration, where it still has that, else from its trees and the rows it was trained on."""
    trees = Trees.of(booster)
    own = _configured(booster, trees)
    known = trees.exact()
    if own is not None:
        usual = tuple(name for name, value in own.items() if ALL.get(name) == value)
        given = tuple(name for name in known | own if name not in usual)
        return Settings(known | own, given, usual, seed_known=True, draws=_draws(own))
    found, told = trees.worked_out()
    share, says = (None, "") if rows is None or labels is None else trees.share_of_rows(booster, rows, labels)
    if share is not None:
        found["subsample"] = share
    values = trees.assumed() | known | found
    assumed = tuple(name for name in values if name not in {**known, **found})
    not_seen = (*assumed, *(name for name in ("subsample", "colsample_bytree", "gamma") if name not in values))
    remarks = tuple(text for text in (told, says) if text)
    return Settings(
        values, tuple(known), (), tuple(found), not_seen, remarks, draws=_draws(values), others=trees.others()
    )


def _draws(values: dict[str, Any]) -> bool:
    return any(values.get(name, 1) < 1 for name in SAMPLED) or bool(values.get("rate_drop"))


def _configured(booster: Any, trees: Trees) -> dict[str, Any] | None:
    """The parameters that it was trained with; None where it was read from a file and holds the defaults instead."""
    learner = json.loads(booster.save_config())["learner"]
    boosted = learner["gradient_booster"]
    inner = boosted.get("gbtree", boosted)
    given = _typed(inner["tree_train_param"], TREE) | _typed(boosted.get("dart_train_param", {}), DART)
    seed = int(learner["generic_param"]["seed"])
    if all(given[name] == value for name, value in TREE.items() if name in given) and seed == 0:
        return None
    found, _ = trees.worked_out()
    rate = found.get("learning_rate", given["learning_rate"])
    deep = given["max_depth"] and trees.depth > given["max_depth"]
    if deep or not np.isclose(rate, given["learning_rate"], rtol=1e-2):
        return None
    method = inner["gbtree_train_param"]["tree_method"]
    plain = {name: value for name, value in given.items() if value not in ("", "()")}
    return plain | {"tree_method": method, "random_state": seed}


def _typed(given: dict[str, str], known: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a configuration, which are text that has been through float32."""
    found: dict[str, Any] = {}
    for name, default in known.items():
        if name in given:
            text = given[name]
            found[name] = text if isinstance(default, str) else type(default)(float(f"{float(text):.7g}"))
    return found


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of a booster, and what it needs to answer."""

    learner: dict[str, Any]

    @classmethod
    def of(cls, booster: Any) -> Trees:
        return cls(json.loads(booster.save_raw("json"))["learner"])

    @property
    def booster(self) -> str:
        return str(self.learner["gradient_booster"]["name"])

    @cached_property
    def model(self) -> dict[str, Any]:
        boosted = self.learner["gradient_booster"]
        own: dict[str, Any] = boosted.get("gbtree", boosted)["model"]
        return own

    @cached_property
    def shapes(self) -> list[_Tree]:
        return [_Tree.of(tree) for tree in self.model["trees"]]

    @property
    def classes(self) -> int:
        return int(self.learner["learner_model_param"]["num_class"])

    @property
    def parallel(self) -> int:
        return int(self.model["gbtree_model_param"]["num_parallel_tree"])

    @property
    def per_round(self) -> int:
        return max(1, self.classes) * self.parallel

    @cached_property
    def depth(self) -> int:
        return max((tree.depth for tree in self.shapes), default=0)

    def exact(self) -> dict[str, Any]:
        """What every booster holds."""
        several = self.learner["objective"]["name"] in SEVERAL
        found: dict[str, Any] = {
            "n_estimators": len(self.shapes) // self.per_round,
            "objective": "multi:softprob" if several else "binary:logistic",
            "booster": self.booster,
        }
        if "c" in self.learner["feature_types"]:
            found["enable_categorical"] = True
        if self.parallel > 1:
            found["num_parallel_tree"] = self.parallel
        if self.weight != 1:
            found["scale_pos_weight"] = self.weight
        about = self.learner["learner_model_param"]
        base = np.atleast_1d(np.asarray(json.loads(about["base_score"]), dtype=np.float64))
        if about.get("boost_from_average") == "0" and len(base) == 1:
            found["base_score"] = rounded(self._as_probability(float(base[0])))
        return found

    def _as_probability(self, score: float) -> float:
        """What XGBClassifier takes: for this one objective the score is kept as a margin."""
        raw = self.learner["objective"]["name"] == "binary:logitraw"
        return float(1 / (1 + np.exp(-score))) if raw else score

    @property
    def weight(self) -> float:
        return float(self.learner["objective"].get("reg_loss_param", {}).get("scale_pos_weight", 1))

    def worked_out(self) -> tuple[dict[str, Any], str]:
        """What follows from the trees, and a remark where it does not."""
        found: dict[str, Any] = self._shape()
        for with_alpha in (False, True):
            solved = _solved(self.shapes, with_alpha)
            if solved is not None:
                found["learning_rate"] = rounded(solved[1] * self.parallel)
                found["reg_lambda"] = rounded(solved[0])
                if with_alpha:
                    found["reg_alpha"] = rounded(solved[2])
                return found, ""
        return found, "its leaves do not follow from their gradients by any learning_rate and reg_lambda"

    def _shape(self) -> dict[str, Any]:
        """A tree that is grown leaf by leaf has as many leaves as it may, and fewer than its depth allows."""
        leaves = [tree.leaves for tree in self.shapes]
        most = max(leaves, default=1)
        full = sum(count == most for count in leaves)
        if most > 2 and most < 2 ** min(self.depth, 30) and full > 0.8 * len(leaves):
            return {"grow_policy": "lossguide", "max_leaves": most, "max_depth": 0}
        return {"max_depth": max(1, self.depth)}

    @cached_property
    def lightest(self) -> float:
        """The least hessian of a node below a split."""
        return min((tree.lightest for tree in self.shapes), default=np.inf)

    @cached_property
    def least_gain(self) -> float:
        return min((tree.least_gain for tree in self.shapes), default=np.inf)

    def assumed(self) -> dict[str, Any]:
        """The default, unless the trees have lighter nodes."""
        return {"min_child_weight": 1.0 if self.lightest >= 1 else rounded_down(self.lightest)}

    def others(self) -> tuple[dict[str, Any], ...]:
        """What else could be, as far as the trees show: to be tried where the assumed does not give the booster."""
        some: list[dict[str, Any]] = [{"tree_method": "exact"}]
        for digits in (1, 2):  # what somebody has written is rather short
            heavy, gain = rounded_down(self.lightest, digits), rounded_down(self.least_gain, digits)
            some += [{"min_child_weight": heavy}] if 1 < heavy < np.inf else []
            some += [{"gamma": gain}] if 0.01 < gain < np.inf else []
        some += [{"min_child_weight": 0.0}] if self.lightest < 1 else []
        both = [one | {"tree_method": "exact"} for one in some[1:]]
        return (*some, *both)

    def share_of_rows(self, booster: Any, rows: Any, labels: NDArray[np.int64]) -> tuple[float | None, str]:
        """The part of the rows that a round was trained on, by the hessians of all rows before it."""
        if self.booster != "gbtree":
            return None, ""
        if self._starts_elsewhere(labels):
            return None, "it starts from another share of the classes than the table's: it was trained on other rows"
        rounds = len(self.shapes) // self.per_round
        shares = np.array([self._share(booster, rows, labels, one) for one in range(min(rounds, COMPARED))])
        mean, spread = float(shares.mean()), float(shares.std())
        if (np.abs(shares - 1) < EVEN).all():
            return 1.0, ""
        drawn = np.sqrt(max(0.0, mean * (1 - mean)) / len(labels))  # of a share, where every row is drawn by itself
        if 0.01 < mean < 1 and spread > drawn / 4:
            return round(mean, 2 if drawn < 0.01 else 1), ""
        return None, (
            f"its rounds have seen hessians of {mean:.3g} times those of the table: it was trained on other rows, or "
            "on rows with weights"
        )

    def _starts_elsewhere(self, labels: NDArray[np.int64]) -> bool:
        """Of two classes, a booster that was given no base_score starts from the share of the second among its rows."""
        about = self.learner["learner_model_param"]
        if self.classes or about.get("boost_from_average") != "1" or self.weight != 1:
            return False
        base = self._as_probability(float(np.atleast_1d(json.loads(about["base_score"]))[0]))
        return base != 0.5 and abs(base - float(labels.mean())) > NEAR

    def _share(self, booster: Any, rows: Any, labels: NDArray[np.int64], before: int) -> float:
        """Of all trees of a round, so that each class counts."""
        if before == 0:
            hessian = self._hessian(self._base(len(labels)), labels)
        else:
            hessian = self._hessian(margins(booster, rows, before), labels)
        own = self.shapes[before * self.per_round : (before + 1) * self.per_round]
        return float(sum(tree.hessian[0] for tree in own) / (hessian * self.parallel))

    def _base(self, count: int) -> Floats:
        score = np.atleast_1d(np.asarray(json.loads(self.learner["learner_model_param"]["base_score"]), dtype=float))
        if self.classes:
            return np.broadcast_to(score, (count, self.classes))
        share = np.clip(self._as_probability(float(score[0])), 1e-9, 1 - 1e-9)
        return np.full(count, np.log(share / (1 - share)))

    def _hessian(self, margin: Floats, labels: NDArray[np.int64]) -> float:
        if margin.ndim == 1:
            share = 1 / (1 + np.exp(-margin))
            weights = np.where(labels == 1, self.weight, 1.0)
            return float((weights * share * (1 - share)).sum())
        shares = np.exp(margin - margin.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return float((2 * shares * (1 - shares)).sum())


@dataclass(frozen=True, eq=False)
class _Tree:
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    weight: Floats  # of a node; of a leaf its value, which is its weight times the learning rate
    hessian: Floats
    gain: Floats

    @classmethod
    def of(cls, tree: dict[str, Any]) -> _Tree:
        left, right = (np.asarray(tree[name], dtype=np.int64) for name in ("left_children", "right_children"))
        names = ("base_weights", "split_conditions", "sum_hessian", "loss_changes")
        weight, value, hessian, gain = (np.asarray(tree[name], dtype=np.float64) for name in names)
        return cls(left, right, np.where(left < 0, value, weight), hessian, gain)

    @property
    def inner(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.left >= 0)

    @property
    def leaves(self) -> int:
        return len(self.left) - len(self.inner)

    @cached_property
    def depth(self) -> int:
        nodes, deep = np.zeros(1, dtype=np.int64), 0
        while True:
            nodes = nodes[self.left[nodes] >= 0]
            if not len(nodes):
                return deep
            nodes, deep = np.concatenate([self.left[nodes], self.right[nodes]]), deep + 1

    @property
    def lightest(self) -> float:
        return float(self.hessian[1:].min()) if len(self.hessian) > 1 else np.inf

    @property
    def least_gain(self) -> float:
        return float(self.gain[self.inner].min()) if len(self.inner) else np.inf

    def sums(self) -> tuple[Floats, Floats]:
        """Every split as an equation for (λ, 1/η, λ/η, α): its gradients are those of its children.

        −w (H + λ) is the sum of gradients moved towards 0 by α; of a leaf, w is its value over η.
        """
        known, wanted = np.zeros((len(self.inner), 4)), np.zeros(len(self.inner))
        own, sign, is_leaf = self.inner, np.sign(self.weight), self.left < 0
        known[:, 0] = -self.weight[own]
        known[:, 3] = -sign[own]
        wanted += self.weight[own] * self.hessian[own]
        for child in (self.left[own], self.right[own]):
            weight, times = self.weight[child], self.weight[child] * self.hessian[child]
            leaf = is_leaf[child]
            known[:, 0] += np.where(leaf, 0, weight)
            known[:, 1] += np.where(leaf, times, 0)
            known[:, 2] += np.where(leaf, weight, 0)
            known[:, 3] += sign[child]
            wanted -= np.where(leaf, 0, times)
        clear = (sign[own] != 0) & (sign[self.left[own]] != 0) & (sign[self.right[own]] != 0)
        return known[clear], wanted[clear]


def _solved(trees: list[_Tree], with_alpha: bool) -> tuple[float, float, float] | None:
    """λ, η and α by least squares; None where they do not fit every split."""
    parts = [tree.sums() for tree in trees]
    known = np.concatenate([part[0] for part in parts])[:, : 4 if with_alpha else 3]
    wanted = np.concatenate([part[1] for part in parts])
    if len(wanted) < FEWEST + with_alpha:
        return None
    found = np.linalg.lstsq(known, wanted, rcond=None)[0]
    apart = np.abs(known @ found - wanted).max()
    if not apart <= FITS * np.abs(known * found).max() or not found[1] > 0:
        return None
    # λ/η over 1/η is told by the leaves, which are many; λ alone by inner nodes, which stumps do not have.
    return max(0.0, float(found[2] / found[1])), float(1 / found[1]), float(found[3]) if with_alpha else 0.0


def rounded_down(value: float, digits: int = 2) -> float:
    """To so many digits."""
    if not np.isfinite(value) or value <= 0:
        return max(0.0, float(value))
    size = 10.0 ** (np.floor(np.log10(value)) + 1 - digits)
    return float(f"{np.floor(value / size * (1 + 1e-6)) * size:.6g}")
