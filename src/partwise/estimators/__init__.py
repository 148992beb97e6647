"""scikit-learn estimators. This is the only part of the library that imports scikit-learn."""

from partwise.estimators.maxent import MaxentClassifier
from partwise.estimators.parser import DependencyParser
from partwise.estimators.path_cv import RegularizationPathCV
from partwise.estimators.tagger import SequenceTagger

__all__ = ["DependencyParser", "MaxentClassifier", "RegularizationPathCV", "SequenceTagger"]
