"""Many people's searches at once, of a model that is not compiled: it is asked about all their points together.

Every search runs on a thread of its own until it needs answers. When all wait, or are done, their points go to the
model in one call, in the order of the people: so a person's answer does not depend on which thread is the faster one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread

import numpy as np
import torch
from torch import Tensor

from holdfast.search.engine.board import Floats, Integers
from holdfast.search.engine.outside import ALLOWED, ASKED, SLOPE, WAITING, Notes, notes_of
from holdfast.search.engine.person import search_rows
from holdfast.search.engine.world import World, room_of
from holdfast.utils.threads import most_threads

PEOPLE_AT_ONCE = 128


@dataclass(frozen=True, eq=False)
class Interview:
    """Who is asked, and what is known of everybody so far: brought up to date as people are searched for."""

    worlds: Callable[[int], Sequence[World]]  # in which each person is searched for, one after another
    scores: Callable[[Tensor, Tensor], Tensor]  # of these people (m,) at points (m, d): (m,)
    slopes: Callable[[Tensor, Tensor], Tensor]  # which way the scores rise: (m, d)
    calls: Integers  # (n,) that are left
    points: Floats  # (n, d) so far
    costs: Floats  # (n,) of these points

    def __call__(self, people: Integers) -> None:
        """Search for some people."""
        for start in range(0, len(people), PEOPLE_AT_ONCE):
            _Round(self, people[start : start + PEOPLE_AT_ONCE]).run()


class _Round:
    """The people whose questions go out together."""

    def __init__(self, interview: Interview, people: Integers) -> None:
        self.interview, self.people = interview, people
        self.worlds = [interview.worlds(int(person)) for person in people]
        self.turns = Semaphore(most_threads())  # of those that compute
        self.stopped = SimpleQueue[tuple[int, BaseException | bool | None]]()  # who waits, is done, or failed
        self.answered = [Lock() for _ in people]
        self.wait = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._wait)
        address = ctypes.cast(self.wait, ctypes.c_void_p).value or 0
        columns, calls = interview.points.shape[1], interview.calls
        self.notes = [notes_of(columns, int(calls[person]), address, index) for index, person in enumerate(people)]

    def run(self) -> None:
        """Until everybody is done. An error of the model, or Ctrl-C, ends all searches first."""
        for lock in self.answered:
            lock.acquire()
        threads = [Thread(target=self._search, args=(index,), daemon=True) for index in range(len(self.people))]
        for thread in threads:
            thread.start()
        running, waiting = len(threads), list[int]()
        try:
            while running:
                while len(waiting) < running:
                    index, outcome = self.stopped.get()
                    if outcome is True:
                        waiting.append(index)
                        continue
                    running -= 1
                    if isinstance(outcome, BaseException):
                        raise outcome
                self._answer([self.notes[index] for index in sorted(waiting)])
                while waiting:
                    self.answered[waiting.pop()].release()
            self.interview.calls[self.people] -= [notes.counts[ASKED] for notes in self.notes]
        except BaseException:
            self._end(running, waiting)
            raise
        for thread in threads:
            thread.join()

    def _end(self, running: int, waiting: list[int]) -> None:
        """Let every search end: nobody may ask any more, and whatever was asked is refused."""
        for notes in self.notes:
            notes.counts[ALLOWED] = 0
        while running:
            while waiting:
                index = waiting.pop()
                notes = self.notes[index]
                notes.scores[notes.slots[: notes.counts[WAITING]]] = -np.inf
                notes.counts[WAITING] = 0
                self.answered[index].release()
            index, outcome = self.stopped.get()
            if outcome is True:
                waiting.append(index)
            else:
                running -= 1

    # ---- on the thread of a person ----

    def _search(self, index: int) -> None:
        failed: BaseException | None = None
        self.turns.acquire()
        try:
            for world in self.worlds[index]:
                room = room_of(world, self.notes[index])
                search_rows(world, room, self.people[index : index + 1], self.interview.points, self.interview.costs)
        except BaseException as error:
            failed = error
        self.turns.release()
        self.stopped.put((index, failed))

    def _wait(self, index: int) -> None:
        self.turns.release()
        self.stopped.put((index, True))
        self.answered[index].acquire()
        self.turns.acquire()

    # ---- on the thread of whoever asked for the search ----

    def _answer(self, waiting: Sequence[Notes]) -> None:
        """Tell everybody who waits what they asked for."""
        slopes = [notes for notes in waiting if notes.counts[SLOPE]]
        if slopes:
            slope_rows = self.interview.slopes(self._who(slopes), _points(slopes))
            for notes, slope in zip(slopes, slope_rows.double().cpu().numpy(), strict=True):
                notes.slopes[:] = slope
        # Where slopes are asked for, the score is mostly known from the move that led there.
        unknown = [notes for notes in waiting if not notes.counts[SLOPE] or np.isnan(notes.scores[notes.slots[0]])]
        if unknown:
            scores = self.interview.scores(self._who(unknown), _points(unknown)).double().cpu().numpy()
            scores = np.where(np.isnan(scores), -np.inf, scores)
            begin = 0
            for notes in unknown:
                count = int(notes.counts[WAITING])
                notes.scores[notes.slots[:count]] = scores[begin : begin + count]
                notes.counts[ASKED] += count
                begin += count
        for notes in waiting:
            notes.counts[WAITING] = 0

    def _who(self, asking: Sequence[Notes]) -> Tensor:
        """Whose each of the points is."""
        counts = [int(notes.counts[WAITING]) for notes in asking]
        return torch.from_numpy(np.repeat(self.people[[notes.person for notes in asking]], counts))


def _points(asking: Sequence[Notes]) -> Tensor:
    return torch.from_numpy(np.concatenate([notes.points[: notes.counts[WAITING]] for notes in asking]))
