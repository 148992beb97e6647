"""Labelled segments of sequences: semi-Markov conditional random fields and max-margin models."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from partwise.estimators.base import Answer, needs_probabilities
from partwise.estimators.parameters import ClassWeight, Cost
from partwise.estimators.tagger import TokenTagger
from partwise.features.template import Template
from partwise.models.segments.labels import Span
from partwise.models.segments.model import SegmentModel
from partwise.problem.inference import check_weights
from partwise.problem.losses import get_loss
from partwise.support.arrays import Floats


@dataclass(eq=False, repr=False)
class SegmentTagger(TokenTagger[SegmentModel]):
    """Cuts sequences into labelled segments (names, phrases): a semi-Markov CRF, or a max-margin model by a hinge loss.

    `X` is as for `SequenceTagger`; `y` are labels of chunks in IOB1, IOB2 or IOBES ("B-NP", "I-NP", "O", ...), read by
    the rules of conlleval, or `partwise.io.CodedSequences` of them. The type of a segment is the text after "B-"; each
    position with the label O is a segment of type O. A segment is scored by the attributes of its positions (one weight
    per attribute and type for all of them, and others for the first and the last), its length, the type before it, and
    features of the whole. `cost`, `class_weight`, `features` and `transitions` are about types, not labels.

    Predictions are labels in IOB2, or in another `scheme`; `predict_spans` gives segments with their probabilities.
    `predict_marginals` gives the probability of each label of `classes_` (IOB2) at each position: per sequence a list
    of dicts {label: probability}, or with ``output="array"`` an array of shape (length, n_labels). `score` is the
    share of positions with the right type that begin a segment if and only if they should. Constraints are those of
    `SequenceTagger` on `classes_`; `allowed_transitions` must treat B-X and I-X before another label alike.

    Parameters
    ----------
    max_length : int, optional
        The most positions that a segment can have (`fit` refuses longer ones); by default those of the longest in `y`.
    borders : {"both", "first", "last", "none"}
        Which positions of segments have weights of their own for their attributes.
    segment_features : "auto", or some of "text", "shape"
        Features of whole segments of two words or more: their words, and the shapes of these ("Xx Xx"), as seen in gold
        segments. Words are the first column that a `template` reads. "auto": both with a template, else none.
    lists : mapping of names to phrases, or files, optional
        Whether a segment is in a list (whatever its case); a file has a phrase per line and its name names the list.
    segment_cost : bool
        What the losses with a cost count besides the positions of a wrong type: segments, 1/2 for a wrong begin or type
        and 1/2 for a wrong end or type.
    scheme : {"iob2", "iob1", "iobes"}
        Of predicted labels; it may be set after `fit`.
    template : None, "chunk", "pos", "ner", or a Template
        Make the attributes from columns of text, as for `SequenceTagger`; B lines with macros are not available.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        Labels in IOB2.
    """

    _: KW_ONLY
    max_length: int | None = None
    borders: str = "both"
    segment_features: str | Sequence[str] = "auto"
    lists: Mapping[str, Sequence[str]] | Sequence[str] | str | None = None
    segment_cost: bool = True
    scheme: str = "iob2"
    features: str = "observed"
    transitions: str = "auto"
    template: str | Template | None = None
    min_count: int = 1
    class_weight: ClassWeight = None
    cost: Cost = None

    _model_class: ClassVar = SegmentModel
    _phrases: ClassVar = ("lists",)

    def predict_spans(self, X: object, **constraints: object) -> list[list[Span]]:
        """Return the segments of the best answer for each sequence, without those of type O.

        A `Span` has label, begin, end (one past the last position) and probability, which is None with hinge losses.
        """
        model, reading, n_jobs = self._read(X, constraints)
        temperature = get_loss(self.loss).temperature if get_loss(self.loss).probabilistic else None
        return reading.spread(model.spans(reading, model.best(reading, n_jobs), temperature), list)

    @needs_probabilities
    def span_probabilities(
        self, X: object, spans: Sequence[Sequence[tuple[str, int, int]]], **constraints: object
    ) -> list[Floats]:
        """Return the probability of each segment (label, begin, end) of each sequence; 0 for impossible segments."""
        model, reading, _ = self._read(X, constraints)
        check_weights(reading.batch, model.weights)
        if len(spans) != reading.n_examples:
            raise ValueError(f"X has {reading.n_examples} sequences but spans has {len(spans)}")
        index = {name: k for k, name in enumerate(self.types_)}
        most, lengths, temperature = model.max_lengths(), reading.source.lengths, get_loss(self.loss).temperature
        place = {number: i for i, number in enumerate(reading.numbers.tolist())}
        found = []
        for number, asked in enumerate(spans):
            values = np.zeros(len(asked))
            known = []
            for k, (label, begin, end, *_) in enumerate(asked):
                n = lengths[number]
                if not 0 <= begin < end <= n:
                    raise ValueError(f"spans: sequence {number} has {n} positions, no segment [{begin}, {end})")
                if label in index and end - begin <= most[index[label]]:
                    known.append((end, begin, index[label], k))
            if known:
                ends, begins, labels, order = np.array(sorted(known), dtype=np.int64).T.copy()
                values[order] = model.segment_probabilities(reading, place[number], begins, ends, labels, temperature)
            found.append(values)
        return found

    @property
    def types_(self) -> list[str]:
        """Types of segments; "O" is the type of positions outside of chunks."""
        model = self._fitted()
        return [model.types.name(k) for k in range(model.n_types)]

    @property
    def max_length_(self) -> int:
        """The most positions that a segment can have."""
        return self._fitted().longest

    @property
    def state_features_(self) -> dict[tuple[str, Answer, str], float]:
        """Weights of ("inside", "first", "last" or "whole", attribute, type)."""
        model = self._fitted()
        return {
            (name, model.attribute_name(name, attribute), model.types.name(k)): weight
            for name in model.layouts
            for attribute, k, weight in zip(*(part.tolist() for part in model.table(name)), strict=True)
        }

    @property
    def transition_features_(self) -> dict[tuple[Answer, ...], float]:
        """Weights of (type, next type) pairs."""
        return self._fitted().transition_weights()

    @property
    def length_features_(self) -> dict[tuple[int, str], float]:
        """Weights of (length, type)."""
        return self._fitted().length_features()
