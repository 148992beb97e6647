"""scikit-learn estimators. This is the only part of the library that imports scikit-learn.

Names are imported when they are first used: cross-validation alone takes a tenth of a second.
"""

from typing import TYPE_CHECKING

from partwise.support.lazy import exports

if TYPE_CHECKING:
    from partwise.estimators.base import StructuredEstimator as StructuredEstimator
    from partwise.estimators.classifier import MaxentClassifier as MaxentClassifier
    from partwise.estimators.constituency import ConstituencyParser as ConstituencyParser
    from partwise.estimators.graph_labeler import GraphLabeler as GraphLabeler
    from partwise.estimators.parser import DependencyParser as DependencyParser
    from partwise.estimators.path_cv import RegularizationPathCV as RegularizationPathCV
    from partwise.estimators.segment_tagger import SegmentTagger as SegmentTagger
    from partwise.estimators.tagger import SequenceTagger as SequenceTagger

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "base": ("StructuredEstimator",),
        "classifier": ("MaxentClassifier",),
        "constituency": ("ConstituencyParser",),
        "graph_labeler": ("GraphLabeler",),
        "parser": ("DependencyParser",),
        "path_cv": ("RegularizationPathCV",),
        "segment_tagger": ("SegmentTagger",),
        "tagger": ("SequenceTagger",),
    },
)
