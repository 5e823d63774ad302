"""What holds for all six datasets."""

from __future__ import annotations

import pytest
import torch

from holdfast import datasets
from holdfast.datasets import DATASETS
from holdfast.tabular.encoding import SCALINGS, Encoding
from holdfast.tabular.schema import Schema

# name: encoded columns, training and test rows, rows of each class
FACTS = {
    "german": (61, (700, 200), {"bad": 300, "good": 700}),
    "seizure": (178, (7950, 3550), {"seizure": 2300, "no seizure": 9200}),
    "ctg": (21, (1700, 425), {"suspect or pathologic": 471, "normal": 1655}),
    "warfarin": (17, (3615, 1204), {"low": 1624, "medium": 2586, "high": 609}),
    "heloc": (40, (7844, 2615), {"Bad": 5459, "Good": 5000}),
    "taiwan": (32, (22500, 7500), {"default": 6636, "no default": 23364}),
}

# Some of what nobody can change about themselves.
GIVEN = {
    "german": {"age", "status_and_sex", "foreign_worker", "credit_history"},
    "warfarin": {"age_decade", "height_cm", "race", "cyp2c9", "vkorc1"},
    "heloc": {"MaxDelqEver", "MSinceOldestTradeOpen", "NumTrades90Ever2DerogPubRec"},
    "taiwan": {"sex", "age", "education", "marriage", "pay_6", "bill_amt6", "pay_amt6"},
}

every_dataset = pytest.mark.parametrize("name", FACTS)


def test_the_six_come_in_the_papers_order():
    assert list(DATASETS) == list(FACTS)
    assert all(card.name == name for name, card in DATASETS.items())


@every_dataset
def test_rows_columns_and_classes(name, loaded):
    table, schema = loaded(name)
    width, split, counts = FACTS[name]
    card = DATASETS[name]
    assert len(table) == card.rows == sum(counts.values())
    assert list(table.columns) == [*schema.names, schema.label]
    assert schema.classes == tuple(counts)
    assert table[schema.label].value_counts().to_dict() == counts
    assert (card.features, card.split) == (width, split)


@every_dataset
def test_split_is_repeatable_and_shares_no_row(name, loaded):
    table, schema = loaded(name)
    card = DATASETS[name]
    train, test = card.divide(table)
    assert (len(train), len(test)) == card.split
    assert len(set(train.index) | set(test.index)) == sum(card.split)
    assert set(train[schema.label]) == set(test[schema.label]) == set(schema.classes)
    assert [part.index.tolist() for part in card.divide(table)] == [train.index.tolist(), test.index.tolist()]
    assert card.divide(table, seed=1)[0].index.tolist() != train.index.tolist()


@pytest.mark.parametrize("scaling", SCALINGS)
@every_dataset
def test_decoding_an_encoded_row_returns_the_row(name, scaling, loaded):
    table, schema = loaded(name)
    encoding = Encoding.fit(DATASETS[name].divide(table)[0], schema, scaling)
    x = encoding.encode(table)
    assert x.dtype == torch.float32
    assert x.shape == (len(table), FACTS[name][0])
    decoded = encoding.decode(x)
    for feature in schema.features:
        there, back = table[feature.name], decoded[feature.name]
        if feature.kind == "real":
            # float32 keeps the distance from the shift, so that is what the error is relative to
            moved = there - encoding.shift[encoding.columns.index(feature.name)]
            assert ((back - there).abs() <= 1e-6 * moved.abs() + 1e-12).all(), feature.name
        else:
            assert back.tolist() == there.tolist(), feature.name


@every_dataset
def test_labels_count_the_classes_in_order(name, loaded):
    table, schema = loaded(name)
    labels = Encoding.fit(table, schema).labels(table)
    assert labels.bincount().tolist() == list(FACTS[name][2].values())


@every_dataset
def test_every_row_may_stay_where_it_is(name, loaded):
    """Also the rows outside their own bounds, such as HELOC's -9."""
    table, schema = loaded(name)
    card = DATASETS[name]
    encoding = Encoding.fit(card.divide(table)[0], schema, card.scaling)
    x, space = encoding.encode(table), encoding.space
    space.check_origin(x)
    assert not space.violations(x, x).any()
    assert torch.equal(space.snap(x, x), x)


@every_dataset
def test_people_can_act_but_not_on_what_is_given(name):
    schema = DATASETS[name].schema
    mutable = {feature.name for feature in schema.features if feature.mutable}
    assert mutable
    assert GIVEN.get(name, set()) <= set(schema.names) - mutable


@every_dataset
def test_a_schema_is_read_as_it_was_written(name, tmp_path):
    schema = DATASETS[name].schema
    assert Schema.load(schema.save(tmp_path / "schema.toml")) == schema
    assert Schema.load(schema.save(tmp_path / "schema.json")) == schema


def test_only_open_files_have_an_address():
    assert [name for name, card in DATASETS.items() if card.url] == ["german", "ctg", "warfarin"]
    assert "no redistribution" in datasets.card("heloc").licence


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="no dataset 'nowhere'; there are german, seizure, ctg"):
        datasets.load("nowhere")
