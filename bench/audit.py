"""How long an audit takes, and what it holds in memory: counterfactuals × retrained networks of HELOC's size.

The networks are drawn, not trained: an audit does the same work for both. Each row of the table is a fresh process, so
that its memory is its own. The loop asks each network by itself, as one would without a family of stacked tensors; it
is timed on twenty networks. Linux only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import torch
from _side_by_side import flags, resident, show, timed

from holdfast import Counterfactuals, Family, audit, seeds
from holdfast.families.members import Stack
from holdfast.families.perceptron import Perceptron
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.utils.threads import one_thread

FEATURES = 23 + 17  # HELOC's encoded columns
SIZES = ((1_000, 200), (5_000, 200), (50_000, 200), (5_000, 2_000))


def family_of(members: int) -> Family:
    """Untrained networks of the paper's shape for HELOC."""
    shape = Perceptron((FEATURES, *PAPER_RECIPES["heloc"].hidden, 2))
    retrainings = tuple(seeds(members))
    states = [shape.initial(retraining, torch.empty(0)) for retraining in retrainings]
    stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}
    return Family((Stack(shape, stacked),), retrainings, tuple(range(members)))


def measure(rows: int, members: int) -> dict[str, Any]:
    draw = torch.Generator().manual_seed(0)
    origin, point = torch.rand(2, rows, FEATURES, generator=draw)
    target = torch.randint(0, 2, (rows,), generator=draw)
    answer = Counterfactuals(origin, point, target, torch.ones(rows, dtype=torch.bool), before=1 - target)
    family = family_of(members)
    audit(answer[:100], family)
    before = resident("VmRSS")
    result, asking = timed(lambda: audit(answer, family))
    _, telling = timed(lambda: repr(result))
    some = min(20, members)
    with torch.no_grad(), one_thread():
        _, loop = timed(lambda: [family[place](part).argmax(1) for place in range(some) for part in (point, origin)])
    return {
        "rows": rows,
        "members": members,
        "asking_s": asking,
        "intervals_s": telling,
        "loop_s": loop * members / some,
        "MB": resident("VmHWM") - before,
    }


def main() -> None:
    if len(sys.argv) == 3 and sys.argv[1].isdigit():
        print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
        return
    options = flags(__doc__ or "")
    rows = []
    for size in SIZES[:2] if options.quick else SIZES:
        ran = subprocess.run([sys.executable, __file__, *map(str, size)], capture_output=True, text=True, check=True)
        rows.append(json.loads(ran.stdout.splitlines()[-1]))
    show("An audit of drawn networks of HELOC's shape", rows, options.json)


if __name__ == "__main__":
    main()
