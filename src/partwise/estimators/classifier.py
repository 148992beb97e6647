"""Maximum-entropy classification: one label per example."""

from collections.abc import Hashable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from partwise.estimators.base import CheckpointFile, StructuredEstimator, needs_probabilities, unchanged_on_failure
from partwise.estimators.parameters import ClassWeight, Cost
from partwise.features.rows import own_sparse
from partwise.models.base import Ability, Training
from partwise.models.classes.features import as_items, could_be_items
from partwise.models.classes.model import ClassesModel
from partwise.models.inspection import Explanation
from partwise.models.labels import check_table
from partwise.problem.losses import get_loss
from partwise.support.arrays import Floats
from partwise.support.checks import check_finite_weights, check_sums, count_jobs

#: Rows as users give them: an array, a sparse matrix, a data frame, a list of dicts or of lists of strings.
Table = Any


@dataclass(eq=False, repr=False)
class MaxentClassifier(ClassifierMixin, StructuredEstimator[ClassesModel]):
    """Linear classifier: multinomial logistic regression, or a max-margin classifier with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)``. With the log loss this is scikit-learn's
    ``LogisticRegression`` with the same `C`, for two labels and for more.

    Two labels share one weight vector, on the second label's side; two vectors under this penalty would describe the
    same distributions at half the penalty. `top_features` gives each label half of the vector, with opposite signs.

    `X` is a matrix of numbers (NumPy, SciPy sparse, a data frame), one row per example, or a list of examples, each a
    list of attribute names or a dict, as the positions of `SequenceTagger`. Predictions ignore unknown attributes.

    Predictions take the constraint `allowed`: for each row None, or a collection of the labels it may have.

    Parameters
    ----------
    fit_intercept : bool
        Add a column of ones to the features.
    penalize_intercept : bool or None
        Whether its weights are penalised like all others (LIBLINEAR's ``-B 1``) or not at all (as in scikit-learn, and
        LIBLINEAR's ``-R``), for losses with a temperature above 0, by the solvers `lbfgs`, `newton`, `sdca` and
        `owlqn`. None: not at all where loss and solver allow it and there is no l1 term; elsewhere, and by
        `partial_fit` and on partitions, like all others, with a warning about columns that are far from 0.
    class_weight : None, "balanced" or a mapping of labels to numbers >= 0
        What each row's weight is multiplied by; labels that are not named have 1. "balanced": the sum of all
        rows' weights over the number of labels times the sum of that label's.
    min_count : int
        Rows that are dicts or lists of strings: leave out attributes that occur less often in the training data.
    solver : str or Solver
        A name of `partwise.available_solvers()`, or a solver; "auto" chooses; with smooth losses, tiny data sets that
        take at most a few milliseconds are fitted to rounding.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) for two labels, else (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        The columns of a data frame; predictions refuse others.
    """

    _: KW_ONLY
    fit_intercept: bool = True
    penalize_intercept: bool | None = None
    class_weight: ClassWeight = None
    min_count: int = 1
    cost: Cost = None

    _model_class: ClassVar = ClassesModel
    _input_forms: ClassVar = ("two_d_array", "sparse", "dict")
    _earlier: ClassVar = {"penalize_intercept": True}

    def fit(
        self,
        X: Table,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        feature_names: object = None,
        checkpoint: CheckpointFile = None,
    ) -> Self:
        """Train on rows `X` with labels `y`, as `StructuredEstimator.fit` does.

        feature_names : list of str or fitted transformer, optional
            Names of the columns, as for `set_feature_names`.
        """
        with unchanged_on_failure(self):
            if feature_names is not None and hasattr(X, "shape") and len(X.shape) == 2:
                _feature_names(feature_names, int(X.shape[1]))  # before the work
            super().fit(X, y, sample_weight, checkpoint=checkpoint)
            if feature_names is not None:
                self.set_feature_names(feature_names)
        return self

    def set_feature_names(self, names: object) -> Self:
        """Set the names of columns in `top_features`, `explain`, reports and model files.

        For matrices without names; in a pipeline, ``pipeline[-1].set_feature_names(pipeline[:-1])``.

        names : list of str, fitted transformer or None
            One name per column; of a transformer, `get_feature_names_out()`. None: a data frame's names, or numbers.
        """
        check_is_fitted(self)
        if names is not None:
            if self._model.reader is not None:
                raise ValueError("set_feature_names: the attributes of dicts and lists of strings have their names")
            names = _feature_names(names, int(self._model.coef.shape[1]))
        self._model = self._model.with_options(given_names=names)
        return self

    @property
    def takes_items_(self) -> bool:
        """Whether rows are dicts or lists of strings."""
        return self._fitted().reader is not None

    @property
    def attributes_(self) -> list[str] | None:
        """Names of features, in the order of the columns of `coef_`; None if features have only numbers."""
        return self._fitted().column_names()

    def _check_training(self) -> Training:
        training = super()._check_training()
        if self.fit_intercept and self.penalize_intercept in (False, 0) and not training.loss.smooth:
            raise ValueError(
                f"penalize_intercept=False is not available with loss={training.loss.name!r}, which has no "
                "temperature: use 'log', 'softmax-margin' or 'smoothed-hinge'"
            )
        return training

    def _check_data(self, model: ClassesModel, X: Table, y: object) -> tuple[Table, object]:
        items = as_items(X)
        check_table(X if items is None else items, y)
        if items is not None:
            return items, _checked_labels(items, y)
        X, y = _validated(self, X, y, reset=True)
        check_classification_targets(y)
        model.names = self._column_names()
        return X, y

    def _check_more(self, X: Table, y: object) -> tuple[Table, object]:
        self._make_model().needs(Ability.PARTIAL_FIT, "partial_fit")  # `set_params` may have followed `fit`
        X = self._check_input(X)
        return X, _checked_labels(X, y)

    def _column_names(self) -> list[str] | None:
        return self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None

    def _fitted(self) -> ClassesModel:
        """Return the fitted model with the current names of columns."""
        model, names = super()._fitted(), self._column_names()
        return model if names == model.names else model.with_options(names=names)

    def _check_input(self, X: Table) -> Table:
        if self._model.reader is None:
            if as_items(X) is not None:
                raise ValueError("X: rows are dicts or lists of strings, those of fit were rows of a matrix")
            return _validated(self, X, reset=False)
        items = could_be_items(X)
        if items is None:
            of = f" of {type(X[0]).__name__}" if isinstance(X, (list, tuple)) and len(X) else ""
            raise ValueError(f"X: rows must be dicts or lists of strings, as in fit, got {type(X).__name__}{of}")
        return items

    @property
    def coef_(self) -> Floats:
        """Weights: (1, n_features) for two labels, else (n_classes, n_features)."""
        check_is_fitted(self)
        return self._model.coef

    @coef_.setter
    def coef_(self, coef: Floats) -> None:
        check_finite_weights("coef_", coef)
        self._model = self._model.with_coef(coef, self._model.intercept)

    @property
    def intercept_(self) -> Floats:
        """Weights of the column of ones."""
        check_is_fitted(self)
        return self._model.intercept

    @intercept_.setter
    def intercept_(self, intercept: Floats) -> None:
        self._model = self._model.with_coef(self._model.coef, intercept)

    def decision_function(self, X: Table) -> Floats:
        """Return scores: shape (n,) for two labels (positive for the second), else (n, n_classes)."""
        check_is_fitted(self)
        return self._model.scores(self._model.rows(self._check_input(X)).matrix, count_jobs(self.n_jobs))

    @needs_probabilities
    def predict_log_proba(self, X: Table) -> Floats:
        """Return log-probabilities, shape (n, n_classes). Not available with hinge losses."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        out: Floats = log_softmax(scores / get_loss(self.loss).temperature, axis=1)
        check_sums(out.max(axis=1, initial=-np.inf))
        return out

    @needs_probabilities
    def predict_proba(self, X: Table) -> Floats:
        """Return probabilities, shape (n, n_classes). Not available with hinge losses."""
        return cast(Floats, np.exp(self.predict_log_proba(X)))

    def explain(self, x: Table, *, label: object = None, against: object = None) -> Explanation:
        """Return the features that make the best label of a row better than the second-best one.

        Their amounts add up to the difference of the two scores. x: a row, a dict or a list of strings. label, against:
        the label to explain in place of the best one, and to compare it with in place of the best other one.
        """
        return cast(Explanation, self._explain(_one_row(x), label, against))


def _one_row(x: Table) -> Table:
    """Return one example as a table of one row."""
    if isinstance(x, (dict, set, frozenset)) or as_items([x]) is not None:
        return [x]
    if hasattr(x, "to_frame") and hasattr(x, "index") and not hasattr(x, "columns"):  # a row of a data frame
        x = x.to_frame().T
    elif not hasattr(x, "columns"):
        x = own_sparse(x, "x") if sparse.issparse(x) else np.asarray(x)
        x = x if x.ndim == 2 else x.reshape(1, -1)
    if x.shape[0] != 1:
        raise ValueError(f"explain takes one row, got {x.shape[0]}")
    return x


def _validated(estimator: MaxentClassifier, X: Table, *y: object, reset: bool) -> Table:
    """Return numbers in rows (and labels), checked by scikit-learn's `validate_data`; errors name the bad cell."""
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(each, str) for each in X):
        raise ValueError(
            "X is a list of strings: each row must be a list of attribute names, such as text.split(), a dict, or a "
            "row of a vectorizer's matrix"
        )
    # Only `row_products` uses the CSR rows of predictions, and checks each index.
    X = X if not reset and sparse.issparse(X) and X.format == "csr" else own_sparse(X)
    options = {"order": "C"} if reset else {}
    dtype = np.float64 if sparse.issparse(X) else [np.float64, np.float32]  # dense float32 stays float32
    try:
        return validate_data(estimator, X, *y, accept_sparse="csr", reset=reset, dtype=dtype, **options)
    except (TypeError, ValueError) as error:
        place = _bad_cell(own_sparse(X))
        if place is None:
            raise
        raise type(error)(f"{error}\nX: {place}") from error


def _checked_labels(X: Table, given: object) -> NDArray[Any]:
    """Return labels, one per row, none missing."""
    y: NDArray[Any] = column_or_1d(given, warn=True)
    check_consistent_length(X, y)
    for row, label in enumerate(y.tolist()):
        if label is None or label != label:
            raise ValueError(f"y: row {row}: label missing ({label!r})")
    check_classification_targets(y)
    return y


def _feature_names(given: Table, n_features: int) -> list[str]:
    """Return names of columns, given as a list or by a fitted transformer."""
    names = given.get_feature_names_out() if hasattr(given, "get_feature_names_out") else given
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise ValueError(f"feature_names must be a list of strings or a fitted transformer, got {given!r}")
    for column, name in enumerate(names):
        if not isinstance(name, str):
            raise ValueError(f"feature_names: column {column}: a name must be a string, got {name!r}")
    if len(names) != n_features:
        raise ValueError(f"feature_names: {len(names)} names for {n_features} columns")
    return [str(name) for name in names]


def _bad_cell(X: Table) -> str | None:
    """Return the place of the first cell that is not a number or, without such cells, of the first that is infinite."""
    infinite = None
    for row, column, value in _suspect_cells(X):
        place = f"row {row}, column {column!r}: {value!r}"
        try:
            finite = np.isfinite(float(value))
        except (TypeError, ValueError):  # scikit-learn refuses these first
            return place
        infinite = infinite or (None if finite else place)
    return infinite


def _suspect_cells(X: Table) -> Iterator[tuple[int, Hashable, Any]]:
    """Give row, column and value of the infinite entries of a sparse matrix, or of the cells that may be invalid."""
    if sparse.issparse(X):
        table = X.tocoo()
        bad = np.flatnonzero(~np.isfinite(table.data)) if table.data.dtype.kind == "f" else np.arange(0)
        bad = bad[np.argsort(table.row[bad], kind="stable")]
        yield from zip(*(part[bad].tolist() for part in (table.row, table.col, table.data)), strict=True)
        return
    if hasattr(X, "columns"):
        columns = {name: np.asarray(X[name]) for name in X.columns}
    else:
        X = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
        columns = dict(enumerate(X.T if X.ndim == 2 else ()))
    for name, values in columns.items():
        if values.dtype.kind not in "biu":
            yield from ((row, name, value) for row, value in enumerate(values.tolist()))
