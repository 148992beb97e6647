"""Cells of the experiments of Huang et al. 2010: one method on contexts of text or on rows of documents.

Relative differences are to the lowest objective of all runs on a data set, including a long one ("reference").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from papers.experiment import Record, Records
from papers.histories import follow
from papers.maxent_contexts import Contexts, contexts
from papers.maxent_rows import rows
from papers.outcome import Curve, Panel
from papers.verdicts import Verdict, every, sooner
from partwise.metrics import chunk_f1
from partwise.problem import Problem
from partwise.solvers import get_solver
from partwise.support.arrays import Floats

#: The paper's methods: (solver, options). Newton's method on one-variable problems ends at a derivative of 1e-5.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "CD": ("cd", {"order": "index", "bound": "paper"}),
    "SCGIS": ("scgis", {"order": "index"}),
    "GIS": ("gis", {}),
    "LBFGS": ("lbfgs", {}),
    "TRON": ("newton", {}),
}
PERMUTED = "CD, permuted"
OURS = "CD, adaptive (partwise)"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    PERMUTED: ("cd", {"order": "permuted", "bound": "paper"}),
    OURS: ("cd", {}),
}
REFERENCE = "reference"
#: Relative differences at which curves are compared.
LEVELS = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
#: Numbers of the evaluations that score test data: the first ones, and then fewer and fewer.
_SCORED = {1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 33, 41, 50}


def train_text(
    data: str | None,
    *,
    of: str,
    solver: str,
    l2: float,
    max_seconds: float,
    options: Mapping[str, Any] | None = None,
    limit: int | None = None,
    held: int = 500,
    l2_per_position: bool = False,
) -> Record:
    """Train a method on contexts (see `maxent_contexts.contexts`); score accuracy, or F1 of chunks, by beam search.

    l2_per_position: l2 is multiplied by the number of positions.
    """
    found = contexts(of, data, limit, held)
    strength = l2 * found.text.split if l2_per_position else l2
    return measure(found.problem(strength), solver, options, score_of(found), max_seconds)


def score_of(found: Contexts) -> Callable[[Floats], float]:
    """Return the score of weights: F1 if labels are those of chunks, else accuracy."""
    gold = found.gold()
    flat = [tag for sentence in gold for tag in sentence]

    def score(weights: Floats) -> float:
        guess = found.predict(weights)
        if found.text.chunks:
            return chunk_f1(gold, guess)
        return float(np.mean([a == b for a, b in zip(flat, (x for s in guess for x in s), strict=True)]))

    return score


def text_statistics(data: str | None, *, of: str, limit: int | None = None) -> Record:
    """Return the numbers of Table 3."""
    return {**contexts(of, data, limit, 1).statistics()}


def train_rows(
    data: str | None,
    *,
    of: str,
    solver: str,
    l2: float,
    max_seconds: float,
    options: Mapping[str, Any] | None = None,
    limit: int | None = None,
    bias: bool = False,
) -> Record:
    """Train a method for binary logistic regression (see `maxent_rows.rows`). The score is accuracy."""
    found = rows(of, data, limit, bias)
    record = measure(found.problem(l2), solver, options, found.accuracy, max_seconds)
    return {**record, **found.statistics()}


def measure(
    problem: Problem,
    solver: str,
    options: Mapping[str, Any] | None,
    score: Callable[[Floats], float],
    max_seconds: float,
) -> Record:
    """Record objective, gradient norm and score against CPU seconds."""
    norms: list[float] = []

    def look(weights: Floats) -> float:
        norms.append(math.sqrt(problem.norm2(problem.value_and_gradient(weights)[1])))
        return score(weights) if len(norms) in _SCORED else math.nan

    found = follow(
        problem, get_solver(solver, **(options or {})), max_seconds=max_seconds, tol=1e-7, score=look, share=0.12
    )
    trace = found["trace"]
    trace["gradient"] = norms
    if math.isnan(trace["score"][-1]):
        trace["score"][-1] = score(found["weights"])
    trace["score"] = [None if math.isnan(value) else value for value in trace["score"]]
    return {
        "n_examples": len(problem.active),
        "n_weights": int(problem.n_weights),
        "l2": problem.l2,
        "status": found["status"],
        "trace": trace,
    }


class Runs:
    """Runs on one data set, by method."""

    def __init__(self, of: str, records: Records) -> None:
        self.of = of
        prefix = f"{of}: "
        self.by_method = {name.removeprefix(prefix): r for name, r in records.items() if name.startswith(prefix)}
        self.optimum = min(min(record["trace"]["primal"]) for record in self.by_method.values())
        dual = max(max(record["trace"]["dual"]) for record in self.by_method.values())
        #: How far the lowest objective may be above the optimum (certified), relative to it.
        self.slack: float = (self.optimum - dual) / self.optimum

    def differences(self, method: str) -> list[float]:
        """Return the relative difference (42) at each evaluation."""
        return [primal / self.optimum - 1.0 for primal in self.by_method[method]["trace"]["primal"]]

    def seconds(self, method: str, level: float, column: str = "cpu_seconds") -> float:
        """Return the CPU seconds to this relative difference; infinity if it was not reached."""
        times: list[float] = self.by_method[method]["trace"][column]
        return next((t for t, d in zip(times, self.differences(method), strict=True) if d <= level), math.inf)

    def level(self, *methods: str) -> float:
        """Return the least relative difference that all of these methods reached, at least `floor`."""
        return max(self.floor, *(min(self.differences(method)) for method in methods))

    @property
    def floor(self) -> float:
        return max(2.0 * self.slack, 1e-9)

    def at(self, method: str, seconds: float) -> float:
        """Return the relative difference that a method had reached by then."""
        times = self.by_method[method]["trace"]["cpu_seconds"]
        return min(d for t, d in zip(times, self.differences(method), strict=True) if t <= seconds or t == times[0])

    def faster(self, one: str, other: str) -> tuple[Verdict, float, str]:
        """Return whether `one` is sooner at the least difference that both reached, the ratio of times, and a text."""
        level = self.level(one, other)
        a, b = self.seconds(one, level), self.seconds(other, level)
        ratio = b / a if a else math.inf
        return sooner([a], [b]), ratio, f"{self.of}, to {level:.2g}: {one} {a:.3g} s, {other} {b:.3g} s"

    def at_levels(
        self, one: str, other: str, levels: Sequence[float] = LEVELS
    ) -> tuple[list[tuple[float, float]], str]:
        """Return the times of both to the levels that at least one of them reached, and a text with the numbers."""
        pairs = {
            level: (self.seconds(one, level), self.seconds(other, level)) for level in levels if level > self.floor
        }
        told = {level: pair for level, pair in pairs.items() if min(pair) < math.inf}
        goals = ", ".join(f"{level:g}" for level in told)
        said = [f"{m} {', '.join(spelled(pair[k]) for pair in told.values())}" for k, m in enumerate((one, other))]
        return list(told.values()), f"{self.of}, to {goals}: {'; '.join(said)}"

    def ahead(self, one: str, other: str, levels: Sequence[float] = LEVELS) -> tuple[Verdict, str]:
        """Return whether `one` is sooner at all of the levels that either reached, and a text with the numbers."""
        pairs, line = self.at_levels(one, other, levels)
        return every(sooner([a], [b]) for a, b in pairs), line

    def tail(self, method: str, begin: float) -> float | None:
        """Return by how many powers of ten per second the gradient norm falls once the difference is at most `begin`.

        None if it never is. The gradient is used as the difference itself cannot be told from 0 at the end.
        """
        trace, differences = self.by_method[method]["trace"], self.differences(method)
        if differences[-1] > begin:
            return None
        k = max(k for k, difference in enumerate(differences) if difference > begin)
        fall = math.log10(trace["gradient"][k] / trace["gradient"][-1])
        return float(fall / (trace["cpu_seconds"][-1] - trace["cpu_seconds"][k]))

    def best_score(self) -> float:
        """Return the score of the run with the lowest objective."""
        best = min(self.by_method.values(), key=lambda record: min(record["trace"]["primal"]))
        return float(best["trace"]["score"][-1])

    def seconds_to_score(self, method: str, points: float = 0.002) -> float:
        """Return the CPU seconds until the score is within `points` of the best run's score."""
        trace = self.by_method[method]["trace"]
        pairs = zip(trace["cpu_seconds"], trace["score"], strict=True)
        return next((t for t, s in pairs if s is not None and s >= self.best_score() - points), math.inf)

    def panels(self, methods: Sequence[str], score: str) -> list[Panel]:
        """Draw the three rows of Figures 2 and 3."""
        drawn = [m for m in methods if m in self.by_method]
        x = {m: self.by_method[m]["trace"]["cpu_seconds"] for m in drawn}
        traces = {m: self.by_method[m]["trace"] for m in drawn}
        seen = {m: [s for s in traces[m]["score"][1:] if s is not None] for m in drawn}
        high, low = (max(map(max, seen.values())), min(s[-1] for s in seen.values()))
        return [
            Panel(f"{self.of}", "CPU seconds", "relative difference to the optimum",
                  [Curve(m, x[m], self.differences(m)) for m in drawn], y_scale="log"),
            Panel(f"{self.of}", "CPU seconds", "norm of the gradient",
                  [Curve(m, x[m], traces[m]["gradient"]) for m in drawn], y_scale="log"),
            Panel(f"{self.of}", "CPU seconds", score,
                  [_scores(m, traces[m]) for m in drawn], limits=(max(0.0, low - 0.05), high + 0.005)),
        ]  # fmt: skip

    def row(self, method: str, levels: Sequence[float]) -> list[Any]:
        """Return a table row: seconds to some differences, and the last difference, gradient norm and score."""
        trace = self.by_method[method]["trace"]
        times = [None if math.isinf(t := self.seconds(method, level)) else t for level in levels]
        return [self.of, method, *times, self.differences(method)[-1], trace["gradient"][-1], trace["score"][-1]]


def spelled(seconds: float) -> str:
    """Write seconds as text; infinity means that the goal was not reached."""
    return "not reached" if math.isinf(seconds) else f"{seconds:.3g} s"


def _scores(method: str, trace: Mapping[str, list[Any]]) -> Curve:
    scored = [(t, s) for t, s in zip(trace["cpu_seconds"], trace["score"], strict=True) if s is not None]
    return Curve(method, [t for t, _ in scored], [s for _, s in scored])
