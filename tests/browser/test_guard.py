"""The guard of the tests of pages sees what it is there for: a page that passes it is quiet and asks for nothing."""

from __future__ import annotations

import pytest

from browsing import PHONE, printed_pages, settle, sideways, violations

HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>{}</head>'
PAGE = HEAD + "<body><main><h1>A page</h1>{}</main></body></html>"
POLICY = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"


@pytest.fixture
def written(tmp_path):
    def write(body: str, head: str = "") -> object:
        file = tmp_path / "page.html"
        file.write_text(PAGE.format(head, body), encoding="utf-8")
        return file

    return write


def test_a_quiet_page_passes(visit, written):
    page = visit(written("<p>text</p><img alt='' src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"), at="#here")
    assert page.title() == "A page"
    assert violations(page) == []
    assert printed_pages(page) == 1


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("<script>console.error('one')</script>", "console error: one"),
        ("<script>console.warn('two')</script>", "console warning: two"),
        ("<script>throw new Error('three')</script>", "error: three"),
        ("<script>Promise.reject(new Error('four'))</script>", "error: four"),
        ("<script>alert('five')</script>", "dialog: five"),
        ("<img alt='' src='https://example.org/six.png'>", "request: https://example.org/six.png"),
        ("<img alt='' src='seven.png'>", "seven.png"),
        ("<script>fetch('https://example.org/eight').catch(() => 0)</script>", "request: https://example.org/eight"),
        ("<style>@import url(https://example.org/nine.css);</style>", "request: https://example.org/nine.css"),
    ],
)
def test_the_guard_sees_it(unguarded, written, body, seen):
    page, trouble = unguarded(written(body))
    settle(page)
    assert any(seen in line for line in trouble), trouble


@pytest.mark.parametrize(
    "body",
    ["<script>1</script>", "<img alt='' src='https://example.org/a.png'>", "<p onclick='alert(1)'>text</p>"],
)
def test_the_guard_sees_what_the_policy_blocks(unguarded, written, body):
    page, trouble = unguarded(written(body, POLICY))
    page.locator("h1 + *").dispatch_event("click")  # some browsers look at a handler when it is first needed
    settle(page)
    assert any("Content Security Policy" in line for line in trouble), trouble


def test_axe_works_under_the_policy_and_sees_low_contrast(visit, written):
    page = visit(written("<p style='color: #999; background: #fff'>text</p>", POLICY))
    (line,) = violations(page)
    assert line.startswith("color-contrast: ")
    assert violations(page, "image-alt", "html-has-lang") == []


def test_a_page_that_is_too_wide_for_a_phone_is_seen(visit, written):
    page = visit(written(f"<p style='width: {PHONE + 100}px'>text</p>"), width=PHONE)
    assert sideways(page) > 90
    assert sideways(visit(written("<p>text</p>"), width=PHONE)) == 0


def test_sheets_of_paper_are_counted(visit, written):
    page = visit(written("<p>one</p>" + "<p style='break-before: page'>another</p>" * 2))
    assert printed_pages(page) == 3
