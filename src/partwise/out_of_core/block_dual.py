"""Problem. max D(alpha) of `problem` for losses whose dual has a part for each example, l2 > 0. The batches' parts have
planes (u_k, b_k): D = sum_k b_k - |sum_k u_k|^2 / (2 l2).

Update. A round visits every batch. A visit reads the batch and its dual variables, makes `passes` steps of another
solver (`inner`: eg, dcd, bcfw, sdca, ...) on the part of the dual that is the batch's, while the other batches' plane
v = sum of u_j over j != k stays,

    max over alpha_k of b_k - |u_k + v|^2 / (2 l2),

which is a problem like any other but for the shift v of u (`Problem.with_shift`), and writes the dual variables. The
next batch begins with w = (u_k + v) / l2. With the same order of visits this is the inner solver in memory. Each round
visits batches in a new order: neighbours in a file are alike, and one order takes twice the passes (docs/scaling.md).

Groups. Batches are divided into `groups`; the walk over each group begins at the round's first weights w, and walks run
on all workers. The changes d_g = w_g - w of all groups are added up at the end. To keep D from falling a group sees its
own changes `scaling` times over, l2 / sigma in place of l2: with v = l2 w / sigma - u_g the group's gain is G_g, w
moves by the sum of d_g / sigma, and D gains

    sum_g G_g + l2 / (2 sigma) (sum_g |d_g|^2 - |sum_g d_g|^2 / sigma),

which is no less than the sum of G_g where sigma is at least the overlap |sum_g d_g|^2 / sum_g |d_g|^2, a number from 0
to `groups` (by the inequality of Cauchy and Schwarz): 0 or 1 where groups move in opposite or unrelated directions,
`groups` where all move alike. Scaling "auto": 1.2 times the largest overlap of the last two rounds, within 1 and
`groups`; in the first round `groups`. A round in which D would fall is made again, from the old files, with twice that
sigma, at most `groups`, with which it cannot. So D never falls. Groups move alike in the first rounds, and less and
less later. A constant sigma below the first rounds' overlap does harm, though D rises.

Batches that were never visited have the plane (0, 0) of the gold labellings. The proximity of `eg_prox`, with its
centre z and rho, is around all blocks: l2 + rho in place of l2, and rho z added to u.

Stopping rule. gap = P(w) - D <= tol |P|, both summed again over all batches and files; checked when it may be near, at
least every fifth round (after round 100: every twentieth part of the rounds made). It is guessed to fall with a power
of the inner solver's measure of progress, taken from the last two certificates, which cost 0.8 passes each.

Files. `block_files`, in a folder with the run's name beside the batches or, if these are in memory, beside the
checkpoint. A round writes new files, over those before the last where that is safe, and keeps those of the last
checkpoint. If all dual variables fit in memory they are also kept there, and files are written after `EVERY` rounds
that took `SECONDS`, or after `MOST` rounds (`block_walks`), which changes no bit. Without a checkpoint the folder is
removed with the run. Labellings of the inner solver that take more than `Executor.block_room` are merged.

Source. Ma et al. 2015 (CoCoA+, adding with sigma' = gamma K); block-coordinate ascent for one group. Departures: any
inner solver; sigma by the overlap, with rounds made again; proximal points.
"""

import json
import os
import re
import secrets
import shutil
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import inf, isfinite, log
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from partwise.io.files import sync_folder
from partwise.out_of_core.block_files import check_plane, remove_files
from partwise.out_of_core.block_walks import BlockWalk, Certify, Moved, Past, Round, Save, Visit, forget
from partwise.problem import L2, Capability, Certificate, DivergenceError, DualPoint, Problem
from partwise.problem.capabilities import PLAIN_L2, listed
from partwise.solvers.dual.eg_prox import EGProx, settled
from partwise.solvers.engine.base import Certified, ScheduledSolver, Solver, WarmStart, start_weights
from partwise.solvers.engine.options import Values, option
from partwise.solvers.engine.registry import SOLVERS, describe, get_solver
from partwise.solvers.engine.state import State
from partwise.solvers.online.base import InBlocks
from partwise.support.arrays import Floats, Ints

#: The gap is guessed to fall with a power of the measure of progress: the first guess of this power, and the least.
FIRST_POWER, LEAST_POWER = 0.7, 0.4
#: A fall of D, relative to 1 + its gains, that counts as rounding.
ROUNDING = 1e-12
#: Sigma divided by the largest overlap of the last two rounds.
MARGIN = 1.2
#: The factor by which sigma grows if D would fall.
LARGER = 2.0
#: Between two writings of files, if blocks are also kept in memory: rounds and seconds, at least, and rounds, at most.
#: A process that has lost the blocks makes these rounds again, from the weights that each began with.
EVERY, SECONDS, MOST = 10, 40.0, 20

A = TypeVar("A")


def _integer(least: int) -> Values:
    return Values(f"an integer of at least {least}", lambda x: type(x) is int and x >= least)


_ORDERS = Values("permuted or cyclic", lambda x: x in ("permuted", "cyclic"))
_SCALING = Values("at least 1", lambda x: not isinstance(x, bool) and isfinite(x) and x >= 1, ("auto",))


@dataclass(kw_only=True)
class BlockDualState(State):
    """The state of `BlockDual` between two rounds.

    weights: (d,), those of certificates. plane: (d,), u. center: (d,), z, or empty without a proximity.
    written: (batches,), the attempt in which a batch's file was written, or 0. digests: those of the files.
    attempts: rounds tried. scaling: sigma. overlap: that of the last round. power, seen_*: from certificates
    (`observe`). repeated: rounds made again. seed: that of the batches' generators. run: part of the folder's name.
    """

    positive: ClassVar[frozenset[str]] = frozenset({"scaling", "groups", "power"})

    weights: Floats
    plane: Floats
    center: Floats
    written: Ints
    digests: NDArray[np.uint8]
    proximity: float
    scaling: float
    groups: int
    seed: int
    run: str
    overlap: float
    power: float = FIRST_POWER
    seen_gap: float = 0.0
    seen_gain: float = 0.0
    attempts: int = 0
    repeated: int = 0
    #: The rounds since files were written, and the time of that; the files of the last checkpoint and those that may be
    #: overwritten (by their attempts, or 0), and what removes the folder where there is no checkpoint.
    since: list[Past] = field(default_factory=list, init=False, compare=False)
    replaced: float = field(default_factory=time.perf_counter, init=False, compare=False)
    saved: Ints = field(init=False)
    spare: Ints = field(init=False, compare=False)
    cleanup: "weakref.finalize[..., BlockDualState] | None" = field(default=None, init=False, compare=False)
    #: Whether the blocks in this process's memory will be dropped together with the state.
    known: bool = field(default=False, init=False, compare=False)
    #: The parent of the folder of files; None: the folder that the problem's executor names.
    home: str | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        self.saved = self.written.copy()
        self.spare = np.zeros_like(self.written)

    def copied(self) -> "BlockDualState":
        other = super().copied()
        other.since, other.replaced, other.saved = list(self.since), self.replaced, self.saved.copy()
        other.spare = self.spare.copy()
        other.cleanup, other.known, other.home = self.cleanup, self.known, self.home
        return other

    def complaint(self, fresh: Self) -> str:
        if self.proximity != fresh.proximity:
            return "its proximity is not that of this run"
        if not re.fullmatch("[0-9a-f]{16}", self.run) or self.groups > len(self.written):
            return "its files are not those of a run"
        if (self.written > self.attempts).any() or not 1 <= self.scaling <= self.groups:
            return "its rounds or scaling are invalid"
        return super().complaint(fresh)


@dataclass(frozen=True)
class BlockDual(ScheduledSolver[BlockDualState]):
    """Dual methods on one batch after the other, with dual variables in files: for data that do not fit in memory."""

    name: ClassVar[str] = "block-dual"
    requires: ClassVar[frozenset[Capability]] = PLAIN_L2 | {
        Capability.EXAMPLE_BLOCKS,
        Capability.LOSS_ORACLE,
        Capability.EXPLICIT_WEIGHTS,
        Capability.BLOCK_FILES,
    }
    rate: ClassVar[str] = "linear"
    proof: ClassVar[str] = "Ma et al. 2015 (CoCoA+): that of its inner solver, O(log 1/eps); O(1/eps) at temperature 0"
    advice: ClassVar[str] = "Raise max_passes or tol, or take a larger l2 (a smaller C)"
    default_max_passes: ClassVar[int] = 1000

    inner: str = option("auto", "the solver that works on a batch; auto: sdca, eg-prox or bcfw, by loss and structure")
    settings: str = option("", "options of the inner solver, as JSON")
    passes: int = option(1, "steps of the inner solver on a batch before the next one", _integer(1))
    groups: int = option(
        0, "groups of batches that are worked on at the same time (0: as many as there are workers)", _integer(0)
    )
    order: Literal["permuted", "cyclic"] = option(
        "permuted", "order of batches: permuted (anew in each round) or cyclic", _ORDERS
    )
    scaling: str | float = option(
        "auto", "sigma of CoCoA+ at first, 1 to the number of groups; auto: by what overlaps", _SCALING
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner == "auto":
            if self.settings:
                raise ValueError("settings need an inner solver that is named")
        elif self._named().in_blocks() is None:
            can = [name for name, cls in SOLVERS.items() if cls.in_blocks is not Solver.in_blocks]
            raise ValueError(f"solver {self.inner!r} with these options cannot work on blocks; {', '.join(can)} can")

    @classmethod
    def around(cls, solver: Solver[Any]) -> "BlockDual":
        options = [item for item in fields(solver) if item.name != "check_every"]
        changed = {item.name: value for item in options if (value := getattr(solver, item.name)) != item.default}
        settings = json.dumps(changed, sort_keys=True) if changed else ""
        return cls(inner=solver.name, settings=settings, check_every=getattr(solver, "check_every", None))

    def _named(self) -> Solver[Any]:
        try:
            options = json.loads(self.settings) if self.settings else {}
        except ValueError as error:
            raise ValueError(f"settings are not JSON ({error})") from None
        if not isinstance(options, dict):
            raise ValueError("settings must be a JSON object: names of options and their values")
        return get_solver(self.inner, **options)

    def form(self, problem: Problem) -> InBlocks:
        """Return the inner solver with what it needs for blocks; ValueError if it does not fit."""
        have = problem.capabilities()
        if self.inner == "auto":
            smooth = "sdca" if Capability.DIAGONAL_BLOCKS in have else "eg-prox"
            solver = get_solver(smooth if problem.loss.smooth else "bcfw")
        else:
            solver = self._named()
        missing = solver.requires - have - {Capability.IN_MEMORY}
        if missing:
            raise ValueError(
                f"block-dual: inner solver {solver.name!r} needs {listed(missing)}, which this problem does not have "
                f"({describe(problem)})"
            )
        form: InBlocks = solver.in_blocks()
        room, inner = problem.sums.executor.block_room, form.inner
        if room is None or getattr(inner, "memory_mb", 0.0) * 2**20 <= room:
            return form
        return form._replace(inner=replace(inner, memory_mb=room / 2**20))  # type: ignore[call-arg]

    def init_state(self, problem: Problem, rng: np.random.Generator, warm_start: WarmStart | None) -> BlockDualState:
        form, n = self.form(problem), problem.n_weights
        rho = EGProx(proximity=form.proximity).rho(problem) if form.proximity else 0.0
        groups = min(self.groups, problem.n_batches) or min(problem.sums.executor.places, problem.n_batches)
        state = BlockDualState(
            weights=np.zeros(n),
            plane=np.zeros(n),
            center=np.zeros(n if rho else 0),
            written=np.zeros(problem.n_batches, dtype=np.int64),
            digests=np.zeros((problem.n_batches, 32), dtype=np.uint8),
            proximity=rho,
            scaling=float(groups) if isinstance(self.scaling, str) else min(float(self.scaling), float(groups)),
            groups=groups,
            overlap=float(groups),
            seed=int(rng.integers(2**52)),
            run=secrets.token_hex(8),
        )
        if warm_start is not None:
            self._start(problem, state, warm_start)
        return state

    def _start(self, problem: Problem, state: BlockDualState, warm_start: WarmStart) -> None:
        """Begin with the dual variables of the oracle at some weights, on all batches."""
        weights = start_weights(problem, warm_start)
        if not problem.loss.smooth:
            return  # weights give no dual point, and a result has none of blocks: begin with the gold labellings
        state.attempts += 1
        start = Past(state.attempts, np.zeros_like(weights), problem.l2, 0, weights)
        found = self._round(problem, state, start)
        self._accept(problem, state, start, found)
        for each in found:
            state.plane += problem.l2 * each.moved
        state.weights = weights
        if state.proximity:
            state.center = weights.copy()

    def step(self, problem: Problem, state: BlockDualState) -> None:
        rho = state.proximity
        pulled = problem.with_penalty(L2(problem.l2 + rho))
        start = pulled.weights_of_plane(state.plane + rho * state.center if rho else state.plane)
        while True:
            state.attempts += 1
            sigma = state.scaling
            seed = state.seed if self.order == "permuted" else None
            now = Past(state.attempts, start, pulled.l2 / sigma, self.passes, seed=seed)
            found = self._round(problem, state, now)
            state.visits += sum(each.visits for each in found)
            moved = found[0].moved if len(found) == 1 else np.sum([each.moved for each in found], axis=0)
            gain = gains = sum(each.gain for each in found)
            overlap = 1.0
            if len(found) > 1:
                apart, together = sum(problem.norm2(each.moved) for each in found), problem.norm2(moved)
                gain += pulled.l2 / (2.0 * sigma) * (apart - together / sigma)
                overlap = together / apart if apart > 0 else 1.0
            if not isfinite(gain):
                raise DivergenceError(f"block-dual: the dual rose by {gain} after {state.epoch} rounds")
            if gain >= -ROUNDING * (1.0 + abs(gains)) or sigma >= state.groups:
                break
            remove_files(self._path(problem, state, number, state.attempts) for number in range(problem.n_batches))
            state.scaling = min(LARGER * sigma, float(state.groups))
            state.repeated += 1
        self._accept(problem, state, now, found)
        if self.scaling == "auto":
            state.scaling = min(max(1.0, MARGIN * max(overlap, state.overlap)), float(state.groups))
            state.overlap = overlap
        state.plane += pulled.l2 / sigma * moved
        state.weights = start + moved / sigma
        state.gain = sum(each.measure for each in found)
        state.epoch += 1
        if rho:
            ratio = rho / problem.l2 if problem.l2 > 0 else inf
            if gain <= settled(state.epoch, ratio) * rho * problem.norm2(state.weights - state.center):
                state.center = state.weights.copy()

    def _round(self, problem: Problem, state: BlockDualState, now: Past) -> list[Moved]:
        folder = self._folder(problem, state)
        if not state.known:
            state.known = True
            weakref.finalize(state, forget, folder)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            state.cleanup = weakref.finalize(state, shutil.rmtree, folder, ignore_errors=True)
        rounds, seconds = len(state.since) + 1, time.perf_counter() - state.replaced
        write = not problem.sums.executor.roomy or (rounds >= EVERY and seconds >= SECONDS) or rounds >= MOST
        return self._walk(problem, state, partial(Round, now=now, write=write))

    def _walk(self, problem: Problem, state: BlockDualState, make: Callable[..., BlockWalk[A]]) -> list[A]:
        """Return the answers of walks of a kind, one per group."""
        inner, since = self.form(problem).inner, tuple(state.since)
        last = since[-1].attempt if since else int(state.written.max())
        groups = [part.tolist() for part in np.array_split(np.arange(problem.n_batches), state.groups)]
        walks = [
            make(
                loss=problem.loss,
                inner=inner,
                n_jobs=problem.n_jobs,
                folder=self._folder(problem, state),
                group=number,
                visits=self._visits(problem, state, group),
                last=last,
                since=None if since else (),
                keep=problem.sums.executor.roomy,
            )
            for number, group in enumerate(groups)
        ]
        found = problem.sums.walk(walks, groups)
        # Each of the rounds since has a vector of weights: they are sent to the groups that need them.
        lost = [number for number, answer in enumerate(found) if answer is None]
        if lost:
            again = [replace(walks[number], since=since) for number in lost]
            for number, answer in zip(lost, problem.sums.walk(again, [groups[number] for number in lost]), strict=True):
                found[number] = answer
        return found

    def _accept(self, problem: Problem, state: BlockDualState, now: Past, found: list[Moved]) -> None:
        """Replace the blocks of the round before by those of this round."""
        digests = [digest for each in found for digest in each.digests]
        if any(digests):
            self._replace(problem, state, digests)
        else:
            state.since.append(now)

    def _replace(self, problem: Problem, state: BlockDualState, digests: list[bytes]) -> None:
        before = state.written.copy()
        for number, digest in enumerate(digests):
            if digest:
                state.written[number] = state.attempts
                state.digests[number] = np.frombuffer(digest, dtype=np.uint8)
        state.since.clear()
        state.replaced = time.perf_counter()
        self._remove(problem, state, state.spare)  # most of them have been overwritten, and have other names
        state.spare = np.where((before != state.saved) & (before != state.written), before, 0)
        if not problem.sums.executor.overwrites:
            self._remove(problem, state, state.spare)
            state.spare[:] = 0

    def _remove(self, problem: Problem, state: BlockDualState, written: Ints) -> None:
        numbers = np.flatnonzero(written).tolist()
        remove_files(self._path(problem, state, number, int(written[number])) for number in numbers)

    def certificate(self, problem: Problem, state: BlockDualState) -> Certified:
        value, u, b = 0.0, np.zeros_like(state.weights), 0.0
        for losses, own_u, own_b in self._walk(
            problem, state, partial(Certify, weights=state.weights, check=not state.known)
        ):
            value, b = value + losses, b + own_b
            u += own_u
        if not state.known:
            check_plane(state.plane, u, "its plane is not that of its dual variables")
        primal = value + problem.penalty_value(state.weights)
        certificate = problem.certificate_of(primal, u, b, state.weights)
        return Certified(certificate, state.weights.copy(), DualPoint.of_plane(u, b))

    def observe(self, problem: Problem, state: BlockDualState, certificate: Certificate) -> None:
        """Fit gap ~ gain^power to this certificate and the one before."""
        gap, gain = certificate.gap, state.gain
        seen = gap, gain, state.seen_gap, state.seen_gain
        if all(isfinite(each) and each > 0 for each in seen) and gain != state.seen_gain:
            power = log(gap / state.seen_gap) / log(gain / state.seen_gain)
            state.power = min(max(power, LEAST_POWER), 1.0)
        state.seen_gap, state.seen_gain = gap, gain if isfinite(gain) else 0.0

    def guess_gap(self, state: BlockDualState) -> float:
        if not state.checked_gain:
            return state.gain
        shrunk: float = max(state.gain / state.checked_gain, 0.0) ** state.power
        return state.checked_gap * shrunk

    def weights(self, problem: Problem, state: BlockDualState) -> Floats:
        return state.weights.copy()

    def place(self, problem: Problem, state: BlockDualState, folder: str) -> None:
        if problem.sums.executor.files_anywhere:  # beside the checkpoint that needs them, not among temporary files
            state.home = folder

    def before_save(self, problem: Problem, state: BlockDualState) -> None:
        if state.since:
            found = self._walk(problem, state, Save)
            self._replace(problem, state, [digest for digests in found for digest in digests])
        for number in np.flatnonzero(state.written).tolist():
            if state.written[number] != state.saved[number]:
                with open(self._path(problem, state, number, int(state.written[number])), "rb") as file:
                    os.fsync(file.fileno())
        if state.written.any():
            sync_folder(self._folder(problem, state))

    def after_save(self, problem: Problem, state: BlockDualState) -> None:
        self._remove(problem, state, np.where(state.saved != state.written, state.saved, 0))
        self._remove(problem, state, state.spare)
        state.saved, state.spare = state.written.copy(), np.zeros_like(state.written)
        if state.cleanup is not None:
            state.cleanup.detach()

    def remark(self, problem: Problem, state: BlockDualState) -> str:
        inner = self.form(problem).inner.name
        batches = f"{inner} on {problem.n_batches} batches"
        groups = f" in {state.groups} groups, sigma {state.scaling:g}, {state.repeated} rounds made again"
        return batches + (groups if state.groups > 1 else "")

    def _visits(self, problem: Problem, state: BlockDualState, group: list[int]) -> list[Visit]:
        path = partial(self._path, problem, state)
        return [
            Visit(
                path(number, int(state.written[number])) if state.written[number] else None,
                state.digests[number].tobytes(),
                problem.sums.batch_sizes[number],
                problem.n_weights,
                path(number, state.attempts),
                path(number, int(state.spare[number])) if state.spare[number] else "",
                (state.seed, number),
            )
            for number in group
        ]

    @staticmethod
    def _folder(problem: Problem, state: BlockDualState) -> str:
        folder = state.home or problem.sums.executor.files
        if folder is None:
            raise ValueError("there is no folder for files of blocks")
        return os.path.join(folder, f"duals-{state.run}")

    def _path(self, problem: Problem, state: BlockDualState, number: int, attempt: int) -> str:
        return os.path.join(self._folder(problem, state), f"{number:06d}-{attempt:06d}.pwd")
