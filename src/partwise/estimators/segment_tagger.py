"""Labelled segments of sequences: semi-Markov conditional random fields and max-margin models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partwise.estimators.answers import has_probabilities, needs_probabilities
from partwise.estimators.base import StructuredEstimator
from partwise.features.template import Template
from partwise.models.inspection import Explanation, TopFeatures
from partwise.models.segments.labels import Span
from partwise.models.segments.model import SegmentModel
from partwise.problem.inference import check_weights
from partwise.problem.losses import get_loss
from partwise.support.arrays import Floats
from partwise.support.checks import check_count


class SegmentTagger(StructuredEstimator):
    """Cuts sequences into labelled segments (names, phrases): a semi-Markov CRF, or a max-margin model by a hinge loss.

    `X` is as for `SequenceTagger`; `y` are labels of chunks in IOB1, IOB2 or IOBES ("B-NP", "I-NP", "O", ...), read by
    the rules of conlleval, or `partwise.io.CodedSequences` of them. Segments have types, what stands behind "B-"; a
    position that is O is a segment of its own. A segment is scored by the attributes of its positions (one weight per
    attribute and type for all of them, and others for the first and the last), its length, the type before it, and
    features of the whole.

    Predictions are labels in IOB2, or in another `scheme`; `predict_spans` gives segments with their probabilities.
    `predict_marginals` gives the probability of each label of `classes_`, which are those of IOB2, at each position:
    per sequence a list of dicts {label: probability}, or with ``output="array"`` an array of shape (length, n_labels).
    `score` is the share of positions of the right type that begin a segment where they should. Constraints are those
    of `SequenceTagger`, by the labels of `classes_`; `allowed_transitions` must not tell B-X from I-X before another
    label.

    Parameters
    ----------
    loss : {"log", "softmax-margin", "hinge", "squared-hinge", "smoothed-hinge"} or Loss
        The hinge losses give no probabilities.
    C : float
        Inverse of the penalty's strength.
    max_length : int, optional
        The most positions that a segment can have; by default those of the longest in the training data. `fit` refuses
        a longer one there.
    borders : {"both", "first", "last", "none"}
        Which positions of segments have weights of their own for their attributes.
    segment_features : "auto", or some of "text", "shape"
        Features of whole segments of two words or more: their words, and the shapes of these ("Xx Xx"), as seen in gold
        segments. They need words: the first column of what a `template` reads. "auto": both with a template, else none.
    lists : mapping of names to phrases, or files, optional
        Whether a segment is in a list (whatever its case); a file has a phrase per line and its name names the list.
    segment_cost : bool
        What the losses with a cost count besides the positions of a wrong type: segments, 1/2 for a wrong begin or type
        and 1/2 for a wrong end or type.
    scheme : {"iob2", "iob1", "iobes"}
        Of predicted labels; it may be set after `fit`.
    features : {"observed", "all"}
        Weights for the (attribute, type) pairs that occur in the training data, or for all pairs.
    transitions : {"auto", "observed", "all"}
        Weights for the pairs of neighbouring types that occur, or for all; "auto": as `features`.
    template : None, "chunk", "pos", "ner", or a Template
        As for `SequenceTagger`; B lines with macros are not available.
    min_count : int
        Leave out features that occur less often in the training data.
    class_weight
        As for `SequenceTagger`.
    cost : None, array, mapping or callable
        As for `MaxentClassifier`; costs of positions by the types of their segments, "O" among them. Those of borders
        (`segment_cost`) are added.
    penalty, l1_ratio
        As for `MaxentClassifier`.
    solver, solver_options, tol, max_seconds, max_passes, n_jobs, random_state, verbose, warm_start, callbacks
        As for `SequenceTagger`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Labels in IOB2.
    types_ : list of str
        Labels of segments; "O" is that of positions in none.
    max_length_ : int
    coef_ : ndarray of shape (n_weights,)
    attributes_ : list of str or None
        Attribute names, the most frequent first; None for arrays.
    result_ : Result
        Objective, dual value, gap, history of the last `fit`.
    """

    def __init__(
        self,
        loss: Any = "log",
        C: float = 1.0,
        *,
        max_length: int | None = None,
        borders: str = "both",
        segment_features: Any = "auto",
        lists: Any = None,
        segment_cost: bool = True,
        scheme: str = "iob2",
        features: str = "observed",
        transitions: str = "auto",
        template: Any = None,
        min_count: int = 1,
        class_weight: Any = None,
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
        self.cost = cost
        self.max_length = max_length
        self.borders = borders
        self.segment_features = segment_features
        self.lists = lists
        self.segment_cost = segment_cost
        self.scheme = scheme
        self.features = features
        self.transitions = transitions
        self.template = template
        self.min_count = min_count
        self.class_weight = class_weight

    _model: SegmentModel
    _phrases = ("lists",)
    __metadata_request__predict: ClassVar = dict.fromkeys(SegmentModel.constraints)  # for scikit-learn's routing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _make_model(self) -> SegmentModel:
        return SegmentModel(
            longest=self.max_length,
            borders=self.borders,
            segment_features=self.segment_features,
            lists=self.lists,
            segment_cost=self.segment_cost,
            scheme=self.scheme,
            features=self.features,
            transitions=self.transitions,
            template=self.template,
            min_count=self.min_count,
            cost=self.cost,
            class_weight=self.class_weight,
        )

    # answers

    def predict_single(self, sequence: Any) -> list[Any]:
        """The best labels of one sequence."""
        labels: list[Any] = self.predict([sequence])[0]
        return labels

    def predict_spans(self, X: Any, **constraints: Any) -> list[list[Span]]:
        """The segments of the best answer for each sequence, without those that are O.

        A `Span` has label, begin, end (one past the last position) and the probability that the sequence has exactly
        this segment; None with hinge losses.
        """
        model, reading, n_jobs = self._read(X, constraints)
        assert isinstance(model, SegmentModel)
        temperature = get_loss(self.loss).temperature if get_loss(self.loss).probabilistic else None
        found = model.spans(reading, model.best(reading, n_jobs), temperature)
        spans: list[list[Span]] = reading.spread(found, list)
        return spans

    @needs_probabilities
    def span_probabilities(
        self, X: Any, spans: Sequence[Sequence[tuple[str, int, int]]], **constraints: Any
    ) -> list[Floats]:
        """The probability of each of these segments (label, begin, end) of each sequence; 0 for what no answer has."""
        has_probabilities(self)
        model, reading, _ = self._read(X, constraints)
        assert isinstance(model, SegmentModel)
        check_weights(reading.batch, model.weights)
        if len(spans) != reading.n_examples:
            raise ValueError(f"X has {reading.n_examples} sequences but spans has {len(spans)}")
        index = {model.types.name(k): k for k in range(model.n_types)}
        most, lengths, temperature = model.max_lengths(), reading.source.lengths, get_loss(self.loss).temperature
        place = {number: i for i, number in enumerate(reading.numbers.tolist())}
        found = []
        for number, asked in enumerate(spans):
            values = np.zeros(len(asked))
            known = []
            for k, (label, begin, end, *_) in enumerate(asked):
                if not 0 <= begin < end <= lengths[number]:
                    raise ValueError(
                        f"spans: sequence {number} has {lengths[number]} positions, no segment [{begin}, {end})"
                    )
                if label in index and end - begin <= most[index[label]]:
                    known.append((end, begin, index[label], k))
            if known:
                ends, begins, labels, order = np.array(sorted(known), dtype=np.int64).T.copy()
                values[order] = model.segment_probabilities(reading, place[number], begins, ends, labels, temperature)
            found.append(values)
        return found

    # weights by name

    @property
    def attributes_(self) -> list[str] | None:
        """Attribute names, the most frequent first; None for arrays."""
        check_is_fitted(self)
        return self._model.reader.names()

    @property
    def template_(self) -> Template | None:
        """The template that it reads sentences by; None where the input has its attributes already."""
        check_is_fitted(self)
        return self._model.reader.template

    @property
    def types_(self) -> list[str]:
        """Labels of segments; "O" is that of positions in none."""
        check_is_fitted(self)
        return [self._model.types.name(k) for k in range(self._model.n_types)]

    @property
    def max_length_(self) -> int:
        """The most positions that a segment can have."""
        check_is_fitted(self)
        return self._model.max_length

    @property
    def state_features_(self) -> dict[tuple[str, Any, str], float]:
        """Weights of ("inside", "first", "last" or "whole", attribute, type)."""
        check_is_fitted(self)
        found = {}
        for name in self._model.layouts:
            rows = zip(*(part.tolist() for part in self._model.table(name)), strict=True)
            for attribute, k, weight in rows:
                found[name, self._model.attribute_name(name, attribute), self._model.types.name(k)] = weight
        return found

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """Weights of (type, next type) pairs."""
        check_is_fitted(self)
        return self._model.transition_features()

    @property
    def length_features_(self) -> dict[tuple[int, str], float]:
        """Weights of (length, type)."""
        check_is_fitted(self)
        return self._model.length_features()

    def top_features(self, n: int = 10) -> TopFeatures:
        """The n weights of the largest absolute values for every type and every pair of types."""
        found: TopFeatures = super().top_features(check_count("n", n))
        return found

    def explain(
        self, sequence: Any, position: int | None = None, *, label: Any = None, against: Any = None
    ) -> Explanation:
        """Which features make the best segmentation of a sequence better than the second-best one.

        Their amounts add up to the difference of the two scores. position, label, against: as for `SequenceTagger`.
        """
        found: Explanation = super().explain(sequence, position, label, against)
        return found
