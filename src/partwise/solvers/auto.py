"""`solve`, and the choice of a solver where none is named.

The rule of "auto", by loss and size:

    hinge, squared hinge              bcfw
    hinge, kernels                    eg
    hinge, kernels, weak penalty      excessive-gap (curvature above `WEAK_HINGE`)
    smooth, kernels                   eg
    smooth, small or l2 = 0           lbfgs, to a relative gap of 1e-18 or the rounding floor: weights to about 1e-8
    smooth, weak penalty              lbfgs, where eg is slow (000, section 7.1.1)
    smooth, one part, few weights     newton with a diagonal preconditioner (n_weights <= n_examples / `MANY_EXAMPLES`)
    smooth, one part a labelling      sdca, to a weaker penalty than eg
    smooth, else                      eg

Small: at most `SMALL` slots and `SMALL` weights. Weak: the mean over examples of omega_i |psi_i|^2 / (parts_i l2), the
curvature of one part's share of the dual in units of the entropy's, above `WEAK`. Measured on 1500 MNIST digits (log
loss, to a certified 1e-3): curvature 2e4: eg 3.0 s, lbfgs 5.9 s; 2e5: 5.3 and 6.8; 2e6: 18 and 6.1. Few
weights, l2 = 1, to a certified 1e-3: a9a (66 examples a weight) newton 0.05 s, sdca 0.30 s; w8a (41) 0.07 and 0.23; but
all of MNIST (6) at l2 = 10: newton 6.3 s, sdca 1.5 s.

Hinge, the first 1000 sentences of CoNLL-2000: at l2 = 2 (curvature 25) bcfw is at a relative gap of 1e-1, 1e-2 and 1e-3
after 0.7, 1.5 and 2.9 s of CPU time, eg at 0.035 after 6 s, excessive-gap at 0.12; at l2 = 0.2 (250) they are at 4e-3,
0.6 and 0.3 after 6 s; at l2 = 0.02 (2500) bcfw and excessive-gap are at 0.15 and 0.11 after 30 s. On 1000 words of OCR
letters at l2 = 2: 1e-3 after 1.5 s, 0.036 and 0.078 after 6 s. Squared hinge, l2 = 2, all of CoNLL-2000: bcfw is at
1e-2 and 1e-3 after 9.0 and 16 s, dcd after 8.4 and 22 s; OCR letters: at 1e-1 after 15 s, dcd after 23 s, cpd after
17 s.
"""

import logging
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problem import Problem
from ..result import Result
from .base import Callback, Solver, WarmStart, logger
from .bcfw import BCFW
from .checkpoint import Checkpoint
from .eg import EG
from .excessive_gap import ExcessiveGap
from .lbfgs import LBFGS
from .newton import Newton
from .registry import check_fits, describe, get_solver, no_solver, suitable_solvers
from .sdca import SDCA

#: Slots and weights of a problem that L-BFGS solves to machine precision in a moment.
SMALL = 100_000
#: Relative gap asked for on small smooth problems; |w - w*| <= sqrt(2 gap / l2).
EXACT = 1e-18
#: Curvature above which online EG is slower than L-BFGS.
WEAK = 3e5
#: Curvature above which exact blocks are.
WEAK_EXACT = 3e6
#: Examples a weight from which a few Newton steps are faster than passes over single examples.
MANY_EXAMPLES = 20
#: Curvature above which excessive gap is ahead of online EG on the hinge (1000 sentences: level at 25, ahead at 250).
WEAK_HINGE = 100.0


@dataclass(frozen=True)
class Choice:
    """A solver, the tolerance to run it to, and why."""

    solver: Solver[Any]
    tol: float
    reason: str


def choose(problem: Problem, tol: float) -> Choice:
    """The solver of "auto" (see the module's docstring)."""
    fitting = suitable_solvers(problem)
    if not fitting:
        raise ValueError(f"{describe(problem)}: {no_solver(problem)}")
    if len(fitting) == 1:
        return Choice(get_solver(fitting[0]), tol, f"the one solver for {describe(problem)}")
    if "bcfw" in fitting:
        return Choice(BCFW(), tol, f"loss {problem.loss.name!r}")
    if not problem.loss.smooth:
        if "excessive-gap" in fitting and (curvature := dual_curvature(problem)) > WEAK_HINGE:
            reason = f"loss {problem.loss.name!r} with a weak penalty (curvature {curvature:.3g} > {WEAK_HINGE:g})"
            return Choice(ExcessiveGap(), tol, reason)
        return Choice(EG(), tol, f"loss {problem.loss.name!r} with a kernel")
    if "explicit weights" not in problem.capabilities():
        return Choice(EG(), tol, "smooth with a kernel")
    slots = int(problem.structure.slot_offsets()[-1])
    if max(slots, problem.n_weights) <= SMALL:
        return Choice(LBFGS(), min(tol, EXACT) if tol > 0 else tol, f"small and smooth ({slots} slots)")
    if "eg" not in fitting:
        return Choice(LBFGS(), tol, "smooth")
    exact = "sdca" in fitting
    if exact and "newton" in fitting and MANY_EXAMPLES * problem.n_weights <= len(problem.active):
        newton = Newton(preconditioner="diagonal", cg_tol=0.3, part=4)
        return Choice(newton, tol, f"smooth, one part a labelling, few weights ({problem.n_weights})")
    curvature, weak = dual_curvature(problem), WEAK_EXACT if exact else WEAK
    if curvature > weak:
        return Choice(LBFGS(), tol, f"smooth with a weak penalty (curvature {curvature:.3g} > {weak:g})")
    if exact:
        return Choice(SDCA(), tol, f"smooth and large ({slots} slots), one part a labelling")
    return Choice(EG(), tol, f"smooth and large ({slots} slots)")


def dual_curvature(problem: Problem, sample: int = 200) -> float:
    """Mean of omega_i |psi_i|^2 / (parts_i l2) over examples (evenly spaced ones, if there are many)."""
    active = problem.active
    some = active[np.linspace(0, len(active) - 1, min(sample, len(active))).astype(np.int64)]
    indptr, _, counts = problem.gold
    parts = np.diff(np.concatenate([[0.0], np.cumsum(counts)])[indptr])[some]
    bounds = np.array([problem.features.psi2_bound(int(i)) for i in some])
    return float(np.mean(problem.sample_weight[some] * bounds / np.maximum(parts, 1.0)) / problem.l2)


def solve(
    problem: Problem,
    solver: str | Solver[Any] = "auto",
    *,
    tol: float = 1e-3,
    max_passes: float | None = None,
    max_seconds: float | None = None,
    callback: Callback | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    warm_start: WarmStart | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    verbose: int = 0,
) -> Result:
    """Minimise the problem's objective and certify the result.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver
        A name (`available_solvers()`), a solver with hyper-parameters of your own, or "auto".
    tol : float
        Stop at gap <= tol * |primal|. 0: run to max_passes (or until rounding allows no further progress).
    max_passes, max_seconds : float, optional
        Stop after this many passes over the data (every trial step counted; default: the solver's limit) or seconds.
    callback : callable, optional
        Called with a `Progress` after each epoch; an answer that is true stops the run.
    n_jobs : int, optional
        Threads (default: the problem's).
    random_state : int, Generator, RandomState or None
        The same seed and n_jobs give the same bits. None: another seed each time.
    warm_start : Result, DualPoint or weights, optional
        What to start from; a solver that cannot start from it says so.
    checkpoint : path or Checkpoint, optional
        Save the state there now and then and at the end; if the file is there, go on from it.
    verbose : int
        1: log each certificate.

    Raises
    ------
    ValueError
        If the solver does not fit the problem; the message says which do.
    DivergenceError
        If the iterates run away.

    Warns
    -----
    ConvergenceWarning
        If the tolerance was not reached.
    """
    problem = problem.with_n_jobs(n_jobs)
    if isinstance(solver, str) and solver == "auto":
        choice = choose(problem, tol)
    else:
        choice = Choice(get_solver(solver) if isinstance(solver, str) else solver, tol, "")
    check_fits(choice.solver, problem)
    if choice.reason:
        logger.log(logging.INFO if verbose else logging.DEBUG, "auto: %s, %s", choice.solver.name, choice.reason)
    return choice.solver.run(
        problem,
        tol=choice.tol,
        max_passes=max_passes,
        max_seconds=max_seconds,
        callback=callback,
        random_state=random_state,
        warm_start=warm_start,
        checkpoint=checkpoint,
        verbose=verbose,
        enough=tol if choice.tol < tol else 0.0,
    ).noted(f"auto chose {choice.solver.name}: {choice.reason}" if choice.reason else "")
