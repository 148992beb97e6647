"""Passes of iterative scaling and coordinate descent, run directly in the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from oracles.objective import LOSSES
from partwise import _core


@dataclass
class State:
    """The arrays that a pass updates in place, and its constants."""

    objective: Any
    l2: float
    weights: np.ndarray
    potentials: np.ndarray
    inverse: np.ndarray
    empirical: np.ndarray
    mass: np.ndarray
    columns: np.ndarray
    largest_sum: float
    temperature: float

    @property
    def live(self) -> int:
        """Return the number of columns that occur in the data; only these have a step."""
        return int((self.mass[self.columns] > 0).sum())

    def epoch(self, function, order=None, **options):
        order = np.arange(len(self.columns)) if order is None else np.asarray(order)
        if function == "gis" and options.get("parallel"):
            return self.together(order, self.options(function, **options), options.get("n_jobs", 1))
        return _core.scaling_epoch(self.state(), order.astype(np.int64), self.options(function, **options))

    def together(self, order, options, n_jobs):
        """Make gis's parallel update, which needs no table of potentials."""
        return _core.gis_update(
            self.weights,
            self.columns[order],
            empirical=self.empirical,
            expectations=_core.scaling_expectations(self.objective, self.weights, n_jobs),
            largest_sum=self.largest_sum,
            temperature=self.temperature,
            options=options,
        )

    def rounds(self, function, wait, rest, **options):
        plan = _core.VisitPlan(self.objective, wait=wait, rest=rest)
        return _core.scaling_rounds(self.state(), plan, self.options(function, **options))

    def value(self, function, k, z):
        return _core.scaling_function(self.state(), k, z, self.options(function))

    def state(self):
        names = ("weights", "potentials", "inverse", "empirical", "mass", "largest_sum")
        return _core.ScalingState(self.objective, **{name: getattr(self, name) for name in names})

    def options(self, function, **options):
        options = {"max_newton": 1 if function == "cd" else 100} | options
        return _core.ScalingOptions(l2=self.l2, function=function, **options)


def begin(case, loss="log", l2=0.4, weights=None) -> State:
    objective = case.objective(loss)
    n, width = case.n, case.structure.width
    weights = np.zeros(case.features.num_weights) if weights is None else np.array(weights)
    potentials, inverse = np.empty(n * width), np.empty(n)
    _core.scaling_refresh(objective, weights, potentials, inverse)
    empirical, mass, columns, _, n_cells = _core.scaling_constants(objective)
    largest = _core.scaling_largest_sum(objective)
    assert n_cells == case.features.num_cells
    return State(objective, l2, weights, potentials, inverse, empirical, mass, columns, largest, LOSSES[loss][0])


def check_cells(case, state, rtol=1e-11):
    """Check that the tables S and T (potentials, inverse sums) equal those computed anew from the weights."""
    fresh = np.empty_like(state.potentials), np.empty_like(state.inverse)
    _core.scaling_refresh(state.objective, state.weights, *fresh)
    shape = (case.structure.width, case.n)
    mine = state.potentials.reshape(shape) * state.inverse
    np.testing.assert_allclose(mine, fresh[0].reshape(shape), rtol=rtol, atol=1e-14)
