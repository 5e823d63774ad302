"""Rehearsed searches of models without torch: trees over their joint cells, translations, and black boxes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything
from hypothesis import given, settings
from hypothesis import strategies as st

from grown_trees import Question, deployed, grown, least, used_by
from holdfast import Encoding, Family, Implies, MinCost, Rehearsed, as_model, audit, changes, other_class, plans, refit
from holdfast.models.abilities import able
from holdfast.models.merged import merged
from holdfast.models.wrapped import WrappedModel

ROWS, MEMBERS = 8, 5


def known(rows: int = 300) -> pd.DataFrame:
    """People whose outcome hangs on their columns, so that models learn the same thing in different ways."""
    own, draw = everything(rows), np.random.default_rng(3)
    score = own["income"].rank(pct=True) - own["debt"].rank(pct=True) + 0.5 * (own["job"] == "clerk")
    return own.assign(outcome=np.where(score + draw.normal(0, 0.3, rows) > 0, "yes", "no"))


TABLE = known()
ENCODING = Encoding.fit(TABLE, EVERYTHING)
FREE = replace(ENCODING.space, people=None, related=None)


def estimator(kind: str):
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier

    if kind == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1, random_state=0)
    if kind == "lightgbm":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=12, num_leaves=6, n_jobs=1, random_state=0, verbose=-1)
    return {
        "histogram": HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=6, early_stopping=False),
        "forest": RandomForestClassifier(12, max_depth=4, random_state=0),
        "logistic": LogisticRegression(max_iter=500),
        "network": MLPClassifier((4,), alpha=5.0, max_iter=2000, solver="lbfgs", random_state=0),
        "black box": GaussianNB(),
    }[kind]


@pytest.fixture(scope="module")
def made():
    """kind -> the deployed model and its refits, made once."""
    found: dict[str, tuple[WrappedModel, Family]] = {}

    def make(kind: str) -> tuple[WrappedModel, Family]:
        if kind not in found:
            x, y = ENCODING.encode(TABLE).numpy(), ENCODING.labels(TABLE).numpy()
            model = as_model(estimator(kind).fit(x, y), ENCODING)
            found[kind] = model, refit(model, TABLE, changes.bootstrap(2 * MEMBERS), workers=1)
        return found[kind]

    return make


def question(model):
    """People who are refused: income may only rise."""
    x = ENCODING.encode(TABLE)
    x = x[model(x).argmax(1) == 0][:ROWS]
    return x, torch.ones(len(x), dtype=torch.long)


def margins_of(members, answer) -> torch.Tensor:
    """By how much every member's own object prefers the target, asked about the decoded table: (k, n)."""
    table = ENCODING.encode(ENCODING.decode(answer.point))
    logits = torch.stack([torch.as_tensor(member(table)) for member in members])
    own = logits.gather(2, answer.target[None, :, None].expand(len(logits), -1, 1))[..., 0]
    return own - logits.scatter(2, answer.target[None, :, None].expand(len(logits), -1, 1), -torch.inf).amax(2)


def objects(model, family) -> list:
    """The users' own objects, asked directly."""

    def ask(own):
        return lambda x: torch.from_numpy(np.log(own.predict_proba(x.numpy()).astype(np.float64).clip(1e-12)))

    return [ask(one.wrapped) for one in (model, *family.stacks[0].models)]


slow = pytest.mark.slow
KINDS = ["histogram", "forest", "xgboost", "lightgbm", "logistic", pytest.param("network", marks=slow), "black box"]
SEARCHED = {"logistic": "gradient", "network": "gradient", "black box": "black box"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_users_own_objects_agree_on_what_is_found(made, kind):
    model, family = made(kind)
    rehearsal, others = family[:MEMBERS], family[MEMBERS:]
    method = Rehearsed(rehearsal, search=MinCost(norm=1, calls=150))
    x, target = question(model)
    least = method.worst_case(model)
    assert able(least).has_gradient == (SEARCHED.get(kind) == "gradient")
    answer = method(model, x, target, FREE)
    assert answer.found.double().mean() > 0.5
    assert (margins_of(objects(model, rehearsal), answer)[:, answer.found] > 0).all()
    assert (method.agreement(model, answer)[answer.found] == 1).all()
    assert not FREE.to(x).violations(answer.point, x)[answer.found].any()
    # Nothing is free: to convince more is never cheaper than to convince the deployed model.
    alone = MinCost(norm=1, calls=150)(model, x, target, FREE)
    both = answer.found & alone.found
    assert answer.cost(1)[both].mean() >= 0.99 * alone.cost(1)[both].mean()
    assert (answer.calls is not None) == (kind == "black box")
    with pytest.raises(ValueError, match="search has seen"):
        audit(answer, rehearsal)
    assert audit(answer, others).rate <= audit(alone, others).rate + 0.05


@pytest.mark.parametrize("kind", ["histogram", "forest", *(pytest.param(k, marks=slow) for k in SEARCHED)])
def test_a_margin_is_kept_by_everyone_and_a_share_by_so_many(made, kind):
    model, family = made(kind)
    rehearsal, search = family[:MEMBERS], MinCost(norm=1, calls=150)
    x, target = question(model)
    for margin, share in ((0.3, 1.0), (0.1, 0.6)):
        answer = Rehearsed(rehearsal, margin=margin, share=share, search=search)(model, x, target, FREE)
        assert answer.found.any()
        own = margins_of(objects(model, rehearsal), answer)[:, answer.found]
        reached = own > margin - 1e-3
        assert reached[0].all()  # the deployed model always counts
        assert (reached[1:].double().mean(0) >= share - 1e-9).all()
    whole = Rehearsed(rehearsal, search=search)(model, x, target, FREE)
    part = Rehearsed(rehearsal, share=0.2, search=search)(model, x, target, FREE)
    both = whole.found & part.found
    assert part.found.sum() >= whole.found.sum()
    assert part.cost(1)[both].mean() <= whole.cost(1)[both].mean() * 1.01 + 1e-6


@pytest.mark.parametrize("kind", ["histogram", "logistic", pytest.param("black box", marks=slow)])
def test_a_soft_minimum_asks_for_more(made, kind):
    model, family = made(kind)
    rehearsal, search = family[:MEMBERS], MinCost(norm=1, calls=150)
    x, target = question(model)
    hard, soft = (Rehearsed(rehearsal, temperature=t, search=search)(model, x, target, FREE) for t in (0.0, 0.5))
    assert soft.found.any()
    own = margins_of(objects(model, rehearsal), soft)[:, soft.found]
    tau = 0.5 * own.std(0, correction=0)
    assert bool((-tau * torch.logsumexp(-own / tau, 0) > -1e-3).all())
    both = hard.found & soft.found
    assert hard.cost(1)[both].mean() <= soft.cost(1)[both].mean() + 1e-6


# ---- trees, beside all cells that there are ----


def few_cells(seed: int, count: int) -> list[WrappedModel]:
    """Trees drawn by chance over a few features, each with thresholds of its own."""
    return [deployed(replace_link(grown(seed + place, ENCODING, trees=3, used=2), place)) for place in range(count)]


def replace_link(ensemble, place):
    """Every third has probabilities."""
    if place % 3 != 2:
        return ensemble
    value = np.where(ensemble.feature[:, None] < 0, 1 / (1 + np.exp(-ensemble.value)) / 3, 0.0)
    return replace(ensemble, value=value, link="probability")


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 0.5]), st.sampled_from([0.0, 0.3]))
def test_of_all_joint_cells_the_cheapest_on_which_they_agree_is_found(seed, share, margin):
    own, *members = few_cells(seed, 4)
    model = Rehearsed(Family.from_models(members), margin=margin, share=share).worst_case(own)
    x = ENCODING.encode(TABLE.iloc[:ROWS])
    asks = Question(model, ENCODING, x, 1 - own(x).argmax(1), FREE.to(x))
    ensembles = [one.ensemble for one in (own, *members)]
    edges = tuple(
        np.unique(np.concatenate([one.edges[place] for one in ensembles])) for place in range(len(ENCODING.places))
    )
    best = torch.tensor([least(asks, edges, used_by(ensembles), row) for row in range(ROWS)])
    point, there = asks.point(), best.isfinite()
    paid = torch.where(asks.enough(point), asks.cost(point), torch.inf)
    assert (paid.isfinite() == there).all()  # nothing is missed
    assert (paid[there] >= best[there] * (1 - 1e-3) - 1e-3).all()
    assert (paid[there] <= best[there] * (1 + 5e-3) + 5e-3).double().mean() >= 0.8 or not there.any()


def test_a_family_of_the_deployed_model_alone_is_the_plain_search(made):
    model, _ = made("histogram")
    twin = WrappedModel(model.adapter, ensemble=model.ensemble)
    x, target = question(model)
    plain = MinCost(norm=1)(model, x, target, FREE)
    twice = Rehearsed(Family.from_models([twin]))(model, x, target, FREE)
    assert (twice.found == plain.found).all()
    assert twice.cost(1)[plain.found].mean() <= plain.cost(1)[plain.found].mean() * 1.02


# ---- groups of classes, relations, people, plans ----


@pytest.mark.parametrize("kind", ["histogram", "logistic", "black box"])
def test_groups_of_classes(kind):
    rank = TABLE["income"].rank(pct=True) - TABLE["debt"].rank(pct=True) + np.random.default_rng(0).normal(0, 0.2, 300)
    labels = np.array(["a", "b", "c"])[np.digitize(rank, [-0.25, 0.25])]
    table = TABLE.assign(outcome=labels)
    encoding = Encoding.fit(table, replace(EVERYTHING, classes=("a", "b", "c")))
    x, y = encoding.encode(table), encoding.labels(table)
    model = as_model(estimator(kind).fit(x.numpy(), y.numpy()), encoding)
    family = refit(model, table, changes.bootstrap(3), workers=1)
    either = merged(model, ((0,), (1, 2)))
    rows = x[(either(x).argmax(1) == 0)][:8]
    target = torch.ones(len(rows), dtype=torch.long)
    space = replace(encoding.space, people=None, related=None)
    answer = Rehearsed(family, search=MinCost(norm=1, calls=200))(either, rows, target, space)
    assert answer.found.any()
    for own in (model, *family.stacks[0].models):
        assert (own(answer.point[answer.found]).argmax(1) > 0).all()


@pytest.mark.parametrize("kind", ["histogram", *(pytest.param(k, marks=slow) for k in ("logistic", "black box"))])
def test_relations_people_and_plans(kind):
    table = TABLE.assign(owner=TABLE["owner"] | (TABLE["job"] == "baker"))
    schema = replace(EVERYTHING, relations=(Implies({"job": ("baker",)}, {"owner": (True,)}),))
    encoding = Encoding.fit(table, schema)
    x, y = encoding.encode(table), encoding.labels(table)
    model = as_model(estimator(kind).fit(x.numpy(), y.numpy()), encoding)
    family = refit(model, table, changes.bootstrap(3), workers=1)
    method, rows = Rehearsed(family, search=MinCost(norm=1, calls=200)), x[:10]
    several = plans(method, model, rows, other_class(model, rows), encoding.space, count=2)
    assert int(several.count.sum()) > len(rows) // 2
    for answer in several.answers:
        told, found = encoding.decode(answer.point), answer.found
        assert (told["owner"] | (told["job"] != "baker"))[found.numpy()].all()
        assert not answer.implausible[found].any()
        assert (method.agreement(model, answer)[found] == 1).all()
        assert set(family.fingerprints) <= answer.seen


def test_any_mix_of_models_is_asked_itself(made):
    members = [made(kind)[0] for kind in ("logistic", "forest", "black box")]
    model, _ = made("histogram")
    method = Rehearsed(Family.from_models(members), search=MinCost(norm=1, calls=150))
    x, target = question(model)
    answer = method(model, x, target, FREE)
    assert answer.found.double().mean() > 0.5
    assert (margins_of([model, *members], answer)[:, answer.found] > 0).all()


def test_a_plain_function_is_rehearsed_with_functions():
    names = list(EVERYTHING.names)

    def ruled(limit: float):
        def rule(table: pd.DataFrame) -> np.ndarray:
            assert list(table.columns) == names
            good = 1 / (1 + np.exp(-(table["income"] - table["debt"] / 100 - limit) / 5))
            return np.stack([1 - good, good], axis=1)

        return as_model(rule, ENCODING, takes="table", outputs="probabilities")

    middle = float((TABLE["income"] - TABLE["debt"] / 100).median())
    model, *members = [ruled(middle + shift) for shift in (0, 3, -2)]
    x, target = question(model)
    answer = Rehearsed(Family.from_models(members), search=MinCost(norm=1, calls=150))(model, x, target, FREE)
    assert answer.found.double().mean() > 0.5
    assert (margins_of([model, *members], answer)[:, answer.found] > 0).all()
    assert answer.calls > 0


def test_a_family_that_does_not_know_its_members_is_refused(made):
    _, family = made("histogram")
    with pytest.raises(ValueError, match="no audit could refuse them"):
        Rehearsed(replace(family, fingerprints=()))
