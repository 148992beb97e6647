"""Models that many threads use while others are trained, saved and loaded, and processes that fork in the meantime.

The trials also run on a core built with ThreadSanitizer, with fewer calls, as it is ten times as slow.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import partwise
from helpers.model_cases import (
    PARSERS,
    TAGGERS,
    Fitted,
    fitted_classifier,
    fitted_labeler,
    fitted_parser,
    fitted_tagger,
)
from helpers.small_problems import Small, loss_for
from partwise import ConstituencyParser, MaxentClassifier, SegmentTagger, SequenceTagger, solve
from partwise.datasets.treebank import make_treebank
from partwise.io import parse_trees
from partwise.support import threads

from .rows import Row, apart

N_THREADS = 16
#: The model that is used most. Calls per thread: to that model, to each other model, to each under ThreadSanitizer.
OFTEN = "tagger, names"
MANY, CALLS, WATCHED = 10_000, 1000, 100


def template_tagger() -> Fitted:
    words = [["a", "b", "c"], ["w1", "w2"], ["w3", "a"]]
    labels = [["A", "B", "C"], ["A", "B"], ["C", "A"]]
    return Fitted(SequenceTagger(template="pos", tol=0.1).fit(words * 5, labels * 5), [*words, ["b", "b", "w9"]])


def segmenter() -> Fitted:
    bank = make_treebank(30, 0)
    rows = [list(zip(*each, strict=True)) for each in zip(bank.words, bank.tags, strict=True)]
    labels = [["B-x" if k % 3 == 0 else "I-x" if k % 3 == 1 else "O" for k in range(len(row))] for row in rows]
    return Fitted(SegmentTagger(template="pos", tol=0.1).fit(rows[:20], labels[:20]), rows[20:])


def constituents() -> Fitted:
    trees = list(parse_trees(make_treebank(30, 0).bracketed()))
    words = [list(each) for each in make_treebank(30, 0).words]
    return Fitted(ConstituencyParser(tol=0.1).fit(words[:20], trees[:20]), words[20:])


def classifier() -> Fitted:
    found = fitted_classifier(["a", "b", "c"])
    return Fitted(found.estimator, [found.X[k : k + 1] for k in range(len(found.X))])


MODELS: dict[str, Callable[[], Fitted]] = {
    **{f"tagger, {name}": partial(fitted_tagger, name) for name in TAGGERS},
    "tagger, template": template_tagger,
    "segments": segmenter,
    **{name: partial(fitted_parser, name) for name in PARSERS},
    "constituents": constituents,
    "graphs": fitted_labeler,
    "classifier": classifier,
}
#: The model that is used most often comes last.
ASKED = tuple(sorted(MODELS, key=lambda name: name == OFTEN))
#: Questions to a model, by the name of the method that it must have.
QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "predict": lambda model, x: model.predict(x),
    "predict_single": lambda model, x: model.predict_single(x[0]),
    "predict_k_best": lambda model, x: model.predict_k_best(x, 3),
    "predict_marginals": lambda model, x: model.predict_marginals(x),
    "predict_proba": lambda model, x: model.predict_proba(x),
}


def plain(answer: Any) -> Any:
    """Convert an answer to lists, so that answers can be compared."""
    if isinstance(answer, np.ndarray):
        return answer.tolist()
    if isinstance(answer, dict):
        return {key: plain(value) for key, value in answer.items()}
    if isinstance(answer, (list, tuple)):
        return [plain(each) for each in answer]
    return answer


def together(works: list[Callable[[], Any]]) -> list[str]:
    """Run all functions at the same time. Return their errors."""
    errors: list[str] = []
    start = threading.Barrier(len(works))

    def do(work: Callable[[], Any]) -> None:
        try:
            start.wait()
            work()
        except BaseException as error:
            errors.append(f"{type(error).__name__}: {error}")

    several = [threading.Thread(target=do, args=(work,)) for work in works]
    for each in several:
        each.start()
    for each in several:
        each.join()
    return errors


@cache
def asked(name: str) -> tuple[Any, list[Any], list[tuple[str, Any, Any]]]:
    """Return a model, inputs of one example each, and (question, input, answer) as a single thread computes it."""
    case = MODELS[name]()
    inputs = list(case.X) if isinstance(case.X[0], np.ndarray) and name == "classifier" else [[x] for x in case.X]
    found = []
    for question, ask in QUESTIONS.items():
        if not hasattr(case.estimator, question):
            continue
        for x in inputs:
            try:
                found.append((question, x, plain(ask(case.estimator, x))))
            except (ValueError, NotImplementedError, AttributeError):  # a loss without probabilities
                break
    return case.estimator, inputs, found


def ask_together(n_calls: int, number: int, folder: Path) -> tuple[str, str]:
    """Let 16 threads use one model, while one more saves it, loads it, and uses the loaded model."""
    name = ASKED[number]
    model, _, cases = asked(name)
    wrong: list[str] = []
    n_calls = MANY if name == OFTEN and n_calls == CALLS else n_calls

    def ask(first: int) -> None:
        for k in range(n_calls):
            question, x, expected = cases[(first + k) % len(cases)]
            if plain(QUESTIONS[question](model, x)) != expected:
                wrong.append(question)

    def save_and_load() -> None:
        for k in range(max(n_calls // 500, 3)):
            model.save(folder / "model.pw")
            question, x, expected = cases[k % len(cases)]
            if plain(QUESTIONS[question](partwise.load(folder / "model.pw"), x)) != expected:
                wrong.append(f"{question}, loaded")

    step = len(cases) / N_THREADS
    errors = together([*(partial(ask, int(k * step)) for k in range(N_THREADS)), save_and_load])
    if errors:
        return "error", f"{name}: {errors[:3]}"
    questions = sorted({question for question, _, _ in cases})
    detail = f"{name}: {N_THREADS} x {n_calls} of {', '.join(questions)}"
    return ("equals serial" if not wrong else "differs"), f"{detail} {wrong[:3]}"


#: Solvers whose passes use several threads, and one whose passes do not.
TRAINED = ("lbfgs", "newton", "eg", "eg-batch", "eg-prox", "bcfw", "dcd", "excessive-gap", "owlqn", "sdca")


def train_together(number: int, folder: Path) -> tuple[str, str]:
    """Run two trainings on one problem at the same time, each on two or four threads; compare with single runs."""
    from helpers.small_problems import kind_for, penalty_for

    solver = TRAINED[number % len(TRAINED)]
    small = Small(kind_for(solver), loss_for(solver), l2=0.05, n=100)
    problem = small.problem.with_penalty(penalty_for(solver, 0.05))
    found: dict[int, Any] = {}
    options = {"tol": 1e-6, "max_passes": 10, "random_state": 0}

    def run(key: int, n_jobs: int) -> None:
        found[key] = solve(problem, solver, n_jobs=n_jobs, **options).weights

    processors, threads.available_processors = threads.available_processors, lambda: 4
    try:
        run(0, 2)
        run(1, 4)
        errors = together([partial(run, 2, 2), partial(run, 3, 4)])
    finally:
        threads.available_processors = processors
    if errors:
        return "error", f"{solver}: {errors}"
    same = np.array_equal(found[0], found[2]) and np.array_equal(found[1], found[3])
    return ("equals serial" if same else "differs"), f"{solver}, n_jobs 2 and 4"


def shared(n_calls: int, number: int, folder: Path) -> tuple[str, str]:
    if number < len(MODELS):
        return ask_together(n_calls, number, folder)
    return train_together(number - len(MODELS), folder)


def fork_amid(number: int, folder: Path) -> tuple[str, str]:
    """Fork while threads use one model and train another. The child predicts, and trains on two threads."""
    name = list(MODELS)[number % len(MODELS)]
    model, _, cases = asked(name)
    done = threading.Event()

    def ask() -> None:
        k = 0
        while not done.is_set():
            question, x, _ = cases[k % len(cases)]
            QUESTIONS[question](model, x)
            k += 1

    def fit() -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 20))
        while not done.is_set():
            MaxentClassifier(tol=1e-3, n_jobs=2).fit(X, np.arange(300) % 4)

    def child() -> bool:
        rng = np.random.default_rng(1)
        MaxentClassifier(tol=1e-3, n_jobs=2).fit(rng.normal(size=(100, 5)), np.arange(100) % 3)
        model.save(folder / f"{os.getpid()}.pw")
        return all(plain(QUESTIONS[question](model, x)) == expected for question, x, expected in cases)

    several = [threading.Thread(target=work, daemon=True) for work in (ask, ask, fit)]
    for each in several:
        each.start()
    outcomes = []
    try:
        for _ in range(10):
            outcomes.append(apart(child, 60))
    finally:
        done.set()
        for each in several:
            each.join()
    bad = [each for each in outcomes if each.how != "answer" or each.answer is not True]
    return ("as before the fork" if not bad else "differs"), f"{name} {bad[:2]}"


ROWS = [
    Row(
        "threads",
        f"shared models, saved and loaded meanwhile: {N_THREADS} threads x {MANY:,} questions to a tagger, "
        f"x {CALLS:,} to each other kind; two runs on one problem",
        "equals serial",
        len(MODELS) + len(TRAINED),
        3,
        partial(shared, CALLS),
        ("equals serial",),
        1200,
    ),
    Row(
        "threads-tsan",
        f"the same under ThreadSanitizer, {N_THREADS} threads x {WATCHED} questions",
        "equals serial; no report",
        len(MODELS) + len(TRAINED),
        0,
        partial(shared, WATCHED),
        ("equals serial",),
        1200,
        core="tsan",
    ),
    Row(
        "forks",
        "10 forks while threads ask a model and train another; the child asks, trains, saves",
        "as before the fork; 0 deadlocks",
        len(MODELS),
        1,
        fork_amid,
        ("as before the fork",),
        600,
    ),
]
