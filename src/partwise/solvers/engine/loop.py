"""The loop behind `Solver.run`: stopping, history, timing, callback, checkpoints, warnings. No mathematics."""

import contextlib
import json
import logging
import math
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from partwise.model_files.errors import CheckpointError
from partwise.problem import CertificateError, ConvergenceWarning, DivergenceError, Problem, Result
from partwise.problem.deadline import OutOfTime, deadline
from partwise.problem.result import HISTORY, Certificate, Status
from partwise.solvers.engine import checkpoint as files
from partwise.solvers.engine.base import Callback, Certified, Progress, Solver, WarmStart, generator, logger
from partwise.solvers.engine.checkpoint import Checkpoint, Saved
from partwise.solvers.engine.data_sample import Look
from partwise.solvers.engine.point_conversions import ForeignPoint, check_point
from partwise.solvers.engine.registry import SOLVERS, check_fits, suitable_solvers
from partwise.solvers.engine.state import State, pack, unpack
from partwise.support.arrays import Array
from partwise.support.checks import check_positive
from partwise.support.lazy import cached_property
from partwise.support.memory import check_room, check_weights

#: Statuses of runs that did not reach their tolerance.
UNFINISHED = ("max_passes", "max_seconds", "stalled")
#: Seconds that a step always has, so that a short limit does not prevent the first step on small data; and the factor
#: on the longest step so far within which a step may run without a deadline.
LEAST_STEP, SLOWER = 0.2, 4.0


@dataclass(frozen=True)
class Limits:
    """When to stop: at a relative gap of `tol`, or up to some passes at a smaller one (`precise`: gap, passes)."""

    tol: float
    max_passes: float
    max_seconds: float | None
    precise: tuple[float, float] | None = None

    def target(self, passes: float) -> float:
        gap, most = self.precise or (self.tol, 0.0)
        return min(self.tol, gap) if passes < most else self.tol

    def __post_init__(self) -> None:
        check_positive("tol", self.tol, zero=True)
        if not self.max_passes >= 0:
            raise ValueError(f"max_passes must be >= 0, got {self.max_passes}")
        if self.max_seconds is not None and not self.max_seconds >= 0:
            raise ValueError(f"max_seconds must be >= 0, got {self.max_seconds}")


@dataclass
class Run:
    """One run of a solver on a problem."""

    solver: Solver[Any]
    problem: Problem
    limits: Limits
    callback: Callback | None
    checkpoint: Checkpoint | None
    verbose: int

    def __post_init__(self) -> None:
        solver, problem = self.solver, self.problem
        check_fits(solver, problem)
        check_weights(problem.n_weights, problem.sums.facts.structure)
        if solver.slot_vectors:
            slots = problem.n_slots
            check_room(8.0 * solver.slot_vectors * slots, f"{solver.name}: dual variables of {slots:,} slots")
        self.history: dict[str, list[float]] = {name: [] for name in (*HISTORY, *solver.traced)}
        self.started = time.perf_counter()
        self.saved, self.saved_passes = self.started, 0.0
        self.longest_step = inf  # before the first step nothing is known
        self.unsaved = False  # whether a checkpoint could not be written
        self.resumed = False
        self.proven = False  # whether steps from a resumed state led to a certificate

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def passes(self, state: State) -> float:
        """Return the examples visited over the number of active examples."""
        return state.visits / len(self.problem.active)

    def _target(self, state: State) -> float:
        return self.limits.target(self.passes(state))

    def go(self, random_state: Any, warm_start: WarmStart | None) -> Result:
        with _shown(self.verbose):
            latest: Certified | None = None
            if self.checkpoint is not None and os.path.exists(self.checkpoint.path):
                state, ended = self._resume(self.checkpoint.path)
                self.saved_passes = self.passes(state)
                if ended:  # a finished run that is resumed must not make one more step
                    latest = self._certify(state)
            else:
                state, warm = self._begin(generator(random_state), warm_start)
                self._place(state)
                if warm or self.solver.check_due(state, self._target(state)):
                    latest = self._certify(state)
                    self.solver.observe(self.problem, state, latest.certificate)
            return self._conclude(state, *self._loop(state, latest))

    def _begin(self, rng: np.random.Generator, warm_start: WarmStart | None) -> tuple[State, bool]:
        """Return the state before the first step, and whether it is that of the warm start."""
        try:
            return self.solver.init_state(self.problem, rng, warm_start), warm_start is not None
        except ForeignPoint as error:
            warnings.warn(
                f"{self.solver.name}: the warm start's dual point is not one of this problem ({error}); the run starts "
                "without it. Start from a result of the same structures and masks, or from weights",
                RuntimeWarning,
                stacklevel=5,
            )
            return self.solver.init_state(self.problem, rng, None), False

    def _loop(self, state: State, latest: Certified | None) -> tuple[Status, Certified]:
        """Step until a stopping rule holds. `latest`: the certificate of the current state, None if there is none."""
        solver, problem, limits = self.solver, self.problem, self.limits
        last: Certificate | None = latest.certificate if latest else None
        status = solver.finished(problem, state, last, self._target(state)) if last else None
        while status is None:
            if self.passes(state) >= limits.max_passes:
                status = "max_passes"
                break
            if not self._step(state):
                status = "max_seconds"
                break
            latest = None
            if solver.check_due(state, self._target(state)):
                latest = self._certify(state)
                self.proven, last = True, latest.certificate
                state.checked_epoch, state.checked_gain = state.epoch, state.gain
                state.checked_gap, state.checked_primal = last.gap, last.primal
                solver.observe(problem, state, last)
                status = solver.finished(problem, state, last, self._target(state))
                if self.verbose:
                    passes = self.passes(state)
                    logger.info("%s: pass %.4g, %.2f s, %s", solver.name, passes, self.seconds, self._text(last))
            if self._called_off(state, last, fresh=latest is not None):
                status = status or "stopped"
            elif limits.max_seconds is not None and self.seconds >= limits.max_seconds:
                status = status or "max_seconds"
            since = time.perf_counter() - self.saved, self.passes(state) - self.saved_passes
            # The end is saved later, with its status: otherwise a resumed run would make more steps.
            if status is None and self.checkpoint is not None and self.checkpoint.due(*since):
                self._save(state)
        if latest is None:
            latest = self._certify(state)
            # The last step may have reached the tolerance unnoticed.
            status = solver.finished(problem, state, latest.certificate, self._target(state)) or status
        return status, latest

    def _step(self, state: State) -> bool:
        """Make a step; return False if it was given up at `max_seconds`, which restores the state before it."""
        before = time.perf_counter()
        left = inf if self.limits.max_seconds is None else max(self.limits.max_seconds - self.seconds, LEAST_STEP)
        # Only where the step may be late: a copy that is not needed takes time and memory.
        late = left < inf and self.longest_step * SLOWER >= left
        kept = state.copied() if late else None
        try:
            with self._blaming_the_file(), deadline(left) if late else contextlib.nullcontext():
                self.solver.step(self.problem, state)
        except OutOfTime:
            vars(state).update(vars(kept))
            return False
        self.longest_step = max(time.perf_counter() - before, self.longest_step if state.epoch > 1 else 0.0)
        return True

    def _certify(self, state: State, seconds: float | None = None) -> Certified:
        """Return the state's certificate, and add it to the history, dated `seconds` (None: now)."""
        with self._blaming_the_file():
            certified = self.solver.certificate(self.problem, state)
            if not math.isfinite(certified.certificate.primal):
                raise DivergenceError(f"{self.solver.name}: the objective is {certified.certificate.primal}")
        if self.history["passes"][-1:] != [self.passes(state)]:
            c = certified.certificate
            now = self.seconds if seconds is None else seconds
            row = (self.passes(state), now, c.primal, c.dual, c.gap, *self.solver.trace(self.problem, state))
            for name, value in zip(self.history, row, strict=True):
                self.history[name].append(value)
        return certified

    def _conclude(self, state: State, status: Status, latest: Certified) -> Result:
        name, passes, c, problem = self.solver.name, self.passes(state), latest.certificate, self.problem
        if status in UNFINISHED and 0 < self.limits.tol >= c.relative_gap:
            status = "converged"  # `precise` aimed below the tolerance
        if status in UNFINISHED and not self.solver.certified:
            status = "no certificate"
        self.solver.check_end(problem, state, status)
        own = type(self.solver).__module__.startswith("partwise.")
        if not own and (complaint := self._complaint(latest)):  # a pass: nothing else checks a user's solver
            raise CertificateError(f"solver {name!r}: {complaint}")
        if self.checkpoint:
            self._save(state, status)
        message = f"{name}: {status} after {passes:.4g} passes, {self._text(c)}"
        if status == "stalled" and c.rounding > 0.5 * c.gap:
            message += f", of which rounding may be {c.rounding:.3g}: more is beyond double precision"
        if remark := self.solver.remark(problem, state):
            message += f"; {remark}"
        logger.log(logging.INFO if self.verbose else logging.DEBUG, message)
        # A callback that stops a run has seen the gap: no warning.
        if status in UNFINISHED and self.limits.tol > 0:
            others = [other for other in suitable_solvers(problem) if other != name and SOLVERS[other].certified]
            advice = self.solver.advice + (f", or try solver {' or '.join(map(repr, others))}" if others else "")
            look = Look(problem)
            if problem.sums.explicit_weights and look.different_scales:  # the usual cause of a large gap
                ratio = f"{look.scale_ratio:.2g}"
                advice += f". The features' scales differ by a factor of {ratio}: bring them to one scale first"
            warnings.warn(f"{message}; tol is {self.limits.tol:.3g}. {advice}.", ConvergenceWarning, stacklevel=5)
        return Result(
            weights=latest.weights,
            primal=c.primal,
            dual=c.dual,
            gap=c.gap,
            rounding=c.rounding,
            passes=passes,
            seconds=self.seconds,
            status=status,
            solver=name,
            l2=problem.l2,
            l1=problem.l1,
            history={column: np.array(values) for column, values in self.history.items()},
            dual_point=latest.point,
            message=message,
        )

    def _text(self, certificate: Certificate) -> str:
        return certificate.text(self.problem.l2, self.solver.certified)

    def _called_off(self, state: State, last: Certificate | None, fresh: bool) -> bool:
        if self.callback is None:
            return False
        before, limits = time.perf_counter(), self.limits
        now = self.solver.name, state.epoch, self.passes(state), self.seconds, last, fresh
        told = Progress(
            *now,
            weights=lambda: self.solver.weights(self.problem, state),
            tol=limits.tol,
            max_passes=limits.max_passes,
            max_seconds=limits.max_seconds,
            record=lambda: self._certify(state, told.seconds).certificate,
        )
        answer = self.callback(told)
        self.started += time.perf_counter() - before  # the callback's time is not the solver's
        return bool(answer)

    def _save(self, state: State, status: Status | None = None) -> None:
        assert self.checkpoint is not None
        try:
            self.solver.before_save(self.problem, state)
            seconds, history, packed = self.seconds, self.history, pack(state)
            saved = Saved(self.solver.name, self.solver.options(), *self._identity, seconds, status, history, *packed)
            files.write(self.checkpoint.path, saved)
            self.solver.after_save(self.problem, state)
        except OSError as error:  # such as a full disk: the run is worth more than its copy
            if not self.unsaved:
                path, reason = os.fspath(self.checkpoint.path), (error.strerror or str(error)).lower()
                text = f"{path}: the checkpoint cannot be written ({reason}); the run goes on"
                warnings.warn(text, RuntimeWarning, stacklevel=6)
            self.unsaved = True
        self.saved, self.saved_passes = time.perf_counter(), self.passes(state)

    def _resume(self, path: str | os.PathLike[str]) -> tuple[State, bool]:
        """Return the saved state, and whether its run had ended; raise CheckpointError if it is not of this run."""
        saved = files.read(path)
        mine = {"solver": self.solver.name, "options": self.solver.options()}
        for key, value in mine.items():
            if not _same(theirs := getattr(saved, key), value):
                raise CheckpointError(f"was written with {key} {theirs}, this run has {value}", path)
        constants, data = self._identity
        if not _same(saved.problem, constants):
            names = dict.fromkeys([*constants, *saved.problem])
            changed = [name for name in names if saved.problem.get(name) != constants.get(name)]
            raise CheckpointError(f"was written for another problem ({', '.join(changed)} differ)", path)
        if where := files.difference(saved.data, data):
            raise CheckpointError(f"was written for another problem ({where})", path)
        try:
            state = self._restored(saved)
        except (ValueError, ArithmeticError) as error:
            raise CheckpointError(f"holds no state of this run ({error})", path) from None
        if set(saved.history) != set(self.history):
            raise CheckpointError("has an invalid history", path)
        self.resumed = True
        self.history = {name: saved.history[name] for name in self.history}
        self.started = time.perf_counter() - saved.seconds
        return state, saved.status is not None

    def _place(self, state: State) -> None:
        if self.checkpoint is not None:
            self.solver.place(self.problem, state, os.path.dirname(os.path.realpath(self.checkpoint.path)))

    def _restored(self, saved: Saved) -> State:
        """Return the saved state; raise ValueError unless its certificate is what its dual point and weights give."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # the run warned about the data when it began
            fresh: State = self.solver.init_state(self.problem, np.random.default_rng(0), None)
            state = unpack(fresh, saved.arrays, saved.scalars)
            self._place(state)
            if saved.history["passes"] and saved.history["passes"][-1] > self.passes(state):
                raise ValueError("its history is longer than the run")
            certified = self.solver.certificate(self.problem, state)
            if certified.point is not None:
                check_point(self.problem, certified.point.with_blocks())
            if complaint := self._complaint(certified):
                raise ValueError(f"its weights and its dual point are not those of its certificate: {complaint}")
        return state

    def _complaint(self, certified: Certified) -> str:
        """Return which value of a certificate the problem does not confirm, or ""."""
        stated, weights, point = certified
        problem = self.problem
        own = Certificate.none(problem.value(weights)) if point is None else problem.certificate(weights, point)
        for name in ("primal", "dual"):
            says, found = getattr(stated, name), getattr(own, name)
            if not (says == found or abs(says - found) <= 1e-9 * abs(says) + own.rounding):
                return f"the certificate says {name} {says:.10g}, the problem {found:.10g}"
        return ""

    @contextlib.contextmanager
    def _blaming_the_file(self) -> Iterator[None]:
        """In a resumed run, turn errors that the saved state may have caused into CheckpointError."""
        try:
            yield
        except (ValueError, CertificateError, DivergenceError) as error:
            blameless = isinstance(error, DivergenceError) and self.proven
            if not self.resumed or self.checkpoint is None or blameless:
                raise
            raise CheckpointError(f"holds no state of this run ({error})", self.checkpoint.path) from error

    @cached_property
    def _identity(self) -> tuple[dict[str, Any], dict[str, Array]]:
        return files.constants(self.problem), files.answers(self.problem)


def _same(theirs: object, mine: object) -> bool:
    return json.dumps(theirs, sort_keys=True) == json.dumps(mine, sort_keys=True)


@contextlib.contextmanager
def _shown(verbose: int) -> Iterator[None]:
    """Show the logger's messages during a verbose run, if the program has set up no logging itself."""
    if not verbose or logger.hasHandlers():
        yield
        return
    handler, level = logging.StreamHandler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
