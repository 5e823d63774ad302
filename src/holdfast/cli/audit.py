"""`holdfast audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import inputs
from holdfast.cli.options import errors_as_sentences, writing_to

if TYPE_CHECKING:
    from holdfast.auditing.audit_files import Excluded
    from holdfast.families.recipe import Retraining

MEMBERS = 100  # retrained models of a kind, where their number is not given


def audit(
    data: inputs.DataOption,
    counterfactuals: Annotated[
        Path,
        typer.Option(
            "--counterfactuals",
            help="The counterfactuals in the data's units, matched to people by label; DiCE's .json; or the folder of "
            "advice that holdfast wrote.",
        ),
    ],
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
    store = inputs.store_of_families()
    with errors_as_sentences(inputs.kept(store, retrained)), writing_to(out):
        train = train or bool(model and retrain and hidden)  # networks like the deployed one, as explain trains them
        inputs.check_training(train, {"--hidden": hidden, "--epochs": epochs, "--batch": batch})
        from holdfast.auditing.audit_files import audit_files, read_tables
        from holdfast.explaining.advice_folder import read_advice
        from holdfast.families.model_files import find_models
        from holdfast.reporting.tables import file_audit_text

        points, excluded = read_advice(counterfactuals)
        tables = read_tables(
            data, people=people, points=points, schema=schema, label=label, scaling=scaling, index=index
        )
        known = tables.data
        wanted = known.class_named(want)
        models = find_models(
            known.known,
            known.encoding,
            model=model,
            retrained=retrained or (),
            recipe=inputs.recipe_of(hidden, epochs, batch, known.recipe) if train else None,
            retrain=bool(retrain),
            params=inputs.params_of(params),
            store=store,
        )
        result = audit_files(
            known,
            tables.points if tables.points is not None else "",
            models,
            people=tables.people,
            changes=[] if retrained else _changes(retrain, len(known.known), excluded),
            want=wanted,
            constrained=not unconstrained,
            excluded=excluded,
            matched=tables.matched,
            progress=not quiet,
        )
        files = result.save(out)
        inputs.show(result.summary(), file_audit_text(result), files, as_json=json, quiet=quiet, soft_wrap=True)


def _changes(retrain: list[str] | None, rows: int, excluded: Excluded | None) -> list[Retraining]:
    """The retrainings that are asked for, or by default some of every kind; none that took part in the advice."""
    taken = {} if excluded is None else excluded.taken
    if retrain:
        return inputs.changes_named(retrain, rows, count=MEMBERS, after=taken)
    kinds = ("seeds", "leave-one-out") if excluded is None or not excluded.kinds else excluded.kinds
    if not set(kinds) <= set(inputs.RETRAIN_KINDS):
        raise ValueError(
            f"the advice was judged by models of kind {', '.join(kinds)}, of which no others can be trained here; name "
            "the files of such models: --retrained FILE"
        )
    most = {kind: rows - taken.get(kind, 0) if kind == "leave-one-out" else MEMBERS for kind in kinds}
    return inputs.changes_named([f"{kind}:{max(1, min(MEMBERS, most[kind]))}" for kind in kinds], rows, after=taken)
