"""A signal during work in the core raises the handler's exception well within a second.

Where examples take much longer (sanitizers, a busy machine), the limit is the time of a few hundred examples.
"""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest

from helpers.scaling_passes import begin as begin_scaling
from oracles.problems import maxent_case
from partwise import _core

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")

N_LABELS, LENGTH = 48, 300  # about a millisecond per example


class Stop(KeyboardInterrupt):
    """The exception that the signal handler raises."""


@contextmanager
def alarm(seconds):
    def stop(*_):
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def seconds_allowed(work, examples):
    """Return the time limit for an interruption, given a piece of work on this many examples."""
    begin = time.perf_counter()
    work()
    return max(1.2, 0.2 + 300 * (time.perf_counter() - begin) / examples)


def make_objective(n, temperature, link="identity"):
    """Make n long sequences without attributes, where only transitions have weights."""
    lengths = np.full(n, LENGTH)
    chain = _core.Chain(lengths, N_LABELS)
    rows = np.arange(n + 1) * LENGTH
    layout = _core.RowLayout.dense(1, N_LABELS, chain.width)
    empty = np.zeros(n * LENGTH + 1, dtype=np.int64)
    segment = _core.AttributeSegment(layout, rows, empty, np.zeros(0, dtype=np.int64))
    features = _core.LinearMap([segment, _core.SharedSegment(N_LABELS * chain.width, lengths - 1)])
    gold = chain.encode(np.zeros(n * LENGTH, dtype=np.int64))
    return _core.Objective(chain, features, *gold, temperature, 1.0, link)


def weights_of(objective):
    return np.zeros(N_LABELS + N_LABELS**2)  # one attribute, and the transitions; this width needs no padding


@pytest.mark.parametrize("method", ["value", "plane"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_sums(method, n_jobs):
    objective, few = make_objective(1500, 1.0), make_objective(10, 1.0)
    allowed = seconds_allowed(lambda: getattr(few, method)(weights_of(few), n_jobs), 10)
    begin = time.perf_counter()
    with pytest.raises(Stop), alarm(0.2):
        for _ in range(20):  # more work than fits into the time limit
            getattr(objective, method)(weights_of(objective), n_jobs)
    assert time.perf_counter() - begin < allowed


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_eg_epoch(n_jobs):
    objective = make_objective(8, 1.0)
    scores = objective.near_gold_scores(1.0)
    marginals, entropies = objective.marginals_of_scores(scores)
    weights = objective.dual_terms_gibbs(scores)[0]
    state = _core.EgState(
        objective,
        weights=weights,
        scores=scores,
        marginals=marginals,
        entropies=entropies,
        step_sizes=np.full(8, 0.1),
    )

    def epoch(repeats):
        order = np.tile(np.arange(8), repeats)
        _core.eg_epoch(state, order, _core.EgOptions(l2=1.0, n_jobs=n_jobs))

    allowed = seconds_allowed(lambda: epoch(2), 16)
    begin = time.perf_counter()
    with pytest.raises(Stop), alarm(0.2):
        epoch(2000)
    assert time.perf_counter() - begin < allowed


def test_bcfw_epoch():
    objective = make_objective(4, 0.0)
    counts = np.concatenate([objective.gold(i) for i in range(4)])
    d = len(weights_of(objective))
    state = _core.BcfwState(
        objective,
        weights=np.zeros(d),
        counts=counts,
        mass=np.ones(4),
        linear=np.zeros(4),
        lag=np.zeros(d),
        average=np.array([0.0, 1.0, 0.0]),
    )
    options = _core.BcfwOptions(l2=1.0)
    allowed = seconds_allowed(lambda: _core.bcfw_epoch(state, np.tile(np.arange(4), 5), options), 20)
    begin = time.perf_counter()
    with pytest.raises(Stop), alarm(0.2):
        _core.bcfw_epoch(state, np.tile(np.arange(4), 10000), options)
    assert time.perf_counter() - begin < allowed


@pytest.mark.parametrize("name", ["dcd_epoch", "bcfw_set_epoch"])
def test_epochs_over_working_sets(name):
    objective = make_objective(4, 0.0, "squared")
    d = len(weights_of(objective))

    def epoch(repeats):
        arrays = {"weights": np.zeros(d), "sets": _core.WorkingSets(4)}
        order = np.tile(np.arange(4), repeats)
        if name == "dcd_epoch":
            _core.dcd_epoch(_core.DcdState(objective, **arrays), order, _core.DcdOptions(l2=1.0, seed=3))
        else:
            state = _core.BcfwSetState(objective, gaps=np.zeros(4), **arrays)
            _core.bcfw_set_epoch(state, order, _core.BcfwSetOptions(l2=1.0))

    allowed = seconds_allowed(lambda: epoch(5), 20)
    begin = time.perf_counter()
    with pytest.raises(Stop), alarm(0.2):
        epoch(10000)
    assert time.perf_counter() - begin < allowed


def scores_of(structure):
    return np.random.default_rng(0).normal(size=structure.num_slots(0))


@pytest.mark.parametrize(
    ("structure", "call"),
    [
        (lambda: _core.ProjectiveTree(np.array([1500]), max_length=2000), lambda s, x: s.log_partition(0, x)),
        (lambda: _core.ProjectiveTree(np.array([2000]), max_length=2000), lambda s, x: s.maximize(0, x)),
        (lambda: _core.SpanningTree(np.array([1500]), max_length=2000), lambda s, x: s.log_partition(0, x)),
        (lambda: _core.SpanningTree(np.array([300])), lambda s, x: s.sample(0, x, 1.0, 500, 0)),
        (lambda: _core.SpanningTree(np.array([150])), lambda s, x: s.k_best(0, x, 2000)),
        (lambda: _core.ProjectiveTree(np.array([200])), lambda s, x: s.k_best(0, x, 500_000)),
        (lambda: _core.Chain(np.array([60]), 40), lambda s, x: s.k_best(0, x, 100_000)),
        (lambda: _core.Chain(np.array([60_000]), 100), lambda s, x: s.log_partition(0, x)),
    ],
)
def test_one_long_example(structure, call):
    """Each call takes seconds if it is not interrupted."""
    structure = structure()
    scores = scores_of(structure)
    begin = time.perf_counter()
    with pytest.raises(Stop), alarm(0.2):
        call(structure, scores)
    assert time.perf_counter() - begin < 1.5


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_long_examples_on_threads(n_jobs):
    """Worker threads stop too, and the main thread checks for signals while it waits for them."""
    words = 1499
    tree = _core.ProjectiveTree(np.full(2, words), max_length=words)
    rows = _core.DenseSegment(np.ones((2 * words, 1)), words * np.arange(3), words + 1, words + 1)
    features = _core.LinearMap([rows])
    begin = time.perf_counter()
    with pytest.raises(Stop), alarm(0.2):
        _core.infer(tree, features, np.zeros(words + 1), 1.0, n_jobs)
    assert time.perf_counter() - begin < 1.5


def long_pass(name):
    """Return a pass of at least ten million visits to a few small examples."""
    case = maxent_case(3, n=6)
    objective, many = case.objective("log"), np.tile(np.arange(6), 2_000_000)
    slots, d = int(case.structure.slot_offsets()[-1]), case.features.num_weights
    if name == "scaling_epoch":
        state = begin_scaling(case)
        return lambda: state.epoch("cd", many % len(state.columns))
    if name == "sdca_epoch":
        scores = np.full(slots, -np.log(case.structure.n_labels))
        _, entropies = objective.marginals_of_scores(scores)
        curvatures = _core.slot_curvatures(objective, np.arange(6))
        state = _core.SdcaState(
            objective,
            curvatures=curvatures,
            weights=objective.dual_terms_gibbs(scores)[0],
            scores=scores,
            entropies=entropies,
            gains=np.zeros(6),
        )
        return lambda: _core.sdca_epoch(state, many, _core.SdcaOptions(l2=1.0))
    if name == "sdca_line_epoch":
        cliques = _core.cliques_of_scores(case.structure, np.zeros(slots))
        counts, entropies = _core.read_cliques(case.structure, cliques)
        state = _core.SdcaLineState(
            objective,
            weights=objective.dual_terms_slots(counts, None, entropies)[0],
            cliques=cliques,
            counts=counts,
            entropies=entropies,
            gaps=np.zeros(6),
            steps=np.full(6, 0.5),
        )
        return lambda: _core.sdca_line_epoch(state, many, _core.SdcaLineOptions(l2=1.0, line_tol=0.1))
    columns = _core.WorkingColumns(objective, np.arange(d))
    unscaled, _ = objective.marginals_of_scores(np.zeros(slots))
    state = _core.CdL1State(columns, weights=np.zeros(d), unscaled=unscaled, sums=np.ones(6))
    return lambda: _core.cd_l1(state, _core.CdL1Options(l1=0.1, l2=0.0, max_sweeps=10**9, tol=-1.0))


@pytest.mark.parametrize("name", ["scaling_epoch", "sdca_epoch", "sdca_line_epoch", "cd_l1"])
def test_passes_over_single_labels(name):
    work = long_pass(name)
    begin = time.process_time()
    with pytest.raises(Stop), alarm(0.2):
        work()
    assert time.process_time() - begin < 3.0
