"""A schema that was read off a table, with the evidence for every conclusion: a file to look over."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from holdfast.tabular.findings import Column, Finding, leak_finding
from holdfast.tabular.inference import STAYS, infer
from holdfast.tabular.pairs import as_line, as_toml
from holdfast.tabular.schema import Schema
from holdfast.utils.messages import printable

LEFT_OUT = ("key", "text", "date", "empty")  # about columns that are no features
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
Lines that begin with # are comments. Those that propose a setting or a relation count when the # is taken away.
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
        """Why features start as mutable=False."""
        return tuple(finding for finding in self.findings if finding.kind in STAYS)

    @property
    def proposed(self) -> tuple[Finding, ...]:
        """What a person should decide: settings and relations that are comments in the file."""
        return tuple(finding for finding in self.findings if finding.proposal)

    @property
    def asked(self) -> tuple[Finding, ...]:
        """Questions that the file has no setting for: what values stand for that lie apart from all others."""
        return tuple(finding for finding in self.findings if finding.kind == "gap" and "?" in finding.sentence)

    def to_toml(self, guide: bool = False) -> str:
        """The schema's file, with every finding as a comment above what it is about. `Schema.load` reads it.

        With a ``guide``, it begins with what the settings mean.
        """
        alone = {name: [f for f in self.findings if f.columns == (name,)] for name in self.schema.names}
        placed = {id(finding) for findings in alone.values() for finding in findings}
        parts = [_comments(["Look this over: no table says what a person can change."])]
        parts += [_as_comment(GUIDE)] if guide else []
        parts += [_comments([f.sentence]) for f in self.findings if id(f) not in placed and len(f.columns) == 1]
        values = self.schema.to_dict()
        parts.append(_settings({key: values[key] for key in ("label", "classes")}))
        for name, item in zip(self.schema.names, values["features"], strict=True):
            notes = _comments([finding.sentence for finding in alone[name]])
            proposals = "".join(f"# {finding.proposal}\n" for finding in alone[name] if finding.proposal)
            parts.append(f"{notes}[[features]]\n{_settings(item)}{proposals}")
        active = {relation.columns: relation for relation in self.schema.relations}
        for finding in self.findings:
            if len(finding.columns) > 1:
                own = active.get(finding.columns) if not finding.proposal else None
                text = "" if own is None else as_toml(own) + "\n"
                parts.append(_comments([finding.sentence]) + _commented(finding.proposal) + text)
        return "\n".join(parts)

    def __str__(self) -> str:
        return "\n".join([str(self.schema), *(f"- {finding.sentence}" for finding in self.findings)])


def inspect(table: pd.DataFrame, label: str) -> Inspection:
    """Read a schema off a table, and say what was found: keys, dates, weights, leaks, codes, gaps, relations.

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
        >>> [(finding.columns[0], finding.proposal) for finding in inspection.proposed]
        [('status_and_sex', 'mutable = false'), ('age', 'direction = "rise"')]
    """
    found = infer(table, label)
    return Inspection(Schema(found.features, label, found.classes, found.relations), found.findings)


def leaks(table: pd.DataFrame, schema: Schema) -> tuple[str, ...]:
    """The features that nobody can change and that alone give the label away: nothing to tell a person about."""
    if schema.label not in table:
        return ()
    label = pd.factorize(table[schema.label])[0].astype(np.int64)
    fixed = [feature for feature in schema.features if not feature.mutable]
    columns = [(Column(feature.name, table[feature.name], label), feature.is_numeric) for feature in fixed]
    return tuple(column.name for column, is_number in columns if leak_finding(column, is_number) is not None)


def _settings(values: dict[str, Any]) -> str:
    """A line for each setting, if it is not too long for one."""
    lines = [as_line(key, value) for key, value in values.items()]
    return "".join(
        f"{line}\n" if len(line) <= 120 else tomli_w.dumps({key: value})
        for line, (key, value) in zip(lines, values.items(), strict=True)
    )


def _comments(sentences: Iterable[str]) -> str:
    """Each sentence as comment lines; a new line in a name must not end the comment."""
    lines = []
    for sentence in sentences:
        one = printable(" ".join(sentence.split()))
        lines += textwrap.wrap(one, 117, break_long_words=False, break_on_hyphens=False) or [""]
    return "".join(f"# {line}\n" for line in lines)


def _as_comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())


def _commented(text: str) -> str:
    return "".join(f"#   {printable(line)}\n" for line in text.splitlines())
