"""What predicts invalidation before any retraining: the paper says that the cost of a counterfactual does not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.auditing.audit import Audit
from holdfast.auditing.correlation import r_squared, spearman, varies
from holdfast.families.perceptron import Network
from holdfast.models.checked import checked_model
from holdfast.models.model import Model, differentiable_logits
from holdfast.models.rows import check_rows, check_target
from holdfast.models.scores import log_odds
from holdfast.models.scores import probability as target_probability
from holdfast.search.counterfactuals import Counterfactuals, check_answer
from holdfast.search.gradients import slope
from holdfast.search.plausibility import neighbour_distance
from holdfast.search.stabilisers.sns import SNS
from holdfast.theory.certificates import Relative, certified_radius
from holdfast.theory.influence import Line, influence
from holdfast.theory.layers import check_layers
from holdfast.theory.lipschitz import lipschitz_bound, sampled_lipschitz
from holdfast.theory.regions import boundary_distance_inside
from holdfast.utils.settings import check_number, check_seed, check_share

Floats = NDArray[np.float64]
SLOPE_POINTS = 30  # points at which a slope is sampled
DRAWS = 1000  # of the rows, with replacement, for the limits of a correlation


def predictors(model: Model, answer: Counterfactuals, x: Tensor, y: Tensor) -> pd.DataFrame:
    """What can be known of each counterfactual before any retraining: one row each, NaN where none was found.

    - ``cost_l1``, ``cost_l2``: how far it is
    - ``confidence``: log p/(1 − p) of the target's probability p, by the deployed model
    - ``path_integral``: SNS's objective, the target's mean probability along the line from zero
    - ``gradient_norm``: ‖∇‖₂ of the log-odds at the point, or how fast they can fall
    - ``margin_distance``: confidence / gradient_norm, or how far off the boundary seems; infinite where the model is
      flat
    - ``neighbours``: the mean distance to the five nearest known rows that have the target's class

    Args:
        model: The deployed model; it needs a gradient.
        answer: The counterfactuals.
        x: Known rows, such as the training rows: (m, d).
        y: Their classes: (m,).

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.auditing.predictors import predictors
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> known = torch.tensor([[0.0, 0.0], [2.0, 2.0]])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> found = hf.assess(model, x, torch.tensor([[3.0, 1.0]]), target, space)
        >>> table = predictors(model, found, known, hf.predict(model, known))
        >>> table[["confidence", "gradient_norm", "margin_distance"]].round(2)
           confidence  gradient_norm  margin_distance
        0         8.0            5.0              1.6

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109): cost is Section 3, confidence and flatness Section
    4.2, the path integral Section 4.3, Definition 5.
    """
    check_answer(answer)
    check_rows(x)
    model, answer = checked_model(model), answer.without_graph()
    check_target(answer.target, len(answer), differentiable_logits(model.model, answer.point).shape[1])
    distance = neighbour_distance(answer, x, y)
    confidence, gradient = slope(log_odds, model, answer.point, answer.target, answer.origin)
    norm = torch.linalg.vector_norm(gradient, dim=1)
    with torch.no_grad():
        integral = SNS().value(model, answer.point, answer.target)
    values = {
        "cost_l1": answer.cost(1),
        "cost_l2": answer.cost(2),
        "confidence": confidence,
        "path_integral": integral,
        "gradient_norm": norm,
        "margin_distance": confidence / norm,
        "neighbours": distance,
    }
    found = answer.found.cpu()
    return pd.DataFrame({name: torch.where(found, value.cpu().double(), torch.nan) for name, value in values.items()})


def diagnostics(network: Network, answer: Counterfactuals, radius: float = 0.1) -> pd.DataFrame:
    """What theory says of each counterfactual of a perceptron: one row each, NaN where none was found.

    - ``region_boundary``: distance to the decision boundary of the linear map that holds at the point
    - ``region_size``: distance to the border of the region in which it holds
    - ``lipschitz_sampled``: the steepest slope of the logits that was met within ``radius``, a lower bound
    - ``lipschitz_bound``: the margin is nowhere steeper there, an upper bound
    - ``confident_and_flat``: the paper's Eq. 1, the target's probability less its Lipschitz constant (sampled)
    - ``influence_norm``: ‖χ‖₂ of the probability over the line from zero (Def. 4)
    - ``certified_absolute``: every weight may move by this much before the class can change; proved
    - ``certified_relative``: the same as a share of each weight

    The class meant is the one that the network itself gives the point.

    Args:
        network: The deployed model, a perceptron.
        answer: The counterfactuals.
        radius: How far around a point slopes are looked for.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.auditing.predictors import diagnostics
        >>> x = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
        >>> y, recipe = (x.sum(1) > 1).long(), hf.Recipe(hidden=(8,), epochs=5)
        >>> network = hf.train(x, y, recipe, [hf.Retraining()])[0]
        >>> target = hf.other_class(network, x[:5])
        >>> found = hf.PGD()(network, x[:5], target, hf.Space.free(x))
        >>> table = diagnostics(network, found)
        >>> len(table), bool((table["certified_absolute"].dropna() > 0).all())
        (5, True)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1 (regions, Definition 4), Section 4.2
    (Lipschitz constants) and Section 4.3 (Eq. 1); certificates as in [Zhang et al.
    2018](https://arxiv.org/abs/1811.00866).
    """
    check_answer(answer)
    check_layers(network, "a diagnosis")
    check_number("radius", radius)
    if not 0 <= radius < np.inf:
        raise ValueError(f"radius must be 0 or more and finite, got {radius}")
    answer, found = answer.without_graph(), answer.found
    if not bool(found.any()):
        raise ValueError("nothing was found, so there is nothing to diagnose")
    point = answer.point[found]
    target = network(point).argmax(1)  # of a model whose classes are merged, the one of the group that is largest

    def probability(rows: Tensor) -> Tensor:
        return network(rows).softmax(-1)

    boundary = boundary_distance_inside(network, point, target)
    sure = probability(point).gather(1, target[:, None])[:, 0]
    values = {
        "region_boundary": boundary.distance,
        "region_size": boundary.facet,
        "lipschitz_sampled": sampled_lipschitz(network, point, radius, count=SLOPE_POINTS),
        "lipschitz_bound": lipschitz_bound(network, point, radius, target),
        "confident_and_flat": sure - sampled_lipschitz(probability, point, radius, count=SLOPE_POINTS),
        "influence_norm": torch.linalg.vector_norm(
            influence(network, point, target, Line(torch.zeros_like(point[0])), target_probability), dim=1
        ),
        "certified_absolute": certified_radius(network, point, target),
        "certified_relative": certified_radius(network, point, target, Relative()),
    }
    frame = pd.DataFrame(np.nan, index=range(len(answer)), columns=list(values))
    known = torch.stack([value.detach().cpu().double() for value in values.values()], dim=1)
    frame.loc[found.cpu().numpy()] = known.numpy()
    return frame


def what_predicts(
    audits: Mapping[str, Audit], known: Mapping[str, pd.DataFrame], confidence: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """How each predictor goes with invalidation, over the found rows of all methods together: one row per predictor.

    The columns are ``predictor``, ``rows``, ``spearman``, ``low``, ``high`` and ``r2``, the strongest predictor first.
    Spearman's rank correlation has limits from resampling people: all counterfactuals of one person go together, since
    they are not independent. Rates are means over all members. R² is that of a straight line, as in the paper.

    Args:
        audits: The audits, by the name of their method.
        known: What `predictors` or `diagnostics` says of the same counterfactuals, by the same names.
        confidence: The share of such limits that must hold: 0.95 is 95 of 100.
        seed: The seed of the resampling.

    Examples:
        >>> import pandas as pd
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.auditing.predictors import what_predicts
        >>> x, wanted = torch.zeros(4, 1), torch.ones(4, dtype=torch.int64)
        >>> answer = hf.Counterfactuals(x, x + 1, wanted, wanted.bool())
        >>> # Three models; they invalidate the four rows 3, 2, 1 and 0 times.
        >>> said = torch.tensor([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]])
        >>> audits = {"pgd": hf.Audit(said, answer, kinds=("seeds",) * 3)}
        >>> known = {"pgd": pd.DataFrame({"confidence": [0.5, 1.0, 2.0, 4.0]})}
        >>> what_predicts(audits, known)[["predictor", "rows", "spearman"]].round(2)
            predictor  rows  spearman
        0  confidence     4      -1.0

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Metrics) and the last line of Table 1,
    for cost and R² alone.
    """
    for name, given in {"audits": audits, "known": known}.items():
        if not isinstance(given, Mapping):
            raise TypeError(f"{name} must be given by the name of their method, {{'pgd': ...}}, got {given!r}")
    check_share("confidence", confidence)
    check_seed("seed", seed)
    if set(audits) != set(known) or not audits:
        raise ValueError(f"expected predictors for each of {sorted(audits)}, got them for {sorted(known)}")
    for method, table in known.items():
        if not isinstance(audits[method], Audit) or not isinstance(table, pd.DataFrame):
            raise TypeError(
                f"expected an Audit and a DataFrame of predictors for '{method}', got "
                f"{type(audits[method]).__name__} and {type(table).__name__}"
            )
        words = [str(name) for name, column in table.items() if not pd.api.types.is_numeric_dtype(column)]
        if words:
            raise ValueError(f"predictors of '{method}' must be numbers, but {', '.join(words)} holds none; drop it")
        if len(table) != len(audits[method].counterfactuals):
            raise ValueError(
                f"predictors of '{method}' have {len(table)} rows but its audit {len(audits[method].counterfactuals)}; "
                "make them from the same rows"
            )
    rate = np.concatenate([audits[method].per_row for method in audits])
    person = np.concatenate([np.arange(len(audits[method].per_row)) for method in audits])
    table = pd.concat([known[method] for method in audits], ignore_index=True)
    lines = [
        _line(name, table[name].to_numpy(dtype=np.float64), rate, person, confidence, seed) for name in table.columns
    ]
    frame = pd.DataFrame(lines)
    return frame.reindex(frame["spearman"].abs().sort_values(ascending=False).index).reset_index(drop=True)


def _line(
    name: str, values: Floats, rate: Floats, person: NDArray[np.int64], confidence: float, seed: int
) -> dict[str, float | str | int]:
    there = ~np.isnan(values) & ~np.isnan(rate)
    values, rate, person = values[there], rate[there], person[there]
    low, high = _limits(values, rate, person, confidence, seed)
    return {
        "predictor": name,
        "rows": len(rate),
        "spearman": spearman(values, rate),
        "low": low,
        "high": high,
        "r2": r_squared(values, rate),
    }


def _limits(
    values: Floats, rate: Floats, person: NDArray[np.int64], confidence: float, seed: int
) -> tuple[float, float]:
    """Percentiles over resampled people."""
    if len(rate) < 3 or not varies(values) or not varies(rate):
        return float("nan"), float("nan")
    draw = np.random.default_rng(seed)
    people, person_index = np.unique(person, return_inverse=True)
    drawn = []
    for _ in range(DRAWS):
        times = np.bincount(draw.integers(0, len(people), len(people)), minlength=len(people))[person_index]
        drawn.append(spearman(np.repeat(values, times), np.repeat(rate, times)))
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail])
    return float(low), float(high)
