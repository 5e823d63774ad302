"""What a search asks a model that is not compiled: points are noted, and those of many people are asked about at once.

A scan of moves notes the points whose score it lacks, and takes them for refused. Before it decides it hands over what
it has noted, waits for the answers, and scans again: so it decides what it would have decided had it known them all
along. What a search waits for is a function of Python that its address is known of; the interpreter is free meanwhile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from holdfast.search.engine.board import Floats, Integers
from holdfast.search.engine.compiled import kernel

AT_ONCE = 64  # points that a person asks about at a time
# Places in `Notes.counts`.
WAITING, ASKED, ALLOWED, SLOPE, UNSURE = range(5)


class Notes(NamedTuple):
    """What is known of one person's points, and what is to be asked next."""

    keys: NDArray[np.uint64]  # (t,) of points; 0 where there is none yet
    scores: Floats  # (t,) NaN until they are known
    points: Floats  # (AT_ONCE, d) to be asked about
    slots: Integers  # (AT_ONCE,) where their scores belong
    slopes: Floats  # (d,) of the score where the person is
    here: NDArray[np.uint64]  # (1,) the key of where the person is
    counts: Integers  # (5,) points that wait, that were asked about, that may be; whether slopes are asked for too;
    # whether the last score was not known
    wait: int  # the address of what waits for the answers
    person: int


def notes_of(columns: int, calls: int, wait: int = 0, person: int = 0) -> Notes:
    """For so many calls; none where everybody is compiled."""
    room = 1 << max(1, (2 * calls).bit_length())
    counts = np.zeros(5, np.int64)
    counts[ALLOWED] = calls
    return Notes(
        np.zeros(room, np.uint64),
        np.full(room, np.nan),
        np.zeros((AT_ONCE if calls else 0, columns)),
        np.zeros(AT_ONCE, np.int64),
        np.zeros(columns),
        np.zeros(1, np.uint64),
        counts,
        wait,
        person,
    )


@intrinsic
def wait_for(context: Any, address: Any, person: Any) -> Any:
    """Call the function of Python at an address, with a person's number."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = ir.IntType(64)
        function = ir.FunctionType(ir.VoidType(), [number])
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), [arguments[1]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), written


@kernel
def mixed(column, value):
    """A number that stands for one value of one column (the finaliser of SplitMix64)."""
    bits = np.uint64(np.float64(value + 0.0).view(np.int64))
    found = bits + np.uint64(column + 1) * np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


@kernel
def note_here(notes, point):
    """From now on moves begin at this point."""
    key = np.uint64(1)
    for column in range(point.shape[0]):
        key += mixed(column, point[column])
    notes.here[0] = key


@kernel
def slot_of(notes, key):
    """Where the score of a point is, or belongs."""
    last = np.uint64(notes.keys.shape[0] - 1)
    at = key & last
    while notes.keys[at] != key and notes.keys[at] != 0:
        at = (at + np.uint64(1)) & last
    return np.int64(at)


@kernel
def heard(notes, state, move):
    """The score of the point after a move; where it is not known, the point is noted, and the score minus infinity."""
    key = notes.here[0]
    for turn in range(move.counts[1]):
        column = move.columns[turn]
        key += mixed(column, move.after[turn]) - mixed(column, state.point[column])
    slot, counts = slot_of(notes, key), notes.counts
    if notes.keys[slot] == key:
        score = notes.scores[slot]
        counts[UNSURE] = np.int64(np.isnan(score))
        return -np.inf if np.isnan(score) else score
    if counts[ASKED] + counts[WAITING] >= counts[ALLOWED]:
        counts[UNSURE] = 0
        return -np.inf
    counts[UNSURE] = 1
    if counts[WAITING] < notes.points.shape[0]:
        point = notes.points[counts[WAITING]]
        for column in range(point.shape[0]):
            point[column] = state.point[column]
        for turn in range(move.counts[1]):
            point[move.columns[turn]] = move.after[turn]
        notes.keys[slot] = key
        notes.slots[counts[WAITING]] = slot
        counts[WAITING] += 1
    return -np.inf


@kernel
def heard_here(notes, state):
    """The score of where a person is; its slopes are in ``notes.slopes`` then."""
    key, counts = notes.here[0], notes.counts
    slot = slot_of(notes, key)
    for column in range(notes.slopes.shape[0]):
        notes.slopes[column] = 0.0
    if counts[ASKED] < counts[ALLOWED]:
        for column in range(state.point.shape[0]):
            notes.points[0, column] = state.point[column]
        notes.keys[slot], notes.slots[0] = key, slot
        counts[WAITING], counts[SLOPE] = 1, 1
        wait_for(notes.wait, notes.person)
        counts[SLOPE] = 0
    score = notes.scores[slot] if notes.keys[slot] == key else np.nan
    return -np.inf if np.isnan(score) else score


@kernel
def all_heard(notes):
    """Whether no point waits for its score; else whoever asks has waited for it, and scans again."""
    if notes.counts[WAITING] == 0:
        return True
    wait_for(notes.wait, notes.person)
    return False
