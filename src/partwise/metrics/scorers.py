"""Measures by name: `scoring="chunk_f1"` wherever scikit-learn, and this library, take a string.

scikit-learn has no public way to add a name. It looks names up in one private table, and functions and classes that
take `scoring` have a copy of its names from when they were imported, to check their arguments by. `register_scorers`
adds to both, and does nothing where they are not as in the versions that are known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from partwise.metrics.chunks import chunk_f1, chunk_scores
from partwise.metrics.labels import Sentences, share, token_accuracy

Measure = Callable[[Any, Any], float]


def chunk_precision(y_true: Sentences, y_pred: Sentences) -> float:
    """Return the share of the chunks found that are right; see `chunk_scores`."""
    return float(chunk_scores(y_true, y_pred).precision)


def chunk_recall(y_true: Sentences, y_pred: Sentences) -> float:
    """Return the share of the chunks that are found; see `chunk_scores`."""
    return float(chunk_scores(y_true, y_pred).recall)


def sequence_accuracy(y_true: Sentences, y_pred: Sentences) -> float:
    """Return the share of sequences that are right as a whole."""
    pairs = [list(a) == list(b) for a, b in zip(y_true, y_pred, strict=True)]
    return share(sum(pairs), len(pairs))


#: Functions of gold and predicted answers, by name; larger is better.
MEASURES: dict[str, Measure] = {
    "chunk_f1": chunk_f1,
    "chunk_precision": chunk_precision,
    "chunk_recall": chunk_recall,
    "sequence_accuracy": sequence_accuracy,
    "token_accuracy": token_accuracy,
}


def get_measure(name: str) -> Measure:
    """Return the function of this name; raise ValueError, which lists the known names, for another name."""
    if name not in MEASURES:
        raise ValueError(f"unknown measure {name!r}; there are {', '.join(MEASURES)}")
    return MEASURES[name]


def get_scorer(scoring: Any) -> Any:
    """Return a scorer ``scorer(estimator, X, y)``: of a name here or in scikit-learn, or a scorer itself."""
    from sklearn.metrics import get_scorer, make_scorer

    if isinstance(scoring, str) and scoring in MEASURES:
        return make_scorer(MEASURES[scoring])
    return get_scorer(scoring)


def register_scorers() -> bool:
    """Make these names known to scikit-learn; return whether that was possible.

    It is done when an estimator is made, if scikit-learn's metrics are imported by then (this does not import them:
    that takes a tenth of a second). Where it is not possible, `get_scorer` gives what to use in place of the string.
    """
    try:
        from sklearn.metrics import _scorer
        from sklearn.utils._param_validation import StrOptions
    except ImportError:
        return False
    table = getattr(_scorer, "_SCORERS", None)
    if not isinstance(table, dict) or "accuracy" not in table:
        return False
    if set(MEASURES) <= set(table):
        return True
    for name in MEASURES:
        table.setdefault(name, get_scorer(name))
    for options in _known_names(StrOptions):
        options.update(MEASURES)
    return True


def _known_names(kind: type[Any]) -> Iterator[set[str]]:
    """Yield the names that functions and classes of scikit-learn check `scoring` by."""
    for module in [module for name, module in sys.modules.items() if name.startswith("sklearn.")]:
        for value in list(getattr(module, "__dict__", {}).values()):
            if not isinstance(value, (FunctionType, type)):
                continue
            for attribute in ("_skl_parameter_constraints", "_parameter_constraints"):
                rules = vars(value).get(attribute)
                for rule in rules.get("scoring") or () if isinstance(rules, dict) else ():
                    names = getattr(rule, "options", None)
                    if isinstance(rule, kind) and isinstance(names, set) and "accuracy" in names:
                        yield names
