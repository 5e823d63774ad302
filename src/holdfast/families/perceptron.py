"""Perceptrons, k at a time, with the gradient written by hand: several times as fast as autograd on small networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from holdfast.families.recipe import Retraining
from holdfast.models.model import Model
from holdfast.models.parts import Dense
from holdfast.models.rows import check_tensor
from holdfast.theory.layers import logits_of
from holdfast.utils.draws import uniform

WIDTH_STEP = 4  # numbers in 16 bytes of memory

State = Mapping[str, Tensor]  # the tensors of one network by name, or of k networks with one more axis in front
Shapes = Mapping[str, tuple[int, ...]]
Backpropagation = Callable[[Tensor, Tensor, Tensor], None]


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """One perceptron that `train` made, a `Model`: fully connected layers with rectifiers between them.

    Attributes:
        weights: (in, out) of each layer
        biases: (out,) of each layer
        retraining: what set its training apart
        fingerprint: a hash of all that decides its weights

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> network = hf.train(x, y, recipe, hf.seeds(1))[0]
        >>> network
        Network(61-8-2, Retraining(init_seed=1, order_seed=1, kind='seeds'))
        >>> network(x).shape  # a logit for each row and class
        torch.Size([1000, 2])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2 (Notation): all activations are rectifiers;
    Appendix B.2 has the sizes of the layers.
    """

    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    retraining: Retraining
    fingerprint: str | None = None

    def __call__(self, x: Tensor) -> Tensor:
        self._check(x)
        return logits_of(self, x)

    @property
    def parts(self) -> tuple[Dense, ...]:
        return (Dense.of(self.weights, self.biases),)

    def _check(self, x: Tensor) -> None:
        check_tensor("x", x)
        first = self.weights[0]
        if not x.ndim or x.shape[-1] != first.shape[0]:
            raise ValueError(f"the network takes rows of {first.shape[0]} columns, got {tuple(x.shape)}")
        if x.dtype != first.dtype:
            raise ValueError(f"the network's weights are {first.dtype} but the rows {x.dtype}; use x.to({first.dtype})")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of its layers: inputs, hidden layers, classes."""
        return (self.weights[0].shape[0], *(weight.shape[1] for weight in self.weights))

    def __repr__(self) -> str:
        return f"Network({'-'.join(map(str, self.sizes))}, {self.retraining})"


@dataclass(frozen=True)
class Perceptron:
    """Rectified layers of these widths, inputs and logits included: the shape of a network and its arithmetic.

    `TorchModule` says the same of any other network.
    """

    sizes: tuple[int, ...]
    exact = False  # whether the rows of a batch touch one another, so that none may fill up a short batch
    smallest_batch = 1

    @classmethod
    def of(cls, state: State) -> Perceptron:
        """The shape of a stack of weights."""
        weights = layers(state, "weight")
        return cls((weights[0].shape[-2], *(weight.shape[-1] for weight in weights)))

    @property
    def name(self) -> str:
        return "-".join(map(str, self.sizes))

    @property
    def description(self) -> str:
        """All that decides what a network of this kind is, as text that is the same on every machine."""
        return f"perceptron {self.name}"

    @property
    def features(self) -> int:
        return self.sizes[0]

    @property
    def classes(self) -> int:
        return self.sizes[-1]

    @property
    def width(self) -> int:
        """How many numbers a row becomes on its way through."""
        return sum(self.sizes)

    @property
    def trained(self) -> Shapes:
        """What training moves: hidden layers as wide as memory likes them, see `aligned`."""
        return _shapes(aligned(self.sizes))

    @property
    def shapes(self) -> Shapes:
        """What the tensors of one trained network look like."""
        return _shapes(self.sizes)

    @property
    def head(self) -> frozenset[str]:
        """Those of the trained tensors that are the last layer's."""
        last = len(self.sizes) - 2
        return frozenset({f"weight.{last}", f"bias.{last}"})

    def initial(self, retraining: Retraining, like: Tensor) -> State:
        """Glorot-uniform weights, zero biases, drawn on the CPU so that a seed means the same on any device."""
        generator = torch.Generator().manual_seed(retraining.init_seed)
        state = {}
        for name, shape in self.shapes.items():
            if name.startswith("bias"):
                state[name] = like.new_zeros(shape)
            else:
                limit = math.sqrt(6 / sum(shape))
                state[name] = ((2 * uniform(shape, generator) - 1) * limit).to(like)
        return self._padded(state)

    def _padded(self, state: State) -> State:
        """With zeros where a layer is wider in training."""
        return {name: _filled_up(tensor, self.trained[name]) for name, tensor in state.items()}

    def check_base(self, base: Model) -> None:
        """Raise if no network of this kind can continue from this one."""
        if not isinstance(base, Network) or [tuple(w.shape) for w in base.weights] != list(pairwise(self.sizes)):
            raise ValueError(f"base is {base}, but the recipe and the rows make networks of {self.name}")

    def loaded(self, base: Model, start: State) -> State:
        """The start of a network that continues from a trained one."""
        assert isinstance(base, Network)  # check_base
        layers = {f"weight.{layer}": weight for layer, weight in enumerate(base.weights)}
        layers |= {f"bias.{layer}": bias for layer, bias in enumerate(base.biases)}
        return self._padded({name: layers[name].to(tensor) for name, tensor in start.items()})

    def backpropagation(self, stack: State, gradient: State, kept: State) -> Backpropagation:
        """A function of a batch: rows (k, b, d), one-hot classes (k, b, c), weight of each row (k, b, 1).

        It writes the gradient of each member's weighted cross-entropy. ``kept`` is what the network holds beside
        trained tensors, such as running means.
        """
        weights, biases = layers(stack, "weight"), [bias[:, None] for bias in layers(stack, "bias")]
        weight_gradients, bias_gradients = layers(gradient, "weight"), layers(gradient, "bias")
        last = len(weights) - 1
        beside = torch.cuda.Stream(weights[0].device) if weights[0].is_cuda else None  # type: ignore[no-untyped-call]
        buffers: dict[int, tuple[list[Tensor], list[Tensor]]] = {}  # the same memory at every step

        def empty(x: Tensor) -> list[Tensor]:
            return [x.new_empty(*x.shape[:2], weight.shape[2]) for weight in weights]

        def backpropagate(x: Tensor, wanted: Tensor, weight: Tensor) -> None:
            if x.shape[1] not in buffers:
                buffers[x.shape[1]] = empty(x), empty(x)
            outputs, deltas = buffers[x.shape[1]]
            for layer, output in enumerate(outputs):
                torch.baddbmm(biases[layer], outputs[layer - 1] if layer else x, weights[layer], out=output)
                if layer < last:
                    output.relu_()
            torch.softmax(outputs[last], -1, out=deltas[last]).sub_(wanted).mul_(weight)  # ∂loss/∂logits = p − onehot
            for layer in range(last, -1, -1):
                below = outputs[layer - 1] if layer else x
                with _work_on(beside):  # beside what comes next
                    torch.bmm(below.transpose(1, 2), deltas[layer], out=weight_gradients[layer])
                    torch.sum(deltas[layer], 1, out=bias_gradients[layer])
                if layer:  # relu passes a gradient on where its output is above 0
                    delta = torch.bmm(deltas[layer], weights[layer].transpose(1, 2), out=deltas[layer - 1])
                    torch.ops.aten.threshold_backward.grad_input(delta, below, 0, grad_input=delta)
            if beside is not None:
                torch.cuda.current_stream().wait_stream(beside)

        return backpropagate

    def finished(self, state: State) -> State:
        """What is kept of a trained stack."""
        if aligned(self.sizes) == self.sizes:
            return state
        return {
            name: state[name][(slice(None), *(slice(size) for size in shape))].contiguous()
            for name, shape in self.shapes.items()
        }

    def logits(self, state: State, x: Tensor) -> Tensor:
        """What k networks say of rows x (n, d), or each of rows of its own (k, n, d): (k, n, c)."""
        weights, biases = layers(state, "weight"), layers(state, "bias")
        hidden = x if x.ndim == 3 else x.expand(len(weights[0]), *x.shape)
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            hidden = torch.baddbmm(bias[:, None], hidden, weight).relu_()
        return torch.baddbmm(biases[-1][:, None], hidden, weights[-1])

    def dense(self, state: State) -> tuple[Dense, ...]:
        """The layers of each network, where all of them are dense."""
        weights, biases = (tuple(part.detach().cpu() for part in layers(state, name)) for name in ("weight", "bias"))
        return tuple(
            Dense.of([weight[member] for weight in weights], [bias[member] for bias in biases])
            for member in range(len(weights[0]))
        )

    def network(self, state: State, retraining: Retraining, fingerprint: str | None) -> Network:
        return Network(layers(state, "weight"), layers(state, "bias"), retraining, fingerprint)


def aligned(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The same layers with hidden widths that are multiples of `WIDTH_STEP`.

    The bits of a matrix product depend on where its matrices begin in memory, and in a stack of odd widths that differs
    from member to member: a network would come out otherwise beside others than alone. Units that fill up a layer have
    weights, biases and gradients of zero, so they stay zero and the others never notice them.
    """
    return (sizes[0], *(-(-width // WIDTH_STEP) * WIDTH_STEP for width in sizes[1:-1]), sizes[-1])


def _shapes(sizes: tuple[int, ...]) -> Shapes:
    weights = {f"weight.{layer}": pair for layer, pair in enumerate(pairwise(sizes))}
    return weights | {f"bias.{layer}": (outputs,) for layer, outputs in enumerate(sizes[1:])}


def _filled_up(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    missing = [wanted - size for wanted, size in zip(shape, tensor.shape, strict=True)]
    return torch.nn.functional.pad(tensor, [part for size in reversed(missing) for part in (0, size)])


def _work_on(stream: torch.cuda.Stream | None) -> AbstractContextManager[Any]:
    """A stream of a GPU, after all that was asked of it before; on a CPU nothing of the kind."""
    if stream is None:
        return nullcontext()
    stream.wait_stream(torch.cuda.current_stream())
    return torch.cuda.stream(stream)


def layers(state: State, part: str) -> tuple[Tensor, ...]:
    """The weights or biases of every layer, from the first to the last."""
    return tuple(state[f"{part}.{layer}"] for layer in range(len(state) // 2))
