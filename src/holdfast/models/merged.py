"""Groups of classes as one class: "any of these will do"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.model import Model, check_callable, checked_logits

if TYPE_CHECKING:
    from holdfast.models.parts import Part
    from holdfast.models.trees.ensemble import Ensemble

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Merged:
    """A model whose classes are groups of another's."""

    model: Model
    groups: Groups

    def __call__(self, x: Tensor) -> Tensor:
        return merge_logits(checked_logits(self.model(x), len(x)), self.groups)

    @property
    def fingerprint(self) -> str | None:
        return getattr(self.model, "fingerprint", None)

    # ---- `Abilities`: those of the model inside ----

    @property
    def has_gradient(self) -> bool:
        return able(self.model).has_gradient

    @property
    def searched(self) -> Model:
        inner = able(self.model).searched
        return self if inner is self.model else Merged(inner, self.groups)

    @property
    def surrogate(self) -> Model | None:
        inner = able(self.model).surrogate
        return None if inner is None else Merged(inner, self.groups)

    @property
    def learned(self) -> tuple[Tensor, Tensor]:
        rows, logits = able(self.model).learned
        return rows, merge_logits(logits, self.groups)

    @property
    def parts(self) -> tuple[Part, ...] | None:
        parts = able(self.model).parts
        return None if parts is None else tuple(part.merged(self.groups) for part in parts)

    @property
    def ensemble(self) -> Ensemble | None:
        return able(self.model).ensemble


def merged(model: Model, groups: Sequence[Sequence[int]]) -> Merged:
    """Say "any of these classes": ``merged(model, ((0,), (1, 2)))`` has class 1 wherever the model says 1 or 2.

    Args:
        model: rows to logits
        groups: the classes of the model, shared out among two groups or more

    Examples:
        >>> import holdfast as hf
        >>> import torch
        >>> from holdfast.models.merged import merged
        >>> model = lambda x: x  # three columns as three logits
        >>> x = torch.tensor([[5.0, 1.0, 0.0], [0.0, 1.0, 5.0]])
        >>> hf.predict(model, x).tolist()
        [0, 2]
        >>> hf.predict(merged(model, ((0,), (1, 2))), x).tolist()
        [0, 1]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Data): of Warfarin's three classes, class
    0 is wanted for the others, and any other for class 0.
    """
    check_callable(model)
    return Merged(model, as_groups(groups))


def as_groups(groups: Sequence[Sequence[int]]) -> Groups:
    try:
        plain = tuple(tuple(index(member) for member in group) for group in groups)
    except TypeError as error:
        raise TypeError(f"groups must be groups of class indices, such as ((0,), (1, 2)), got {groups!r}") from error
    members = [member for group in plain for member in group]
    if len(plain) < 2 or not all(plain) or sorted(members) != list(range(len(members))):
        raise ValueError(f"groups must share out the classes 0, 1, ... among two or more groups, got {plain}")
    return plain


def merge_logits(logits: Tensor, groups: Groups) -> Tensor:
    """The largest logit of each group, so that the merged class is the group of the old class."""
    classes = sum(len(group) for group in groups)
    if logits.shape[-1] != classes:
        raise ValueError(f"the groups {groups} share out {classes} classes but the model has {logits.shape[-1]}")
    return torch.stack([logits[..., list(group)].amax(-1) for group in groups], dim=-1)
