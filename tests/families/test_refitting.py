"""A user's own estimator, fitted again: a member is what a loop with clone and fit gives, and is known as that."""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from holdfast import (
    Encoding,
    Family,
    Retraining,
    as_model,
    assess,
    audit,
    changes,
    load_audit,
    load_family,
    other_class,
    predict,
    refit,
    save_audit,
    save_family,
    seeds,
)
from holdfast.families import refitting
from holdfast.families.changes import leave_one_out
from holdfast.families.entries import StoreError, entries
from holdfast.families.packing import Packed, PackingError, packed, unpacked
from holdfast.families.store import add_members, as_tensor
from holdfast.families.training_data import Pool, labels_of, rows_of
from holdfast.models.identity import identities
from holdfast.models.merged import merged
from killing import calls_of, forks, killed_at, posix

TABLE = everything(240)
NEW = everything(60, seed=1)
ENCODING = Encoding.fit(TABLE, EVERYTHING)
NAMES, LABEL = list(EVERYTHING.names), EVERYTHING.label
NUMBERS, LEVELS = ["income", "age", "debt"], ["owner", "grade", "job", "delay"]
X, Y = ENCODING.encode(TABLE), ENCODING.labels(TABLE)


def columns():
    return make_column_transformer((OneHotEncoder(handle_unknown="ignore"), LEVELS), (StandardScaler(), NUMBERS))


def forest(**own):
    return make_pipeline(columns(), RandomForestClassifier(8, **{"random_state": 5, **own}))


def logistic():
    return make_pipeline(columns(), LogisticRegression())


def fitted(estimator, table=TABLE):
    return estimator.fit(table[NAMES], table[LABEL])


@functools.cache
def deployed(make=logistic):
    """One of each: reading a model takes as long as fitting several."""
    return as_model(fitted(make()), ENCODING)


def owns(family):
    return [member.wrapped for member in family.stacks[0].models]


def answer(model):
    """Counterfactuals of a kind: everybody is told to become somebody whom the model gives the other class."""
    rows = ENCODING.encode(NEW)
    target, classes = other_class(model, rows), predict(model, X)
    point = torch.stack([X[classes == wanted][0] for wanted in target.tolist()])
    return assess(
        model,
        rows,
        point,
        target,
        replace(
            ENCODING.space.without_people(), mutable=torch.ones(X.shape[1]).bool(), direction=torch.zeros(X.shape[1])
        ),
    )


# ---- each member is what a loop gives ----

ALL = [
    *seeds(2),
    *leave_one_out(2, len(TABLE)),
    *changes.leave_out(1, share=0.2),
    *changes.bootstrap(1),
    *changes.windows(2, length=150, rows=len(TABLE)),
    *changes.append(1, share=0.5),
    *changes.label_noise(1, rate=0.1),
    *changes.shift(1, column=0, strength=0.5),
    *changes.both(seeds(1, start=9), changes.bootstrap(1, start=9)),
]


def by_hand(estimator, change, rows, labels, **own):
    """The same with nothing of ours but which rows, and which labels, a change means."""
    whole = pd.concat([TABLE, NEW], ignore_index=True)
    pool = Pool(ENCODING.encode(whole), ENCODING.labels(whole), len(TABLE), 2)
    chosen = rows_of(change, pool).numpy()
    seed = {name: value + change.init_seed for name, value in own.items()}
    given = rows.iloc[chosen] if isinstance(rows, pd.DataFrame) else rows[chosen]
    return clone(estimator).set_params(**seed).fit(given, np.asarray(labels)[labels_of(change, pool).numpy()][chosen])


def boosted(library):
    if library == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=8, max_depth=3, subsample=0.7, random_state=5), (0, 1)
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=8, subsample=0.7, subsample_freq=1, random_state=5, verbose=-1), ("no", "yes")


def check_all(estimator, rows, labels, model, seed_name):
    """`labels` are the estimator's own of the schema's two classes."""
    family = refit(model, TABLE, ALL, new=NEW, workers=1)
    assert family.kinds == tuple(change.kind for change in ALL)
    assert len(set(family.fingerprints)) == len(ALL)
    said = family.predict(ENCODING.encode(pd.concat([TABLE, NEW])))
    for place, change in enumerate(ALL):
        own = by_hand(estimator, change, rows, labels, **{seed_name: 5})
        expected = torch.from_numpy(np.asarray(own.predict(rows)) == labels[1]).long()
        assert torch.equal(said[place], expected), change
    return family


def test_a_pipeline_is_refitted_with_every_kind_of_change():
    whole = pd.concat([TABLE, NEW], ignore_index=True)
    family = check_all(forest(), whole[NAMES], ["no", "yes"], deployed(forest), "randomforestclassifier__random_state")
    assert str(family).startswith("Family(RandomForestClassifier: 2 seeds, 2 leave-one-out, 1 leave-out, 1 bootstrap")
    assert len({tuple(said) for said in family.predict(X).tolist()}) > 8  # they are not one model


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosted_trees_of_encoded_rows_are_refitted_on_encoded_rows(library):
    estimator, labels = boosted(library)
    encoded = ENCODING.encode(pd.concat([TABLE, NEW], ignore_index=True)).numpy()
    own = np.array(labels)[Y.numpy()]
    model = as_model(clone(estimator).fit(encoded[: len(TABLE)], own), ENCODING)
    check_all(estimator, encoded, labels, model, "random_state")


@pytest.mark.slow
def test_workers_give_the_same_members_as_this_process():
    members = seeds(3) + changes.bootstrap(3)
    here, there = (refit(deployed(forest), TABLE, members, workers=workers) for workers in (1, 2))
    assert torch.equal(here.logits(X), there.logits(X))
    assert here.fingerprints == there.fingerprints


def test_an_estimator_that_was_never_fitted_needs_its_encoding():
    family = refit(forest(), TABLE, seeds(2), encoding=ENCODING, workers=1)
    assert torch.equal(family.logits(X), refit(deployed(forest), TABLE, seeds(2), workers=1).logits(X))
    with pytest.raises(TypeError, match=r"use refit\(as_model\(model, encoding\), ...\), or pass encoding="):
        refit(forest(), TABLE, seeds(2))


def test_every_seed_is_moved_on_and_nothing_of_the_users_is_changed():
    own = fitted(make_pipeline(columns(), RandomForestClassifier(4, random_state=5, n_jobs=2)))
    said = own.predict_proba(TABLE[NAMES])
    family = refit(as_model(own, ENCODING), TABLE, [*seeds(2), *changes.bootstrap(1)], workers=1)
    final = [one[-1] for one in owns(family)]
    assert [one.random_state for one in final] == [6, 7, 5]  # a change of the data keeps the deployed model's seed
    assert [one.n_jobs for one in final] == [None] * 3  # one core, as each of the others has one
    assert own[-1].n_jobs == 2
    assert np.array_equal(own.predict_proba(TABLE[NAMES]), said)
    assert all(one is not own for one in owns(family))


def test_parameters_are_drawn_from_ranges_and_lists():
    drawn = changes.parameters(
        20, randomforestclassifier__max_depth=(2, 4), randomforestclassifier__max_features=(0.3, 0.9),
        randomforestclassifier__criterion=["gini", "entropy"], start=3,
    )  # fmt: skip
    values = [dict(change.parameters) for change in drawn]
    assert {one["randomforestclassifier__max_depth"] for one in values} == {2, 3, 4}
    assert {one["randomforestclassifier__criterion"] for one in values} == {"gini", "entropy"}
    assert all(0.3 <= one["randomforestclassifier__max_features"] <= 0.9 for one in values)
    family = refit(deployed(forest), TABLE, drawn[:3], workers=1)
    assert family.kinds == ("parameters",) * 3
    for place, change in enumerate(drawn[:3]):
        assert dict(change.parameters).items() <= owns(family)[place].get_params().items()
    assert changes.parameters(20, C=(0.1, 10.0))[5:] == changes.parameters(15, C=(0.1, 10.0), start=5)


# ---- what cannot be ----


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (changes.weight_noise(1, scale=0.1), "disturbs the weights of a network; Pipeline is fitted as it is"),
        (changes.fine_tune(1, epochs=2), "an estimator is fitted anew; use changes.append with new=table"),
        (
            changes.architecture(1, widths=[8]),
            "changes a Recipe; vary the parameters of Pipeline with changes.parameters",
        ),
        (changes.hyperparameters(1, epochs=(2, 3)), "changes a Recipe"),
        (changes.append(1), r"appends new rows but there are none; pass refit\(..., new=table\)"),
        (
            changes.parameters(1, logisticregression__c=(0.1, 1.0)),
            r"no parameter .*did you mean 'logisticregression__C'",
        ),
        (leave_one_out(1, 9000, seed=3), "leaves out a row that is not there; there are 240"),
        ([Retraining()], "changes nothing, so it would be the deployed model again"),
        ([], "changes is empty"),
    ],
)
def test_what_makes_no_sense_for_an_estimator_is_refused_before_any_work(members, message, monkeypatch):
    monkeypatch.setattr(refitting, "_fit", lambda *given: pytest.fail("something was fitted"))
    with pytest.raises(ValueError, match=message):
        refit(deployed(), TABLE, members)


def test_what_is_no_estimator_is_sent_elsewhere():
    model = fitted(logistic())
    with pytest.raises(TypeError, match=r"got function; train such a model again .* Family.from_training"):
        refit(as_model(lambda table: model.predict_proba(table), ENCODING), TABLE, seeds(2))
    with pytest.raises(
        TypeError, match=r"Pipeline cannot be called .* as_model\(pipeline, encoding\) makes a model of it"
    ):
        Family.from_models([model])
    with pytest.raises(ValueError, match="changes parameters of an estimator, which `refit` does"):
        from holdfast import Recipe, train

        train(X, Y, Recipe((4,), epochs=1), changes.parameters(1, C=(0.1, 1.0)))


def test_a_member_that_cannot_be_fitted_is_left_out_and_reported():
    sorted_by_label = TABLE.sort_values(LABEL, ignore_index=True)
    members = [*seeds(2), Retraining(window=(0, 20), kind="window")]
    with pytest.warns(UserWarning, match="1 of 3 fits failed and are left out, the first with: .* 1 of 2 classes"):
        family = refit(deployed(forest), sorted_by_label, members, workers=1)
    assert family.kinds == ("seeds", "seeds")
    assert family.failures[0].retraining == members[2]
    with pytest.raises(RuntimeError, match=r"(?s)none of 1 fits gave a model.*1 of 2 classes"):
        refit(deployed(), sorted_by_label, members[2:], workers=1)


def test_what_members_warn_of_is_said_once():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = deployed(lambda: make_pipeline(columns(), LogisticRegression(max_iter=1)))
    with pytest.warns(UserWarning, match="3 of 3 members warned while they were fitted, the first with: Convergence"):
        refit(model, TABLE, changes.bootstrap(3), workers=1)


def test_an_estimator_without_a_seed_is_refitted_and_that_is_said():
    bayes = as_model(GaussianNB().fit(X.numpy(), TABLE[LABEL]), ENCODING)
    with pytest.warns(UserWarning, match="all 2 refits of kind 'seeds' are one model: .*random_state"):
        family = refit(bayes, TABLE, [*seeds(2), *changes.bootstrap(1)], workers=1)
    assert len(set(family.fingerprints)) == 3
    assert torch.equal(family.predict(X)[0], predict(bayes, X))


# ---- asked together ----


def test_members_are_asked_about_one_table_that_is_decoded_once(monkeypatch):
    family = refit(deployed(forest), TABLE, seeds(4), workers=1)
    one_by_one = torch.stack([member(X) for member in family.stacks[0].models])
    count, decode = [], Encoding.decode
    monkeypatch.setattr(Encoding, "decode", lambda self, x: count.append(len(x)) or decode(self, x))
    assert torch.equal(family.logits(X), one_by_one)
    assert torch.equal(family.predict(X), one_by_one.argmax(-1))
    own = Family.from_models([deployed(), deployed(forest)])
    own.predict(X)
    assert count == [len(X)] * 3
    assert family.features == X.shape[1]
    assert family.class_counts(X) == (2,) * 4
    assert torch.equal(family.chosen([3, 1]).predict(X), family.predict(X)[[3, 1]])
    assert torch.equal(family.merged(((1,), (0,))).predict(X), 1 - family.predict(X))
    assert family.predict(X[:0]).shape == (4, 0)
    odd = X[:3].clone()
    odd[1, 0] = torch.nan
    assert family.predict(odd)[:, 1].tolist() == [-1] * 4
    assert torch.equal(family.predict(odd)[:, [0, 2]], family.predict(X)[:, [0, 2]])


def test_ones_own_training_may_return_what_as_model_makes():
    def training(rows, seed):
        return as_model(fitted(logistic(), TABLE.iloc[rows]), ENCODING)

    family = Family.from_training(training, changes.bootstrap(2), rows=len(TABLE), workers=1)
    assert torch.equal(family.predict(X), refit(deployed(), TABLE, changes.bootstrap(2), workers=1).predict(X))


# ---- which model is which ----


def test_two_wrappers_of_one_object_are_one_model():
    own, other = fitted(logistic()), fitted(logistic())
    names = identities(as_model(own, ENCODING))
    assert names == identities(as_model(own, ENCODING)) == identities(merged(as_model(own, ENCODING), ((0,), (1,))))
    assert names & identities(lambda table: own.predict_proba(table))
    assert not names & identities(as_model(other, ENCODING))  # fitted apart, though they answer alike
    with pytest.raises(ValueError, match=r"members \[1\] .* that the search has seen"):
        audit(answer(as_model(own, ENCODING)), Family.from_models([as_model(other, ENCODING), as_model(own, ENCODING)]))


def test_a_member_that_was_deployed_does_not_audit_itself(tmp_path):
    family = refit(deployed(forest), TABLE, seeds(3), workers=1)
    found = answer(family[1])
    with pytest.raises(ValueError, match=r"members \[1\] .* that the search has seen"):
        audit(found, family)
    again = answer(as_model(owns(family)[1], ENCODING))
    reloaded = load_family(save_family(family, tmp_path / "kept"), encoding=ENCODING)
    elsewhere = load_audit(save_audit(audit(again, family[2:]), tmp_path / "audit")).counterfactuals
    trained_again = refit(deployed(forest), TABLE, seeds(3), workers=1)
    for one in (again, elsewhere, answer(reloaded.stacks[0].models[1])):
        for members in (family, reloaded, trained_again):
            with pytest.raises(ValueError, match=r"members \[1\] .* that the search has seen"):
                audit(one, members)
    assert audit(found, family.chosen([0, 2])).kinds == ("seeds", "seeds")


def test_refits_that_answer_alike_are_kept_and_said():
    model = deployed(lambda: make_pipeline(columns(), SVC(kernel="linear", C=0.1)))
    family = refit(model, TABLE, leave_one_out(12, len(TABLE)), workers=1)
    result = audit(answer(model), family)
    same = int(result.same.sum())
    assert 0 < same < 12
    assert f"{same} of 12 refits answer exactly like the deployed model on each of these rows" in str(result)
    assert "copies" not in str(result)
    assert len(result.kinds) == 12


def test_a_kind_of_change_that_an_estimator_does_not_notice_is_warned_of():
    model = as_model(HistGradientBoostingClassifier(max_iter=5).fit(X.numpy(), TABLE[LABEL]), ENCODING)
    with pytest.warns(UserWarning, match=r"all 3 refits of kind 'seeds' are one model: .* or --retrain bootstrap:3 on"):
        family = refit(model, TABLE, seeds(3) + changes.bootstrap(3), workers=1)
    with pytest.warns(UserWarning, match="all 3 refits of kind 'seeds' are one model, which answers exactly like"):
        result = audit(answer(model), family)
    assert result.of("seeds").rate == 0
    assert result.of("bootstrap").rate > 0


# ---- are they like the deployed model? ----


def test_a_family_of_the_deployed_model_resembles_it():
    model = deployed(forest)
    family = refit(model, TABLE, seeds(8) + changes.bootstrap(8), workers=1, held_out=NEW)
    assert family.surrogates == ""
    assert len(family.accuracy) == 16
    found = family.resemblance(model, ENCODING.encode(NEW), ENCODING.labels(NEW))
    assert found.reason == ""
    assert found.deployed_accuracy == float(
        (predict(model, ENCODING.encode(NEW)) == ENCODING.labels(NEW)).double().mean()
    )
    pairs = family[:8].predict(ENCODING.encode(NEW))
    apart = (pairs[:, None] != pairs[None]).double().mean(2)
    np.testing.assert_allclose(found.among[:8], apart.sum(1) / 7, atol=1e-12)


def test_refits_of_another_model_are_surrogates_and_every_audit_says_so(tmp_path):
    other = TABLE.assign(income=TABLE["income"] + 30 * (TABLE["job"] == "nurse"))  # what the deployed model saw
    model = as_model(fitted(logistic(), other), ENCODING)
    with pytest.warns(UserWarning, match="the deployed model"):
        family = refit(model, TABLE, changes.leave_out(6, share=0.05), workers=1)
    assert "another class than its retrainings" in family.surrogates or "is right for" in family.surrogates
    assert str(family).endswith("; surrogates)")
    result = audit(answer(model), family)
    assert f"by surrogates: {family.surrogates}" in str(result)
    assert set(result.summary()["surrogates"]) == {family.surrogates}
    assert result.rows(dataset="d", method="m", space="s", seconds=1.0)[0]["surrogates"] == family.surrogates
    assert result.of("leave-out").surrogates == result.of_rows(slice(3)).surrogates == family.surrogates
    assert load_audit(save_audit(result, tmp_path)).surrogates == family.surrogates


def test_a_deployed_model_far_worse_than_its_refits_is_warned_of():
    twice = ENCODING.encode(TABLE.assign(income=TABLE["income"] * 40)).numpy()
    own = LogisticRegression(max_iter=1000).fit(twice, TABLE[LABEL])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as_model has its own sanity checks
        model = as_model(own, ENCODING)
    with pytest.warns(UserWarning, match=r"is right for .* its retrainings for .* wrong columns, .* scaled twice"):
        refit(model, TABLE, changes.bootstrap(4), workers=1)


# ---- kept ----


def fits(monkeypatch):
    """How many members were fitted."""
    done, one = [], refitting._fit
    monkeypatch.setattr(refitting, "_fit", lambda *given: done.append(given[1]) or one(*given))
    return done


def ask(store, members=None, table=TABLE):
    return refit(deployed(forest), table, members or seeds(4), store=store, workers=1)


def test_asking_twice_fits_once(tmp_path, monkeypatch):
    done = fits(monkeypatch)
    first, second = ask(tmp_path), ask(tmp_path)
    assert done == [0, 1, 2, 3]
    assert torch.equal(first.logits(X), second.logits(X))
    for name in ("retrainings", "fingerprints", "data", "accuracy", "surrogates", "refitted"):
        assert getattr(first, name) == getattr(second, name)
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".json", ".safetensors"}
    ask(tmp_path, members=seeds(2))
    refit(forest(max_depth=3), TABLE, seeds(2), encoding=ENCODING, store=tmp_path, workers=1)
    ask(tmp_path, members=seeds(2), table=TABLE[:200])
    assert len(entries(tmp_path)) == 4
    assert ask(tmp_path, members=[replace(one, kind="mine") for one in seeds(2)]).kinds == ("mine", "mine")
    assert len(entries(tmp_path)) == 4


def test_another_encoding_of_the_same_table_is_no_error(tmp_path):
    """As after an edit of the schema: the members are the same fits, asked through another encoding."""
    model = fitted(forest())
    scaled = Encoding.fit(TABLE, ENCODING.schema, "minmax")
    families = [refit(model, TABLE, seeds(2), encoding=one, store=tmp_path, workers=1) for one in (ENCODING, scaled)]
    first, second = (
        family.predict(one.encode(TABLE)) for family, one in zip(families, (ENCODING, scaled), strict=True)
    )
    assert torch.equal(first, second)
    assert families[0].fingerprints == families[1].fingerprints


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosted_trees_are_kept(library, tmp_path, monkeypatch):
    estimator, labels = boosted(library)
    model = as_model(estimator.fit(X.numpy(), np.array(labels)[Y.numpy()]), ENCODING)
    done = fits(monkeypatch)
    first, second = (refit(model, TABLE, seeds(2), store=tmp_path, workers=1) for _ in range(2))
    assert done == [0, 1]
    assert torch.equal(first.logits(X), second.logits(X))


def test_an_interrupted_run_fits_only_the_rest(tmp_path, monkeypatch):
    done, fit = [], refitting._fit

    def tired(*given):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(given[1])
        return fit(*given)

    monkeypatch.setattr(refitting, "_fit", tired)
    with pytest.raises(KeyboardInterrupt):
        ask(tmp_path)
    (entry,) = entries(tmp_path)
    assert entry.members_so_far() == 2
    done[:] = [None] * 5
    again = ask(tmp_path)
    assert done[5:] == [2, 3]
    assert entry.complete
    assert not (entry.folder / "parts").exists()
    assert torch.equal(again.logits(X), ask(None).logits(X))


@posix
@forks
@pytest.mark.slow
def test_killed_at_any_moment_a_run_ends_with_the_same_models(tmp_path):
    calls = calls_of(ask, tmp_path / "whole")
    killed = [killed_at(calls * part // 8, ask, tmp_path / "cut") for part in range(1, 8)]
    assert any(killed)
    assert torch.equal(ask(tmp_path / "cut").logits(X), ask(None).logits(X))


def test_a_family_with_failures_is_tried_again(tmp_path, monkeypatch):
    table = TABLE.sort_values(LABEL, ignore_index=True)
    members = [*seeds(1), Retraining(window=(0, 20), kind="window")]
    model, done = deployed(forest), fits(monkeypatch)
    for _ in range(2):
        with pytest.warns(UserWarning, match="1 of 2 fits failed"):
            refit(model, table, members, store=tmp_path, workers=1)
    assert done == [0, 1, 1]


class Doubled(TransformerMixin, BaseEstimator):
    """A transformer of the user's own, which no library defines."""

    def fit(self, x, y=None):
        self.n_features_in_ = x.shape[1]
        return self

    def transform(self, x):
        return 2 * x


def test_what_no_library_defines_is_fitted_but_not_kept(tmp_path):
    model = deployed(lambda: make_pipeline(columns(), Doubled(), LogisticRegression()))
    with pytest.warns(
        UserWarning, match=r"the family is not kept in .*Doubled, which no library that is trusted defines"
    ):
        family = refit(model, TABLE, changes.bootstrap(2), store=tmp_path, workers=1)
    assert len(family) == 2
    assert entries(tmp_path) == []
    with pytest.raises(ValueError, match=r"cannot be kept: .*Doubled"):
        save_family(family, tmp_path / "kept")


def test_a_file_that_names_other_types_is_not_read(tmp_path):
    import skops.io

    for foreign in (Doubled(), [print], {"run": pytest.fail}):
        with pytest.raises(PackingError, match=r"only types of sklearn, numpy, scipy, xgboost, lightgbm are built"):
            unpacked(Packed("skops", skops.io.dumps(foreign)))
    assert (
        unpacked(packed(fitted(logistic()))).predict(TABLE[NAMES]).tolist()
        == fitted(logistic()).predict(TABLE[NAMES]).tolist()
    )
    job = refitting._job(deployed(forest), None, TABLE, None, seeds(2))
    add_members(job.entry(tmp_path), [job.fingerprints[0]], {"skops": as_tensor(skops.io.dumps(Doubled()))[None]})
    with pytest.raises((StoreError, PackingError), match="Doubled"):
        ask(tmp_path, members=seeds(2))


def test_estimators_are_saved_and_loaded_with_their_encoding(tmp_path):
    family = refit(deployed(forest), TABLE, seeds(2), workers=1, held_out=NEW)
    save_family(family, tmp_path)
    back = load_family(tmp_path, encoding=ENCODING)
    assert torch.equal(back.logits(X), family.logits(X))
    assert back.fingerprints == family.fingerprints
    assert torch.equal(back[1](X), family[1](X))
    with pytest.raises(StoreError, match=r"holds models .* load_family\(folder, encoding=encoding\)"):
        load_family(tmp_path)
    with pytest.raises(StoreError, match="made with another encoding"):
        load_family(tmp_path, encoding=Encoding.fit(everything(200, seed=3), EVERYTHING))
    own = Family.from_models([deployed(), deployed(forest)])
    assert torch.equal(load_family(save_family(own, tmp_path / "own"), encoding=ENCODING).logits(X), own.logits(X))
    assert load_family(tmp_path / "own", encoding=ENCODING).fingerprints == ()


def test_families_of_estimators_are_listed_shown_and_removed(tmp_path):
    from rich.console import Console

    from holdfast.reporting.listings import family_list
    from holdfast.reporting.tables import family_text

    ask(tmp_path)
    (entry,) = entries(tmp_path)
    with Console(record=True, width=200) as shown:
        shown.print(family_list([entry]))
        shown.print(family_text(entry))
    told = shown.export_text()
    assert "4 seeds" in told
    assert "models: RandomForestClassifier" in told
    assert "sklearn 1." in told
    entry.remove()
    assert entries(tmp_path) == []


def test_members_that_take_categories_are_asked_about_categories_when_they_are_read_again(tmp_path):
    """The table holds text, the estimator was fitted to categories of it."""
    xgboost = pytest.importorskip("xgboost")
    own = xgboost.XGBClassifier(n_estimators=4, max_depth=2, enable_categorical=True)
    text = [name for name in LEVELS if isinstance(TABLE[name].iloc[0], str)]
    own.fit(TABLE[NAMES].astype(dict.fromkeys(text, "category")), Y.numpy())
    family = refit(as_model(own, ENCODING), TABLE, changes.bootstrap(2))
    again = load_family(save_family(family, tmp_path), encoding=ENCODING)
    assert torch.equal(again.logits(X), family.logits(X))
