"""Any torch module, k at a time: one call of torch.func.vmap over stacked parameters stands for k forward passes.

What a module draws while it is trained must not depend on its company or its device, so `nn.Dropout` is replaced by
one whose mask is a hash of the member's seed, the step and the place (`Dropout`).
"""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from holdfast.families.perceptron import Backpropagation, Perceptron, Shapes, State
from holdfast.families.recipe import Retraining
from holdfast.models.model import Model, checked_logits
from holdfast.utils.draws import usual_dtype

Build = Callable[[], nn.Module]
PROBED = 3  # rows a module is tried on


@dataclass(frozen=True, eq=False)
class TorchModule:
    """Networks that one module, or one function that builds a module, stands for."""

    build: nn.Module | Build
    plain: nn.Module  # one of them, in evaluation mode
    features: int
    classes: int
    width: int

    exact = True

    @classmethod
    def of(cls, build: nn.Module | Build, x: Tensor) -> TorchModule:
        """Try a module on a few rows: what it says, and how many numbers it makes of a row."""
        plain = _seeded(build, 0).to(x).eval()
        _check_seeded(build, plain)
        sizes: list[int] = []

        def count(module: nn.Module, inputs: Any, output: Any) -> None:
            sizes.append(output.numel() if isinstance(output, Tensor) else 0)

        hooks = [part.register_forward_hook(count) for part in plain.modules()]
        rows = x[torch.arange(PROBED) % len(x)]
        try:
            with torch.no_grad():
                logits = checked_logits(plain(rows), PROBED)
        except (RuntimeError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"the module does not take rows of {x.shape[1]} columns ({x.dtype}): {error}") from error
        finally:
            for hook in hooks:
                hook.remove()
        shape = cls(build, plain, x.shape[1], logits.shape[1], max(1, sum(sizes) // PROBED))
        shape._check_stackable(rows)
        return shape

    @property
    def name(self) -> str:
        return type(self.plain).__name__

    @property
    def description(self) -> str:
        """Layers, sources of the classes that are not torch's own, and the weights that seed 0 starts from."""
        user_classes = {type(part) for part in self.plain.modules() if not type(part).__module__.startswith("torch.")}
        digest = hashlib.sha256()
        for name, tensor in self.plain.state_dict().items():
            digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
        return "\n".join([repr(self.plain), *sorted(map(_source, user_classes)), digest.hexdigest()])

    @property
    def trained(self) -> Shapes:
        return {name: tuple(p.shape) for name, p in self.plain.named_parameters() if p.requires_grad}

    @property
    def head(self) -> frozenset[str]:
        owner = list(self.trained)[-1].rpartition(".")[0]
        return frozenset(name for name in self.trained if name.rpartition(".")[0] == owner)

    @property
    def smallest_batch(self) -> int:
        """Batch normalisation has nothing to average over one row."""
        return 2 if any(isinstance(part, nn.modules.batchnorm._BatchNorm) for part in self.plain.modules()) else 1

    def initial(self, retraining: Retraining, like: Tensor) -> State:
        network = _with_own_dropout(_seeded(self.build, retraining.init_seed), retraining.order_seed)
        return {name: _to(tensor, like) for name, tensor in _tensors(network)}

    def check_base(self, base: Model) -> None:
        if not isinstance(base, nn.Module):
            raise ValueError(f"base is a {type(base).__name__}, but the recipe makes networks of {self.name}")
        theirs = {name: tensor.shape for name, tensor in _tensors(base)}
        wrong = [name for name, tensor in _tensors(self.plain) if theirs.get(name) != tensor.shape]
        if wrong:
            raise ValueError(f"base has no {', '.join(wrong)} of the shape that networks of {self.name} have")

    def loaded(self, base: Model, start: State) -> State:
        assert isinstance(base, nn.Module)  # check_base
        theirs = dict(_tensors(base))
        return {name: _to(theirs.get(name, tensor), tensor) for name, tensor in start.items()}

    def backpropagation(self, stack: State, gradient: State, kept: State) -> Backpropagation:
        template = _with_own_dropout(copy.deepcopy(self.plain), 0).train()
        leaves = {name: tensor.detach().requires_grad_() for name, tensor in stack.items()}
        for name, leaf in leaves.items():
            leaf.grad = gradient[name]  # autograd adds to what is there, so all gradients stay one flat tensor
        forward = vmap(
            lambda weights, other, rows: functional_call(template, {**weights, **other}, (rows,)), randomness="error"
        )

        def backpropagate(x: Tensor, wanted: Tensor, weight: Tensor) -> None:
            for tensor in gradient.values():
                tensor.zero_()
            with torch.enable_grad():
                loss = -(forward(leaves, kept, x).log_softmax(-1) * wanted * weight).sum()
            loss.backward()

        return backpropagate

    def finished(self, state: State) -> State:
        return {name: state[name] for name, _ in _tensors(self.plain)}

    def logits(self, state: State, x: Tensor) -> Tensor:
        if self.plain.training:
            raise ValueError(
                "the module was put into training mode; call .eval() on a member, not on what it is made of"
            )
        each = (0, 0 if x.ndim == 3 else None)
        answer = vmap(lambda weights, rows: functional_call(self.plain, weights, (rows,)), each, randomness="error")(
            dict(state), x
        )
        return answer if isinstance(answer, Tensor) else torch.as_tensor(answer)

    def dense(self, state: State) -> None:
        return None

    def network(self, state: State, retraining: Retraining, fingerprint: str | None) -> nn.Module:
        network = copy.deepcopy(self.plain).to(next(iter(state.values())).device)
        for name, tensor in _tensors(network):
            tensor.copy_(state[name])
        vars(network).update(retraining=retraining, fingerprint=fingerprint)  # what `Network` says of itself too
        return network.eval()

    def _check_stackable(self, rows: Tensor) -> None:
        """One round on a stack of two: it must be possible, and give the gradient of the plain module."""
        if not self.trained:
            raise ValueError(f"{self.name} has no parameter to train")
        start = self.initial(Retraining(), rows)
        stack = {name: torch.stack([tensor, tensor]) for name, tensor in start.items()}
        trained = {name: stack.pop(name) for name in self.trained}
        gradient = {name: torch.zeros_like(tensor) for name, tensor in trained.items()}
        wanted = torch.eye(self.classes).to(rows)[torch.arange(PROBED) % self.classes]
        weight = torch.full_like(wanted[:, :1], 1 / PROBED)
        try:
            backpropagate = self.backpropagation(trained, gradient, stack)
            backpropagate(*(tensor.expand(2, *tensor.shape) for tensor in (rows, wanted, weight)))
        except RuntimeError as error:
            drawn = "random" in str(error)
            why = "it draws random numbers other than nn.Dropout's" if drawn else "its forward pass branches on values"
            raise ValueError(
                f"{self.name} cannot be stacked with torch.func.vmap: {why}; train it with Family.from_training. "
                f"torch said: {str(error).splitlines()[0]}"
            ) from error
        alone = _with_own_dropout(copy.deepcopy(self.plain), 0).train()  # as it is before training
        parameters = {name: parameter for name, parameter in alone.named_parameters() if name in self.trained}
        with torch.enable_grad():
            loss = nn.functional.cross_entropy(alone(rows), wanted)
        plain = torch.autograd.grad(loss, tuple(parameters.values()), materialize_grads=True)
        for name, known in zip(parameters, plain, strict=True):
            if not torch.allclose(gradient[name][1], known, rtol=1e-2, atol=1e-4):
                raise ValueError(
                    f"the gradient of {name} is lost when networks of {self.name} are stacked: does its forward pass "
                    "make new parameters, as slicing an nn.ParameterList does? Train it with Family.from_training"
                )


Architecture = Perceptron | TorchModule


class Dropout(nn.Module):
    """nn.Dropout whose mask is a hash of a key, of the number of the call and of the place."""

    key: Tensor
    calls: Tensor

    def __init__(self, p: float, key: int) -> None:
        super().__init__()
        self.p = p
        self.register_buffer("key", torch.tensor(key))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        self.calls.add_(1)
        places = torch.arange(x.numel(), device=x.device).view(x.shape)
        drawn = _mixed(_mixed(_mixed(self.key) + self.calls) + places)
        return x * (drawn >= round(self.p * 2**32)) / (1 - self.p) if self.p < 1 else x * 0


def _mixed(number: Tensor) -> Tensor:
    """32 bits that look random, of any whole number (the finaliser of MurmurHash3, after a multiplication)."""
    low = 2**32 - 1
    number = number * 0x9E3779B1 & low
    number = (number ^ number >> 16) * 0x85EBCA6B & low
    number = (number ^ number >> 13) * 0xC2B2AE35 & low
    return number ^ number >> 16


def _with_own_dropout(module: nn.Module, seed: int) -> nn.Module:
    """The module with every nn.Dropout replaced, each layer with a key of its own."""
    if type(module) is nn.Dropout:
        return Dropout(module.p, seed)
    places = [(parent, name, part) for parent in module.modules() for name, part in parent.named_children()]
    dropouts = [(parent, name, part) for parent, name, part in places if type(part) is nn.Dropout]
    for number, (parent, name, part) in enumerate(dropouts):
        setattr(parent, name, Dropout(part.p, seed * 1_000_003 + number))
    return module


def _seeded(build: nn.Module | Build, seed: int) -> nn.Module:
    """A module as it is before training, its weights drawn anew from a seed; the caller's generator is left alone."""
    with torch.random.fork_rng(devices=[]), usual_dtype():
        torch.manual_seed(seed)
        if not isinstance(build, nn.Module):
            module = build()
            if not isinstance(module, nn.Module):
                raise TypeError(
                    f"the function that builds the network returned {type(module).__name__}; expected nn.Module"
                )
            return module
        module = copy.deepcopy(build)
        for part in module.modules():
            _reset(part)
        return module


def _reset(part: nn.Module) -> None:
    reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
    if callable(reset):
        reset()
    elif next(part.parameters(recurse=False), None) is not None:
        raise ValueError(
            f"{type(part).__name__} holds parameters but has no reset_parameters() to draw them anew; give it one, or "
            "pass a function that builds the module: Recipe(network=lambda: MyNetwork(...))"
        )


def _check_seeded(build: nn.Module | Build, first: nn.Module) -> None:
    again = _seeded(build, 0)
    if not isinstance(build, nn.Module) and again is _seeded(build, 1):
        raise ValueError(
            "the function that builds the network returns one and the same module; build a new one each time"
        )
    for (name, tensor), (_, tensor_again) in zip(first.named_parameters(), again.named_parameters(), strict=True):
        if not torch.equal(tensor.detach().cpu(), tensor_again.detach().to(tensor.dtype).cpu()):
            raise ValueError(f"{name} starts differently each time; draw initial weights with torch's own generator")


def _tensors(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in module.named_parameters():
        yield name, parameter.detach()
    yield from module.named_buffers()


def _to(tensor: Tensor, like: Tensor) -> Tensor:
    """On the device of ``like``, and of its type unless these are whole numbers."""
    return tensor.detach().to(
        like.device, like.dtype if tensor.is_floating_point() and like.is_floating_point() else None, copy=True
    )


def _source(kind: type) -> str:
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):  # typed at a prompt: its compiled code says as much
        code = getattr(getattr(kind, "forward", None), "__code__", None)
        return f"{kind.__qualname__} {code.co_code.hex() if code else ''} {code.co_consts if code else ''}"
