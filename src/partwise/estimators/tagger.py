"""Sequence labelling: conditional random fields, max-margin chains, and the maxent tagger."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from partwise.estimators.common import check_sample_weight, unchanged_on_failure
from partwise.estimators.inputs import ColumnReader, Sequences
from partwise.estimators.kernel_chain import KernelChainModel
from partwise.estimators.labels import encode_labels, flatten_labels, make_classes
from partwise.estimators.local import LocalModel
from partwise.estimators.predicting import PredictingTagger
from partwise.estimators.reading import ReadableTagger
from partwise.estimators.saved_taggers import model_parts, read_model
from partwise.estimators.saving import make_estimator, n_attributes, read_reader, read_result, start_model
from partwise.estimators.tagger_training import TrainedTagger
from partwise.estimators.templates import TemplateReader
from partwise.models.errors import ModelFormatError
from partwise.models.parts import ModelParts


class SequenceTagger(PredictingTagger, ReadableTagger, TrainedTagger):
    """Labels every position of a sequence: a linear-chain CRF, or a max-margin chain with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over sequences i. CRFsuite's ``c2`` is ``1 / (2 C)``.

    `X` is a list of sequences, all in one of these forms:

    - a list of positions, each a list of attribute names (strings; a repeated name counts twice) or a dict:
      ``{"word": "the"}`` is the attribute "word=the", a number or a bool is the attribute's value, a list of strings
      or a nested dict is written out with the name as prefix (``{"suffix": ["e", "he"]}``: "suffix=e", "suffix=he");
    - a 2-D NumPy array of numbers, or a SciPy sparse matrix: one row a position, attribute j is column j;
    - with a `template`: `partwise.io.Sentences`, or a list of sentences, lists of tokens that are strings or tuples of
      strings (columns). The template makes the attributes.

    An attribute of value 0 is an attribute that is not there. Attributes not seen in training are ignored at
    prediction. `y` is a list of label sequences (strings, ints or other hashable values). `fit` refuses a sequence
    without positions; predictions for one are empty.

    Parameters
    ----------
    loss : {"log", "softmax-margin", "hinge", "squared-hinge", "smoothed-hinge"} or Loss
        The hinge losses give no marginals.
    C : float
        Inverse of the penalty's strength.
    model : {"crf", "maxent"}
        "maxent": a classifier of positions that sees the tags before them (Ratnaparkhi 1996), trained with the log loss
        on the gold tags and decoded by beam search; unlike Ratnaparkhi's, the beam keeps one labelling of those that
        end in the same `history` tags. It has no `transitions`, `transition_features`, `ends`. Its
        marginals are exact whatever the `beam_width`.
    history : {2, 1}
        model="maxent": how many tags before a position are seen.
    beam_width : int or None
        model="maxent": how many histories the search keeps, all if there are fewer. With all of them, also by None, it
        finds the best labelling.
    features : {"observed", "all"}
        Weights for the (attribute, label) pairs that occur in the training data, or for all pairs.
    transitions : {"auto", "observed", "all"}
        Weights for the pairs of neighbouring labels that occur, or for all; "auto" does as `features`. A pair without a
        weight has score 0; it is not forbidden.
    transition_features : None, "all", or a list of name prefixes (strings) or column numbers (ints)
        None: one weight a pair of labels. Otherwise transitions are conditioned on observations: each of these
        attributes, at the right one of the two positions, has weights for pairs of labels (as well as the pair alone).
    ends : bool
        Weights for the first and the last label of a sequence.
    template : None, "chunk", "pos", "ner", or a Template
        Make the attributes from columns of text by a feature template, such as a CRF++ template file read by
        `Template.from_file`. Its B lines say which weights pairs of labels have.
    kernel : None, "linear", "polynomial", "rbf", "precomputed", or one of `partwise.kernels`
        Compare positions by a kernel instead of weighing their attributes: the score of a label is a sum over training
        positions, every label has a coefficient (`features` is about transitions alone), and `transition_features` is
        None or "all" (a kernel on the edges' right ends). "precomputed": the columns of X are kernel values with the
        training positions, end to end. For solvers that need no explicit weights.
    gamma : float, optional
        Of the polynomial and the RBF kernel; None: 1 / (number of columns * variance of all values).
    kernel_options : dict, optional
        The kernel's other parameters (`degree`, `coef0`, `bias`); `memory_limit`, the bytes that kernel values may
        take (2e9), and `recompute`, whether to compute those beyond it anew in each pass instead of refusing.
    min_count : int
        Leave out features (with ``features="all"``: attributes) that occur less often in the training data.
    solver, solver_options, tol, max_seconds, max_passes, n_jobs, random_state, verbose
        As for `MaxentClassifier`.
    warm_start : bool
        Start `fit` from the weights of the last one, feature by feature; with a hinge loss from its dual point, if
        loss, solver, labels and the sequences' lengths are the same.
    callbacks : callable or list of callables, optional
        As for `MaxentClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
    coef_ : ndarray of shape (n_weights,)
        All weights; `state_features_` and `transition_features_` give them by name. With a kernel: coefficients of the
        training positions that have any.
    attributes_ : list of str or None
        Attribute names, the most frequent first; None for arrays.
    n_features_in_ : int
        Number of columns; arrays only.
    unknown_rate_ : float
        Share of the attributes in the last input that are not in the vocabulary.
    result_ : Result
        Objective, dual value, gap, history of the last `fit`.
    """

    def __init__(
        self,
        loss: Any = "log",
        C: float = 1.0,
        *,
        model: str = "crf",
        history: int = 2,
        beam_width: int | None = 10,
        features: str = "observed",
        transitions: str = "auto",
        transition_features: Any = None,
        ends: bool = False,
        template: Any = None,
        kernel: Any = None,
        gamma: float | None = None,
        kernel_options: dict[str, Any] | None = None,
        min_count: int = 1,
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
        self.model = model
        self.history = history
        self.beam_width = beam_width
        self.features = features
        self.transitions = transitions
        self.transition_features = transition_features
        self.ends = ends
        self.template = template
        self.kernel = kernel
        self.gamma = gamma
        self.kernel_options = kernel_options
        self.min_count = min_count
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
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    # training

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SequenceTagger:
        """Train on sequences `X` with label sequences `y`; `sample_weight` is one weight a sequence.

        A sequence of weight 0 is left out altogether: its attributes and labels are not learnt.
        """
        with unchanged_on_failure(self):
            training = self._check_training()
            self._check_features()
            sequences, targets = self._sequences(X), Sequences.of(y, "y")
            if not len(sequences.items):
                raise ValueError("X holds no sequences")
            lengths = sequences.lengths()
            flatten_labels(targets, lengths)
            weight = check_sample_weight(sample_weight, len(sequences.items))
            if weight is not None and not weight.all():
                keep = np.flatnonzero(weight)
                sequences, targets, lengths, weight = (
                    sequences.take(keep),
                    targets.take(keep),
                    lengths[keep],
                    weight[keep],
                )
            if not lengths.all():
                number = sequences.numbers[int(np.flatnonzero(lengths == 0)[0])]
                raise ValueError(f"sequence {number} has no positions: leave it out")

            flat = flatten_labels(targets, lengths)
            classes = make_classes(flat, targets, lengths)
            if len(classes) < 2:
                raise ValueError(f"y holds one label only ({classes.tolist()[0]!r}): there is nothing to learn")
            labels = encode_labels(flat, classes)
            reader, rows = self._first_reading(sequences)
            model, result = self._fit_model(training, reader, rows, labels, classes, weight)

            if isinstance(reader, ColumnReader):
                self.n_features_in_ = reader.n_features
            elif hasattr(self, "n_features_in_"):
                del self.n_features_in_
            self.classes_ = classes
            self._reader = reader
            self._model = model
            self._set_weights(result)
        return self

    def _to_model(self) -> ModelParts:
        self._check_training()
        self._check_features()
        parts = start_model(self, "tagger")
        parts.add("reader", self._reader._to_model())
        parts.add("model", model_parts(self._model, self.coef_))
        return parts

    @classmethod
    def _from_model(cls, parts: ModelParts) -> SequenceTagger:
        self: SequenceTagger = make_estimator(cls, parts)
        self._check_training()
        self._check_features()
        # Both are native work for the most part: a large model's names and weights are read at the same time.
        with ThreadPoolExecutor(1) as helper:
            reader = helper.submit(read_reader, parts.part("reader"))
            self._model, self.coef_ = read_model(
                parts.part("model"), len(self.classes_), n_attributes(parts.part("reader"))
            )
        self._reader = reader.result()
        if isinstance(self._reader, TemplateReader):
            self.template = self._reader.template if self.template is None else self.template
        elif self.template is not None:
            raise ModelFormatError("has a template and reads its input without it")
        if isinstance(self._reader, ColumnReader):
            self.n_features_in_ = self._reader.n_attributes
        if (self.model == "maxent") != isinstance(self._model, LocalModel):
            raise ModelFormatError(f"says model={self.model!r} and holds another")
        if (self.kernel is not None) != isinstance(self._model, KernelChainModel):
            raise ModelFormatError(f"says kernel={self.kernel!r} and holds another model")
        self.result_ = read_result(parts, self.coef_)
        return self
