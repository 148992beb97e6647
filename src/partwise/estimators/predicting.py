"""What a fitted tagger answers: labels, marginals, k best labellings, scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partwise._core import Chain, HistoryChain, LinearMap, all_scores, decode, infer, labelling_values
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
from partwise.estimators.local import LocalModel, check_beam_width
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

    def _prepare(
        self, X: Any, allowed: Any = None, allowed_transitions: Any = None
    ) -> tuple[Ints, Chain | HistoryChain, LinearMap]:
        """Lengths of all sequences, and the structure and features of those that have positions."""
        lengths, rows = self._read(X)
        structure, features = self._prepare_rows(rows)
        set_masks(structure, lengths, self.classes_, allowed, allowed_transitions)
        return lengths, structure, features

    def _prepare_rows(self, rows: Rows) -> tuple[Chain | HistoryChain, LinearMap]:
        if isinstance(self._model, LocalModel):
            check_beam_width(self.beam_width)
            sequences = self._model.sequences(rows.lengths, self.coef_, self.beam_width)
            return sequences, self._model.features(rows, sequences)
        structure = self._model.structure(rows.lengths)
        return structure, self._model.features(rows, structure, once=True)

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
        lengths, structure, features = self._prepare(X, allowed, allowed_transitions)
        best = structure.decode(*decode(structure, features, self.coef_, count_jobs(self.n_jobs))[:3])
        return label_lists(best, self.classes_, lengths)

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
        lengths, structure, features = self._prepare(X, allowed, allowed_transitions)
        temperature = get_loss(self.loss).temperature
        marginals = infer(structure, features, self.coef_, temperature, count_jobs(self.n_jobs), entropies=False)[0]
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
        model="maxent": scores are log-probabilities, and the labellings are the best that a beam of `beam_width`
        histories, or of k if that is more, finds; with ``beam_width=None`` the best of all.

        probabilities : bool
            Probabilities of the labellings instead of scores. Not there with hinge losses.
        allowed, allowed_transitions
            As for `predict`: the best labellings that the constraints allow.
        """
        if probabilities:
            has_probabilities(self)
        k = check_count("k", k)
        lengths, structure, features = self._prepare(X, allowed, allowed_transitions)
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

    @needs_probabilities
    def log_probability(self, X: Any, y: Any) -> Floats:
        """Log-probability of each label sequence in `y`: an array of shape (n_sequences,). Not there with hinge losses.

        It is -inf for a sequence with a label that was not in the training data, and 0 for one without positions.
        """
        lengths, structure, features = self._prepare(X)
        labels = encode_labels(flatten_labels(Sequences.of(y, "y"), lengths), self.classes_)
        temperature, n_jobs = get_loss(self.loss).temperature, count_jobs(self.n_jobs)
        given = structure.encode(np.maximum(labels, 0))
        values = labelling_values(structure, features, self.coef_, *given, n_jobs)
        values -= infer(structure, features, self.coef_, temperature, n_jobs, entropies=False)[1]
        values /= temperature
        found = np.zeros(len(lengths))
        found[lengths > 0] = values
        found[np.repeat(np.arange(len(lengths)), lengths)[labels < 0]] = -np.inf
        return found

    def decision_function(self, X: Any) -> list[Floats]:
        """Scores of labels at positions before transitions: an array of shape (length, n_labels) a sequence."""
        lengths, structure, features = self._prepare(X)
        return label_rows(structure, lengths, all_scores(structure, features, self.coef_, count_jobs(self.n_jobs)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of positions labelled as in `y`; `sample_weight` is one weight a sequence.

        Labels that were not in the training data count as errors.
        """
        predicted = self.predict(X)
        lengths = Sequences.of(predicted).lengths()
        truth = encode_labels(flatten_labels(Sequences.of(y, "y"), lengths), self.classes_)
        weight = check_sample_weight(sample_weight, len(lengths))
        each = np.repeat(np.ones(len(lengths)) if weight is None else weight, lengths)
        if not each.any():
            raise ValueError("there is no position to score")
        right = truth == encode_labels([label for labels in predicted for label in labels], self.classes_)
        return float(np.average(right, weights=each))
