"""Maximum-entropy classification: one label per example."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import log_softmax
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

if TYPE_CHECKING:

    class ClassifierMixin:
        """scikit-learn's class, which has no types."""

else:
    from sklearn.base import ClassifierMixin

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
    list of attribute names (strings; a repeated name counts twice) or a dict: ``{"word": "the"}`` is the attribute
    "word=the", a number or a bool is the attribute's value, a list of strings or a nested dict is written out with the
    name as prefix. Attributes not seen in training are ignored at prediction.

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
        """Train on rows `X` with labels `y`; `sample_weight` is one weight per row.

        A row of weight 0 is left out altogether: nothing is learnt from it. `X` may be a partition
        (`partwise.out_of_core.partitions.open`), which has its labels and weights: training data in files.

        feature_names : list of str or fitted transformer, optional
            What the columns are called, as for `set_feature_names`.
        checkpoint : path or `partwise.solvers.Checkpoint`
            A file for the state of the run, saved from time to time and at the end. If it exists, the run continues
            from it and ends with the same bits as one that was not interrupted.
        """
        with unchanged_on_failure(self):
            if feature_names is not None and hasattr(X, "shape") and len(X.shape) == 2:
                _feature_names(feature_names, int(X.shape[1]))  # before the work
            super().fit(X, y, sample_weight, checkpoint=checkpoint)
            if feature_names is not None:
                self.set_feature_names(feature_names)
        return self

    def set_feature_names(self, names: object) -> Self:
        """Call the columns by these names in `top_features`, `explain`, reports and model files.

        A data frame's columns, and the attributes of dicts and lists of strings, have names of their own. Other
        matrices have what is said here: in a pipeline, ``pipeline[-1].set_feature_names(pipeline[:-1])``.

        Parameters
        ----------
        names : list of str, fitted transformer or None
            One name per column; a transformer's `get_feature_names_out` tells them. None: their own, or numbers.
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
        """What the features are called, in the order of the columns of `coef_`; None where they have numbers alone."""
        return self._fitted().column_names()

    def _check_training(self) -> Training:
        training = super()._check_training()
        free = self.penalize_intercept is not None and not self.penalize_intercept
        if self.fit_intercept and free and not training.loss.smooth:
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
        self._make_model().needs(Ability.PARTIAL_FIT, "partial_fit")  # parameters may have been set since
        X = self._check_input(X)
        return X, _checked_labels(X, y)

    def _column_names(self) -> list[str] | None:
        return self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None

    def _fitted(self) -> ClassesModel:
        """Return the fitted model with the names of columns as they are now."""
        model, names = super()._fitted(), self._column_names()
        return model if names == model.names else model.with_options(names=names)

    def _check_input(self, X: Table) -> Table:
        if self._model.reader is None:
            if as_items(X) is not None:
                raise ValueError("X: rows are dicts or lists of strings, those of fit were rows of a matrix")
            return _validated(self, X, reset=False)
        items = could_be_items(X)
        if items is None:
            raise ValueError(
                f"X: rows must be dicts or lists of strings, as in fit, got {type(X).__name__}"
                + (f" of {type(X[0]).__name__}" if isinstance(X, (list, tuple)) and len(X) else "")
            )
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
        """Return scores: shape (n,) for two labels (positive: the second), else (n, n_classes)."""
        check_is_fitted(self)
        rows = self._model.rows(self._check_input(X))
        return self._model.scores(rows.matrix, count_jobs(self.n_jobs))

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
        out: Floats = np.exp(self.predict_log_proba(X))
        return out

    def explain(self, x: Table, *, label: object = None, against: object = None) -> Explanation:
        """Return the features that make the best label of a row better than the second-best one.

        Their amounts add up to the difference of the two scores.

        Parameters
        ----------
        x : a row, a dict or a list of strings
        label : optional
            A label in place of the best one.
        against : optional
            The label to compare it with in place of the best other one.
        """
        check_is_fitted(self)
        found: Explanation = self._explain(_one_row(x), label, against)
        return found


def _one_row(x: Table) -> Table:
    """Return one example as a table of one row."""
    if isinstance(x, (dict, set, frozenset)) or as_items([x]) is not None:
        return [x]
    if hasattr(x, "columns"):  # a data frame
        row = x
    elif hasattr(x, "to_frame") and hasattr(x, "index"):  # a row of one
        row = x.to_frame().T
    else:
        row = own_sparse(x, "x") if sparse.issparse(x) else np.asarray(x)
        row = row if row.ndim == 2 else row.reshape(1, -1)
    if row.shape[0] != 1:
        raise ValueError(f"explain takes one row, got {row.shape[0]}")
    return row


def _validated(estimator: MaxentClassifier, X: Table, *y: object, reset: bool) -> Table:
    """Return what scikit-learn's `validate_data` makes of numbers in rows (and labels); errors name the bad cell."""
    if isinstance(X, (list, tuple)) and len(X) and all(isinstance(each, str) for each in X):
        raise ValueError(
            "X is a list of strings: each row must be a list of attribute names, such as text.split(), a dict, or a "
            "row of a vectorizer's matrix"
        )
    # CSR rows to predict for are followed by `row_products` alone, which looks at each index
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
    """Return labels, of which there are as many as rows and none is missing."""
    y: NDArray[Any] = column_or_1d(given, warn=True)
    check_consistent_length(X, y)
    missing = [i for i, label in enumerate(y.tolist()) if label is None or label != label]
    if missing:
        raise ValueError(f"y: row {missing[0]}: label missing ({y.tolist()[missing[0]]!r})")
    check_classification_targets(y)
    return y


def _feature_names(given: Table, n_features: int) -> list[str]:
    """Return names of columns: a sequence of strings, or what a fitted transformer says that its columns are."""
    found = given.get_feature_names_out() if hasattr(given, "get_feature_names_out") else given
    if isinstance(found, str) or not hasattr(found, "__len__"):
        raise ValueError(f"feature_names must be a list of strings or a fitted transformer, got {given!r}")
    names = list(found)
    for column, name in enumerate(names):
        if not isinstance(name, str):
            raise ValueError(f"feature_names: column {column}: a name must be a string, got {name!r}")
    if len(names) != n_features:
        raise ValueError(f"feature_names: {len(names)} names for {n_features} columns")
    return [str(name) for name in names]


def _bad_cell(X: Table) -> str | None:
    """Return where X holds what is not a number or, if there is no such cell, what is not finite; None if nowhere."""
    if sparse.issparse(X):
        return _bad_entry(X)
    columns = getattr(X, "columns", None)
    if columns is not None:
        names, parts = list(columns), [X[name] for name in columns]
    else:
        array = np.asarray(X, dtype=object) if not isinstance(X, np.ndarray) else X
        if array.ndim != 2:
            return None
        names, parts = list(range(array.shape[1])), list(array.T)
    infinite = None
    for name, part in zip(names, parts, strict=True):
        values = np.asarray(part)
        if values.dtype.kind in "biu":
            continue
        for row, value in enumerate(values.tolist()):
            try:
                finite = np.isfinite(float(value))
            except (TypeError, ValueError):
                # scikit-learn turns cells into numbers before it looks whether they are finite
                return f"row {row}, column {name!r}: {value!r}"
            if infinite is None and not finite:
                infinite = f"row {row}, column {name!r}: {value!r}"
    return infinite


def _bad_entry(X: Table) -> str | None:
    table = X.tocoo()
    if table.data.dtype.kind not in "biuf":
        return None
    bad = np.flatnonzero(~np.isfinite(table.data))
    if not len(bad):
        return None
    first = bad[np.argmin(table.row[bad])]
    return f"row {table.row[first]}, column {table.col[first]}: {float(table.data[first])!r}"
