"""Whether retrained models are retrainings of the deployed one, or merely stand in for them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.model import Model, predict_or_none
from holdfast.tabular.encoding import Encoding

if TYPE_CHECKING:
    from holdfast.families.family import Family


Floats = NDArray[np.float64]
DISAGREEMENT_MARGIN = 0.01  # of all rows, beyond what members show among themselves and what so few rows leave open
ACCURACY_MARGIN = 0.02  # of accuracy, likewise
FEWEST_MEMBERS = 3  # members that show how far members differ


@dataclass(frozen=True, eq=False)
class Resemblance:
    """The deployed model beside its retrainings, by the classes that they give the same rows.

    A retraining is drawn like the deployed model itself. So the deployed model's mean disagreement with the members
    should lie among the members' own: each one's mean disagreement with the others of its kind. It does not where it is
    above the largest of these by more than one percentage point and two standard errors of a share of so many rows.
    """

    rows: int
    kinds: tuple[str, ...]  # (k,)
    disagreement: Floats  # (k,) of the deployed model with each member
    among: Floats  # (k,) of each member with the others of its kind, on average; NaN where there are none
    same: NDArray[np.bool_]  # (k,) which members answer exactly like the deployed model
    central: NDArray[np.bool_]  # (k,) which are drawn around the deployed model, not away from it
    deployed_accuracy: float  # NaN without labels
    accuracy: Floats  # (k,)

    @property
    def reason(self) -> str:
        """Why the members are not like the deployed model; empty where they are."""
        return self._worse("deployed") or self._apart() or self._worse("members")

    def _apart(self) -> str:
        for kind in dict.fromkeys(self.kinds):
            of_kind = np.array([name == kind for name in self.kinds]) & self.central
            if of_kind.sum() < FEWEST_MEMBERS:
                continue
            disagreement, most = float(self.disagreement[of_kind].mean()), float(self.among[of_kind].max())
            if disagreement > most + DISAGREEMENT_MARGIN + 2 * self._error(disagreement):
                return (
                    f"the deployed model gives {disagreement:.1%} of {self.rows} rows another class than its "
                    f"retrainings ({kind}) do, which differ by at most {most:.1%} from one another"
                )
        return ""

    def _worse(self, who: str) -> str:
        accuracy = self.accuracy[self.central] if self.central.any() else self.accuracy
        low, high = float(accuracy.min()), float(accuracy.max())
        beyond = ACCURACY_MARGIN + 2 * self._error(self.deployed_accuracy)
        wrong = self.deployed_accuracy < low - beyond if who == "deployed" else self.deployed_accuracy > high + beyond
        if not wrong:  # nor where it is not known
            return ""
        return (
            f"the deployed model is right for {self.deployed_accuracy:.1%} of {self.rows} rows, its retrainings for "
            f"{low:.1%} to {high:.1%}"
        )

    @property
    def deployed_is_worse(self) -> bool:
        """By far: as where it gets wrong columns, columns that are scaled twice, or was trained on other data."""
        return bool(self._worse("deployed"))

    def _error(self, share: float) -> float:
        return sqrt(share * (1 - share) / max(self.rows, 1))

    def __repr__(self) -> str:
        alike = f"{int(self.same.sum())} of {len(self.kinds)} answer like it on all {self.rows} rows"
        return f"Resemblance({self.reason or 'the members resemble the deployed model'}; {alike})"


def resemblance(family: Family, deployed: Model, x: Tensor, y: Tensor | None) -> Resemblance:
    if not len(x) or not len(family):
        raise ValueError(f"expected one row and one member or more, got {len(x)} rows and {family}")
    of_deployed, of_members = predict_or_none(deployed, x).cpu(), family.predict(x).cpu()
    differs = (of_members != of_deployed).numpy()
    predictions = torch.cat([of_deployed[None], of_members])
    right = np.full(len(predictions), np.nan) if y is None else (predictions == y.cpu()).double().mean(1).numpy()
    return Resemblance(
        rows=len(x),
        kinds=family.kinds,
        disagreement=differs.mean(1),
        among=_among(of_members, family.kinds),
        same=np.asarray(~differs.any(1)),
        central=np.array([_is_central(retraining) for retraining in family.retrainings]),
        deployed_accuracy=float(right[0]),
        accuracy=right[1:],
    )


def _among(classes: Tensor, kinds: tuple[str, ...]) -> Floats:
    """Each member's mean disagreement with the others of its kind: (k,).

    Counted by class and row, so that the work grows with the members and not with their pairs.
    """
    found = np.full(len(kinds), np.nan)
    for kind in dict.fromkeys(kinds):
        members = [member for member, name in enumerate(kinds) if name == kind]
        predictions = classes[members]
        if len(members) > 1:
            agree = torch.zeros(len(members), dtype=torch.float64)
            for label in sorted(set(predictions.flatten().tolist())):
                has_label = (predictions == label).double()
                agree += (has_label * (has_label.sum(0) - 1)).sum(1)  # others that say the same of a row, itself aside
            found[members] = 1 - (agree / (predictions.shape[1] * (len(members) - 1))).numpy()
    return found


def _is_central(retraining: Any) -> bool:
    """Whether such a retraining is drawn around the deployed model: other seeds, or rows of the same population.

    New rows, a shifted population, noisy labels and other parameters move all members to one side.
    """
    moved = (retraining.appended, retraining.label_noise, retraining.weight_noise, retraining.continued)
    tuned = retraining.settings or retraining.parameters
    return not (any(moved) or tuned or retraining.tilt is not None or retraining.window is not None)


COMPARED_ROWS = 1000  # rows on which the members are compared with the deployed model
FEW = 200  # rows that tell whether two members are one model


def compared_rows(encoding: Encoding, table: pd.DataFrame, held_out: pd.DataFrame | None) -> tuple[Tensor, Tensor, str]:
    """Encoded rows, their labels, and where they are from."""
    if held_out is not None:
        return encoding.encode(held_out), encoding.labels(held_out), "held-out rows"
    chosen = torch.linspace(0, len(table) - 1, min(len(table), COMPARED_ROWS)).round().long().numpy()
    rows = table.iloc[chosen]
    return encoding.encode(rows), encoding.labels(rows), "rows of the table that they were fitted on"


def judged(
    family: Family,
    deployed: Model | None,
    encoding: Encoding,
    table: pd.DataFrame,
    held_out: pd.DataFrame | None = None,
    *,
    unnoticed: str = "",
) -> Family:
    """With the accuracy of each member, and whether the members resemble the deployed model.

    ``unnoticed`` says why members may be one model, where that is to be told.
    """
    x, y, where = compared_rows(encoding, table, held_out)
    if unnoticed:
        _say_what_is_one_model(family, x, unnoticed)
    if deployed is None:
        return replace(family, accuracy=tuple((family.predict(x) == y).double().mean(1).tolist()), surrogates="")
    found = family.resemblance(deployed, x, y)
    if found.deployed_is_worse:
        warnings.warn(
            f"{found.reason} ({where}): the deployed model may get wrong columns, columns that are scaled twice, or "
            "may come from other data; check what as_model says of it",
            stacklevel=3,
        )
    elif found.reason:
        warnings.warn(
            f"the members are surrogates: {found.reason} ({where}); fit them on the data and with the parameters of "
            "the deployed model. Every audit with them says so",
            stacklevel=3,
        )
    known = f"; its parameters are known so: {family.told}" if found.reason and family.told else ""
    return replace(family, accuracy=tuple(found.accuracy.tolist()), surrogates=f"{found.reason}{known}")


def _say_what_is_one_model(family: Family, x: Tensor, why: str) -> None:
    """That some members answer alike is a result; where all of a kind do, nothing is learned from them."""
    for kind in dict.fromkeys(family.kinds):
        members = family.chosen([member for member, name in enumerate(family.kinds) if name == kind])
        if len(members) > 1 and are_one(members, x):
            warnings.warn(
                f"all {len(members)} refits of kind '{kind}' are one model: {why}; {rather(len(members))}",
                stacklevel=4,
            )


def rather(count: int) -> str:
    return f"change the rows as well: changes.bootstrap({count}), or --retrain bootstrap:{count} on the command line"


def are_one(members: Family, x: Tensor) -> bool:
    """Whether all answer alike, to the bit. Two are asked before all are."""
    x = x[:FEW]
    return all(bool((logits == logits[:1]).all()) for logits in (family.logits(x) for family in (members[:2], members)))
