"""The cheapest point of a class for a model that only answers: few questions, each where the answer is worth most.

Every row is searched by itself, with so many questions as it is given. What is asked first are single changes from
home, and people of the class, with what the row cannot change as it is. From all answers a row keeps a model of its
own: the surrogate, plus a sum over features that is fitted to what the surrogate has got wrong. It costs no question,
so it is tried on thousands of points around the best one so far: one or two features changed, or all of them at some
price of the score. Only the few with the most to gain, the saving times the chance that the point is of the class, are
asked about. Points that are not valid, or that nobody is like, are never asked about.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.asked import Asked, itself, leading
from holdfast.search.gradients import LEAST_SCORE, slope
from holdfast.search.moves import Task
from holdfast.tabular.space import Space

CALLS = 2000  # rows that a black box is asked about for each person
AT_ONCE = 48  # of them in a round
SINGLE = 8  # one of so many for single changes from home
DONORS = 128  # people of the class whom a row may become, as far as it can change
PATIENCE = 12  # rounds without anything cheaper
ELITE = 3  # points of the class, and as many near to it, that a row goes on from
PEOPLE_AT_ONCE = 128
TOGETHER = 32  # moves that gain, and as many that save, of which every two are tried together
JOINED = 72  # such pairs that are looked at more closely
PRICES = 16  # of the score, at which every feature chooses for itself
BASIS = 192  # numbers that a row's own model has, about
RIDGE = 0.03
TINY = 1e-9
FIRST = (1.0, 0.5, 0.2, 0.75, 0.05, 0.35)  # of the way to a bound that a number is moved at first
WAYS = (1.0, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02, 0.005)  # and later, or back home


def cheapest_of_black_box(task: Task, calls: int = CALLS) -> Tensor:
    """The cheapest points found that score above 0; where there are none, the row itself: (n, d)."""
    if task.origin.device.type != "cpu":  # where tables are made and black boxes answer
        home = task.origin.cpu()
        own = replace(task, origin=home, target=task.target.cpu(), space=task.space.to(home))
        return cheapest_of_black_box(own, calls).to(task.origin)
    basis = Basis.of(task.space, able(itself(task.model)).learned[0].to(task.origin))
    best = task.origin.clone()
    for some in torch.split(torch.arange(len(best), device=best.device), PEOPLE_AT_ONCE):
        best[some] = _searched(task.of(some), basis, calls)
    return best


def _searched(task: Task, basis: Basis, calls: int) -> Tensor:
    """First among points that pass for people; whoever has none may be told of one that does not."""
    strict = task.guarded
    search = _Search(strict, basis, calls)
    search.run()
    point = search.best.clone()
    lost = torch.nonzero(search.least.isinf() & (search.count < calls)).flatten()
    if strict.people is not None and len(lost):
        others = _Search(task.of(lost), basis, calls, search.count[lost])
        others.run()
        point[lost] = others.best
    return point


# ---- what a row knows of the model ----


@dataclass(frozen=True)
class Basis:
    """Encoded rows as numbers of which a score is a sum: levels on or off, and straight lines between knots."""

    lines: Tensor  # (q,) columns of numbers that may change
    knots: Tensor  # (q, k) in increasing order
    levels: Tensor  # (g,) columns of groups
    off: Tensor  # (g,)
    on: Tensor  # (g,)

    @classmethod
    def of(cls, space: Space, rows: Tensor) -> Basis:
        """With knots where rows are."""
        movable = space.mutable | space.follows
        grouped = torch.zeros_like(movable)
        grouped[[column for group in space.groups for column in group.columns]] = True
        lines, levels = (torch.nonzero(movable & own).flatten() for own in (~grouped, grouped))
        each = max(2, min(24, (BASIS - min(len(levels), BASIS)) // max(1, len(lines))))
        quantiles = torch.linspace(0, 1, each, device=rows.device, dtype=rows.dtype)
        knots = torch.quantile(rows[:, lines], quantiles, dim=0).T if len(lines) else rows.new_zeros(0, each)
        low, high = space.lower[lines].to(rows)[:, None], space.upper[lines].to(rows)[:, None]
        even = low + (high - low).clamp_min(TINY) * quantiles
        return cls(lines, ((knots + even) / 2).contiguous(), levels, space.lower[levels], space.upper[levels])

    @property
    def size(self) -> int:
        return self.knots.numel() + len(self.levels)

    def __call__(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, size) in float64."""
        hats = x.new_zeros(len(x), *self.knots.shape, dtype=torch.float64)
        if len(self.lines):
            values = x[:, self.lines].T.contiguous()  # (q, n)
            left = (torch.searchsorted(self.knots, values) - 1).clamp(0, self.knots.shape[1] - 2)
            start, end = self.knots.gather(1, left), self.knots.gather(1, left + 1)
            share = ((values - start) / (end - start).clamp_min(TINY)).clamp(0, 1).T.double()[..., None]
            hats.scatter_(2, left.T[..., None], 1 - share)
            hats.scatter_(2, left.T[..., None] + 1, share)
        levels = ((x[:, self.levels] - self.off) / (self.on - self.off)).double()
        return torch.cat([hats.flatten(1), levels], 1)

    def parts(self, x: Tensor, weight: Tensor) -> Tensor:
        """What every column of points (n, t, d) adds with weights (n, size): (n, t, d)."""
        count = self.knots.numel()
        terms = self(x.flatten(0, 1)).view(*x.shape[:2], -1) * weight[:, None]
        added = torch.zeros_like(x)
        added[..., self.lines] = terms[..., :count].view(*x.shape[:2], *self.knots.shape).sum(-1).to(x)
        added[..., self.levels] = terms[..., count:].to(x)
        return added


@dataclass(frozen=True)
class _Elite:
    """The points of each row that rank lowest, none with the same columns changed as another."""

    points: Tensor  # (n, e, d)
    ranks: Tensor  # (n, e)
    changed: Tensor  # (n, e) a mark for the columns that are

    @classmethod
    def at(cls, origin: Tensor) -> _Elite:
        ranks = torch.full((len(origin), ELITE), torch.inf, dtype=torch.float64)
        return cls(origin[:, None].repeat(1, ELITE, 1), ranks, torch.zeros_like(ranks))

    def drop(self, rows: Tensor, gone: Tensor) -> None:
        self.ranks[rows] = torch.where(gone, torch.inf, self.ranks[rows])

    def keep(self, rows: Tensor, points: Tensor, ranks: Tensor, changed: Tensor) -> None:
        """Take in points (m, t, d) by their ranks; what ranks infinite is none."""
        points = torch.cat([self.points[rows], points], 1)
        ranks, changed = torch.cat([self.ranks[rows], ranks.double()], 1), torch.cat([self.changed[rows], changed], 1)
        ranks, order = ranks.sort(dim=1, stable=True)
        again = _repeated(changed.gather(1, order))
        ranks, place = torch.where(again, torch.inf, ranks).topk(ELITE, dim=1, largest=False)
        order = order.gather(1, place)
        real = (ranks < torch.inf)[..., None]
        chosen = points.gather(1, order[..., None].expand(-1, -1, points.shape[2]))
        self.points[rows] = torch.where(real, chosen, self.points[rows])
        self.ranks[rows], self.changed[rows] = ranks, changed.gather(1, order)


class _Search:
    """Some rows, what they were told, and the best that they have found."""

    def __init__(self, task: Task, basis: Basis, calls: int, spent: Tensor | None = None) -> None:
        rows = len(task.origin)
        self.task, self.basis, self.calls = task, basis, calls
        self.best, self.least = task.origin.clone(), torch.full_like(task.origin[:, 0], torch.inf)
        # The best points, each with other features changed than the others: the cheapest of the class, and those that
        # are nearest to it among cheaper ones.
        self.inside, self.near = (_Elite.at(task.origin) for _ in range(2))
        self.count = torch.zeros(rows, dtype=torch.long, device=self.best.device) if spent is None else spent.clone()
        self.leads = leading(task.model)
        self.led = self._led(task.origin[:, None])[:, 0]  # what the surrogate says of home
        self.home = basis(task.origin)
        size = basis.size + 1
        self.gram = torch.eye(size, dtype=torch.float64).repeat(rows, 1, 1) * RIDGE
        self.told = torch.zeros(rows, size, dtype=torch.float64)
        self.weight = torch.zeros_like(self.told)
        self.asked: Tensor = torch.zeros(rows, 0, dtype=torch.float64)  # marks of the points asked about
        self.marks = torch.rand(task.origin.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        self.error = torch.zeros(rows, 2, dtype=torch.float64)  # squares of what was predicted wrongly, and how many
        self.now = torch.zeros_like(self.least)  # the score at home
        self.donors = task.origin[:, None].repeat(1, DONORS, 1)  # people of the class, as far as a row can become one
        self.of_donors = torch.zeros(rows, DONORS, dtype=torch.bool)

    # ---- the rounds ----

    def run(self) -> None:
        everyone = torch.arange(len(self.best))
        self.now = self._ask(everyone, self.task.origin[:, None], torch.ones(len(self.best), 1, dtype=torch.bool))[:, 0]
        going = everyone[~(self.least == 0)]
        _, logits = able(itself(self.task.model)).learned
        if bool((logits == logits[:1]).all()):  # it says the same of everybody: there is nothing to look for
            return
        if len(going) and len(self.task.space.features):
            self._first(going)
            self._donors(going)
            self._rounds(going)

    def _rounds(self, going: Tensor) -> None:
        waited = torch.zeros(len(self.best), dtype=torch.long)
        for turn in range(self.calls):
            patience = torch.where(self.least[going] < torch.inf, PATIENCE, 2 * PATIENCE)
            going = going[(self.count[going] < self.calls) & (waited[going] < patience)]
            if not len(going):
                return
            self._learn(going)
            before = self.least[going].clone()
            self._round(going, turn)
            better = self.least[going] < before * (1 - 1e-3)
            waited[going] = torch.where(better, 0, waited[going] + 1)

    def _first(self, going: Tensor) -> None:
        """Every feature by itself, some way to its ends, and every level."""
        task = self.task.of(going)
        points = _singles(task, task.origin, _proposals(task, task.origin, [], FIRST))
        points, valid = _completed(task, task.origin, points)
        rank = -torch.arange(points.shape[1], dtype=torch.float64).expand(points.shape[:2])
        rank = torch.where(valid, rank, -torch.inf)
        self._ask_best(going, points, rank, max(AT_ONCE, self.calls // SINGLE))

    def _donors(self, going: Tensor) -> None:
        """The people of the class, as the model sees them, who are cheapest to become."""
        task = self.task.of(going)
        rows, logits = able(itself(task.model)).learned
        rows, own = rows.to(task.origin), logits.argmax(1)
        for label in sorted(set(task.target.tolist())):
            people, wanted = rows[own == label], torch.nonzero(task.target == label).flatten()
            if not len(people):
                continue
            some, most = task.of(wanted), min(DONORS, len(people))
            changeable = some.space.changeable
            mixed = torch.where(
                changeable if changeable.ndim == 1 else changeable[:, None], people, some.origin[:, None]
            )
            near = some.cost(mixed).topk(most, dim=1, largest=False).indices
            points = mixed.gather(1, near[..., None].expand(-1, -1, mixed.shape[2]))
            every = torch.arange(len(wanted)).repeat_interleave(most)
            snapped = some.space.of(every).snap(points.flatten(0, 1), some.origin[every]).view(points.shape)
            self.donors[going[wanted], :most], self.of_donors[going[wanted], :most] = snapped, True
            self._ask_best(going[wanted], snapped, -some.cost(snapped).double(), AT_ONCE)

    def _round(self, going: Tensor, turn: int) -> Tensor:
        """Ask about the most promising points around the best, another and home, and donors; who had any: (m,)."""
        task = self.task.of(going)
        found = (self.least[going] < torch.inf)[:, None]
        inside, near = self.inside.points[going], self.near.points[going]
        best = torch.where(found, inside[:, 0], near[:, 0])
        second = torch.where(found, near[:, turn % ELITE], near[:, 1 + turn % (ELITE - 1)])
        others = [second, task.origin, inside[:, 1 + turn % (ELITE - 1)], self.donors[going, turn % DONORS]]
        points, valid = [], []
        for base in [best, others[turn % 4]]:
            whole, fits = _completed(task, base, self._promising(going, task, base, turn))
            points.append(whole)
            valid.append(fits)
        pool, fits = torch.cat([*points, self.donors[going]], 1), torch.cat([*valid, self.of_donors[going]], 1)
        worth = self._worth(going, task.cost(pool), self._expected(going, pool))
        return self._ask_best(going, pool, torch.where(fits, worth, -torch.inf), AT_ONCE)

    # ---- which points ----

    def _promising(self, going: Tensor, task: Task, base: Tensor, turn: int) -> Tensor:
        """Points with one feature of the base changed, with two, and with each as it likes at some price: (m, t, d)."""
        elite = [*self.inside.points[going].unbind(1), *self.near.points[going].unbind(1)]
        hints = [*elite, *(self.donors[going, (turn * 3 + k) % DONORS] for k in range(3))]
        proposals = _proposals(task, base, hints, WAYS)  # (m, p, d)
        at_home = self.basis.parts(torch.cat([proposals, base[:, None]], 1), self.weight[going][:, :-1])
        slope = self._slope(task, base) * (1 + self.weight[going, -1:]).to(base)
        gain = task.space.per_feature(at_home[:, :-1] - at_home[:, -1:] + (proposals - base[:, None]) * slope[:, None])
        extra = task.costs(proposals) - task.costs(base[:, None])  # (m, p, f)
        changed = task.space.per_feature((proposals != base[:, None]).to(base)) > 0
        now = self._expected(going, base[:, None])[:, 0].to(base)
        pairs = self._pairs(going, task, base, proposals, (gain, extra, changed), now)
        return torch.cat([pairs, _at_prices(task, base, proposals, gain, extra, changed)], 1)

    def _pairs(
        self,
        going: Tensor,
        task: Task,
        base: Tensor,
        proposals: Tensor,
        table: tuple[Tensor, Tensor, Tensor],
        now: Tensor,
    ) -> Tensor:
        gain, extra, changed = (part.flatten(1) for part in table)
        most = min(TOGETHER, gain.shape[1])
        gains = torch.where(changed & (gain > 0), gain / extra.clamp_min(TINY), -torch.inf).topk(most, dim=1)
        saves = torch.where(changed & (extra < 0), -extra / (-gain).clamp_min(TINY), -torch.inf).topk(most, dim=1)
        moves = torch.cat([gains.indices, saves.indices], 1)  # (m, s)
        real = torch.cat([gains.values, saves.values], 1) > -torch.inf
        features, stays = len(task.space.features), moves.new_zeros(len(moves), 1)
        own = [torch.cat([part.gather(1, moves), part.new_zeros(len(part), 1)], 1) for part in (gain, extra)]
        which, real = torch.cat([moves % features, stays - 1], 1), torch.cat([real, stays == 0], 1)
        cost = task.cost(base)[:, None, None] + own[1][:, :, None] + own[1][:, None]
        worth = self._worth(going, cost, now[:, None, None] + own[0][:, :, None] + own[0][:, None])
        apart = (which[:, :, None] != which[:, None]) & real[:, :, None] & real[:, None]
        apart &= torch.ones_like(apart[0]).triu(1)
        worth = torch.where(apart, worth, -torch.inf).flatten(1)
        chosen = worth.topk(min(JOINED, worth.shape[1]), dim=1).indices
        count, moves, points = which.shape[1], torch.cat([moves, stays], 1), base[:, None]
        rows = torch.arange(len(base))[:, None]
        for turn in (chosen // count, chosen % count):
            move, mask = moves.gather(1, turn), task.space.features[which.gather(1, turn).clamp_min(0)]
            mask = mask & (which.gather(1, turn) >= 0)[..., None]
            points = torch.where(mask, proposals[rows, move // features], points)
        return points

    def _worth(self, going: Tensor, cost: Tensor, expected: Tensor) -> Tensor:
        """How much there is to gain by asking about points: the saving times the chance that it is one."""
        shape = (-1, *[1] * (cost.ndim - 1))
        squares, count = self.error[going].unbind(1)
        sigma = ((squares + (0.3 * self.now[going].double()) ** 2 + 1e-4) / (count + 1)).sqrt().view(shape)
        likely = torch.nn.functional.logsigmoid(1.7 * (expected.double() - 2 * LEAST_SCORE) / sigma)
        least = self.least[going].double().view(shape)
        saved = least - cost.double()
        worth = torch.where(least.isinf(), -(cost.double() + TINY).log(), saved.clamp_min(TINY).log()) + likely
        return torch.where(saved > 1e-6 * cost, worth, -torch.inf)

    # ---- asking and learning ----

    def _ask_best(self, going: Tensor, points: Tensor, worth: Tensor, most: int) -> Tensor:
        """Ask about the best of the points (m, t, d) that are plausible, cheaper and new; which rows had any: (m,)."""
        task = self.task.of(going)
        cost = task.cost(points)
        marks = points.double() @ self.marks
        worth = torch.where((cost < self.least[going][:, None]) & (cost > 0), worth, -torch.inf)
        worth = torch.where(self._known(going, marks), -torch.inf, worth)
        order = worth.argsort(dim=1, descending=True, stable=True)
        worth, marks = worth.gather(1, order), marks.gather(1, order)
        points = points.gather(1, order[..., None].expand(-1, -1, points.shape[2]))
        real = (worth > -torch.inf) & ~_repeated(marks)
        if task.people is not None:
            real = _plausible_first(task, points, real, most)
        left = (self.calls - self.count[going]).clamp(0, most)
        real &= real.cumsum(1) <= left[:, None]
        if real.any():
            self._ask(going, points, real)
        return real.any(1)

    def _known(self, going: Tensor, marks: Tensor) -> Tensor:
        """Which of the points have been asked about: (m, t)."""
        asked = self.asked[going].sort(1).values
        if not asked.shape[1]:
            return torch.zeros_like(marks, dtype=torch.bool)
        place = torch.searchsorted(asked, marks.contiguous()).clamp_max(asked.shape[1] - 1)
        return asked.gather(1, place) == marks

    def _ask(self, going: Tensor, points: Tensor, real: Tensor) -> Tensor:
        """What the model says of the points (m, t, d) that are real: (m, t); all that follows from it is noted."""
        who, which = torch.nonzero(real, as_tuple=True)
        task, asked = self.task.of(going[who]), points[who, which]
        with torch.no_grad():
            scores = task.score(task.model, asked, task.target, task.origin)
        if isinstance(task.model, Asked) and able(itself(task.model)).trees is None:
            task.model.tally.rows += len(asked)
        told = torch.full_like(points[..., 0], -torch.inf)
        told[who, which] = scores
        self.count[going] += real.sum(1)
        self._note(going, points, real, told)
        return told

    def _note(self, going: Tensor, points: Tensor, real: Tensor, told: Tensor) -> None:
        cost = self.task.of(going).cost(points)
        rows = torch.arange(len(going))
        good = torch.where(real & (told > LEAST_SCORE), cost, torch.inf)
        least, place = good.min(1)
        better = least < self.least[going]
        self.best[going] = torch.where(better[:, None], points[rows, place], self.best[going])
        self.least[going] = torch.where(better, least, self.least[going])
        is_inside, cheap = told > LEAST_SCORE, cost < 0.98 * self.least[going][:, None]
        self.inside.keep(going, points, torch.where(real & is_inside, cost, torch.inf), self._changed(going, points))
        self.near.drop(going, self.task.of(going).cost(self.near.points[going]) >= 0.98 * self.least[going][:, None])
        near = torch.where(real & ~is_inside & cheap, -told, torch.inf)
        self.near.keep(going, points, near, self._changed(going, points))
        marks = torch.full((len(self.best), points.shape[1]), torch.inf, dtype=torch.float64)
        marks[going] = torch.where(real, points.double() @ self.marks, torch.inf)
        self.asked = torch.cat([self.asked, marks], 1)
        if points.shape[1] > 1:
            self._remember(going, points, real, told)

    def _changed(self, going: Tensor, points: Tensor) -> Tensor:
        """A mark for which columns the points (m, t, d) change: (m, t)."""
        return (points != self.task.origin[going][:, None]).double() @ self.marks

    def _remember(self, going: Tensor, points: Tensor, real: Tensor, told: Tensor) -> None:
        """Add what the surrogate got wrong to what a row's own model is fitted to."""
        terms, led = self._terms(going, points)
        wrong = (told - self.now[going][:, None] - led).double()
        usual = self.now[going].double().abs()[:, None] + 1e-3
        weight = torch.where(real, 1 / (1 + (told.double() / usual) ** 2), 0)
        wrong = torch.where(real, wrong, 0)
        weighted = terms * weight[..., None]
        self.gram[going] += weighted.transpose(1, 2) @ terms
        self.told[going] += (weighted * wrong[..., None]).sum(1)
        off = torch.where(real, wrong - (terms @ self.weight[going][..., None])[..., 0], 0)
        some = 0.7 * self.error[going]
        self.error[going] = some + torch.stack([(weight * off**2).sum(1), weight.sum(1)], 1)

    def _learn(self, going: Tensor) -> None:
        self.weight[going] = torch.linalg.solve(self.gram[going], self.told[going])

    def _expected(self, going: Tensor, points: Tensor) -> Tensor:
        """The score that a row's own model gives points (m, t, d): (m, t)."""
        terms, led = self._terms(going, points)
        return self.now[going][:, None] + led + (terms @ self.weight[going][..., None])[..., 0]

    def _terms(self, going: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        """What a row's own model adds up, less that at home (m, t, size + 1), and how the surrogate changes (m, t)."""
        led = self._led(points, going).double() - self.led[going].double()[:, None]
        terms = self.basis(points.flatten(0, 1)).view(*points.shape[:2], -1) - self.home[going][:, None]
        return torch.cat([terms, led[..., None]], 2), led

    def _led(self, points: Tensor, going: Tensor | None = None) -> Tensor:
        """What the surrogate says of the points (m, t, d): (m, t)."""
        task = self.task if going is None else self.task.of(going)
        return replace(task, model=self.leads).tried(task.score, points)

    def _slope(self, task: Task, base: Tensor) -> Tensor:
        return slope(task.score, self.leads, base, task.target, task.origin)[1]


def _repeated(marks: Tensor) -> Tensor:
    """Which marks have come before in their row: (n, t)."""
    ordered, order = marks.sort(dim=1, stable=True)
    again = torch.zeros_like(marks, dtype=torch.bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    return torch.zeros_like(again).scatter(1, order, again)


def _plausible_first(task: Task, points: Tensor, real: Tensor, most: int) -> Tensor:
    """Which of the points (n, t, d) pass for people, judged in their order until each row has ``most``: (n, t)."""
    passed, turn = torch.zeros_like(real), real.cumsum(1)
    for last in range(most, int(turn.max()) + most, most):
        short = (passed.sum(1) < most)[:, None]
        who, which = torch.nonzero(real & short & (turn > last - most) & (turn <= last), as_tuple=True)
        passed[who, which] = task.of(who).plausible(points[who, which])
    return passed


def _proposals(task: Task, base: Tensor, hints: list[Tensor], ways: tuple[float, ...]) -> Tensor:
    """Valid points to take features from: some way home and to the bounds, every level, the hints: (n, p, d)."""
    ends = torch.stack([*task.space.bounds(task.origin), task.origin], dim=1)  # (n, 3, d)
    shares = torch.tensor(ways).to(base)[:, None, None]
    points = (base[:, None, None] + shares * (ends - base[:, None])[:, None]).flatten(1, 2)
    every = torch.arange(len(base)).repeat_interleave(points.shape[1])
    valid = task.space.of(every).snap_apart(points.flatten(0, 1), task.origin[every]).view(points.shape)
    return torch.cat([valid, *(each[:, None] for each in (*task.space.levels(base, task.origin), *hints))], 1)


def _singles(task: Task, base: Tensor, proposals: Tensor) -> Tensor:
    """The base with one feature of one proposal: (n, p · f, d)."""
    masks = task.space.features  # (f, d)
    points = torch.where(masks, proposals[:, :, None], base[:, None, None])  # (n, p, f, d)
    return points.flatten(1, 2)


def _at_prices(task: Task, base: Tensor, proposals: Tensor, gain: Tensor, extra: Tensor, changed: Tensor) -> Tensor:
    """Every feature where the score it gains is worth its cost, at one price of it after the other: (n, l, d)."""
    ratio = torch.where((gain > 0) & (extra > 0) & changed, extra / gain.clamp_min(TINY), torch.nan).flatten(1)
    prices = torch.nanquantile(ratio, torch.linspace(0, 1, PRICES).to(ratio), dim=1).nan_to_num(0)  # (l, n)
    owner = task.space.features.to(torch.int8).argmax(0)  # of each column
    movable = task.space.features.any(0)
    points = []
    for price in prices * 1.001:
        loss = torch.where(changed, extra - price[:, None, None] * gain, torch.inf)
        least, place = loss.min(1)  # (n, f)
        taken = proposals.gather(1, place[:, owner][:, None])[:, 0]
        points.append(torch.where(movable & (least < 0)[:, owner], taken, base))
    return torch.stack(points, dim=1)


def _completed(task: Task, base: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
    """The points (n, t, d) with what relations demand beside what differs from the base, and which are valid."""
    valid = torch.ones_like(points[..., 0], dtype=torch.bool)
    if task.space.related is None:
        return points, valid
    every = torch.arange(len(points)).repeat_interleave(points.shape[1])
    home = task.space.values(task.origin)
    kept = points != base[:, None]
    whole, valid = task.space.of(every).completed(
        points.flatten(0, 1), task.origin[every], kept.flatten(0, 1), home[every]
    )
    return whole.view_as(points), valid.view(points.shape[:2])
