"""Trials in which the system refuses memory or threads at random points."""

from __future__ import annotations

import os
import random
import resource
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import partwise
from helpers.model_cases import as_names, sequences
from partwise import MaxentClassifier, SequenceTagger
from partwise.cli import main
from partwise.cli.errors import UserError
from partwise.support import threads

from .inputs import ANSWERS, KINDS, answers_of, data, estimator, fitted, through_a_file
from .rows import Row, apart
from .writers import words_model


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
        **every_estimator(n_jobs),
        **commands(folder),
    }


def every_estimator(n_jobs: int) -> dict[str, Callable[[], Any]]:
    """Return the training and prediction of each kind of estimator; models are fitted before the limit applies."""
    found: dict[str, Callable[[], Any]] = {}
    for kind in KINDS:
        X, y = small_data(kind)
        made = estimator(kind)
        if "n_jobs" in made.get_params():
            made.set_params(n_jobs=n_jobs)
        found[f"{kind}, fit"] = partial(made.fit, X, y)
        for what in ("predict", "predict_marginals", "predict_k_best"):
            if what in answers_of(kind):
                found[f"{kind}, {what}"] = partial(ANSWERS[what], small_model(kind), X, y)
        found[f"{kind}, save and load"] = partial(through_a_file, small_model(kind))
    return found


@cache
def small_data(kind: str) -> tuple[Any, Any]:
    return data(kind, 3000, 200, 3, 10)


@cache
def small_model(kind: str) -> Any:
    return fitted(kind)


def commands(folder: Path) -> dict[str, Callable[[], Any]]:
    (folder / "train.txt").write_text("a A\nb B\nc A\n\n" * 500)
    model, text, out = str(folder / "model.pw"), str(folder / "train.txt"), str(folder / "out")
    given = {
        "train": ["train", "tag", text, "-o", out, "--features", "pos", "--tol", "0.1"],
        "partition": ["partition", "tag", text, "-o", out, "--features", "pos"],
        "predict": ["predict", model, text, "-o", out],
        "evaluate": ["evaluate", model, text],
        "inspect": ["inspect", model],
    }
    return {f"command {name}": partial(main, words, standalone_mode=False) for name, words in given.items()}


def limited(number: int, folder: Path) -> tuple[str, str]:
    rng = random.Random(number)
    n_jobs = rng.choice([1, 2, 4])
    work = works(folder, n_jobs)
    name = rng.choice(list(work))
    kind = rng.choices(["memory", "threads", "files"], [6, 3, 1])[0]

    def go() -> str:
        threads.available_processors = lambda: 4  # type: ignore[assignment]
        if kind == "files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (rng.randint(0, 12),) * 2)
        elif kind == "threads":
            if os.getuid() == 0:  # root is exempt from the limit: become an unprivileged user
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
        except (RuntimeError, OSError, ValueError, UserError) as error:
            return f"a sentence: {type(error).__name__}: {error}"[:150]
        return "done"

    ended = apart(go, 60)
    where = f"{name}, n_jobs={n_jobs}, {kind}"
    if ended.how != "answer" or not isinstance(ended.answer, str):
        raised = isinstance(ended.answer, dict) and ended.answer.get("raised") == "MemoryError"
        return ("MemoryError" if raised else "another end"), f"{where}: {ended}"
    outcome = "a sentence" if ended.answer.startswith("a sentence") else ended.answer
    return outcome, f"{where}: {ended.answer}"


ROWS = [
    Row(
        "limits",
        "limits of memory, threads or files (ulimit) at random points: all estimators, their files, commands",
        "MemoryError or a sentence; 0 aborts, 0 deadlocks",
        1000,
        8,
        limited,
        ("MemoryError", "a sentence", "done"),
        120,
    ),
]
