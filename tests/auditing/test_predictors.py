"""What tells beforehand whether a counterfactual will hold."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import linear
from scipy.stats import spearmanr

from holdfast import PGD, Audit, Counterfactuals, Retraining, Space, audit, other_class
from holdfast.auditing.predictors import diagnostics, predictors, what_predicts
from holdfast.families.perceptron import Network
from holdfast.search.plausibility import neighbour_distance

COLUMNS = ["cost_l1", "cost_l2", "confidence", "path_integral", "gradient_norm", "margin_distance", "neighbours"]


def of_rates(rate, members: int = 20, found=None) -> Audit:
    """An audit in which each row is invalidated by the first of the members, so many that it has this rate."""
    invalidated = torch.arange(members)[:, None] < torch.tensor(rate)[None] * members - 1e-9
    here = torch.ones(len(rate)).bool() if found is None else torch.tensor(found)
    x = torch.zeros(len(rate), 1)
    return Audit((~invalidated).long(), Counterfactuals(x, x + 1, torch.ones(len(rate)).long(), here), ("s",) * members)


def table(**values) -> pd.DataFrame:
    return pd.DataFrame(values, dtype=np.float64)


@pytest.fixture
def drawn():
    draw = np.random.default_rng(0)
    rate = draw.integers(0, 11, 60) / 10  # ties
    return rate, table(noisy=rate + draw.normal(0, 0.3, 60), tied=draw.integers(0, 4, 60) - 2 * rate.round(), rate=rate)


def test_spearman_with_ties(drawn):
    rate, known = drawn
    lines = what_predicts({"pgd": of_rates(rate)}, {"pgd": known}).set_index("predictor")
    for name in known:
        assert lines["spearman"][name] == pytest.approx(spearmanr(known[name], rate).statistic, abs=1e-12)
        assert lines["r2"][name] == pytest.approx(np.corrcoef(known[name], rate)[0, 1] ** 2, abs=1e-12)
        assert lines["rows"][name] == 60
    assert lines["spearman"]["tied"] < 0


def test_the_rate_itself_predicts_the_rate(drawn):
    rate, known = drawn
    lines = what_predicts({"pgd": of_rates(rate)}, {"pgd": known.assign(fall=-(rate**3))})
    assert set(lines["predictor"][:2]) == {"rate", "fall"}  # the best of them first, whatever their sign
    exact = lines.set_index("predictor").loc[["rate", "fall"], ["spearman", "low", "high"]]
    np.testing.assert_allclose(exact, [[1, 1, 1], [-1, -1, -1]])
    assert lines["spearman"].abs().is_monotonic_decreasing
    assert list(lines.columns) == ["predictor", "rows", "spearman", "low", "high", "r2"]


@pytest.mark.parametrize("value", [0.1, 3.0])  # the mean of equal 0.1s is not 0.1 to the last bit
def test_what_does_not_vary_predicts_nothing(value, drawn):
    rate, known = drawn
    lines = what_predicts({"pgd": of_rates(rate)}, {"pgd": known.assign(constant=value)})
    assert lines["predictor"].iloc[-1] == "constant"
    assert lines.iloc[-1][["spearman", "low", "high", "r2"]].isna().all()
    assert lines.iloc[:-1].notna().all(axis=None)
    flat = what_predicts({"pgd": of_rates([value / 10] * 60, members=100)}, {"pgd": known})
    assert flat[["spearman", "low", "high", "r2"]].isna().all(axis=None)


def test_nothing_found_predicts_nothing():
    lines = what_predicts({"pgd": of_rates([0.5, 0.2], found=[False, False])}, {"pgd": table(a=[1, 2])})
    assert lines["rows"].tolist() == [0]
    assert lines[["spearman", "low", "high", "r2"]].isna().all(axis=None)


def test_an_infinite_value_has_a_rank_but_no_line(drawn):
    rate, known = drawn
    values = known["noisy"].to_numpy().copy()
    values[values.argmax()] = np.inf
    ranked = what_predicts({"pgd": of_rates(rate)}, {"pgd": known.assign(noisy=values)}).set_index("predictor")
    plain = what_predicts({"pgd": of_rates(rate)}, {"pgd": known}).set_index("predictor")
    for name in ("spearman", "low", "high"):
        assert ranked.loc["noisy", name] == plain.loc["noisy", name]
    assert np.isnan(ranked.loc["noisy", "r2"])


def test_only_rows_that_were_found_count():
    rate, values = [0.1, 0.9, 0.4, 0.6, 0.2], [5.0, np.nan, 1.0, 2.0, 4.0]
    result = of_rates(rate, found=[True, True, True, True, False])
    (line,) = what_predicts({"pgd": result}, {"pgd": table(a=values)}).to_dict("records")
    assert line["rows"] == 3  # rows 0, 2, 3
    assert line["spearman"] == pytest.approx(spearmanr([5, 1, 2], [0.1, 0.4, 0.6]).statistic)


def _noisy(rows: int):
    draw = np.random.default_rng(1)
    rate = draw.integers(0, 21, rows) / 20
    return of_rates(rate), table(a=rate + draw.normal(0, 0.4, rows))


def test_limits_hold_the_estimate_and_shrink_with_rows():
    widths = []
    for rows in (30, 120, 480):
        result, known = _noisy(rows)
        (line,) = what_predicts({"pgd": result}, {"pgd": known}).to_dict("records")
        assert line["low"] < line["spearman"] < line["high"]
        widths.append(line["high"] - line["low"])
    assert widths[0] > widths[1] > widths[2]
    assert widths[0] / widths[2] == pytest.approx(4, rel=0.4)  # as 1/√rows
    (inner,) = what_predicts({"pgd": result}, {"pgd": known}, confidence=0.5).to_dict("records")
    assert inner["high"] - inner["low"] < widths[2] / 2


def test_a_person_asked_twice_is_still_one_person():
    """Two methods that answer alike add rows, but no new people: the limits stay where they were."""
    result, known = _noisy(60)
    (one,) = what_predicts({"a": result}, {"a": known}).to_dict("records")
    (two,) = what_predicts({"a": result, "b": result}, {"a": known, "b": known}).to_dict("records")
    assert two["rows"] == 120
    assert (two["spearman"], two["low"], two["high"]) == pytest.approx((one["spearman"], one["low"], one["high"]))


def test_the_seed_draws_the_limits_alone():
    result, known = _noisy(60)
    first, again, other = (what_predicts({"a": result}, {"a": known}, seed=seed) for seed in (0, 0, 1))
    assert first.equals(again)
    assert first["spearman"][0] == other["spearman"][0]
    assert first["low"][0] != other["low"][0]


def test_predictors_of_other_audits_are_refused():
    result, known = _noisy(30)
    with pytest.raises(ValueError, match=r"expected predictors for each of \['a'\], got them for \['b'\]"):
        what_predicts({"a": result}, {"b": known})
    with pytest.raises(ValueError, match="expected predictors"):
        what_predicts({}, {})
    with pytest.raises(ValueError, match="predictors of 'a' have 29 rows but its audit 30"):
        what_predicts({"a": result}, {"a": known[1:]})
    longer = pd.concat([known, known[:1]])
    with pytest.raises(ValueError, match="of 'a' have 31 rows but its audit 30"):  # though their sum is right
        what_predicts({"a": result, "b": result}, {"a": longer, "b": known[1:]})


# ---- the predictors ----

W, B = torch.tensor([3.0, 4.0]), -1.0


@pytest.fixture
def question():
    draw = torch.Generator().manual_seed(0)
    origin, x = torch.randn(12, 2, generator=draw), torch.randn(40, 2, generator=draw)
    point = origin + torch.randn(12, 2, generator=draw)
    target = (point @ W + B > 0).long()
    found = torch.arange(12) % 4 != 3
    return Counterfactuals(origin, point, target, found, 2), x, (x @ W + B > 0).long()


def test_a_linear_model_is_known_in_closed_form(question):
    answer, x, y = question
    known = predictors(linear(W, B), answer, x, y)
    assert list(known.columns) == COLUMNS
    assert (known.dtypes == np.float64).all()
    assert known.isna().all(axis=1).tolist() == (~answer.found).tolist()
    assert known.notna().all(axis=1).tolist() == answer.found.tolist()
    found = answer.found
    plane = (answer.point @ W + B).abs()  # the logit of the target
    parts = torch.arange(1, 11)[:, None] / 10
    sign = 2.0 * answer.target - 1
    integral = torch.sigmoid(sign * (parts * (answer.point @ W) + B)).mean(0)
    expected = {
        "cost_l1": (answer.point - answer.origin).abs().sum(1),
        "cost_l2": (answer.point - answer.origin).norm(dim=1),
        "confidence": plane,
        "path_integral": integral,
        "gradient_norm": torch.full((12,), 5.0),
        "margin_distance": plane / 5,  # to the plane
        "neighbours": neighbour_distance(answer, x, y),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(known[name][found.numpy()], values[found], rtol=1e-5, err_msg=name)


def test_where_the_model_is_flat_the_boundary_seems_infinitely_far(question):
    answer, x, y = question
    flat = lambda rows: torch.relu(linear(W, B)(rows)).clamp_max(0) + torch.tensor([0.0, 1.0])  # noqa: E731
    answer = dataclasses.replace(answer, target=torch.ones(12).long())
    known = predictors(flat, answer, x, y)[answer.found.numpy()]
    assert (known["gradient_norm"] == 0).all()
    assert np.isposinf(known["margin_distance"]).all()


def test_from_a_family_to_what_predicts(family, rows):
    x, y = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    result = audit(found, family[1:])
    lines = what_predicts({"pgd": result}, {"pgd": predictors(family[0], found, x, y)})
    assert set(lines["predictor"]) == set(COLUMNS)
    assert (lines["rows"] == int(found.found.sum())).all()
    assert lines["spearman"].between(-1, 1).all()
    assert lines.set_index("predictor")["spearman"]["confidence"] < 0  # the surer, the more stable


def test_diagnostics_of_a_linear_network_are_known_in_closed_form():
    """One layer with logits (0, w·x + b): one region, one slope, and all weights may move by m / (2 (‖x‖₁ + 1))."""
    w, b = torch.tensor([3.0, -4.0]), 0.5
    network = Network((torch.stack([torch.zeros(2), w], 1),), (torch.tensor([0.0, b]),), Retraining())
    point = torch.tensor([[2.0, 0.5], [1.0, -1.0], [0.3, 0.1]])
    answer = Counterfactuals(point - 1, point, torch.ones(3).long(), torch.tensor([True, True, False]))
    values = diagnostics(network, answer)
    margin = point.double() @ w.double() + b
    assert np.isinf(values["region_size"][:2]).all()  # nothing ends
    assert values["region_boundary"][:2].tolist() == pytest.approx((margin[:2] / 5).tolist())
    assert values["lipschitz_sampled"][:2].tolist() == pytest.approx([5, 5])
    assert values["lipschitz_bound"][:2].tolist() == pytest.approx([5, 5])
    radius = margin / (2 * (point.double().abs().sum(1) + 1))
    assert values["certified_absolute"][:2].tolist() == pytest.approx(radius[:2].tolist(), rel=1e-4)
    assert values.loc[2].isna().all()


def test_diagnostics_of_a_family_s_network_go_with_the_others(family, rows):
    x, _ = rows
    found = PGD(radius=6.0)(family[0], x, other_class(family[0], x), Space.free(x))
    values = diagnostics(family[0], found)
    assert len(values) == len(x)
    there = values[found.found.numpy()]
    assert there.notna().all().all()
    assert (there["certified_absolute"] > 0).all()
    assert (there["region_boundary"] > 0).all()
    result = audit(found, family[1:])
    lines = what_predicts({"pgd": result}, {"pgd": values}).set_index("predictor")
    assert lines["spearman"]["certified_absolute"] < 0  # the more proved, the less invalidated
    certified = result.table(family[0])["certified"]
    np.testing.assert_array_equal(certified, values["certified_absolute"])
    assert "certified" not in result.table()
    with pytest.raises(ValueError, match="nothing was found"):
        diagnostics(family[0], dataclasses.replace(found, found=torch.zeros_like(found.found)))
