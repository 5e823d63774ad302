"""The advice for a table of people: who can do what, what it costs, and how many retrained models accept it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.auditing.audit import Audit
from holdfast.auditing.intervals import upper_limit
from holdfast.explaining.frames import as_it_came
from holdfast.explaining.person import Change, PersonAdvice, PersonPlan, changes_of
from holdfast.explaining.searching import Answers
from holdfast.explaining.wanted import Wanted
from holdfast.guarantees.promises import Promise
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.wishes import Wish
from holdfast.utils.messages import plain, some

GIVEN, NOT_DURABLE, ALREADY, NOTHING = "plan", "not durable", "has the class", "nothing found"
STATUS = (GIVEN, NOT_DURABLE, ALREADY, NOTHING)


@dataclass(frozen=True, eq=False)
class Audited:
    """Plans, and what the models that chose nothing say of them."""

    answers: Answers
    audit: Audit | None = None

    def __len__(self) -> int:
        return len(self.answers)

    @cached_property
    def held(self) -> NDArray[np.int64] | None:
        """How many of the audit models accept each plan: (m,)."""
        if self.audit is None:
            return None
        accepted: NDArray[np.int64] = (self.audit.predictions == self.audit.counterfactuals.target).sum(0).cpu().numpy()
        return accepted

    @cached_property
    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """The share of the audit models that accept each plan, and its 95 % limits: (m,) each; NaN where none is."""
        nothing = np.full(len(self), np.nan)
        if self.audit is None:
            return nothing, nothing, nothing
        low, high = self.audit.per_row_interval()
        return 1 - self.audit.per_row, 1 - high, 1 - low


@dataclass(frozen=True, eq=False, repr=False)
class Advice:
    """What `Explainer.explain` answers: the plans of each person, and how well they hold.

    - `table()`: one row per change: id, plan, feature, now, then
    - `wide()`: one row per plan, with every feature, and one for everybody without a plan
    - `of(label)`: what one person is told, in words
    - `status`: plan, not durable, has the class, or nothing found: by label
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
        apart: the best there is for people whose plans do not hold as was asked
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

    Paper: not in [Black et al. 2022](https://arxiv.org/abs/2110.03109), which gives points of the encoded space; one
    row per person that is explained, found or not, is the counterfactual of Definition 1 (Section 2).
    """

    people: pd.DataFrame
    encoding: Encoding
    goal: Wanted
    now: tuple[str, ...]
    wanted: tuple[str, ...]
    given: Audited
    apart: Audited
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
        return self.given.answers.counterfactuals

    @property
    def audit(self) -> Audit | None:
        """What the models that chose nothing say of the plans; None where there are no such models."""
        return self.given.audit

    @cached_property
    def status(self) -> pd.Series[Any]:
        """What became of each person, by label: one of STATUS."""
        told = np.full(len(self), NOTHING, dtype=object)
        already = [reason is not None and now == wanted for reason, now, wanted in self._each()]
        told[np.array(already, dtype=bool)] = ALREADY
        told[self.apart.answers.place] = NOT_DURABLE
        told[self.given.answers.place] = GIVEN
        return pd.Series(told, index=self.people.index, name="status")

    def _each(self) -> Iterable[tuple[str | None, str, str]]:
        return zip(self.why_not, self.now, self.wanted, strict=True)

    # ---- as tables ----

    def table(self) -> Any:
        """What each person changes by each of their plans: id, plan, feature, now, then."""
        return as_it_came(self._changes(self.given), self.polars)

    def wide(self) -> Any:
        """One row for each plan: id, plan, found, cost, hold, low, high, why_not, status, then every feature in
        the table's units. Whoever has no plan has one row, with plan 0 and their own values."""
        left = np.setdiff1d(np.arange(len(self)), self.given.answers.place)
        nothing = np.full(len(left), np.nan)
        about = _below(
            self._about(self.given).assign(why_not=None, status=GIVEN),
            pd.DataFrame(
                {"id": self.people.index[left], "plan": 0, "found": False, "cost": nothing, "hold": nothing}
                | {"low": nothing, "high": nothing, "why_not": [self.why_not[place] for place in left]}
                | {"status": self.status.to_numpy()[left]}
            ),
        )
        features = _below(self._features(self.given), self.people[list(self.encoding.schema.names)].iloc[left])
        order = np.lexsort((about["plan"], np.concatenate([self.given.answers.place, left])))
        return as_it_came(self._beside(about.iloc[order], features.iloc[order]), self.polars)

    def not_durable(self) -> Any:
        """The columns of `wide` but why_not and status, for people whose plans do not hold as was asked: the best that
        was found, which is not advised."""
        return as_it_came(self._beside(self._about(self.apart), self._features(self.apart)), self.polars)

    @property
    def id(self) -> str:
        """The name of the column that says whose a row is."""
        return str(self.people.index.name or "id")

    def _about(self, part: Audited) -> pd.DataFrame:
        """What is known of each plan."""
        own, (hold, low, high) = part.answers, part.limits
        cost = own.counterfactuals.cost(self.norm).double().cpu().numpy()
        told = {"id": self.people.index[own.place], "plan": own.plan, "found": part is self.given, "cost": cost}
        return pd.DataFrame(told | {"hold": hold, "low": low, "high": high})

    def _features(self, part: Audited) -> pd.DataFrame:
        """The columns of the schema after each plan, in the table's units."""
        frame = part.answers.counterfactuals.to_frame(self.encoding, self.people.iloc[part.answers.place])
        return frame[list(self.encoding.schema.names)]

    def _beside(self, about: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
        """Both as one table; a name that a feature has already gets an underscore."""
        called = {name: _free(self.id if name == "id" else str(name), set(features)) for name in about}
        return pd.concat([part.reset_index(drop=True) for part in (about.rename(columns=called), features)], axis=1)

    def _changes(self, part: Audited) -> pd.DataFrame:
        own = part.answers
        rows = [
            (plain(self.people.index[place]), int(plan), *change)
            for place, plan, changes in zip(own.place, own.plan, self._told(part), strict=True)
            for change in changes
        ]
        return pd.DataFrame(rows, columns=[self.id, "plan", "feature", "now", "then"])

    def _told(self, part: Audited) -> list[list[tuple[str, Any, Any]]]:
        """What each plan changes: name, now, then."""
        own, names = part.answers, self.encoding.schema.names
        people = self.people.iloc[own.place]
        after = own.counterfactuals.to_frame(self.encoding, people)
        columns = {name: (people[name].tolist(), after[name].tolist()) for name in names}
        told: list[list[tuple[str, Any, Any]]] = [[] for _ in range(len(own))]
        for row, place in np.argwhere(self._moved(own.counterfactuals)).tolist():
            now, then = (column[row] for column in columns[names[place]])
            told[row].append((names[place], plain(now), plain(then)))
        return told

    def _moved(self, answer: Counterfactuals) -> NDArray[np.bool_]:
        """Which features each plan changes: (m, features)."""
        differs = (answer.point != answer.origin).cpu().numpy()
        return np.stack([differs[:, place].any(1) for _, place in self.encoding.places], axis=1)

    @cached_property
    def changes_given(self) -> list[tuple[Change, ...]]:
        """What each plan changes, those that only follow others marked: (m,)."""
        return self._marked(self.given)

    @cached_property
    def changes_apart(self) -> list[tuple[Change, ...]]:
        """The same for the best there is for people whose plans do not hold as was asked."""
        return self._marked(self.apart)

    def _marked(self, part: Audited) -> list[tuple[Change, ...]]:
        return [changes_of(changes, self.encoding.schema.relations) for changes in self._told(part)]

    # ---- in words ----

    def of(self, person: Hashable) -> PersonAdvice:
        """What one person is told, by the label of their row. Printing it shows the sentences."""
        places = np.flatnonzero(self.people.index == person)
        if not len(places):
            raise KeyError(f"nobody is labelled {person!r}; the people are {some(self.people.index)}")
        place = int(places[0])
        return PersonAdvice(
            person,
            self.now[place],
            self.wanted[place],
            tuple(self._plans(self.given, place)),
            tuple(self._plans(self.apart, place)),
            self.why_not[place],
            self.wishes[place] if self.wishes else None,
        )

    def _plans(self, part: Audited, place: int) -> Iterable[PersonPlan]:
        told = self.changes_given if part is self.given else self.changes_apart
        costs = part.answers.counterfactuals.cost(self.norm)
        _, low, high = part.limits
        for row in np.flatnonzero(part.answers.place == place):
            changes = told[row]
            plan, cost = int(part.answers.plan[row]), float(costs[row])
            if part.held is None or part.audit is None:
                yield PersonPlan(plan, changes, cost)
            else:
                held, members = int(part.held[row]), len(part.audit.kinds)
                yield PersonPlan(plan, changes, cost, held, members, float(low[row]), float(high[row]))

    def summary(self) -> dict[str, Any]:
        """What was decided and why, how many people have a plan, and how well the plans hold: all that JSON can say."""
        counts = {status: int((self.status == status).sum()) for status in STATUS}
        return {
            "people": len(self),
            "with_a_plan": counts[GIVEN],
            "plans": len(self.given),
            "not_durable": counts[NOT_DURABLE],
            "have_the_class": counts[ALREADY],
            "nothing_found": counts[NOTHING],
            "mean_cost": _mean(self.counterfactuals.cost(self.norm).double().cpu().numpy()),
            "audited": self._audited(),
            "decided": dict(self.decided),
            "excluded_from_audit": dict(self.excluded_from_audit),
            **({} if self.promise is None else {"promise": self.promise.summary()}),
        }

    def _audited(self) -> list[dict[str, Any]]:
        """The rate of all plans together, by kind of change."""
        if self.audit is None or not len(self.given):
            return []
        return [
            {"kind": kind, "models": len(part.kinds), "plans": len(self.given), "invalidated": part.rate,
             "at_most": upper_limit(part.per_member), "confidence": 0.95}
            for kind, part in self.audit.by_kind.items()
        ]  # fmt: skip

    def save(self, folder: str | Path) -> list[Path]:
        """advice and changes (.csv and .parquet), not_durable.csv, problems.csv, schema.toml and summary.json."""
        from holdfast.explaining.advice_files import save_advice

        return save_advice(self, folder)

    def _repr_html_(self) -> str:
        from holdfast.explaining.advice_shown import as_html

        return as_html(self)

    def __repr__(self) -> str:
        counts = self.status.value_counts()
        parts = [
            f"{counts.get(GIVEN, 0)} with a plan ({len(self.given)} {'plan' if len(self.given) == 1 else 'plans'})",
            *(f"{counts[name]} {words}" for name, words in _WORDS.items() if counts.get(name, 0)),
        ]
        lines = [f"Advice for {len(self)} people: {', '.join(parts)}", f"  method: {self.decided['method']}"]
        if self.promise is not None:
            lines.append(f"  {self.promise.statement}")
        for one in self._audited():
            lines.append(
                f"  {one['models']} retrained models of kind '{one['kind']}' that chose nothing invalidate "
                f"{one['invalidated']:.1%} of the plans on average, at most {one['at_most']:.1%} at 95 % confidence"
            )
        if not self.decided.get("retrained"):
            lines.append("  no retrained models: whether the plans hold is not known")
        if self.decided.get("warnings"):
            lines += [f"  {warning}" for warning in self.decided["warnings"]]
        return "\n".join([*lines, "  advice.table(), advice.wide(), advice.of(label) say more"])


_WORDS = {
    NOT_DURABLE: "whose plans do not hold as asked (advice.not_durable())",
    ALREADY: "who have the class already",
    NOTHING: "without any",
}


def _below(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """One table below the other, each column as the type of all its values."""
    return pd.DataFrame(
        {
            name: pd.concat([part[name].astype(object) for part in (first, second)], ignore_index=True).infer_objects()
            for name in first.columns
        }
    )


def _free(name: str, taken: set[Any]) -> str:
    while name in taken:
        name += "_"
    return name


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None
