"""The interface of solvers: hyper-parameters in a frozen dataclass, a separate state, one epoch per step, `run`.

A run stops when, after a step, gap <= tol * |primal| (checked whenever a certificate is issued), rounding hides the
rest of the gap, passes >= max_passes, seconds >= max_seconds, or a callback says so; with tol = 0 the first two never
hold. It ends with a certificate, and has converged if its gap, rounding included, is at most tol * |primal|, or at most
ROUNDING_FLOOR * |primal| where double precision allows no further progress.
"""

import logging
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, final

import numpy as np

from partwise.problem import Capability, Certificate, DualPoint, Loss, Problem, Result, Status
from partwise.solvers.engine.checkpoint import Checkpoint
from partwise.solvers.engine.options import at_least, check_options, option
from partwise.solvers.engine.point_conversions import check_point
from partwise.solvers.engine.state import State
from partwise.support.arrays import Floats

S = TypeVar("S", bound=State)

#: What a run can start from: an earlier result, a dual point, or weights.
WarmStart = Result | DualPoint | Floats

logger = logging.getLogger("partwise.solvers")

#: Rates of convergence, by the number of passes to an accuracy eps.
RATES = {
    "linear": "O(log 1/eps)",
    "accelerated": "O(1/sqrt(eps))",
    "sublinear": "O(1/eps) or more",
    "none": "it may stay away from the optimum",
}
#: A run that can get no further in double precision has converged if its relative gap is at most this.
ROUNDING_FLOOR = 1e-10


class Certified(NamedTuple):
    """A certificate with the weights and the dual point that it is about (None: `Solver.certified` is False)."""

    certificate: Certificate
    weights: Floats
    point: DualPoint | None


@dataclass(frozen=True)
class Progress:
    """What a callback gets after each step; if the callback returns a true value, the run stops.

    certificate: the last one issued, None before the first. fresh: whether it was issued in this step. weights: a
    function that returns the current weights. tol, max_passes, max_seconds: the limits at which the run stops by
    itself. scores: scores of this step by name, filled in by the callbacks. last_scores: (score, passes) of the last
    score of each name, before this step. record: a function that issues a certificate of the current state for the
    history, and returns it, unseen by the solver.
    """

    solver: str
    epoch: int
    passes: float
    seconds: float
    certificate: Certificate | None
    fresh: bool
    weights: Callable[[], Floats]
    tol: float = 0.0
    max_passes: float = math.inf
    max_seconds: float | None = None
    scores: dict[str, float] = field(default_factory=dict)
    last_scores: dict[str, tuple[float, float]] = field(default_factory=dict)
    record: Callable[[], Certificate | None] = lambda: None


Callback = Callable[[Progress], Any]


@dataclass(frozen=True)
class Solver(ABC, Generic[S]):
    """A solver's hyper-parameters and four methods: `init_state`, `step`, `certificate` and `weights`.

    Subclasses are frozen dataclasses, whose fields are made by `option` (docs/how_to_add_a_solver.md).
    """

    #: The name that `get_solver` takes.
    name: ClassVar[str]
    #: The capabilities it needs; problems that lack one are refused.
    requires: ClassVar[frozenset[Capability]]
    #: One of RATES, for losses with a temperature above 0, and for those of temperature 0 (see `rate_for`).
    rate: ClassVar[str]
    rate_at_zero: ClassVar[str] = "sublinear"
    #: What is proved of its convergence, and where.
    proof: ClassVar[str] = "no proof known to us"
    #: What to do when the tolerance is not reached.
    advice: ClassVar[str]
    #: Passes after which a run ends unless the caller sets another limit.
    default_max_passes: ClassVar[int]
    #: Columns of its history in addition to those of every history (`trace`).
    traced: ClassVar[tuple[str, ...]] = ()
    #: Whether its certificates have a dual value. Where not, a run ends after its passes, with "no certificate".
    certified: ClassVar[bool] = True
    #: How many numbers per slot its state holds, for the estimate of memory.
    slot_vectors: ClassVar[int] = 0
    #: Whether its state holds nothing about single examples: a step may then visit other examples than the last step.
    incremental: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self)

    @abstractmethod
    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> S:
        """Return the state before the first step."""

    @abstractmethod
    def step(self, problem: Problem, state: S) -> None:
        """Make one epoch, in place."""

    @abstractmethod
    def certificate(self, problem: Problem, state: S) -> Certified:
        """Return the certificate of the state's weights, recomputed from its dual point; do not change the state."""

    @abstractmethod
    def weights(self, problem: Problem, state: S) -> Floats:
        """Return the weights of the state."""

    def trace(self, problem: Problem, state: S) -> tuple[float, ...]:
        """Return a number for each of the columns `traced`; it may be infinite, but not NaN."""
        return ()

    def check_due(self, state: S, tol: float) -> bool:
        """Return whether to issue a certificate now; by default always (for solvers whose certificates are free)."""
        return True

    def observe(self, problem: Problem, state: S, certificate: Certificate) -> None:
        """Store what the state needs of a certificate that was due; others would differ in a resumed run."""

    def finished(self, problem: Problem, state: S, certificate: Certificate, tol: float) -> Status | None:
        """Return the status to stop with, given a new certificate; None to continue. Do not change the state."""
        if tol > 0 and certificate.gap <= tol * abs(certificate.primal):
            return "converged"
        ended = (tol > 0 and certificate.hidden(tol)) or self.is_stalled(state)
        return self.at_the_end(certificate) if ended else None

    def is_stalled(self, state: S) -> bool:
        """Return whether no step can improve anything in double precision, as far as the solver knows."""
        return False

    @final
    def at_the_end(self, certificate: Certificate) -> Status:
        """Return the status of a run that double precision allows no further progress."""
        return "converged" if certificate.relative_gap <= ROUNDING_FLOOR else "stalled"

    def check_end(self, problem: Problem, state: S, status: Status) -> None:
        """Raise DivergenceError if the state must not become a result; called once, before the result is made."""

    def remark(self, problem: Problem, state: S) -> str:
        """Return what the result's message should add, or ""."""
        return ""

    def in_blocks(self) -> Any:
        """Return how the solver works on parts of the examples, which must be with a shift (`InBlocks`); or None."""
        return None

    def place(self, problem: Problem, state: S, folder: str) -> None:
        """Note the folder of the run's checkpoint; called before the first step if the run has one."""

    def before_save(self, problem: Problem, state: S) -> None:
        """Make what the state refers to last as long as the checkpoint that it is about to be written to."""

    def after_save(self, problem: Problem, state: S) -> None:
        """Called after the checkpoint has replaced any earlier one."""

    @final
    @classmethod
    def rate_for(cls, loss: Loss) -> str:
        """Return the rate for this loss, one of RATES: smooth losses have other rates than losses of temperature 0."""
        return cls.rate if loss.smooth else cls.rate_at_zero

    @final
    @classmethod
    def rates(cls) -> dict[str, str]:
        """Return the rates of the losses that the solver takes, by "temperature > 0" and "temperature 0"."""
        all_rates = {Capability.SMOOTH: ("temperature > 0", cls.rate)}
        all_rates[Capability.TEMPERATURE_0] = ("temperature 0", cls.rate_at_zero)
        asked = [name for name in all_rates if name in cls.requires] or list(all_rates)
        return dict(all_rates[name] for name in asked)

    @final
    @classmethod
    def describe_rate(cls) -> str:
        """Return the rates in words, and what is proved."""
        found = cls.rates()
        same = len(set(found.values())) == 1
        words = next(iter(found.values())) if same else ", ".join(f"{rate} at {at}" for at, rate in found.items())
        return f"{words} ({cls.proof})"

    @final
    def missing(self, problem: Problem) -> frozenset[Capability]:
        """Return the capabilities that the solver needs and the problem lacks."""
        return self.requires - problem.capabilities()

    @final
    def options(self) -> dict[str, Any]:
        """Return the hyper-parameters by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @final
    def run(
        self,
        problem: Problem,
        *,
        tol: float = 1e-3,
        max_passes: float | None = None,
        max_seconds: float | None = None,
        callback: Callback | None = None,
        random_state: Any = 0,
        warm_start: WarmStart | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        verbose: int = 0,
        precise: tuple[float, float] | None = None,
    ) -> Result:
        """Run to a stopping rule (see the module's docstring) and certify; parameters are those of `solve`.

        `precise` = (relative gap, passes): up to this many passes, the run continues beyond `tol` to this gap.
        """
        from partwise.solvers.engine.loop import Limits, Run

        limits = Limits(tol, self.default_max_passes if max_passes is None else max_passes, max_seconds, precise)
        file = checkpoint if isinstance(checkpoint, Checkpoint | None) else Checkpoint(checkpoint)
        return Run(self, problem, limits, callback, file, verbose).go(random_state, warm_start)


@dataclass(frozen=True)
class ScheduledSolver(Solver[S]):
    """A solver whose certificate costs half a pass: it is issued when the gap is guessed to be near the tolerance."""

    advice = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes = 1000
    #: Passes between certificates, at most, while few passes were made.
    seldom: ClassVar[int] = 5

    check_every: int | None = option(
        None, "passes between certificates; by default when the gap may be near tol", at_least(1)
    )

    def check_due(self, state: S, tol: float) -> bool:
        """Return whether the gap may be within tol, or `seldom` passes (or a twentieth of all) had no certificate."""
        since = state.epoch - state.checked_epoch
        if self.check_every is not None:
            return since >= self.check_every
        primal = state.checked_primal or getattr(state, "dual", 0.0)  # as last certified, or about the dual value
        return since >= max(self.seldom, state.epoch // 20) or self.guess_gap(state) <= tol * abs(primal)

    def weights(self, problem: Problem, state: S) -> Floats:
        weights: Floats = vars(state)["weights"]
        return weights.copy()

    def guess_gap(self, state: S) -> float:
        """Return about how large the gap is: it is assumed to shrink like the solver's own measure of progress."""
        return state.checked_gap * state.gain / state.checked_gain if state.checked_gain else state.gain


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator from a seed, a Generator, a RandomState (one number is drawn from it) or None."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(np.iinfo(np.int32).max)
    return np.random.default_rng(random_state)


def start_weights(problem: Problem, warm_start: WarmStart | None) -> Floats:
    """Return the weights to start from: zeros, or those of the warm start."""
    if warm_start is None:
        return np.zeros(problem.n_weights)
    if isinstance(warm_start, Result):
        warm_start = warm_start.weights
    weights = problem.weights_from_dual(warm_start) if isinstance(warm_start, DualPoint) else warm_start
    weights = np.array(weights, dtype=np.float64)
    if weights.shape != (problem.n_weights,):
        raise ValueError(f"warm start: weights of shape {weights.shape}, the problem has {problem.n_weights}")
    if not np.isfinite(weights).all():
        raise ValueError("warm start: weights that are not finite")
    return weights


def start_point(problem: Problem, warm_start: WarmStart | None, kinds: tuple[str, ...]) -> DualPoint | None:
    """Return a dual point of one of these kinds to start from, if the warm start has one; check it (`check_point`)."""
    point = warm_start.dual_point if isinstance(warm_start, Result) else warm_start
    if not isinstance(point, DualPoint) or (point := point.with_blocks()).kind not in kinds:
        return None
    check_point(problem, point)
    return point


def require_point(problem: Problem, warm_start: WarmStart, kinds: tuple[str, ...], solver: str) -> DualPoint:
    """Return a dual point of one of these kinds to start from; ValueError if the warm start has none."""
    point = start_point(problem, warm_start, kinds)
    if point is None:
        listed = ", ".join(map(repr, kinds))
        raise ValueError(
            f"{solver} starts from a dual point whose distributions are known (of kind {listed}, as in an earlier "
            "result); weights alone do not give them"
        )
    return point
