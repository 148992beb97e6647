"""A fitted tagger's weights by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.utils.validation import check_is_fitted

from partwise.estimators.chains import ChainModel
from partwise.estimators.common import check_count
from partwise.estimators.explaining import Explanation, Pruning, TopFeatures, without_certificate
from partwise.estimators.inputs import ColumnReader, Floats, Ints, Rows
from partwise.estimators.inspecting import explain_local_tags, explain_tags, prune_tagger, top_of_tagger
from partwise.estimators.kernel_chain import KernelChainModel
from partwise.estimators.local import LocalModel
from partwise.estimators.slots import labels_of
from partwise.estimators.warm import edge_names
from partwise.result import Result


class ReadableTagger:
    """What can be read off a tagger."""

    classes_: Any
    coef_: Floats
    beam_width: int | None
    _reader: Any
    _model: ChainModel | KernelChainModel | LocalModel
    result_: Result
    _read: Callable[[Any], tuple[Ints, Rows]]
    _prepare_rows: Callable[[Rows], tuple[Any, Any]]
    score: Callable[..., float]

    @property
    def attributes_(self) -> list[str] | None:
        """Attribute names, the most frequent first; None for arrays."""
        check_is_fitted(self)
        return None if isinstance(self._reader, ColumnReader) else self._reader.names()

    @property
    def unknown_rate_(self) -> float:
        """Share of the attributes in the last input that are not in the vocabulary; 0 for arrays."""
        unknown, total = self.unknown_counts_
        return unknown / total if total else 0.0

    @property
    def unknown_counts_(self) -> tuple[int, int]:
        """How many attributes of the last input are not in the vocabulary, and of how many; (0, 0) for arrays."""
        check_is_fitted(self)
        counts: tuple[int, int] = (0, 0) if isinstance(self._reader, ColumnReader) else self._reader.unknown
        return counts

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of (attribute, label) pairs; attributes are column numbers for arrays."""
        check_is_fitted(self)
        if isinstance(self._model, KernelChainModel):
            raise AttributeError("with a kernel there are no weights of attributes")
        names = self.attributes_ or range(self._model.n_attributes)
        classes = self.classes_.tolist()
        parts = (part.tolist() for part in self._model.node_features(self.coef_))
        return {(names[a], classes[b]): w for a, b, w in zip(*parts, strict=True)}

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """Weights of (label, next label) pairs; with `transition_features` also of (attribute, label, next label).

        model="maxent": of (label before, label) and (label two before, label before, label); None is before the
        sequence's beginning.
        """
        check_is_fitted(self)
        if isinstance(self._model, LocalModel):
            return self._model.named_history(self.coef_, self.classes_.tolist())
        model = self._model
        names: list[tuple[Any, ...]] = [()] if isinstance(model, KernelChainModel) else edge_names(self._reader, model)
        width = self._model.width
        classes = self.classes_.tolist()
        pairs = {a * width + b: (first, second) for a, first in enumerate(classes) for b, second in enumerate(classes)}
        parts = (part.tolist() for part in self._model.edge_features(self.coef_))
        return {(*names[e], *pairs[cell]): w for e, cell, w in zip(*parts, strict=True) if cell in pairs}

    @property
    def boundary_features_(self) -> dict[tuple[str, Any], float]:
        """Weights of ("begin", label) and ("end", label); empty unless `ends`."""
        check_is_fitted(self)
        if isinstance(self._model, LocalModel):
            return {}
        rows = self._model.split(self.coef_)[2].reshape(-1, self._model.width)
        found = zip(("begin", "end"), rows.tolist(), strict=False)
        return {(name, label): w for name, row in found for label, w in zip(self.classes_.tolist(), row, strict=False)}

    def top_features(self, n: int = 10) -> TopFeatures:
        """The n weights of the largest absolute values for every label and every pair of labels."""
        check_is_fitted(self)
        if isinstance(self._model, KernelChainModel):
            raise AttributeError("with a kernel there are no weights of attributes")
        return top_of_tagger(self._reader, self._model, self.coef_, self.classes_.tolist(), check_count("n", n))

    def explain(self, sequence: Any) -> Explanation:
        """Which features make the best labelling of a sequence better than the second-best one.

        Their amounts add up to the difference of the two scores. model="maxent": scores are log-probabilities, the
        labellings are those of `predict_k_best`, and besides features there are the local normalisers ("normaliser").
        """
        check_is_fitted(self)
        if isinstance(self._model, KernelChainModel):
            raise ValueError("with a kernel there are no weights of attributes to explain an answer by")
        lengths, rows = self._read([sequence])
        if not lengths[0]:
            raise ValueError("a sequence without positions has nothing to explain")
        structure, features = self._prepare_rows(rows)
        two = structure.k_best(0, features.scores(0, self.coef_), 2)
        answers = [(labels_of(slots, int(lengths[0]), structure.width), value) for value, slots, _ in two]
        if isinstance(self._model, LocalModel):
            return explain_local_tags(self._reader, self._model, self.coef_, self.classes_.tolist(), rows, answers)
        return explain_tags(self._reader, self._model, self.coef_, self.classes_.tolist(), rows, answers)

    def prune(
        self, threshold: float | None = None, *, keep: float | None = None, X: Any = None, y: Any = None
    ) -> Pruning:
        """Drop small weights, and attributes that have none left: a smaller model, a smaller file.

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
        if (X is None) != (y is None):
            raise ValueError("give X and y, or neither")
        before = None if X is None else float(self.score(X, y))
        reader, model, weights, counts = prune_tagger(self._reader, self._model, self.coef_, threshold, keep)
        self._reader, self._model, self.coef_ = reader, model, weights
        self.result_ = without_certificate(self.result_, weights, counts)
        return Pruning(*counts, before, None if X is None else float(self.score(X, y)))
