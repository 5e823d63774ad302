"""Sorted lists: where a value belongs in one, and short ones that values are put into one after another."""

from __future__ import annotations

import numpy as np

from holdfast.search.engine.compiled import kernel


@kernel
def count_below(values, first, count, wanted):
    """How many of a sorted part of an array are less than a value."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if values[first + middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def keep_least(least, count, value):
    """Put a value among the so many least, in order."""
    if value >= least[count - 1]:
        return
    slot = count - 1
    while slot > 0 and least[slot - 1] > value:
        least[slot] = least[slot - 1]
        slot -= 1
    least[slot] = value


@kernel
def list_least(keys, listed):
    """List whose keys are least, in order, as many as there is room for, and none whose key is infinite; how many."""
    kept, room, most = 0, listed.shape[0], np.inf
    for number in range(keys.shape[0]):
        key = keys[number]
        if key >= most:
            continue
        slot = min(kept, room - 1)
        while slot > 0 and keys[listed[slot - 1]] > key:
            listed[slot] = listed[slot - 1]
            slot -= 1
        listed[slot] = number
        kept = min(kept + 1, room)
        if kept == room:
            most = keys[listed[room - 1]]
    return kept


@kernel
def bring_forward(order, slot, to):
    """Put what stands behind before what stands at a slot."""
    moved = order[slot]
    for behind in range(slot, to, -1):
        order[behind] = order[behind - 1]
    order[to] = moved
