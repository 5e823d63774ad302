"""Confidence intervals that hold for the sample one has, not only for large ones; one for each question asked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.auditing.dirichlet import upper_quantile
from holdfast.utils.settings import check_flag, check_number, check_seed, check_share, check_whole

Floats = NDArray[np.float64]

# The bets of `mean_interval`: nodes of the arcsine law on [0, 1], dense near 0 and near 1.
BETS: Floats = np.sin(np.pi / 2 * (np.arange(128) + 0.5) / 128) ** 2
FEWEST_INVALIDATED = 10  # rows; below, `bootstrap_interval` is withheld
LOWEST = -600.0  # log m beside the mean; smaller is 0
AT_ONCE = 250  # resamples in memory together


def clopper_pearson(successes: ArrayLike, trials: int, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Exact binomial limits for each count of successes: the rate of *one* counterfactual.

    Args:
        successes: How many of the members invalidate it: one number, or one for each of n counterfactuals.
        trials: How many members there are.
        confidence: The share of such limits that must hold: 0.95 is 95 of 100.

    Returns:
        The lower and the upper limits.

    Examples:
        >>> from holdfast.auditing.intervals import clopper_pearson
        >>> low, high = clopper_pearson([0, 5, 20], trials=20)
        >>> low.round(2).tolist(), high.round(2).tolist()
        ([0.0, 0.09, 0.83], [0.17, 0.49, 1.0])

    Paper: the limits are those of [Clopper and Pearson 1934](https://doi.org/10.1093/biomet/26.4.404).
    """
    count, tail = _counts(successes, trials), _tail(confidence)
    # At 0 and at `trials` one Beta parameter is 0 and the limit is the end of [0, 1].
    low = np.where(count > 0, _beta_quantile(np.maximum(count, 1), trials - count + 1, tail), 0.0)
    high = np.where(count < trials, _beta_quantile(count + 1, np.maximum(trials - count, 1), 1 - tail), 1.0)
    return low, high


def member_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Limits for the mean of independent draws in [0, 1] *of one distribution*: the rates of members of one kind.

    Gaffke's (2005): put the end 1 beside the n draws, and weigh all n + 1 with a Dirichlet(1, …, 1) law; the upper
    limit is the 1 − α/2 quantile of the weighted mean. The lower limit comes from 1 − X. Draws that are 0 or 1 give
    Clopper and Pearson's limits, and draws that are alike give narrow ones.

    That at least 95 of 100 hold is *proved* for distributions on two points and for a single draw, and for many draws
    approximately. For all others it is a *conjecture* (Learned-Miller and Thomas 2019), to which we know no
    counterexample. The bounds of [Phan, Thomas and Learned-Miller 2021](https://arxiv.org/abs/2106.03163) are proved
    and wider; so is `mean_interval`, which also allows draws with different means: members that were retrained in
    different ways are such draws, whatever their kind is called. The number of draws must be chosen beforehand; see
    `running_interval`.

    Args:
        values: One number in [0, 1] for each member, such as ``audit.per_member``.
        confidence: The share of such intervals that must hold: 0.95 is 95 of 100.

    Examples:
        >>> from holdfast.auditing.intervals import member_interval
        >>> low, high = member_interval([0.1, 0.2, 0.1, 0.0, 0.1] * 4)  # twenty members
        >>> print(f"{low:.2f} to {high:.2f}")
        0.07 to 0.25

    Paper: the interval is studied in [Learned-Miller and Thomas 2019](https://arxiv.org/abs/1905.06208).
    """
    return _gaffke(*np.unique(_draws(values), return_counts=True), _tail(confidence))


def upper_limit(values: ArrayLike, confidence: float = 0.95) -> float:
    """The one-sided upper limit for the mean of independent draws in [0, 1] of one distribution.

    At least 95 of 100 such limits lie above the mean, or on it. What is proved is what is proved for `member_interval`,
    whose upper limit at 90 % this is.

    Args:
        values: One number in [0, 1] for each member, such as ``audit.per_member``.
        confidence: The share of such limits that must hold: 0.95 is 95 of 100.

    Examples:
        >>> from holdfast.auditing.intervals import upper_limit
        >>> rates = [0.0] * 100  # a hundred members that invalidate nothing
        >>> print(f"{upper_limit(rates):.3f}")
        0.030

    Paper: the limit is studied in [Learned-Miller and Thomas 2019](https://arxiv.org/abs/1905.06208).
    """
    check_share("confidence", confidence)
    return _upper(*np.unique(_draws(values), return_counts=True), 1 - confidence)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Limits for the mean of independent draws in [0, 1], whatever their distribution; finite-sample.

    By betting (Waudby-Smith and Ramdas 2024) with constant bets, mixed as in Cover's universal portfolio: for the true
    mean μ and any c in [0, 1], the product Π (1 − c + c·Xᵢ/μ) is non-negative with expectation at most 1 (for draws of
    different means too, with μ their average, since a product of numbers is at most their mean to the same power). So
    is its average over c, and by Markov it exceeds 2/α with probability at most α/2. The lower limit is the smallest m
    that is not refuted so; the upper one comes from 1 − X. Constant bets make the product symmetric: the order of the
    draws does not matter.

    The number of draws must be chosen beforehand; to look again and again, see `running_interval`.

    Args:
        values: One number in [0, 1] for each member, such as ``audit.per_member``.
        confidence: The share of such intervals that must hold: 0.95 is 95 of 100.

    Examples:
        >>> from holdfast.auditing.intervals import mean_interval, member_interval
        >>> rates = [0.1, 0.2, 0.1, 0.0, 0.1] * 4  # twenty members
        >>> low, high = mean_interval(rates)
        >>> high > member_interval(rates)[1]  # the price of allowing any distribution
        True

    Paper: betting is from [Waudby-Smith and Ramdas 2024](https://arxiv.org/abs/2010.09686).
    """
    draws = _draws(values)
    # Rates over n rows take n + 1 values at most; sorted, they give equal bits in any order.
    return _limits(*np.unique(draws, return_counts=True), _tail(confidence))


def running_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Limits after each draw, (k,) and (k,), that hold for all of them at once: look after every draw, stop at will.

    For draws in [0, 1] in the order in which they came, all of one mean μ given what came before (independent
    retrainings of one kind are). Then a product of constant bets keeps its expectation from one draw to the next,

        E[Πₜ₊₁ | the past] = Πₜ · (1 − c + c·E[Xₜ₊₁ | the past]/μ) = Πₜ,

    so it is a non-negative martingale that starts at 1, and so is its average over c. By Ville's inequality it *ever*
    exceeds 2/α with probability at most α/2. Hence the intervals of all prefixes, which are those of `mean_interval`,
    hold at once with probability 1 − α, and so does the intersection of those so far, which is what is returned.
    `mean_interval` at a fixed number of draws allows draws of different means; this does not.

    Args:
        values: One number in [0, 1] for each member, in the order in which they came.
        confidence: The share of such runs in which all intervals must hold: 0.95 is 95 of 100.

    Examples:
        >>> from holdfast.auditing.intervals import running_interval
        >>> low, high = running_interval([0.0] * 100)  # members that invalidate nothing
        >>> [f"{high[members - 1]:.2f}" for members in (10, 50, 100)]
        ['0.39', '0.09', '0.05']

    Paper: betting is from [Waudby-Smith and Ramdas 2024](https://arxiv.org/abs/2010.09686).
    """
    draws, tail = _draws(values), _tail(confidence)
    low, high = _rising_limit(draws, tail), 1 - _rising_limit(1 - draws, tail)
    if low[-1] > high[-1]:
        warnings.warn(
            f"no mean is left after {int((low > high).argmax()) + 1} draws: their mean seems to move "
            f"(for one mean this has probability at most {2 * tail:.3g}); audit each kind of change by itself",
            stacklevel=2,
        )
    return low, high


def bootstrap_interval(
    invalidated: ArrayLike, confidence: float = 0.95, draws: int = 2000, seed: int = 0
) -> tuple[float, float] | None:
    """Approximate limits of the rate over new rows *and* new members, from a (members, rows) table of booleans.

    The pigeonhole bootstrap (Owen 2007): rows and members are both drawn anew with replacement, and the limits are
    quantiles of the mean over the resampled tables. Another seed or another order of rows or members moves them within
    Monte Carlo error.

    Args:
        invalidated: Which member invalidates which row, such as ``audit.invalidated``.
        confidence: The share of such limits that must hold: 0.95 is 95 of 100.
        draws: How many tables are resampled.
        seed: The seed of the resampling.

    Returns:
        The limits, or None where there is too little to go on, which is a single member, or fewer than ten rows that
            some member invalidated (or, at the other end, that some member did not).

    Examples:
        >>> import numpy as np
        >>> from holdfast.auditing.intervals import bootstrap_interval
        >>> invalidated = np.zeros((30, 40), dtype=bool)  # 30 members, 40 rows
        >>> bootstrap_interval(invalidated) is None  # nothing to go on
        True
        >>> invalidated[:, ::2] = True  # every second row, by all members
        >>> low, high = bootstrap_interval(invalidated)
        >>> 0 < low < 0.5 < high < 1
        True

    Paper: the bootstrap is that of [Owen 2007](https://doi.org/10.1214/07-AOAS122).
    """
    table, tail = np.asarray(invalidated), _tail(confidence)
    check_whole("draws", draws)
    check_seed("seed", seed)
    if table.ndim != 2 or table.dtype != np.bool_:
        raise ValueError(
            f"expected a (members, rows) table of booleans, got {table.dtype} of shape {table.shape}; "
            "give audit.invalidated"
        )
    if draws < 1:
        raise ValueError(f"draws must be 1 or more, got {draws}; 2000 give 95 % limits that hardly move")
    invalidated_once, held_once = table.any(0).sum(), (~table).any(0).sum()
    if len(table) == 1 or min(invalidated_once, held_once) < FEWEST_INVALIDATED:
        return None
    pairs, (k, n) = table.astype(np.float64), table.shape
    means = [((members @ pairs) * rows).sum(1) / (k * n) for members, rows in _weights(k, n, draws, seed)]
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)


def rate_interval(rates: ArrayLike, kinds: Sequence[str], confidence: float = 0.95) -> tuple[float, float]:
    """Limits for the mean of members' rates: `member_interval` for one kind of members, `mean_interval` for several.

    Members of one kind are draws of one distribution. Pooled kinds have different means, which bets allow for.

    Args:
        rates: The rate of each member, such as ``audit.per_member``.
        kinds: How each member was retrained, such as ``audit.kinds``.
        confidence: The share of such intervals that must hold: 0.95 is 95 of 100.

    Examples:
        >>> from holdfast.auditing.intervals import member_interval, rate_interval
        >>> rates = [0.1, 0.2, 0.1, 0.0] * 5
        >>> rate_interval(rates, ["seeds"] * 20) == member_interval(rates)
        True

    Paper: [Learned-Miller and Thomas 2019](https://arxiv.org/abs/1905.06208) and [Waudby-Smith and Ramdas
    2024](https://arxiv.org/abs/2010.09686).
    """
    return (member_interval if len(set(kinds)) == 1 else mean_interval)(rates, confidence)


def members_needed(
    width: float,
    rate: float = 0.5,
    spread: float | None = None,
    confidence: float = 0.95,
    most: int = 100_000,
    running: bool = False,
) -> int:
    """How many members of one kind make the interval of an audit at most ``width`` wide.

    The members' rates are taken to follow a Beta law; a sample of n is its evenly spaced quantiles, each counted with
    an equal share of n. So the answer is that of a typical sample: about half of all audits of this size come out a
    little wider.

    Args:
        width: The width of the interval: 0.05 is five percentage points.
        rate: The mean of the members' rates.
        spread: Their standard deviation. None is the worst case, members that invalidate all rows or none: √(rate·(1 −
            rate)).
        confidence: The share of such intervals that must hold: 0.95 is 95 of 100.
        most: Give up beyond so many.
        running: Ask for the wider interval of `running_interval`, which `audit_until` looks at, instead of that of
            `member_interval`.

    Examples:
        >>> import holdfast as hf
        >>> hf.members_needed(0.1)  # the worst case, whatever the members say
        402
        >>> hf.members_needed(0.1, rate=0.1, spread=0.05)  # from a small audit
        40

    Paper: the interval is that of [Learned-Miller and Thomas 2019](https://arxiv.org/abs/1905.06208).
    """
    tail = _tail(confidence)
    check_number("width", width)
    check_whole("most", most)
    check_flag("running", running)
    if not 0 < width < 1:
        raise ValueError(f"width must lie between 0 and 1, got {width}; write 0.05 for five percentage points")
    if most < 1:
        raise ValueError(f"most must be 1 or more, got {most}")
    values, shares = _typical_rates(rate, spread)

    def wide(members: int) -> float:
        low, high = (_limits if running else _gaffke)(values, shares * (members / shares.sum()), tail)
        return high - low

    # The width falls in the number of members: a capital above 1 grows with equal shares of more draws, and a weighted
    # mean of more draws varies less.
    few, many = 0, 1
    while (reached := wide(many)) > width:
        if many == most:
            raise ValueError(
                f"even {most} members leave an interval {reached:.3g} wide, {width} was asked; "
                "ask for a wider one, give the members' spread, or raise most"
            )
        few, many = many, min(4 * many, most)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if wide(middle) <= width else (middle, many)
    return many


def _gaffke(values: Floats, counts: ArrayLike, tail: float) -> tuple[float, float]:
    """Both limits, Gaffke's, for values that were drawn so often; counts need not be whole."""
    # The lower limit is the upper one of −X, whose largest value is 0: small limits keep all their digits.
    return max(0.0, -_upper(-values, counts, tail, 0.0)), _upper(values, counts, tail)


def _upper(values: Floats, counts: ArrayLike, tail: float, end: float = 1.0) -> float:
    """Gaffke's upper limit for values that were drawn so often and cannot exceed ``end``."""
    return min(end, upper_quantile(np.append(values, end), np.append(counts, 1.0), tail))


def _limits(values: Floats, counts: ArrayLike, tail: float) -> tuple[float, float]:
    """Both limits, by betting, for values that were drawn so often; counts need not be whole."""
    often = np.asarray(counts, dtype=np.float64)
    return _lower_limit(values, often, tail), 1 - _lower_limit(1 - values, often, tail)


def _lower_limit(values: Floats, counts: Floats, tail: float, start: float | None = None) -> float:
    """The m at which the capital is 1/tail, by Newton's method in log m, from `start` where the capital is larger.

    In log m the log capital falls and is convex: each step from where it is too large leads closer and never
    past the limit, and the one step from the sample mean, where it is too small, leads to where it is too large.
    """
    mean = float(counts @ values / counts.sum())
    if mean == 0:
        return 0.0
    relative = values / mean  # at most the number of draws, however small the mean
    log_m = 0.0 if start is None else np.log(start / mean)
    factor, room = np.empty((2, len(BETS), len(values)))  # used again at every step
    for _ in range(100):
        np.multiply.outer(BETS, relative * np.exp(-log_m), out=factor)
        factor += (1 - BETS)[:, None]
        growth = np.log(factor, out=room) @ counts
        slope = (1 - BETS) * (np.reciprocal(factor, out=room) @ counts) - counts.sum()
        capital, share = _mixed(growth)
        before, log_m = log_m, max(log_m - (capital + np.log(tail)) / (share @ slope), LOWEST)
        if abs(log_m - before) < 1e-6:  # what is left is of the order of its square
            break
    return mean * float(np.exp(log_m))


def _rising_limit(draws: Floats, tail: float) -> Floats:
    """The largest lower limit of all prefixes so far. It rises only when the capital there passes 1/tail."""
    values, places = np.unique(draws, return_inverse=True)
    limits, limit, growth, counts = np.zeros(len(draws)), 0.0, np.zeros(len(BETS)), np.zeros(len(values))
    for number, (draw, value_index) in enumerate(zip(draws, places, strict=True)):
        counts[value_index] += 1
        if limit:
            growth += np.log(1 - BETS + BETS * (draw / limit))
            refuted = _mixed(growth)[0] > -np.log(tail)
        else:
            refuted = draw > 0
        if refuted:
            seen = counts > 0
            limit = max(limit, _lower_limit(values[seen], counts[seen], tail, limit or None))
            growth = np.log(np.multiply.outer(BETS, values[seen] / limit) + (1 - BETS)[:, None]) @ counts[seen]
        limits[number] = limit
    return limits


def _mixed(growth: Floats) -> tuple[float, Floats]:
    """The log of the mean capital over the bets, and each bet's share of it."""
    top = growth.max()
    capital = np.exp(growth - top)
    total = capital.sum()
    return float(top + np.log(total / len(BETS))), capital / total


def _typical_rates(rate: float, spread: float | None) -> tuple[Floats, Floats]:
    """Values of a Beta law of this mean and standard deviation, and their weights."""
    check_number("rate", rate)
    if spread is not None:
        check_number("spread", spread)
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must lie in [0, 1], got {rate}; write 0.05 for 5 %")
    worst = float(np.sqrt(rate * (1 - rate)))
    if spread is not None and not 0 <= spread <= worst + 1e-12:
        raise ValueError(
            f"rates in [0, 1] of mean {rate} have a spread from 0 to {worst:.3g}, got {spread}; "
            "leave it out for the worst case"
        )
    if spread is not None and spread <= 1e-6 * worst:  # as good as none, and too narrow for Beta quantiles
        return np.array([rate]), np.ones(1)
    if spread is not None and spread < 0.999 * worst:
        size = (worst / spread) ** 2 - 1
        quantiles = _beta_quantile(size * rate, size * (1 - rate), (np.arange(1000) + 0.5) / 1000)
        if abs(quantiles.mean() - rate) < 0.05 * rate:  # not so when nearly all of a rare law lies in its last one
            return quantiles, np.ones(1000)
    return np.array([0.0, 1.0]), np.array([1 - rate, rate])


def _weights(members: int, rows: int, draws: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """How often each resample holds each member and each row: (resamples, members) and (resamples, rows)."""
    generator = np.random.default_rng(seed)
    for done in range(0, draws, AT_ONCE):
        resamples = min(AT_ONCE, draws - done)
        yield _drawn(generator, resamples, members), _drawn(generator, resamples, rows)


def _drawn(generator: np.random.Generator, resamples: int, size: int) -> Floats:
    """Multinomial counts."""
    picked = generator.integers(size, size=(resamples, size)) + size * np.arange(resamples)[:, None]
    return np.bincount(picked.ravel(), minlength=resamples * size).reshape(resamples, size).astype(np.float64)


def _counts(successes: ArrayLike, trials: int) -> Floats:
    check_whole("trials", trials)
    try:
        count = np.asarray(successes, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"successes must be whole numbers from 0 to {trials} trials, got {successes!r}") from error
    if trials < 1 or not ((count >= 0) & (count <= trials) & (count == np.floor(count))).all():
        raise ValueError(
            f"expected one or more trials and successes from 0 to all of them, got {successes!r} of {trials} trials"
        )
    return count


def _draws(values: ArrayLike) -> Floats:
    try:
        draws = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"draws must be numbers in [0, 1], got {values!r}") from error
    if draws.ndim != 1 or not len(draws):
        raise ValueError(f"expected a one-dimensional array of one or more draws, got shape {draws.shape}")
    if not ((draws >= 0) & (draws <= 1)).all():
        raise ValueError(f"draws must lie in [0, 1], got {draws.min()} to {draws.max()}")
    return draws


def _tail(confidence: float) -> float:
    check_share("confidence", confidence)
    return (1 - confidence) / 2


def _beta_quantile(a: Any, b: Any, share: Any) -> Floats:
    from scipy.special import betaincinv  # loads slowly, and not every audit asks for single rows

    quantile: Floats = np.asarray(betaincinv(a, b, share))
    return quantile
