"""The estimator of all models: training, answers, inspection and files, written once.

A subclass is parameters, documentation and the choice of a model (`_make_model`).
"""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from partwise.estimators.incremental import IncrementalEstimator
from partwise.estimators.training import LastInput
from partwise.models.base import Ability
from partwise.models.inspection import Pruning, without_certificate
from partwise.problem.result import Result
from partwise.support.arrays import Floats
from partwise.support.checks import check_finite_weights


class StructuredEstimator(IncrementalEstimator):
    """Base of the estimators.

    `_make_model` is what a subclass has to write; its `__init__` lists its own parameters and may take the others as
    ``**training``. Constraints of predictions (`allowed`, ...) are those that the model knows; if they leave an example
    no answer, that is a `ConstraintError`.
    """

    @property
    def coef_(self) -> Floats:
        """All weights."""
        check_is_fitted(self)
        return self._model.weights

    @coef_.setter
    def coef_(self, weights: Floats) -> None:
        check_finite_weights("coef_", weights)
        self._model = copy.copy(self._model)
        self._model._weights = weights

    def explain(self, x: Any, *args: Any, **place: Any) -> Any:
        """Why the answer for one example is what it is."""
        return self._explain([x], *args, **place)

    def _explain(self, X: Any, *args: Any, **place: Any) -> Any:
        """Why the answer for the only example of X is what it is, at a place if answers have some."""
        check_is_fitted(self)
        self._model.needs(Ability.EXPLANATIONS, "explanations")
        model, reading, _ = self._read(X)
        return model.explain(reading, *args, **place)

    def top_features(self, *args: Any, **options: Any) -> Any:
        """The n weights of the largest absolute values under each heading; n is 10 unless it is given."""
        model = self._fitted()
        model.needs(Ability.TOP_FEATURES, "names of weights")
        return model.top_features(*args, **options)

    def prune(
        self, threshold: float | None = None, *, keep: float | None = None, X: Any = None, y: Any = None
    ) -> Pruning:
        """Drop small weights, and features that have none left: a smaller model, a smaller file.

        The certificate is lost: it was about the weights before.

        Parameters
        ----------
        threshold : float, optional
            Drop weights of an absolute value up to this.
        keep : int or float, optional
            Keep this many weights (int) or this share of them (float), the largest.
        X, y : optional
            Data to score the model on, before and after.
        """
        check_is_fitted(self)
        self._model.needs(Ability.PRUNING, "pruning")
        if (X is None) != (y is None):
            raise ValueError("give X and y, or neither")
        before = None if X is None else float(self.score(X, y))
        model, counts = self._model.pruned(threshold, keep)
        self._adopt(model, without_certificate(self.result_, model.weights, counts))
        return Pruning(*counts, before, None if X is None else float(self.score(X, y)))

    # files

    def save(self, path: str | os.PathLike[str], dtype: str = "float64", format: str = "partwise") -> None:
        """Write the fitted model to a file, from which `partwise.load` reads it.

        Parameters
        ----------
        path : path
            Customarily ending in ``.pw``. An existing file is replaced in one step, or left as it was.
        dtype : {"float64", "float32"}
            How weights are stored; float32 rounds them, for a file of about half the size.
        format : {"partwise", "crfsuite"}
            "crfsuite": a file that CRFsuite and python-crfsuite read, for `SequenceTagger` over named attributes
            without weights for ends or for pairs of an attribute and a transition. `partwise.load` reads it too.

        Raises
        ------
        ValueError
            If labels or parameters are of a kind that no file can hold: strings, ints, bools, floats and tuples can be.
        """
        check_is_fitted(self)
        self._model.needs(Ability.FILES, "model files")
        from partwise.model_files import save

        self._check_settings()
        self._make_model()  # parameters that were set since `fit` must make a model too
        save(self, path, dtype, format)

    def __getstate__(self) -> dict[str, Any]:
        """A pickle has no dual points: they are as large as the training data and of use for warm starts alone."""
        state: dict[str, Any] = super().__getstate__().copy()
        if "result_" in state:
            state["_last"] = LastInput()
        results = {name: value for name, value in state.items() if isinstance(value, Result)}
        return state | {name: replace(result, dual_point=None) for name, result in results.items()}
