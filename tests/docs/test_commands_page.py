"""The page of commands says what the commands say of themselves."""

from __future__ import annotations

import re

from pages import PAGES, ROOT

import holdfast.cli
from holdfast.cli.explain import NOTHING_PROMISED
from write_commands import PAGE, page

TEXT = PAGES["docs/reference/command_line.md"]
VARIABLE = re.compile(r"HOLDFAST_[A-Z_]+")


def test_the_page_of_commands_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make listing`"


def test_every_option_that_the_page_lists_has_words():
    listed = re.findall(r"^\* `(-[^`]+)`(.*)$", TEXT, flags=re.MULTILINE)
    assert len(listed) > 80
    assert not [option for option, words in listed if not words.startswith(": ")]


def test_the_page_names_every_environment_variable_that_the_package_reads():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    read = {name for source in sources if "os.environ" in source for name in VARIABLE.findall(source)}
    assert read == set(VARIABLE.findall(TEXT))


def test_the_page_names_every_exit_code_of_the_command_line():
    said = set(re.findall(r"\b(\d+) (?:done|could|the command|interrupted|terminated)", holdfast.cli.__doc__ or ""))
    listed = set(re.findall(r"^\| (\d+) \|", TEXT, flags=re.MULTILINE))
    assert listed == said | {str(NOTHING_PROMISED)}
