"""`holdfast promise`."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

from holdfast.cli import inputs
from holdfast.cli.explain import explain

RATE = "The share of all plans that one more retrained model may invalidate, on average."


def promise(
    rate: Annotated[float, inputs.option(inputs.RESULTS, "--rate", RATE, "SHARE")] = 0.05, **options: Any
) -> None:
    """Find advice with a promised invalidation rate, or say why none can be promised (exit code 3).

    This is holdfast explain --promise: the same options, and the same files.
    For example:

    holdfast promise --data train.csv --schema schema.toml --people rows.csv
      --model model.skops --retrain bootstrap:96 --want yes --rate 0.05

    The selection models choose how careful the search has to be. A rate
    needs 1 / rate - 1 of them or more, of each kind of change.
    """
    explain(promise=rate, **options)


def _signature() -> inspect.Signature:
    """What typer reads the options from: those of `explain`, with --rate in the place of --hold and --promise."""
    shared = inspect.signature(explain, eval_str=True).parameters
    own_rate = inspect.signature(promise, eval_str=True).parameters["rate"]
    parameters = [own_rate if name == "promise" else shared[name] for name in shared if name != "hold"]
    return inspect.Signature(parameters)


promise.__signature__ = _signature()  # type: ignore[attr-defined]
