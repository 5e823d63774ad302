"""Running a study: cell by cell into a file, resumed after any interruption.

When the last cell is there, the file is written anew in the study's own order: but for ``seconds`` it has the same
bytes however often it was interrupted. Only one process may run on a file at a time; a second one is told.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Mapping
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast import __version__, datasets
from holdfast.auditing.audit import Audit, audit
from holdfast.families.entries import default_store
from holdfast.families.family import Family
from holdfast.paper.results import append_line, checked_path, complete, end_last_line, read_lines
from holdfast.paper.study import Cell, Study, check_study
from holdfast.paper.trials import Trial, data_of, start_trial
from holdfast.utils.files import only_writer
from holdfast.utils.progress import bar

LOG = logging.getLogger(__name__)


def run(
    study: Study,
    file: str | Path,
    *,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = False,
    only: Collection[str] = (),
) -> Path:
    """Compute every cell that the file does not have yet, and append it there.

    ``only`` names datasets and methods to compute now. Families are trained once and kept in the ``store``, a folder
    (default: the user's own).

    Examples:
        >>> import holdfast as hf
        >>> from holdfast.paper.runner import run
        >>> from holdfast.paper.study import Study
        >>> study = Study(
        ...     name="tiny",
        ...     datasets=("german",),
        ...     methods=(("pgd", hf.PGD(levels=2, steps=5)),),
        ...     changes=(("seeds", 2),),
        ...     rows=4,
        ...     recipes={"german": hf.Recipe(hidden=(4,), epochs=1)},
        ... )
        >>> run(study, "tiny.jsonl", store="families", workers=1).name  # again: nothing is left to compute
        'tiny.jsonl'

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1, "Methodology".
    """
    check_study(study)
    path = checked_path(file)
    wanted = _chosen(study, only)
    with only_writer(path):
        return _run(study, path, wanted, default_store() if store is None else store, workers, progress)


def _run(study: Study, path: Path, wanted: list[Cell], store: str | Path, workers: int | None, progress: bool) -> Path:
    known = {line["cell"] for line in read_lines(path, study.name)} if path.exists() else set()
    todo = [cell for cell in wanted if cell.key not in known]
    LOG.info("study %s: %d of %d cells to compute, into %s", study.name, len(todo), len(wanted), path)
    for dataset in dict.fromkeys(cell.dataset for cell in todo):
        if datasets.card(dataset).state() != "here":
            datasets.card(dataset).load()  # says what is wrong and how to get it, before hours of work on the others
    end_last_line(path)
    with closing(_computed(study, todo, store, workers, progress)) as lines:
        for line in lines:
            append_line(path, line)
    complete(study, path)
    return path


def _chosen(study: Study, only: Collection[str]) -> list[Cell]:
    only = [only] if isinstance(only, str) else only
    if not isinstance(only, Collection):
        raise TypeError(f"only must be names of datasets and methods, got {only!r}")
    methods = study.names
    unknown = [name for name in only if name not in (*study.datasets, *methods)]
    if unknown:
        raise ValueError(
            f"study '{study.name}' has no dataset or method '{unknown[0]}'; it has the datasets "
            f"{', '.join(study.datasets)} and the methods {', '.join(methods)}"
        )
    chosen_datasets = [name for name in study.datasets if name in only] or study.datasets
    chosen_methods = [name for name in methods if name in only] or methods
    return [cell for cell in study.cells if cell.dataset in chosen_datasets and cell.method in chosen_methods]


def _computed(
    study: Study, todo: list[Cell], store: str | Path, workers: int | None, progress: bool
) -> Generator[dict[str, Any]]:
    """The lines of these cells, one by one. What cells share is made once, and let go when the last has had it."""
    with bar(study.name, len(todo), progress) as advance:
        for dataset, of_dataset in groupby(todo, key=lambda cell: cell.dataset):
            data = data_of(study, dataset)
            for seed, cells in groupby(of_dataset, key=lambda cell: cell.base_seed):
                advance(0, f"{dataset}, base seed {seed}, training")
                trial = start_trial(study, data, seed, store, workers)
                for cell in cells:
                    advance(0, f"{dataset}, base seed {seed}, {cell.method}")
                    LOG.info("searching: %s, %s, base seed %s", dataset, cell.method, seed)
                    yield _line(study, cell, trial)
                    advance(1)


def _line(study: Study, cell: Cell, trial: Trial) -> dict[str, Any]:
    method = study.method(cell.dataset, cell.method)
    answer, seconds = trial.answer(method)
    found = trial.judged(answer)
    audits = {kind: audit(found, family) for kind, family in trial.families.items()}
    cost = {name: found.cost(norm)[found.found].double().cpu() for name, norm in {"cost_l1": 1, "cost_l2": 2}.items()}
    about = {
        "study": study.name,
        "settings": study.settings,
        "base_seed": cell.base_seed,
        "success": round(found.success, 6),
        **{
            f"{name}_spread": round(float(own.std(correction=0)), 6) if len(own) else None for name, own in cost.items()
        },
        "search": repr(method),
        "recipe": repr(study.recipe(cell.dataset)),
        "scaling": study.scaling(cell.dataset),
        "device": study.device,
        "data": next(iter(trial.families.values())).data,
        **_sums(cost["cost_l2"], audits),
        "holdfast": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "cell": cell.key,
    }
    return {
        "study": study.name,
        "cell": cell.key,
        "dataset": cell.dataset,
        "base_seed": cell.base_seed,
        "method": cell.method,
        "rows": [
            row | about | {"seeds": _seeds(trial.families[kind])}
            for kind, result in audits.items()
            for row in result.rows(dataset=cell.dataset, method=cell.method, space=study.space, seconds=seconds)
        ],
        "each": {
            "found": "".join("01"[own] for own in found.found.tolist()),
            **{name: [round(value, 6) for value in own.tolist()] for name, own in cost.items()},
            "invalidated": {kind: _invalidated(result) for kind, result in audits.items()},
        },
    }


def _sums(cost: Tensor, audits: Mapping[str, Audit]) -> dict[str, float]:
    """Σc, Σu, Σc², Σcu, Σu² of what counterfactuals cost and the share of members that invalidate them, kinds averaged.

    Sums over several cells give the regression of u on c over all of them: the paper's R².
    """
    counts = {kind: torch.tensor(_invalidated(result), dtype=torch.float32) for kind, result in audits.items()}
    shares = torch.stack([counts[kind] / len(result.kinds) for kind, result in audits.items()]).double().mean(0)
    sums = {"c": cost.sum(), "u": shares.sum(), "cc": cost @ cost, "cu": cost @ shares, "uu": shares @ shares}
    return {f"sum_{name}": float(f"{float(value):.10g}") for name, value in sums.items()}


def _invalidated(result: Audit) -> list[int]:
    """How many members invalidate each counterfactual that was found."""
    return [int(count) for count in result.invalidated.sum(0)]


def _seeds(family: Family) -> str:
    """The seeds of a family's members: "1000-1099", or "0" where all keep the deployed network's."""
    drawn = [retraining.init_seed for retraining in family.retrainings]
    return str(drawn[0]) if len(set(drawn)) == 1 else f"{min(drawn)}-{max(drawn)}"
