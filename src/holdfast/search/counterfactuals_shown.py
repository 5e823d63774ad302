"""Counterfactuals as a notebook shows them: how many were found, what they cost, and the first few rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from holdfast.utils import notebook

if TYPE_CHECKING:
    from holdfast.search.counterfactuals import Counterfactuals

ROWS_SHOWN = 5


def as_html(answer: Counterfactuals) -> str:
    few = answer[:ROWS_SHOWN]
    rows = {
        "row": [str(label) for label in few.called(np.arange(len(few)))],
        "found": ["yes" if found else "no" for found in few.found.tolist()],
        "wanted class": few.target.tolist(),
        "cost l1": _told(few.cost(1)),
        "cost l2": _told(few.cost(2)),
        "columns changed": _told(torch.where(few.found, few.sparsity, torch.nan)),
    }
    first = f"The first {len(few)} of {len(answer):,} rows. " if len(few) < len(answer) else ""
    return notebook.page(
        notebook.sentence(f"{int(answer.found.sum()):,} of {len(answer):,} counterfactuals found{_mean(answer)}."),
        *([notebook.table(rows)] if len(few) else []),
        notebook.note(
            f"{first}to_frame(encoding) shows them in the units of the table, changes(encoding) what they change."
        ),
    )


def _mean(answer: Counterfactuals) -> str:
    if not bool(answer.found.any()):
        return ""
    l1, l2 = (float(answer.cost(norm)[answer.found].double().mean()) for norm in (1, 2))
    return f"; mean cost {l1:.3g} (l1), {l2:.3g} (l2)"


def _told(numbers: Tensor) -> list[str]:
    return ["-" if math.isnan(number) else f"{number:.3g}" for number in numbers.tolist()]
