"""Child processes made by fork, forkserver and spawn, while or after threads are used."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading

import numpy as np
import pytest

from helpers.processes import run_python
from partwise import MaxentClassifier

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")


def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 8)), np.arange(200) % 3


def fitted():
    return MaxentClassifier(tol=1e-3, n_jobs=2).fit(*data())


def answers(model):
    """Predict, and train on two threads; return the results for comparison between processes."""
    X, _ = data()
    return model.predict(X).tolist(), fitted().coef_.tolist()


@pytest.mark.parametrize("way", ["fork", "forkserver", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_pools_of_processes(way):
    model = fitted()
    expected = answers(model)
    with multiprocessing.get_context(way).Pool(2) as pool:
        assert pool.map_async(answers, [model, model]).get(timeout=120) == [expected] * 2


def test_joblib():
    joblib = pytest.importorskip("joblib")
    model = fitted()
    found = joblib.Parallel(n_jobs=2, backend="loky", timeout=120)(joblib.delayed(answers)(model) for _ in range(2))
    assert found == [answers(model)] * 2


def test_a_fork_while_other_threads_predict_and_train():
    """A child forked while other threads work does not wait for locks that those threads held."""
    model, (X, _) = fitted(), data()
    expected, done = answers(model), threading.Event()

    def busy(work):
        while not done.is_set():
            work()

    several = [threading.Thread(target=busy, args=(work,)) for work in (lambda: model.predict(X), fitted)]
    for each in several:
        each.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = int(answers(model) != expected)
                finally:
                    os._exit(status)
            assert wait_for(child, 60) == 0
    finally:
        done.set()
        for each in several:
            each.join()


def wait_for(child, seconds):
    timer = threading.Timer(seconds, os.kill, (child, 9))
    timer.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        timer.cancel()


def test_a_fork_right_after_the_import():
    printed = run_python(
        """
        import os
        import partwise
        child = os.fork()
        if child == 0:
            partwise.MaxentClassifier(n_jobs=2).fit([[0.0], [1.0]], [0, 1])
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert printed.split() == ["7"]
