"""scikit-learn estimators. This is the only part of the library that imports scikit-learn.

Names are imported when they are first used: cross-validation alone takes a tenth of a second.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from partwise.estimators.base import StructuredEstimator as StructuredEstimator
    from partwise.estimators.classifier import MaxentClassifier as MaxentClassifier
    from partwise.estimators.constituency import ConstituencyParser as ConstituencyParser
    from partwise.estimators.graph_labeler import GraphLabeler as GraphLabeler
    from partwise.estimators.parser import DependencyParser as DependencyParser
    from partwise.estimators.path_cv import RegularizationPathCV as RegularizationPathCV
    from partwise.estimators.segment_tagger import SegmentTagger as SegmentTagger
    from partwise.estimators.tagger import SequenceTagger as SequenceTagger

_HOME = {
    "ConstituencyParser": "constituency",
    "DependencyParser": "parser",
    "GraphLabeler": "graph_labeler",
    "MaxentClassifier": "classifier",
    "RegularizationPathCV": "path_cv",
    "SegmentTagger": "segment_tagger",
    "SequenceTagger": "tagger",
    "StructuredEstimator": "base",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"partwise.estimators.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
