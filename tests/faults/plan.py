"""Chooses the next trials for several processes that work until a deadline.

The remaining time is divided into equal parts, one for each row that has not begun. The shortest row begins first and
gets such a part; the time that it does not use is divided among the others. Short rows therefore end, and long rows get
equal parts. Several processes share a long row when no other row is waiting. Rows that must run alone come last, when
nothing else runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from .rows import Row

#: Trials are handed out in pieces of about this many seconds' work, and of at most this many trials.
PIECE, MANY = 2.0, 500
#: Assumed seconds per trial of a row about which nothing is known.
GUESS = 0.05


class Plan:
    """The remaining trials of each row, and the time that each row has used.

    Parameters
    ----------
    rows : the rows to run, by name
    left : the numbers of the trials to run, by row
    jobs : number of processes
    deadline : time of the clock `time.monotonic` at which to stop
    cost : seconds per trial, for rows that were run before
    """

    def __init__(
        self,
        rows: Mapping[str, Row],
        left: Mapping[str, Iterable[int]],
        jobs: int,
        deadline: float,
        cost: Mapping[str, float],
    ) -> None:
        self.rows, self.jobs, self.deadline, self.clock = rows, jobs, deadline, time.monotonic
        self.left = {name: list(reversed(list(numbers))) for name, numbers in left.items()}
        self.trials, self.used = dict.fromkeys(self.left, 0), dict.fromkeys(self.left, 0.0)
        self.known = dict(cost)
        self.budget: dict[str, float] = {}
        self.alone = ""

    def cost(self, name: str) -> float:
        """Return the estimated seconds per trial."""
        return self.used[name] / self.trials[name] if self.trials[name] else self.known.get(name, GUESS)

    def note(self, name: str, seconds: float) -> None:
        """Record the time of a trial."""
        self.trials[name] += 1
        self.used[name] += seconds

    def next(self, current: str, others: int) -> tuple[str, list[int]] | None:
        """Return trials for a process that has just run `current`, while `others` processes are at work."""
        name = self._choice(current, others)
        if name is None:
            return None
        self.alone = name if self.rows[name].alone else ""
        self.budget.setdefault(name, self._share(name))
        numbers = self.left[name]
        within = min(PIECE, max(0.0, self.budget[name] - self._spent(name)))
        known = self.trials[name] or name in self.known
        size = min(MANY, max(1, int(within / max(self.cost(name), 1e-6)))) if known else 1
        return name, [numbers.pop() for _ in range(min(size, len(numbers)))]

    def give_back(self, name: str, numbers: Iterable[int]) -> None:
        """Put back trials that were handed out and not run."""
        self.left[name] += reversed(list(numbers))

    def drop(self, name: str) -> None:
        """Forget the trials of a row that cannot be run."""
        self.left[name].clear()

    def _choice(self, current: str, others: int) -> str | None:
        if self.alone and others:
            return None
        open_ = [name for name, numbers in self.left.items() if numbers]
        within = [name for name in open_ if name not in self.budget or self._spent(name) < self.budget[name]]
        if not within and open_:  # all rows have used their parts, and time is left
            self.budget = {}
            within = open_
        shared = [name for name in within if not self.rows[name].alone]
        if current in shared or (current in within and not others):
            return current
        fresh = [name for name in shared if name not in self.budget]
        if fresh:
            return min(fresh, key=self._rest)
        if shared:
            return max(shared, key=self._rest)
        return min(within, key=self._rest) if within and not others else None

    def _rest(self, name: str) -> float:
        """Return the estimated seconds that the remaining trials of a row need."""
        return len(self.left[name]) * self.cost(name)

    def _spent(self, name: str) -> float:
        return self.used[name] * (self.jobs if self.rows[name].alone else 1)

    def _share(self, name: str) -> float:
        """Return the total seconds that a row may use, summed over processes and including what it has used so far."""
        if self.deadline == float("inf"):
            return self.deadline
        waiting = sum(bool(numbers) and each not in self.budget for each, numbers in self.left.items())
        given = sum(max(0.0, self.budget[each] - self._spent(each)) for each in self.budget if self.left[each])
        whole = (self.deadline - self.clock()) * self.jobs - given
        return self._spent(name) + max(0.0, whole) / max(1, waiting)
