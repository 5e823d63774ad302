"""`holdfast audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from holdfast.cli import inputs
from holdfast.cli.options import errors_as_sentences, writing_to

if TYPE_CHECKING:
    from holdfast.explaining.file_audit import Excluded

COUNTERFACTUALS = (
    "The counterfactuals in the data's units, matched to people by label; DiCE's .json; or the folder of advice that "
    "holdfast wrote."
)
MEMBERS = 100  # retrained models of a kind, where their number is not given


def audit(
    data: inputs.DataOption,
    counterfactuals: Annotated[Path, inputs.option(inputs.TABLES, "--counterfactuals", COUNTERFACTUALS, "FILE")],
    people: inputs.PeopleOption = None,
    model: inputs.ModelOption = None,
    retrained: inputs.RetrainedOption = None,
    retrain: inputs.RetrainOption = None,
    params: inputs.ParamsOption = None,
    train: inputs.TrainOption = False,
    schema: inputs.SchemaOption = None,
    label: inputs.LabelOption = None,
    index: inputs.IndexOption = None,
    want: inputs.WantOption = None,
    unconstrained: inputs.UnconstrainedOption = False,
    scaling: inputs.ScalingOption = "standard",
    hidden: inputs.HiddenOption = None,
    epochs: inputs.EpochsOption = None,
    batch: inputs.BatchOption = None,
    out: inputs.OutOption = Path("holdfast-audit"),
    json: inputs.JsonOption = False,
    quiet: inputs.QuietOption = False,
) -> None:
    """Audit counterfactuals from any source: how often do retrained models invalidate them?

    The retrained models are files (--retrained), refits of an estimator
    (--model and --retrain), or, where there is no model yet, networks that
    holdfast trains (--train).
    """
    with errors_as_sentences(inputs.kept(retrained)), writing_to(out):
        from holdfast.cli.explainers import explainer_of
        from holdfast.cli.tables import read_tables
        from holdfast.explaining.advice_files import read_advice
        from holdfast.explaining.file_audit import audit_points, rows_named
        from holdfast.reporting.tables import file_audit_text

        file, excluded = read_advice(counterfactuals)
        tables = read_tables(data, people=people, points=file, schema=schema, label=label, scaling=scaling, index=index)
        whose, points = tables.people, tables.points
        if whose is None:
            if isinstance(points, str):
                raise ValueError(
                    "DiCE's JSON does not say whom it is for; name the people it was asked about: --people FILE"
                )
            whose = rows_named(tables.table, points)
        explainer = explainer_of(
            tables,
            label=label,
            model=model,
            train=train,
            retrain=retrain if retrain or retrained else _usual(excluded, train, len(tables.known)),
            retrained=retrained,
            params=params,
            layers=(hidden, epochs, batch),
            count=MEMBERS,
            passed_over=None if excluded is None else excluded.taken,
            want=inputs.wanted_of(want),
            constrained=not unconstrained,
            progress=not quiet,
        )
        result = audit_points(explainer, whose, points, matched=tables.matched, excluded=excluded)
        files = result.save(out)
        inputs.show(result.summary(), file_audit_text(result), files, as_json=json, quiet=quiet, soft_wrap=True)


def _usual(excluded: Excluded | None, train: bool, rows: int) -> list[str]:
    """The retrainings of a network where none are named, or others of the kinds that took part in the advice."""
    kinds = ("seeds", "leave-one-out") if excluded is None or not excluded.kinds else excluded.kinds
    if not train:
        return []
    taken = {} if excluded is None else excluded.taken
    left = max(1, rows - taken.get("leave-one-out", 0))
    return [f"{kind}:{min(MEMBERS, left)}" if kind == "leave-one-out" else kind for kind in kinds]
