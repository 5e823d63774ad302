"""Many networks as one: each layer of k networks is one tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import overload

import torch
from torch import Tensor

from holdfast.families.collection import from_models, from_training
from holdfast.families.recipe import Recipe, Retraining, counted
from holdfast.models import Groups, as_groups, merge_logits

AT_ONCE = 64 << 20  # bytes of activations held while a family looks at rows


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """One perceptron, a Model."""

    weights: tuple[Tensor, ...]  # (in, out) each
    biases: tuple[Tensor, ...]  # (out,) each
    retraining: Retraining
    fingerprint: str | None = None  # of all that decides its weights

    def __call__(self, x: Tensor) -> Tensor:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = torch.relu(x @ weight + bias)
        return x @ self.weights[-1] + self.biases[-1]

    def __repr__(self) -> str:
        return f"Network({_shape(self.weights)}, {self.retraining})"


@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """k retrained networks of one shape. Indexing gives a Network, slicing a smaller Family."""

    weights: tuple[Tensor, ...]  # (k, in, out) each
    biases: tuple[Tensor, ...]  # (k, out) each
    retrainings: tuple[Retraining, ...]
    groups: Groups | None = None  # classes merged, as `merged` does for one model
    fingerprints: tuple[str, ...] = ()  # one a member, where they are known
    accuracy: tuple[float, ...] | None = None  # of each member on rows held out
    recipe: Recipe | None = None
    data: str | None = None  # fingerprint of the rows there were

    from_models = staticmethod(from_models)
    from_training = staticmethod(from_training)

    def __len__(self) -> int:
        return len(self.retrainings)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(retraining.kind for retraining in self.retrainings)

    @property
    def classes(self) -> int:
        return self.weights[-1].shape[-1] if self.groups is None else len(self.groups)

    @property
    def features(self) -> int:
        return self.weights[0].shape[-2]

    @overload
    def __getitem__(self, place: int) -> Network: ...
    @overload
    def __getitem__(self, place: slice) -> Family: ...
    def __getitem__(self, place: int | slice) -> Network | Family:
        if isinstance(place, slice):
            return replace(
                self,
                weights=tuple(weight[place] for weight in self.weights),
                biases=tuple(bias[place] for bias in self.biases),
                retrainings=self.retrainings[place],
                fingerprints=self.fingerprints[place],
                accuracy=None if self.accuracy is None else self.accuracy[place],
            )
        if self.groups is not None:
            raise TypeError("take a network from the family before merging its classes, then merge the network's")
        return Network(
            tuple(weight[place] for weight in self.weights),
            tuple(bias[place] for bias in self.biases),
            self.retrainings[place],
            self.fingerprints[place] if self.fingerprints else None,
        )

    @property
    def suspects(self) -> tuple[int, ...]:
        """Members that did not learn: accuracy far below their siblings', by 0.1 and by six typical deviations."""
        if self.accuracy is None:
            return ()
        accuracy = torch.tensor(self.accuracy, dtype=torch.float64)
        below = accuracy.median() - accuracy
        return tuple(torch.nonzero(below > max(0.1, 6 * float(below.abs().median()))).flatten().tolist())

    def merged(self, groups: Groups) -> Family:
        """The same networks with classes merged: what `merged` is to one model."""
        return replace(self, groups=as_groups(groups))

    def logits(self, x: Tensor) -> Tensor:
        """What every member says of every row: (k, n, c)."""
        return torch.cat(list(self._in_pieces(x)))

    def predict(self, x: Tensor) -> Tensor:
        """The class every member gives every row: (k, n)."""
        return torch.cat([logits.argmax(-1) for logits in self._in_pieces(x)])

    def _in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        """Logits of a few members at a time, so that memory does not grow with the family."""
        widest = max(weight.shape[-1] for weight in self.weights)
        members = max(1, AT_ONCE // max(1, 2 * len(x) * widest * x.element_size()))
        for start in range(0, len(self), members):
            yield self._forward(x, slice(start, start + members))

    def _forward(self, x: Tensor, members: slice) -> Tensor:
        hidden = x.expand(len(self.retrainings[members]), *x.shape)
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias[members, None], hidden, weight[members])
            hidden = hidden if layer == last else hidden.relu_()
        return hidden if self.groups is None else merge_logits(hidden, self.groups)

    def __repr__(self) -> str:
        return f"Family({_shape(self.weights)}: {counted(self.kinds)})"


def _shape(weights: tuple[Tensor, ...]) -> str:
    return "-".join(str(size) for size in (weights[0].shape[-2], *(weight.shape[-1] for weight in weights)))
