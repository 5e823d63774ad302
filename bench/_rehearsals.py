"""One cell of `bench/promise.py`: a dataset, a space, a norm, a kind of change and a deployed network; what each search
costs and how often it is invalidated, beside an oracle that has seen the networks that judge."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from holdfast import (
    SNS,
    Counterfactuals,
    Family,
    MinCost,
    Rehearsed,
    Retraining,
    Space,
    audit,
    other_class,
    seeds,
    train,
)
from holdfast.datasets.prepared import Prepared, prepare
from holdfast.families.changes import leave_one_out
from holdfast.families.entries import default_store
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.merged import merged
from holdfast.models.model import Model
from holdfast.paper.declared import RADII, SNS_SHARE
from holdfast.search.counterfactuals import Method
from holdfast.search.pipeline import Pipeline

# Rehearsals, calibration models and judges have seeds of their own; so have the deployed networks.
REHEARSED, CALIBRATED, JUDGES = 256, 500, 200
FIRST_JUDGE, FIRST_CALIBRATED = 1001, 2001
DEPLOYED = (0, 10_001, 10_002, 10_003, 10_004)
SPACES = ("free", "schema", "people")  # the paper's, what a person can do, and the same among people who could exist
SEARCHES = ((32, 0.0), (32, 0.2), (32, 0.45), (256, -0.01), (256, 0.0), (256, 0.1))  # members, caution
ACCEPTED = 0.99  # of the judges, for the oracle


@dataclass(frozen=True)
class Cell:
    dataset: str
    space: str
    norm: int
    change: str
    deployed: int  # its seed
    rows: int
    device: str = "cpu"
    members: tuple[int, int] = (REHEARSED, JUDGES)
    sns: bool = True
    searched: tuple[tuple[int, float], ...] = SEARCHES
    first_judge: int = FIRST_JUDGE  # its seed
    epochs: int | None = None  # those of the paper's recipe

    @cached_property
    def data(self) -> Prepared:
        return prepare(self.dataset)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...] | None:
        """Where there are more classes than two: the first, or any other."""
        classes = len(self.data.encoding.schema.classes)
        return ((0,), tuple(range(1, classes))) if classes > 2 else None

    @cached_property
    def model(self) -> Model:
        network = self._trained([self._base])[0]
        return network if self.groups is None else merged(network, self.groups)

    @property
    def _base(self) -> Retraining:
        return Retraining(init_seed=self.deployed, order_seed=self.deployed)

    @cached_property
    def families(self) -> tuple[Family, Family]:
        """Those that rehearse, and those that judge."""
        rehearsed, judges = self.members
        if self.change == "seeds":
            return self._own(seeds(rehearsed)), self._own(seeds(judges, start=self.first_judge))
        known = len(self.data.train)
        judges = min(judges, known // 2)
        both = self._own(leave_one_out(min(rehearsed, known - judges) + judges, known, base=self._base))
        return both[judges:], both[:judges]

    def pool(self, models: int) -> Family:
        """New seeds that neither rehearse nor judge."""
        return self._own(seeds(models, start=FIRST_CALIBRATED))

    def _own(self, retrainings: list[Retraining]) -> Family:
        family = self._trained(retrainings)
        return family if self.groups is None else family.merged(self.groups)

    def _trained(self, retrainings: list[Retraining]) -> Family:
        x, y = (part.to(self.device) for part in self.data.rows)
        recipe = PAPER_RECIPES[self.dataset]
        recipe = recipe if self.epochs is None else replace(recipe, epochs=self.epochs)
        return train(x, y, recipe, retrainings, store=default_store())

    @cached_property
    def question(self) -> tuple[Tensor, Tensor, Space]:
        x = self.data.question(self.rows).to(self.device)
        free = Space.free(self.data.rows[0]) if self.space == "free" else self.data.encoding.space
        space = free.without_people() if self.space == "schema" else free
        return x, other_class(self.model, x), space.to(x)

    def searches(self) -> dict[str, Method]:
        rehearsed, judges = self.families
        plain = MinCost(norm=self.norm)
        own: dict[str, Method] = {"min-cost": plain}
        if self.sns:
            own["min-cost+sns"] = Pipeline(plain, (SNS(radius=SNS_SHARE * RADII[self.dataset]),))
        for members, caution in self.searched:
            if members <= self.members[0]:
                name = f"rehearsed {members}, caution {caution:g}"
                own[name] = Rehearsed(rehearsed[:members], search=plain).with_parameter(caution)
        # What may see the judges: they are asked for all of them, and for almost all.
        own["oracle 100 %"] = Rehearsed(judges, search=plain)
        own["oracle 99 %"] = Rehearsed(judges, share=ACCEPTED, search=plain)
        return own

    def measured(self) -> list[dict[str, Any]]:
        """One row per search."""
        x, target, space = self.question
        answers: dict[str, tuple[Counterfactuals, float]] = {}
        for name, search in self.searches().items():
            start = time.perf_counter()
            answers[name] = search(self.model, x, target, space), time.perf_counter() - start
        return self.beside_oracle(answers)

    def beside_oracle(self, answers: dict[str, tuple[Counterfactuals, float]]) -> list[dict[str, Any]]:
        """One row per answer: the oracle is the cheapest of them that almost all judges accept."""
        _, target, _ = self.question
        _, judges = self.families
        accepted = {
            name: (judges.predict(answer.point) == target).double().mean(0) for name, (answer, _) in answers.items()
        }
        costs = [
            torch.where(answer.found & (accepted[name] >= ACCEPTED), answer.cost(self.norm).double(), torch.inf)
            for name, (answer, _) in answers.items()
        ]
        oracle = torch.stack(costs).amin(0)
        return [self._row(name, *answers[name], accepted[name], oracle) for name in answers]

    def _row(self, name: str, answer: Counterfactuals, seconds: float, held: Tensor, oracle: Tensor) -> dict[str, Any]:
        found, possible = answer.found, oracle.isfinite()
        both = found & possible
        seen = name.startswith("oracle")
        low, high = (float("nan"),) * 2 if seen or not found.any() else audit(answer, self.families[1]).interval()
        return {
            "dataset": self.dataset,
            "space": self.space,
            "norm": self.norm,
            "change": self.change,
            "deployed": self.deployed,
            "method": name,
            "rows": len(found),
            "found": int(found.sum()),
            "possible": int(possible.sum()),  # for the oracle
            "found_of_possible": _share(both, possible),
            "rate": float(1 - held[found].mean()) if found.any() else float("nan"),
            "low": low,
            "high": high,
            "cost": float(answer.cost(self.norm)[found].double().mean()) if found.any() else float("nan"),
            "of_oracle": float(answer.cost(self.norm)[both].double().mean() / oracle[both].mean())
            if both.any()
            else float("nan"),
            "seconds": seconds,
        }


def _share(part: Tensor, whole: Tensor) -> float:
    return float(part.sum() / whole.sum()) if whole.any() else float("nan")
