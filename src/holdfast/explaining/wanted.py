"""What people want: a class, and what they ask for themselves; for everybody alike, or for each person."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from holdfast.families.family import Family
from holdfast.models.merged import Groups, merged
from holdfast.models.model import Model
from holdfast.search.counterfactuals import other_class
from holdfast.tabular.schema import Schema
from holdfast.tabular.wishes import Wish
from holdfast.utils.messages import did_you_mean, plain, some

Wishes = tuple[Wish | None, ...]
WAYS = "a Wish for everybody, a dictionary or Series of wishes by the labels of people, or a list with one for each"


@dataclass(frozen=True, eq=False)
class Wanted:
    """What is wanted of a model with these classes. ``groups`` join the classes of which any will do."""

    classes: tuple[Any, ...]  # of the schema
    everybody: Any = None  # the class that everybody wants
    each: Mapping[Hashable, Any] | None = None  # label of a person -> the class that they want
    groups: Groups | None = None  # the classes that will not do, and those that will

    def model(self, model: Model) -> Model:
        """The model whose classes are what is wanted."""
        return model if self.groups is None else merged(model, self.groups)

    def family(self, family: Family) -> Family:
        return family if self.groups is None else family.merged(self.groups)

    def targets(self, model: Model, x: Tensor, labels: pd.Index[Any]) -> Tensor:
        """The class that each person wants, by its place among the classes of `model`: (n,)."""
        if self.groups is not None:
            return torch.ones(len(x), dtype=torch.int64)
        if self.each is not None:
            return torch.tensor([self.classes.index(self.each[label]) for label in labels.tolist()], dtype=torch.int64)
        if self.everybody is not None:
            return torch.full((len(x),), self.classes.index(self.everybody))
        return other_class(model, x)

    def names(self, classes: Tensor) -> list[str]:
        """Each of the classes of `model`, in words."""
        return [self.name(number) for number in classes.tolist()]

    def name(self, number: int) -> str:
        if self.groups is None:
            return str(self.classes[number])
        return " or ".join(str(self.classes[member]) for member in self.groups[number])

    def __str__(self) -> str:
        if self.groups is not None:
            return f"any of {', '.join(str(self.classes[number]) for number in self.groups[1])}"
        if self.each is not None:
            return "a class of their own for each person"
        return "the other of two classes" if self.everybody is None else str(self.everybody)


def wanted(want: Any, schema: Schema, labels: pd.Index[Any] | None = None) -> Wanted:
    """What a user's ``want`` means: a class, several of which any will do, or a Series or dictionary with one for each
    person. None, for the other one, will do for two classes only. ``labels`` are those of the people, if known."""
    classes = schema.classes
    if want is None:
        if len(classes) != 2:
            raise ValueError(
                f"label '{schema.label}' has {len(classes)} classes, {some(classes)}; say which one people want: "
                f"want={classes[-1]!r} (on the command line, --want '{classes[-1]}')"
            )
        return Wanted(classes)
    if isinstance(want, (pd.Series, Mapping)):
        return Wanted(classes, each=_for_each(want, schema, labels))
    if isinstance(want, (list, tuple, set, frozenset)):
        return _several(list(want), schema)
    return Wanted(classes, everybody=_known(want, schema))


def _several(want: list[Any], schema: Schema) -> Wanted:
    chosen = sorted({schema.classes.index(_known(name, schema)) for name in want})
    others = [number for number in range(len(schema.classes)) if number not in chosen]
    if not chosen or not others:
        raise ValueError(
            f"want names {len(chosen)} of {len(schema.classes)} classes; name one or more of {some(schema.classes)}, "
            "and not all of them"
        )
    if len(chosen) == 1:
        return Wanted(schema.classes, everybody=schema.classes[chosen[0]])
    return Wanted(schema.classes, groups=(tuple(others), tuple(chosen)))


def _for_each(want: Any, schema: Schema, labels: pd.Index[Any] | None) -> dict[Hashable, Any]:
    each = {plain(label): _known(name, schema) for label, name in dict(want).items()}
    missing = [] if labels is None else [label for label in labels.tolist() if label not in each]
    if missing:
        raise ValueError(
            f"want names no class for {some(missing)}; give one for each person, by the labels of their rows"
        )
    return each


def _known(want: Any, schema: Schema) -> Any:
    """The class of the schema that is meant; text will do for a number."""
    want = plain(want)
    for name in schema.classes:
        if name == want and isinstance(name, str) == isinstance(want, str):
            return name
    spelt = [name for name in schema.classes if str(name) == str(want)]
    if not spelt and isinstance(want, str):  # a file of another program says true where pandas says True
        spelt = [name for name in schema.classes if isinstance(name, bool) and str(name).lower() == want.lower()]
    if spelt:
        return spelt[0]
    raise ValueError(
        f"no class of '{schema.label}' is called {want!r}{did_you_mean(want, schema.classes)}; the classes are "
        f"{some(schema.classes)}"
    )


# ---- wishes of their own ----


def wished(wishes: Any, labels: pd.Index[Any]) -> Wishes:
    """The wish of each person, or None where they have none; () where nobody has one."""
    if wishes is None:
        return ()
    if isinstance(wishes, Wish):
        return (wishes,) * len(labels)
    if isinstance(wishes, (pd.Series, Mapping)):
        each = _by_label(wishes, labels)
    elif isinstance(wishes, (list, tuple)):
        each = list(wishes)
        if len(each) != len(labels):
            raise ValueError(f"wishes has {len(each)} entries for {len(labels)} people; give one, or None, for each")
    else:
        raise TypeError(f"wishes is a {type(wishes).__name__}; give {WAYS}")
    checked = tuple(_checked(wish, label) for wish, label in zip(each, labels.tolist(), strict=True))
    return checked if any(wish is not None for wish in checked) else ()


def _by_label(wishes: Any, labels: pd.Index[Any]) -> list[Any]:
    if isinstance(wishes, pd.Series) and wishes.index.has_duplicates:
        twice = wishes.index[wishes.index.duplicated()]
        raise ValueError(f"wishes has several entries for {some(twice)}; give one for each person")
    by_label: dict[Hashable, Any] = {plain(label): wish for label, wish in dict(wishes).items()}
    known = labels.tolist()
    strange = [label for label in by_label if label not in set(known)]
    if strange:
        raise ValueError(
            f"wishes names {some(strange)}, who is nobody of the people{did_you_mean(strange[0], known)}; the people "
            f"are {some(known)}"
        )
    return [by_label.get(label) for label in known]


def _checked(wish: Any, label: Hashable) -> Wish | None:
    if isinstance(wish, Wish):
        return wish
    if wish is None or (isinstance(wish, float) and wish != wish):  # a Series says NaN where it has nothing
        return None
    raise TypeError(f"the wish of {label!r} is {wish!r}; give Wish(keep=('housing',)), or None for no wish")
