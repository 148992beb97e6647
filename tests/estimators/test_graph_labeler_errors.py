"""GraphLabeler refuses invalid graphs, labels, constraints and parameters, and names the graph by its number."""

from __future__ import annotations

import time

import numpy as np
import pytest

from helpers.graph_cases import Plain, as_dicts, make
from partwise import GraphLabeler


@pytest.fixture(scope="module")
def fitted():
    return GraphLabeler().fit(*make(40, 0))


ROWS = np.ones((3, 2))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ((ROWS,), "graph 1 must be"),
        (ROWS, "graph 1 must be"),
        ((ROWS, [(0, 3)]), r"graph 1, edge 0 \(0, 3\) names a node that is not in \[0, 3\)"),
        ((ROWS, [(0, 1), (-1, 1)]), "graph 1, edge 1"),
        ((ROWS, [(0, 1), (2, 2)]), "graph 1, edge 1 .* joins a node to itself"),
        ((ROWS, [(0, 1, 2)]), "graph 1: edges must be pairs"),
        ((ROWS, [0.5, 1]), "graph 1: edges must be pairs"),
        ((ROWS, [(0, 1), (1,)]), "graph 1: edges must be pairs"),
        ((ROWS, [(0, 1)], np.ones((2, 2))), "graph 1 has 1 edges but 2 features of edges"),
        ((ROWS, [(0, 1)], None, ["x", "y"]), "graph 1 has 1 edges but 2 types of edges"),
        ((ROWS * np.nan, []), "graph 1, node 0, column 0 is nan"),
        ((np.ones((3, 4)), []), "graph 1 has 4 features, expected 2"),
        ((np.ones(3), []), "graph 1"),
        (("abc", []), "graph 1 must have a list"),
        (([{"a": 1}] * 3, []), "graph 1"),
        ((np.empty((0, 2)), []), "graph 1 has no nodes: leave it out"),
        ((ROWS, [(0, 1)], None, [None]), "type of an edge is missing"),
        (Plain({"n": {}}, []), "graph 1, node 'n' has no attribute 'x'"),
        (Plain({"n": {"x": 1}}, [], directed=False), "graph 1 is undirected"),
        (Plain({"m": {"x": np.ones(2)}, "n": {"x": np.ones(3)}}, []), "graph 1 has nodes with different numbers"),
    ],
)
def test_invalid_graphs(graph, message):
    rows = graph.nodes if isinstance(graph, Plain) else graph[0]
    size = len(rows) if isinstance(graph, Plain) or len(rows) == 0 else 3
    with pytest.raises(ValueError, match=message):
        GraphLabeler().fit([(ROWS, []), graph], [["a", "b", "a"], ["a"] * size])


def test_invalid_labels_and_data(fitted):
    X, y = make(3, 1)
    for wrong, message in (
        (y[:2], "X has 3 graphs but y has 2"),
        ([y[0][:-1], *y[1:]], "graph 0 has . nodes but . labels"),
        ([[None, *y[0][1:]], *y[1:]], r"graph 0, node 0: label missing"),
        ([["a"] * len(own) for own in y], "one label only"),
        ([{0: "a"}, *y[1:]], "y: graph 0 has no value for node 1"),
        ("abc", "y must be a list"),
    ):
        with pytest.raises(ValueError, match=message):
            GraphLabeler().fit(X, wrong)
    for strange, message in (
        ([(X[0][0], X[0][1])], "edges need features and types"),
        ([(X[0][0], X[0][1], None, ["new"] * len(X[0][1]))], "graph 0, edge 0: type 'new' was not in the training"),
        ([(X[0][0], X[0][1], None, [["p"]] * len(X[0][1]))], r"graph 0, edge 0: type \['p'\] was not in the training"),
        ([(X[0][0], X[0][1], X[0][1], X[0][3])], "edges have features, those of the training data had none"),
        ([(as_dicts(X)[0][0], *X[0][1:])], "graphs must be 2-D arrays"),
        (X[0], "must be a list of graphs"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted.predict(strange)
    with_features = GraphLabeler().fit([(x[0], x[1], x[1]) for x in X], y)
    with pytest.raises(ValueError, match="edges need features and types"):
        with_features.predict([x[:2] for x in X])
    plain = GraphLabeler().fit([x[:2] for x in X], y)
    with pytest.raises(ValueError, match="edges have types, those of the training data had none"):
        plain.predict(X)
    for options, message in (
        ({"directed": "yes"}, "directed"),
        ({"memory_limit": 0}, "memory_limit"),
        ({"kind_features": "all"}, "kind_features"),
        ({"kind_features": [7]}, "kind_features: 7 is not a column"),
    ):
        with pytest.raises(ValueError, match=message):
            GraphLabeler(**options).fit(X, y)
    with pytest.raises(ValueError, match="holds no graphs"):
        GraphLabeler().fit([], [])


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"fixed": [{9: "a"}]}, "fixed: graph 0 has no node 9"),
        ({"fixed": [{0: "q"}]}, "fixed: graph 0, node 0: label 'q' was not"),
        ({"fixed": [["a"]]}, "fixed: graph 0 must have None or a dict"),
        ({"allowed": [["a"]]}, "allowed: graph 0 has . nodes but 1 entries"),
        ({"allowed": [{0: "a"}]}, "allowed: graph 0, node 0 must be None or a collection"),
        ({"allowed": [np.ones((2, 2))]}, "allowed: graph 0 needs a boolean array"),
        ({"allowed": [{0: []}]}, "allowed: graph 0, node 0 has no label left"),
        ({"allowed": [{0: ["a"]}], "fixed": [{0: "b"}]}, "graph 0, node 0 has no label left"),
        ({"allowed": {}}, "one entry for each of 1 graphs"),
        ({"fixed": 5}, "fixed must hold one entry for each of 1 graphs"),
        ({"allowed": [5]}, "allowed: graph 0 must have None, an array, a list or a dict, got 5"),
        ({"fixed": [{0: ["a"]}]}, r"fixed: graph 0, node 0: label \['a'\] was not"),
    ],
)
def test_invalid_constraints(constraints, message, fitted):
    with pytest.raises(ValueError, match=message):
        fitted.predict(make(1, 2)[0], **constraints)


def test_graphs_that_are_too_wide_by_their_numbers(fitted):
    """A graph that is too wide is refused quickly; its number in the error counts the empty graphs before it."""
    side = 60
    cells = np.arange(side * side).reshape(side, side)
    pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    (x, pair, _, types), *_ = make(1, 2)[0]
    wide = (np.ones((cells.size, x.shape[1])), edges, None, types[:1] * len(edges))
    X = [(np.empty((0, x.shape[1])), []), (x, pair, None, types), wide]
    message = r"^graph 2: its junction tree of width (at least )?\d+ would take (at least )?[\d.e+]+ bytes, more than"
    begin = time.process_time()
    with pytest.raises(ValueError, match=message):
        fitted.predict(X)
    assert time.process_time() - begin < 3
    for ask in (fitted.predict_marginals, fitted.entropy, lambda X: fitted.predict_k_best(X, 2)):
        with pytest.raises(ValueError, match=r"^graph 2: its junction tree"):
            ask(X)
