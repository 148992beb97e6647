"""Choice of C by cross-validation on the regularisation path."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, assert_all_finite, get_tags, indexable
from sklearn.utils.validation import check_is_fitted

from partwise.estimators.base import StructuredEstimator, available_where, unchanged_on_failure
from partwise.features.rows import own_sparse
from partwise.metrics.scorers import MEASURES, get_scorer
from partwise.support.checks import check_positive, check_sample_weight


def _of_best(name: str, what: str) -> Callable[..., Any]:
    """Return a method that calls the best estimator's method of this name, available only if the estimator has it."""

    def method(self: Any, X: object, **options: object) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(X, **options)

    def check(self: Any) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    method.__name__ = name
    method.__doc__ = f"Return {what}, by the best estimator."
    return available_where(check)(method)


@dataclass(eq=False, repr=False)
class RegularizationPathCV(MetaEstimatorMixin, BaseEstimator):
    """An estimator of this library with its `C` chosen by cross-validation.

    Like ``GridSearchCV(estimator, {"C": Cs})``, but a fold's data are read once, every C is solved from the solution of
    the one before it (`solve_path`), and the whole data are fitted along the whole path. This saves time where reading
    the data is slow (taggers, parsers) and where C is large; a grid may be faster for fits of a few passes.

    Parameters
    ----------
    estimator : MaxentClassifier, SequenceTagger, ...
        What to fit; its own `C` is not used.
    Cs : int or list of float
        Values of C, or how many between 1e-4 and 1e4, evenly spaced in logarithms.
    cv : int, splitter or iterable, optional
        As in scikit-learn: 5 folds by default, stratified for single labels.
    scoring : str or callable, optional
        A name of `partwise.metrics.get_scorer` ("chunk_f1", ...) or of scikit-learn, a scorer, or
        ``scoring(estimator, X, y)``; the estimator's `score` by default.

    Attributes
    ----------
    best_estimator_ : the estimator with the best C, fitted to all data
    C_ : float
        The best C: of the highest mean score, the smallest one in a tie.
    Cs_ : ndarray of shape (n_Cs,), ascending
    scores_ : ndarray of shape (n_folds, n_Cs)
    gaps_ : ndarray of shape (n_folds, n_Cs)
        Certified relative gap of each model that was scored.
    results_ : list of Result
        The path on all data: one for each of `Cs_`.
    """

    estimator: Any
    _: KW_ONLY
    Cs: int | Iterable[float] = 10
    cv: Any = None
    scoring: Any = None

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in ("estimator_type", "classifier_tags", "input_tags", "target_tags"):
            setattr(tags, name, getattr(inner, name))
        return tags

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Choose C on folds of the data, then fit to all of it."""
        if not isinstance(self.estimator, StructuredEstimator):
            raise ValueError(f"estimator must be one of partwise's, got {type(self.estimator).__name__}")
        with unchanged_on_failure(self):
            Cs = _ascending(self.Cs)
            single = get_tags(self.estimator).estimator_type == "classifier"
            if y is None:
                raise ValueError("RegularizationPathCV requires y to be passed, but the target y is None")
            if single:
                X, y = indexable(own_sparse(X), y)
                assert_all_finite(y, input_name="y")
            from sklearn.model_selection import check_cv  # slow to import: not needed by other estimators

            labels = y if single else None
            folds = check_cv(self.cv, labels, classifier=single)
            weight = check_sample_weight(sample_weight, len(y), "sample")
            scores: list[list[float]] = []
            gaps: list[list[float]] = []
            for rows in folds.split(np.zeros(len(y)), labels):
                training, held_out = (
                    (_safe_indexing(X, each), _safe_indexing(y, each), None if weight is None else weight[each])
                    for each in rows
                )
                fold = clone(self.estimator)
                results = fold.fit_path(Cs, *training)
                scores.append([self._score(fold.use(result), *held_out) for result in results])
                gaps.append([result.relative_gap for result in results])
            if not scores:
                raise ValueError("cv gives no folds")
            best = int(np.argmax(np.mean(scores, axis=0)))
            chosen = clone(self.estimator)
            self.results_ = chosen.fit_path(Cs, X, y, weight)
            self.C_ = Cs[best]
            self.best_estimator_ = chosen.use(self.results_[best]).set_params(C=self.C_)
            self.Cs_, self.scores_, self.gaps_ = np.array(Cs), np.array(scores), np.array(gaps)
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        check_is_fitted(self)
        return cast(NDArray[Any], self.best_estimator_.classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of columns, where X is an array."""
        return int(self.best_estimator_.n_features_in_)

    predict = _of_best("predict", "the best answers")
    predict_proba = _of_best("predict_proba", "probabilities of labels")
    predict_log_proba = _of_best("predict_log_proba", "log-probabilities of labels")
    predict_marginals = _of_best("predict_marginals", "probabilities of the parts of answers")
    decision_function = _of_best("decision_function", "scores of labels")

    def save(self, path: str | os.PathLike[str], dtype: str = "float64") -> None:
        """Write the best estimator to a model file; `partwise.load` gives that estimator."""
        check_is_fitted(self)
        self.best_estimator_.save(path, dtype)

    def score(self, X: object, y: object, sample_weight: ArrayLike | None = None) -> float:
        """Return the best estimator's score by the measure that chose C."""
        check_is_fitted(self)
        return self._score(self.best_estimator_, X, y, sample_weight)

    def _score(self, estimator: BaseEstimator, X: object, y: object, weight: ArrayLike | None) -> float:
        from sklearn.metrics import check_scoring

        own = isinstance(self.scoring, str) and self.scoring in MEASURES
        scorer = get_scorer(self.scoring) if own else check_scoring(estimator, self.scoring)
        # A user-defined function takes three arguments, as in scikit-learn; measures of chunks do not support weights.
        weighted = weight is not None and not own and not callable(self.scoring)
        return float(scorer(estimator, X, y, sample_weight=weight) if weighted else scorer(estimator, X, y))


def _ascending(Cs: object) -> list[float]:
    """Return the values of C, ascending."""
    if isinstance(Cs, (int, np.integer)):
        if Cs < 1 or isinstance(Cs, bool):
            raise ValueError(f"Cs must be at least 1, got {Cs!r}")
        return [float(C) for C in np.logspace(-4, 4, int(Cs))]
    if isinstance(Cs, (str, numbers.Number)) or not isinstance(Cs, Iterable):
        raise ValueError(f"Cs must be a number of values or a list of them, got {Cs!r}")
    values = list(Cs)
    for value in values:
        check_positive("Cs: each value", value)
    return sorted({float(value) for value in values})
