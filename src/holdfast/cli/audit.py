"""`holdfast audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.inputs import (
    RETRAIN_KINDS,
    BatchOption,
    DataOption,
    EpochsOption,
    HiddenOption,
    IndexOption,
    JsonOption,
    LabelOption,
    ModelOption,
    OutOption,
    ParamsOption,
    PeopleOption,
    QuietOption,
    RetrainedOption,
    RetrainOption,
    ScalingOption,
    SchemaOption,
    TrainOption,
    UnconstrainedOption,
    WantOption,
    changes_named,
    check_training,
    kept,
    params_of,
    recipe_of,
    show,
    store_of_families,
)
from holdfast.cli.options import errors_as_sentences, writing_to

if TYPE_CHECKING:
    from holdfast.auditing.promised import Promised
    from holdfast.families.recipe import Retraining

MEMBERS = 100  # retrained models of a kind, where their number is not given


def audit(
    data: DataOption,
    counterfactuals: Annotated[
        Path,
        typer.Option(
            "--counterfactuals",
            help="The counterfactuals in the data's units, matched to people by label; DiCE's .json; or the folder of "
            "holdfast explain or promise.",
        ),
    ],
    people: PeopleOption = None,
    model: ModelOption = None,
    retrained: RetrainedOption = None,
    retrain: RetrainOption = None,
    params: ParamsOption = None,
    train: TrainOption = False,
    schema: SchemaOption = None,
    label: LabelOption = None,
    index: IndexOption = None,
    want: WantOption = None,
    unconstrained: UnconstrainedOption = False,
    scaling: ScalingOption = "standard",
    hidden: HiddenOption = None,
    epochs: EpochsOption = None,
    batch: BatchOption = None,
    out: OutOption = Path("holdfast-audit"),
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Audit counterfactuals from any source: how often do retrained models invalidate them?

    The retrained models are files (--retrained), refits of an estimator
    (--model and --retrain), or, where there is no model yet, networks that
    holdfast trains (--train).
    """
    store = store_of_families()
    with errors_as_sentences(kept(store, retrained)), writing_to(out):
        train = train or bool(model and retrain and hidden)  # networks like the deployed one, as explain trains them
        check_training(train, {"--hidden": hidden, "--epochs": epochs, "--batch": batch})
        from holdfast.auditing.audit_files import audit_files, read_tables
        from holdfast.auditing.model_files import find_models
        from holdfast.auditing.promised import promised_points
        from holdfast.reporting.tables import file_audit_text

        points, promised = promised_points(counterfactuals)
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
            recipe=recipe_of(hidden, epochs, batch, known.recipe) if train else None,
            retrain=bool(retrain),
            params=params_of(params),
        )
        result = audit_files(
            known,
            tables.points if tables.points is not None else "",
            models,
            people=tables.people,
            changes=[] if retrained else _changes(retrain, len(known.known), promised),
            want=wanted,
            constrained=not unconstrained,
            promised=promised,
            told=tables.matched,
            store=store,
            progress=not quiet,
        )
        files = result.save(out)
        show(result.summary(), file_audit_text(result), files, as_json=json, quiet=quiet, soft_wrap=True)


def _changes(retrain: list[str] | None, rows: int, promised: Promised | None) -> list[Retraining]:
    """The retrainings that are asked for, or by default some of every kind; none that took part in a promise."""
    taken = {} if promised is None else promised.taken
    if retrain:
        return changes_named(retrain, rows, count=MEMBERS, after=taken)
    kinds = ("seeds", "leave-one-out") if promised is None or not promised.kinds else promised.kinds
    if not set(kinds) <= set(RETRAIN_KINDS):
        raise ValueError(
            f"the advice was judged by models of kind {', '.join(kinds)}, of which no others can be trained here; name "
            "the files of such models: --retrained FILE"
        )
    most = {kind: rows - taken.get(kind, 0) if kind == "leave-one-out" else MEMBERS for kind in kinds}
    return changes_named([f"{kind}:{max(1, min(MEMBERS, most[kind]))}" for kind in kinds], rows, after=taken)
