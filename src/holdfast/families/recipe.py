"""How one network is trained, and what differs when it is trained again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from holdfast.utils.messages import plain
from holdfast.utils.settings import check_settings, check_whole

if TYPE_CHECKING:
    from torch import nn

RATES = frozenset({"epochs", "learning_rate", "weight_decay"})  # settings that members of one stack may differ in


@dataclass(frozen=True)
class Recipe:
    """How one network is trained: a multi-layer perceptron, with the defaults of Keras that the paper used.

    Rectified hidden layers, Glorot-uniform weights, zero biases; Adam on the mean cross-entropy of a batch.

    Args:
        hidden: the width of each hidden layer
        epochs: how often every row is seen
        batch: rows per step
        learning_rate: of Adam
        betas: of Adam
        epsilon: of Adam
        weight_decay: added to the gradient, as an l2 penalty
        network: a torch module in the perceptron's place: the module itself, whose weights are drawn anew for every
            member by its parts' ``reset_parameters``, or a function that builds one. Then ``hidden`` says nothing

    Examples:
        >>> import holdfast as hf
        >>> recipe = hf.Recipe(hidden=(64, 16), epochs=20)
        >>> recipe.sizes(features=61, classes=2)
        (61, 64, 16, 2)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Appendix B.2.
    """

    hidden: tuple[int, ...] = (128, 64, 16)
    epochs: int = 100
    batch: int = 32
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-7
    weight_decay: float = 0.0
    network: nn.Module | Callable[[], nn.Module] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.hidden, str) or not isinstance(self.hidden, Iterable):
            example = (self.hidden,) if isinstance(self.hidden, int) else (64, 16)
            raise TypeError(f"hidden is {self.hidden!r}; give one width a layer, {example}")
        object.__setattr__(self, "hidden", tuple(plain(width) for width in self.hidden))
        for width in self.hidden:
            check_whole("each width of hidden", width, least=1)
        for name in ("epochs", "batch", "learning_rate", "epsilon", "weight_decay"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        check_settings(self, numbers="learning_rate epsilon weight_decay")
        check_whole("epochs", self.epochs, least=1)
        check_whole("batch", self.batch, least=1)
        if not 0 < self.learning_rate < math.inf or not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"learning_rate must be above 0 and weight_decay 0 or more, both finite, got {self}")
        if not 0 < self.epsilon < math.inf or not _are_betas(self.betas):
            raise ValueError(f"epsilon must be above 0 and betas two numbers from 0 to below 1, got {self}")
        if self.network is not None and not callable(self.network):
            raise TypeError(
                f"network is a {type(self.network).__name__}; give an nn.Module or a function that builds one"
            )

    def sizes(self, features: int, classes: int) -> tuple[int, ...]:
        """Width of every layer, input and logits included."""
        return (features, *self.hidden, classes)


@dataclass(frozen=True)
class Retraining:
    """What sets one retrained model apart. The functions of `holdfast.changes` make lists of them.

    The defaults are the deployed model. Rows are chosen in the order of the arguments: a window of them, without some,
    drawn anew, with new ones added.

    Args:
        init_seed: draws the initial weights
        order_seed: draws the order of the batches
        window: the first row, and the one after the last
        left_out: the row that is missing
        left_out_share: the share of the rows that is missing
        redrawn: True if as many rows are drawn with replacement
        tilt: a column and a strength: redrawn with probability ∝ exp(strength · column)
        continued: True if training goes on from the deployed model's weights, on new rows only
        top_only: True if only the last layer is trained
        appended: the share of the new rows that is added
        label_noise: the share of labels that turn into another
        weight_noise: in standard deviations of each layer's weights, after training
        settings: of the recipe, where they differ: ``(("epochs", 80),)``
        data_seed: draws which rows, labels and weights are meant
        kind: the kind of change, as an audit names it
        parameters: of an estimator, where they differ: ``(("max_depth", 3),)``

    Examples:
        >>> import holdfast as hf
        >>> hf.Retraining()  # the deployed model
        Retraining()
        >>> hf.seeds(1)[0]  # printing one shows what differs from it
        Retraining(init_seed=1, order_seed=1, kind='seeds')
        >>> hf.Retraining(window=(0, 500), kind="first half")  # one of your own
        Retraining(window=(0, 500), kind='first half')

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Retraining Controls) and Appendix B.4,
    for seeds and one row left out.
    """

    init_seed: int = 0
    order_seed: int = 0
    window: tuple[int, int] | None = None
    left_out: int | None = None
    left_out_share: float = 0.0
    redrawn: bool = False
    tilt: tuple[int, float] | None = None
    continued: bool = False
    top_only: bool = False
    appended: float = 0.0
    label_noise: float = 0.0
    weight_noise: float = 0.0
    settings: tuple[tuple[str, Any], ...] = ()
    data_seed: int = 0
    kind: str = "base"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, plain(getattr(self, field.name)))
        check_settings(
            self,
            seeds="init_seed order_seed data_seed",
            numbers="left_out_share appended label_noise weight_noise",
            flags="redrawn continued top_only",
        )
        for problem in self._problems():
            raise ValueError(f"{problem}; the functions of holdfast.changes make such members")
        if not isinstance(self.kind, str):
            raise TypeError(f"kind must be a word, such as 'seeds', got {self.kind!r}")
        if self.left_out is not None:
            check_whole("left_out", self.left_out, least=0)

    def _problems(self) -> Iterable[str]:
        if not 0 <= self.left_out_share < 1 or not 0 <= self.label_noise <= 1 or not 0 <= self.appended <= 1:
            yield (
                "left_out_share must lie from 0 to below 1, label_noise and appended from 0 to 1, "
                f"got {self.left_out_share}, {self.label_noise} and {self.appended}"
            )
        if not 0 <= self.weight_noise < math.inf:
            yield f"weight_noise must be 0 or more and finite, got {self.weight_noise}"
        if self.window is not None and not _is_window(self.window):
            yield f"window must be the first row and the one after the last, such as (0, 100), got {self.window!r}"
        if self.tilt is not None and not _is_tilt(self.tilt):
            yield f"tilt must be a column and a finite strength, such as (2, 0.5), got {self.tilt!r}"
        if not _are_settings(self.settings):
            yield f"settings must be pairs of a recipe's field and a value, (('epochs', 80),), got {self.settings!r}"
        if not _are_parameters(self.parameters):
            yield (
                "parameters must be pairs of the name of an estimator's parameter and a number, a word, True, False or "
                f"None, (('max_depth', 3),), got {self.parameters!r}"
            )

    def recipe(self, base: Recipe) -> Recipe:
        """The recipe this member is trained by."""
        return replace(base, **dict(self.settings))

    @property
    def own_rates(self) -> bool:
        return any(name in RATES for name, _ in self.settings)

    def __repr__(self) -> str:
        changed = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return f"Retraining({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in changed)})"


def _is_pair(given: Any) -> bool:
    return isinstance(given, (tuple, list)) and len(given) == 2


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_window(window: Any) -> bool:
    return _is_pair(window) and all(map(_is_whole, window)) and 0 <= window[0] < window[1]


def _are_betas(betas: Any) -> bool:
    return _is_pair(betas) and all(isinstance(beta, Real) and 0 <= float(beta) < 1 for beta in betas)


def _is_tilt(tilt: Any) -> bool:
    number = _is_pair(tilt) and _is_whole(tilt[0]) and isinstance(tilt[1], Real)
    return number and tilt[0] >= 0 and math.isfinite(tilt[1])


def _are_named(pairs: Any) -> bool:
    is_list = isinstance(pairs, (tuple, list)) and all(map(_is_pair, pairs))
    return is_list and all(isinstance(name, str) for name, _ in pairs)


def _are_settings(settings: Any) -> bool:
    return _are_named(settings) and {name for name, _ in settings} <= {field.name for field in fields(Recipe)}


def _are_parameters(parameters: Any) -> bool:
    return _are_named(parameters) and all(value is None or isinstance(value, (Real, str)) for _, value in parameters)


def counted(kinds: Sequence[str]) -> str:
    """How many members there are of each kind of change: "100 seeds, 100 leave-one-out"."""
    return ", ".join(f"{count} {kind}" for kind, count in Counter(kinds).items())


def checked_changes(changes: Any, name: str = "changes") -> tuple[Retraining, ...]:
    if isinstance(changes, Retraining):
        raise TypeError(f"{name} is one Retraining; give a list of them, [Retraining()]")
    listed = tuple(changes) if isinstance(changes, Iterable) else ()
    if not isinstance(changes, Iterable) or not all(isinstance(change, Retraining) for change in listed):
        raise TypeError(f"{name} must be a list of Retrainings, such as seeds(100), got {changes!r}")
    if not listed:
        raise ValueError(f"nothing to train: {name} is empty; try seeds(100)")
    return listed


PAPER_RECIPES: dict[str, Recipe] = {
    "german": Recipe((128, 64, 16), epochs=100, batch=32),
    "seizure": Recipe((128, 64, 16), epochs=100, batch=128),
    "ctg": Recipe((100, 32, 16), epochs=100, batch=16),
    "warfarin": Recipe((100,), epochs=100, batch=128),
    "heloc": Recipe((100, 32), epochs=50, batch=128),
    "taiwan": Recipe((32, 16), epochs=100, batch=512),
}
"""The paper's networks, a `Recipe` for each of its datasets by name.

The paper does not give HELOC's batch size; 128 works.

Examples:
    >>> from holdfast.families.recipe import PAPER_RECIPES
    >>> PAPER_RECIPES["german"].hidden, PAPER_RECIPES["heloc"].epochs
    ((128, 64, 16), 50)

Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Appendix B.2.
"""
