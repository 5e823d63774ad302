"""`holdfast promise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli import inputs
from holdfast.cli.explain import explain


def promise(
    data: inputs.DataOption,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            metavar="SHARE",
            rich_help_panel=inputs.RESULTS,
            help="The share of all plans that one more retrained model may invalidate, on average.",
        ),
    ] = 0.05,
    people: inputs.PeopleOption = None,
    model: inputs.ModelOption = None,
    retrain: inputs.RetrainOption = None,
    params: inputs.ParamsOption = None,
    retrained: inputs.RetrainedOption = None,
    want: inputs.WantOption = None,
    plans: inputs.PlansOption = 1,
    method: inputs.MethodOption = None,
    group: inputs.GroupOption = None,
    schema: inputs.SchemaOption = None,
    label: inputs.LabelOption = None,
    index: inputs.IndexOption = None,
    unconstrained: inputs.UnconstrainedOption = False,
    rows: inputs.RowsOption = None,
    rehearsal: inputs.RehearsalOption = None,
    selection: inputs.SelectionOption = None,
    audit: inputs.AuditModelsOption = None,
    train: inputs.TrainOption = False,
    hidden: inputs.HiddenOption = None,
    epochs: inputs.EpochsOption = None,
    batch: inputs.BatchOption = None,
    scaling: inputs.ScalingOption = "standard",
    out: inputs.OutOption = Path("holdfast-advice"),
    json: inputs.JsonOption = False,
    quiet: inputs.QuietOption = False,
) -> None:
    """Find advice with a promised invalidation rate, or say why none can be promised (exit code 3).

    This is holdfast explain --promise: the same options, and the same files.
    For example:

    holdfast promise --data train.csv --schema schema.toml --people rows.csv
      --model model.skops --retrain bootstrap:96 --want yes --rate 0.05

    The selection models choose how careful the search has to be. A rate
    needs 1 / rate - 1 of them or more, of each kind of change.
    """
    options = dict(locals())  # first of all, so that it holds the options and nothing else
    explain(promise=options.pop("rate"), **options)
