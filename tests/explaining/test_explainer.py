"""The front door: who is given which plans, by whose word, and what is said to everybody else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier

import holdfast as hf
from loans import FEATURES, applicants, estimator, loans, model, schema, shared_advice, shared_explainer, train_rows

HOLD = 0.9
PEOPLE = 24


@pytest.fixture(scope="module")
def explainer():
    return shared_explainer()


@pytest.fixture(scope="module")
def advice():
    return shared_advice(PEOPLE, plans=2)


@pytest.fixture(scope="module")
def of_few():
    """Advice for few people, to compare with."""
    return shared_advice(6)


@pytest.fixture(scope="module")
def without_models():
    return hf.Explainer(model(), train_rows(), want="yes", schema=schema(), workers=1)


def said(family, wide):
    """What members say of the rows of a table, asked through the user's own estimators."""
    return np.stack([family[place].wrapped.predict(wide[FEATURES]) == "yes" for place in range(len(family))])


def test_every_plan_is_accepted_by_the_users_own_model(advice):
    given = advice.wide()
    given = given[given["found"]]
    assert len(given) > 10
    assert (model().predict(given[FEATURES]) == "yes").all()


def test_plans_are_selected_by_models_that_did_not_rehearse_and_audited_by_others(explainer, advice):
    wide, roles = advice.wide(), explainer.roles
    given = wide[wide["found"]]
    assert (said(roles.selection, given).mean(0) >= HOLD).all()
    np.testing.assert_allclose(given["hold"].to_numpy(float), said(roles.audit, given).mean(0))
    assert ((given["low"] <= given["hold"]) & (given["hold"] <= given["high"])).all()


def test_roles_share_no_member_and_are_stated(explainer):
    roles = explainer.roles
    names = [set(family.fingerprints) for family in (roles.rehearsal, roles.selection, roles.audit)]
    assert [len(each) for each in names] == [8, 8, 8]
    assert len(set.union(*names)) == 24
    assert "rehearsal 8 bootstrap; selection 8 bootstrap; audit 8 bootstrap" in repr(explainer)


def test_advice_knows_who_excluded_from_audit(explainer, advice):
    with pytest.raises(ValueError, match="seen"):
        hf.audit(advice.counterfactuals, explainer.roles.selection)
    with pytest.raises(ValueError, match="seen"):
        hf.audit(advice.counterfactuals, explainer.roles.rehearsal)


def test_what_does_not_hold_is_shown_apart_and_is_not_found(explainer):
    # No rehearsal, so that the cheapest plans often fail with the models that select.
    cheap = explainer.explain(applicants(PEOPLE), hold=1.0, method="min-l1")
    apart = cheap.not_durable()
    assert len(apart)
    assert not apart["found"].any()
    assert (said(explainer.roles.selection, apart).mean(0) < 1).all()
    wide = cheap.wide().set_index("id")
    assert not wide.loc[apart["id"], "found"].any()
    assert wide.loc[apart["id"], "why_not"].str.startswith("not durable").all()
    assert set(cheap.table()["id"]).isdisjoint(apart["id"])
    assert "Not durable" in str(cheap.of(apart["id"].iloc[0]))


def test_more_careful_search_gives_plans_to_people_whose_cheapest_ones_fail(explainer):
    cheap = explainer.explain(applicants(PEOPLE), hold=HOLD, method="min-l1")
    held = explainer.explain(applicants(PEOPLE), hold=HOLD)
    assert (held.status == "plan").sum() > (cheap.status == "plan").sum()


def test_people_who_have_the_class_are_told_so_and_never_count_as_found(advice):
    people = applicants(PEOPLE)
    have = model().predict(people[FEATURES]) == "yes"
    assert have.any()
    assert not have.all()
    labels = people.loc[have, "id"]
    wide = advice.wide().set_index("id")
    assert not wide.loc[labels, "found"].any()
    assert (wide.loc[labels, "why_not"] == "the deployed model says 'yes' already").all()
    assert advice.summary()["have_the_class"] == have.sum()
    assert set(advice.audit.table().index).isdisjoint(labels)


def test_everybody_who_has_the_class_is_an_answer_too(explainer):
    people = applicants(PEOPLE)
    satisfied = people[model().predict(people[FEATURES]) == "yes"]
    advice = explainer.explain(satisfied, hold=HOLD)
    assert (advice.status == "has the class").all()
    assert not len(advice.table())
    assert not advice.wide()["found"].any()


def test_tables_have_the_ids_of_the_people(advice):
    ids = set(applicants(PEOPLE)["id"])
    assert list(advice.table().columns) == ["id", "plan", "feature", "now", "then"]
    about = ["id", "plan", "found", "cost", "hold", "low", "high", "why_not", "status"]
    assert list(advice.wide().columns[:9]) == about
    assert set(advice.wide()["id"]) == ids
    assert set(advice.table()["id"]) <= ids
    assert set(advice.audit.table().index) <= ids


def test_changes_are_what_tells_the_wide_table_from_the_people(advice):
    people, wide = applicants(PEOPLE).set_index("id"), advice.wide()
    told = {(row.id, row.plan, row.feature): (row.now, row.then) for row in advice.table().itertuples()}
    expected = {
        (row["id"], row["plan"], name): (people.loc[row["id"], name], row[name])
        for _, row in wide[wide["found"]].iterrows()
        for name in FEATURES
        if row[name] != people.loc[row["id"], name]
    }
    assert told == expected


def test_plans_of_a_person_differ_and_get_dearer(advice):
    given = advice.wide()
    given = given[given["found"]]
    assert given["plan"].max() > 1
    for _, own in given.groupby("id"):
        assert own["plan"].tolist() == list(range(1, len(own) + 1))
        assert own["cost"].is_monotonic_increasing
        assert not own[FEATURES].duplicated().any()


def test_advice_keeps_the_constraints(advice):
    people, wide = applicants(PEOPLE).set_index("id"), advice.wide()
    given = wide[wide["found"]].set_index("id")
    before = people.loc[given.index]
    assert (given["age"] == before["age"]).all()
    assert (given["income"] >= before["income"]).all()
    assert (given["savings"] % 100 == 0).all()


def test_unconstrained_may_change_anything():
    free = hf.Explainer(model(), train_rows(), want="yes", schema=schema(), constrained=False, workers=1)
    changed = free.explain(applicants(PEOPLE), plans=4).table()
    assert "age" in set(changed["feature"])


def test_one_person_in_sentences(advice):
    person = advice.table()["id"].iloc[0]
    text = str(advice.of(person))
    assert text.startswith(f"{person}: the deployed model says 'no'; wanted is 'yes'.")
    assert "→" in text
    assert "of 8 audit models" in text
    with pytest.raises(KeyError, match="'x'"):
        advice.of("x")


def test_without_retrained_models_nothing_is_invented(without_models):
    advice = without_models.explain(applicants(PEOPLE))
    assert advice.wide()["found"].any()
    assert advice.wide()[["hold", "low", "high"]].isna().all(axis=None)
    assert advice.audit is None
    assert "Nobody knows whether this advice holds" in repr(advice)
    for question in ({"hold": 0.9}, {"promise": 0.1}):
        with pytest.raises(ValueError, match=r"hf.seeds\(96\).*function.*models"):
            without_models.explain(applicants(PEOPLE), **question)
    with pytest.raises(ValueError, match="no retrained models"):
        without_models.audit(advice)


def test_the_rule_that_chose_the_method_is_said(explainer, without_models, advice):
    assert advice.decided["method"].startswith("rehearsed")
    assert without_models.explain(applicants(4)).decided["method"].startswith("min-l1")
    assert explainer.explain(applicants(4), method="min-l1+sns").decided["method"] == "min-l1+sns, as asked for"
    nobody = replace(explainer, sizes=hf.Sizes(rehearsal=0))
    assert nobody.explain(applicants(4), hold=HOLD).decided["method"].startswith("margin")
    with pytest.raises(ValueError, match="retrained models"):
        nobody.explain(applicants(PEOPLE), method="rehearsed")


def test_a_promise_is_about_all_rows_together(explainer):
    advice = explainer.explain(applicants(8), promise=0.3)
    assert advice.promise.promised
    assert advice.promise.statement in repr(advice)
    assert set(advice.promise.fingerprints["selection"]) == set(explainer.roles.selection.fingerprints)
    assert advice.wide()["found"].sum() == int(advice.promise.promised_rows.sum())


def test_a_promise_chooses_from_the_values_that_are_given(explainer):
    advice = explainer.explain(applicants(8), promise=0.3, parameter_values=(0.0, 0.4))
    assert set(advice.promise.curve["value"]) <= {0.0, 0.4}
    with pytest.raises(ValueError, match="promise="):
        explainer.explain(applicants(PEOPLE), hold=HOLD, parameter_values=(0.0, 0.4))
    with pytest.raises(ValueError, match="parameter_values.*rising"):
        explainer.explain(applicants(PEOPLE), promise=0.3, parameter_values=(0.4, 0.0))


def test_a_promise_of_nothing_gives_no_plans(explainer):
    stuck = schema().revise("income", "savings", "duration", "housing", mutable=False)
    own = hf.Explainer(model(), train_rows(), want="yes", schema=stuck, retrain=explainer.family, workers=1)
    advice = own.explain(applicants(PEOPLE), promise=0.3)
    assert not advice.promise.promised
    assert "Nobody knows" not in repr(advice)
    assert not advice.wide()["found"].any()
    lacking = advice.status == "nothing found"
    assert lacking.any()
    assert (advice.wide()["why_not"][lacking.to_numpy()] == "nothing could be promised").all()


def test_too_few_models_for_a_promise_are_told_before_they_are_made():
    own = hf.Explainer(model(), train_rows(), want="yes", schema=schema(), retrain=hf.changes.bootstrap(24))
    with pytest.raises(ValueError, match="promise=0.01.*99"):
        own.explain(applicants(PEOPLE), promise=0.01)
    assert "family" not in vars(own)


def test_what_is_wrong_with_the_question_is_told_before_models_are_made():
    own = hf.Explainer(model(), train_rows(), want="yes", schema=schema(), retrain=hf.changes.bootstrap(24))
    for people, other in (
        (applicants(3).drop(columns="age"), {}),
        (applicants(3).assign(housing="castle"), {}),
        (applicants(3), {"method": "magic"}),
        (applicants(3), {"want": "maybe"}),
        (applicants(3), {"index": "nobody"}),
    ):
        with pytest.raises(ValueError, match="age|castle|magic|maybe|nobody"):
            own.explain(people, hold=0.9, **other)
    assert "family" not in vars(own)


def test_hold_and_promise_are_two_questions(explainer):
    with pytest.raises(ValueError, match="two different questions"):
        explainer.explain(applicants(PEOPLE), hold=0.9, promise=0.1)


@pytest.mark.parametrize("hold", [0, 1.5, "0.9"])
def test_hold_is_a_share(explainer, hold):
    with pytest.raises((ValueError, TypeError), match="hold must be"):
        explainer.explain(applicants(PEOPLE), hold=hold)


# ---- who is audited ----


def test_audit_of_advice_is_what_its_columns_say(explainer, advice):
    result = explainer.audit(advice)
    wide = advice.wide()
    given = wide[wide["found"]]
    np.testing.assert_allclose(1 - result.table()["invalidated"], given["hold"].to_numpy(float))
    assert result.table().index.tolist() == given["id"].tolist()


def test_audit_of_a_table_from_anywhere(explainer, advice):
    wide = advice.wide()
    points = wide.loc[wide["found"], ["id", *FEATURES]]
    result = explainer.audit(points, people=applicants(PEOPLE))
    assert result.audit.rate == pytest.approx(explainer.audit(advice).rate)
    assert int(result.imported.counterfactuals.found.sum()) == len(points)


def test_audit_of_a_table_that_names_nobody_stops(explainer):
    with pytest.raises(ValueError, match="id"):
        explainer.audit(applicants(PEOPLE).assign(id=range(PEOPLE)), people=applicants(PEOPLE))


# ---- what people want ----


def three_classes():
    table = loans()
    noisy = table["income"] + np.random.default_rng(1).normal(0, 8, len(table))
    table["approved"] = np.select([noisy < 30, noisy < 60], ["no", "later"], "yes")
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(table[["income", "savings"]], table["approved"])
    features = (hf.Feature("income", "integer"), hf.Feature("savings", "integer", step=100))
    return tree, table, hf.Schema(features, "approved", ("later", "no", "yes"))


def test_any_of_several_classes_will_do():
    tree, table, own = three_classes()
    explainer = hf.Explainer(tree, table, schema=own, want=["later", "yes"], retrain=hf.changes.bootstrap(6), workers=1)
    people = table[tree.predict(table[["income", "savings"]]) == "no"].iloc[:5]
    advice = explainer.explain(people, hold=0.5)
    given = advice.wide()[advice.wide()["found"]]
    assert len(given)
    assert set(tree.predict(given[["income", "savings"]])) <= {"later", "yes"}
    assert "later or yes" in str(advice.of(given["id"].iloc[0]))
    explainer.audit(advice)


def test_each_person_may_want_a_class_of_their_own():
    tree, table, own = three_classes()
    explainer = hf.Explainer(tree, table, schema=own, workers=1, want="yes")
    people = table[tree.predict(table[["income", "savings"]]) == "no"].iloc[:4].set_index("id")
    want = pd.Series(["later", "yes", "later", "no"], index=people.index)
    advice = explainer.explain(people, want=want)
    wide = advice.wide().set_index("id")
    said = tree.predict(wide[["income", "savings"]])
    assert said.tolist() == ["later", "yes", "later", "no"]
    assert advice.status.tolist() == ["plan", "plan", "plan", "has the class"]
    with pytest.raises(ValueError, match="want names no class for"):
        explainer.explain(people, want=want.iloc[:2])


def test_want_may_be_left_out_for_two_classes_only():
    tree, table, own = three_classes()
    with pytest.raises(ValueError, match="say which one people want"):
        hf.Explainer(tree, table, schema=own).explain(table.iloc[:2])
    both = hf.Explainer(model(), train_rows(), schema=schema(), workers=1).explain(applicants(6))
    wide = both.wide()
    now = model().predict(applicants(6)[FEATURES])
    assert (model().predict(wide[FEATURES]) != now).tolist() == wide["found"].tolist()


@pytest.mark.parametrize("want", ["maybe", ["yes", "maybe"], ["no", "yes"], []])
def test_want_must_name_classes(want):
    with pytest.raises(ValueError, match="no class|name one or more"):
        hf.Explainer(model(), train_rows(), schema=schema(), want=want)


# ---- where retrained models come from ----


def refitted(count):
    table = train_rows()
    draws = [table.sample(len(table), replace=True, random_state=seed) for seed in range(count)]
    return [estimator().fit(draw[FEATURES], draw["approved"]) for draw in draws]


def train_again(rows, seed):
    table = train_rows().iloc[rows].sample(frac=1, replace=True, random_state=seed)
    return estimator().fit(table[FEATURES], table["approved"])


@pytest.mark.parametrize(
    "source",
    ["models", pytest.param("function", marks=pytest.mark.slow), "function and changes", "family", "folder"],
)
def test_retrained_models_come_from_what_people_have(source, tmp_path, explainer):
    if source == "folder":
        hf.save_family(explainer.family, tmp_path)
    retrain = {
        "models": lambda: refitted(6),
        "function": lambda: train_again,
        "function and changes": lambda: (train_again, hf.seeds(6)),
        "family": lambda: explainer.family,
        "folder": lambda: tmp_path,
    }[source]()
    own = hf.Explainer(model(), train_rows(), want="yes", schema=schema(), retrain=retrain, workers=1)
    advice = own.explain(applicants(3), hold=0.5)
    assert advice.wide()["hold"].notna().any()
    assert sum(len(each) for each in (own.roles.rehearsal, own.roles.selection, own.roles.audit)) == len(own.family)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(7, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def test_a_torch_module_does_not_say_how_it_is_trained():
    with pytest.raises(TypeError, match=r"Recipe\(network=.*function.*\[model, model"):
        hf.Explainer(network(), train_rows(), want="yes", schema=schema(), retrain=hf.seeds(6), takes="encoded")


def test_a_torch_module_is_retrained_by_its_recipe():
    recipe = hf.Recipe(network=network, epochs=20)
    table = train_rows()
    encoding = hf.Encoding.fit(table, schema())
    x, y = encoding.encode(table), encoding.labels(table)
    deployed = hf.train(x, y, recipe, [hf.Retraining()])[0]
    own = hf.Explainer(
        deployed, table, want="yes", schema=schema(), retrain=hf.seeds(9), recipe=recipe, takes="encoded",
        outputs="logits", workers=1,
    )  # fmt: skip
    advice = own.explain(applicants(5), hold=0.6)
    assert advice.wide()["hold"].notna().any()
    assert not own.family.surrogates


def test_a_recipe_in_the_place_of_a_model_trains_one_and_says_that_it_is_ours():
    own = hf.Explainer(
        hf.Recipe((8,), epochs=20), train_rows(), want="yes", schema=schema(), retrain=hf.seeds(6), workers=1
    )
    advice = own.explain(applicants(4), hold=0.5)
    assert advice.decided["model_is_ours"]
    assert "holdfast" in repr(own)


def test_too_few_retrainings_are_told_before_they_are_made():
    sizes = hf.Sizes(rehearsal=10, selection=10, audit=10)
    for given in ({"retrain": hf.changes.bootstrap(2)}, {"retrain": hf.changes.bootstrap(20), "sizes": sizes}):
        with pytest.raises(ValueError, match="too few"):
            hf.Explainer(model(), train_rows(), schema=schema(), **given).explain(applicants(2))


def test_several_kinds_of_change_are_shared_out_each():
    changes = [*hf.changes.bootstrap(9), *hf.changes.leave_one_out(6, rows=300)]
    own = hf.Explainer(model(), train_rows(), want="yes", schema=schema(), retrain=changes, workers=1)
    assert own.roles.counts() == {
        "rehearsal": {"bootstrap": 3, "leave-one-out": 2},
        "selection": {"bootstrap": 3, "leave-one-out": 2},
        "audit": {"bootstrap": 3, "leave-one-out": 2},
    }
    advice = own.explain(applicants(4), hold=0.5)
    assert [one["kind"] for one in advice.summary()["audited"]] == ["bootstrap", "leave-one-out"]


# ---- tables as they come ----


def test_order_of_columns_and_more_columns_change_nothing(explainer, of_few):
    people = applicants(6)
    odd = people[["housing", "age", "id", "duration", "savings", "income"]].assign(note="x", approved="no")
    again = explainer.explain(odd, hold=HOLD, index="id")
    pd.testing.assert_frame_equal(again.wide(), of_few.wide())


def test_an_index_of_its_own_is_kept(explainer):
    people = applicants(6).drop(columns="id").set_axis([f"person {n}" for n in range(6)])
    advice = explainer.explain(people, hold=0.5)
    assert set(advice.wide()["id"]) == set(people.index)
    assert str(advice.of("person 3")).startswith("person 3:")


def test_polars_goes_in_and_comes_out(explainer, of_few):
    import polars

    people = polars.from_pandas(applicants(6))
    own = hf.Explainer(
        model(), polars.from_pandas(train_rows()), want="yes", schema=schema(), retrain=explainer.family, workers=1
    )
    found = own.explain(people, hold=HOLD)
    assert isinstance(found.wide(), polars.DataFrame)
    assert isinstance(found.table(), polars.DataFrame)
    expected = of_few.wide()
    assert found.wide()["id"].to_list() == expected["id"].tolist()
    np.testing.assert_allclose(found.wide()["cost"].to_numpy(), expected["cost"].to_numpy(float))


def test_a_feature_that_is_called_like_a_column_of_ours_keeps_its_name():
    names = {"income": "plan", "savings": "cost"}
    table = train_rows().rename(columns=names)
    tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(table[["plan", "cost"]], table["approved"])
    own = hf.Schema((hf.Feature("plan", "integer"), hf.Feature("cost", "integer")), "approved", ("no", "yes"))
    wide = hf.Explainer(tree, table, schema=own, want="yes", workers=1).explain(table.iloc[:5]).wide()
    assert list(wide.columns) == [
        "id",
        "plan_",
        "found",
        "cost_",
        "hold",
        "low",
        "high",
        "why_not",
        "status",
        "plan",
        "cost",
    ]


def test_people_who_are_alike_in_everything_are_reported(explainer):
    people = pd.concat([applicants(3), applicants(1).assign(id=1)], ignore_index=True)
    problems = explainer.explain(people, hold=0.5).problems
    assert problems["row"].tolist() == [1]
    assert "8300" in problems["detail"].iloc[0]


def test_why_not_names_the_constraint_in_the_way():
    stuck = schema().revise("income", "savings", "duration", "housing", mutable=False)
    own = hf.Explainer(model(), train_rows(), want="yes", schema=stuck, workers=1)
    advice = own.explain(applicants(8))
    assert not advice.wide()["found"].any()
    lacking = advice.wide().set_index("id")["why_not"][(advice.status == "nothing found")]
    assert lacking.str.contains("may change").any()


def test_a_column_that_gives_the_label_away_is_named_to_nobody():
    paid = train_rows()
    table = paid.assign(repaid=(paid["approved"] == "yes").map({True: "all", False: "part"}))
    own = hf.Schema.infer(table, "approved").revise(*FEATURES, mutable=False)
    assert not own["repaid"].mutable  # which inference sees by itself

    def decides(rows):
        return np.where(rows["repaid"] == "all", "yes", "no")

    people = applicants(6).assign(repaid="part")
    advice = hf.Explainer(decides, table, want="yes", schema=own, workers=1).explain(people)
    assert (advice.status == "nothing found").all()
    assert not advice.wide()["why_not"].str.contains("repaid").any()


def test_the_label_must_be_the_schemas():
    with pytest.raises(ValueError, match="'income'.*'approved'"):
        hf.Explainer(model(), train_rows(), label="income", schema=schema())
    with pytest.raises(ValueError, match="schema.*label"):
        hf.Explainer(model(), train_rows())
    with pytest.raises(ValueError, match="needed to refit"):
        hf.Explainer(model(), train_rows().drop(columns="approved"), schema=schema(), retrain=hf.changes.bootstrap(6))


def test_a_schema_is_read_off_the_table_where_none_is_given():
    own = hf.Explainer(model(), train_rows(), label="approved", want="yes", workers=1)
    assert own.encoding.schema.names == ("income", "savings", "duration", "age", "housing")
    assert own.explain(applicants(5)).decided["schema"] == "read off the table"


def answers_nothing(table):
    return np.full((len(table), 2), np.nan)


def always_no(table):
    return np.tile([0.9, 0.1], (len(table), 1))


def test_a_model_that_answers_nan_is_refused():
    with pytest.raises(ValueError, match="NaN|not finite"):
        hf.Explainer(answers_nothing, train_rows(), schema=schema(), outputs="probabilities", takes="table")


def test_a_model_that_always_says_the_same_is_told():
    with pytest.warns(UserWarning, match="same|constant|all of"):
        hf.Explainer(always_no, train_rows(), schema=schema(), outputs="probabilities", takes="table")
