"""How often each interval holds what it claims to hold: on simulated audits, and on laws of rates chosen to be hard.

In the simulated audits, a row's own probability of invalidation is drawn from a Beta law so wide that most rows are
nearly never or nearly always invalidated; a member adds one normal effect to the logits of all its rows. The truth is
known to many digits. In the other tables, members' rates are drawn from a law whose mean is known.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _interval_laws import INTERVALS, LAWS, lowest, tried
from _side_by_side import flags, keep, show
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, logit

from holdfast.auditing.intervals import (
    bootstrap_interval,
    clopper_pearson,
    mean_interval,
    member_interval,
    running_interval,
)
from holdfast.utils.progress import bar

Floats = NDArray[np.float64]

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 0.5)
ROWS, MEMBERS = 100, (20, 100)
STOP = {20: 0.3, 100: 0.1}  # stop at an interval so narrow, or when the members are used up
EFFECT = 1.0  # standard deviation of the members' effects, in logits
SIZE = 1.0  # of the rows' Beta law: its two parameters are SIZE · rate and SIZE · (1 − rate), before calibration


@dataclass(frozen=True)
class Population:
    """A pool of rows of which an audit draws some: each row's logit, and its rate over all members."""

    logits: Floats  # (pool,)
    rates: Floats  # (pool,)

    @classmethod
    def of(cls, rate: float, pool: int = 20_000) -> Population:
        chance = betaincinv(SIZE * rate, SIZE * (1 - rate), (np.arange(pool) + 0.5) / pool)
        logits = logit(np.clip(chance, 1e-12, 1 - 1e-12))
        node, weight = np.polynomial.hermite_e.hermegauss(40)
        weight /= weight.sum()

        def rates(shift: float) -> Floats:
            return expit(logits[:, None] + shift + EFFECT * node) @ weight

        low, high = -5.0, 5.0
        for _ in range(50):  # the shift at which the mean over rows and members is the rate
            middle = (low + high) / 2
            low, high = (middle, high) if rates(middle).mean() < rate else (low, middle)
        return cls(logits + low, rates(low))

    def audit(self, members: int, draw: np.random.Generator) -> tuple[NDArray[np.bool_], Floats]:
        """What each member invalidates, (members, rows), and each row's rate over all members, (rows,)."""
        rows = draw.integers(len(self.logits), size=ROWS)
        effect = EFFECT * draw.standard_normal((members, 1))
        return draw.random((members, ROWS)) < expit(self.logits[rows] + effect), self.rates[rows]


def looked_at(invalidated: NDArray[np.bool_], rates: Floats, rate: float, seed: int) -> list[dict[str, float]]:
    """One audit with the first few of its members and with all: does each interval hold the truth, how wide is it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty intersection is a miss like any other
        lows, highs = running_interval(invalidated.mean(1))
    answer = []
    for members in MEMBERS:
        table = invalidated[:members]
        stop = int(np.append(highs[: members - 1] - lows[: members - 1] <= STOP[members], True).argmax())
        row_low, row_high = clopper_pearson(table.sum(0), members)
        pair_low, pair_high = (float(limit) for limit in clopper_pearson(table.sum(), table.size))
        low, high = mean_interval(table.mean(1))
        least, most = member_interval(table.mean(1))
        held = bootstrap_interval(table, seed=seed)
        new_low, new_high = held or (np.nan, np.nan)
        truth = rates.mean()
        answer.append(
            {
                "gaffke": least <= truth <= most,
                "gaffke_above": truth > most,
                "gaffke_below": truth < least,
                "gaffke_width": most - least,
                "betting": low <= truth <= high,
                "betting_width": high - low,
                "stopped": lows[stop] <= truth <= highs[stop],
                "stopped_width": highs[stop] - lows[stop],
                "stopped_after": stop + 1,
                "every_look": lows[members - 1] <= truth <= highs[members - 1],
                "pairs": pair_low <= truth <= pair_high,
                "pairs_new_rows": pair_low <= rate <= pair_high,
                "pairs_width": pair_high - pair_low,
                "bootstrap": np.nan if held is None else new_low <= rate <= new_high,
                "bootstrap_width": new_high - new_low,
                "a_row": ((row_low <= rates) & (rates <= row_high)).mean(),
                "a_row_width": (row_high - row_low).mean(),
            }
        )
    return answer


def simulated(rate: float, times: int, advance: Callable[[int], None]) -> list[dict[str, float | None]]:
    """Means over all audits, one row for each number of members."""
    population, draw, seen = Population.of(rate), np.random.default_rng(0), []
    for number in range(times):
        seen.append(looked_at(*population.audit(max(MEMBERS), draw), rate, number))
        advance(1)
    rows: list[dict[str, float | None]] = []
    for place, members in enumerate(MEMBERS):
        values = {name: np.array([audit[place][name] for audit in seen], dtype=float) for name in seen[0][place]}
        given = int((~np.isnan(values["bootstrap"])).sum())
        # Where the bootstrap was withheld in every audit there is nothing to average.
        row = {
            name: float(np.nanmean(value)) if given or "bootstrap" not in name else None
            for name, value in values.items()
        }
        share = row["bootstrap"]
        row["bootstrap_error"] = None if share is None else float(1.96 * np.sqrt(share * (1 - share) / given))
        row["withheld"] = 1 - given / times
        rows.append({"rate": rate, "members": members} | row)
    return rows


def error(times: int) -> str:
    return f"Monte Carlo error of a coverage of 0.95: ± {1.96 * np.sqrt(0.05 * 0.95 / times):.3f}"


def laws(quick: bool) -> list[dict[str, float | str]]:
    times, numbers = (10, MEMBERS[:1]) if quick else (2000, MEMBERS)
    with bar("laws", times * len(numbers) * len(LAWS)) as advance:
        rows = [tried(name, members, times, advance) for members in numbers for name in LAWS]
    title = f"Laws of members' rates: 95 % intervals, {times} draws of all members ({error(times)})"
    show(title, [{key: row[key] for key in row if "above" not in key and "below" not in key} for row in rows])
    sides = [f"{interval}_{side}" for interval in INTERVALS for side in ("above", "below")]
    show(
        "On which side they miss: 0.025 each is allowed",
        [{key: row[key] for key in ("law", "members", *sides)} for row in rows],
    )
    return rows


def searched(quick: bool) -> list[dict[str, float]]:
    sizes = {2: 10} if quick else {2: 400, 3: 400, 5: 200, 8: 50}
    rows = [lowest(members, level, triples) for members, triples in sizes.items() for level in (0.95, 0.975)]
    show("Laws on three points, searched for the lowest coverage of upper_limit (exact, not simulated)", rows)
    return rows


def audits(quick: bool) -> list[dict[str, float | None]]:
    times, rates = (10, RATES[3:5]) if quick else (1000, RATES)
    with bar("simulated audits", times * len(rates)) as advance:
        rows = [row for rate in rates for row in simulated(rate, times, advance)]

    def part(*names: str) -> list[dict[str, float | None]]:
        return [{"rate": row["rate"], "members": row["members"]} | {name: row[name] for name in names} for row in rows]

    note = f"95 % intervals, {times} audits of {ROWS} rows"
    show(
        f"These rows, future retrainings: {note} ({error(times)})",
        part(
            "gaffke", "gaffke_above", "gaffke_below", "gaffke_width", "betting", "betting_width", "stopped",
            "stopped_width", "stopped_after", "every_look", "pairs", "pairs_width", "a_row", "a_row_width",
        ),
    )  # fmt: skip
    show(
        f"New rows too: {note}",
        part("bootstrap", "bootstrap_error", "bootstrap_width", "withheld", "pairs_new_rows", "pairs_width"),
    )
    return rows


def main() -> None:
    options = flags(__doc__ or "")
    rows = {part.__name__: part(options.quick) for part in (laws, searched, audits)}
    if options.json is not None:
        keep(options.json, rows)


if __name__ == "__main__":
    main()
