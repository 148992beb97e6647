"""What a fitted tagger answers: labels, marginals, k best labellings, scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partwise._core import Chain, LinearMap, all_scores, decode, infer
from partwise.estimators.chains import ChainModel
from partwise.estimators.common import (
    check_choice,
    check_count,
    check_sample_weight,
    count_jobs,
    has_probabilities,
    needs_probabilities,
)
from partwise.estimators.constraints import set_masks
from partwise.estimators.inputs import Floats, Ints, Rows, Sequences, input_form
from partwise.estimators.kernel_chain import KernelChainModel
from partwise.estimators.labels import encode_labels, flatten_labels, label_lists
from partwise.estimators.local import LocalModel
from partwise.estimators.slots import label_rows, labels_of
from partwise.estimators.templates import TemplateReader, TextSequences
from partwise.losses import get_loss


class PredictingTagger:
    """Predictions of a tagger."""

    loss: Any
    beam_width: int | None
    n_jobs: int | None
    classes_: Any
    coef_: Floats
    _reader: Any
    _model: ChainModel | KernelChainModel | LocalModel

    def _prepare(self, X: Any) -> tuple[Ints, Chain, LinearMap]:
        """Lengths of all sequences, and the structure and features of those that have positions."""
        lengths, rows = self._read(X)
        model = self._chain()
        structure = model.structure(rows.lengths)
        return lengths, structure, model.features(rows, structure, once=True)

    def _read(self, X: Any) -> tuple[Ints, Rows]:
        """Lengths of all sequences, and the rows of those that have positions."""
        check_is_fitted(self)
        if isinstance(self._reader, TemplateReader):
            text = TextSequences.of(X)
            lengths, rows = text.lengths(), self._reader.read(text, n_jobs=count_jobs(self.n_jobs))
        else:
            sequences = Sequences.of(X)
            lengths = sequences.lengths()
            if input_form(sequences) not in (*self._reader.forms, "none"):
                raise ValueError(f"X: sequences must be {self._reader.expected}, as in fit")
            rows = self._reader.read(sequences)
        return lengths, Rows(lengths[lengths > 0], rows.n_attributes, rows.table)

    def _chain(self) -> ChainModel | KernelChainModel:
        if isinstance(self._model, LocalModel):
            raise ValueError("this is not there for model='maxent', whose positions are classified one after another")
        return self._model

    def predict(self, X: Any, *, allowed: Any = None, allowed_transitions: Any = None) -> list[list[Any]]:
        """The best label sequence of each sequence.

        Parameters
        ----------
        X : list of sequences
        allowed : list, optional
            For each sequence None (no constraint), a boolean array of shape (length, n_labels) in the order of
            `classes_`, or a list with None or the allowed labels of each position.
        allowed_transitions : boolean array of shape (n_labels, n_labels), optional
            Which labels (columns) may follow which (rows).
        """
        check_is_fitted(self)
        if isinstance(self._model, LocalModel):
            return self._predict_locally(self._model, X, (allowed, allowed_transitions))
        lengths, structure, features = self._prepare(X)
        set_masks(structure, lengths, self.classes_, allowed, allowed_transitions)
        best = structure.decode(*decode(structure, features, self.coef_, count_jobs(self.n_jobs))[:3])
        return label_lists(best, self.classes_, lengths)

    def _predict_locally(self, model: LocalModel, X: Any, constraints: tuple[Any, ...]) -> list[list[Any]]:
        if any(constraint is not None for constraint in constraints):
            raise ValueError("constraints are not there for model='maxent'")
        lengths, rows = self._read(X)
        return label_lists(model.decode(rows, self.coef_, self.beam_width), self.classes_, lengths)

    def predict_single(self, sequence: Any) -> list[Any]:
        """The best labels of one sequence."""
        return self.predict([sequence])[0]

    @needs_probabilities
    def predict_marginals(
        self, X: Any, *, output: str = "dict", allowed: Any = None, allowed_transitions: Any = None
    ) -> list[Any]:
        """Probability of each label at each position. Not there with hinge losses.

        output : {"dict", "array"}
            A list of dicts {label: probability} a sequence, or an array of shape (length, n_labels) a sequence.
        allowed, allowed_transitions
            As for `predict`: probabilities given that the constraints hold.
        """
        check_choice("output", output, ("dict", "array"))
        lengths, structure, features = self._prepare(X)
        set_masks(structure, lengths, self.classes_, allowed, allowed_transitions)
        marginals = infer(structure, features, self.coef_, get_loss(self.loss).temperature, count_jobs(self.n_jobs))[0]
        arrays = label_rows(structure, lengths, marginals)
        if output == "array":
            return arrays
        labels = self.classes_.tolist()
        return [[dict(zip(labels, row, strict=True)) for row in array.tolist()] for array in arrays]

    @needs_probabilities
    def predict_marginals_single(self, sequence: Any, *, output: str = "dict") -> Any:
        """Marginals of one sequence."""
        return self.predict_marginals([sequence], output=output)[0]

    def predict_k_best(
        self, X: Any, k: int, *, probabilities: bool = False, allowed: Any = None, allowed_transitions: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """For each sequence its k best labellings (fewer if it has fewer) with their scores, best first.

        Scores are sums of weights: with the log loss, differences of scores are differences of log-probabilities.

        probabilities : bool
            Probabilities of the labellings instead of scores. Not there with hinge losses.
        allowed, allowed_transitions
            As for `predict`: the best labellings that the constraints allow.
        """
        if probabilities:
            has_probabilities(self)
        k = check_count("k", k)
        lengths, structure, features = self._prepare(X)
        set_masks(structure, lengths, self.classes_, allowed, allowed_transitions)
        found: list[list[tuple[list[Any], float]]] = []
        i = 0
        for length in lengths.tolist():
            if length == 0:
                found.append([([], float(probabilities))])
                continue
            scores = features.scores(i, self.coef_)
            best = structure.k_best(i, scores, k)
            labels = [self.classes_[labels_of(slots, length, structure.width)].tolist() for _, slots, _ in best]
            values = [value for value, _, _ in best]
            if probabilities:
                t = get_loss(self.loss).temperature
                values = np.exp(np.subtract(values, structure.log_partition(i, scores, t)[0]) / t).clip(0, 1).tolist()
            found.append(list(zip(labels, values, strict=True)))
            i += 1
        return found

    def decision_function(self, X: Any) -> list[Floats]:
        """Scores of labels at positions before transitions: an array of shape (length, n_labels) a sequence."""
        check_is_fitted(self)
        if isinstance(self._model, LocalModel):
            lengths, rows = self._read(X)
            return np.split(self._model.position_scores(rows, self.coef_), np.cumsum(lengths)[:-1])
        lengths, structure, features = self._prepare(X)
        return label_rows(structure, lengths, all_scores(structure, features, self.coef_, count_jobs(self.n_jobs)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of positions labelled as in `y`; `sample_weight` is one weight a sequence.

        Labels that were not in the training data count as errors.
        """
        predicted = self.predict(X)
        targets, guesses = Sequences.of(y, "y"), Sequences.of(predicted)
        lengths = guesses.lengths()
        truth = encode_labels(flatten_labels(targets, guesses, lengths), self.classes_)
        weight = check_sample_weight(sample_weight, len(lengths))
        each = np.repeat(np.ones(len(lengths)) if weight is None else weight, lengths)
        if not each.any():
            raise ValueError("there is no position to score")
        right = truth == encode_labels([label for labels in predicted for label in labels], self.classes_)
        return float(np.average(right, weights=each))
