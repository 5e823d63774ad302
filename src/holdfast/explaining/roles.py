"""Retrained models, shared out among those that the search sees, those that select and those that audit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from holdfast.explaining.wanted import Wanted
from holdfast.families.family import Family
from holdfast.families.recipe import counted
from holdfast.models.identity import OBJECT
from holdfast.utils.settings import check_whole

REHEARSAL = 32  # models that the search asks at most, unless told otherwise: more cost time and change little
NEEDED = 3  # models of each kind of change, one for each role


@dataclass(frozen=True)
class Sizes:
    """How many retrained models of each kind of change have which role. A number that is left out is worked out.

    No model has two roles, since a model that chose a plan cannot say whether it holds.

    Args:
        rehearsal: the search asks them: it looks for advice that they accept too. A third of the models, and 32 of
            all kinds together at most; 0 for none
        selection: they choose: `hold` is the share of them that accepts a plan, and a promise is chosen by
            them. Half of the others
        audit: they choose nothing, and judge the advice: the columns hold, low and high. The rest

    Examples:
        >>> import holdfast as hf
        >>> hf.Sizes().of(96, "bootstrap", kinds=1)  # of 96 models of one kind: rehearse, select, audit
        (32, 32, 32)
        >>> hf.Sizes(rehearsal=0, selection=80).of(96, "bootstrap", kinds=1)
        (0, 80, 16)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1, retrains 100 models for each kind of
    change, and all of them audit.
    """

    rehearsal: int | None = None
    selection: int | None = None
    audit: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("rehearsal", 0), ("selection", 1), ("audit", 1)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least=least)

    def of(self, models: int, kind: str, kinds: int) -> tuple[int, int, int]:
        """How many of so many models of one kind have each role; those beyond the sizes that were set have none."""
        first = min(-(-REHEARSAL // kinds), models // 3) if self.rehearsal is None else self.rehearsal
        last = max(1, (models - first) // 2) if self.audit is None else self.audit
        if self.audit is None and self.selection is not None:
            last = models - first - self.selection
        second = models - first - last if self.selection is None else self.selection
        if min(second, last) < 1 or first + second + last > models or models < NEEDED:
            raise ValueError(
                f"there are {models} retrained models of kind '{kind}', too few for {self}: one or more must select "
                f"and one or more audit, beside {first} that rehearse; retrain more, {NEEDED} at the least and 96 to "
                "begin with, or set smaller sizes=Sizes(rehearsal=..., selection=..., audit=...)"
            )
        return first, second, last


@dataclass(frozen=True, eq=False)
class Roles:
    """Families that share no member."""

    rehearsal: Family | None
    selection: Family
    audit: Family

    @property
    def seen(self) -> frozenset[str]:
        """Members that had a say in the advice, and may not judge it."""
        chose = self.selection.fingerprints
        return frozenset(chose if self.rehearsal is None else (*chose, *self.rehearsal.fingerprints))

    def wanted_by(self, goal: Wanted) -> Roles:
        """The same with the classes joined of which any will do."""
        rehearsal = None if self.rehearsal is None else goal.family(self.rehearsal)
        return Roles(rehearsal, goal.family(self.selection), goal.family(self.audit))

    def counts(self) -> dict[str, dict[str, int]]:
        """Role -> kind of change -> members."""
        families = {"rehearsal": self.rehearsal, "selection": self.selection, "audit": self.audit}
        return {role: {} if family is None else dict(Counter(family.kinds)) for role, family in families.items()}

    def __str__(self) -> str:
        rehearse = "none" if self.rehearsal is None else counted(self.rehearsal.kinds)
        return f"rehearsal {rehearse}; selection {counted(self.selection.kinds)}; audit {counted(self.audit.kinds)}"


def excluded_from_audit(roles: Roles | None) -> dict[str, Any]:
    """Which retrained models an audit of the advice must pass over: how many of each kind, from the first on, and the
    fingerprints of those that have one beyond this process."""
    if roles is None:
        return {"kinds": [], "taken": {}, "members": []}
    families = [family for family in (roles.rehearsal, roles.selection) if family is not None]
    taken = Counter(kind for family in families for kind in family.kinds)
    members = [name for name in sorted(roles.seen) if not name.startswith(OBJECT)]
    return {"kinds": list(taken), "taken": dict(taken), "members": members}


def divided(family: Family, sizes: Sizes) -> Roles:
    """Of each kind of change the first members rehearse, the next select, and the last audit."""
    kinds = list(dict.fromkeys(family.kinds))
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for kind in kinds:
        members = [number for number, its_kind in enumerate(family.kinds) if its_kind == kind]
        first, second, last = sizes.of(len(members), kind, len(kinds))
        parts[0].extend(members[:first])
        parts[1].extend(members[first : first + second])
        parts[2].extend(members[first + second : first + second + last])
    rehearsal, selection, audit = (family.chosen(part) for part in parts)
    return Roles(rehearsal if parts[0] else None, selection, audit)
