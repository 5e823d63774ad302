"""All 1,200 networks of the paper: six datasets, 100 new seeds and 100 with a row left out, on the fastest device here.

On a GPU up to 128 steps are one CUDA graph; the same steps launched kernel by kernel stand beside it, both timed over
five epochs. Timing includes drawing batches and moving data to the device. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from _side_by_side import flags, show, timed

from holdfast import Recipe, seeds, train
from holdfast.datasets import DATASETS
from holdfast.datasets.prepared import prepare
from holdfast.families import stacked_training
from holdfast.families.changes import leave_one_out
from holdfast.families.recipe import PAPER_RECIPES


def main() -> None:
    options = flags(__doc__ or "")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    members = 2 if options.quick else 100
    rows = []
    for name, card in list(DATASETS.items())[: 1 if options.quick else None]:
        if card.state() != "here":
            print(f"{name} is left out: {card.how_to_get()}")
            continue
        x, y = prepare(name).rows
        changes = seeds(members) + leave_one_out(members, len(x))

        def work(recipe: Recipe, x=x, y=y, changes=changes) -> None:
            family = train(x.to(device), y.to(device), recipe, changes)
            family.weights[-1].sum().item()  # wait for the device

        short = replace(PAPER_RECIPES[name], epochs=5)
        work(replace(short, epochs=1))  # warm
        _, captured = timed(lambda work=work, short=short: work(short))
        _, launched = (
            timed(lambda work=work, short=short: _uncaptured(work, short)) if device == "cuda" else (None, captured)
        )
        full = captured if options.quick else timed(lambda work=work, name=name: work(PAPER_RECIPES[name]))[1]
        rows.append(
            {
                "dataset": name,
                "device": device,
                "members": len(changes),
                "epochs": short.epochs if options.quick else PAPER_RECIPES[name].epochs,
                "seconds": full,
                "five_epochs": captured,
                "five_epochs_no_graph": launched,
                "ratio": launched / captured,
            }
        )
    total = sum(row["seconds"] for row in rows)
    show(f"{sum(row['members'] for row in rows)} networks in {total:.1f} s", rows, options.json)


def _uncaptured(work, recipe: Recipe) -> None:
    captured = stacked_training._captured
    stacked_training._captured = lambda blocks, changed, adam: blocks
    try:
        work(recipe)
    finally:
        stacked_training._captured = captured


if __name__ == "__main__":
    main()
