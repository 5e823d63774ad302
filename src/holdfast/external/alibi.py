"""Counterfactuals from what alibi returns, or from the JSON that it writes. alibi itself is not imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.external.judging import (
    UNREADABLE,
    WITHOUT,
    Details,
    ImportedCounterfactuals,
    Target,
    json_of,
    judged,
    question_of,
)
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space


def from_alibi(
    data: pd.DataFrame | Tensor | NDArray[Any],
    explanations: Any,
    encoding: Encoding,
    model: Model,
    *,
    target: Target = None,
    space: Space | None = None,
) -> ImportedCounterfactuals:
    """Counterfactuals from alibi: what its CounterfactualProto or Counterfactual explained, row by row.

    alibi need not be installed. Points are judged exactly as given, in encoded units: rows of ``encoding.encode``,
    with ``ohe=True`` where alibi was told of categories.

    Args:
        data: the table, or the encoded rows that were explained: alibi does not keep them
        explanations: for each row of ``data``, in order, what ``explain`` returned, or the text of its ``to_json()``;
            None if nothing was found
        encoding: what the columns mean as numbers
        model: the deployed model
        target: as in `from_tables`
        space: as in `from_tables`

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> import torch
        >>> from holdfast.external.alibi import from_alibi
        >>> table = pd.DataFrame({"income": [20, 30, 60, 90]})
        >>> table["approved"] = ["no", "no", "yes", "yes"]
        >>> encoding = hf.Encoding.fit(table, hf.Schema.infer(table, label="approved"))
        >>> model = lambda x: torch.cat([-x, x], 1)  # "yes" above the mean income, 50
        >>> text = '{"data": {"cf": {"X": [[0.75]]}}}'  # as alibi's to_json() writes it
        >>> from_alibi(table[:2], [text, None], encoding, model, target="yes")
        ImportedCounterfactuals(1 of 2 rows found; no counterfactual: 1)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Looveren et al.) and Appendix B.3, where
    alibi's CounterfactualProto is one of the methods; alibi is
    [Klaise et al. 2021](https://jmlr.org/papers/v22/21-0017.html).
    """
    question = question_of(data, encoding, model, target, space)
    several = isinstance(explanations, Sequence) and not isinstance(explanations, str)
    each = list(explanations) if several else [explanations]
    if len(each) != len(question.x):
        raise ValueError(f"{len(each)} explanations for {len(question.x)} rows of data; pass one for each")
    point = question.x.clone()
    without, unreadable = Details(), Details()
    for row, explanation in enumerate(each):
        found = _alibi_point(explanation, encoding.width)
        if found is None:
            without[row] = "alibi found none"
        elif not found.isfinite().all():
            column = encoding.columns[int((~found.isfinite()).nonzero()[0])]
            unreadable[row] = f"{column!r} is not a finite number"
        else:
            point[row] = found
    return judged(question, point, np.arange(len(point)), [], {WITHOUT: without, UNREADABLE: unreadable})


def _alibi_point(explanation: Any, width: int) -> Tensor | None:
    if isinstance(explanation, str):
        data = json_of(explanation, "alibi's Explanation.to_json()").get("data", {})
        if not isinstance(data, Mapping) or "cf" not in data:
            raise ValueError("this JSON is not what alibi's Explanation.to_json() writes: it has no data with a 'cf'")
        found = data["cf"]
    elif explanation is None or hasattr(explanation, "cf"):
        found = None if explanation is None else explanation.cf
    else:
        raise TypeError(
            "expected explanations of alibi's CounterfactualProto or Counterfactual, the text of their to_json(), or "
            f"None, got {type(explanation).__name__}, which has no 'cf'"
        )
    if found is None:
        return None
    try:
        with np.errstate(over="ignore"):  # what is not finite is told of its row
            point = torch.as_tensor(np.asarray(found["X"], dtype=np.float32))
    except (KeyError, TypeError, ValueError, OverflowError, IndexError) as error:
        raise ValueError(f"alibi's counterfactual should hold rows of numbers as 'X', got {found!r:.80}") from error
    if point.shape != (1, width):
        raise ValueError(
            f"alibi's counterfactual has shape {tuple(point.shape)}, expected (1, {width}) as encoding.encode makes "
            "rows; explain encoded rows one by one, with ohe=True if cat_vars are given"
        )
    return point[0]
