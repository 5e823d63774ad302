"""A bar is seen on a terminal; elsewhere a line says what is being done, where the work says so."""

from __future__ import annotations

import functools
import io

import pytest
from rich.text import Text

from holdfast.utils import terminal as consoles
from holdfast.utils.progress import bar

ERASE, CURSOR = "\x1b[2K", "\x1b[?25h"  # a line, and make it be seen


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal is sent."""
    sent = io.StringIO()
    made = functools.partial(consoles._PlainConsole, file=sent, force_terminal=True, legacy_windows=False)

    def console(stderr, width, **settings):
        assert stderr  # so that what a command prints can be piped
        return made(width=100, color_system=None, **settings)

    monkeypatch.setattr(consoles, "_PlainConsole", console)
    return sent


def shown(terminal):
    """The line that was drawn last."""
    *_, last = (line for line in terminal.getvalue().replace("\r", "\n").split("\n") if "━" in line)
    return Text.from_ansi(last.replace(ERASE, "")).plain


def test_title_doing_and_count_are_shown(terminal):
    with bar("Work", 5) as advance:
        advance(0, "german, training")
        advance(2, "german, pgd")
    last = shown(terminal)
    assert "Work: german, pgd" in last
    assert "2/5" in last


def test_title_and_doing_are_plain_text(terminal):
    with bar("Work [/x]", 5) as advance:
        advance(1, "[b]\x1b[31m\x07 :smile:[/b]")
    assert r"Work [/x]: [b]\x1b[31m\x07 :smile:[/b]" in shown(terminal)
    assert "\x1b[31m" not in terminal.getvalue()
    assert "\x07" not in terminal.getvalue()


def test_without_a_word_on_what_is_done_the_title_stays_alone(terminal):
    with bar("Work", 3) as advance:
        advance(1, "pgd")
        advance(1)
        advance(1)
    last = shown(terminal)
    assert last.startswith("Work ")
    assert "pgd" not in last
    assert "3/3" in last


def test_it_is_gone_when_the_work_is_done_or_fails(terminal):
    with bar("Work", 1) as advance:
        advance(1)
    assert terminal.getvalue().rstrip().endswith(ERASE)
    with pytest.raises(KeyboardInterrupt), bar("Work", 1):
        raise KeyboardInterrupt
    assert terminal.getvalue().rstrip().endswith(ERASE)
    assert terminal.getvalue().count(CURSOR) == 2  # and the cursor is there again


def test_nobody_who_did_not_ask_sees_it(terminal):
    with bar("Work", 5, show=False) as advance:
        advance(5, "all of it")
    assert terminal.getvalue() == ""


def test_a_file_or_a_pipe_gets_a_line_for_what_is_done_and_no_bar(capfd, monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):  # words that make rich take a pipe for a terminal
        monkeypatch.delenv(name, raising=False)
    with bar("Work", 5) as advance:
        advance(0, "one [of] two")
        advance(2)
        advance(1, "the rest")
    assert tuple(capfd.readouterr()) == ("", "Work, 0 of 5: one [of] two\nWork, 3 of 5: the rest\n")
