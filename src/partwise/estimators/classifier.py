"""Maximum-entropy classification: one label per example."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy import sparse
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from partwise.estimators.answers import needs_probabilities
from partwise.estimators.base import StructuredEstimator
from partwise.estimators.class_data import checked_labels, validated
from partwise.estimators.class_data import feature_names as given_names
from partwise.estimators.training import unchanged_on_failure
from partwise.features.sparse_inputs import own_sparse
from partwise.models.base import Ability, Model, Training
from partwise.models.classes.features import as_items, could_be_items
from partwise.models.classes.model import ClassesModel
from partwise.models.inspection import Explanation, TopFeatures
from partwise.models.labels import check_table
from partwise.problem.losses import get_loss
from partwise.solvers import Checkpoint
from partwise.support.arrays import Floats
from partwise.support.checks import check_count, check_finite_weights, check_sums, count_jobs


class MaxentClassifier(ClassifierMixin, StructuredEstimator):
    """Linear classifier: multinomial logistic regression, or a max-margin classifier with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)``. With the log loss this is scikit-learn's
    ``LogisticRegression`` with the same `C`, for two labels and for more.

    Two labels share one weight vector, on the second label's side; two vectors under this penalty would describe the
    same distributions at half the penalty.

    `X` is a matrix of numbers (NumPy, SciPy sparse, a data frame), one row per example, or a list of examples, each a
    list of attribute names (strings; a repeated name counts twice) or a dict: ``{"word": "the"}`` is the attribute
    "word=the", a number or a bool is the attribute's value, a list of strings or a nested dict is written out with the
    name as prefix. Attributes not seen in training are ignored at prediction.

    Predictions take the constraint `allowed`: for each row None, or a collection of the labels it may have.

    Parameters
    ----------
    loss : {"log", "softmax-margin", "hinge", "squared-hinge", "smoothed-hinge"} or Loss
        The hinge losses give no probabilities.
    C : float
        Inverse of the penalty's strength.
    penalty : {"l2", "l1", "elasticnet"}
        "l2": ``|w|^2 / (2 C)``; "l1": ``|w|_1 / C``, which makes weights zero; "elasticnet": `l1_ratio` times the
        penalty of "l1" plus 1 - `l1_ratio` times that of "l2". The last two are for losses with a temperature above 0.
    l1_ratio : float between 0 and 1
        Used by "elasticnet" only.
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
    cost : None, array, mapping or callable
        How bad it is to answer a label where another is right, for losses with costs; None: 1. An array of shape
        (n_labels, n_labels) in the order of `classes_`, a row per right label; a mapping of pairs (right label, label)
        to numbers, or of right labels to mappings of labels to numbers (pairs that are not named cost 1; a file of them
        is read by `partwise.io.read_costs`); or a function of the two. Costs are finite, not negative, and 0 for the
        right label.
    solver : str or Solver
        A name of `partwise.available_solvers()`; "auto" chooses; with smooth losses, tiny data sets that take at
        most a few milliseconds are fitted to rounding.
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
        Start `fit` from the weights of the last one, of the same labels and columns (there may be more of both), and
        from its dual point if the rows begin with those of the last one. With a hinge loss the dual point is the only
        start, for the same loss and solver.
    callbacks : callable or list of callables, optional
        Called with a `Progress` after each epoch, see `partwise.callbacks`; returning a true value stops training.
        (`RegularizationPathCV` calls none.)

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) for two labels, else (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        The columns of a data frame; predictions refuse others.
    takes_items_ : bool
        Whether rows are dicts or lists of strings.
    attributes_ : list of str or None
        What features are called: attributes, a data frame's columns, or the names of `set_feature_names`.
    unknown_rate_ : float
        Share of the attributes in the last input that are not known; dicts and lists of strings.
    result_ : Result
        Objective, dual value, gap, history of the last `fit`.
    """

    def __init__(
        self,
        loss: Any = "log",
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        penalize_intercept: bool | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        min_count: int = 1,
        cost: Any = None,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
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
        super().__init__(
            loss,
            C,
            penalty=penalty,
            l1_ratio=l1_ratio,
            solver=solver,
            solver_options=solver_options,
            tol=tol,
            max_seconds=max_seconds,
            max_passes=max_passes,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            callbacks=callbacks,
        )
        self.fit_intercept = fit_intercept
        self.penalize_intercept = penalize_intercept
        self.class_weight = class_weight
        self.min_count = min_count
        self.cost = cost

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.dict = True
        return tags

    _model: ClassesModel
    _earlier: ClassVar[dict[str, Any]] = {"penalize_intercept": True}
    __metadata_request__predict: ClassVar = dict.fromkeys(ClassesModel.constraints)  # for scikit-learn's routing

    def _make_model(self) -> ClassesModel:
        return ClassesModel(
            fit_intercept=self.fit_intercept,
            penalize_intercept=self.penalize_intercept,
            class_weight=self.class_weight,
            cost=self.cost,
            min_count=self.min_count,
        )

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        feature_names: Any = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
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
                given_names(feature_names, int(X.shape[1]))  # before the work
            super().fit(X, y, sample_weight, checkpoint=checkpoint)
            if feature_names is not None:
                self.set_feature_names(feature_names)
        return self

    def set_feature_names(self, names: Any) -> Self:
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
            names = given_names(names, int(self._model.coef.shape[1]))
        self._model = self._model.with_options(given_names=names)
        return self

    @property
    def takes_items_(self) -> bool:
        """Whether rows are dicts or lists of strings."""
        check_is_fitted(self)
        return self._fitted().reader is not None

    @property
    def attributes_(self) -> list[str] | None:
        """What the features are called, in the order of the columns of `coef_`; None where they have numbers alone."""
        check_is_fitted(self)
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

    def _check_data(self, model: Model, X: Any, y: Any) -> tuple[Any, Any]:
        items = as_items(X)
        check_table(X if items is None else items, y)
        if items is not None:
            return items, checked_labels(items, y)
        X, y = validated(self, X, y, reset=True)
        check_classification_targets(y)
        names = self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
        cast(ClassesModel, model).names = names
        return X, y

    def _check_more(self, X: Any, y: Any) -> tuple[Any, Any]:
        self._make_model().needs(Ability.FURTHER, "partial_fit")  # parameters may have been set since
        X = self._check_input(X)
        return X, checked_labels(X, y)

    def _fitted(self) -> ClassesModel:
        """With the names of columns as they are now."""
        model = cast(ClassesModel, super()._fitted())
        names = self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
        return model if names == model.names else model.with_options(names=names)

    def _check_input(self, X: Any) -> Any:
        if self._model.reader is None:
            if as_items(X) is not None:
                raise ValueError("X: rows are dicts or lists of strings, those of fit were rows of a matrix")
            return validated(self, X, reset=False)
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

    def decision_function(self, X: Any) -> Floats:
        """Scores: shape (n,) for two labels (positive: the second), else (n, n_classes)."""
        check_is_fitted(self)
        rows = self._model.rows(self._check_input(X))
        return self._model.scores(rows.matrix, count_jobs(self.n_jobs))

    @needs_probabilities
    def predict_log_proba(self, X: Any) -> Floats:
        """Log-probabilities, shape (n, n_classes). Not available with hinge losses."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        out: Floats = log_softmax(scores / get_loss(self.loss).temperature, axis=1)
        check_sums(out.max(axis=1, initial=-np.inf))
        return out

    @needs_probabilities
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities, shape (n, n_classes). Not available with hinge losses."""
        out: Floats = np.exp(self.predict_log_proba(X))
        return out

    def top_features(self, n: int = 10) -> TopFeatures:
        """The n weights of the largest absolute values for every label.

        Two labels share one vector: each label has half of it, with opposite signs.
        """
        found: TopFeatures = super().top_features(check_count("n", n))
        return found

    def explain(self, x: Any, *, label: Any = None, against: Any = None) -> Explanation:
        """Which features make the best label of a row better than the second-best one.

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


def _one_row(x: Any) -> Any:
    """One example as a table of one row."""
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
