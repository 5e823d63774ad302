"""Searching models that only answer: within so many questions, the same every time, and what is found is so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holdfast import Encoding, Feature, Margin, MinCost, Ordered, Schema, as_model, make_method, predict
from holdfast.models.merged import merged

NAMES = ["age", "income", "job", "debts", "late"]


def people(count: int = 300) -> pd.DataFrame:
    draw = np.random.RandomState(0)
    debts = draw.randint(0, 6, count)
    return pd.DataFrame(
        {
            "age": draw.randint(18, 70, count),
            "income": draw.gamma(3, 1000, count).round(-1),
            "job": draw.choice(["none", "part", "full"], count),
            "debts": debts,
            "late": np.minimum(debts, draw.randint(0, 4, count)),
        }
    )


TABLE = people()
SCORE = (TABLE.income - 3000) / 1500 + (TABLE.job == "full") - TABLE.debts / 2 - TABLE.late + 1.5
TABLE["label"] = np.where(SCORE + 0.3 * np.random.RandomState(1).randn(len(TABLE)) > 0, "good", "bad")
SCHEMA = Schema(
    (
        Feature("age", "integer", mutable=False),
        Feature("income", "real", step=10, direction="rise"),
        Feature("job", "categorical", levels=("none", "part", "full")),
        Feature("debts", "integer"),
        Feature("late", "integer"),
    ),
    "label",
    ("bad", "good"),
    (Ordered(("late", "debts")),),
)
ENCODING = Encoding.fit(TABLE, SCHEMA)
COLUMNS = make_column_transformer(
    (OneHotEncoder(sparse_output=False), ["job"]), (StandardScaler(), ["age", "income", "debts", "late"])
)
OWN = make_pipeline(COLUMNS, MLPClassifier((8,), max_iter=400, tol=1e-3, random_state=0)).fit(TABLE[NAMES], TABLE.label)
ROWS = ENCODING.encode(TABLE)
REFUSED = ROWS[torch.from_numpy(OWN.predict(TABLE[NAMES]) == "bad")][:8]
TARGET = ENCODING.target("good", len(REFUSED))


class Counted:
    """A function that counts the rows it is asked about, and how often."""

    def __init__(self, outputs: str = "probabilities") -> None:
        self.rows, self.times, self.outputs = 0, 0, outputs

    def __call__(self, table: pd.DataFrame) -> np.ndarray:
        self.rows, self.times = self.rows + len(table), self.times + 1
        return OWN.predict_proba(table) if self.outputs == "probabilities" else OWN.predict(table)


@pytest.mark.parametrize("outputs", ["probabilities", "labels"])
@pytest.mark.parametrize("plausible", [True, False])
def test_what_is_found_is_so_and_keeps_the_space(outputs, plausible):
    model = as_model(Counted(outputs), ENCODING)
    space = ENCODING.space if plausible else ENCODING.space.without_people()
    answer = MinCost(norm=1, calls=200)(model, REFUSED, TARGET, space)
    assert answer.success >= 0.9
    decoded = ENCODING.decode(answer.point)
    assert (OWN.predict(decoded[NAMES])[answer.found.numpy()] == "good").all()
    assert not space.violations(answer.point, REFUSED).any()
    assert not len(SCHEMA.broken(decoded))
    if plausible:
        assert (
            answer.unlikeness[answer.found][:, 1] <= answer.unlikeness[answer.found][:, 0].clamp_min(1) + 1e-4
        ).all()


@pytest.mark.parametrize("calls", [5, 60, 160])
def test_the_budget_is_kept_and_reported(calls):
    own = Counted()
    model = as_model(own, ENCODING)
    own.rows = 0
    answer = MinCost(norm=1, calls=calls)(model, REFUSED, TARGET, ENCODING.space.without_people())
    learned = len(model.learned[0])
    assert answer.calls == own.rows
    assert answer.calls <= calls * len(REFUSED) + learned
    own.rows = 0
    again = MinCost(norm=1, calls=calls)(model, REFUSED, TARGET, ENCODING.space.without_people())
    assert own.rows == answer.calls - learned  # what was learned from once is not asked about again
    assert torch.equal(again.point, answer.point)


def test_more_calls_find_cheaper_points_and_few_questions_are_many_rows():
    own = Counted()
    model = as_model(own, ENCODING)
    few, many = (
        MinCost(norm=1, calls=calls)(model, REFUSED, TARGET, ENCODING.space.without_people()) for calls in (40, 300)
    )
    assert many.success == 1
    assert many.found[few.found].all()
    both = few.found
    assert (many.cost(1)[both] <= few.cost(1)[both] + 1e-6).all()
    assert own.rows / own.times > 10


def test_nearly_as_cheap_as_by_the_gradient():
    space = ENCODING.space.without_people()
    exact, asked = as_model(OWN, ENCODING), as_model(Counted(), ENCODING)
    assert exact.exact is not None
    assert asked.exact is None
    for norm in (1, 2):
        led, found = (MinCost(norm=norm, calls=400)(model, REFUSED, TARGET, space) for model in (exact, asked))
        assert found.found.all()
        assert led.found.all()
        assert found.cost(norm).mean() <= 1.05 * led.cost(norm).mean()
        assert led.calls is None
        assert found.calls is not None


def test_a_row_is_searched_by_itself():
    model = as_model(Counted(), ENCODING)
    together = MinCost(norm=1, calls=150)(model, REFUSED, TARGET, ENCODING.space)
    alone = MinCost(norm=1, calls=150)(model, REFUSED[3:5], TARGET[3:5], ENCODING.space)
    torch.testing.assert_close(alone.point, together.point[3:5])


def test_whoever_has_the_class_stays():
    accepted = ROWS[torch.from_numpy(OWN.predict(TABLE[NAMES]) == "good")][:3]
    answer = MinCost(norm=1)(as_model(Counted(), ENCODING), accepted, ENCODING.target("good", 3), ENCODING.space)
    assert answer.found.all()
    assert torch.equal(answer.point, accepted)


def test_a_level_of_probability_is_reached():
    model = as_model(Counted(), ENCODING)
    answer = Margin(0.9, MinCost(norm=1, calls=200))(model, REFUSED, TARGET, ENCODING.space.without_people())
    assert answer.success >= 0.9
    assert answer.calls is not None
    share = OWN.predict_proba(ENCODING.decode(answer.point[answer.found])[NAMES])
    assert (share[:, list(OWN.classes_).index("good")] >= 0.9).all()


def test_without_known_rows_random_ones_are_learned_from():
    encoding = replace(ENCODING, known=None, plausible=None)
    model = as_model(Counted(), encoding)
    answer = MinCost(norm=1, calls=200)(model, REFUSED, TARGET, encoding.space)
    assert answer.success >= 0.9


def test_groups_of_classes_are_searched():
    draw = np.where(SCORE > 1, "great", TABLE.label)
    table = TABLE.assign(label=draw)
    encoding = Encoding.fit(table, Schema(SCHEMA.features, "label", ("bad", "good", "great"), SCHEMA.relations))
    own = make_pipeline(COLUMNS, LogisticRegression()).fit(table[NAMES], table.label)
    model = merged(as_model(lambda rows: own.predict_proba(rows), encoding), ((0,), (1, 2)))
    x = encoding.encode(table)
    x = x[predict(model, x) == 0][:5]
    answer = MinCost(norm=1, calls=200)(model, x, torch.ones(len(x), dtype=torch.long), encoding.space)
    assert answer.found.all()
    assert answer.calls is not None
    assert set(own.predict(encoding.decode(answer.point)[NAMES])) <= {"good", "great"}


def test_a_person_s_own_wishes_are_kept():
    kept = torch.zeros_like(REFUSED, dtype=torch.bool)
    kept[:6, 1] = True  # income
    space = ENCODING.space.without_people().to(REFUSED).keeping(kept)
    answer = MinCost(norm=1, calls=200)(as_model(Counted(), ENCODING), REFUSED, TARGET, space)
    assert answer.found[6:].all()
    assert torch.equal(answer.point[:6, 1], REFUSED[:6, 1])


@pytest.mark.parametrize("name", ["pgd", "prototype", "min-l1+sns", "margin+sparse"])
def test_what_needs_a_gradient_says_so_before_it_asks_anything(name):
    function = Counted()
    model = as_model(function, ENCODING)
    asked = function.rows
    method = make_method(name)
    with pytest.raises(ValueError, match="needs gradients"):
        method(model, REFUSED, TARGET, ENCODING.space)
    assert function.rows == asked
