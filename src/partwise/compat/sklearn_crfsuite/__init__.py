"""The interface of sklearn-crfsuite: `CRF`, and the modules `metrics`, `scorers` and `utils`."""

from partwise.compat.sklearn_crfsuite.estimator import CRF

__all__ = ["CRF"]
