"""Theorems of Huang et al. 2010 on iterative scaling and coordinate descent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from helpers.scaling_passes import begin
from oracles.problems import maxent_case
from oracles.scaling import Maxent

from .checks import Broken, Named, Theorem, at_most, contracts, of


class Scaling:
    """A method on a small maxent problem, one pass at a time, from any weights."""

    def __init__(self, name: str, form: str, parallel: bool, l2: float = 0.5, **options: Any) -> None:
        self.case, self.l2 = maxent_case(13, form=form), l2
        self.name, self.options = name, {"parallel": parallel, **options}
        if name != "cd":
            self.options["newton_tol"] = 1e-13
        self.problem = self.case.dense("log", l2)
        state = self.begin(np.zeros(self.case.features.num_weights))
        self.columns = state.columns[state.mass[state.columns] > 0]
        self.places = [k for k, t in enumerate(state.columns) if t in self.columns]

    def begin(self, w: np.ndarray) -> Any:
        return begin(self.case, "log", self.l2, weights=w)

    def step(self, w: np.ndarray, factor: float, order: list[int] | None = None) -> np.ndarray:
        state = self.begin(w)
        state.epoch(self.name, order, **self.options)
        return w + factor * (state.weights - w)

    def best(self) -> np.ndarray:
        state = self.begin(np.zeros(self.case.features.num_weights))
        for _ in range(300):
            state.epoch("cd")
        return state.weights

    def moves(self, w: np.ndarray, factor: float) -> Iterator[tuple[np.ndarray, np.ndarray, list[int]]]:
        """Yield the weights before and after each step, and the step's columns: all in parallel methods, else one."""
        if self.options["parallel"]:
            yield w, self.step(w, factor), list(self.columns)
            return
        for k, t in zip(self.places, self.columns, strict=True):
            new = self.step(w, factor, [k])
            yield w, new, [int(t)]
            w = new


def theorem_3(name: str, form: str, parallel: bool, factor: float) -> None:
    """Huang et al. 2010, Theorem 3: (23) or (59), and (24) or (60), with the constants of the proof.

    A_t'(0) = A_t''(h) z for an h between 0 and the step z, and A_t'' is monotone for the bounds of iterative scaling.
    """
    method = Scaling(name, form, parallel)
    w = np.zeros(method.case.features.num_weights)
    for _ in range(4):
        for before, after, columns in method.moves(w, factor):
            at = Maxent(method.problem, before)
            for t in columns:
                z = after[t] - before[t]
                slope, here = at.derivatives(name, t, 0.0)
                steepest = max(here, at.derivatives(name, t, z)[1])
                at_most(abs(slope) / steepest, abs(z) + 1e-7, "(23)")
            fall = method.problem.primal(before) - method.problem.primal(after)
            at_most(method.l2 / 2 * float(((after - before) ** 2).sum()), fall, "(24)")
            w = after


def linear_rate(name: str, form: str, parallel: bool, factor: float) -> None:
    """Huang et al. 2010, Theorems 2 and 5: L(w^(k+1)) - L* <= (1 - mu) (L(w^k) - L*) with mu at least 1e-3."""
    method = Scaling(name, form, parallel)
    least, w = method.problem.primal(method.best()), np.zeros(method.case.features.num_weights)
    distances = []
    for _ in range(40):
        distances.append(method.problem.primal(w) - least)
        w = method.step(w, factor)
    contracts(distances, 1.0 - 1e-3, "Theorem 2")


def theorem_4(form: str, factor: float) -> None:
    """Huang et al. 2010, Theorem 4, (67) and (35): Algorithm 3's step is long enough and decreases enough."""
    gamma, beta = 0.3, 0.5
    method = Scaling("cd", form, False, l2=0.05, gamma=gamma, beta=beta)
    w = np.zeros(method.case.features.num_weights)
    w[method.columns] = 3.0 * np.sin(np.arange(len(method.columns)))
    for k, t in zip(method.places, method.columns, strict=True):
        at = Maxent(method.problem, w)
        H = method.l2 + sum(o * float((f**2).max()) for o, _, f, _ in at.column(t))  # A'' is less than this, by (64)
        slope = at.derivatives("cd", t, 0.0)[0]
        new = method.step(w, factor, [k])
        z = new[t] - w[t]
        at_most(2.0 * beta * (1.0 - gamma) / H * abs(slope), abs(z), "(67)")
        at_most(at.value("cd", t, z), gamma * z * slope, "(35)")
        w = new


def theorem_6(form: str, factor: float) -> None:
    """Huang et al. 2010, Theorem 6: near the optimum the line search accepts the full Newton step."""
    method = Scaling("cd", form, False, l2=0.05, gamma=0.4)
    w = method.best()
    w[method.columns] += 1e-4 * np.sin(np.arange(len(method.columns)) + 1.0)
    for k, t in zip(method.places, method.columns, strict=True):
        slope, curvature = Maxent(method.problem, w).derivatives("cd", t, 0.0)
        new = method.step(w, factor, [k])
        at_most(abs(new[t] - w[t] + slope / curvature), 1e-9, "Theorem 6")
        w = new


def theorem_7(form: str, factor: float) -> None:
    """Huang et al. 2010, Theorem 7: near the optimum a Newton step decreases more than any other function's minimum."""
    methods = {name: Scaling(name, form, False, l2=0.1) for name in ("cd", "gis", "iis", "scgis")}
    optimum = methods["cd"].best()
    rng, columns = np.random.default_rng(0), methods["cd"].columns
    near = optimum.copy()
    near[columns] += 1e-4 * rng.normal(size=len(columns))
    at, compared = Maxent(methods["cd"].problem, near), 0
    for k, t in zip(methods["cd"].places, columns, strict=True):
        if abs(at.derivatives("cd", t, 0.0)[0]) < 1e-7:
            continue
        new = {name: m.step(near, factor if name == "cd" else 1.0, [k])[t] for name, m in methods.items()}
        change = {name: at.value("cd", t, w - near[t]) for name, w in new.items()}
        others = min(change[name] for name in ("gis", "iis", "scgis"))
        if not change["cd"] < others < 0:
            raise Broken(f"Theorem 7: {change}")
        compared += 1
    assert compared > 1


def theorems() -> Named:
    for form in ("binary", "real", "matrix"):
        for name, parallel in (("gis", True), ("iis", True), ("gis", False), ("iis", False), ("scgis", False)):
            label = f"{name}, {'parallel' if parallel else 'sequential'}, {form}"
            yield f"Huang et al. 2010, Theorem 3: {label}", Theorem(of(theorem_3, name, form, parallel), (-1.0, 0.5))
            yield f"Huang et al. 2010, Theorem 2: {label}", Theorem(of(linear_rate, name, form, parallel), (-1.0,))
        yield f"Huang et al. 2010, Theorem 4: {form}", Theorem(of(theorem_4, form), (-1.0, 0.01))
        yield f"Huang et al. 2010, Theorem 5: {form}", Theorem(of(linear_rate, "cd", form, False), (-1.0, 3.0))
        yield f"Huang et al. 2010, Theorem 6: {form}", Theorem(of(theorem_6, form), (-1.0, 0.9))
        yield f"Huang et al. 2010, Theorem 7: {form}", Theorem(of(theorem_7, form), (-1.0, 3.0))
