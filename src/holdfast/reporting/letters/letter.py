"""`letter`: one person's advice as a letter that prints on one page."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from holdfast.explaining.advice import Advice
from holdfast.reporting.letters.cases import Case, case_of
from holdfast.reporting.letters.languages import one_line
from holdfast.reporting.letters.sentences import kept, words_of_plan
from holdfast.reporting.letters.templates import Template, template_of
from holdfast.utils.files import as_path, write_text
from holdfast.utils.messages import did_you_mean

WIDTH = 76  # of the lines of the text
SEVERAL = ";"  # between reasons in one cell
# From so many lines of text on, the page is set smaller, so that it stays one page: see letter.css.
DENSITIES = ((95, "close closer closest"), (70, "close closer"), (56, "close"))


@dataclass(frozen=True, repr=False)
class Letter:
    """A letter to one person, as text and as a page of HTML that needs nothing else.

    Whether it says what the law asks for is for the bank to decide: holdfast gives no legal advice.

    Examples:
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> import holdfast as hf
        >>> table = pd.DataFrame({"income": range(10, 90, 2), "debt": [8, 2, 5, 9] * 10})
        >>> table["loan"] = ["yes" if row.income > 6 * row.debt else "no" for row in table.itertuples()]
        >>> model = LogisticRegression().fit(table[["income", "debt"]], table["loan"])
        >>> people = pd.DataFrame({"income": [20, 24], "debt": [9, 8]}, index=["Ada", "Bo"])
        >>> schema = hf.Schema.infer(table, "loan").revise("debt", mutable=False)
        >>> advice = hf.Explainer(model, table, schema=schema, want="yes").explain(people)
        >>> names = ("bank", "applicant", "decision", "contact", "authority", "good_until")
        >>> letter = hf.letter(advice, "Ada", fields={name: f"[{name}]" for name in names})
        >>> letter.save("letter.html").name, letter.save("letter.txt").name
        ('letter.html', 'letter.txt')

    Paper: what such a statement should tell a person is in [Wachter et al. 2018](https://arxiv.org/abs/1711.00399).
    """

    person: Hashable
    language: str
    text: str
    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page (.html) or the text (.txt)."""
        path = as_path(path, "the letter's file, .html or .txt")
        texts = {".html": self.html, ".htm": self.html, ".txt": self.text}
        if path.suffix.lower() not in texts:
            raise ValueError(f"{path}: a letter is written as .html or .txt, not as {path.suffix or 'nothing'!r}")
        return write_text(path, texts[path.suffix.lower()])

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its look and that of the notebook stay apart."""
        style = "width: 100%; height: 60em; border: 1px solid #999; background: #fff"
        return f'<iframe title="The letter" style="{style}" srcdoc="{escape(self.html)}"></iframe>'


def letter(
    advice: Advice,
    person: Hashable,
    *,
    template: str | Path = "eu",
    language: str = "en",
    fields: Mapping[str, Any] | None = None,
    reasons: str | Iterable[str] | None = None,
) -> Letter:
    """One person's advice as a letter: what would have led to a different result, until when, and how sure that is.

    Up to three plans are told. Plans that do not hold as was asked are never told; then the letter says that there is
    none. holdfast gives no legal advice: have somebody who may do so check the letter before it is sent.

    Args:
        person: the label of their row; a KeyError for somebody unknown, a ValueError for who has the class already
        template: "eu" or "us" (Regulation B), or the folder of your own
        language: "en" or "de", or another that the template has; the schema's phrases speak it too
        fields: what only the bank knows: the error for a missing one says what to write
        reasons: the bank's reasons for the decision: texts, or the column of the people that has them, with ";"
            between several. holdfast does not know them: what could change the result is not why it was decided

    Examples:
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> import holdfast as hf
        >>> table = pd.DataFrame({"income": range(10, 90, 2), "debt": [8, 2, 5, 9] * 10})
        >>> table["loan"] = ["yes" if row.income > 6 * row.debt else "no" for row in table.itertuples()]
        >>> model = LogisticRegression().fit(table[["income", "debt"]], table["loan"])
        >>> people = pd.DataFrame({"income": [20, 24], "debt": [9, 8]}, index=["Ada", "Bo"])
        >>> schema = hf.Schema.infer(table, "loan").revise("debt", mutable=False)
        >>> advice = hf.Explainer(model, table, schema=schema, want="yes").explain(people)
        >>> names = ("bank", "applicant", "decision", "contact", "authority", "good_until")
        >>> letter = hf.letter(advice, "Ada", fields={name: f"[{name}]" for name in names})
        >>> "- Income: from 20 to" in letter.text, "[bank]" in letter.text
        (True, True)

    Paper: what such a statement should tell a person is in [Wachter et al. 2018](https://arxiv.org/abs/1711.00399).
    """
    if not isinstance(advice, Advice):
        raise TypeError(f"expected what Explainer.explain answers, got {type(advice).__name__}")
    case = case_of(advice.of(person), advice.encoding.schema, advice.decided)
    why = _reasons_in(advice, person, reasons) if isinstance(reasons, str) else reasons
    return letter_about(case, template, language, fields, why)


def letter_about(
    case: Case,
    template: str | Path | Template = "eu",
    language: str = "en",
    fields: Mapping[str, Any] | None = None,
    reasons: Iterable[str] | None = None,
) -> Letter:
    """The letter about a case, from wherever it comes."""
    kind = template if isinstance(template, Template) else template_of(template)
    words, why = kind.language(language), _listed(reasons)
    texts = kind.texts(fields, words, bool(why))
    inline = {name: _in_a_sentence(text) for name, text in texts.items()}
    values = {
        "language": language,
        "page": kind.page,
        "say": words.say,
        "say_with_fields": lambda key: words.say(key, **inline),  # a sentence with fields in it
        "has": words.words.__contains__,
        "fields": texts,
        "reasons": why,
        "plans": [words_of_plan(plan, number, case, words) for number, plan in enumerate(case.plans, start=1)],
        "kept": words.listed(kept(case, words)),
        "not_durable": bool(case.advice.not_durable),
        "sample": case.sample,
        "audited": case.audited and any(plan.members for plan in case.plans),
        "width": WIDTH,
    }
    text = _tidy(kind.render("letter.txt", values))
    return Letter(case.advice.person, language, text, kind.render("letter.html", {**values, "density": _density(text)}))


def _in_a_sentence(text: str) -> str:
    """The lines of a field one after another, without the stop that the sentence has itself."""
    return ", ".join(line.strip(" ,") for line in text.split("\n")).rstrip(".")


def _tidy(text: str) -> str:
    """The text without spaces at the ends of lines, and with at most one empty line in a row."""
    lines = [line.rstrip() for line in text.strip().split("\n")]
    return "\n".join(line for number, line in enumerate(lines) if line or lines[number - 1]) + "\n"


def _density(text: str) -> str:
    lines = sum(bool(line) for line in text.split("\n"))
    return next((name for least, name in DENSITIES if lines >= least), "")


def _reasons_in(advice: Advice, person: Hashable, column: str) -> list[str]:
    """The bank's reasons for one person, from a column of the people."""
    people = advice.people
    if column not in people:
        raise ValueError(
            f"the people have no column {column!r} with reasons{did_you_mean(column, people.columns)}; name one that "
            "they have, or give the reasons as a list of texts"
        )
    cell = people[column][people.index == person].iloc[0]
    several = cell.split(SEVERAL) if isinstance(cell, str) else cell
    found: list[str] = [text for text in several if text.strip()] if isinstance(several, (list, tuple)) else []
    if not found:
        raise ValueError(f"column {column!r} has no reasons for {person!r}; write them there, with ';' between several")
    return found


def _listed(reasons: Iterable[str] | None) -> list[str]:
    if isinstance(reasons, str) or not isinstance(reasons, Iterable | None):
        raise TypeError(f"reasons is {reasons!r}; give a list of texts")
    given = list(reasons or ())
    wrong = [reason for reason in given if not isinstance(reason, str)]
    if wrong:
        raise TypeError(f"reasons has {wrong[0]!r}; give texts that an applicant understands")
    found = [one_line(reason) for reason in given if reason.strip()]
    if given and not found:
        raise ValueError("reasons are all empty; write them, or leave reasons out")
    return found
