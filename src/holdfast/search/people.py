"""The people whom the answers of a search must resemble."""

from __future__ import annotations

from holdfast.models.checked import itself
from holdfast.models.merged import Merged
from holdfast.models.model import Model
from holdfast.models.worst_case import WorstCaseEnsemble
from holdfast.tabular.people import People
from holdfast.tabular.space import Space


def people_for(model: Model, space: Space) -> People | None:
    """Those of the space, by the classes of the model; None where any valid point will do."""
    if space.people is None:
        return None
    model = itself(model)
    deployed = model.deployed if isinstance(model, WorstCaseEnsemble) else model
    return space.people.merged(deployed.groups) if isinstance(deployed, Merged) else space.people


def check_people(model: Model, space: Space, classes: int) -> None:
    """Raise where the classes of the model are not those of the people."""
    people = people_for(model, space)
    classes -= isinstance(itself(model), WorstCaseEnsemble)  # which can be undecided
    if people is not None and people.classes != classes:
        raise ValueError(
            f"the model has {classes} classes, but the people that answers must resemble have {people.classes}; join "
            "classes with merged(model, groups), or use space.without_people()"
        )
