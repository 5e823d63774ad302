"""Memory and time of every method on 1,000 and on 10,000 rows of Taiwan, in the schema space. Linux only.

Each cell runs in a process of its own: the most memory that the search held, above what was held before. With --quick
there are a few rows of German Credit and one method.
"""

from __future__ import annotations

from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
from _side_by_side import flags, resident, show, timed

from holdfast import METHODS, PGD, Recipe, Retraining, make_method, other_class, train
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES


def searched(dataset: str, method: str, count: int) -> tuple[int, float, float]:
    """Rows found, seconds, and megabytes held at most above what was held before."""
    data = prepare(dataset)
    (x, y), space = data.rows, data.encoding.space
    model = train(x, y, Recipe(PAPER_RECIPES[dataset].hidden, epochs=5, batch=512), [Retraining()])[0]
    rows = data.encoding.encode(pd.concat([data.test, data.train])[:count])
    target = other_class(model, rows)
    search = (PGD(radius=3.0) if method == "pgd" else make_method(method)).fit(x, y, space)
    search(model, rows[:100], target[:100], space)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    answer, seconds = timed(lambda: search(model, rows, target, space))
    return int(answer.found.sum()), seconds, resident("VmHWM") - before


def main() -> None:
    options = flags(__doc__ or "")
    dataset, sizes = ("german", (10, 20)) if options.quick else ("taiwan", (1000, 10_000))
    methods = ["margin"] if options.quick else [*METHODS, "pgd+sns"]
    table: list[dict[str, Any]] = []
    for method in sorted(methods, key="latent".__eq__):  # the slowest comes last
        row: dict[str, Any] = {"method": method}
        for count in sizes:
            with get_context("spawn").Pool(1) as process:
                found, seconds, held = process.apply(searched, (dataset, method, count))
            row |= {f"found_of_{count}": found, f"ms_a_row_{count}": 1000 * seconds / count, f"MB_{count}": held}
        table.append(row)
        print(row, flush=True)
    show(f"Many rows of {dataset}", table, options.json)


if __name__ == "__main__":
    main()
