"""What decides a cell, as a value that JSON can say: the same for the same computation, wherever its code lies.

Results must outlive the code that made them. A class may move to another module, lose a field or gain one, and the
package may get a new version number, without one cell being computed again. So classes of holdfast are written down by
the names and fields they had when results were first kept (`WRITTEN`), and a field that came later only where it
differs from its default. Raise `FORMAT` when a cell comes to hold other numbers.
"""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

FORMAT = 2
ENGINE = 2  # of the search of discrete spaces; raise it when its numbers change
NUMBERS_OF = "0.1.0"  # the release whose numbers are still the ones computed today

# Class -> its name in keys, and the fields that are always part of one. A field that is gone has the value of GONE.
WRITTEN = {
    "Absolute": ("holdfast.theory.certificates.Absolute", "scales"),
    "AlibiPrototype": (
        "holdfast.methods.prototype.Prototype",
        "theta beta nearest learning_rate steps constants first categories raw rows",
    ),
    "Autoencoder": ("holdfast.methods.latent.Autoencoder", "encoder decoder low width"),
    "Certified": ("holdfast.stabilise.certified.Certified", "radius steps norm patience delta change"),
    "Confidence": ("holdfast.stabilise.confidence.Confidence", "radius steps norm patience"),
    "ElasticNetART": (
        "holdfast.methods.art.ElasticNetART",
        "norm learning_rate steps constants first confidence probabilities margin_counts capped hinged decay",
    ),
    "Latent": (
        "holdfast.methods.latent.Latent",
        "radius samples shells seed sizes epochs steps batch learning_rate unit_codes autoencoder",
    ),
    "Margin": ("holdfast.methods.margin.Margin", "level search"),
    "MinCost": ("holdfast.methods.min_cost.MinCost", "norm learning_rate steps constants first"),
    "PGD": ("holdfast.methods.pgd.PGD", "radius levels steps random_start seed"),
    "Pipeline": ("holdfast.named.Then", "method stabilisers"),
    "Prototype": (
        "holdfast.methods.prototype.Prototype",
        "theta beta nearest learning_rate steps constants first categories raw rows",
    ),
    "Recipe": (
        "holdfast.families.recipe.Recipe",
        "hidden epochs batch learning_rate betas epsilon weight_decay network",
    ),
    "Relative": ("holdfast.theory.certificates.Relative", "scales"),
    "ReleasedLatent": ("holdfast.studies.release.ReleasedLatent", "radius samples rounds seed latent"),
    "ReleasedPGD": ("holdfast.studies.release.ReleasedPGD", "radius levels steps seed"),
    "ReleasedSNS": ("holdfast.studies.release.ReleasedSNS", "radius steps points noise seed low high"),
    "SNS": ("holdfast.stabilise.sns.SNS", "radius steps points baseline objective norm patience"),
    "SamePrice": ("holdfast.studies.matched.SamePrice", "steps"),
    "Sparse": ("holdfast.stabilise.sparse.Sparse", "objective tolerance norm"),
}
# Class -> what the fields that it lost would hold; None where nothing is said.
GONE: dict[str, dict[str, Any]] = {"Prototype": {"raw": False}, "AlibiPrototype": {"raw": True}}


def described(value: Any) -> Any:
    """A setting as JSON, so that two are equal exactly where they mean the same."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Tensor):
        plain = value.detach().cpu().contiguous()
        return [str(plain.dtype), list(plain.shape), hashlib.sha256(plain.numpy().tobytes()).hexdigest()]
    if isinstance(value, (tuple, list)):
        return [described(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        name, always = _written(type(value))
        gone = GONE.get(type(value).__qualname__, {})
        settings = {field: described(getattr(value, field, gone.get(field))) for field in always}
        for field in fields(value):
            setting = described(getattr(value, field.name))
            if field.name not in always and setting != _usual(field):
                settings[field.name] = setting
        return [name, settings]
    raise TypeError(
        f"a study cannot tell one {type(value).__name__} from another ({value!r}); write methods as frozen dataclasses "
        "of numbers, words, tensors and other such values"
    )


def _written(kind: type) -> tuple[str, list[str]]:
    """The name of a class in keys, and the fields that are always part of one."""
    if not kind.__module__.startswith("holdfast."):  # somebody's own: all that can be known is where it is now
        return f"{kind.__module__}.{kind.__qualname__}", [field.name for field in fields(kind)]
    name, always = WRITTEN.get(kind.__qualname__, (f"holdfast.{kind.__qualname__}", ""))
    return name, always.split()


def _usual(field: Field[Any]) -> Any:
    """A field's default as JSON. One without a default is always part of a key: nothing equals this."""
    if field.default is not MISSING:
        return described(field.default)
    return described(field.default_factory()) if field.default_factory is not MISSING else MISSING


def versions_in_keys() -> dict[str, str]:
    """Other versions of these may give other bits."""
    return {"holdfast": NUMBERS_OF, "torch": torch.__version__, "numpy": np.__version__}
