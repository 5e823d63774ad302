"""How one network is trained, and what differs when it is trained again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

RATES = frozenset({"epochs", "learning_rate", "weight_decay"})  # settings that members of one stack may differ in


@dataclass(frozen=True)
class Recipe:
    """A multi-layer perceptron and its training, with the defaults of Keras that the paper used.

    Rectified hidden layers, Glorot-uniform weights, zero biases; Adam on the mean cross-entropy of a batch.
    ``network`` puts a torch module in the perceptron's place: the module itself, whose weights are drawn anew for
    every member by its parts' ``reset_parameters``, or a function that builds one.
    """

    hidden: tuple[int, ...] = (128, 64, 16)
    epochs: int = 100
    batch: int = 32
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-7
    weight_decay: float = 0.0  # added to the gradient, as an l2 penalty
    network: nn.Module | Callable[[], nn.Module] | None = None  # then ``hidden`` says nothing

    def __post_init__(self) -> None:
        if isinstance(self.hidden, int):
            raise TypeError(f"hidden is {self.hidden}; give one width a layer, ({self.hidden},)")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if any(width < 1 for width in self.hidden):
            raise ValueError(f"hidden layers need one unit or more each, got {self.hidden}")
        if self.epochs < 1 or self.batch < 1:
            raise ValueError(f"epochs and batch must be 1 or more, got {self.epochs} and {self.batch}")
        if not self.learning_rate > 0 or not self.weight_decay >= 0:
            raise ValueError(f"learning_rate must be above 0 and weight_decay 0 or more, got {self}")
        if self.network is not None and not callable(self.network):
            raise TypeError(
                f"network is a {type(self.network).__name__}; give an nn.Module or a function that builds one"
            )

    def sizes(self, features: int, classes: int) -> tuple[int, ...]:
        """Width of every layer, input and logits included."""
        return (features, *self.hidden, classes)


@dataclass(frozen=True)
class Retraining:
    """What sets one member apart. `families.changes` makes lists of them; the defaults are the deployed network.

    Rows are chosen in the order of the fields: a window of them, without some, drawn anew, with new ones added.
    ``data_seed`` draws which rows, labels and weights are meant.
    """

    init_seed: int = 0
    order_seed: int = 0
    window: tuple[int, int] | None = None  # first row, and the one after the last
    left_out: int | None = None
    left_out_share: float = 0.0
    redrawn: bool = False  # as many rows, with replacement
    tilt: tuple[int, float] | None = None  # redrawn with probability ∝ exp(strength · column)
    continued: bool = False  # from the base's weights, on new rows only
    top_only: bool = False  # only the last layer is trained
    appended: float = 0.0  # share of the new rows
    label_noise: float = 0.0  # share of labels that turn into another
    weight_noise: float = 0.0  # in standard deviations of each layer's weights, after training
    settings: tuple[tuple[str, Any], ...] = ()  # of the recipe, where they differ: (("epochs", 80),)
    data_seed: int = 0
    kind: str = "base"

    def recipe(self, base: Recipe) -> Recipe:
        """The recipe this member is trained by."""
        settings = dict(self.settings)
        return replace(base, **settings)

    @property
    def own_rates(self) -> bool:
        return any(name in RATES for name, _ in self.settings)

    def __repr__(self) -> str:
        changed = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return f"Retraining({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in changed)})"


def counted(kinds: Sequence[str]) -> str:
    """How many members there are of each kind of change: "100 seeds, 100 leave-one-out"."""
    return ", ".join(f"{count} {kind}" for kind, count in Counter(kinds).items())


# The paper's networks. HELOC's batch size is not given there; 128 works.
PAPER_RECIPES: dict[str, Recipe] = {
    "german": Recipe((128, 64, 16), epochs=100, batch=32),
    "seizure": Recipe((128, 64, 16), epochs=100, batch=128),
    "ctg": Recipe((100, 32, 16), epochs=100, batch=16),
    "warfarin": Recipe((100,), epochs=100, batch=128),
    "heloc": Recipe((100, 32), epochs=50, batch=128),
    "taiwan": Recipe((32, 16), epochs=100, batch=512),
}
