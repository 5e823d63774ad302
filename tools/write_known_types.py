"""Write which types a .skops file may name: src/holdfast/models/files/known_types.json.

    python tools/write_known_types.py

Every classifier and transformer that scikit-learn documents is fitted and written by skops, and so are those of XGBoost
and LightGBM; the types that their files name are the list, less what is left out below, with the reason. Names of other
versions of scikit-learn are kept: add and remove by hand what a review says. tests/models/test_known_types.py pins it.
"""

from __future__ import annotations

import inspect
import io
import json
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import skops.io
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators

LIST = Path(__file__).parents[1] / "src" / "holdfast" / "models" / "files" / "known_types.json"
LEFT_OUT = (  # by how their names begin
    "sklearn.feature_extraction.",  # reads files that a cell names
    "sklearn.manifold.", "sklearn.cluster._agg", "sklearn.cluster._bis", "sklearn.cross_decomposition.",
    "sklearn.semi_supervised.", "sklearn.neural_network._rbm", "sklearn.neighbors._graph", "sklearn.random_projection",
    "sklearn.covariance", "sklearn.neighbors._unsupervised", "numpy.mean",  # no model of a table is made of them
)  # fmt: skip
CONTAINERS = {
    "DictNode": ["builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"],
    "DefaultDictNode": ["collections.defaultdict"],
    "ListNode": ["builtins.list"], "TupleNode": ["builtins.tuple"], "SetNode": ["builtins.set"],
    "SliceNode": ["builtins.slice"], "JsonNode": ["builtins.str"], "BytesNode": ["builtins.bytes"],
    "BytearrayNode": ["builtins.bytearray"], "DTypeNode": ["numpy.dtype"],
    "MaskedArrayNode": ["numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"],
    "RandomStateNode": ["numpy.random.mtrand.RandomState"],
    "RandomGeneratorNode": ["numpy.random._generator.Generator"],
    "SparseMatrixNode": [f"scipy.sparse._{kind}.{kind}_{form}" for kind in ("csr", "csc", "coo")
                         for form in ("matrix", "array")],
}  # fmt: skip
SCALARS = ["bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "str_", "bytes_", "uint8",
           "uint16", "uint32", "uint64", "datetime64", "timedelta64"]  # fmt: skip


def main() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    warnings.simplefilter("ignore")
    for estimator in examples():
        for node in nodes(estimator):
            found[node["__loader__"]].add(f"{node['__module__']}.{node['__class__']}")
    for loader, names in CONTAINERS.items():
        found[loader] = set(names)
    scalars = {f"numpy.{name}" for name in SCALARS}
    found["NdArrayNode"] = {"numpy.ndarray", *scalars}
    found["TypeNode"] = {*scalars, *(f"builtins.{name}" for name in ("int", "float", "str", "bool", "NoneType"))}
    found["TypeNode"] |= {"collections.OrderedDict", "collections.defaultdict"}
    found["FunctionNode"] |= set(functions())
    found["ObjectNode"] |= set(documented())
    kept = {loader: sorted(name for name in names if not name.startswith(LEFT_OUT)) for loader, names in found.items()}
    LIST.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")
    print(f"{sum(map(len, kept.values()))} names of {len(kept)} loaders: {LIST.name}")


def documented() -> Iterator[str]:
    """Classifiers and transformers that scikit-learn documents, also those that are not fitted here."""
    for _, kind in all_estimators(type_filter=["classifier", "transformer"]):
        yield f"{kind.__module__}.{kind.__name__}"
    for name in ("GridSearchCV", "RandomizedSearchCV"):
        yield f"sklearn.model_selection._search.{name}"
    yield from ("sklearn.pipeline.Pipeline", "sklearn.frozen._frozen.FrozenEstimator")
    yield from ("sklearn.isotonic.IsotonicRegression", "sklearn.linear_model._bayes.BayesianRidge")
    yield from ("sklearn.compose._column_transformer.make_column_selector", "sklearn.impute._iterative._ImputerTriplet")
    yield from ("sklearn.neighbors._ball_tree.BallTree", "sklearn.neighbors._kd_tree.KDTree")
    yield from (f"sklearn.metrics._dist_metrics.{name}Distance64" for name in ("Euclidean", "Manhattan", "Minkowski"))
    yield from (f"sklearn._loss.loss.{name}" for name in ("HalfBinomialLoss", "HalfMultinomialLoss", "ExponentialLoss"))
    yield from (f"sklearn._loss.link.{name}" for name in ("LogitLink", "MultinomialLogit", "HalfLogitLink", "Interval"))
    yield from (f"sklearn.neural_network._stochastic_optimizers.{name}Optimizer" for name in ("Adam", "SGD"))


def functions() -> Iterator[str]:
    """Functions of numbers alone, which a FunctionTransformer may apply, and scores of columns."""
    for name in ("log", "log1p", "log2", "log10", "exp", "expm1", "sqrt", "cbrt", "square", "abs", "absolute", "sign",
                 "tanh", "arctan", "arcsinh", "reciprocal", "negative", "floor", "ceil", "rint"):  # fmt: skip
        yield f"numpy.{name}"
    for name in ("f_classif", "chi2", "f_regression", "f_oneway"):
        yield f"sklearn.feature_selection._univariate_selection.{name}"
    yield "sklearn.feature_selection._mutual_info.mutual_info_classif"
    for name in (
        "accuracy_score",
        "balanced_accuracy_score",
        "f1_score",
        "precision_score",
        "recall_score",
        "log_loss",
    ):
        yield f"sklearn.metrics._classification.{name}"
    yield from ("sklearn.metrics._ranking.roc_auc_score", "sklearn.metrics._ranking.average_precision_score")


def examples() -> Iterator[BaseEstimator]:
    for classes in (2, 3):
        x, y = make_classification(200, 6, n_informative=4, n_classes=classes, random_state=0)
        for _, kind in all_estimators(type_filter=["classifier", "transformer"]):
            try:
                yield kind(**_required(kind)).fit(np.abs(x), y)
            except Exception as error:  # other data, or other packages, than there are here
                print(f"not fitted: {kind.__name__}: {str(error).splitlines()[0][:80]}")
        yield from _boosters(x, y)


def _required(kind: Any) -> dict[str, Any]:
    made = {
        "estimator": LogisticRegression(), "base_estimator": LogisticRegression(),
        "estimators": [("a", LogisticRegression()), ("b", DecisionTreeClassifier())],
        "transformers": [("a", StandardScaler(), [0, 1])], "transformer_list": [("a", StandardScaler())],
    }  # fmt: skip
    asked = inspect.signature(kind).parameters.values()
    return {one.name: made[one.name] for one in asked if one.default is inspect.Parameter.empty and one.name in made}


def _boosters(x: Any, y: Any) -> Iterator[BaseEstimator]:
    import lightgbm
    import xgboost

    for kind in (xgboost.XGBClassifier, xgboost.XGBRFClassifier):
        yield kind(n_estimators=2).fit(x, y)
    for boosting in ("gbdt", "dart"):
        yield lightgbm.LGBMClassifier(boosting_type=boosting, n_estimators=2, verbose=-1).fit(x, y)


def nodes(estimator: Any) -> Iterator[dict[str, Any]]:
    try:
        contents = skops.io.dumps(estimator)
    except Exception as error:
        print(f"not written: {type(estimator).__name__}: {str(error).splitlines()[0][:80]}")
        return
    left = [json.loads(zipfile.ZipFile(io.BytesIO(contents)).read("schema.json"))]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
            if "__loader__" in value:
                yield value
        elif isinstance(value, list):
            left += value


if __name__ == "__main__":
    main()
