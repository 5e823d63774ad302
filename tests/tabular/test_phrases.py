"""Words for letters: read early, kept in files, and of no consequence for anything that is computed."""

from __future__ import annotations

from dataclasses import replace

import pytest

import holdfast as hf
from holdfast.datasets.german import CARD
from holdfast.families.members import encoding_digest
from holdfast.tabular.phrases import ANY
from loans import schema, train_rows

LOAN = {"en": {"rise": "extend it from {now} to {then} months", "fall": "shorten it from {now} to {then} months"}}


def number(phrase):
    return hf.Feature("duration", "integer", phrase=phrase)


def home(phrase, **settings):
    return hf.Feature("home", "categorical", levels=("rent", "own"), phrase=phrase, **settings)


def test_a_text_is_for_all_languages_and_a_table_for_its_own():
    assert number("cut it to {then}").phrase[0][0] == ANY
    assert number("cut it to {then}").phrase[0][1].change == "cut it to {then}"
    assert dict(number({"en": "cut it to {then}"}).phrase)["en"].change == "cut it to {then}"
    assert dict(number(LOAN).phrase)["en"].fall == "shorten it from {now} to {then} months"


@pytest.mark.parametrize(
    ("phrase", "says"),
    [
        ({"en": "from {before} to {then}"}, "phrase.en.change has {before}"),
        ({"en": {"fall": "to {them}"}}, "phrase.en.fall has {them} (did you mean 'then'?); there are {now} and {then}"),
        ({"en": "to {then.__class__}"}, "which is no sentence with {now} and {then}"),
        ({"en": "to {then!r}"}, "which is no sentence"),
        ({"en": "to {then:>99999999}"}, "which is no sentence"),
        ({"en": "to {0}"}, "which is no sentence"),
        ({"en": "to {then"}, "which is no sentence"),
        ({"en": {"falls": "to {then}"}}, "phrase.en has 'falls' (did you mean 'fall'?)"),
        ({"en": ""}, "phrase.en.change is ''; write some text"),
        ({"en": {"name": " "}}, "phrase.en.name is ' '; write some text"),
        ({"english please": "x"}, "phrase has the language 'english please'; expected a code such as 'en'"),
        ({"en": {"levels": {"1": "one"}}}, "phrase.en.levels names '1'; a number has none"),
    ],
    ids=str,
)
def test_a_wrong_phrase_is_told_when_the_feature_is_made(phrase, says):
    with pytest.raises(ValueError, match="^feature 'duration': ") as error:
        number(phrase)
    assert says in str(error.value)


@pytest.mark.parametrize("phrase", [3, None, ["a"], {"en": 3}, {"en": {"levels": "own"}}], ids=str)
def test_a_phrase_of_another_type_is_told(phrase):
    with pytest.raises((TypeError, ValueError), match="feature 'duration': phrase"):
        number(phrase)


def test_levels_are_those_of_the_feature():
    with pytest.raises(ValueError, match=r"levels names 'owns' \(did you mean 'own'\?\); its levels are 'rent', 'own'"):
        home({"de": {"levels": {"owns": "Eigentum"}}})
    with pytest.raises(
        ValueError, match="phrase.en has words for rise or fall, but the levels have no order; use change"
    ):
        home({"en": {"rise": "up"}})
    assert home({"en": {"rise": "up"}}, direction="rise").phrase


@pytest.mark.parametrize("file", ["schema.toml", "schema.json"])
def test_words_are_kept_in_files(file, tmp_path):
    own = schema().revise("duration", phrase=LOAN).revise("savings", phrase="save {then}")
    for one in (own, CARD.schema):
        kept = hf.Schema.load(one.save(tmp_path / file))
        assert kept == one
        assert [feature.phrase for feature in kept.features] == [feature.phrase for feature in one.features]


def test_features_that_differ_by_words_are_equal_and_encode_alike():
    """So a phrase changes no key of a store, no refit and no tree's cells."""
    plain, told = schema(), schema().revise("duration", phrase=LOAN)
    assert plain == told
    assert hash(plain) == hash(told)
    assert str(plain) == str(told)
    assert told["duration"].revised(upper=48).phrase == told["duration"].phrase
    encodings = [hf.Encoding.fit(train_rows(), one) for one in (plain, told)]
    assert encoding_digest(encodings[0]) == encoding_digest(encodings[1])


def test_every_feature_and_level_of_german_credit_has_german_words():
    for feature in CARD.schema.features:
        languages = dict(feature.phrase)
        assert languages["en"].name
        assert languages["de"].name
        if not feature.is_numeric:
            assert {level for level, _ in languages["de"].levels} == set(feature.values)
        if feature.mutable:
            assert languages["en"].change
            assert languages["de"].change


def test_a_feature_with_words_can_be_replaced():
    told = number(LOAN)
    assert replace(told, upper=60).phrase == told.phrase
    assert number(told.phrase).phrase == told.phrase
