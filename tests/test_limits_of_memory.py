"""Requests for more memory than the machine has are refused at once, with an estimate."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from scipy import sparse

from partwise import (
    ConstituencyParser,
    ConvergenceWarning,
    DependencyParser,
    GraphLabeler,
    MaxentClassifier,
    SegmentTagger,
    SequenceTagger,
)
from partwise.cli.errors import message_of
from partwise.support import memory
from partwise.support.memory import TooLarge, available, check_room


def many_labels(n: int, **options):
    """Fit a tagger to data with as many labels as positions."""
    y = [[f"label {10 * i + k}" for k in range(10)] for i in range(n // 10)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SequenceTagger(tol=0.1, max_passes=1, **options).fit([[["a"]] * 10] * (n // 10), y)


def wide_rows() -> None:
    X = sparse.csr_array((np.ones(3000), np.arange(3000), np.arange(3001)), (3000, 10_000_000))
    MaxentClassifier(tol=0.1, max_passes=1).fit(X, np.arange(3000) % 1400)


def graphs(n_labels: int) -> None:
    nodes, edges = [["a"]] * n_labels, np.column_stack([np.arange(n_labels - 1), np.arange(1, n_labels)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GraphLabeler(tol=0.1, max_passes=1).fit([(nodes, edges)], [list(range(n_labels))])


def long_sentence() -> None:
    parser = DependencyParser(tol=0.1, max_passes=1, max_length=30_000)
    parser.fit([[("a", "N")] * 20_000], [list(range(20_000))])


def dual_variables() -> None:
    X = sparse.csr_array((np.ones(20_000), np.arange(20_000) % 10, np.arange(20_001)), (20_000, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MaxentClassifier(tol=0.1, max_passes=1, solver="eg").fit(X, np.arange(20_000))


def chart() -> None:
    parser = ConstituencyParser(tol=0.5, max_length=30_000)
    trees = [(root, ("NP", ("D", "the"), ("N", "cat")), ("V", "sat")) for root in "SSSX"]
    parser.fit(trees, None).predict([["the"] * 20_000])


@pytest.mark.parametrize(
    ("work", "what"),
    [
        (lambda: many_labels(40_000), r"1,600,000,000 weights \(a table of 40,000 labels"),
        (lambda: many_labels(2000, order=2), r"8,000,000,000 weights \(a table of 2,000 labels"),
        (lambda: graphs(40_000), r"1,600,000,000 weights \(a table of 40,000 labels"),
        (long_sentence, "sentence 0, of 20,000 words,"),
        (chart, "the chart of 20,000 words and 6 symbols"),
        (dual_variables, "eg: dual variables of 400,000,000 slots"),
        (wide_rows, r"14,000,001,400 weights \(10,000,001 features, 1,400 classes\)"),
    ],
)
def test_the_impossible_is_refused_in_less_than_a_second(work, what, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 4e9)
    begin = time.process_time()
    with pytest.raises(TooLarge, match=what + r".* would take about [\d.]+ GB of memory, 4\.00 GB are free") as refused:
        work()
    assert time.process_time() - begin < 1
    assert message_of(refused.value) == str(refused.value)


def test_available_memory_is_asked_of_the_system():
    assert 1e7 < available() < 1e15
    check_room(1e9 * (available() < 1e9), "little")
    with pytest.raises(TooLarge, match=r"everything would take about 1000000\.00 GB"):
        check_room(1e15, "everything")


def test_an_address_limit_counts(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1 << 20, 1 << 20))
    assert available() == 0  # this process already uses more than the limit


def test_labels_that_occur_once_are_warned_about():
    X = [[["a"]] * 10] * 20
    with pytest.warns(UserWarning, match="y has 200 different labels; 200 of them occur once: are they labels"):
        SequenceTagger(tol=0.5, max_passes=1).fit(X, [[f"{i} {k}" for k in range(10)] for i in range(20)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        SequenceTagger(tol=0.5).fit(X, [[f"{k}" for k in range(10)] for _ in range(20)])


def test_slow_passes_are_warned_about(monkeypatch):
    monkeypatch.setattr("partwise.models.labels.SLOW_PASS", 10_000)
    with pytest.warns(UserWarning, match="a pass goes through 120 pairs of them at each of 200 positions"):
        SequenceTagger(tol=0.5).fit([[["a"]] * 10] * 20, [[f"{k}" for k in range(10)] for _ in range(20)])


@pytest.mark.parametrize("kind", ["graphs", "arcs", "phrases"])
def test_every_model_warns_of_and_refuses_too_many_labels(kind, monkeypatch):
    def fit(n: int) -> None:
        labels = [f"x{k}" for k in range(n)]
        if kind == "graphs":
            GraphLabeler(tol=0.5, max_passes=1).fit([([["a"]], [])] * n, [[label] for label in labels])
        elif kind == "arcs":
            words = [("a", "N"), ("b", "V")]
            DependencyParser(tol=0.5, max_passes=1).fit([words] * n, [[(0, "top"), (1, label)] for label in labels])
        else:
            trees = [("S", ("NP", ("D", "the"), (label, "cat")), ("V", "sat")) for label in labels]
            ConstituencyParser(tol=0.5, max_passes=1).fit(trees, None)

    what = "names of arcs" if kind == "arcs" else "labels"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(UserWarning, match=f"different {what}; 150 of them occur once: are they {what}"):
            fit(150)
        monkeypatch.setattr("partwise.models.labels.FEW_LABELS", 1000)
        fit(150)
    monkeypatch.setattr("partwise.models.labels.MOST_LABELS", 100)
    with pytest.raises(ValueError, match=f"y has more than 100 different {what}: tables .* takes [0-9]"):
        fit(150)


def test_very_long_segments_are_warned_about(monkeypatch):
    monkeypatch.setattr("partwise.models.labels.SLOW_SEGMENTS", 10_000)
    X, y = [[["a"]] * 200, [["b"]]], [["B-x", *["I-x"] * 199], ["O"]]
    with pytest.warns(UserWarning, match=r"segments may have 200 positions: a pass goes through 8e\+04 of them"):
        SegmentTagger(tol=0.5).fit(X, y)
