"""Linear models and networks of scikit-learn in torch: the same probabilities, with gradients, or no translation."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, LinearSVC

from holdfast import Encoding, Feature, MinCost, Schema, as_model, predict

NAMES = ["age", "income", "job", "home", "school"]
SCHOOL = ("none", "middle", "high", "college")


def people(classes: int) -> pd.DataFrame:
    draw = np.random.RandomState(1)
    table = pd.DataFrame(
        {
            "age": draw.randint(18, 70, 300),
            "income": draw.gamma(3, 1000, 300).round(2),
            "job": draw.choice(["none", "part", "full"], 300),
            "home": draw.choice(["rent", "own"], 300),
            "school": draw.choice(SCHOOL, 300),
        }
    )
    score = (
        (table.income - 3000) / 1500 + (table.job == "full") + 0.5 * (table.school == "high") + 0.4 * draw.randn(300)
    )
    table["label"] = np.where(score > 0, "good", "bad")
    return table if classes == 2 else table.assign(label=np.where(score > 1, "great", table.label))


def encoding(table: pd.DataFrame) -> Encoding:
    features = (
        Feature("age", "integer", mutable=False),
        Feature("income", "real", step=0.01),
        Feature("job", "categorical", levels=("part", "full"), zero_level="none"),
        Feature("home", "binary", levels=("rent", "own")),
        Feature("school", "ordinal", levels=SCHOOL),
    )
    return Encoding.fit(table, Schema(features, "label", tuple(sorted(set(table.label), reverse=True))))


def fitted(final, table: pd.DataFrame, *steps):
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job", "school"]),
        (OrdinalEncoder(), ["home"]),
        (StandardScaler(), ["age", "income"]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(columns, *steps, final).fit(table[NAMES], table.label)


def check_same(own, table: pd.DataFrame) -> None:
    space = encoding(table)
    model = as_model(own, space)
    assert model.exact is not None
    assert "searched by its gradient" in repr(model)
    x = space.encode(table).requires_grad_()
    exact = model.exact(x)
    torch.testing.assert_close(exact.softmax(1), model(x.detach()).softmax(1), rtol=0, atol=1e-5)
    (gradient,) = torch.autograd.grad(exact[:, 0].sum(), x)
    assert gradient.abs().amax() > 0


LEARNED = {"max_iter": 200, "learning_rate_init": 0.02, "random_state": 0}  # better than chance, or `as_model` warns


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "final",
    [
        LogisticRegression(),
        LinearDiscriminantAnalysis(),
        LinearSVC(),
        RidgeClassifier(),
        Perceptron(),
        SGDClassifier(loss="log_loss", random_state=0),
        *(
            MLPClassifier((16, 8), activation=each, max_iter=200, learning_rate_init=0.02, random_state=0)
            for each in ("relu", "tanh", "logistic")
        ),
        MLPClassifier((4,), activation="identity", max_iter=200, learning_rate_init=0.02, random_state=0),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2),
    ],
    ids=lambda final: f"{type(final).__name__}-{getattr(final, 'activation', '')}",
)
def test_linear_models_and_networks_are_the_same_in_torch(final, classes):
    table = people(classes)
    check_same(fitted(final, table), table)


@pytest.mark.parametrize("step", [PCA(4), SelectKBest(k=5), "passthrough"])
def test_steps_that_add_features_up_are_gone_through(step):
    table = people(2)
    check_same(fitted(LogisticRegression(), table, step), table)


def test_a_linear_support_vector_machine_of_two_classes():
    table = people(2)
    check_same(fitted(SVC(kernel="linear"), table), table)


@pytest.mark.parametrize(
    ("final", "steps"),
    [
        (SVC(), ()),
        (RandomForestClassifier(3, random_state=0), ()),
        (OneVsRestClassifier(LogisticRegression()), ()),
        (LogisticRegression(), (PolynomialFeatures(2),)),
        (LogisticRegression(), (FunctionTransformer(np.tanh),)),
    ],
    ids=str,
)
def test_what_is_no_sum_over_features_is_not_translated(final, steps):
    table = people(2)
    assert as_model(fitted(final, table, *steps), encoding(table)).exact is None


def test_missing_values_are_left_to_the_model():
    table = people(2)
    table.loc[::7, "school"] = None
    features = (Feature("income", "real"), Feature("school", "categorical", levels=SCHOOL, missing=True))
    space = Encoding.fit(table, Schema(features, "label", ("bad", "good")))
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["school"]), (StandardScaler(), ["income"]))
    own = make_pipeline(columns, LogisticRegression()).fit(table[["income", "school"]], table.label)
    assert as_model(own, space).exact is None


def test_what_the_translation_finds_the_object_confirms():
    table = people(3)
    space, own = encoding(table), fitted(MLPClassifier((8,), max_iter=60, random_state=0), table)
    model = as_model(own, space)
    x = space.encode(table)
    x = x[predict(model, x) != 0][:40]
    answer = MinCost(norm=1)(model, x, space.target("great", len(x)), space.space)
    assert answer.success > 0.9
    assert answer.calls is None
    assert (own.predict(space.decode(answer.point[answer.found])) == "great").all()


@pytest.mark.parametrize("bias", [0.0005, 0.05])
def test_what_the_object_does_not_confirm_is_searched_again(bias):
    table = people(2)
    space, own = encoding(table), fitted(LogisticRegression(), table)
    model = as_model(own, space)
    exact = model.exact
    assert exact is not None
    wrong = replace(model, exact=lambda x: exact(x) + torch.tensor([bias, 0.0], dtype=torch.float64))
    x = space.encode(table)
    x = x[predict(model, x) == 1][:20]
    target = space.target("good", len(x))
    free = space.space.without_people()
    right, found = (MinCost(norm=1)(each, x, target, free) for each in (model, wrong))
    assert found.found[right.found].all()
    assert found.cost(1)[right.found].mean() < 1.2 * right.cost(1)[right.found].mean()
