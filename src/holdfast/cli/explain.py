"""`holdfast explain`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli import inputs
from holdfast.cli.options import DATASETS, command_again, errors_as_sentences, writing_to

USUAL = 96  # retrained models of a kind, where their number is not given
NOTHING_PROMISED = 3  # exit code
REPORT = "report.html"
HOLD = "Give a person only plans that at least this share of the selection models accepts, such as 0.9."
PROMISE = "Promise that one more retrained model invalidates at most this share of all plans, on average."


def explain(
    data: inputs.DataOption,
    people: inputs.PeopleOption = None,
    model: inputs.ModelOption = None,
    retrain: inputs.RetrainOption = None,
    params: inputs.ParamsOption = None,
    retrained: inputs.RetrainedOption = None,
    want: inputs.WantOption = None,
    hold: Annotated[float | None, inputs.option(inputs.RESULTS, "--hold", HOLD, "SHARE")] = None,
    promise: Annotated[float | None, inputs.option(inputs.RESULTS, "--promise", PROMISE, "SHARE")] = None,
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
    """Find advice for people whom a model turns down.

    The files say what each person could change, what it costs, and how many
    retrained models accept it; report.html is for a browser. For example:

    holdfast explain --data train.csv --schema schema.toml --people rows.csv
      --model model.skops --retrain bootstrap:96 --want yes --hold 0.95

    A third of the retrained models rehearse: the search asks them. A third
    select: they decide which plans hold. A third audit: they judge what was
    chosen. With --train, a network is retrained with 96 new seeds for --hold
    and --promise, unless --retrain or --retrained says otherwise.
    """
    with errors_as_sentences(inputs.kept(retrained)), writing_to(out):
        from holdfast.cli.explainers import explainer_of
        from holdfast.cli.tables import read_tables
        from holdfast.explaining.advice_files import save_advice, summary_of
        from holdfast.explaining.roles import Sizes
        from holdfast.reporting.advice_text import advice_text
        from holdfast.reporting.groups import check_groups
        from holdfast.reporting.html.page import report_text
        from holdfast.utils.digests import file_digest

        tables = read_tables(data, people=people, schema=schema, label=label, scaling=scaling, index=index)
        who_ask = tables.test if tables.people is None else tables.people
        if who_ask is None:
            raise ValueError("a table of your own does not say whom advice is for; name them: --people FILE")
        who_ask = who_ask.iloc[:rows]
        groups = check_groups(group or (), who_ask)
        if train and (hold, promise) != (None, None) and not retrained:
            retrain = retrain or ["seeds"]
        sizes = (rehearsal, selection, audit)
        explainer = explainer_of(
            tables,
            label=label,
            model=model,
            train=train,
            retrain=retrain,
            retrained=retrained,
            params=params,
            layers=(hidden, epochs, batch),
            count=USUAL if None in sizes else sum(filter(None, sizes)),
            sizes=Sizes(*sizes),
            want=inputs.wanted_of(want),
            constrained=not unconstrained,
            progress=not quiet,
        )
        files_read = [None if data in DATASETS else data, people, schema, model, params, *(retrained or ())]
        digests = {str(path): file_digest(path) for path in files_read if path is not None}
        advice = explainer.explain(who_ask, hold=hold, promise=promise, plans=plans, method=method)
        advice = replace(advice, decided={**advice.decided, "command": command_again(sys.argv), "files": digests})
        try:
            report = report_text(advice, groups=groups)
        except Exception:
            save_advice(advice, out)  # whatever is wrong with the page, hours of search are not lost by it
            raise
        # Before showing: nothing that happens to the terminal loses the work.
        files = save_advice(advice, out, also={REPORT: report})
        inputs.show(summary_of(advice), advice_text(advice, out / REPORT), files, as_json=json, quiet=quiet)
    if advice.promise is not None and not advice.promise.promised:
        raise typer.Exit(NOTHING_PROMISED)
