"""The documents as tests read them: their blocks, the output they show, and the commands they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if path.name != "results.template.md"  # results.md is made from it
}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```python\n.*?^```\n\n```text\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^<!-- printed by: ([^\n]+) -->\n```text\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^```text\n\$ (.+)\n((?:.*\n)*?)```$", flags=re.MULTILINE)
ANY_COMMAND = re.compile(r"(\w+=\S+ )*[a-z.][\w./-]*( |$)")  # of a block; a line of mathematics begins otherwise
KNOWN_COMMAND = re.compile(r"(holdfast|python|make|pip|pytest) \S|\.ci/run$")  # of a sentence
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?(e[+-]\d+)?")


def blocks(text: str) -> str:
    """All Python blocks of a page, one after another."""
    return "\n".join(code for language, code in FENCE.findall(text) if language == "python")


def shown(text: str) -> list[str]:
    """What the page says that its Python blocks print."""
    return SHOWN.findall(text)


@dataclass(frozen=True)
class Command:
    """A command that some page names, and what the page says that it prints."""

    line: str
    output: str = ""

    @property
    def program(self) -> str:
        return re.sub(r"^(\w+=\S+ )+", "", self.line).split()[0]


def commands(text: str) -> list[Command]:
    """Every command of a page: in its blocks, in indented lines, and in the middle of a sentence."""
    found = [Command(line, output) for line, output in [*PRINTED.findall(text), *SESSION.findall(text)]]
    prose = FENCE.sub("", text)
    indented = "\n".join(line.strip() for line in prose.split("\n") if line.startswith("    ")).replace("\\\n", "")
    console = "\n".join(code for language, code in FENCE.findall(text) if language == "sh").replace("\\\n", "")
    lines = [re.sub(r"\s+#.*", "", line).strip() for line in f"{indented}\n{console}".split("\n")]
    inline = re.findall(r"`([^`\n]+)`", prose)
    lines = [line for line in lines if ANY_COMMAND.match(line)] + [line for line in inline if KNOWN_COMMAND.match(line)]
    return found + [Command(line) for line in lines]


def sentences(output: str) -> list[str]:
    """The lines of an output that every machine prints: without the rows of a table, which depend on its figures."""
    return [plain(line) for line in output.splitlines() if not re.match(r"\d+ {2}", line)]


def plain(text: str) -> str:
    """The words of an output: no figures, which another machine may round otherwise, and no line breaks."""
    return " ".join(NUMBER.sub("#", text).split())
