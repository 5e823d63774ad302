"""The real people of a class whom a point must resemble: their distances are kept and changed by one feature's term."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor

from holdfast.search.engine.board import Board, Floats, Integers, Records, floats
from holdfast.search.engine.compiled import kernel, record
from holdfast.search.engine.sorting import keep_least, list_least
from holdfast.tabular.people import ROUNDING, People

NEAR = 48  # people by whom a move is judged first: who is like some of them is like some of all
HALF = 0.5**0.5  # what a level that is on counts; see `holdfast.tabular.people`

AXIS = record(
    line=np.int64,  # of a number; -1 for a level
    factor=np.float64,  # of a level: coordinate = factor · encoded + offset
    offset=np.float64,
    none=np.int64,  # the coordinate that says that no level is on; -1 where there is none
)


class Crowd(NamedTuple):
    """People of one class, or of several that count as one."""

    axes: Records  # (d,) AXIS
    edges: Floats  # (q, s − 1) of the lines of numbers
    starts: Floats  # (q, s)
    heights: Floats
    slopes: Floats
    points: Floats  # (p, m) coordinates
    first: Integers  # (c + 1,) where the people of each class begin
    threshold: Floats  # (c,) how far one may be; infinite where anybody passes
    nearest: int
    values: Floats  # (m, f) the same people by their features


class Distances(NamedTuple):
    """How far a person is from everybody, and room to judge a move."""

    square: Floats  # (m,)
    after: Floats  # (m,)
    axis: Floats  # (p,) coordinates of the person
    least: Floats
    near: Integers  # (NEAR,) the people who are nearest, nearest first; -1 behind the last


def crowd_of(people: People | None, target: int, board: Board) -> Crowd:
    if people is None:
        return _nobody(board, np.zeros((0, 0)))
    kept = _CROWDS.setdefault(people, {})
    key = (target, len(board.features), board.single)
    if key not in kept:
        kept[key] = _crowd(people, target, board)
    return kept[key]


def crowd_of_rows(rows: Tensor, board: Board) -> Crowd:
    """Encoded rows as people whom nobody must resemble, and from whom a search can begin."""
    return _nobody(board, _values(floats(rows), board))


def _nobody(board: Board, values: Floats) -> Crowd:
    axes, line = np.zeros(len(board.columns), AXIS), np.zeros((0, 1))
    return Crowd(
        axes, line, line, line, line, np.zeros((0, 0)), np.zeros(1, np.int64), np.zeros(0), nearest=1, values=values
    )


_CROWDS: WeakKeyDictionary[People, dict[tuple[int, int, bool], Crowd]] = WeakKeyDictionary()


def _crowd(people: People, target: int, board: Board) -> Crowd:
    metric, width = people.metric, len(board.columns)
    axes = np.zeros(width, AXIS)
    axes["factor"], axes["offset"] = floats(metric.factor), floats(metric.offset)
    axes["line"], axes["none"] = -1, -1
    axes["line"][metric.numbers.cpu().numpy()] = np.arange(len(metric.numbers))
    for group, row in enumerate(metric.zero_levels.cpu().numpy()):
        axes["none"][row > 0] = width + group
    classes = [label for label in people.members(target) if len(people.points[label])]
    points = [floats(people.points[label]) + floats(metric.center) for label in classes]
    encoded = [floats(people.encoded[label]) for label in classes]
    joined = np.concatenate(points) if points else np.zeros((0, len(metric.center)))
    return Crowd(
        axes,
        floats(metric.edges),
        floats(metric.starts),
        floats(metric.heights),
        floats(metric.slopes),
        np.ascontiguousarray(joined.T),
        np.cumsum([0, *map(len, points)]).astype(np.int64),
        np.array([float(people.thresholds[label]) for label in classes]),
        people.nearest,
        _values(np.concatenate(encoded) if encoded else np.zeros((0, width)), board),
    )


def _values(encoded: Floats, board: Board) -> Floats:
    """People as values of features."""
    found = np.zeros((len(encoded), len(board.features)))
    for index, feature in enumerate(board.features):
        if not feature["is_group"]:
            found[:, index] = encoded[:, feature["column"]]
            continue
        columns = board.columns_of_groups[feature["first"] : feature["first"] + feature["size"]]
        on = encoded[:, columns] > (board.columns["on"][columns] + board.columns["off"][columns]) / 2
        found[:, index] = np.where(on.any(1), on.argmax(1), len(columns))
    return found


def distances_of(crowd: Crowd) -> Distances:
    people = int(crowd.first[-1])
    return Distances(
        np.zeros(people),
        np.zeros(people),
        np.zeros(max(1, len(crowd.points))),
        np.zeros(crowd.nearest + 1),
        np.full(NEAR, -1),
    )


# ---- kernels ----


@kernel
def coordinate(crowd, column, value):
    axis = crowd.axes[column]
    if axis.line < 0:
        return value * axis.factor + axis.offset
    low, high = 0, crowd.edges.shape[1]
    while low < high:  # the first edge above the value
        middle = (low + high) // 2
        if crowd.edges[axis.line, middle] <= value:
            low = middle + 1
        else:
            high = middle
    return crowd.heights[axis.line, low] + crowd.slopes[axis.line, low] * (value - crowd.starts[axis.line, low])


@kernel
def measure(crowd, distances, point):
    """The squared distances of a point to everybody, summed anew."""
    if distances.square.shape[0] == 0:
        return
    for axis in range(crowd.points.shape[0]):
        distances.axis[axis] = 0.0 if axis < point.shape[0] else HALF
    for column in range(point.shape[0]):
        value = coordinate(crowd, column, point[column])
        distances.axis[column] = value
        if crowd.axes[column].none >= 0:
            distances.axis[crowd.axes[column].none] -= value
    square, points = distances.square, crowd.points
    for someone in range(square.shape[0]):
        square[someone] = 0.0
    for axis in range(points.shape[0]):
        value = distances.axis[axis]
        for someone in range(square.shape[0]):
            away = value - points[axis, someone]
            square[someone] += away * away
    list_near(distances)


@kernel
def shift(crowd, square, axis, before, after):
    """Change one coordinate's term in the distances to everybody."""
    step, both, points = after - before, after + before, crowd.points
    if step == 0:
        return
    for someone in range(square.shape[0]):
        square[someone] += step * (both - 2 * points[axis, someone])


@kernel
def earlier_shift(crowd, distances, move, turn, none):
    """What earlier columns of a move have changed of a group whose columns may be all off."""
    found = 0.0
    for other in range(turn):
        column = move.columns[other]
        if crowd.axes[column].none == none:
            found += coordinate(crowd, column, move.after[other]) - distances.axis[column]
    return found


@kernel
def distances_after(crowd, distances, state, move):
    """The distances to everybody after a move, in ``distances.after``."""
    after_all, square = distances.after, distances.square
    for someone in range(square.shape[0]):
        after_all[someone] = square[someone]
    for turn in range(move.counts[1]):
        column = move.columns[turn]
        before, after = distances.axis[column], coordinate(crowd, column, move.after[turn])
        shift(crowd, after_all, column, before, after)
        none = crowd.axes[column].none
        if none >= 0:
            start = distances.axis[none] - earlier_shift(crowd, distances, move, turn, none)
            shift(crowd, after_all, none, start, start - (after - before))


@kernel
def unlikeness(crowd, square, least):
    """The mean distance to the nearest people in units of the threshold: 1 is the limit."""
    found = np.inf
    for label in range(crowd.threshold.shape[0]):
        if crowd.threshold[label] == np.inf:
            return 0.0
        count = min(crowd.nearest, crowd.first[label + 1] - crowd.first[label])
        for slot in range(count):
            least[slot] = np.inf
        squares = square[crowd.first[label] : crowd.first[label + 1]]
        for someone in range(squares.shape[0]):
            keep_least(least, count, squares[someone])
        found = min(found, mean_distance(least, count) / max(crowd.threshold[label], 1e-300))
    return found


@kernel
def mean_distance(least, count):
    total = 0.0
    for slot in range(count):
        total += np.sqrt(max(least[slot], 0.0))
    return total / count


@kernel
def passes(crowd, square, least, limit):
    """Whether such a person could exist, for someone whose limit this is."""
    if crowd.threshold.shape[0] == 0:
        return True
    return unlikeness(crowd, square, least) <= limit * (1 + ROUNDING / 2)


@kernel
def list_near(distances):
    """List who is nearest."""
    kept = list_least(distances.square, distances.near)
    for slot in range(kept, NEAR):
        distances.near[slot] = -1


@kernel
def unlikeness_at_most(crowd, distances, move):
    """What the unlikeness is at most after a move: by those who were nearest before."""
    for slot in range(NEAR):
        someone = distances.near[slot]
        if someone < 0:
            break
        square = distances.square[someone]
        for turn in range(move.counts[1]):
            column = move.columns[turn]
            before, after = distances.axis[column], coordinate(crowd, column, move.after[turn])
            square += (after - before) * (after + before - 2 * crowd.points[column, someone])
            none = crowd.axes[column].none
            if none >= 0:
                start = distances.axis[none] - earlier_shift(crowd, distances, move, turn, none)
                end = start - (after - before)
                square += (end - start) * (end + start - 2 * crowd.points[none, someone])
        distances.after[slot] = square
    found = np.inf
    for label in range(crowd.threshold.shape[0]):
        if crowd.threshold[label] == np.inf:
            return 0.0
        count, kept = min(crowd.nearest, crowd.first[label + 1] - crowd.first[label]), 0
        for slot in range(count):
            distances.least[slot] = np.inf
        for slot in range(NEAR):
            someone = distances.near[slot]
            if someone < 0:
                break
            if crowd.first[label] <= someone and someone < crowd.first[label + 1]:
                keep_least(distances.least, count, distances.after[slot])
                kept += 1
        if kept >= count:
            found = min(found, mean_distance(distances.least, count) / max(crowd.threshold[label], 1e-300))
    return found


@kernel
def resembles(crowd, distances, state, move, limit):
    """Whether the point after a move could be a person."""
    if crowd.threshold.shape[0] == 0:
        return True
    if unlikeness_at_most(crowd, distances, move) <= limit * (1 + ROUNDING / 2):
        return True
    distances_after(crowd, distances, state, move)
    return passes(crowd, distances.after, distances.least, limit)


@kernel
def follow(crowd, distances, state, move):
    """Keep the distances up to date with a move that is made."""
    if crowd.threshold.shape[0] == 0:
        return
    distances_after(crowd, distances, state, move)
    for someone in range(distances.square.shape[0]):
        distances.square[someone] = distances.after[someone]
    for turn in range(move.counts[1]):
        column = move.columns[turn]
        value = coordinate(crowd, column, move.after[turn])
        if crowd.axes[column].none >= 0:
            distances.axis[crowd.axes[column].none] -= value - distances.axis[column]
        distances.axis[column] = value
    list_near(distances)
