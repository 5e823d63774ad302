"""How one network is trained, and what differs when it is trained again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """A multi-layer perceptron and its training, with the defaults of Keras that the paper used.

    Rectified hidden layers, Glorot-uniform weights, zero biases; Adam on the mean cross-entropy of a batch.
    """

    hidden: tuple[int, ...] = (128, 64, 16)
    epochs: int = 100
    batch: int = 32
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-7

    def __post_init__(self) -> None:
        if isinstance(self.hidden, int):
            raise TypeError(f"hidden is {self.hidden}; give one width a layer, ({self.hidden},)")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if any(width < 1 for width in self.hidden):
            raise ValueError(f"hidden layers need one unit or more each, got {self.hidden}")
        if self.epochs < 1 or self.batch < 1:
            raise ValueError(f"epochs and batch must be 1 or more, got {self.epochs} and {self.batch}")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate must be above 0, got {self.learning_rate}")

    def sizes(self, features: int, classes: int) -> tuple[int, ...]:
        """Width of every layer, input and logits included."""
        return (features, *self.hidden, classes)


@dataclass(frozen=True)
class Retraining:
    """What sets one member apart: its seeds, and the training row it never saw."""

    init_seed: int = 0
    order_seed: int = 0
    left_out: int | None = None
    kind: str = "base"

    def rows(self, total: int) -> int:
        """How many rows it is trained on."""
        return total - (self.left_out is not None)


# The paper's networks. HELOC's batch size is not given there; 128 works.
PAPER_RECIPES: dict[str, Recipe] = {
    "german": Recipe((128, 64, 16), epochs=100, batch=32),
    "seizure": Recipe((128, 64, 16), epochs=100, batch=128),
    "ctg": Recipe((100, 32, 16), epochs=100, batch=16),
    "warfarin": Recipe((100,), epochs=100, batch=128),
    "heloc": Recipe((100, 32), epochs=50, batch=128),
    "taiwan": Recipe((32, 16), epochs=100, batch=512),
}
