"""Memory and threads that the system refuses, at random points."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

from modelcases import as_names, sequences

import partwise
from partwise import MaxentClassifier, SequenceTagger, threads

from .killed import words_model
from .rows import Row, apart


def works(folder: Path, n_jobs: int) -> dict[str, Callable[[], Any]]:
    X, y = sequences(0, 200, ["B", "I", "O"])
    names, path = as_names(X), folder / "model.pw"
    words_model().save(path)

    def tag(**options: Any) -> Callable[[], Any]:
        return lambda: SequenceTagger(**{"tol": 1e-2, "max_passes": 10, "n_jobs": n_jobs, **options}).fit(names, y)

    return {
        "fit": tag(),
        "fit, lbfgs": tag(solver="lbfgs"),
        "fit, hinge": tag(loss="hinge"),
        "fit, order 2": tag(order=2),
        "classifier": lambda: MaxentClassifier(n_jobs=n_jobs).fit([x[0] for x in X], [each[0] for each in y]),
        "load": lambda: partwise.load(path),
        "predict": lambda: words_model().predict([["a", "b"] * 20] * 500),
        "marginals": lambda: words_model().predict_marginals([["a", "b"] * 20] * 500),
        "save": lambda: words_model().save(folder / "other.pw"),
    }


def limited(number: int, folder: Path) -> tuple[str, str]:
    rng = random.Random(number)
    n_jobs = rng.choice([1, 2, 4])
    work = works(folder, n_jobs)
    name = rng.choice(list(work))
    of_threads = rng.random() < 0.3

    def go() -> str:
        threads.available_processors = lambda: 4  # type: ignore[assignment]
        if of_threads:
            if os.getuid() == 0:  # limits are not for root
                os.chmod(folder, 0o777)
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        else:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + int(rng.random() ** 3 * 4e7), resource.RLIM_INFINITY))
        try:
            work[name]()
        except MemoryError:
            return "MemoryError"
        except (RuntimeError, OSError, ValueError) as error:
            return f"a sentence: {type(error).__name__}: {error}"[:150]
        return "done"

    ended = apart(go, 60)
    where = f"{name}, n_jobs={n_jobs}, {'threads' if of_threads else 'memory'}"
    if ended.how != "answer" or not isinstance(ended.answer, str):
        raised = isinstance(ended.answer, dict) and ended.answer.get("raised") == "MemoryError"
        return ("MemoryError" if raised else "another end"), f"{where}: {ended}"
    outcome = "a sentence" if ended.answer.startswith("a sentence") else ended.answer
    return outcome, f"{where}: {ended.answer}"


ROWS = [
    Row(
        "limits",
        "limits of memory or threads (ulimit) at random points",
        "MemoryError or a sentence; 0 aborts, 0 deadlocks",
        1000,
        8,
        limited,
        ("MemoryError", "a sentence", "done"),
        120,
    ),
]
