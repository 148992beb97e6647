"""`solve`, and the choice of a solver where none is named.

The rule of "auto", by loss and by estimates from some examples (`Look`); the first line that fits:

    l1 > 0, one part per labelling    cd-l1, if l2 = 0, the problem is tiny or weights are few (see `_few_weights`)
    l1 > 0                            eg-prox
    l1 > 0, batches not in memory     owlqn
    hinge, squared hinge              bcfw, with draws by gaps (see `_max_margin`)
    hinge, batches not in memory      block-dual with bcfw, or excessive-gap where there are no files for dual variables
    hinge, kernels                    eg
    hinge, kernels, weak penalty      excessive-gap (curvature above `WEAK_HINGE`)
    else at temperature 0             one-slack
    smooth, kernels                   eg
    smooth, l2 = 0 or squared link    lbfgs
    smooth, different scales          newton, diagonal preconditioner (`Look.different_scales`, curvature > `STEEP`)
    smooth, tiny (`TINY`)             one part per labelling: the same; else lbfgs
    smooth, oracle in Python          lbfgs, where weights are few (`_few_weights`); else as below
    smooth, one part, columns         cd, where a slot has few 0/1 features and weights are few (see `_few_columns`)
    smooth, one part, few weights     the same newton, with parts of the Hessian (see `_few_weights`)
    smooth, very many slots           lbfgs, which keeps nothing per slot (see `too_many_slots`)
    smooth, weak penalty              lbfgs
    smooth, one part per labelling    sdca
    smooth, else                      eg-prox
    the last two, not in memory       block-dual with them, or lbfgs where there are no files for dual variables

Every choice runs to `tol`. On tiny problems the run continues to a relative gap of 1e-18 or the rounding floor (weights
to about 1e-8) while its work is below `FREE`, some ten milliseconds: scikit-learn expects equal problems to have equal
weights. A structure written in Python is never tiny (`Look.work`). What counts there is the number of oracle calls:
`lbfgs` makes fewer where weights are few, `eg-prox` elsewhere (`tests/solvers/test_registry.py` counts both).

Weak: `Look.curvature` is above `WEAK`. Measured on 1500 words of OCR letters (log loss, CPU s to a certified 1e-3),
curvature 1e5: eg-prox 6.2, lbfgs 16.9; 1e6: 11.9, lbfgs at a gap of 0.45 after 20.
Hinge, the first 1000 sentences of CoNLL-2000: at l2 = 2 (curvature 25) bcfw is at a relative gap of 1e-3 after 2.9 s
of CPU time, eg at 0.035 after 6 s, excessive-gap at 0.12; at l2 = 0.2 (250) they are at 4e-3, 0.6 and 0.3 after 6 s.
Squared hinge, l2 = 2, all of CoNLL-2000: bcfw is at 1e-3 after 16 s, dcd after 22 s.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from typing import Any

from partwise.problem import Capability, Problem, Result
from partwise.solvers.engine.base import Callback, Solver, WarmStart, logger
from partwise.solvers.engine.checkpoint import Checkpoint
from partwise.solvers.engine.data_sample import Look
from partwise.solvers.engine.registry import SOLVERS, check_fits, describe, get_solver, no_solver, suitable_solvers

#: What a pass over a tiny problem costs, at most (`Look.work`).
TINY = 1e5
#: Work that a run on a tiny problem may do to go beyond its tolerance, and the fixed cost of a pass.
FREE, PASS = 1e7, 3e4
#: The relative gap that runs on tiny problems aim at; |w - w*| <= sqrt(2 gap / l2).
EXACT = 1e-18
#: Curvature from which differences of scale between columns matter.
STEEP = 1e4
#: Curvature above which L-BFGS is faster than methods that visit single examples.
WEAK = 3e7
#: Examples per weight from which a few Newton steps are faster than passes over single examples: in general, and for
#: rows of at most `SHORT` features and at most `FEW` weights (an exact block costs a microsecond beside its row).
MANY_EXAMPLES, MANY_SHORT, SHORT, FEW = 20, 0.5, 60, 2000
#: Weights, and mean number of features per slot, up to which steps on single columns are faster.
FEW_COLUMNS, FEW_FEATURES = 10_000, 4.5
#: Dual variables that are always allowed, and further ones per gold part: with all weights penalised, and otherwise.
DUAL_SIZE, DUAL_PER_PART, DUAL_PER_FREE_PART = 1 << 22, 500, 2000
#: Curvature above which excessive gap beats online EG on the hinge (1000 sentences: equal at 25, faster at 250).
WEAK_HINGE = 100.0


@dataclass(frozen=True)
class Choice:
    """A solver and why; where `exact_passes` > 0, this many passes may be spent on going beyond the tolerance."""

    solver: Solver[Any]
    reason: str
    exact_passes: float = 0.0


def choose(problem: Problem) -> Choice:
    """Return the solver of "auto" (see the module's docstring); solvers that users registered do not change it."""
    have = problem.capabilities()

    def fits(name: str) -> bool:
        return SOLVERS[name].requires <= have

    choice = _sparse(problem, fits) if problem.l1 else _rule(problem, fits)
    if fits(choice.solver.name):
        return choice
    fitting = [name for name in suitable_solvers(problem) if SOLVERS[name].certified]
    if not fitting:
        raise ValueError(f"{describe(problem)}: {no_solver(problem)}")
    return Choice(get_solver(fitting[0]), f"the one solver for {describe(problem)}")


def _rule(problem: Problem, fits: Callable[[str], bool]) -> Choice:
    """Return the choice without an l1 term; where no solver fits, the solver returned does not fit either."""
    loss = f"loss {problem.loss.name!r}"
    smooth, in_memory = problem.loss.smooth, Capability.IN_MEMORY in problem.capabilities()
    if not smooth and fits("bcfw"):
        return Choice(_max_margin(problem), f"{loss}, examples drawn by their gaps")
    in_files = not in_memory and fits("block-dual")
    if in_files and not smooth:
        return Choice(get_solver("block-dual"), f"{loss}, and batches are not in memory")
    look = Look(problem)
    if not smooth:
        if not (fits("excessive-gap") or fits("eg")):
            return Choice(get_solver("one-slack"), f"{loss}, for which there are only planes")
        if not fits("eg"):
            return Choice(get_solver("excessive-gap"), f"{loss}, and single examples cannot be visited")
        if fits("excessive-gap") and look.curvature > WEAK_HINGE:
            reason = f"{loss} with a weak penalty (curvature {look.curvature:.3g} > {WEAK_HINGE:g})"
            return Choice(get_solver("excessive-gap"), reason)
        return Choice(get_solver("eg"), f"{loss} with a kernel")
    if not problem.sums.explicit_weights:
        return Choice(get_solver("eg"), "smooth with a kernel")
    tiny = look.work <= TINY
    exact_passes = FREE / (look.work + PASS) if tiny else 0.0
    if in_files and not tiny and look.curvature <= WEAK:
        return Choice(get_solver("block-dual"), "smooth, and batches are not in memory")
    if not (fits("eg-prox") or fits("sdca")):
        return Choice(get_solver("lbfgs"), "smooth, and no dual method fits", exact_passes)
    one_part = Capability.DIAGONAL_BLOCKS in problem.capabilities() and fits("sdca")
    if fits("newton"):
        newton = get_solver("newton", preconditioner="diagonal")
        if look.curvature > STEEP and look.different_scales:
            reason = f"smooth, features of different scales (a factor of {look.scale_ratio:.2g})"
            return Choice(newton, reason, exact_passes)
        if one_part and tiny:
            return Choice(newton, "smooth and tiny, one part per labelling", exact_passes)
        if _few_columns(look) and fits("cd"):
            return Choice(get_solver("cd"), f"smooth, few 0/1 features per slot, few weights ({problem.n_weights})")
        if one_part and _few_weights(look):
            newton = get_solver("newton", preconditioner="diagonal", cg_tol=0.3, part=4)
            return Choice(newton, f"smooth, one part per labelling, few weights ({problem.n_weights})")
    if tiny:
        return Choice(get_solver("lbfgs"), "smooth and tiny", exact_passes)
    if isinf(look.work) and _few_weights(look):
        return Choice(get_solver("lbfgs"), f"smooth, an oracle in Python, few weights ({problem.n_weights})")
    if too_many_slots(problem):
        return Choice(get_solver("lbfgs"), "smooth, too many slots for dual variables")
    if look.curvature > WEAK:
        reason = f"smooth with a weak penalty (curvature {look.curvature:.3g} > {WEAK:g})"
        return Choice(get_solver("lbfgs"), reason)
    if one_part:
        return Choice(get_solver("sdca"), "smooth, one part per labelling")
    return Choice(get_solver("eg-prox"), "smooth")


def _max_margin(problem: Problem) -> Solver[Any]:
    """Return `bcfw` with the options that measured best.

    CPU s to a gap of 1e-3 with the default options, with draws by gaps, and with those and `steps=5`, all at l2 = 2.
    Hinge: CoNLL-2000 10.3, 8.2, 7.4; OCR letters 6.7, 8.2, 6.2; names of WNUT 17 3.3, 2.4, 2.4. Squared hinge: names
    12, 3.4, 4.0; CoNLL-2000 8.1, 7.2. `keep=2`: 3 % less work on the hinge.
    """
    hinge = {"steps": 5, "keep": 2} if Capability.IDENTITY_LINK in problem.capabilities() else {}
    return get_solver("bcfw", gap_sampling=True, **hinge)


def in_blocks(solver: Solver[Any], problem: Problem) -> Solver[Any]:
    """Return the solver; if it lacks nothing but batches in memory: the solver on one batch after the other."""
    fits = Capability.BLOCK_FILES in problem.capabilities() and solver.missing(problem) == {Capability.IN_MEMORY}
    if not fits or solver.in_blocks() is None:
        return solver
    # Imported here: `BlockDual` is a solver itself, and imports this package.
    from partwise.out_of_core.block_dual import BlockDual

    return BlockDual.around(solver)


def _sparse(problem: Problem, fits: Callable[[str], bool]) -> Choice:
    """Return the choice where an l1 term makes weights zero."""
    look = Look(problem)
    # CPU s to 1e-3 above the optimum, cd-l1 and eg-prox, C = 1, l1_ratio 0.1 and 0.9: a9a (265 examples per weight)
    # 0.12, 0.56; 0.11, 1.0; 20news (0.01 per weight) more than 8, 1.3; 8.1, 1.6.
    if fits("cd-l1") and (not fits("eg-prox") or problem.l2 == 0 or look.work <= TINY or _few_weights(look)):
        return Choice(get_solver("cd-l1"), "an l1 term, one part per labelling")
    if fits("eg-prox"):
        return Choice(get_solver("eg-prox"), "an l1 term")
    return Choice(get_solver("owlqn"), "an l1 term, and no dual method fits")


def _few_weights(look: Look) -> bool:
    """Return whether there are so many examples per weight that Newton steps beat visits to single examples.

    To a certified 1e-3 at l2 = 1 (newton, sdca): a9a (66 examples per weight, 14 features per row) 0.10 s, 0.48 s; w8a
    (41; 12 features) 0.13, 0.32; its first 2000 rows (1.7) 0.007, 0.015; drawn 0/1 rows of 10 to 50 features, 0.1 per
    weight, level. Long rows: digits (2.3 per weight, 65 features) 0.083, 0.037; MNIST's 3 and 8 (7.6; 785) 0.79, 0.51.
    More than `FEW` weights, short rows: contexts of CoNLL-2000 at l2 = 1 (4 examples per weight, 22 chunk labels): sdca
    is at 1e-3 after 7.6 s, when newton is at a gap of 26 times the objective (`python -m benchmarks maxent-auto`).
    """
    many = MANY_SHORT if look.row_length <= SHORT and look.problem.n_weights <= FEW else MANY_EXAMPLES
    return many * look.problem.n_weights <= len(look.problem.active)


def _few_columns(look: Look) -> bool:
    """Return whether going from column to column is fastest.

    Contexts of CoNLL-2000 with the pairs of attribute and label that meet five times, CPU s to 1e-3 of cd, sdca and
    lbfgs (`python -m benchmarks maxent-auto`), l2 = 1: 1,700 weights 0.02, 0.07, 0.05; 6,500 weights 0.18, 0.29, 0.36;
    17,500 weights 1.3, 1.2, 1.9. With a weight for all pairs, 13 to 20 features per slot: 0.45, 0.06, 0.54.
    """
    few = look.problem.n_weights <= FEW_COLUMNS and look.row_length <= FEW_FEATURES
    return few and Capability.BINARY_FEATURES in look.problem.capabilities()


def too_many_slots(problem: Problem) -> bool:
    """Return whether dual variables, 16 bytes per slot, would take too much memory for the size of the data.

    A tied chain has a slot for every pair of labels in each example: 500 labels and 500 sequences of one position, 5 kB
    in a file, would take 2 GB. More is allowed where weights have no penalty, because lbfgs is slow there.
    """
    each = DUAL_PER_PART if problem.penalty.free is None else DUAL_PER_FREE_PART
    return problem.n_slots > max(DUAL_SIZE, each * float(problem.gold[2].sum()))


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

    solver: a name (`available_solvers()`), a solver with its hyper-parameters, or "auto". tol: stop at gap <= tol *
    |primal|; 0: run to max_passes (or until rounding allows no further progress). "auto" continues to rounding on tiny
    problems, where that takes at most a few milliseconds. max_passes, max_seconds: stop after this many passes over the
    data (every trial step counted; default: the solver's limit) or seconds. callback: called with a `Progress` after
    each epoch; returning a true value stops the run. n_jobs: threads (default: the problem's). random_state: an int,
    Generator, RandomState or None (another seed each time); the same seed and n_jobs give the same bits. warm_start: a
    Result, DualPoint or weights; a solver that cannot start from it says so. checkpoint: a path or Checkpoint; save the
    state there from time to time and at the end, and if the file exists, continue from it. verbose: 1: log each
    certificate.

    ValueError if the solver does not fit the problem (the message says which do); DivergenceError if the iterates
    diverge. A ConvergenceWarning says that the tolerance was not reached.
    """
    problem = problem.with_n_jobs(n_jobs)
    if isinstance(solver, str) and solver == "auto":
        choice = choose(problem)
    else:
        choice = Choice(in_blocks(get_solver(solver) if isinstance(solver, str) else solver, problem), "")
    check_fits(choice.solver, problem)
    if choice.reason:
        logger.log(logging.INFO if verbose else logging.DEBUG, "auto: %s, %s", choice.solver.name, choice.reason)
    return choice.solver.run(
        problem,
        tol=tol,
        max_passes=max_passes,
        max_seconds=max_seconds,
        callback=callback,
        random_state=random_state,
        warm_start=warm_start,
        checkpoint=checkpoint,
        verbose=verbose,
        precise=(EXACT, choice.exact_passes) if choice.exact_passes else None,
    ).noted(f"auto chose {choice.solver.name}: {choice.reason}" if choice.reason else "")
