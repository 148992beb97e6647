"""What the parsers share: answers that sentences may hold themselves, and the solver that suits trees."""

from typing import ClassVar, TypeVar

from numpy.typing import ArrayLike

from partwise.estimators.base import StructuredEstimator
from partwise.estimators.warm_start import AnyModel

ModelT = TypeVar("ModelT", bound=AnyModel)


class TreeParser(StructuredEstimator[ModelT]):
    """Base of the estimators whose answers are trees of sentences."""

    # "auto" solves tiny problems to machine precision, which scikit-learn's classifiers are expected to do; a parser's
    # weights are not worth that. Its rule for very many slots prefers L-BFGS. Weak penalties are left to its rule.
    _auto_solver: ClassVar = ("eg", 100.0)

    def score(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Return how good predicted trees are, as the class says; y: the trees, None those that `X` has."""
        return super().score(X, y, sample_weight)
