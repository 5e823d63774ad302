import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from holdfast import (
    PGD,
    SNS,
    Audit,
    Counterfactuals,
    Recipe,
    Retraining,
    Space,
    audit,
    changes,
    other_class,
    predict,
    seeds,
    train,
)
from holdfast.auditing.intervals import clopper_pearson, mean_interval, member_interval

TARGET = torch.tensor([1, 1, 0, 1])
FOUND = torch.tensor([True, True, True, False])
ORIGIN = torch.zeros(4, 2)
POINT = torch.tensor([[3.0, 4.0], [0.0, 1.0], [1.0, 0.0], [9.0, 9.0]])
ANSWER = Counterfactuals(ORIGIN, POINT, TARGET, FOUND)
#                                row 0  1  2  3 (not found)
PREDICTIONS = torch.tensor([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 1, 1]])
KINDS = ("seeds", "seeds", "leave-one-out", "leave-one-out")


@pytest.fixture
def result() -> Audit:
    return Audit(PREDICTIONS, ANSWER, KINDS)


def test_a_hand_built_disagreement_gives_the_exact_rates(result):
    assert result.rate == pytest.approx(5 / 12)
    assert result.per_member.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3])
    np.testing.assert_allclose(result.per_row, [0.5, 0.5, 0.25, np.nan])
    assert result.by_kind["seeds"].rate == pytest.approx(1 / 6)
    assert result.by_kind["leave-one-out"].rate == pytest.approx(2 / 3)
    assert result.success == 0.75
    assert result.found_and_held == pytest.approx(7 / 16)  # 7 of 4 x 4 pairs were found and held


def test_intervals_are_those_of_their_counts(result):
    assert result.interval(0.9) == mean_interval(result.per_member, 0.9)  # two kinds: no common mean
    for part in result.by_kind.values():
        assert part.interval(0.9) == member_interval(part.per_member, 0.9)
    low, high = result.per_row_interval(0.9)
    expected = clopper_pearson([2, 2, 1], 4, 0.9)
    np.testing.assert_allclose(low, [*expected[0], np.nan])
    np.testing.assert_allclose(high, [*expected[1], np.nan])


def test_permuting_rows_or_members_changes_nothing(result):
    members = [2, 0, 3, 1]
    shuffled = Audit(PREDICTIONS[members], ANSWER, tuple(KINDS[m] for m in members))
    assert (shuffled.rate, shuffled.interval()) == (result.rate, result.interval())
    rows = [3, 1, 0, 2]
    answer = Counterfactuals(ORIGIN[rows], POINT[rows], TARGET[rows], FOUND[rows])
    turned = Audit(PREDICTIONS[:, rows], answer, KINDS)
    assert (turned.rate, turned.interval()) == (result.rate, result.interval())
    np.testing.assert_allclose(turned.per_row, result.per_row[rows])


def test_rows_have_the_keys_that_everything_uses(result):
    rows = result.rows(dataset="toy", method="pgd", space="free", seconds=1.23456)
    assert [row["change"] for row in rows] == ["seeds", "leave-one-out"]
    assert rows[0] == {
        "dataset": "toy", "method": "pgd", "space": "free", "change": "seeds", "members": 2, "rows": 4, "found": 3,
        "rate": pytest.approx(1 / 6, abs=1e-6), "low": rows[0]["low"], "high": rows[0]["high"], "cost_l1": 3.0,
        "cost_l2": pytest.approx(7 / 3, abs=1e-6), "seconds": 1.235,
        "spread": pytest.approx(1 / 6, abs=1e-6), "found_and_held": pytest.approx(0.625), "baseline_flips": None,
    }  # fmt: skip
    assert 0 <= rows[0]["low"] <= rows[0]["rate"] <= rows[0]["high"] <= 1


def test_nothing_found_is_no_rate_rather_than_a_perfect_one():
    nothing = Audit(PREDICTIONS, Counterfactuals(ORIGIN, POINT, TARGET, torch.zeros(4, dtype=torch.bool)), KINDS)
    assert np.isnan(nothing.rate)
    assert np.isnan(nothing.per_row).all()
    assert np.isnan(nothing.interval()).all()
    assert nothing.found_and_held == 0
    row = nothing.rows(dataset="toy", method="pgd", space="free", seconds=0)[0]
    assert (row["rate"], row["low"], row["cost_l2"], row["found"]) == (None, None, None, 0)


def test_identical_members_never_disagree(family, rows):
    x, _ = rows
    space = Space.free(x)
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), space)
    assert found.found.any()
    twin = dataclasses.replace(family[:1], fingerprints=())  # the deployed network, unrecognised
    same = audit(found, twin)
    assert same.rate == 0
    assert same.found_and_held == found.success


def test_audit_counts_what_the_members_say(family, rows):
    x, _ = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    result = audit(found, family[1:])
    assert result.kinds == ("seeds",) * 6 + ("leave-one-out",) * 4
    by_hand = [
        [int(family[m](found.point[r : r + 1]).argmax()) != int(found.target[r]) for r in range(60) if found.found[r]]
        for m in range(1, 11)
    ]
    assert result.rate == pytest.approx(np.mean(by_hand), abs=1e-9)
    assert 0 < result.rate < 1
    assert "10 retrained models" in repr(result)
    assert f"seeds: {result.of('seeds').rate:.1%} invalidated" in repr(result)


@pytest.mark.parametrize(
    ("pair", "error", "message"),
    [
        (lambda f, c: (f, c), TypeError, "got Family and Counterfactuals"),
        (lambda f, c: (c, f[1]), TypeError, r"got Counterfactuals and Network.*Family\.from_models"),
        (lambda f, c: (c, f), ValueError, r"members \[0\] .* are networks that the search has seen"),
        (lambda f, c: (c, f[1:1]), ValueError, "has 0 members"),
        (lambda f, c: (dataclasses.replace(c, classes=3), f[1:]), ValueError, "found for 3 classes .* have 2"),
        (lambda f, c: (dataclasses.replace(c, point=c.point[:, 1:]), f[1:]), ValueError, "have 11 columns"),
        (
            lambda f, c: (c, dataclasses.replace(f[1:3], fingerprints=f.fingerprints[1:2] * 2)),
            ValueError,
            "the same retraining more than once",
        ),
    ],
)
def test_what_does_not_belong_together_is_not_audited(pair, error, message, family, rows):
    x, _ = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    assert found.classes == 2
    with pytest.raises(error, match=message):
        audit(*pair(family, found))


def test_a_stabilised_counterfactual_remembers_what_both_searches_saw(family, rows):
    x, _ = rows
    space = Space.free(x)
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), space)
    stable = SNS(radius=1.0, steps=5)(family[1], found, space)
    assert stable.seen >= set(family.fingerprints[:2])
    with pytest.raises(ValueError, match=r"members \[1\]"):
        audit(stable, dataclasses.replace(family[:2], fingerprints=("other", family.fingerprints[1])))
    audit(stable, family[2:])


def test_members_that_did_not_learn_are_flagged(rows):
    x, y = rows
    members = [*seeds(8), *changes.weight_noise(1, 30.0)]
    family = train(x, y, Recipe((16,), epochs=60, batch=16), [Retraining(), *members], held_out=(x, y))
    assert len(family.accuracy) == 10
    assert family.accuracy[3] == pytest.approx(float((predict(family[3], x) == y).float().mean()))
    assert family.suspects == (9,)
    assert family[:9].suspects == ()
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    with pytest.warns(UserWarning, match=r"members \[8\] .* did not learn"):
        audit(found, family[1:])


def test_models_of_ones_own_are_audited_by_their_predictions(family, rows):
    x, _ = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    models = [family[place] for place in range(1, 7)]
    mine = Audit(torch.stack([predict(model, found.point) for model in models]), found, ("mine",) * 6)
    assert mine.rate == pytest.approx(audit(found, family[1:7]).rate, abs=1e-9)


def test_an_audit_of_nothing_says_so():
    nothing = Audit(PREDICTIONS, Counterfactuals(ORIGIN, POINT, TARGET, torch.zeros(4, dtype=torch.bool)), KINDS)
    assert "nothing was found" in repr(nothing)
    assert "nan" not in repr(nothing)


def test_shapes_and_kinds_that_do_not_fit_are_refused(result):
    with pytest.raises(ValueError, match=r"predictions have shape \(4, 4\), expected \(3, 4\)"):
        Audit(PREDICTIONS, ANSWER, KINDS[:3])
    with pytest.raises(ValueError, match="no member of kind 'bootstrap'; there are seeds, leave-one-out"):
        result.of("bootstrap")


# ---- parts of an audit, and what is shown of it ----

BEFORE = torch.tensor([[0, 0, 1, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 1, 1]])  # of the rows
DEPLOYED = torch.tensor([0, 0, 1, 0])


@pytest.fixture
def known() -> Audit:
    """The same audit, with the classes of the rows themselves."""
    return Audit(PREDICTIONS, dataclasses.replace(ANSWER, before=DEPLOYED), KINDS, BEFORE)


def wide(rows=40, members=6) -> Audit:
    """An audit of which enough rows are invalidated to say something of new rows."""
    draw = torch.Generator().manual_seed(0)
    x = torch.zeros(rows, 1)
    answer = Counterfactuals(x, x + 1, torch.ones(rows).long(), torch.ones(rows).bool())
    return Audit(torch.randint(0, 2, (members, rows), generator=draw), answer, ("seeds",) * members)


def test_there_is_one_audit_per_target_class(result):
    parts = result.by_class
    assert list(parts) == [0, 1]
    assert parts[0].rate == 0.25  # row 2
    assert parts[1].rate == 0.5  # rows 0 and 1
    assert (parts[0].success, parts[1].success) == (1, pytest.approx(2 / 3))
    assert parts[1].kinds == KINDS


def test_baseline_flips_are_what_changes_without_any_counterfactual(known, result):
    assert known.baseline_flips == 3 / 16  # found or not
    assert known.of("seeds").baseline_flips == 1 / 8
    assert known.of("leave-one-out").baseline_flips == 2 / 8
    assert known.of_rows(torch.tensor([2])).baseline_flips == 0
    assert np.isnan(result.baseline_flips)
    assert np.isnan(dataclasses.replace(known, before=None).baseline_flips)
    assert np.isnan(dataclasses.replace(known, counterfactuals=ANSWER).baseline_flips)
    assert "without any counterfactual, 18.8% of rows change class" in repr(known)
    assert "without any counterfactual" not in repr(result)


def test_what_was_said_before_has_the_same_shape():
    with pytest.raises(ValueError, match=r"before have shape \(3, 4\), expected \(4, 4\)"):
        Audit(PREDICTIONS, ANSWER, KINDS, BEFORE[:3])


def test_the_audit_asks_about_the_rows_themselves(family, rows):
    x, _ = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    result = audit(found, family[1:])
    assert torch.equal(result.predictions, family[1:].predict(found.point))
    assert torch.equal(result.before, family[1:].predict(x))
    assert torch.equal(found.before, predict(family[0], x))
    assert result.baseline_flips == pytest.approx(float((family[1:].predict(x) != found.before).double().mean()))


def test_spread_is_that_of_the_members(result):
    assert result.spread == pytest.approx(np.std([0, 1 / 3, 2 / 3, 2 / 3]))
    assert result.of("leave-one-out").spread == 0


def test_nothing_is_said_of_new_rows_where_too_few_were_invalidated(result):
    assert result.interval_of_new_rows() is None
    audited = wide()
    low, high = audited.interval_of_new_rows()
    assert 0 < low < audited.rate < high < 1
    narrow = audited.interval_of_new_rows(0.5)
    assert low < narrow[0] < narrow[1] < high
    assert audited.of_rows(torch.arange(9)).interval_of_new_rows() is None


def test_a_repr_gives_one_interval_and_says_what_it_is_for(result):
    """Beside the wider interval for these rows, the narrower approximate one for new rows too would mislead."""
    audited = wide()
    low, high = audited.interval()
    assert audited.interval_of_new_rows() is not None
    assert f"(95 % interval for these rows {low:.1%} to {high:.1%}), " in repr(audited)
    assert repr(audited).count(" to ") == 1
    assert f"± {audited.spread:.1%} between models" in repr(audited)
    assert "approximate new rows low" in audited._repr_html_()
    assert "they are approximate" in audited._repr_html_()
    assert "nan" not in repr(result)
    assert f"found and held: {result.found_and_held:.1%} of all pairs" in repr(result)


def test_the_summary_has_one_row_per_kind(known):
    table = known.summary()
    assert list(table.columns) == [
        "change", "members", "rows", "found", "rate", "low", "high", "approximate_new_rows_low",
        "approximate_new_rows_high", "spread", "found_and_held", "baseline_flips",
    ]  # fmt: skip
    assert table["change"].tolist() == ["seeds", "leave-one-out"]
    assert table[["members", "rows", "found"]].to_numpy().tolist() == [[2, 4, 3], [2, 4, 3]]
    assert table["rate"].tolist() == pytest.approx([1 / 6, 2 / 3])
    assert table["found_and_held"].tolist() == pytest.approx([5 / 8, 1 / 4])
    assert table["baseline_flips"].tolist() == [1 / 8, 2 / 8]
    assert table[["approximate_new_rows_low", "approximate_new_rows_high"]].isna().all(axis=None)
    assert (table["low"][0], table["high"][0]) == member_interval([0, 1 / 3])
    (line,) = wide().summary().to_dict("records")
    assert (line["approximate_new_rows_low"], line["approximate_new_rows_high"]) == wide().interval_of_new_rows()


def test_some_rows_by_number_or_by_mask(known):
    by_number = known.of_rows(torch.tensor([2, 0]))
    assert by_number.per_row.tolist() == [0.25, 0.5]
    assert torch.equal(by_number.before, BEFORE[:, [2, 0]])
    assert torch.equal(by_number.counterfactuals.point, POINT[[2, 0]])
    assert by_number.counterfactuals.before.tolist() == [1, 0]
    by_mask = known.of_rows(torch.tensor([True, False, True, False]))
    assert by_mask.per_row.tolist() == [0.5, 0.25]
    assert by_mask.rate == by_number.rate == 3 / 8
    assert known.of_rows(FOUND).rate == known.rate
    assert known.of_rows(~FOUND).found_and_held == 0


def test_a_notebook_shows_a_table_of_percentages(known, result):
    html = known._repr_html_()
    for shown in (
        "<table",
        "<th>approximate new rows low</th>",
        "leave-one-out",
        "<td>16.7%</td>",
        "<td>-</td>",
        "future retrainings",
    ):
        assert shown in html
    assert "nan" not in html.lower()
    assert "nan" not in result._repr_html_().lower()
    nothing = Audit(PREDICTIONS, dataclasses.replace(ANSWER, found=torch.zeros(4, dtype=torch.bool)), KINDS)
    assert "nan" not in nothing._repr_html_().lower()


def test_rows_are_asked_about_in_pieces(family, rows, monkeypatch):
    x, _ = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    whole = audit(found, family[1:])
    monkeypatch.setattr("holdfast.families.family.ROWS_AT_ONCE", 7)
    asked = []
    pieces = type(family)._in_pieces
    monkeypatch.setattr(type(family), "_in_pieces", lambda self, x: asked.append(len(x)) or pieces(self, x))
    parts = audit(found, family[1:])
    assert max(asked) == 7
    assert sum(asked) == 2 * len(x)
    assert torch.equal(parts.predictions, whole.predictions)
    assert torch.equal(parts.before, whole.before)


def test_no_question_has_no_rate(family, rows):
    x, _ = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))[:0]
    nothing = audit(found, family[1:])
    assert nothing.predictions.shape == nothing.before.shape == (10, 0)
    assert np.isnan(nothing.rate)
    assert np.isnan(nothing.baseline_flips)
    assert "nan" not in repr(nothing)


def test_the_table_calls_rows_by_their_labels(result):
    answer = result.counterfactuals.labelled(["d", "c", "c", "a"])
    table = dataclasses.replace(result, counterfactuals=answer).table()
    assert table.index.tolist() == ["d", "c", "c", "a"]
    pd.testing.assert_frame_equal(table.reset_index(drop=True), result.table())


def test_the_table_has_one_row_per_counterfactual(result):
    table = result.table()
    assert list(table.columns) == ["found", "cost_l1", "cost_l2", "invalidated", "low", "high"]
    assert table["found"].tolist() == FOUND.tolist()
    assert table["cost_l2"].tolist() == pytest.approx([5, 1, 1, np.nan], nan_ok=True)
    np.testing.assert_allclose(table["invalidated"], result.per_row)
    low, high = result.per_row_interval()
    np.testing.assert_allclose(table["low"], low)
    np.testing.assert_allclose(table["high"], high)
