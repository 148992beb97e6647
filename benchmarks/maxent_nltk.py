"""NLTK's GIS next to ours, on the first contexts of a data set; for the question maxent-is."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.contexts import Contexts
from benchmarks.report import Record


def fit_nltk(arrays: str, contexts: int, iterations: int) -> Record:
    """Run NLTK's GIS and ours on the first contexts."""
    from nltk.classify.maxent import GISEncoding, train_maxent_classifier_with_gis

    from partwise import FeatureWarning, Problem, get_solver
    from partwise.features import Attributes, maxent_map
    from partwise.structures import Multiclass

    given = Contexts.load(arrays)
    n = min(contexts, len(given.labels))
    row_ptr, labels = given.row_ptr[: n + 1], given.labels[:n]
    rows = np.split(given.attributes[: row_ptr[-1]], row_ptr[1:-1])
    tokens = [
        (dict.fromkeys(map(str, row.tolist()), True), int(label)) for row, label in zip(rows, labels, strict=True)
    ]
    encoding = GISEncoding.train(tokens, count_cutoff=0, alwayson_features=False)
    seconds = {}
    for k in (1, 1, iterations):  # the difference of two runs does not contain the set-up
        begin = time.process_time()
        model = train_maxent_classifier_with_gis(tokens, trace=0, encoding=encoding, max_iter=k)
        seconds[k] = time.process_time() - begin
    reached = -sum(math.log(model.prob_classify(names).prob(label)) for names, label in tokens)

    n_attributes, n_labels = given.sizes.tolist()
    table = Attributes(row_ptr, given.attributes[: row_ptr[-1]], n_attributes)
    owner = np.repeat(np.arange(n), np.diff(row_ptr))
    structure = Multiclass(n, n_labels)
    features = maxent_map(structure, table, pairs=(table.attributes, labels[owner]))  # pairs that occur, as NLTK has
    problem = Problem(features, structure, structure.encode(labels), "log", 0.0)  # no penalty, as in NLTK
    with warnings.catch_warnings():  # some labels do not occur in the first contexts
        warnings.simplefilter("ignore", FeatureWarning)
        our_iteration = np.median([_iteration(problem, get_solver("gis"), 50) for _ in range(3)])
        ours = np.median([_seconds_to(problem, get_solver("cd"), reached) for _ in range(5)])
    iteration = (seconds[iterations] - seconds[1]) / (iterations - 1)
    return {
        "contexts": n,
        "features": problem.n_weights,
        "nltk_features": encoding.length(),
        "nltk_objective": reached,
        "nltk_cpu_seconds": seconds[iterations],
        "nltk_our_cpu_seconds": float(ours),
        "nltk_ratio": seconds[iterations] / float(ours),
        "nltk_iteration": iteration,
        "nltk_our_iteration": float(our_iteration),
        "nltk_iteration_ratio": iteration / float(our_iteration),
    }


def _iteration(problem: Any, solver: Any, steps: int) -> float:
    """Return the CPU seconds per step, without the first step."""
    state = solver.init_state(problem, np.random.default_rng(0), None)
    solver.step(problem, state)
    begin = time.process_time()
    for _ in range(steps):
        solver.step(problem, state)
    return (time.process_time() - begin) / steps


def _seconds_to(problem: Any, solver: Any, objective: float) -> float:
    """Return the CPU seconds from w = 0 until the objective is at most `objective`; evaluating it is not counted."""
    begin = time.process_time()
    state = solver.init_state(problem, np.random.default_rng(0), None)
    seconds = time.process_time() - begin
    while problem.value(solver.weights(problem, state)) > objective:
        begin = time.process_time()
        solver.step(problem, state)
        seconds += time.process_time() - begin
    return seconds
