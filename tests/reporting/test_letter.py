"""The letter: what the advice says and nothing else, in the applicant's language, with all that the bank must add."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.explaining.person import GIVEN, Change, PersonPlan
from holdfast.reporting.letters.cases import Case
from holdfast.reporting.letters.languages import Language
from holdfast.reporting.letters.letter import letter_about
from holdfast.reporting.letters.templates import FOLDER, SHIPPED, template_of
from letters import EU, REASONS, US, german, told
from loans import applicants, model, schema, train_rows

WORDS = {
    "income": {"en": "raise your income from {now} to {then}", "de": "das Einkommen von {now} auf {then} erhöhen"},
    "savings": {"en": "raise your savings from {now} to {then}", "de": "die Ersparnisse von {now} auf {then} erhöhen"},
    "duration": {
        "en": {
            "rise": "extend the loan from {now} to {then} months",
            "fall": "shorten the loan from {now} to {then} months",
        },
        "de": {"name": "Laufzeit", "fall": "die Laufzeit von {now} auf {then} Monate verkürzen"},
    },
    "age": {"de": {"name": "Alter"}},
    "housing": {"de": {"name": "Wohnung", "levels": {"own": "Eigentum", "rent": "Miete", "free": "frei"}}},
}


def worded() -> hf.Schema:
    own = schema()
    for name, phrase in WORDS.items():
        own = own.revise(name, phrase=phrase)
    return own


@pytest.fixture(scope="module")
def explainer():
    return hf.Explainer(
        model(),
        train_rows(),
        label="approved",
        want="yes",
        schema=worded(),
        retrain=hf.changes.bootstrap(12),
        workers=1,
    )


@pytest.fixture(scope="module")
def advice(explainer):
    return explainer.explain(applicants(12).assign(why="Low income; Long loan"), hold=0.75, plans=2)


def somebody(advice: hf.Advice, status: str = GIVEN) -> int:
    return next(label for label, own in advice.status.items() if own == status)


class Page(HTMLParser):
    """What a browser reads of a page: its elements, and the text that is shown."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.shown: list[str] = []
        self._hidden = 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._hidden += tag == "style"

    def handle_endtag(self, tag):
        self._hidden -= tag == "style"

    def handle_data(self, data):
        if not self._hidden:
            self.shown.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.shown).split())


def words_of(text: str) -> str:
    return " ".join(text.split())


# ---- what it says ----


def test_the_letter_says_what_the_advice_says(advice):
    person = next(label for label in advice.people.index if len(advice.of(label).plans) > 1)
    told = advice.of(person)
    own = hf.letter(advice, person, fields=EU)
    for text in (words_of(own.text), Page(own.html).text):
        assert f"There are {len(told.plans)} plans." in text
        for plan in told.plans:
            for change in plan.changes:
                if change.feature in ("income", "savings"):
                    assert f"Raise your {change.feature} from {change.before:,} to {change.after:,}" in text
                if change.feature == "duration":
                    verb = "Extend" if change.after > change.before else "Shorten"
                    assert f"{verb} the loan from {change.before} to {change.after} months" in text
            said = (
                f"Of {plan.members} versions of the model that were trained again, {plan.held} would accept this plan."
            )
            assert said in text
            assert f"at least {100 * plan.low:.1f}% of such new versions" in text
        assert "This is not an offer of credit." in text
        assert "This statement is valid until: 1 February 2027." in text
        assert "16 November 2026" in text
        for name in ("bank", "applicant", "decision", "contact", "authority"):
            assert words_of(EU[name]) in text
        assert "Reasons for the decision" not in text
        assert "does not state the reasons for the decision" in text


def test_the_page_and_the_text_have_the_same_words():
    for template, fields in (("eu", EU), ("us", US)):
        for one in (german(), german(plans=3), german(plans=0), german(plans=0, not_durable=True)):
            own = letter_about(one, template, "en", fields, REASONS)
            page = Page(own.html.split("</title>")[1]).text
            text = words_of(re.sub(r"^([=-]{3,}|- )", "", own.text, flags=re.MULTILINE).replace(EU["bank"], ""))
            for word in set(text.split()):
                assert word in page


def test_what_stays_is_named_and_what_changes_is_not(explainer):
    advice = explainer.explain(applicants(12), hold=0.75)
    person = somebody(advice)
    told = advice.of(person)
    kept = [name for name in advice.encoding.schema.names if name not in {c.feature for c in told.plans[0].changes}]
    line = re.search(
        r"Everything else must stay as it was in your application: (.*?)\.",
        words_of(hf.letter(advice, person, fields=EU).text),
    )
    assert set(re.split(r", | and ", line[1])) == set(kept)
    assert "age" in kept


def test_many_features_that_stay_are_counted():
    features = tuple(hf.Feature(f"f{k}", "real") for k in range(100))
    plan = PersonPlan(1, (Change("f0", 1.0, 2.0),), 1.0)
    text = words_of(letter_about(Case(told(plan), hf.Schema(features, "y", (0, 1))), fields=EU).text)
    assert "f29 and 70 more details of your application." in text
    assert "f30" not in text


def test_a_change_that_follows_is_no_step():
    plan = PersonPlan(1, (Change("duration_months", 36, 17), Change("instalment_rate", 2, 4, follows=True)), 1.0)
    own = letter_about(replace(german(), advice=told(plan)), fields=EU)
    assert "- Shorten the duration of the loan from 36 to 17 months\n" in own.text
    assert "- Instalments" not in own.text
    followed = "you need to do nothing for it: instalments as a share of the income, from 2 to 4."
    assert followed in words_of(own.text)
    assert followed in Page(own.html).text


@pytest.mark.parametrize(
    ("value", "english", "german"),
    [
        (1234.5, "1,234.5", "1.234,5"),
        (1234567.0, "1,234,567", "1.234.567"),
        (0.25, "0.25", "0,25"),
        (-3, "-3", "-3"),
        (12, "12", "12"),
    ],
)
def test_numbers_are_written_as_the_language_does(value, english, german):
    kind = template_of("eu")
    assert kind.language("en").number(value) == english
    assert kind.language("de").number(value) == german


def test_dates_and_shares_are_written_as_the_language_does():
    day = datetime.date(2026, 3, 1)
    english, german, american = (
        template_of(name).language(code) for name, code in (("eu", "en"), ("eu", "de"), ("us", "en"))
    )
    assert [one.day(day) for one in (english, german, american)] == ["1 March 2026", "1. März 2026", "March 1, 2026"]
    assert [one.share(0.8911) for one in (english, german)] == ["89.1%", "89,1\u00a0%"]
    assert english.share(1.0) == "100%"


# ---- how sure ----


def test_without_retrained_models_nobody_knows():
    plain = hf.Explainer(model(), train_rows(), label="approved", want="yes", schema=worded(), workers=1)
    own = plain.explain(applicants(20))
    text = words_of(hf.letter(own, somebody(own), fields=EU).text)
    assert "Nobody knows whether the model will still accept this plan after it is updated." in text
    assert "We have not tried out what an update of the model would change." in text
    assert "confident" not in text


def test_retrained_models_that_are_in_doubt_are_not_counted(advice):
    doubted = replace(advice, decided={**advice.decided, "warnings": ["one model: all answer alike"]})
    text = words_of(hf.letter(doubted, somebody(doubted), fields=EU).text)
    assert "Nobody knows whether" in text
    assert "versions of the model that were trained again" not in text


def test_a_plan_that_most_retrained_models_refuse_says_so():
    plan = replace(german().plans[0], held=3, low=0.02)
    text = words_of(letter_about(replace(german(), advice=told(plan)), fields=EU).text)
    assert "Of 32 versions of the model that were trained again, 3 would accept this plan." in text
    assert "will probably not lead to a different result" in text


def test_a_plan_that_does_not_hold_is_never_told(explainer):
    own = explainer.explain(applicants(20), hold=1.0, method="min-l1")
    person = somebody(own, "not durable")
    best = own.of(person).not_durable[0]
    letter = hf.letter(own, person, fields=EU)
    for text in (words_of(letter.text), Page(letter.html).text):
        assert "So we cannot tell you to make any change." in text
        assert "Raise your" not in text
        assert "Shorten the loan" not in text
        for change in best.changes:
            assert f"to {change.after:,}" not in text if not isinstance(change.after, str) else True


def test_who_has_no_plan_is_told_so():
    text = words_of(letter_about(german(plans=0), fields=EU).text)
    assert "We found none. This does not mean that there is none." in text
    assert "Plan" not in text


def test_who_has_the_class_gets_no_letter(advice):
    person = somebody(advice, "has the class")
    with pytest.raises(ValueError, match=f"{person} has the class that was wanted already"):
        hf.letter(advice, person, fields=EU)


def test_a_stranger_is_unknown(advice):
    with pytest.raises(KeyError, match="nobody is labelled 'nobody'"):
        hf.letter(advice, "nobody", fields=EU)


def test_advice_without_constraints_is_refused(advice):
    free = replace(advice, decided={**advice.decided, "constraints": "off"})
    with pytest.raises(ValueError, match="without the schema's constraints"):
        hf.letter(free, somebody(free), fields=EU)


def test_a_schema_that_nobody_wrote_is_told(advice):
    read = replace(advice, decided={**advice.decided, "schema": "read off the table"})
    with pytest.warns(UserWarning, match="the schema was read off the table"):
        hf.letter(read, somebody(read), fields=EU)


def test_a_model_that_decides_about_nobody_makes_a_sample(advice):
    ours = replace(advice, decided={**advice.decided, "model_is_ours": True})
    for language, word in (("en", "Sample: "), ("de", "Muster: ")):
        own = hf.letter(ours, somebody(ours), fields=EU, language=language)
        assert own.text.startswith(word)
        assert word in Page(own.html).text
    assert "Sample" not in hf.letter(advice, somebody(advice), fields=EU).text


def test_three_plans_at_most_and_the_cheapest_ones():
    many = german(plans=5)
    assert many.plans == many.advice.plans[:3]
    text = letter_about(many, fields=EU).text
    assert "There are 3" in words_of(text)
    assert "Plan 3\n" in text
    assert "Plan 4" not in text


# ---- reasons ----


def test_reasons_are_those_of_the_bank(advice):
    person = somebody(advice)
    for given in ("why", ["Low income", "Long loan"]):
        own = hf.letter(advice, person, fields=EU, reasons=given)
        assert "- Low income\n- Long loan\n" in own.text
        assert "<li>Low income</li>\n<li>Long loan</li>" in own.html


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("whi", r"no column 'whi' with reasons \(did you mean 'why'\?\)"),
        ("income", "column 'income' has no reasons for"),
        (["", " "], "reasons are all empty"),
        ([3], "reasons has 3"),
        (3, "reasons is 3"),
    ],
    ids=str,
)
def test_wrong_reasons_are_told(given, says, advice):
    with pytest.raises((TypeError, ValueError), match=says):
        hf.letter(advice, somebody(advice), fields=EU, reasons=given)


def test_empty_cells_of_reasons_are_told(advice):
    for cell in ("", " ; ", None, float("nan"), []):
        people = advice.people.assign(why=[cell] * len(advice))
        with pytest.raises(ValueError, match="reasons"):
            hf.letter(replace(advice, people=people), somebody(advice), fields=EU, reasons="why")


def test_the_american_letter_needs_reasons_or_says_where_to_ask_for_them():
    with pytest.raises(ValueError, match="needs the field 'reasons_contact', which is missing") as error:
        letter_about(german(), "us", "en", US)
    assert "12 CFR 1002.9(a)(2)(ii)" in str(error.value)
    assert "or give reasons=" in str(error.value)
    asked = words_of(letter_about(german(), "us", "en", US | {"reasons_contact": "Credit desk, 555-0100"}).text)
    assert "within 60 days" in asked
    assert "within 30 days" in asked
    assert "Credit desk, 555-0100." in asked
    assert "Principal reasons for the action" not in asked
    told = words_of(letter_about(german(), "us", "en", US, REASONS).text)
    assert "Principal reasons for the action" in told
    assert "60 days" not in told


def test_a_plan_is_never_called_a_principal_reason():
    for reasons, fields in ((REASONS, US), (None, US | {"reasons_contact": "Credit desk"})):
        text = words_of(letter_about(german(plans=3), "us", "en", fields, reasons).text)
        assert "It is not a statement of the principal reasons for the action." in text
        between = text.split("Changes that would have led")[1].replace("not a statement of the principal reasons", "")
        assert "reason" not in between


def test_the_notice_of_the_act_is_the_regulations():
    text = words_of(letter_about(german(), "us", "en", US, REASONS).text)
    assert (
        "The Federal Equal Credit Opportunity Act prohibits creditors from discriminating against credit applicants on "
        "the basis of race, color, religion, national origin, sex, marital status, age (provided the applicant has the "
        "capacity to enter into a binding contract); because all or part of the applicant's income derives from any "
        "public assistance program; or because the applicant has in good faith exercised any right under the Consumer "
        "Credit Protection Act. The Federal agency that administers compliance with this law concerning this creditor "
        f"is {US['agency']}."
    ) in text


# ---- fields ----


REQUIRED = [(name, field.name) for name in SHIPPED for field in template_of(name).fields if field.needed == "always"]


@pytest.mark.parametrize(("template", "field"), REQUIRED)
@pytest.mark.parametrize("value", ["", " \n\t", None])
def test_a_field_that_is_empty_or_missing_is_refused_with_what_to_write(template, field, value):
    fields = {"eu": EU, "us": US}[template] | {field: value}
    about = next(one for one in template_of(template).fields if one.name == field)
    state = "missing" if value is None else "empty"
    with pytest.raises(ValueError, match=f"needs the field '{field}', which is {state}") as error:
        letter_about(german(), template, "en", fields, REASONS)
    told = str(error.value)
    assert about.what in told
    assert about.write in told
    assert about.rule in told
    del fields[field]
    with pytest.raises(ValueError, match=f"'{field}', which is missing"):
        letter_about(german(), template, "en", fields, REASONS)


def test_the_rules_fields_are_required():
    assert {field for name, field in REQUIRED if name == "eu"} == {
        "bank", "applicant", "decision", "good_until", "contact", "authority",
    }  # fmt: skip
    assert {field for name, field in REQUIRED if name == "us"} == {
        "bank", "applicant", "decision", "good_until", "agency",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (EU | {"contacts": "x"}, r"'contacts' \(did you mean 'contact'\?\); there are bank, applicant"),
        (EU | {"good_until": 3}, "field 'good_until' is 3"),
        (
            EU | {"good_until": datetime.date(2026, 1, 1)},
            "good_until is 2026-01-01, which is before the date of the letter",
        ),
        ("bank", "fields is a str; give a dictionary: bank, applicant"),
        (None, "needs the field 'bank', which is missing"),
    ],
    ids=str,
)
def test_wrong_fields_are_told(fields, says):
    with pytest.raises((TypeError, ValueError), match=says):
        letter_about(german(), fields=fields)


def test_the_date_is_todays_where_none_is_given():
    fields = {name: value for name, value in EU.items() if name not in ("date", "good_until")}
    before = datetime.date.today()
    text = letter_about(german(), fields=fields | {"good_until": "the next update"}).text
    days = {template_of("eu").language("en").day(day) for day in (before, datetime.date.today())}
    assert any(day in text for day in days)
    assert "valid until: the next update." in words_of(text)


def test_a_stop_at_the_end_of_a_field_is_not_doubled():
    text = words_of(letter_about(german(), fields=EU | {"good_until": "the next update."}).text)
    assert "until: the next update. " in text
    assert ".." not in text


# ---- languages ----


def test_a_german_letter_has_no_english_in_it():
    fields = EU | {"decision": "Wir haben Ihren Antrag abgelehnt.", "authority": "Behörde", "contact": "Kredite"}
    fields |= {"bank": "Bank", "applicant": "A. B."}
    english = {
        word.lower()
        for key in template_of("eu").language("en").words.values()
        for word in re.findall(r"[a-zA-Z]+", key)
    }
    german_words = {
        word.lower() for key in template_of("eu").language("de").words.values() for word in re.findall(r"\w+", key)
    }
    english |= {
        word for feature in german().schema.features for level in feature.values for word in str(level).lower().split()
    }
    german_words |= {
        word.lower()
        for feature in german().schema.features
        for _, level in dict(feature.phrase)["de"].levels
        for word in re.findall(r"\w+", level)
    }
    only_english = {word for word in english - german_words if len(word) > 2}
    assert {"the", "overdrawn", "would", "application"} <= only_english
    for one in (german(plans=3, count=12), german(plans=0), german(plans=0, not_durable=True), german(audited=False)):
        own = letter_about(one, "eu", "de", fields, ["Grund"])
        said = set(re.findall(r"\w+", own.text.lower())) | set(re.findall(r"\w+", Page(own.html).text.lower()))
        assert not said & only_english
        assert '<html lang="de">' in own.html


def test_the_languages_say_the_same_things():
    english, german = (template_of("eu").language(code).words for code in ("en", "de"))
    assert set(english) == set(german)
    for key in english:
        assert sorted(re.findall(r"{\w+}", english[key])) == sorted(re.findall(r"{\w+}", german[key])), key


@pytest.mark.parametrize(("template", "language"), [("eu", "fr"), ("us", "de"), ("eu", "EN")])
def test_a_language_that_a_template_does_not_have_is_told(template, language):
    with pytest.raises(ValueError, match=f"the template '{template}' has no language '{language}'.*; it has "):
        letter_about(german(), template, language, EU)


# ---- what a table may hold ----


EVIL = '<script>alert("1")</script>'
CODES = "red\x1b[31m\u202egreen\nSecond line"


def test_text_of_a_table_is_shown_and_never_obeyed():
    features = (
        hf.Feature(EVIL, "real"),
        hf.Feature("level", "categorical", levels=("a", CODES, EVIL)),
        hf.Feature("k", "real"),
    )
    changes = (Change(EVIL, 1.0, 2.0), Change("level", EVIL, CODES))
    evil = Case(told(PersonPlan(1, changes, 1.0)), hf.Schema(features, "y", (0, 1)))
    own = letter_about(evil, fields=EU | {"bank": EVIL, "decision": CODES}, reasons=[EVIL, CODES])
    for text in (own.text, own.html):
        assert not set("\x1b\u202e") & set(text)
        assert "\\x1b[31m\\u202egreen" in text
    assert "<script" not in own.html.lower()
    assert not [tag for tag, _ in Page(own.html).elements if tag == "script"]
    assert EVIL in Page(own.html).text
    assert EVIL in own.text
    assert f"- Level: from {EVIL} to red\\x1b[31m\\u202egreen Second line" in words_of(own.text)


def test_braces_of_a_table_are_text():
    feature = hf.Feature("{now}", "categorical", levels=("{then}", "{x.__class__}"))
    plan = PersonPlan(1, (Change("{now}", *feature.levels),), 1.0)
    own = letter_about(
        Case(told(plan), hf.Schema((feature,), "y", (0, 1))),
        fields=EU | {"good_until": "{bank}", "contact": "{{ 1 + 1 }}"},
    )
    assert "- {now}: from {then} to {x.__class__}\n" in own.text
    assert "until: {bank}." in own.text
    assert "{{ 1 + 1 }}" in words_of(own.text)


def test_a_level_and_a_missing_value_have_words():
    feature = hf.Feature(
        "x", "ordinal", levels=(1, 2, 3), missing=True, phrase={"en": {"levels": {2: "two"}, "rise": "go up to {then}"}}
    )
    schema = hf.Schema((feature, hf.Feature("z", "real")), "y", (0, 1))
    said = [
        letter_about(Case(told(PersonPlan(1, (Change("x", *both),), 1.0)), schema), fields=EU).text
        for both in ((1, 2), (3, 2), (float("nan"), 2), (None, 1))
    ]
    for text, line in zip(
        said, ("Go up to two", "X: from 3 to two", "X: from not known to two", "X: from not known to 1"), strict=True
    ):
        assert f"- {line}\n" in text


# ---- the page ----


@pytest.mark.parametrize("template", SHIPPED)
def test_the_page_needs_nothing_and_says_what_it_is(template):
    own = letter_about(german(plans=2), template, "en", {"eu": EU, "us": US}[template], REASONS)
    tags = [tag for tag, _ in Page(own.html).elements]
    assert not {"script", "link", "img", "iframe", "form"} & set(tags)
    assert "http://" not in own.html.replace("http-equiv", "")
    assert "https://" not in own.html
    assert {"header", "main", "footer", "title"} <= set(tags)
    assert [tag for tag in tags if tag in ("h1", "h2", "h3")].count("h1") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    policies = [attrs["content"] for tag, attrs in Page(own.html).elements if attrs.get("http-equiv")]
    assert policies == [
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    ]
    assert ("size: A4" if template == "eu" else "size: Letter") in own.html


def test_lines_of_the_text_are_short():
    for language in ("en", "de"):
        text = letter_about(german(plans=3, count=12), "eu", language, EU, REASONS).text
        assert max(map(len, text.split("\n"))) <= 76
        assert "\n\n\n" not in text


def test_it_is_saved_as_a_page_or_as_text(advice, tmp_path):
    own = hf.letter(advice, somebody(advice), fields=EU)
    assert own.save(tmp_path / "a.html").read_text(encoding="utf-8") == own.html
    frame = re.search(r'<iframe[^>]* srcdoc="([^"]*)"', own._repr_html_())
    assert unescape(frame[1]) == own.html  # in a frame: a page inside a notebook would change the notebook's look
    assert own.save(tmp_path / "a.txt").read_text(encoding="utf-8") == own.text == str(own)
    with pytest.raises(ValueError, match="written as .html or .txt, not as '.pdf'"):
        own.save(tmp_path / "a.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.txt"]


# ---- templates of one's own ----


HEADER = """
[fields.bank]
what = "who we are"
write = "Us"
[fields.applicant]
what = "who you are"
write = "You"
[fields.decision]
what = "what we said"
write = "No."
[fields.good_until]
what = "until when"
write = "May"
[fields.date]
what = "when"
write = "now"
needed = "optional"
[fields.motto]
what = "what we live by"
write = "Onwards"
"""
MINE = {"bank": "Us", "applicant": "You", "decision": "No.", "good_until": "May", "motto": "Onwards"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "letter.toml").write_text(HEADER)
    (tmp_path / "en.toml").write_text('title = "Dear applicant"\nrights_title = "Motto"\nrights = "{motto}"')
    return tmp_path


def test_a_folder_with_fields_and_words_is_a_template(folder):
    own = letter_about(german(), folder, "en", MINE)
    assert own.text.startswith("Us\n")
    assert "Dear applicant\n==============" in own.text
    assert "Motto\n-----\n\nOnwards\n" in own.text
    assert "<h1>Dear applicant</h1>" in own.html
    with pytest.raises(
        ValueError, match="needs the field 'motto', which is missing: what we live by. Write, for example"
    ):
        letter_about(german(), folder, "en", {name: value for name, value in MINE.items() if name != "motto"})


def test_a_template_may_have_a_layout_and_a_language_of_its_own(folder):
    words = (FOLDER / "words" / "de.toml").read_text(encoding="utf-8").replace("Ihr Antrag", "Votre demande")
    (folder / "fr.toml").write_text(words, encoding="utf-8")
    (folder / "letter.txt").write_text("{{ fields.motto }}: {{ plans|length }} {{ say('title') }}")
    own = letter_about(german(), folder, "fr", MINE)
    assert own.text.startswith("Onwards: 1 Votre demande")
    assert '<html lang="fr">' in own.html


@pytest.mark.parametrize(
    ("layout", "says"),
    [
        ("{{ say.__globals__ }}", "unsafe"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ fields.clear() }}", "unsafe"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ fields.nothing }}", "has no attribute 'nothing'"),
        ("{{ nothing }}", "'nothing' is undefined"),
        ("{% if %}", "line 1: "),
        ("{% include '../en.toml' %}", "en.toml"),
        ("{{ say('no such words') }}", "no words for 'no such words'"),
    ],
    ids=str,
)
def test_a_template_can_do_no_more_than_show_the_letter(layout, says, folder):
    (folder / "letter.txt").write_text(layout)
    with pytest.raises(ValueError, match=re.escape(says)):
        letter_about(german(), folder, "en", MINE)


@pytest.mark.parametrize(
    ("header", "says"),
    [
        ("fields = 3", "fields is 3; write one table for each"),
        ("[field.bank]", "unknown name 'field' (did you mean 'fields'?); there are notes, page, fields"),
        ('[fields.bank]\nwhat = "x"', "does not say 'write'"),
        ('[fields.bank]\nwhat = "x"\nwrite = "y"\nneed = "always"', "unknown name 'need' (did you mean 'needed'?)"),
        ('[fields.bank]\nwhat = "x"\nwrite = "y"\nneeded = true', "needed is True; choose one of 'always'"),
        ('[fields.reasons]\nwhat = "x"\nwrite = "y"', "means something else"),
        ('[fields."a b"]\nwhat = "x"\nwrite = "y"', "expected a name of letters"),
        ("fields", "is not valid TOML"),
    ],
    ids=str,
)
def test_a_wrong_header_is_told(header, says, folder):
    (folder / "letter.toml").write_text(header)
    with pytest.raises(ValueError, match=re.escape(says)):
        letter_about(german(), folder, "en", MINE)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("title = 3", "title is 3; expected text"),
        ('title = "{a.b}"', "title has '{a.b}' with anything but a name between the braces"),
        ('title = "{name}"', "en.title has {name}, for which there is no value"),
        ('locale = "xx_Nowhere"', "Babel knows no locale 'xx_Nowhere'"),
    ],
    ids=str,
)
def test_wrong_words_are_told(words, says, folder):
    (folder / "en.toml").write_text(words)
    with pytest.raises(ValueError, match=re.escape(says)):
        letter_about(german(), folder, "en", MINE)


@pytest.mark.parametrize("template", ["uk", Path("nowhere"), "../eu", 3])
def test_what_is_no_template_is_told(template):
    with pytest.raises((TypeError, ValueError), match="template"):
        letter_about(german(), template, "en", EU)


def test_every_shipped_language_can_be_read():
    for name in SHIPPED:
        kind = template_of(name)
        assert kind.languages
        for code in kind.languages:
            assert isinstance(kind.language(code), Language)
