"""A schema that was read off a table, with the evidence for every conclusion: a file to look over."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import pandas as pd
import tomli_w

from holdfast.tabular.findings import Column, Finding, leak_finding
from holdfast.tabular.inference import infer
from holdfast.tabular.relations import relation_to_dict
from holdfast.tabular.schema import Schema
from holdfast.utils.messages import printable

LEFT_OUT = ("key", "text", "date", "empty")  # kinds of findings about columns that are no features
GUIDE = """\
Look first at what nobody can choose, such as age, sex or where somebody was born.
What each setting of a feature means:
  mutable = false      nobody is told to change it
  direction = "rise"   people can only go up, or "fall": down; levels need their order
  lower, upper         the least and the largest number that anybody is told to move to
  ranges               the parts of the line that anybody is told to move to
  step = 500           numbers go in steps: 500, 1000, 1500, ...
  levels               what a column of text may hold; kind = "ordinal" where their order counts
  avoid                levels that some people have and nobody is told to move to
  difficulty = 2       a change is twice as hard as the same change of other features
  missing = true       the column may be empty
  phrase               what a letter calls a change: phrase = "shorten the loan from {now} to {then} months"
[[relations]] say what must stay true when several features change. At the end of the file, for example:
  [[relations]]
  kind = "ordered"                                  the first is never above the second
  columns = ["years_employed", "age"]
Lines that begin with # are comments.
"""
__all__ = ["Finding", "Inspection", "inspect"]


@dataclass(frozen=True)
class Inspection:
    """The schema of a table, and what was found on the way. `inspect` makes one.

    Attributes:
        schema: what is certain enough
        findings: what a person should know or decide, each with its evidence

    Examples:
        >>> import holdfast as hf
        >>> table, _ = hf.load("german")
        >>> inspection = hf.inspect(table, label="risk")
        >>> inspection.schema["savings"].avoid  # nobody is advised to move there
        ('unknown or none',)
        >>> [finding.kind for finding in inspection.about("savings")]
        ['unknown']
        >>> text = inspection.to_toml()  # a schema's file, findings as comments
        >>> print(text.splitlines()[0])
        # Look this over: no table says what a person can change.
    """

    schema: Schema
    findings: tuple[Finding, ...]

    def about(self, *names: str) -> tuple[Finding, ...]:
        """The findings about some columns."""
        return tuple(finding for finding in self.findings if set(names) & set(finding.columns))

    @property
    def left_out(self) -> tuple[Finding, ...]:
        """Why columns are no features: they name the rows, hold times or nothing."""
        return tuple(finding for finding in self.findings if finding.kind in LEFT_OUT)

    @property
    def fixed(self) -> tuple[Finding, ...]:
        """Why features start as mutable=False: they give the label away."""
        return tuple(finding for finding in self.findings if finding.kind == "leak")

    @property
    def asked(self) -> tuple[Finding, ...]:
        """Questions that only a person can answer: whether numbers are codes."""
        return tuple(finding for finding in self.findings if finding.kind == "code")

    def to_toml(self, guide: bool = False) -> str:
        """The schema's file, with every finding as a comment above what it is about. `Schema.load` reads it.

        With a ``guide``, it begins with what the settings mean.
        """
        values = self.schema.to_dict()
        parts = ["# Look this over: no table says what a person can change.\n"]
        parts += ["".join(f"# {line}\n" for line in GUIDE.splitlines())] if guide else []
        parts += [_comment(finding) for finding in self.left_out]
        parts.append(_settings({key: values[key] for key in ("label", "classes")}))
        for name, settings in zip(self.schema.names, values["features"], strict=True):
            comments = [_comment(finding) for finding in self.findings if finding.columns == (name,)]
            parts.append(f"{''.join(comments)}[[features]]\n{_settings(settings)}")
        for relation in self.schema.relations:
            comments = [_comment(finding) for finding in self.findings if finding.columns == relation.columns]
            parts.append(f"{''.join(comments)}[[relations]]\n{_settings(relation_to_dict(relation))}")
        return "\n".join(parts)

    def __str__(self) -> str:
        return "\n".join([str(self.schema), *(f"- {finding.sentence}" for finding in self.findings)])


def inspect(table: pd.DataFrame, label: str) -> Inspection:
    """Read a schema off a table, and say what was found: keys, dates, leaks, missing values, codes, and columns that
    determine one another.

    What is certain enough is taken into the schema, and what only a person can tell is a finding alone. Look it over:
    no table says what a person can change.

    Args:
        table: one row per person, with the label
        label: the column that holds the classes

    Examples:
        >>> import holdfast as hf
        >>> table, _ = hf.load("german")
        >>> inspection = hf.inspect(table, label="risk")
        >>> len(inspection.schema.features)
        20
        >>> [(finding.columns[0], finding.kind) for finding in inspection.findings]
        [('savings', 'unknown'), ('property', 'unknown')]
    """
    found = infer(table, label)
    return Inspection(Schema(found.features, label, found.classes, found.relations), found.findings)


def leaks(table: pd.DataFrame, schema: Schema) -> tuple[str, ...]:
    """The features that nobody can change and that alone give the label away: nothing to tell a person about."""
    if schema.label not in table:
        return ()
    fixed = [feature.name for feature in schema.features if not feature.mutable]
    return tuple(name for name in fixed if leak_finding(Column(name, table[name]), table[schema.label]) is not None)


def _settings(values: dict[str, Any]) -> str:
    """A line for each setting, if it is not too long for one."""
    lines = {key: f"{key} = {_inline(value)}\n" for key, value in values.items()}
    return "".join(line if len(line) <= 120 else tomli_w.dumps({key: values[key]}) for key, line in lines.items())


def _inline(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def _comment(finding: Finding) -> str:
    """As comment lines; a new line in a name must not end the comment."""
    sentence = printable(" ".join(finding.sentence.split()))
    lines = textwrap.wrap(sentence, 117, break_long_words=False, break_on_hyphens=False)
    return "".join(f"# {line}\n" for line in lines)
