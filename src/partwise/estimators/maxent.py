"""Maximum-entropy classification: one label an example.

Two labels have one weight vector v (`coef_`), as in binary logistic regression. It is trained as the pair (-v/2, v/2)
on the same features as any number of labels, under twice the penalty: l2 (|v/2|^2 + |v/2|^2) = l2/2 |v|^2, and since
l2 (|w0|^2 + |w1|^2) is least at w1 = -w0 for a given w1 - w0 = v, objective, dual and gap are those of v. (A map with
weights on one label alone says the same and is 2 to 15 times slower: its rows of weights have one entry each.) The l1
penalty needs no factor: |w0| + |w1| is least, and |v|, wherever w0 and w1 have opposite signs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from partwise._core import Multiclass, padded_width
from partwise.estimators.class_weight import with_class_weight
from partwise.estimators.common import (
    TrainedEstimator,
    Training,
    check_choice,
    check_count,
    check_positive,
    check_sample_weight,
    count_jobs,
    needs_probabilities,
    row_products,
    unchanged_on_failure,
)
from partwise.estimators.explaining import (
    Contribution,
    Explanation,
    Pruning,
    TopFeatures,
    choose_kept,
    explanation,
    largest,
    without_certificate,
)
from partwise.estimators.inputs import Floats, Rows, csr_attributes
from partwise.estimators.saving import (
    coefficient_arrays,
    make_estimator,
    read_coefficients,
    read_result,
    start_model,
)
from partwise.features.sparse_inputs import own_sparse
from partwise.losses import get_loss
from partwise.models.errors import ModelFormatError
from partwise.models.names import decode_names, encode_names
from partwise.models.parts import ModelParts
from partwise.models.values import string_array
from partwise.result import Result

#: Scores that `predict` holds at a time.
MOST_SCORES = 1 << 22


class MaxentClassifier(ClassifierMixin, TrainedEstimator):
    """Linear classifier: multinomial logistic regression, or a max-margin classifier with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)``. With the log loss and ``fit_intercept=False`` this is
    scikit-learn's ``LogisticRegression`` with the same `C`, for two labels and for more.

    Two labels share one weight vector, on the second label's side; two vectors under this penalty would describe the
    same distributions at half the price.

    Parameters
    ----------
    loss : {"log", "softmax-margin", "hinge", "squared-hinge", "smoothed-hinge"} or Loss
        The hinge losses give no probabilities.
    C : float
        Inverse of the penalty's strength.
    penalty : {"l2", "l1", "elasticnet"}
        "l1": ``|w|_1 / C`` instead, which makes weights zero; "elasticnet": ``l1_ratio`` of that and the rest of the
        first. Both are for losses with a temperature above 0.
    l1_ratio : float between 0 and 1
        Used by "elasticnet" alone.
    fit_intercept : bool
        Add a column of ones to the features. Its weights are penalised like all others (LIBLINEAR's ``-B 1``).
    class_weight : None, "balanced" or a mapping of labels to numbers >= 0
        What each row's weight is multiplied by; labels that are not named have 1. "balanced": the sum of all
        rows' weights over the number of labels times the sum of that label's.
    solver : str or Solver
        A name of `partwise.available_solvers()`; "auto" chooses; data so few that it takes no more than some
        milliseconds are fitted to rounding, with smooth losses.
    solver_options : dict, optional
        The named solver's own parameters.
    tol : float
        Stop at a duality gap of `tol` times the objective.
    max_seconds, max_passes : float, optional
        Stop there, with a `ConvergenceWarning`.
    n_jobs : int, optional
        Threads; None is 1, -1 all processors.
    random_state : int, RandomState, Generator or None
        Seed of the solvers that draw examples. By default it is fixed, so that the same data give the same weights;
        None: another one each time.
    verbose : int
        How much is logged.
    warm_start : bool
        Start `fit` where the last one ended, if it had the same labels and as many features; with a hinge loss, if
        it also had the same loss, solver and number of rows.
    callbacks : callable or list of callables, optional
        Called with a `Progress` after each epoch, see `partwise.callbacks`; an answer that is true stops the training.
        (`RegularizationPathCV` calls none.)

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) for two labels, else (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_features_in_ : int
    result_ : Result
        Objective, dual value, gap, history of the last `fit`.
    """

    def __init__(
        self,
        loss: Any = "log",
        C: float = 1.0,
        *,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        solver: Any = "auto",
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_seconds: float | None = None,
        max_passes: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Any = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_seconds = max_seconds
        self.max_passes = max_passes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.callbacks = callbacks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxentClassifier:
        """Train on rows `X` with labels `y`.

        A row of weight 0 is left out altogether: a label that only such rows have is not learnt.
        """
        with unchanged_on_failure(self):
            training = self._with_penalty(self._check_training())
            X, y = validate_data(self, own_sparse(X), y, accept_sparse="csr", dtype=np.float64, order="C")
            check_classification_targets(y)
            weight = check_sample_weight(sample_weight, X.shape[0], "sample")
            weight = with_class_weight(self.class_weight, y, weight)
            if weight is not None and not weight.all():
                keep = np.flatnonzero(weight)
                X, y, weight = X[keep], y[keep], weight[keep]
            classes, labels = np.unique(y, return_inverse=True)
            if classes.dtype.kind == "U":
                classes = string_array(
                    classes.tolist()
                )  # long ones, and predictions, would take as much as the longest
            if len(classes) < 2:
                raise ValueError(f"y holds one class only ({classes.tolist()[0]!r}): there is nothing to learn")

            structure = Multiclass(len(y), len(classes))
            rows = _rows(X, bool(self.fit_intercept))
            binary = len(classes) == 2
            result = self._train(
                replace(training, l2=2.0 * training.l2) if binary else training,
                (len(y), len(classes)),
                self._warm_weights(rows.n_attributes, classes),
                {"classes_": classes},
                features=training.classifier_map(structure, rows.table),
                structure=structure,
                gold=structure.encode(labels.astype(np.int64)),
                sample_weight=weight,
            )

            self.classes_ = classes
            self._set_weights(result)
        return self

    def _set_weights(self, result: Result) -> None:
        n_classes, n_features = len(self.classes_), int(self.n_features_in_)
        pairs = result.weights.reshape(-1, padded_width(n_classes))[:, :n_classes].T
        if n_classes == 2:
            pairs = pairs[1:] - pairs[:1]
        self.coef_ = np.ascontiguousarray(pairs[:, :n_features])
        self.intercept_ = pairs[:, n_features].copy() if self.fit_intercept else np.zeros(len(pairs))
        self.result_ = result

    def _with_penalty(self, training: Training) -> Training:
        """Shares of the two penalties."""
        check_choice("penalty", self.penalty, ("l2", "l1", "elasticnet"))
        ratio = {"l2": 0.0, "l1": 1.0}.get(self.penalty)
        if ratio is None:
            check_positive("l1_ratio", self.l1_ratio, zero=True)
            if self.l1_ratio > 1:
                raise ValueError(f"l1_ratio must be at most 1, got {self.l1_ratio!r}")
            ratio = float(self.l1_ratio)
        if ratio and not (training.loss.smooth and training.loss.link == "identity"):
            raise ValueError(
                f"penalty={self.penalty!r} is not there for loss={training.loss.name!r}: take 'log', 'softmax-margin' "
                "or 'smoothed-hinge'"
            )
        return replace(training, l1=ratio * training.l2, l2=(1.0 - ratio) * training.l2)

    def _to_model(self) -> ModelParts:
        self._with_penalty(self._check_training())
        parts = start_model(self, "maxent")
        parts.arrays |= {**coefficient_arrays(self.coef_), "intercept_weights": self.intercept_}
        parts.settings["n_features"] = self.coef_.shape[1]
        if hasattr(self, "feature_names_in_"):
            parts.add("features", ModelParts("names", {}, encode_names(self.feature_names_in_.tolist())))
        return parts

    @classmethod
    def _from_model(cls, parts: ModelParts) -> MaxentClassifier:
        self: MaxentClassifier = make_estimator(cls, parts)
        self._with_penalty(self._check_training())
        n_rows = 1 if len(self.classes_) == 2 else len(self.classes_)
        self.coef_ = read_coefficients(parts, n_rows)
        self.intercept_ = np.array(parts.floats("intercept_weights", n_rows))
        self.n_features_in_ = self.coef_.shape[1]
        if parts.has("features"):
            names = decode_names(parts.part("features"))
            if len(names) != self.n_features_in_:
                raise ModelFormatError(f"names {len(names)} features and has weights for {self.n_features_in_}")
            self.feature_names_in_ = np.array(names, dtype=object)
        self.result_ = read_result(parts, self._all_weights())
        return self

    def _all_weights(self) -> Floats:
        """The fitted weights as a solver has them."""
        n_classes, n_features = len(self.classes_), self.coef_.shape[1]
        weights = np.zeros((n_features + bool(self.fit_intercept), padded_width(n_classes)))
        used: Any = slice(None)
        if np.count_nonzero(self.coef_) < self.coef_.size / 8:
            used = np.flatnonzero(self.coef_.any(axis=0))  # zeros that nobody writes take no memory
        weights[:n_features][used, :n_classes] = _both_sides(self.coef_[:, used], n_classes).T
        if self.fit_intercept:
            weights[n_features, :n_classes] = _both_sides(self.intercept_[:, np.newaxis], n_classes)[:, 0]
        return weights.ravel()

    def _warm_weights(self, n_attributes: int, classes: NDArray[Any]) -> Floats | None:
        """The fitted weights as a solver's start, or None where they do not fit."""
        if not self.warm_start or not hasattr(self, "coef_") or not np.array_equal(self.classes_, classes):
            return None
        return self._all_weights() if self.coef_.shape[1] + bool(self.fit_intercept) == n_attributes else None

    def top_features(self, n: int = 10) -> TopFeatures:
        """The n weights of the largest absolute values for every label.

        Two labels share one vector: each label has half of it, with opposite signs.
        """
        check_is_fitted(self)
        names = self._feature_names()
        ids = np.arange(self.coef_.shape[1], dtype=np.int64)
        return TopFeatures(
            {
                label: largest(names, ids, row, check_count("n", n))
                for label, row in zip(self.classes_.tolist(), self._label_weights()[0], strict=True)
            }
        )

    def explain(self, x: Any) -> Explanation:
        """Which features make the best label of a row better than the second-best one.

        Their amounts add up to the difference of the two scores.
        """
        check_is_fitted(self)
        row = own_sparse(x, "x") if sparse.issparse(x) else np.asarray(x)
        row = row if row.ndim == 2 else row.reshape(1, -1)
        if row.shape[0] != 1:
            raise ValueError(f"explain takes one row, got {row.shape[0]}")
        row = validate_data(self, row, accept_sparse="csr", dtype=np.float64, reset=False)
        values = row.toarray().ravel() if sparse.issparse(row) else row.ravel()
        weights, intercepts = self._label_weights()
        scores = weights @ values + intercepts
        one, two = np.argsort(-scores, kind="stable")[:2].tolist()
        best, second = self.classes_[one], self.classes_[two]
        names, amounts = self._feature_names(), values * (weights[one] - weights[two])
        found = [
            Contribution("attribute", names(j), None, best, second, float(amounts[j]))
            for j in np.flatnonzero(amounts).tolist()
        ]
        bias = float(intercepts[one] - intercepts[two])
        found.append(Contribution("intercept", None, None, best, second, bias))
        return explanation(best, second, (float(scores[one]), float(scores[two])), found)

    def prune(
        self, threshold: float | None = None, *, keep: float | None = None, X: Any = None, y: Any = None
    ) -> Pruning:
        """Make small weights zero, intercepts excepted; files hold nonzero weights alone where most are zero.

        The parameters are those of `SequenceTagger.prune`.
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("give X and y, or neither")
        before = None if X is None else float(self.score(X, y))
        kept = choose_kept(self.coef_.ravel(), threshold, keep).reshape(self.coef_.shape)
        counts = (self.coef_.size, int(kept.sum()), float(np.abs(self.coef_[~kept]).max(initial=0.0)))
        self.coef_ = np.where(kept, self.coef_, 0.0)
        self.result_ = without_certificate(self.result_, self._all_weights(), counts)
        return Pruning(*counts, before, None if X is None else float(self.score(X, y)))

    def _feature_names(self) -> Any:
        return self.feature_names_in_.tolist().__getitem__ if hasattr(self, "feature_names_in_") else int

    def _label_weights(self) -> tuple[Floats, Floats]:
        """Weights and intercepts, one row a label; of two labels each has half of the difference."""
        if len(self.classes_) > 2:
            return self.coef_, self.intercept_
        signs = np.array([[-0.5], [0.5]])
        return signs * self.coef_, (signs * self.intercept_).ravel()

    def decision_function(self, X: Any) -> Floats:
        """Scores: shape (n,) for two labels (positive: the second), else (n, n_classes)."""
        return self._scores(self._validated(X))

    def _validated(self, X: Any) -> Any:
        check_is_fitted(self)
        if not sparse.issparse(X) or X.format != "csr":  # whose indices only `csr_product` follows, looking at each
            X = own_sparse(X)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)

    def _scores(self, X: Any) -> Floats:
        scores = row_products(X, self.coef_, count_jobs(self.n_jobs)) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The best label of each row."""
        X = self._validated(X)
        # Some rows at a time: all scores of many rows and labels would take far more memory than either.
        some = max(1, MOST_SCORES // len(self.classes_))
        parts: Any = [X]
        if X.shape[0] > some:
            rows = own_sparse(X)  # slices of it follow indices too
            parts = (rows[k : k + some] for k in range(0, rows.shape[0], some))
        scores = map(self._scores, parts)
        best = [(each > 0).astype(np.intp) if each.ndim == 1 else each.argmax(axis=1) for each in scores]
        predicted: NDArray[Any] = self.classes_[np.concatenate(best)]
        return predicted

    @needs_probabilities
    def predict_log_proba(self, X: Any) -> Floats:
        """Log-probabilities, shape (n, n_classes). Not there with hinge losses."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        out: Floats = log_softmax(scores / get_loss(self.loss).temperature, axis=1)
        return out

    @needs_probabilities
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities, shape (n, n_classes). Not there with hinge losses."""
        out: Floats = np.exp(self.predict_log_proba(X))
        return out


def _both_sides(rows: Floats, n_classes: int) -> Floats:
    """Weights of every label: two labels have one row of differences, of which each has half."""
    return rows if n_classes > 2 else np.concatenate([-0.5 * rows, 0.5 * rows])


def _rows(X: Any, intercept: bool) -> Rows:
    """The feature matrix, with its column of ones, as rows of examples."""
    table: Any = X
    if sparse.issparse(X):
        matrix = sparse.csr_array(X)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        table = csr_attributes(matrix)
    rows = Rows(np.ones(X.shape[0], dtype=np.int64), int(X.shape[1]), table).compact()
    return rows.with_ones() if intercept else rows
