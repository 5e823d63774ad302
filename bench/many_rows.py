"""Memory and time of every method on 1,000 and on 10,000 rows of Taiwan, in the schema space (Linux).

Each cell runs in a process of its own: what it held at most while it searched, above what it held before.
"""

from __future__ import annotations

from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
from _side_by_side import divided, flags, resident, show, timed

from holdfast import METHODS, PAPER_RECIPES, PGD, Recipe, Retraining, named, other_class, train


def searched(method: str, count: int) -> tuple[int, float, float]:
    """Rows found, seconds, and megabytes held at most above what was held before."""
    encoding, known, asked = divided("taiwan")
    x, y, space = encoding.encode(known), encoding.labels(known), encoding.space
    model = train(x, y, Recipe(PAPER_RECIPES["taiwan"].hidden, epochs=5, batch=512), [Retraining()])[0]
    rows = encoding.encode(pd.concat([asked, known])[:count])
    target = other_class(model, rows)
    search = (PGD(radius=3.0) if method == "pgd" else named(method)).fit(x, y, space)
    search(model, rows[:100], target[:100], space)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    answer, seconds = timed(lambda: search(model, rows, target, space))
    return int(answer.found.sum()), seconds, resident("VmHWM") - before


def main() -> None:
    options = flags(__doc__ or "")
    sizes = (200, 400) if options.quick else (1000, 10_000)
    table: list[dict[str, Any]] = []
    for method in sorted([*METHODS, "pgd+sns"], key="latent".__eq__):  # the slowest comes last
        row: dict[str, Any] = {"method": method}
        for count in sizes:
            with get_context("spawn").Pool(1) as process:
                found, seconds, held = process.apply(searched, (method, count))
            row |= {f"found_of_{count}": found, f"ms_a_row_{count}": 1000 * seconds / count, f"MB_{count}": held}
        table.append(row)
        print(row, flush=True)
    show("Many rows of Taiwan", table, options.json)


if __name__ == "__main__":
    main()
