"""What single people ask of their advice: one wish for everybody, or one each."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space
from holdfast.tabular.wishes import Wish
from holdfast.utils.messages import did_you_mean, plain, some

Wishes = tuple[Wish | None, ...]
WAYS = "a Wish for everybody, a dictionary or Series of wishes by the labels of people, or a list with one for each"


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


def space_of(wishes: Wishes, encoding: Encoding) -> Space:
    """What everybody may do, or each person for themselves."""
    return encoding.space_for(wishes) if wishes else encoding.space


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
