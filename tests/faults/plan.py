"""Which row's trials are next, when several processes work for a limited time.

The time is divided so that short rows end and long ones get equal parts of what is left: the shortest row goes first,
with what would be its equal part, and what it does not use is for the others. A long row is shared by processes that
have none of their own. Rows that must be alone come last, when nothing else runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from .rows import Row

#: Trials that are given out at once are about this many seconds' work, and at most so many.
PIECE, MANY = 2.0, 500
#: Seconds that a row of which nothing is known takes per trial.
GUESS = 0.05


class Plan:
    """Trials that are left, by row, and time that was used for them.

    Parameters
    ----------
    rows : those to be run
    left : numbers of their trials
    jobs : processes
    deadline : by `time.monotonic`
    cost : seconds per trial, of rows that were run before
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
        """Seconds per trial."""
        return self.used[name] / self.trials[name] if self.trials[name] else self.known.get(name, GUESS)

    def note(self, name: str, seconds: float) -> None:
        """A trial took so long."""
        self.trials[name] += 1
        self.used[name] += seconds

    def next(self, current: str, others: int) -> tuple[str, list[int]] | None:
        """A piece of work for a process that has just done `current`, while `others` are at work."""
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
        """Of a piece that was not done."""
        self.left[name] += reversed(list(numbers))

    def drop(self, name: str) -> None:
        """A row that cannot be run."""
        self.left[name].clear()

    def _choice(self, current: str, others: int) -> str | None:
        if self.alone and others:
            return None
        open_ = [name for name, numbers in self.left.items() if numbers]
        within = [name for name in open_ if name not in self.budget or self._spent(name) < self.budget[name]]
        if not within and open_:  # all have had their parts, and there is time
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
        """Seconds of work that is left."""
        return len(self.left[name]) * self.cost(name)

    def _spent(self, name: str) -> float:
        return self.used[name] * (self.jobs if self.rows[name].alone else 1)

    def _share(self, name: str) -> float:
        """Seconds of work, of all processes', that a row may take from now on, with what it has had."""
        if self.deadline == float("inf"):
            return self.deadline
        waiting = sum(bool(numbers) and each not in self.budget for each, numbers in self.left.items())
        given = sum(max(0.0, self.budget[each] - self._spent(each)) for each in self.budget if self.left[each])
        whole = (self.deadline - self.clock()) * self.jobs - given
        return self._spent(name) + max(0.0, whole) / max(1, waiting)
