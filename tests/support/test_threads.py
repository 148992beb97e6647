"""The number of threads, what happens if the system refuses threads, and results that do not depend on BLAS threads."""

from __future__ import annotations

import os
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse
from threadpoolctl import threadpool_limits

from helpers.processes import run_python
from partwise import MaxentClassifier, _core
from partwise.structures import Chain, ProjectiveTree, SpanningTree
from partwise.support import threads
from partwise.support.checks import count_jobs


class TestNumberOfThreads:
    @pytest.mark.parametrize(
        ("n_jobs", "expected"), [(None, 1), (1, 1), (3, 3), (6, 6), (300, 6), (-1, 6), (-2, 5), (-6, 1), (-100, 1)]
    )
    def test_of_six_processors(self, monkeypatch, n_jobs, expected):
        monkeypatch.setattr(threads, "available_processors", lambda: 6)
        assert threads.count_threads(n_jobs) == expected
        assert count_jobs(n_jobs) == expected

    def test_n_jobs_of_0(self):
        with pytest.raises(ValueError, match="must not be 0"):
            threads.count_threads(0)

    @pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux")
    def test_processors_are_those_that_the_process_may_use(self):
        allowed = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, {min(allowed)})
            assert threads.available_processors() == 1
            assert threads.count_threads(-1) == 1
        finally:
            os.sched_setaffinity(0, allowed)
        assert threads.available_processors() == len(allowed)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's limits")
def test_threads_that_the_system_refuses():
    """If the system refuses threads, sums use fewer threads for the same bits, and `eg` with lanes raises an error."""
    printed = run_python(
        """
        import os, resource
        import numpy as np
        from partwise import Problem, solve
        from partwise.support import threads
        from partwise.features import chain_map
        from partwise.structures import Chain

        threads.available_processors = lambda: 4
        rng = np.random.default_rng(0)
        structure = Chain(np.full(500, 30), 24)
        features = chain_map(structure, rng.normal(size=(15000, 3)))
        problem = Problem(features, structure, structure.encode(rng.integers(0, 24, 15000)), "log", 10.0)
        one = solve(problem, "lbfgs", tol=1e-2)
        several = solve(problem, "eg", tol=1e-2, n_jobs=4, random_state=0)
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)  # limits are not for root
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        four = solve(problem, "lbfgs", tol=1e-2, n_jobs=4)
        print("same", (one.weights == four.weights).all())
        try:
            solve(problem, "eg", tol=1e-2, n_jobs=4, random_state=0)
        except RuntimeError as error:
            print(error)
        """
    )
    assert "same True" in printed
    assert "of 4 threads could be started" in printed
    assert "use a smaller n_jobs" in printed


@pytest.mark.parametrize("solver", ["lbfgs", "newton"])
def test_bits_do_not_depend_on_threads_of_blas(solver):
    rng = np.random.default_rng(0)
    X = sparse.random_array((500, 60_000), density=2e-3, rng=rng, format="csr")
    y = rng.integers(0, 3, 500)
    weights = []
    for limit in (1, 2, 4):
        with threadpool_limits(limit, user_api="blas"):
            weights.append(MaxentClassifier(solver=solver, tol=1e-4).fit(X, y).coef_)
    np.testing.assert_array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[0], weights[2])


class TestProductsOfVectors:
    @pytest.mark.parametrize("size", [0, 1, 7, 2048, 2049, 700_001])
    def test_against_numpy(self, size):
        rng = np.random.default_rng(size)
        rows, v, c = rng.normal(size=(3, size)), rng.normal(size=size), rng.normal(size=3)
        for n_jobs in (1, 2, 3):
            np.testing.assert_allclose(_core.row_dots(rows, v, n_jobs), rows @ v, rtol=1e-12, atol=1e-9)
            assert _core.dot(rows[0], v, n_jobs) == _core.row_dots(rows, v, 1)[0]
            out = v.copy()
            _core.add_rows(c, rows, out, n_jobs)
            np.testing.assert_allclose(out, v + c @ rows, rtol=1e-12, atol=1e-12)

    def test_same_bits_for_any_number_of_threads(self):
        rng = np.random.default_rng(0)
        rows, v = rng.normal(size=(10, 300_000)), rng.normal(size=300_000)
        one, outs = _core.row_dots(rows, v, 1), []
        for n_jobs in (1, 2, 5):
            np.testing.assert_array_equal(_core.row_dots(rows, v, n_jobs), one)
            outs.append(v.copy())
            _core.add_rows(one, rows, outs[-1], n_jobs)
        np.testing.assert_array_equal(outs[0], outs[1])
        np.testing.assert_array_equal(outs[0], outs[2])

    def test_sizes_are_checked(self):
        with pytest.raises(ValueError, match="v has 2 values, 3 are needed"):
            _core.row_dots(np.ones((1, 3)), np.ones(2))
        with pytest.raises(ValueError, match="coefficients has 2 values, 1 are needed"):
            _core.add_rows(np.ones(2), np.ones((1, 3)), np.ones(3))
        with pytest.raises(ValueError, match="y has 2 values, 3 are needed"):
            _core.dot(np.ones(3), np.ones(2))


@pytest.mark.parametrize("n_classes", [2, 3, 11])
def test_one_row_has_the_bits_of_many(n_classes):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(211, 67)), rng.integers(0, n_classes, 211)
    model = MaxentClassifier(tol=1e-2).fit(X, y)
    many = model.predict_proba(X)
    for i in range(len(X)):
        np.testing.assert_array_equal(model.predict_proba(X[i : i + 1]), many[i : i + 1])
    np.testing.assert_array_equal(model.predict_proba(X[:37]), many[:37])


class TestOtherThreadsGoOn:
    """Long calls about one example let other Python threads run."""

    @pytest.mark.parametrize(
        ("structure", "call"),
        [
            (SpanningTree(np.array([60])), lambda s, x: s.k_best(0, x, 60)),
            (ProjectiveTree(np.array([250])), lambda s, x: s.log_partition(0, x)),
            (SpanningTree(np.array([150])), lambda s, x: s.sample(0, x, 1.0, 8, 0)),
            (Chain(np.array([1600]), 40), lambda s, x: s.k_best(0, x, 200)),
        ],
    )
    def test_while(self, structure, call):
        scores = np.random.default_rng(0).normal(size=structure.num_slots(0))
        ticks, done = [], threading.Event()

        def tick():
            while not done.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0.001)

        thread = threading.Thread(target=tick)
        thread.start()
        begin = time.perf_counter()
        call(structure, scores)
        end = time.perf_counter()
        done.set()
        thread.join()
        assert sum(begin < t < end for t in ticks) >= min(5, (end - begin) / 0.1)
        assert end - begin > 0.01  # a shorter call would prove nothing
