"""The letter in a browser: one sheet of paper, readable by everybody, and nothing but itself."""

from __future__ import annotations

import pytest

import holdfast as hf
from browsing import PHONE, WIDE, printed_pages, sideways, violations
from holdfast.reporting.letters.letter import letter_about
from letters import EU, REASONS, US, german

KINDS = {"eu-en": ("eu", "en", EU), "eu-de": ("eu", "de", EU), "us-en": ("us", "en", US)}
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def letter(tmp_path):
    """``letter(kind, plans, changes)`` is the file of a letter to somebody of German Credit."""

    def written(kind: str, plans: int = 1, changes: int = 2):
        template, language, fields = KINDS[kind]
        own = letter_about(german(plans, changes), template, language, fields, REASONS)
        return own.save(tmp_path / "letter.html")

    return written


@kinds
@pytest.mark.parametrize(("plans", "changes"), [(0, 0), (1, 1), (1, 8), (2, 4), (3, 3), (3, 6)])
def test_a_letter_prints_on_one_page(visit, letter, kind, plans, changes):
    assert printed_pages(visit(letter(kind, plans, changes))) == 1


@kinds
def test_paper_has_every_word_of_the_screen(visit, letter, kind):
    page = visit(letter(kind, 3, 6), scheme="dark")
    words = page.locator("body").inner_text().split()
    page.emulate_media(media="print")
    assert page.locator("body").inner_text().split() == words
    shade = "() => getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(shade) == "rgb(255, 255, 255)"  # dark ink on white, whatever the screen


@kinds
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit, letter, kind, scheme):
    for width in (WIDE, PHONE):
        page = visit(letter(kind, 3), width=width, scheme=scheme)
        assert violations(page) == []
        assert sideways(page) == 0


def test_a_letter_of_real_advice_says_what_the_advice_says(visit, loan_advice, tmp_path):
    label = loan_advice.status[loan_advice.status == "plan"].index[0]
    page = visit(hf.letter(loan_advice, label, fields=EU, reasons=REASONS).save(tmp_path / "letter.html"))
    assert printed_pages(page) == 1
    text = page.locator("body").inner_text()
    for plan in loan_advice.of(label).plans:
        for change in plan.changes:
            assert str(change.after) in text.replace(",", "")
    assert all(reason in text for reason in REASONS)


def test_hostile_fields_are_text(visit, loan_advice, tmp_path):
    label = loan_advice.status[loan_advice.status == "plan"].index[0]
    attack = "<script>alert(1)</script>\"><img src=x onerror='alert(2)'>"
    own = hf.letter(loan_advice, label, fields=dict.fromkeys(EU, attack), reasons=[attack])
    page = visit(own.save(tmp_path / "letter.html"))
    assert page.locator("script, img").count() == 0
    assert page.locator("body").inner_text().count(attack) >= len(EU)
