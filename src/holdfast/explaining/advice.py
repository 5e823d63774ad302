"""The advice for a table of people: who can do what, what it costs, and how many retrained models accept it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from holdfast.auditing.audit import Audit
from holdfast.explaining.advice_view import AdviceView, as_html, view_of
from holdfast.explaining.frames import as_it_came
from holdfast.explaining.person import ALREADY, GIVEN, NOT_DURABLE, NOTHING, PersonAdvice, PersonPlan
from holdfast.explaining.selection import Answers
from holdfast.explaining.wanted import Wanted
from holdfast.guarantees.promises import Promise
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.wishes import Wish
from holdfast.utils.messages import some

ABOUT = ["id", "plan", "found", "cost", "hold", "low", "high"]  # the columns that say what is known of a plan


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """What `Explainer.explain` answers: the plans of each person, and how well they hold.

    - `table()`: one row per change: id, plan, feature, now, then
    - `wide()`: one row per plan, with every feature, and one for everybody without a plan
    - `of(label)`: what one person is told, in words
    - `status`: plan, not durable, has the class, or nothing found: by label
    - `view`: the facts and words that every rendering shows
    - `not_durable()`: the best that was found for people whose plans do not hold as was asked; it is not advised
    - `summary()`: counts, rates, and what was decided and why
    - `audit`: the `Audit` of the plans by the audit models
    - `save(folder)`: all of it as files

    A person has one plan or more, or none, and then ``why_not`` says why. Nobody counts as found who has the class
    already. The columns hold, low and high come from retrained models that had no say in the advice; they are empty
    where there are no such models.

    Attributes:
        people: as they were given; the index has their labels
        encoding: the table's encoding, with the schema that the plans keep to
        goal: what was asked for
        now: (n,) the class that the deployed model gives each person
        wanted: (n,) the class that each person wants
        given: the plans
        not_durable_plans: the best there is for people whose plans do not hold as was asked
        why_not: (n,) None for people who have a plan
        decided: what was decided, and why
        excluded_from_audit: the retrained models that an audit of this advice must pass over
        norm: that costs are in
        promise: the `Promise`, where one was asked for
        problems: what is doubtful about single rows of the people
        polars: tables go out as they came in
        wishes: (n,) what each person asked for themselves; () where nobody did

    Examples:
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> import holdfast as hf
        >>> table = pd.DataFrame({"income": range(10, 90, 2), "debt": [8, 2, 5, 9] * 10})
        >>> table["loan"] = ["yes" if row.income > 6 * row.debt else "no" for row in table.itertuples()]
        >>> model = LogisticRegression().fit(table[["income", "debt"]], table["loan"])
        >>> people = pd.DataFrame({"income": [20, 24], "debt": [9, 8]}, index=["Ada", "Bo"])
        >>> advice = hf.Explainer(model, table, label="loan", want="yes").explain(people)
        >>> advice.status.to_dict()
        {'Ada': 'plan', 'Bo': 'plan'}
        >>> advice.table()[["id", "feature", "now"]].to_dict("records")
        [{'id': 'Ada', 'feature': 'income', 'now': 20}, {'id': 'Bo', 'feature': 'income', 'now': 24}]
        >>> print(advice.of("Ada"))
        Ada: the deployed model says 'no'; wanted is 'yes'.
          Plan 1, at a cost of ...:
            income: 20 → ...
    """

    people: pd.DataFrame
    encoding: Encoding
    goal: Wanted
    now: tuple[str, ...]
    wanted: tuple[str, ...]
    given: Answers
    not_durable_plans: Answers
    why_not: tuple[str | None, ...]
    decided: Mapping[str, Any]
    excluded_from_audit: Mapping[str, Any] = field(default_factory=lambda: {"kinds": [], "taken": {}, "members": []})
    norm: int = 1
    promise: Promise | None = None
    problems: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["row", "problem", "detail"]))
    polars: bool = False
    wishes: tuple[Wish | None, ...] = ()

    # ---- who ----

    def __len__(self) -> int:
        return len(self.people)

    @property
    def counterfactuals(self) -> Counterfactuals:
        """One row per plan, labelled by person."""
        return self.given.counterfactuals

    @property
    def audit(self) -> Audit | None:
        """What the audit models say of the plans; None where there are no such models."""
        return self.given.audit

    @property
    def id(self) -> str:
        """The name of the column that says whose a row is."""
        return str(self.people.index.name or "id")

    @cached_property
    def view(self) -> AdviceView:
        """The facts and the words that every rendering shows."""
        return view_of(self)

    @cached_property
    def status(self) -> pd.Series[Any]:
        """What became of each person, by label: plan, not durable, has the class, or nothing found."""
        status = [person.status for person in self.view.people]
        return pd.Series(status, index=self.people.index, name="status", dtype=object)

    # ---- as tables ----

    def table(self) -> Any:
        """What each person changes by each of their plans: id, plan, feature, now, then."""
        rows = [
            (person.person, plan.plan, change.feature, change.before, change.after)
            for person in self.view.people
            for plan in person.plans
            for change in plan.changes
        ]
        return as_it_came(pd.DataFrame(rows, columns=[self.id, "plan", "feature", "now", "then"]), self.polars)

    def wide(self) -> Any:
        """One row for each plan: id, plan, found, cost, hold, low, high, why_not, status, then every feature in
        the table's units. Whoever has no plan has one row, with plan 0 and their own values."""
        plan_rows = [
            (row, person, plan) for row, person in enumerate(self.view.people) for plan in person.plans or (None,)
        ]
        rows = [
            (*_about(person, plan), person.why_not if plan is None else None, person.status)
            for _, person, plan in plan_rows
        ]
        features = self.people[list(self.encoding.schema.names)].iloc[[row for row, _, _ in plan_rows]].astype(object)
        features.iloc[[plan is not None for _, _, plan in plan_rows]] = self._features(self.given).to_numpy(
            dtype=object
        )
        about = pd.DataFrame(rows, columns=[*ABOUT, "why_not", "status"])
        return self._beside(about, features.infer_objects())

    def not_durable(self) -> Any:
        """The columns of `wide` but why_not and status, for people whose plans do not hold as was asked: the best that
        was found, which is not advised."""
        rows = [_about(person, plan) for person in self.view.people for plan in person.not_durable]
        about = pd.DataFrame(rows, columns=ABOUT).assign(found=False)
        return self._beside(about, self._features(self.not_durable_plans))

    def _features(self, part: Answers) -> pd.DataFrame:
        """The columns of the schema after each plan, in the table's units."""
        frame = part.counterfactuals.to_frame(self.encoding, self.people.iloc[part.place])
        return frame[list(self.encoding.schema.names)]

    def _beside(self, about: pd.DataFrame, features: pd.DataFrame) -> Any:
        """Both as one table of the user's kind; a name that a feature has already gets an underscore."""
        names = {name: _free(self.id if name == "id" else str(name), set(features)) for name in about}
        parts = [part.reset_index(drop=True) for part in (about.rename(columns=names), features)]
        return as_it_came(pd.concat(parts, axis=1), self.polars)

    # ---- in words ----

    def of(self, person: Hashable) -> PersonAdvice:
        """What one person is told, by the label of their row. Printing it shows the sentences."""
        rows = np.flatnonzero(self.people.index == person)
        if not len(rows):
            raise KeyError(f"nobody is labelled {person!r}; the people are {some(self.people.index)}")
        return self.view.people[int(rows[0])]

    def summary(self) -> dict[str, Any]:
        """What was decided and why, how many people have a plan, and how well the plans hold: all that JSON can say."""
        counts, costs = self.view.counts, self.counterfactuals.cost(self.norm).double()
        return {
            "people": len(self),
            "with_a_plan": counts[GIVEN],
            "plans": len(self.given),
            "not_durable": counts[NOT_DURABLE],
            "have_the_class": counts[ALREADY],
            "nothing_found": counts[NOTHING],
            "mean_cost": float(costs.mean()) if len(costs) else None,
            "audited": [
                {"kind": rate.kind, "models": rate.models, "plans": rate.plans, "invalidated": rate.rate,
                 "at_most": rate.at_most, "confidence": 0.95}
                for rate in self.view.rates
            ],
            "decided": dict(self.decided),
            "excluded_from_audit": dict(self.excluded_from_audit),
            **({} if self.promise is None else {"promise": self.promise.summary()}),
        }  # fmt: skip

    def save(self, folder: str | Path) -> list[Path]:
        """advice and changes (.csv and .parquet), not_durable.csv, problems.csv, people.jsonl, schema.toml and
        summary.json."""
        from holdfast.explaining.advice_files import save_advice

        return save_advice(self, folder)

    def _repr_html_(self) -> str:
        return as_html(self)

    def __repr__(self) -> str:
        view = self.view
        first = f"{view.title}: {', '.join(view.counted())}"
        return "\n  ".join([first, *view.sentences(), *view.warnings, f"{', '.join(METHODS)} say more"])


METHODS = ("advice.table()", "advice.wide()", "advice.not_durable()", "advice.of(label)")


def _about(person: PersonAdvice, plan: PersonPlan | None) -> tuple[Any, ...]:
    """What is known of a plan, or of there being none: the values of ABOUT."""
    if plan is None:
        return person.person, 0, False, np.nan, np.nan, np.nan, np.nan
    hold = np.nan if plan.held is None or plan.members is None else plan.held / plan.members
    return person.person, plan.plan, True, plan.cost, hold, plan.low, plan.high


def _free(name: str, taken: set[Any]) -> str:
    while name in taken:
        name += "_"
    return name
