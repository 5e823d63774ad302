"""The search inside an ensemble of trees, one person at a time, compiled by numba.

A person is one cell per feature. Every kernel takes the same ``world``: the nodes of the trees, where the cells of each
feature begin, which trees can feel a step across each threshold (a walk along a feature asks only those), and what is
wanted. A *state* is (cells, leaves, total): where somebody is, the leaf of every tree there, the sum of their values.
A *person* is (home, cost, first, last): their cells, what every cell costs them, and how far each number can go. The
*desk* is room to work: scores of moves, leaves and sums on a walk, the features that the person can move, and other
cells that will do, with their number: what is cheapest may not be what a person is advised.

The trees may be those of several models, the deployed one first; then a total has the outputs of each, one after
another, and all but so many of the others must agree with the deployed model. Few of them matter to one person. So a
search listens to the deployed model alone at first, and to others from the first time that they object to what it has
found (`objection`): nothing is taken for good that any of those who must agree objects to.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

NEVER = -1e300
LEVELS, MISSING_LEFT = 2, 1  # kinds of nodes, beside 0
LEAST_SAVING = 1e-9
SPARE = 1.5  # times what a point costs that a way around it may cost, before what is needless is taken back
PROMISING = 1.3  # times the best so far that another start may cost, to be improved
HURRIED = 1.1, 1.0  # the same two, where several models are searched together and every move takes longer
ROUNDS = 60  # improvements of one start, at most
POWERS = 3  # starts from home, at different prices
BOXES = 32  # starts from the boxes of people, where none from home leads to the class,
RANDOM = 64  # and from random cells, where none of these does

# What only kernels call needs no way in from Python, which takes long to compile.
_njit: Any = numba.njit
_inner = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")
_entry = _njit(cache=True, error_model="numpy")


@_inner
def put(values, into):  # type: ignore[no-untyped-def]
    """Copy an array; quicker to compile than to assign a slice."""
    for at in range(into.shape[0]):
        into[at] = values[at]


@_inner
def score_by(member, total, settings, group, kinds):  # type: ignore[no-untyped-def]
    """How far the sums of one model are above what is wanted."""
    odds, least, target = settings[1] > 0, settings[2], int(settings[3])
    probability, outputs, start = kinds[member, 0] > 0, kinds[member, 1], kinds[member, 2]
    if outputs == 1:
        raw = total[start]
        if probability:
            share = min(max(raw, 1e-12), 1.0)
            other = min(max(1.0 - raw, 1e-12), 1.0)
            raw = np.log(share) - np.log(other)
        return (raw if group[member, 1] == target else -raw) - least
    # The largest logit of the target's group, of all others, and the odds against all other groups together.
    own, highest, rest = -np.inf, -np.inf, 0.0
    for label in range(int(settings[4])):
        best = -np.inf
        for out in range(outputs):
            if group[member, out] == label:
                raw = total[start + out]
                best = max(best, np.log(min(max(raw, 1e-12), 1.0)) if probability else raw)
        if label == target:
            own = best
        elif best > highest:
            rest = rest * np.exp(highest - best) + 1.0
            highest = best
        else:
            rest += np.exp(best - highest)
    return own - highest - (np.log(rest) if odds else 0.0) - least


@_inner
def least_by(total, everyone, floor, settings, group, kinds, heard, lowest):  # type: ignore[no-untyped-def]
    """The least score of the deployed model and of others, all but the lowest so many: of everyone, or those heard.

    Where it is below the floor, it may be any number below.
    """
    own = score_by(0, total, settings, group, kinds)
    if heard.shape[0] == 1 or own < floor:
        return own
    last = lowest.shape[0] - 1
    for at in range(last + 1):
        lowest[at] = np.inf
    for member in range(1, heard.shape[0]):
        if not everyone and not heard[member]:
            continue
        score = score_by(member, total, settings, group, kinds)
        if score < lowest[last]:
            at = last
            while at > 0 and lowest[at - 1] > score:
                lowest[at] = lowest[at - 1]
                at -= 1
            lowest[at] = score
            if lowest[last] < floor:
                break
    return min(own, lowest[last])


@_inner
def least_of(total, world):  # type: ignore[no-untyped-def]
    """How far the sums are above what is wanted, by everyone."""
    return least_by(total, True, -np.inf, world[10], world[11], world[12], world[14], world[15])


@_inner
def score_of(total, world):  # type: ignore[no-untyped-def]
    """How far the sums are above what is wanted, by those who are heard."""
    return least_by(total, False, -np.inf, world[10], world[11], world[12], world[14], world[15])


@_inner
def objection(state, world):  # type: ignore[no-untyped-def]
    """Whether models that were not heard object to a state; those who decide that are heard from now on."""
    settings, group, kinds, heard, lowest = world[10], world[11], world[12], world[14], world[15]
    if heard.shape[0] == 1 or least_of(state[2], world) >= settings[5]:
        return False
    limit = lowest[lowest.shape[0] - 1]
    for member in range(1, heard.shape[0]):
        heard[member] = heard[member] or score_by(member, state[2], settings, group, kinds) <= limit
    return True


@_inner
def leaf_at(tree, cells, world):  # type: ignore[no-untyped-def]
    """The leaf of a tree that some cells (f,) reach."""
    return leaf_below(world[2][tree], cells, world[0], world[3], world[4])


@_inner
def leaf_below(node, cells, nodes, sets, layout):  # type: ignore[no-untyped-def]
    """The leaf that some cells (f,) reach from a node."""
    while nodes[node, 0] >= 0:
        cell, split, kind = cells[nodes[node, 0]], nodes[node, 1], nodes[node, 2]
        if kind == LEVELS:
            goes_left = sets[split, cell]
        else:
            goes_left = cell <= split or (kind == MISSING_LEFT and cell == layout[nodes[node, 0], 2])
        node = np.int64(nodes[node, 3] if goes_left else nodes[node, 4])
    return node


@_entry
def scores_of(cells, world):  # type: ignore[no-untyped-def]
    """The scores of rows (n, f): (n,)."""
    value, roots, base, owner = world[1], world[2], world[9], world[13]
    found = np.empty(cells.shape[0])
    total = np.empty(base.shape[0])
    for row in range(cells.shape[0]):
        put(base, total)
        for tree in range(roots.shape[0]):
            leaf, start = leaf_at(tree, cells[row], world), owner[tree] * value.shape[1]
            for out in range(value.shape[1]):
                total[start + out] += value[leaf, out]
        found[row] = least_of(total, world)
    return found


# ---- states ----


@_inner
def place(state, cells, world):  # type: ignore[no-untyped-def]
    """Put a state where the cells say."""
    put(cells, state[0])
    for tree in range(state[1].shape[0]):
        state[1][tree] = leaf_at(tree, state[0], world)
    sum_up(state, world)


@_inner
def sum_up(state, world):  # type: ignore[no-untyped-def]
    """Add up anew, so that no rounding adds up."""
    value, base, owner = world[1], world[9], world[13]
    _, leaves, total = state
    put(base, total)
    for tree in range(leaves.shape[0]):
        start = owner[tree] * value.shape[1]
        for out in range(value.shape[1]):
            total[start + out] += value[leaves[tree], out]


@_inner
def copy(state, other):  # type: ignore[no-untyped-def]
    put(state[0], other[0])
    put(state[1], other[1])
    put(state[2], other[2])


@_inner
def empty_state(features, trees, outputs):  # type: ignore[no-untyped-def]
    return np.zeros(features, np.int64), np.zeros(trees, np.int64), np.zeros(outputs)


@_inner
def move(state, feature, cell, world):  # type: ignore[no-untyped-def]
    """Move one feature of a state."""
    uses_start, uses = world[7], world[8]
    state[0][feature] = cell
    for at in range(uses_start[feature], uses_start[feature + 1]):
        state[1][uses[at]] = leaf_at(uses[at], state[0], world)
    sum_up(state, world)


@_inner
def price(cells, cost, world):  # type: ignore[no-untyped-def]
    layout = world[4]
    paid = 0.0
    for feature in range(cells.shape[0]):
        paid += cost[layout[feature, 0] + cells[feature]]
    return paid


# ---- all moves of one feature ----


@_inner
def step(begin, end, cells, walked, sums, nodes, value, sets, layout, touch, owner, heard):  # type: ignore[no-untyped-def]
    """The leaves and their sums after a step across the thresholds of some nodes. Says whether any has changed.

    Nodes come before those below them. One that is not above the leaf of its tree, or whose model is not heard,
    changes nothing. (Arrays out of a tuple are counted whenever they are taken, so `scan` takes them once.)
    """
    changed = False
    for at in range(begin, end):
        node, tree = touch[at, 0], touch[at, 2]
        before = walked[tree]
        if before < node or before >= touch[at, 1] or not heard[owner[tree]]:
            continue
        leaf = leaf_below(node, cells, nodes, sets, layout)
        if leaf != before:
            start = owner[tree] * value.shape[1]
            for out in range(value.shape[1]):
                sums[start + out] += value[leaf, out] - value[before, out]
            walked[tree] = leaf
            changed = True
    return changed


@_inner
def jump(feature, cells, walked, sums, world):  # type: ignore[no-untyped-def]
    """The same after any move of a feature."""
    value, uses_start, uses, owner, heard = world[1], world[7], world[8], world[13], world[14]
    changed = False
    for at in range(uses_start[feature], uses_start[feature + 1]):
        tree = uses[at]
        if not heard[owner[tree]]:
            continue
        leaf, before = leaf_at(tree, cells, world), walked[tree]
        if leaf != before:
            start = owner[tree] * value.shape[1]
            for out in range(value.shape[1]):
                sums[start + out] += value[leaf, out] - value[before, out]
            walked[tree] = leaf
            changed = True
    return changed


@_inner
def scan(feature, limit, floor, state, person, desk, world):  # type: ignore[no-untyped-def]
    """The score after each move of one feature to a cell that costs less than ``limit``; others at NEVER.

    A score below the floor may be any number below.
    """
    home, cost, first, last = person
    scores, walked, sums = desk[0], desk[1], desk[2]
    nodes, value, sets, layout, touch_start, touch = world[0], world[1], world[3], world[4], world[5], world[6]
    uses_start, uses, owner = world[7], world[8], world[13]
    settings, group, kinds, heard, lowest = world[10], world[11], world[12], world[14], world[15]
    alone = heard.shape[0] == 1
    cells, leaves, total = state
    here, own = cells[feature], home[feature]
    start, end, lost = layout[feature, 0], layout[feature + 1, 0], layout[feature, 2]
    for k in range(start, end):
        scores[k] = NEVER
    is_number = layout[feature, 1] > 0
    # Turn 0: upwards along a number; turn 1: downwards; turn 2: one cell after another, all trees of the feature asked.
    for turn in range(3):
        if (turn < 2) != (is_number and here != lost) and not (turn == 2 and own == lost):
            continue
        for at in range(uses_start[feature], uses_start[feature + 1]):
            walked[uses[at]] = leaves[uses[at]]
        put(total, sums)
        score, changed = 0.0, True
        cell = here if turn < 2 else -1
        way = -1 if turn == 1 else 1
        while True:
            cell += way
            if turn < 2:
                if not first[feature] <= cell <= last[feature]:
                    break
                paid = cost[start + cell]
                if (cell - own) * way > 0 and own != lost and limit <= paid < np.inf:
                    break
                cells[feature] = cell
                edge = start + cell - (1 if way > 0 else 0)
                begin, to = touch_start[edge], touch_start[edge + 1]
                changed |= step(begin, to, cells, walked, sums, nodes, value, sets, layout, touch, owner, heard)
            else:
                if cell >= end - start:
                    break
                if cell == here or not cost[start + cell] < limit or (here != lost and is_number and cell != lost):
                    continue
                cells[feature] = cell
                changed |= jump(feature, cells, walked, sums, world)
            if cost[start + cell] < limit:
                if changed:
                    changed = False
                    if alone:
                        score = score_by(0, sums, settings, group, kinds)
                    else:
                        score = least_by(sums, False, floor, settings, group, kinds, heard, lowest)
                scores[start + cell] = score
    cells[feature] = here


# ---- from a state to another ----


@_inner
def reach(state, budget, power, barred, person, desk, world):  # type: ignore[no-untyped-def]
    """Towards the class by the moves that gain most for their cost, as long as less than ``budget`` is spent.

    What a move costs counts to the power: 0 takes the largest gains, whatever they cost. Says whether it got there.
    """
    cost, scores, active = person[1], desk[0], desk[3]
    layout, need = world[4], world[10][5]
    for _ in range(3 * active.shape[0] + 3 * world[14].shape[0]):
        now = score_of(state[2], world)
        if now >= need:
            if not objection(state, world):
                return True
            now = score_of(state[2], world)
        paid = price(state[0], cost, world)
        best, chosen, to = 0.0, np.int64(-1), np.int64(-1)
        for feature in active:
            if feature == barred:
                continue
            here = cost[layout[feature, 0] + state[0][feature]]
            scan(feature, budget - paid + here, now, state, person, desk, world)
            for k in range(layout[feature, 0], layout[feature + 1, 0]):
                gain = min(scores[k], need) - now
                if gain <= 1e-12:
                    continue
                extra = cost[k] - here
                rate = gain / extra**power if extra > 1e-9 else gain * 1e9
                if rate > best:
                    best, chosen, to = rate, feature, k - layout[feature, 0]
        if chosen < 0:
            return False
        move(state, chosen, to, world)
    return least_of(state[2], world) >= need


@_inner
def reduce(state, barred, person, desk, world):  # type: ignore[no-untyped-def]
    """Take back what is not needed, the largest saving first, unless anybody objects. Returns what is left to pay."""
    cost, scores, active = person[1], desk[0], desk[3]
    layout, need = world[4], world[10][5]
    while True:
        best, chosen, to = 1e-12, np.int64(-1), np.int64(-1)
        for feature in active:
            here = cost[layout[feature, 0] + state[0][feature]]
            if feature == barred or here <= best:
                continue
            scan(feature, here - best, need, state, person, desk, world)
            for k in range(layout[feature, 0], layout[feature + 1, 0]):
                if scores[k] >= need and here - cost[k] > best:
                    best, chosen, to = here - cost[k], feature, k - layout[feature, 0]
        if chosen < 0:
            return price(state[0], cost, world)
        back = state[0][chosen]
        move(state, chosen, to, world)
        if objection(state, world):
            move(state, chosen, back, world)


@_inner
def note(state, desk):  # type: ignore[no-untyped-def]
    """Write the cells of a state down among those that will do, if there is room and they are new."""
    noted, count, cells = desk[4], desk[5], state[0]
    if count[0] == noted.shape[0]:
        return
    for other in range(count[0]):
        same = True
        for feature in range(cells.shape[0]):
            same = same and noted[other, feature] == cells[feature]
        if same:
            return
    put(cells, noted[count[0]])
    count[0] += 1


@_inner
def rebuilt(state, trial, person, desk, world):  # type: ignore[no-untyped-def]
    """One feature taken back, whole or half, and greedily to the class again by others.

    Says whether that is cheaper; the state is that then.
    """
    cost = person[1]
    layout = world[4]
    paid, spare = price(state[0], cost, world), SPARE if world[14].shape[0] == 1 else HURRIED[0]
    for feature in desk[3]:
        start = layout[feature, 0]
        here = cost[start + state[0][feature]]
        if here <= 0:
            continue
        for turn in range(3):
            # The dearest cell that costs at most nothing, or half.
            back = start + state[0][feature]
            for k in range(start, layout[feature + 1, 0]):
                if cost[k] <= (here / 2 if turn == 2 else 0.0) and (cost[back] == here or cost[k] > cost[back]):
                    back = k
            if turn == 2 and cost[back] <= 0:
                continue
            copy(state, trial)
            move(trial, feature, back - start, world)
            if not reach(trial, spare * paid, 0.5 if turn == 1 else 1.0, feature, person, desk, world):
                continue
            less = reduce(trial, np.int64(-1), person, desk, world) < paid - LEAST_SAVING
            note(trial, desk)
            if less:
                copy(trial, state)
                return True
    return False


@_inner
def added(state, trial, person, desk, world):  # type: ignore[no-untyped-def]
    """One more move, and what it makes needless taken back. Whether that is cheaper; the state is that then."""
    cost, scores, active = person[1], desk[0], desk[3]
    layout = world[4]
    paid, now = price(state[0], cost, world), score_of(state[2], world)
    for feature in active:
        start = layout[feature, 0]
        here = cost[start + state[0][feature]]
        scan(feature, paid, now, state, person, desk, world)
        best_rate, at_rate, best_gain, at_gain = 0.0, -1, 0.0, -1
        for k in range(start, layout[feature + 1, 0]):
            gain, extra = scores[k] - now, cost[k] - here
            if gain <= 1e-12 or extra <= 0:
                continue
            if gain / extra > best_rate:
                best_rate, at_rate = gain / extra, k
            if gain > best_gain:
                best_gain, at_gain = gain, k
        for turn in range(2):
            k = at_rate if turn == 0 else at_gain
            if k < 0 or (turn == 1 and at_gain == at_rate):
                continue
            copy(state, trial)
            move(trial, feature, k - start, world)
            reduce(trial, feature, person, desk, world)
            less = reduce(trial, np.int64(-1), person, desk, world) < paid - LEAST_SAVING
            note(trial, desk)
            if less:
                copy(trial, state)
                return True
    return False


# ---- people ----


@_entry
def boxes(people, world):  # type: ignore[no-untyped-def]
    """For each person (m, f) the cells that reach the same leaves: first, last (m, f), and which levels (m, k)."""
    nodes, roots, sets, layout = world[0], world[2], world[3], world[4]
    features = people.shape[1]
    low, high = np.zeros(people.shape, np.int64), np.zeros(people.shape, np.int64)
    levels = np.zeros((people.shape[0], layout[features, 0]), np.bool_)
    for who in range(people.shape[0]):
        cells = people[who]
        for k in range(layout[features, 0]):
            levels[who, k] = True
        for own in range(features):
            lost = layout[own, 2]
            if layout[own, 1] and cells[own] == lost:
                low[who, own] = high[who, own] = lost
            else:
                high[who, own] = min(layout[own + 1, 0] - layout[own, 0], lost) - 1
        for root in roots:
            node = root
            while nodes[node, 0] >= 0:
                own, split, kind = nodes[node, 0], nodes[node, 1], nodes[node, 2]
                cell = cells[own]
                if kind == LEVELS:
                    goes_left = sets[split, cell]
                    for level in range(layout[own + 1, 0] - layout[own, 0]):
                        if sets[split, level] != goes_left:
                            levels[who, layout[own, 0] + level] = False
                elif cell == layout[own, 2]:
                    goes_left = kind == MISSING_LEFT
                else:
                    goes_left = cell <= split
                    if goes_left:
                        high[who, own] = min(high[who, own], split)
                    else:
                        low[who, own] = max(low[who, own], split + 1)
                node = np.int64(nodes[node, 3] if goes_left else nodes[node, 4])
    return low, high, levels


@_inner
def into_box(who, limit, crowd, cells, person, world):  # type: ignore[no-untyped-def]
    """The cheapest cells in a person's box, those of home where there are none; what they cost, if below the limit."""
    low, high, levels = crowd
    home, cost = person[0], person[1]
    layout = world[4]
    paid = 0.0
    for own in range(home.shape[0]):
        start, here, is_number = layout[own, 0], home[own], layout[own, 1] > 0
        cells[own] = here
        if is_number:
            inside = low[who, own] <= here <= high[who, own]
            begin, end = low[who, own], high[who, own]
        else:
            inside = levels[who, start + here]
            begin, end = 0, layout[own + 1, 0] - start - 1
        if inside:
            continue
        best = np.inf
        for cell in range(begin, end + 1):
            if (is_number or levels[who, start + cell]) and cost[start + cell] < best:
                best = cost[start + cell]
                cells[own] = cell
        if best < np.inf:
            paid += best
            if paid >= limit:
                return np.inf
    return paid


@_inner
def nearest_boxes(who, paid, crowd, cells, person, world):  # type: ignore[no-untyped-def]
    """Write down whose boxes are cheapest to enter, as far as one can, and at what price; −1 where there are fewer."""
    count = who.shape[0]
    for at in range(count):
        who[at], paid[at] = -1, np.inf
    for one in range(crowd[0].shape[0]):
        asked = into_box(one, paid[count - 1], crowd, cells, person, world)
        if asked >= paid[count - 1]:
            continue
        at = count - 1
        while at > 0 and paid[at - 1] > asked:
            paid[at], who[at] = paid[at - 1], who[at - 1]
            at -= 1
        paid[at], who[at] = asked, one


# ---- one person after another ----


@_inner
def actives(person, world):  # type: ignore[no-untyped-def]
    """The features that a person can move and that some tree uses."""
    home, cost = person[0], person[1]
    layout, uses_start = world[4], world[7]
    found = np.empty(home.shape[0], np.int64)
    count = 0
    for feature in range(home.shape[0]):
        if uses_start[feature] == uses_start[feature + 1]:
            continue
        for cell in range(layout[feature + 1, 0] - layout[feature, 0]):
            if cell != home[feature] and cost[layout[feature, 0] + cell] < np.inf:
                found[count] = feature
                count += 1
                break
    return found[:count]


@_inner
def shuffle(seed, cells, person, desk, world):  # type: ignore[no-untyped-def]
    """Random cells of those that a person can have, and the next seed."""
    home, cost = person[0], person[1]
    layout = world[4]
    put(home, cells)
    for feature in desk[3]:
        count = 0
        for k in range(layout[feature, 0], layout[feature + 1, 0]):
            if cost[k] < np.inf:
                count += 1
                seed = (seed * 1103515245 + 12345) % 2147483648
                if (seed >> 8) % count == 0:  # so that each of them is as likely
                    cells[feature] = k - layout[feature, 0]
    return seed


@_inner
def improve(state, trial, person, desk, world):  # type: ignore[no-untyped-def]
    """Cheaper states, until nothing helps; what is left to pay."""
    for _ in range(ROUNDS):
        if not rebuilt(state, trial, person, desk, world) and not added(state, trial, person, desk, world):
            break
    return price(state[0], person[1], world)


@_entry
def search(homes, costs, firsts, lasts, crowd, noted, counts, world):  # type: ignore[no-untyped-def]
    """The cheapest cells found for each person (n, f), and whether they will do (n,).

    Other cells that will do are written to ``noted`` (n, p, f), as many as there is room for, and their number to
    ``counts`` (n,): what came up on the way, and cells in the boxes of people.
    """
    features, count, outputs, heard = homes.shape[1], world[2].shape[0], world[9].shape[0], world[14]
    state = empty_state(features, count, outputs)
    trial = empty_state(features, count, outputs)
    scores, walked, sums = np.empty(costs.shape[1]), np.zeros(count, np.int64), np.zeros(outputs)
    found = np.empty((homes.shape[0], features), np.int64)
    there = np.zeros(homes.shape[0], np.bool_)
    cells = np.zeros(features, np.int64)
    near, prices = np.zeros(BOXES, np.int64), np.zeros(BOXES)
    promising = PROMISING if heard.shape[0] == 1 else HURRIED[1]
    for row in range(homes.shape[0]):
        person = homes[row], costs[row], firsts[row], lasts[row]
        desk = scores, walked, sums, actives(person, world), noted[row], counts[row : row + 1]
        for member in range(heard.shape[0]):
            heard[member] = member == 0
        best, seed = np.inf, np.int64(1)
        put(homes[row], found[row])
        for turn in range(POWERS + BOXES + RANDOM):
            if turn >= POWERS and there[row] and (counts[row] >= noted.shape[1] or turn >= POWERS + BOXES):
                break
            power = 0.0
            if turn < POWERS:
                power = 1.0 - turn / 2
                put(homes[row], cells)
            elif turn < POWERS + BOXES:
                if turn == POWERS:
                    nearest_boxes(near, prices, crowd, cells, person, world)
                if near[turn - POWERS] < 0:
                    continue
                into_box(near[turn - POWERS], np.inf, crowd, cells, person, world)
            else:
                seed = shuffle(seed, cells, person, desk, world)
            place(state, cells, world)
            if turn >= POWERS and there[row]:
                if least_of(state[2], world) >= world[10][5]:
                    note(state, desk)
                    reduce(state, np.int64(-1), person, desk, world)
                    note(state, desk)
                continue
            if not reach(state, np.inf, power, np.int64(-1), person, desk, world):
                continue
            there[row] = True
            if reduce(state, np.int64(-1), person, desk, world) < promising * best:
                note(state, desk)
                paid = improve(state, trial, person, desk, world)
                if paid < best - LEAST_SAVING:
                    best = paid
                    put(state[0], found[row])
            if best <= 0:
                break
    return found, there
