"""The report as its readers use it: found, sorted, opened by keyboard, printed, on a phone, in the dark, and safe."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast as hf
from browsing import PHONE, WIDE, printed_pages, sideways, violations
from holdfast.utils.messages import printable

PAGE = 50  # people who are shown at first
STATUSES = {
    "plan": "plan",
    "not-durable": "not durable",
    "nothing-found": "nothing found",
    "has-the-class": "has the class",
}


@pytest.fixture(scope="module")
def file(loan_advice, tmp_path_factory):
    return hf.report(loan_advice, tmp_path_factory.mktemp("report") / "report.html", groups=["housing"])


@pytest.fixture
def page(visit, file):
    """The report, showing everybody."""
    page = visit(file)
    page.select_option("#status", "all")
    return page


def labels(page) -> list[str]:
    """The people on the page, in its order, all of them."""
    if page.locator("#more").is_visible():
        page.click("#more")
    return page.locator("#people > li.card").evaluate_all("cards => cards.map(card => card.dataset.person)")


def named(advice, keep=lambda person: True) -> list[str]:
    return [str(label) for label in advice.people.index if keep(advice.of(label))]


def place_of(advice, status: str) -> int:
    return advice.status.tolist().index(status)


def opened(page, place: int):
    """A card, opened as a reader does."""
    card = page.locator(f"details#person-{place}")
    card.locator("summary").first.click()
    card.locator("> :not(summary)").first.wait_for()
    return card


# ---- what is there ----


def test_a_reader_sees_first_those_whom_the_model_refuses(visit, file, loan_advice):
    page = visit(file)
    assert labels(page) == [str(label) for label in loan_advice.people.index[loan_advice.status != "has the class"]]
    assert page.locator("#count").inner_text() == "14 of 60 people"


def test_everybody_is_there_in_the_order_of_the_table_and_the_next_are_shown_on_request(page, loan_advice):
    cards = page.locator("#people > li.card")
    assert page.locator("#count").inner_text().startswith("60 of 60 people")
    assert cards.count() == PAGE
    page.click("#more")
    assert cards.count() == len(loan_advice)
    assert not page.locator("#more").is_visible()
    assert labels(page) == named(loan_advice)


def test_the_first_card_is_marked_when_it_is_drawn(page):
    page.wait_for_function("() => performance.getEntriesByName('first-card').length")
    assert page.evaluate("() => performance.getEntriesByName('first-card').length") == 1


def test_every_part_is_there_and_headings_come_in_order(page):
    for part in ("summary", "holding", "groups", "cost", "retraining", "made", "cards"):
        assert page.locator(f"section#{part} h2").is_visible()
    levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip([0, *levels], levels, strict=False))


def test_without_scripts_the_page_says_what_is_missing(browser, file):
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("noscript").is_visible()
    assert "JavaScript" in page.locator("noscript").inner_text()
    context.close()


# ---- search, filters, order ----


def test_a_person_is_found_by_label(page, loan_advice):
    label = str(loan_advice.people.index[7])
    page.fill("#search", label)
    assert labels(page) == [label]
    assert page.locator("#count").inner_text() == "1 of 60 people"
    page.fill("#search", "")
    assert len(labels(page)) == 60


def test_a_label_finds_its_person_whatever_is_filtered(visit, file, loan_advice):
    page = visit(file)
    for label, status in loan_advice.status.drop_duplicates().items():
        page.fill("#search", str(label))
        assert labels(page) == [str(label)], status


def test_people_are_found_by_the_words_of_a_plan(page, loan_advice):
    def has(change, person):
        return any(change in plan.changes for plan in [*person.plans, *person.not_durable])

    told = loan_advice.of(loan_advice.people.index[place_of(loan_advice, "plan")]).plans[0].changes[0]
    page.fill("#search", str(told).upper())
    expected = named(loan_advice, lambda person: has(told, person))
    assert labels(page) == expected
    assert 0 < len(expected) < 14


def test_a_text_that_nobody_has_finds_nobody_and_says_so(page):
    page.fill("#search", "a castle by the sea")
    assert labels(page) == []
    assert page.locator("#count").inner_text().startswith("0 of 60 people: nothing matches")
    assert not page.locator("#more").is_visible()


@pytest.mark.parametrize(("value", "status"), STATUSES.items())
def test_people_are_filtered_by_what_became_of_them(page, loan_advice, value, status):
    page.select_option("#status", value)
    expected = [str(label) for label in loan_advice.people.index[loan_advice.status == status]]
    assert labels(page) == expected
    assert page.locator("#count").inner_text().startswith(f"{len(expected)} of 60 people")
    page.select_option("#status", "all")
    assert len(labels(page)) == 60


def test_filter_and_search_go_together(page, loan_advice):
    page.select_option("#status", "plan")
    page.fill("#search", "housing: ")
    moves = named(loan_advice, lambda person: any("housing" in str(plan.changes) for plan in person.plans))
    assert labels(page) == moves


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("given", lambda person: 0),
        ("id", lambda person: person.person),
        ("cost", lambda person: person.plans[0].cost if person.plans else np.inf),
        ("hold", lambda person: person.plans[0].held if person.plans else np.inf),
        ("plans", lambda person: -len(person.plans)),
    ],
)
def test_people_are_sorted_and_those_without_a_plan_come_last(page, loan_advice, order, key):
    page.select_option("#sort", order)
    people = [loan_advice.of(label) for label in loan_advice.people.index]
    assert labels(page) == [str(person.person) for person in sorted(people, key=key)]  # both keep ties as they are


def test_the_costs_that_cards_show_rise_when_they_are_sorted_by_cost(page, loan_advice):
    page.select_option("#sort", "cost")
    texts = page.locator("#people > li.card summary").all_inner_texts()
    found = [re.search(r"cost ([\d.]+)", text) for text in texts]
    costs = [float(one[1]) for one in found if one]
    assert len(costs) == (loan_advice.status == "plan").sum()
    assert costs == sorted(costs)
    assert all(found[: len(costs)])


# ---- a card ----


def shown(card) -> dict[str, object]:
    """What a card says of its plans, read off the page."""
    text = card.inner_text()
    return {
        "changes": [re.sub(r" \(cost [\d.]+\)$", "", line) for line in card.locator("ul > li").all_inner_texts()],
        "costs": [float(cost) for cost in re.findall(r"^cost ([\d.]+)$", text, flags=re.MULTILINE)],
        "held": re.findall(r"(\d+ of \d+) audit models", text),
    }


def expected(person) -> dict[str, object]:
    plans = [*person.plans, *person.not_durable]
    return {
        "changes": [str(change) for plan in plans for change in plan.changes],
        "costs": [float(f"{plan.cost:.3g}") for plan in plans],
        "held": [f"{plan.held} of {plan.members}" for plan in plans],
    }


@pytest.mark.parametrize("status", STATUSES.values())
def test_a_card_says_what_the_advice_says(page, loan_advice, status):
    place = place_of(loan_advice, status)
    person = loan_advice.of(loan_advice.people.index[place])
    page.fill("#search", str(person.person))
    body = opened(page, place).locator("> :not(summary)")
    assert shown(body) == expected(person)
    assert f"“{person.now}”" in body.inner_text()
    if status == "nothing found":
        assert str(person.why_not) in body.inner_text()


def test_a_card_is_found_and_opened_by_keyboard_alone(page, loan_advice):
    place = place_of(loan_advice, "plan")
    label = loan_advice.people.index[place]
    page.focus("#search")
    page.keyboard.type(str(label))
    on = f"() => document.activeElement === document.querySelector('#person-{place} > summary')"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate(on):
            break
    assert page.evaluate(on)
    page.keyboard.press("Enter")
    body = page.locator(f"#person-{place} > :not(summary)")
    body.wait_for()
    assert shown(body) == expected(loan_advice.of(label))
    page.keyboard.press("Enter")
    body.wait_for(state="hidden")


def test_the_focus_can_be_seen(page):
    page.focus("#search")
    page.keyboard.press("Tab")
    style = "() => { const own = getComputedStyle(document.activeElement); return [own.outlineStyle, own.boxShadow]; }"
    assert page.evaluate(style) != ["none", "none"]


@pytest.mark.parametrize("place", [3, 57])
def test_an_address_opens_a_card_also_one_that_is_not_among_the_first(visit, file, loan_advice, place):
    page = visit(file, at=f"#person-{place}")
    card = page.locator(f"details#person-{place}[open]")
    card.wait_for()
    label = str(loan_advice.people.index[place])
    assert card.locator("xpath=..").get_attribute("data-person") == label
    page.wait_for_function(
        "card => { const box = card.getBoundingClientRect(); return box.top >= 0 && box.top < innerHeight; }",
        arg=card.element_handle(),
    )


def test_an_address_that_is_changed_later_opens_its_card_whatever_was_searched(page):
    page.fill("#search", "a castle by the sea")
    page.evaluate("() => { location.hash = '#person-5'; }")
    page.locator("details#person-5[open]").wait_for()
    assert page.locator("#people details[open]").count() == 1


def test_an_address_of_nobody_is_passed_over(visit, file):
    page = visit(file, at="#person-999")
    assert page.locator("#people > li.card").count() == 14
    assert page.locator("#people details[open]").count() == 0


# ---- paper ----


def test_paper_shows_all_who_match_opened_and_no_controls(page, loan_advice):
    page.emulate_media(media="print")
    page.wait_for_function("() => document.querySelectorAll('#people > li.card > details[open]').length === 60")
    assert labels(page) == named(loan_advice)
    for control in ("#search", "#sort", "#status", "#more"):
        assert not page.locator(control).is_visible()
    body = page.locator(f"#person-{place_of(loan_advice, 'plan')} > :not(summary)")
    assert body.is_visible()
    page.emulate_media(media="screen")
    page.wait_for_function("() => document.querySelectorAll('#people details[open]').length === 0")


def test_what_is_printed_is_what_was_filtered(page, loan_advice):
    page.select_option("#status", "plan")
    page.evaluate(
        "() => addEventListener('beforeprint', () => {"
        " const cards = [...document.querySelectorAll('#people > li.card')];"
        " window.printed = cards.map(card => [card.dataset.person, card.firstElementChild.open]); })"
    )
    few = printed_pages(page)
    planned = [str(label) for label in loan_advice.people.index[loan_advice.status == "plan"]]
    assert page.evaluate("() => window.printed") == [[label, True] for label in planned]
    page.select_option("#status", "all")
    assert printed_pages(page) > few > 0


# ---- for everybody ----


@pytest.mark.parametrize("width", [WIDE, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_also_with_cards_open(visit, file, loan_advice, width, scheme):
    page = visit(file, width=width, scheme=scheme)
    assert violations(page) == []
    for value, status in STATUSES.items():
        page.select_option("#status", value)
        opened(page, place_of(loan_advice, status))
        for more in page.locator("#people details details > summary").all():
            more.click()
        assert violations(page) == []


def test_dark_is_dark(visit, file):
    shade = (
        "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
    )
    light, dark = (visit(file, scheme=scheme).evaluate(shade) for scheme in ("light", "dark"))
    assert dark < 250 < 500 < light


@pytest.mark.parametrize("width", [WIDE, PHONE])
def test_nobody_scrolls_the_page_sideways(visit, file, loan_advice, width):
    page = visit(file, width=width)
    assert sideways(page) == 0
    opened(page, place_of(loan_advice, "plan"))
    page.locator("#people details details > summary").first.click()
    assert sideways(page) == 0


# ---- hostile names ----

SCRIPT = "<script>alert(1)</script>"
ENDS = "</script><script>alert('two')</script>"
IMAGE = "\"><img src=x onerror='alert(3)'>"
COMMENT = "<!--<script>"
TERMINAL = "\x1b[31mred\u2028\u202eright to left\u200f"
TEMPLATE = "{{ 7 * 7 }} ${7 * 7} &lt;b&gt; \\u003cb\\u003e"
LEVELS = (ENDS, IMAGE, COMMENT, TERMINAL, TEMPLATE)


@pytest.fixture(scope="module")
def hostile() -> hf.Advice:
    """Advice about a table whose every word is written by somebody who means harm."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame({SCRIPT: draw.normal(size=200).round(2), IMAGE: draw.choice(LEVELS, 200)})
    yes = table[SCRIPT] + table[IMAGE].map(dict(zip(LEVELS, range(-2, 3), strict=True))) > 0
    table = table.assign(**{COMMENT: np.where(yes, ENDS, TERMINAL)})
    schema = hf.Schema(
        (hf.Feature(SCRIPT, "real", mutable=False), hf.Feature(IMAGE, "categorical", levels=LEVELS)),
        COMMENT,
        (TERMINAL, ENDS),
    )
    columns = make_column_transformer((StandardScaler(), [SCRIPT]), (OneHotEncoder(), [IMAGE]))
    model = make_pipeline(columns, LogisticRegression()).fit(table[[SCRIPT, IMAGE]], table[COMMENT])
    people = table[model.predict(table[[SCRIPT, IMAGE]]) == TERMINAL].iloc[:12].drop(columns=COMMENT)
    people.index = [f"{LEVELS[place % 5]} {place}" for place in range(12)]
    explainer = hf.Explainer(model, table, want=ENDS, schema=schema, workers=1)
    return explainer.explain(people)


def test_hostile_names_are_text_and_nothing_of_them_runs(visit, hostile, tmp_path):
    page = visit(hf.report(hostile, tmp_path / "report.html", groups=[IMAGE], title=SCRIPT))
    assert page.title() == page.locator("h1").inner_text() == SCRIPT
    people = hostile.people.index
    assert labels(page) == [printable(label) for label in people]
    for place, label in enumerate(people):
        card = opened(page, place)
        card.locator("details > summary").first.click()
        assert card.locator("summary").first.inner_text().startswith(printable(label))
        assert shown(card.locator("> :not(summary)"))["changes"] == [
            printable(str(change)) for plan in hostile.of(label).plans for change in plan.changes
        ]
        assert printable(SCRIPT) in card.inner_text()
    assert page.locator("script").count() == 2
    assert page.locator("img, main b, iframe, object, base, link").count() == 0
    read = page.evaluate("() => JSON.parse(document.getElementById('data').textContent)")
    assert {printable(level) for level in LEVELS} & set(read["words"])
    assert json.dumps(read).count("alert(1)") >= 1
    page.fill("#search", printable(people[0]))
    assert labels(page) == [printable(people[0])]


def test_unseen_characters_reach_the_page_as_their_codes(visit, hostile, tmp_path):
    text = hf.report(hostile, tmp_path / "report.html").read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u200e\u200f]", text)
    assert "\\x1b[31mred" in visit(tmp_path / "report.html").locator("body").inner_text()
