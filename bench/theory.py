"""How long each function of `holdfast.theory` takes for 1,000 rows of a 40-100-32-2 network, on one thread.

The network has the paper's shape for HELOC and is drawn, not trained. Linux only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from _side_by_side import flags, resident, show, timed

from holdfast import Retraining
from holdfast.families.perceptron import Network, Perceptron, layers
from holdfast.paper.theorems import further_but_no_safer, proposition1, theorem2
from holdfast.theory.certificates import Relative, certified_radius
from holdfast.theory.influence import Ball, Line, influence
from holdfast.theory.lipschitz import lipschitz_bound, sampled_lipschitz
from holdfast.theory.paths import line
from holdfast.theory.regions import (
    boundary_distance_inside,
    boundary_piece,
    facet_distance,
    linear_map,
    pattern,
    polytope,
)
from holdfast.utils.threads import one_thread


def drawn(*sizes: int) -> Network:
    shape = Perceptron(sizes)
    state = shape.initial(Retraining(), torch.empty(0))
    biases = tuple(
        0.1 * torch.randn(bias.shape, generator=torch.Generator().manual_seed(0)) for bias in layers(state, "bias")
    )
    return Network(layers(state, "weight"), biases, Retraining())


def works(rows: int) -> dict[str, tuple[int, Callable[[], Any]]]:
    """For each function how many rows it is given, and the call."""
    network, small = drawn(40, 100, 32, 2), drawn(2, 16, 8, 2)
    retrained = replace(network, weights=(*network.weights[:-1], network.weights[-1] + 0.1))
    draw = torch.Generator().manual_seed(1)
    x, two = torch.randn(rows, 40, generator=draw), torch.randn(20, 2, generator=draw)
    target, zero = network(x).argmax(1), torch.zeros(40)
    pieces = [boundary_piece(small, two[place]) for place in (0, 1)]
    return {
        "line, 50 points": (rows, lambda: line(zero, x, 50, "trapezoid")),
        "influence, line of 50": (rows, lambda: influence(network, x, target, Line(zero))),
        "influence, ball of 256": (rows, lambda: influence(network, x, target, Ball(0.5))),
        "sampled_lipschitz, 100 points": (rows, lambda: sampled_lipschitz(network, x, 0.1)),
        "lipschitz_bound": (rows, lambda: lipschitz_bound(network, x, 0.1)),
        "pattern": (rows, lambda: pattern(network, x)),
        "linear_map": (rows, lambda: linear_map(network, x)),
        "polytope": (rows, lambda: polytope(network, x)),
        "facet_distance": (rows, lambda: facet_distance(network, x)),
        "boundary_distance_inside": (rows, lambda: boundary_distance_inside(network, x)),
        "further_but_no_safer, 2-16-8-2": (1, lambda: further_but_no_safer(two[2], *pieces)),
        "theorem2": (rows, lambda: theorem2(network, retrained, x)),
        "proposition1": (rows, lambda: proposition1(lambda at: network(at).softmax(1)[:, 1], x, 0.5)),
        "certified_radius, absolute": (rows, lambda: certified_radius(network, x, target)),
        "certified_radius, relative": (rows, lambda: certified_radius(network, x, target, Relative())),
    }


def main() -> None:
    options = flags(__doc__ or "")
    table = []
    with one_thread():
        for name, (rows, work) in works(20 if options.quick else 1000).items():
            work()
            _, seconds = timed(work)
            table.append({"function": name, "rows": rows, "seconds": seconds, "MB_at_most": resident("VmHWM")})
    show("Theory", table, options.json)


if __name__ == "__main__":
    main()
