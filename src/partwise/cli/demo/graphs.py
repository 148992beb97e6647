"""A run on strings of digits as graphs: every digit has edges to the next two."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.cli.demo.runs import Options, Row, compare, timed


def label_graphs(options: Options) -> Row:
    """Digits that are joined with the next two."""
    from partwise.estimators import GraphLabeler

    data = options.digits()
    X, X_test = ([_graph(x) for x in part] for part in (data.X_train, data.X_test))
    model, seconds = timed(lambda: GraphLabeler(**options.common(C=0.1)).fit(X, data.y_train))
    scores = compare(model.predict(X_test), data.y_test)
    return Row("graph CRF, two neighbours", "digit strings", *scores, seconds, model.result_, model)


def _graph(x: Any) -> tuple[Any, Any, None, list[str]]:
    """(pictures, edges, no features of edges, types of edges)."""
    n = len(x)
    edges = [(t, t + step) for step in (1, 2) for t in range(n - step)]
    return x, np.array(edges, dtype=np.int64).reshape(-1, 2), None, [f"{b - a} apart" for a, b in edges]
