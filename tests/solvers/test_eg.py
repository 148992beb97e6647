"""Online EG: starts, steps, orders, divergence."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from helpers.small_problems import Small
from partwise import ConvergenceWarning, DivergenceError, Problem, SequenceTagger, solve
from partwise._core import eg_epoch
from partwise.datasets import make_treebank
from partwise.features import Attributes, chain_map, multiclass_map
from partwise.problem.dual_points import DualPoint
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import EG
from partwise.solvers.dual import eg
from partwise.structures import Chain, Multiclass
from partwise.support import threads


def test_a_constant_step_that_is_too_large_is_an_error():
    small = Small("chain-tied", "hinge", l2=0.01)
    with pytest.raises(DivergenceError, match=r"step_size=50\.0; take a smaller one"):
        solve(small.problem, EG(step_size=50.0), tol=1e-3, random_state=0)


def test_a_constant_step_that_is_small_enough_converges():
    small = Small("chain-tied", "log", l2=2.0)
    step = float(EG(step_size="theorem").step_sizes(small.problem).min())
    result = solve(small.problem, EG(step_size=step), tol=1e-4, random_state=0, max_passes=5000)
    assert result.status == "converged"


def test_overflow_is_an_error():
    small = Small("multiclass", "log", l2=1e-3)
    with pytest.raises(DivergenceError):
        solve(small.problem, EG(step_size=1e200, order="cyclic"), tol=1e-3, max_passes=50)


def test_numbers_beyond_double_precision_end_a_run():
    """The search for a step ends, on one thread and on two, and the error says which number is too large."""
    code = """
    import warnings
    import numpy as np
    import partwise.support.threads
    from partwise import DivergenceError, Problem, solve
    from partwise.features import multiclass_map
    from partwise.solvers import EG
    from partwise.structures import Multiclass

    warnings.simplefilter("always")
    partwise.support.threads.available_processors = lambda: 2
    for feature, weight, single in [(1.0, 1.0, 1e308), (1e149, 1.0, 1.0)]:
        X, w = np.zeros((400, 2)), np.full(400, weight)
        X[::2, 0], w[7] = feature, single
        structure = Multiclass(400, 2)
        gold = structure.encode(np.arange(400) % 2)
        for n_jobs in (1, 2):
            features = multiclass_map(structure, X)
            problem = Problem(features, structure, gold, "log", 1e-12, sample_weight=w, n_jobs=n_jobs)
            try:
                solve(problem, EG(round_size=4), max_seconds=2)
            except DivergenceError as error:
                print(error)
    """
    # Run in another process, because the search on two threads could not be interrupted.
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )
    messages = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(messages) == 2, done.stderr  # both are about the large weight; the large features end in a warning
    assert done.stderr.count("eg: stalled") == 2
    for message in messages:
        assert "sample weight" in message
        assert "squared features up to" in message


@pytest.mark.parametrize("order", ["random", "permuted", "cyclic"])
@pytest.mark.parametrize("step_size", ["adaptive", "theorem"])
@pytest.mark.parametrize("start", ["gold", "uniform"])
def test_every_combination_converges(order, step_size, start):
    small = Small("chain-tied", "log", l2=5.0)
    solver = EG(order=order, step_size=step_size, start=start)
    assert solve(small.problem, solver, tol=1e-5, random_state=0, max_passes=4000).status == "converged"


def test_orders():
    problem = Small("multiclass", "log", n=50, plain=True).problem
    rng = np.random.default_rng(0)
    assert EG(order="cyclic").draw_order(problem, rng).tolist() == list(range(50))
    permuted = EG(order="permuted").draw_order(problem, rng)
    assert sorted(permuted) == list(range(50))
    assert permuted.tolist() != list(range(50))
    drawn = EG(order="random").draw_order(problem, rng)
    assert len(drawn) == 50
    assert len(set(drawn.tolist())) < 50  # examples are drawn with replacement


def test_starts():
    small = Small("chain-tied", "log")
    rng = np.random.default_rng(0)
    uniform = EG(start="uniform").init_state(small.problem, rng, None)
    for p in small.distributions(uniform.scores):
        np.testing.assert_allclose(p, 1 / len(p))
    sharp = EG(sharpness=30.0).init_state(small.problem, rng, None)
    for p, e, g in zip(small.distributions(sharp.scores), small.dense.examples, small.dense.gold, strict=True):
        assert p[np.all(e.counts == g, axis=1)].sum() > 1 - 1e-9
    assert np.abs(sharp.weights).max() < 1e-9  # near the gold labelling, w = 0


@pytest.mark.parametrize("loss", ["log", "softmax-margin", "smoothed-hinge"])
def test_warm_starts_save_passes(loss):
    small = Small("chain-tied", loss)
    cold = solve(small.problem, "eg", tol=1e-6, random_state=0)
    for warm in (cold, cold.dual_point, cold.weights, solve(small.problem, "lbfgs", tol=1e-9)):
        again = solve(small.problem, "eg", tol=1e-6, random_state=0, warm_start=warm)
        assert again.passes <= 0.5 * cold.passes
        assert again.status == "converged"


def test_warm_starts_that_do_not_fit():
    small, other = Small("chain-tied", "hinge"), Small("chain-tied", "hinge", n=4)
    with pytest.raises(ValueError, match="starts from a dual point"):
        solve(small.problem, "eg", warm_start=np.zeros(small.problem.n_weights))
    with pytest.raises(ValueError, match="slots"):
        solve(small.problem, "eg", warm_start=DualPoint.of_scores(np.zeros(3)))
    with pytest.raises(ValueError, match="slots"):
        solve(small.problem, "eg", tol=0.1, warm_start=solve(other.problem, "eg", tol=0.1))
    smooth = Small("chain-tied", "log").problem
    with pytest.raises(ValueError, match="weights of shape"):
        solve(smooth, "eg", warm_start=np.zeros(2))
    with pytest.raises(ValueError, match="not finite"):
        solve(smooth, "eg", warm_start=np.full(smooth.n_weights, np.nan))


@pytest.mark.parametrize(
    "options",
    [
        {"step_size": "large"},
        {"step_size": 0.0},
        {"step_size": np.inf},
        {"order": "sorted"},
        {"start": "warm"},
        {"growth": 0.9},
        {"sharpness": -1.0},
        {"check_every": 0},
    ],
)
def test_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        EG(**options)


def test_passes_count_every_trial():
    small = Small("chain-tied", "log", l2=0.05)
    solver = EG(initial_step=1.0, sharpness=1.0)
    with pytest.warns(ConvergenceWarning):
        result = solve(small.problem, solver, tol=1e-12, max_passes=3, random_state=0)
    # Three epochs would be 3 passes, but steps that were halved are visits too.
    assert result.passes >= 3
    state = solver.init_state(small.problem, np.random.default_rng(0), None)
    solver.step(small.problem, state)
    assert state.visits > small.dense.n


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_examples_keep_moving_under_weak_penalties(n_jobs):
    """Early steps move examples to a single labelling. Rounding once shrank the next steps of these to 1e-17."""
    bank = make_treebank(300, seed=0)
    sentences = [list(zip(words, tags, strict=True)) for words, tags in zip(bank.words, bank.tags, strict=True)]
    tagger = SequenceTagger(template="chunk", solver="eg", C=1e4, tol=1e-6, n_jobs=n_jobs, random_state=0)
    run = tagger.fit(sentences, bank.chunks).result_
    assert run.status == "converged"
    assert run.passes < 250


class TestLanes:
    """Lanes: several threads visit examples in parallel, by another algorithm, if there is enough work."""

    @pytest.fixture(autouse=True)
    def processors(self, monkeypatch):
        monkeypatch.setattr(threads, "available_processors", lambda: 64)

    @pytest.fixture
    def reports(self, monkeypatch):
        """Collect the core's report of each pass."""
        found = []

        def epoch(*arguments):
            found.append(eg_epoch(*arguments))
            return found[-1]

        monkeypatch.setattr(eg._core, "eg_epoch", epoch)
        return found

    @staticmethod
    def chains(n: int, length: int, n_labels: int) -> Problem:
        rng = np.random.default_rng(0)
        structure = Chain(np.full(n, length), n_labels)
        ids = rng.integers(0, 500, 4 * n * length)
        rows = Attributes(np.arange(n * length + 1) * 4, ids, 500)
        # Labels mostly follow from the attributes, as in real data.
        gold = structure.encode((ids[::4] + (rng.random(n * length) < 0.1)) % n_labels)
        return Problem(chain_map(structure, rows), structure, gold, "log", 10.0)

    def test_short_passes_stay_on_one_lane(self, reports):
        """Short passes have the bits of one thread, because they use one lane."""
        for problem in (self.chains(40, 20, 24), self.chains(500, 6, 4), Small("multiclass", "log", n=300).problem):
            one, two = (solve(problem, "eg", tol=1e-3, n_jobs=n, random_state=0) for n in (1, 2))
            np.testing.assert_array_equal(one.weights, two.weights)
        assert {report.lanes for report in reports} == {1}

    def test_many_threads_use_at_most_eight_lanes(self, reports):
        problem = self.chains(600, 20, 24)
        passes = {n: solve(problem, "eg", tol=1e-3, n_jobs=n, random_state=0).passes for n in (1, 2, 8, 64)}
        assert {report.lanes for report in reports} == {1, 2, 8}
        assert passes[64] == passes[8] <= 2.5 * passes[1]
        assert passes[2] <= 1.5 * passes[1]

    @pytest.mark.parametrize("penalty", [L2(10.0), ElasticNet(1.0, 3.0)])
    def test_the_dual_never_falls(self, reports, penalty):
        problem = self.chains(600, 20, 24).with_n_jobs(4).with_penalty(penalty)
        solver = EG()
        state = solver.init_state(problem, np.random.default_rng(0), None)
        for _ in range(8):
            before = problem.dual_as_it_is(*problem.sums.dual_terms_gibbs(state.scores))
            solver.step(problem, state)
            after = problem.dual_as_it_is(*problem.sums.dual_terms_gibbs(state.scores))
            assert after >= before - 1e-9 * abs(before)
            assert state.dual == pytest.approx(after, rel=1e-9)  # the state's dual is that of the lanes' result
        assert {report.lanes for report in reports} == {4}

    @pytest.mark.parametrize("penalty", [L2(0.1), ElasticNet(0.5, 0.1)])
    def test_one_lane_finishes_alone_if_many_rounds_are_undone(self, reports, penalty):
        """One lane finishes the pass alone: with equal features, the steps of several lanes add up to far too much."""
        structure = Multiclass(4000, 3)
        rows = np.ones((4000, 6))
        gold = structure.encode(np.random.default_rng(0).integers(0, 3, 4000))
        problem = Problem(multiclass_map(structure, rows), structure, gold, "log", penalty).with_n_jobs(8)
        solver = EG(round_size=16, start="uniform")
        state = solver.init_state(problem, np.random.default_rng(0), None)
        solver.step(problem, state)
        report = reports[-1]
        assert report.lanes == 8
        if problem.l1:  # where weights stay zero, steps add up to less
            assert report.taken_back > 0
        else:
            assert 4 * report.taken_back > report.rounds
            assert report.rounds < 4000 / (8 * 16)  # the lanes stopped before the end of the pass
        assert state.dual == pytest.approx(
            problem.dual_as_it_is(*problem.sums.dual_terms_gibbs(state.scores)), rel=1e-9
        )
        again = solver.init_state(problem, np.random.default_rng(0), None)
        solver.step(problem, again)
        np.testing.assert_array_equal(again.weights, state.weights)

    def test_an_error_in_a_lane_is_raised(self):
        """If one lane fails (out of memory, for example), the others must not wait for it."""

        problem = self.chains(600, 20, 24).with_n_jobs(3)
        solver = EG()
        state = solver.init_state(problem, np.random.default_rng(0), None)
        state.scores[len(state.scores) // 2 :] = np.nan
        with pytest.raises(DivergenceError, match="not finite"):
            for _ in range(3):
                solver.step(problem, state)
