"""The whole package once, on the German Credit data that ships with holdfast."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import torch
from rich.console import Group
from rich.text import Text
from torch import Tensor

from holdfast import datasets
from holdfast.auditing.audit import Audit, audit
from holdfast.datasets.prepared import prepare
from holdfast.explaining.advice import Advice
from holdfast.explaining.explainer import Explainer
from holdfast.explaining.roles import Sizes
from holdfast.families.changes import leave_one_out, seeds
from holdfast.families.family import Family
from holdfast.families.recipe import PAPER_RECIPES, Retraining
from holdfast.families.training import train
from holdfast.guarantees.promises import Promise
from holdfast.models.model import Model, predict
from holdfast.paper.printed import printed
from holdfast.reporting.html.page import report_text
from holdfast.reporting.letters.letter import letter
from holdfast.reporting.story import Story, tell
from holdfast.reporting.tables import method_table, story_text
from holdfast.search.counterfactuals import Counterfactuals, Method, other_class
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.methods.pgd import PGD
from holdfast.search.stabilisers.sns import SNS
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space
from holdfast.tabular.wishes import Wish
from holdfast.utils.files import all_or_none, write_text
from holdfast.utils.spreadsheets import as_csv

CARD = datasets.card("german")

# The paper's largest ε for German, and its rule for SNS's ball: 0.8 of that (Appendix, table of settings).
FREE_RADIUS = 3.0
# Changing one category of the standardised data moves a person by 2 to 15, so what is possible lies further away.
SCHEMA_RADIUS = 10.0
SNS_SHARE = 0.8
RATE = 0.05  # that the promised advice is invalidated at most, on average
REHEARSED, FEWEST_SELECTING = 32, 20  # networks; fewer than 19 could not promise that rate
CAUTIONS = (0.0, 0.2, 0.45, 0.7, 1.0)  # that may be chosen
GROUPS = ("sex", "age")  # of applicants, that the report compares
LEAST_AMOUNT = 0.75  # of the amount that an applicant asks for: with less they cannot do what they want to

SPACES = """\
Advice for those who were turned down, in the schema space, what a person can do: categories stay categories, age and \
sex do not change, and people like that exist. Nobody borrows less than three quarters of what they need, nor repays \
it more than twice as fast. min-l1 is the cheapest advice that the deployed model accepts; promised advice asked \
retrained models before it was given. Costs are means over the people found.
"""

# What a bank would say in its letter; the bank is made up.
LETTER = {
    "bank": "Example Bank\nMain Street 1\n10115 Berlin",
    "applicant": "Alex Example\nSide Street 2\n10117 Berlin",
    "decision": "We declined your application for a loan.",
    "good_until": "three months after the date of this letter",
    "contact": "the credit desk of Example Bank",
    "authority": "the authority of the state that the bank is in",
}

# Invalidation in the paper's tables, to show beside ours: by method and kind of change.
CHANGES = {"iv_seeds": "seeds", "iv_loo": "leave-one-out"}
PAPER = {
    (str(line["method"]), CHANGES[str(line["quantity"])]): float(line["value"])
    for line in printed().query("dataset == @CARD.name and quantity in @CHANGES").to_dict("records")
}


@dataclass(frozen=True)
class Demo:
    rows: list[dict[str, Any]]  # one per space, method and kind of change
    counterfactuals: pd.DataFrame  # in the schema space and in the table's units
    story: Story | None  # None when no applicant was turned down and helped by both methods
    accuracy: float  # of the deployed network, on the rows explained
    accuracy_retrained: tuple[float, float]  # least and greatest
    members: int  # retrained networks
    advice: Advice  # promised to those of the applicants who were turned down, in the schema space

    @property
    def promise(self) -> Promise | None:
        """What is promised of the advice, or why nothing is; None where nobody was turned down."""
        return self.advice.promise

    def save(self, folder: str | Path, command: str | None = None) -> tuple[Path, ...]:
        """counterfactuals.csv, results.json, report.html, and letter.html where there is a story: all of them, or none.

        The report names the ``command`` that makes it again, where one did.
        """
        folder, advice = Path(folder), replace(self.advice, decided={**self.advice.decided, "command": command})
        texts = {
            "counterfactuals.csv": as_csv(self.counterfactuals, index=False),
            "results.json": json.dumps(self.rows, indent=2) + "\n",
            "report.html": report_text(
                advice, groups=GROUPS, title=f"{CARD.title}: advice for {len(advice)} applicants"
            ),
        }
        if self.story is not None:
            texts["letter.html"] = letter(advice, self.story.person, fields=LETTER).html
        with all_or_none(folder) as parts:
            for name, text in texts.items():
                write_text(parts / name, text)
        return tuple(folder / name for name in texts)


def demo(
    *,
    rows: int | None = None,
    members: int = 100,
    seed: int = 0,
    workers: int | None = None,
    progress: bool = False,
) -> Demo:
    """Train, retrain `members` times per kind of change, find counterfactuals for `rows` test rows, audit them.

    For those who were turned down, also look for advice of which new seeds invalidate at most RATE on average.
    """
    german = prepare(CARD.name)
    asked, encoding = german.test, german.encoding
    if rows is not None and not 1 <= rows <= len(asked):
        raise ValueError(f"rows is {rows}; the test split has {len(asked)}: choose from 1 to {len(asked)}")
    asked = asked.iloc[:rows]
    x, y = german.rows
    deployed, family, front_door = _networks(x, y, members, seed, workers, progress)

    question, space = encoding.encode(asked), encoding.space_for(_wishes(asked))
    free = _explain("pgd", PGD(radius=FREE_RADIUS), deployed, question, Space.free(x), FREE_RADIUS, family)
    possible = _explain("min-l1", MinCost(norm=1), deployed, question, space, SCHEMA_RADIUS, family)
    refused = torch.nonzero(predict(deployed, question) != encoding.schema.classes.index("good")).flatten()
    explainer = Explainer(
        deployed,
        german.train,
        want="good",
        schema=german.schema,
        scaling=encoding.scaling,
        retrain=front_door,
        sizes=Sizes(REHEARSED, _selecting(members), members),
        workers=workers,
        progress=progress,
    )
    people = asked.assign(sex=[status.partition(",")[0] for status in asked["status_and_sex"]])
    told: dict[str, Any] = {"promise": RATE, "parameter_values": CAUTIONS, "wishes": _wishes(people)}
    advice, seconds = _timed(lambda: explainer.explain(people, **told))
    advice = replace(advice, decided={**advice.decided, "model_is_ours": True})
    promised = None if advice.promise is None else advice.promise.counterfactuals
    if promised is not None:
        everybody = _for_everybody(promised, refused, next(iter(possible.values()))[0].counterfactuals)
        possible["promised"] = audit(everybody, family), seconds
    audits = {name: found for name, (found, _) in possible.items()}
    right = (family.predict(question) == encoding.labels(asked)).double().mean(1)
    return Demo(
        rows=_rows(_among(possible, refused), "schema") + _rows(free, "free"),
        counterfactuals=_table(audits, asked, encoding),
        story=_story(audits, asked, encoding),
        accuracy=float((predict(deployed, question) == encoding.labels(asked)).double().mean()),
        accuracy_retrained=(float(right.min()), float(right.max())),
        members=len(family),
        advice=advice,
    )


def demo_text(result: Demo) -> Group:
    """What the demo found: what a person can do, one applicant's story, and the table in the paper's space."""
    known, asked = CARD.split[0], len(result.advice)
    low, high = result.accuracy_retrained
    opening = Text(CARD.title, style="bold").append(
        f": a network trained on {known} applicants is right for {result.accuracy:.0%} of {asked} others; "
        f"{result.members} retrained networks are right for {low:.0%} to {high:.0%} of them.\n",
        style="",
    )
    tables = {space: [row for row in result.rows if row["space"] == space] for space in ("schema", "free")}
    possible = method_table(tables["schema"], title="What a person can do: how often a retrained model invalidates it")
    papers = method_table(
        tables["free"], PAPER, title="The paper's setting: every column may take any value in its range"
    )
    spaces = Text(SPACES, style="dim")
    if result.story is None or result.promise is None:
        nobody = Text("No applicant who was turned down is helped by all; try more --rows.\n")
        return Group(opening, possible, spaces, nobody, papers)
    story = story_text(result.story, "the middle one by how well the cheapest advice holds")
    return Group(opening, possible, spaces, story, Text(f"{result.promise.statement}\n", style="dim"), papers)


def _selecting(members: int) -> int:
    """How many networks choose how careful the promised advice is."""
    return max(members, FEWEST_SELECTING)


def _networks(
    x: Tensor, y: Tensor, members: int, seed: int, workers: int | None, progress: bool
) -> tuple[Model, Family, Family]:
    """The deployed network, those that audit, and those of the front door: the first rehearse, the next select, and
    the last audit. No two share a seed.

    The front door gets new seeds only: of each kind of change it needs models to rehearse, to select and to audit,
    and of leave-one-out there are some to audit.
    """
    base = Retraining(init_seed=seed, order_seed=seed)
    audits = seeds(members, start=seed + 1) + leave_one_out(members, len(x), base=base)
    others = seeds(REHEARSED + _selecting(members), start=seed + 1 + members)
    recipe = PAPER_RECIPES[CARD.name]
    deployed = train(x, y, recipe, [base])[0]
    family = train(x, y, recipe, audits + others, workers=workers, progress=progress)
    return deployed, family[: len(audits)], family.chosen([*range(len(audits), len(family)), *range(members)])


def _wishes(asked: pd.DataFrame) -> list[Wish]:
    """What the applicants need, or else the advice would be to borrow next to nothing for a short time."""
    return [
        Wish(ranges={"credit_amount": (LEAST_AMOUNT * amount, amount), "duration_months": (months / 2, 2 * months)})
        for amount, months in zip(asked["credit_amount"], asked["duration_months"], strict=True)
    ]


Audited = dict[str, tuple[Audit, float]]  # method -> what it gave and the seconds it took


def _explain(
    name: str, search: Method, model: Model, question: Tensor, space: Space, radius: float, family: Family
) -> Audited:
    """What a search finds, and what SNS makes of it."""
    target = other_class(model, question)
    found, seconds = _timed(lambda: search(model, question, target, space))
    stable, extra = _timed(lambda: SNS(radius=SNS_SHARE * radius)(model, found, space))
    return {name: (audit(found, family), seconds), f"{name}+sns": (audit(stable, family), seconds + extra)}


def _among(audited: Audited, rows: Tensor) -> Audited:
    """The same for some rows; where there are none, for all of them."""
    if not len(rows):
        return audited
    return {method: (found.of_rows(rows), seconds) for method, (found, seconds) in audited.items()}


def _for_everybody(some: Counterfactuals, rows: Tensor, everybody: Counterfactuals) -> Counterfactuals:
    """The answers for some rows among all rows; the others have none."""
    parts: dict[str, Any] = {"point": everybody.origin.clone(), "found": torch.zeros_like(everybody.found)}
    if everybody.unlikeness is not None:
        parts["unlikeness"] = everybody.unlikeness[:, :1].repeat(1, 2)
        parts["implausible"] = torch.zeros_like(everybody.found)
    for name, value in parts.items():
        value[rows] = getattr(some, name)
    return replace(everybody, **parts, seen=some.seen)


Result = TypeVar("Result")


def _timed(search: Callable[[], Result]) -> tuple[Result, float]:
    start = time.perf_counter()
    return search(), time.perf_counter() - start


def _rows(audited: Audited, space: str) -> list[dict[str, Any]]:
    return [
        row
        for method, (found, seconds) in audited.items()
        for row in found.rows(dataset=CARD.name, method=method, space=space, seconds=seconds)
    ]


def _table(audits: dict[str, Audit], asked: pd.DataFrame, encoding: Encoding) -> pd.DataFrame:
    """For every applicant one row as they are ("now") and one per method, in the table's own units."""
    names = list(encoding.schema.names)
    now = asked[names].reset_index(drop=True).assign(applicant=asked.index, method="now")
    frames = [now] + [_method_frame(found, asked, encoding, method) for method, found in audits.items()]
    frame = pd.concat(frames, ignore_index=True).sort_values("applicant", kind="stable")
    return frame[["applicant", "method", "wanted", "found", "held", "members", "cost_l1", "cost_l2", *names]]


def _method_frame(found: Audit, asked: pd.DataFrame, encoding: Encoding, method: str) -> pd.DataFrame:
    points = found.counterfactuals
    held = pd.array((found.predictions == points.target).sum(0).tolist(), dtype="Int64")
    held[~points.found.numpy()] = pd.NA
    return points.to_frame(encoding, asked).assign(
        applicant=asked.index,
        method=method,
        wanted=[encoding.schema.classes[target] for target in points.target.tolist()],
        held=held,
        members=pd.array([len(found.kinds)] * len(points), dtype="Int64"),
        cost_l1=points.cost(1).double().round(decimals=6).tolist(),
        cost_l2=points.cost(2).double().round(decimals=6).tolist(),
    )


def _story(audits: dict[str, Audit], asked: pd.DataFrame, encoding: Encoding) -> Story | None:
    """Among the applicants who were turned down and whom every method could help, the middle one by how well the
    first method's advice holds: neither a lucky nor an unlucky case. Nor an unusual one, if there are others."""
    good = encoding.schema.classes.index("good")
    first = next(iter(audits.values()))
    helped = torch.stack([found.counterfactuals.found for found in audits.values()]).all(0)
    helped &= first.counterfactuals.target == good
    rows = sorted(torch.nonzero(helped).flatten().tolist(), key=lambda row: first.per_row[row])
    if not rows:
        return None
    usual = [row for row in rows if not first.counterfactuals.unusual[row]] or rows
    row = usual[len(usual) // 2]
    return tell(audits, row, rows, asked.index[row], encoding)
