"""The lists of the reference say what the commands and the docstrings say of themselves."""

from __future__ import annotations

import re

from pages import PAGES, ROOT

import holdfast.cli
import write_commands
import write_index
from holdfast.cli.explain import NOTHING_PROMISED
from reference import SHOWN

TEXT = PAGES["docs/reference/command_line.md"]
VARIABLE = re.compile(r"HOLDFAST_[A-Z_]+")


def test_the_page_of_commands_is_up_to_date():
    assert write_commands.PAGE.read_text(encoding="utf-8") == write_commands.page(), "run `make listing`"


def test_the_index_of_the_reference_is_up_to_date():
    assert write_index.INDEX.read_text(encoding="utf-8") == write_index.page(), "run `make listing`"
    pages = {page.stem for page in write_index.REFERENCE.glob("*.md") if SHOWN.search(page.read_text(encoding="utf-8"))}
    assert pages <= set(write_index.TOPICS)


def test_the_index_says_the_first_sentence_of_a_docstring():
    assert write_index.first_sentence("Def. 5: a search. More.\n\nEven more.") == "Def. 5: a search"
    assert write_index.first_sentence("One line\nof two:\n\n    code") == "One line of two"


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
