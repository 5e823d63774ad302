"""What it costs that more of the retrained models agree."""

from __future__ import annotations

import pytest
import torch

from holdfast import (
    Encoding,
    MinCost,
    Recipe,
    Rehearsed,
    Retraining,
    agreement_cost,
    audit,
    other_class,
    seeds,
    train,
)


@pytest.fixture(scope="module")
def asked(loaded):
    table, schema = loaded("german")
    encoding = Encoding.fit(table[:700], schema)
    x, y = encoding.encode(table[:700]), encoding.labels(table[:700])
    networks = train(x, y, Recipe((16,), epochs=15), [Retraining(), *seeds(30)])
    rows = encoding.encode(table[700:720])
    return networks, rows, other_class(networks[0], rows), encoding.space.without_people()


@pytest.fixture(scope="module")
def price(asked):
    networks, rows, target, space = asked
    return agreement_cost(Rehearsed(networks[1:21]), networks[0], rows, target, space, shares=(1.0, 0.5, 0.9))


def test_nobody_pays_more_for_a_smaller_share(price):
    cost = torch.where(price.cost.isnan(), torch.inf, price.cost)
    assert price.shares == (0.5, 0.9, 1.0)
    assert bool((cost.diff(dim=1).nan_to_num(0) >= -1e-6).all())
    assert bool((cost[:, 0] < cost[:, 2]).any())


def test_every_answer_is_accepted_by_its_share(asked, price):
    networks, _, target, _ = asked
    for place, (share, answer) in enumerate(zip(price.shares, price.answers, strict=True)):
        held = (networks[1:21].predict(answer.point) == target).double().mean(0)
        assert bool((held[answer.found] >= share - 1e-9).all())
        torch.testing.assert_close(price.agreement[answer.found, place], held[answer.found])
        assert bool((networks[0](answer.point).argmax(1) == target)[answer.found].all())


def test_the_best_there_is_is_accepted_by_most(price):
    agreed = price.agreement.nan_to_num(-1).amax(1)
    assert bool((price.best_agreement.nan_to_num(-1) == agreed).all())
    best = price.best
    assert bool((best.found == (agreed >= 0)).all())
    whole = price.answers[-1]
    torch.testing.assert_close(best.point[whole.found], whole.point[whole.found])


def test_the_table_has_a_row_for_every_person_and_share(price):
    table = price.table()
    assert list(table.columns) == ["row", "share", "found", "cost", "agreement"]
    assert len(table) == 3 * len(price)
    assert table["cost"].isna().equals(~table["found"])
    assert "20 people" in repr(price)


def test_people_with_labels_are_called_by_them(price):
    people = [f"p{row}" for row in range(len(price))]
    labelled = price.labelled(people)
    assert labelled.table()["row"].tolist() == [name for name in people for _ in price.shares]
    assert labelled.sentence(3) == price.sentence(3).replace("row 3", "row p3")
    assert labelled.best.labels.tolist() == people


def test_everybody_is_told_something(price):
    told = [price.sentence(row) for row in range(len(price))]
    missing = ~price.answers[-1].found
    for row, text in enumerate(told):
        assert text.startswith(f"row {row}: ")
        assert ("no counterfactual" in text) == bool(missing[row])
    some = int(torch.nonzero(~missing).flatten()[0])
    assert "100% of the models accept costs" in told[some]


def test_all_of_it_counts_as_seen(asked, price):
    networks, *_ = asked
    for answer in (*price.answers, price.best):
        with pytest.raises(ValueError, match="the search has seen"):
            audit(answer, networks[1:21])


@pytest.mark.parametrize("shares", [(), (0.0,), (1.2,), "all", 0.5, (None,)])
def test_shares_are_shares(asked, shares):
    networks, rows, target, space = asked
    with pytest.raises((TypeError, ValueError), match="share"):
        agreement_cost(Rehearsed(networks[1:3]), networks[0], rows, target, space, shares=shares)


def test_it_needs_a_rehearsed_search(asked):
    networks, rows, target, space = asked
    with pytest.raises(TypeError, match="Rehearsed"):
        agreement_cost(MinCost(), networks[0], rows, target, space)
