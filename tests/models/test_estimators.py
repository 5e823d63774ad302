"""Whatever gives classes can be the deployed model and says how it is asked; what gives none is refused."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import all_estimators

import holdfast as hf
from holdfast import Encoding, Feature, MinCost, Schema, as_model, predict
from holdfast.models.merged import merged

NAMES = ["age", "income", "job", "home", "debts"]


def people(count: int = 300, classes: int = 2) -> pd.DataFrame:
    draw = np.random.RandomState(0)
    table = pd.DataFrame(
        {
            "age": draw.randint(18, 70, count),
            "income": draw.gamma(3, 1000, count).round(2),
            "job": draw.choice(["none", "part", "full"], count),
            "home": draw.choice(["rent", "own"], count),
            "debts": draw.randint(0, 6, count),
        }
    )
    score = (table.income - 3000) / 1500 + (table.job == "full") - table.debts / 2 + 0.7 * (table.home == "own") + 0.4
    score += 0.4 * draw.randn(count)
    table["label"] = np.where(score > 0, "good", "bad")
    if classes == 3:
        table["label"] = np.where(score > 1, "great", table.label)
    return table


def schema(classes=("good", "bad")) -> Schema:
    return Schema(
        (
            Feature("age", "integer", mutable=False),
            Feature("income", "real", step=0.01),
            Feature("job", "categorical", levels=("none", "part", "full")),
            Feature("home", "binary", levels=("rent", "own")),
            Feature("debts", "integer"),
        ),
        "label",
        classes,
    )


TABLE = people()
ENCODING = Encoding.fit(TABLE, schema())
THREE = people(classes=3)
THREE_ENCODING = Encoding.fit(THREE, schema(("good", "bad", "great")))


def numbers(final, table=TABLE):
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job", "home"]), (MinMaxScaler(), ["age", "income", "debts"])
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(columns, final).fit(table[NAMES], table.label)


QUICK = {"KNeighborsClassifier", "LinearSVC", "OutputCodeClassifier", "DummyClassifier"}


def classifiers():
    """Every classifier of scikit-learn, with what its constructor insists on."""
    needed = {
        "estimator": LogisticRegression(),
        "estimators": [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=3))],
    }
    for name, kind in all_estimators(type_filter="classifier"):
        asked = inspect.signature(kind.__init__).parameters
        given = {word: value for word, value in needed.items() if word in asked}
        if "random_state" in asked:
            given["random_state"] = 0
        if "max_iter" in asked and name == "MLPClassifier":
            given["max_iter"] = 50
        yield pytest.param(kind, given, id=name, marks=() if name in QUICK else pytest.mark.slow)


@pytest.mark.parametrize(("kind", "given"), list(classifiers()))
@pytest.mark.filterwarnings("ignore")
def test_every_classifier_of_scikit_learn_is_searched(kind, given):
    try:
        own = numbers(kind(**given))
    except Exception as error:
        pytest.skip(f"cannot be fitted to this table: {error}")
    model = as_model(own, ENCODING)
    x = ENCODING.encode(TABLE)[:60]
    x = x[predict(model, x) == 1][:4]
    answer = MinCost(norm=1, calls=300)(model, x, ENCODING.target("good", len(x)), ENCODING.space)
    said = own.predict(ENCODING.decode(answer.point))
    assert (said[answer.found.numpy()] == "good").all()
    assert (own.predict(ENCODING.decode(x)) == "bad").all()
    assert answer.found.all() if kind.__name__ != "DummyClassifier" else not answer.found.any()


# ---- what it is given ----


def test_columns_are_given_by_name_in_the_order_they_were_fitted():
    own = LogisticRegression().fit(TABLE[["debts", "income"]] / [1, 1000], TABLE.label)
    own.feature_names_in_ = np.array(["debts", "income"], dtype=object)
    with pytest.warns(UserWarning, match="less often than always answering"):  # it was fitted to another unit
        model = as_model(own, ENCODING)
    assert "a table of 2 of the 5 columns" in repr(model)
    x = ENCODING.encode(TABLE)
    assert [ENCODING.schema.classes[place] for place in predict(model, x)] == own.predict(
        TABLE[["debts", "income"]]
    ).tolist()


def test_columns_that_the_schema_lacks_are_named():
    table = TABLE.assign(incomes=TABLE.income, shoe=1.0)
    own = DecisionTreeClassifier(random_state=0).fit(table[["incomes", "shoe"]], table.label)
    with pytest.raises(ValueError, match=r"'incomes' \(did you mean 'income'\?\), 'shoe'"):
        as_model(own, ENCODING)


def test_a_model_of_encoded_rows_is_given_those():
    x = ENCODING.encode(TABLE).numpy()
    own = LogisticRegression().fit(x, TABLE.label)
    model = as_model(own, ENCODING)
    assert "an array of 7 encoded columns" in repr(model)
    named = LogisticRegression().fit(pd.DataFrame(x, columns=list(ENCODING.columns)), TABLE.label)
    assert "a table of 7 encoded columns" in repr(as_model(named, ENCODING))
    for each in (own, named):
        logits = as_model(each, ENCODING)(ENCODING.encode(TABLE))
        torch.testing.assert_close(logits, model(ENCODING.encode(TABLE)), rtol=1e-4, atol=1e-4)


def numeric() -> tuple[pd.DataFrame, Encoding]:
    table = TABLE[["age", "income", "debts", "label"]]
    kept = Schema(tuple(f for f in schema().features if f.is_numeric), "label", ("good", "bad"))
    return table, Encoding.fit(table, kept)


@pytest.mark.parametrize("takes", ["table", "encoded"])
def test_where_both_fit_the_one_that_is_right_more_often_is_taken(takes):
    table, encoding = numeric()
    rows = encoding.encode(table).numpy() if takes == "encoded" else table[["age", "income", "debts"]].to_numpy()
    own = KNeighborsClassifier().fit(rows, table.label)
    model = as_model(own, encoding)
    assert ("encoded columns" in repr(model)) == (takes == "encoded")
    assert [encoding.schema.classes[place] for place in predict(model, encoding.encode(table))] == own.predict(
        rows
    ).tolist()


def test_a_width_that_fits_neither_is_refused():
    own = LogisticRegression().fit(np.random.RandomState(0).randn(300, 4), TABLE.label)
    with pytest.raises(ValueError, match="fitted to 4 columns, but the schema has 5 features, which are 7 encoded"):
        as_model(own, ENCODING)


# ---- what it answers ----


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_support_vector_machines_of_several_classes(shape):
    own = numbers(SVC(decision_function_shape=shape), THREE)
    model = as_model(own, THREE_ENCODING)
    assert ("`predict` decides the class" if shape == "ovr" else "asked for predict of") in repr(model)
    x = THREE_ENCODING.encode(THREE)
    x = x[predict(model, x) != 0][:20]
    answer = MinCost(norm=1, calls=150)(model, x, THREE_ENCODING.target("good", len(x)), THREE_ENCODING.space)
    assert (own.predict(THREE_ENCODING.decode(answer.point[answer.found])) == "good").all()
    found = [THREE_ENCODING.schema.classes[place] for place in predict(model, THREE_ENCODING.encode(THREE))]
    assert found == own.predict(THREE[NAMES]).tolist()


@pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
@pytest.mark.parametrize(
    "final",
    [
        SVC(probability=True, random_state=0),
        FixedThresholdClassifier(LogisticRegression(), threshold=0.8, pos_label="good"),
        TunedThresholdClassifierCV(LogisticRegression(), cv=3),
    ],
)
def test_predict_decides_where_the_probabilities_say_otherwise(final):
    own = numbers(final)
    model = as_model(own, ENCODING)
    assert "`predict` decides the class" in repr(model)
    found = [ENCODING.schema.classes[place] for place in predict(model, ENCODING.encode(TABLE))]
    assert found == own.predict(TABLE[NAMES]).tolist()


def test_a_threshold_of_its_own_is_where_the_log_odds_are_0():
    own = numbers(FixedThresholdClassifier(LogisticRegression(), threshold=0.8, pos_label="good"))
    model = as_model(own, ENCODING)
    logits = model(ENCODING.encode(TABLE))
    share = own.predict_proba(TABLE[NAMES])[:, list(own.classes_).index("good")]
    odds = np.log(share / (1 - share)) - np.log(0.8 / 0.2)
    np.testing.assert_allclose((logits[:, 0] - logits[:, 1]).numpy(), odds, atol=0.1)


def test_labels_alone_will_do():
    own = numbers(VotingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=3))]))
    model = as_model(own, ENCODING)
    assert "asked for predict of" in repr(model)
    assert set(model(ENCODING.encode(TABLE)).flatten().tolist()) == {-1.0, 1.0}


def test_a_tie_is_what_predict_says():
    class Torn(ClassifierMixin, BaseEstimator):
        classes_ = np.array(["bad", "good"])

        def predict_proba(self, table):
            return np.full((len(table), 2), 0.5)

        def predict(self, table):
            return np.where(table.income > 3000, "good", "bad")

    model = as_model(Torn(), ENCODING)
    assert (model(ENCODING.encode(TABLE)).argmax(1).numpy() == np.where(TABLE.income > 3000, 0, 1)).all()


def test_a_method_of_an_estimator_stands_for_it():
    own = numbers(LogisticRegression())
    x = ENCODING.encode(TABLE)
    torch.testing.assert_close(as_model(own.predict_proba, ENCODING)(x), as_model(own, ENCODING)(x))
    assert "asked for predict of" in repr(as_model(own.predict, ENCODING))


# ---- which class ----


def test_classes_are_matched_by_value_by_text_and_by_position():
    truth = (TABLE.label == "good").to_numpy()
    encoding = Encoding.fit(TABLE.assign(label=truth), schema((False, True)))
    rows = TABLE[["income", "debts"]]
    for labels, note in ((truth, ""), (truth.astype(int), ""), (truth.astype(str), "by their text")):
        own = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows, labels)
        model = as_model(own, encoding)
        assert (
            predict(model, encoding.encode(TABLE)).bool().numpy()
            == (own.predict(rows).astype(str) == str(own.classes_[1]))
        ).all()
        assert note in repr(model)
    named = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows, (TABLE.label == "bad").astype(int))
    assert "classes by position: 0 is 'good', 1 is 'bad'" in repr(as_model(named, ENCODING))


def test_numbers_in_another_order_are_refused_until_the_order_is_said():
    rows = TABLE[["income", "debts"]]
    own = DecisionTreeClassifier(max_depth=3, random_state=0).fit(rows, (TABLE.label == "good").astype(int))
    with pytest.raises(ValueError, match=r"pass classes=\('bad', 'good'\)"):
        as_model(own, ENCODING)
    model = as_model(own, ENCODING, classes=("bad", "good"))
    assert (predict(model, ENCODING.encode(TABLE)).numpy() == 1 - own.predict(rows)).all()


def test_other_classes_are_refused():
    own = numbers(LogisticRegression(), TABLE.assign(label=TABLE.label.map({"good": "yes", "bad": "no"})))
    with pytest.raises(
        ValueError, match="has the classes 'no', 'yes', but the schema has 'good', 'bad'; pass classes="
    ):
        as_model(own, ENCODING)
    assert (predict(as_model(own, ENCODING, classes=("bad", "good")), ENCODING.encode(TABLE)) == 0).any()


# ---- functions ----

OWN = numbers(LogisticRegression())
GOOD = list(OWN.classes_).index("good")


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda table: OWN.predict_proba(table)[:, [GOOD, 1 - GOOD]], "probabilities"),
        (lambda table: torch.tensor(OWN.predict_proba(table)[:, [GOOD, 1 - GOOD]]).log() * 1.0, "logits"),
        (lambda table: OWN.predict_proba(table)[:, 1 - GOOD], "probabilities"),
        (lambda table: pd.Series(OWN.predict_proba(table)[:, 1 - GOOD]).tolist(), "probabilities"),
        (lambda table: -OWN.decision_function(table) * (1 if GOOD else -1), "logits"),
        (lambda table: OWN.predict(table), "labels"),
        (lambda table: (OWN.predict(table) == "bad").astype(int), "labels"),
        (lambda table: OWN.predict(table) == "bad", "labels"),
    ],
)
def test_what_a_function_gives_is_found_out(function, says):
    model = as_model(function, ENCODING)
    assert f"asked for {says} of a table of 5 columns" in repr(model)
    found = [ENCODING.schema.classes[place] for place in predict(model, ENCODING.encode(TABLE))]
    assert found == OWN.predict(TABLE[NAMES]).tolist()


def test_a_function_of_encoded_rows():
    own = LogisticRegression().fit(ENCODING.encode(TABLE).numpy(), (TABLE.label == "bad").astype(int))
    for model in (
        as_model(lambda x: own.predict_proba(x), ENCODING, takes="encoded"),
        as_model(lambda x: own.predict_proba(x), ENCODING),
    ):
        assert "an array of 7 encoded columns" in repr(model)
        assert (predict(model, ENCODING.encode(TABLE)).numpy() == own.predict(ENCODING.encode(TABLE).numpy())).all()


def broken(table):
    raise KeyError("no such thing")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda table: np.full((len(table), 2), np.nan), "answers NaN for 300 of 300 rows, the first of them row 0"),
        (lambda table: np.zeros((3, 2)), r"shape \(3, 2\) for 300 rows"),
        (lambda table: np.ones((len(table), 3)) / 3, "gives 3 numbers for each row, but there are 2 classes"),
        (broken, "broken raised KeyError when it was asked about a table of 5 columns"),
        (lambda table: np.random.rand(len(table)), "answers the same rows differently"),
        (lambda table: table.income.rank(pct=True), "or among other rows"),
        (LinearRegression().fit(TABLE[["income"]], TABLE.debts), "is a regressor and gives no classes"),
        (KMeans(2).fit(TABLE[["income"]]), "is a clusterer"),
        (IsolationForest().fit(TABLE[["income"]]), "is an outlier detector"),
        (LogisticRegression(), "is not fitted yet"),
        (make_pipeline(MinMaxScaler(), LogisticRegression()), "is not fitted yet"),
        (
            MultiOutputClassifier(LogisticRegression()).fit(TABLE[["debts"]], TABLE[["label", "home"]]),
            "has 2 outputs; a model of one label is needed",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(model, message):
    with pytest.raises(ValueError, match=message):
        as_model(model, ENCODING)


def test_their_error_is_chained():
    with pytest.raises(ValueError, match="raised KeyError") as caught:
        as_model(broken, ENCODING)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_class_is_no_model():
    with pytest.raises(TypeError, match=r"LogisticRegression is a class; pass a fitted LogisticRegression\(\)"):
        as_model(LogisticRegression, ENCODING)


def test_a_search_that_is_given_an_estimator_says_what_to_do():
    x = ENCODING.encode(TABLE)[:2]
    with pytest.raises(TypeError, match=r"hf\.as_model\(model, encoding\)"):
        MinCost()(OWN, x, ENCODING.target("good", 2), ENCODING.space)
    with pytest.raises(ValueError, match=r"hf\.as_model\(model, encoding\)"):
        MinCost()(lambda table: OWN.predict_proba(table[NAMES]), x, ENCODING.target("good", 2), ENCODING.space)


def test_models_of_encoded_rows_come_back_as_they_are(family):
    encoding = ENCODING
    for model in (family[0], merged(family[0], ((0,), (1,))), as_model(OWN, encoding)):
        assert as_model(model, encoding) is model


@pytest.mark.filterwarnings("ignore")
def test_searches_over_settings_and_calibration_are_asked_as_they_are():
    for final in (
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
        CalibratedClassifierCV(RandomForestClassifier(5, random_state=0), cv=2),
    ):
        own = numbers(final)
        found = [ENCODING.schema.classes[place] for place in predict(as_model(own, ENCODING), ENCODING.encode(TABLE))]
        assert found == own.predict(TABLE[NAMES]).tolist()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosted_trees_of_categories_are_asked_beside_a_table_of_text(library):
    """The encoding was fitted to text, the model to categories of it."""
    table, schema = hf.load("german")
    columns = list(schema.names)
    coded = table[columns].astype({one.name: "category" for one in schema.features if not one.is_numeric})
    label = (table[schema.label] == schema.classes[1]).astype(int)
    if library == "xgboost":
        own = pytest.importorskip("xgboost").XGBClassifier(n_estimators=5, max_depth=3, enable_categorical=True)
    else:
        own = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1)
    own.fit(coded, label)
    encoding = hf.Encoding.fit(table, schema)
    model = hf.as_model(own, encoding)
    assert model.ensemble is not None
    assert (hf.predict(model, encoding.encode(table)).numpy() == own.predict(coded)).all()


def test_a_column_with_a_space_has_an_underscore_in_lightgbm():
    table, schema = hf.load("german")
    table = table.rename(columns={"credit_amount": "credit amount"})
    numbers = ["duration_months", "credit amount", "age"]
    features = tuple(hf.Feature(name, "integer") for name in numbers)
    encoding = hf.Encoding.fit(table, hf.Schema(features, schema.label, schema.classes))
    own = pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1)
    own.fit(table[numbers], table[schema.label])
    model = hf.as_model(own, encoding)
    assert (hf.predict(model, encoding.encode(table)).numpy() == (own.predict(table[numbers]) == "good")).all()


def test_a_name_says_what_a_pipeline_ends_in_and_no_template_of_trees():
    from holdfast.models.frameworks.estimators import name_of

    forest = RandomForestClassifier(2).fit([[0.0], [1.0]], [0, 1])
    assert name_of(forest) == "RandomForestClassifier"
    assert name_of(make_pipeline(MinMaxScaler(), forest)) == "Pipeline(RandomForestClassifier)"
