"""Sequence labelling: conditional random fields, max-margin chains, and the maxent tagger."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from partwise.estimators.answers import needs_probabilities
from partwise.estimators.base import StructuredEstimator
from partwise.features.template import Template
from partwise.models.inspection import Explanation, TopFeatures
from partwise.models.sequences import SequenceModel, get_template
from partwise.models.sequences.chain import ChainModel
from partwise.models.sequences.kernel_chain import KernelChainModel
from partwise.models.sequences.maxent_chain import MaxentChainModel
from partwise.models.sequences.second_order import SecondOrderModel
from partwise.problem.inference import slot_scores
from partwise.problem.losses import get_loss
from partwise.support.arrays import Floats, Ints
from partwise.support.checks import check_choice, check_count


class SequenceTagger(StructuredEstimator):
    """Labels every position of a sequence: a linear-chain CRF, or a max-margin chain with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over sequences i. CRFsuite's ``c2`` is ``1 / (2 C)``.

    `X` is a list of sequences, all in one of these forms:

    - a list of positions, each a list of attribute names (strings; a repeated name counts twice) or a dict:
      ``{"word": "the"}`` is the attribute "word=the", a number or a bool is the attribute's value, a list of strings
      or a nested dict is written out with the name as prefix (``{"suffix": ["e", "he"]}``: "suffix=e", "suffix=he");
    - a 2-D NumPy array of numbers, or a SciPy sparse matrix: one row per position, attribute j is column j;
    - with a `template`: `partwise.io.Sentences`, or a list of sentences, lists of tokens that are strings or tuples of
      strings (columns). The template makes the attributes.

    An attribute of value 0 is the same as no attribute. Attributes not seen in training are ignored at
    prediction. `y` is a list of label sequences (strings, ints or other hashable values), or
    `partwise.io.CodedSequences`. `fit` leaves out sequences without positions; predictions for one are empty.

    Predictions take two constraints:

    - `allowed`: for each sequence None (no constraint), a boolean array of shape (length, n_labels) in the order of
      `classes_`, or a list with None or the allowed labels of each position;
    - `allowed_transitions`: a boolean array of shape (n_labels, n_labels), which labels (columns) may follow which
      (rows), or the name of a scheme of chunk labels: "iob1", "iob2" ("bio"), "iobes" ("bioes"), "bilou".

    `predict_marginals` gives the probability of each label at each position: per sequence a list of dicts {label:
    probability}, or with ``output="array"`` an array of shape (length, n_labels). `score` is the share of positions
    with the right label.

    model="maxent": the scores of `predict_k_best` are log-probabilities, and the labellings are the best that a beam of
    `beam_width` histories, or of k if that is more, finds; with ``beam_width=None`` the best of all.

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
    order : {1, 2}
        model="crf": how many labels before a position its label is scored with. 2: triples of labels have weights, too,
        and time grows with the cube of the number of labels; without a kernel, `transition_features` and `ends`.
    features : {"observed", "all"}
        Weights for the (attribute, label) pairs that occur in the training data, or for all pairs.
    transitions : {"auto", "observed", "all"}
        Weights for the pairs of neighbouring labels that occur, or for all; "auto": as `features`. A pair without a
        weight has score 0; it is not forbidden.
    transition_features : None, "all", or a list of name prefixes (strings) or column numbers (ints)
        None: one weight per pair of labels. Otherwise transitions are conditioned on observations: each of these
        attributes, at the right one of the two positions, has weights for pairs of labels (as well as the pair alone).
    ends : bool
        Weights for the first and the last label of a sequence.
    template : None, "chunk", "pos", "ner", "morph", or a Template
        Make the attributes from columns of text by a feature template, such as a CRF++ template file read by
        `Template.from_file`. Its B lines say which weights pairs of labels have. "ner" looks at the first column and
        at those of tags (2 to 60 values), "morph" at all, "chunk" at the first two, "pos" at the first; a warning names
        the others.
    kernel : None, "linear", "polynomial", "rbf", "precomputed", or one of `partwise.features.kernels`
        Compare positions by a kernel instead of weighing their attributes: the score of a label is a sum over training
        positions, every label has a coefficient (`features` is about transitions alone), and `transition_features` is
        None or "all" (a kernel on the edges' right ends). "precomputed": the columns of X are kernel values with the
        training positions, end to end. For solvers that need no explicit weights.
    gamma : float, optional
        Of the polynomial and the RBF kernel; None: 1 / (number of columns * variance of all values).
    kernel_options : dict, optional
        The kernel's other parameters (`degree`, `coef0`, `bias`); `memory_limit`, the bytes that kernel values may
        take (2e9), and `recompute`, whether to recompute those beyond it in each pass instead of refusing;
        `by_position`, whether positions are compared only with the same position of other sequences, as if each had
        weights of its own.
    min_count : int
        Leave out features (with ``features="all"``: attributes) that occur less often in the training data.
    class_weight : None, "balanced" or a mapping of labels to numbers >= 0
        The weight of a sequence is multiplied by the mean of the weights of its labels; those that are not named have
        1. "balanced": the number of positions over the number of labels times how often the label occurs. (It is one
        weight per sequence, as the loss of a labelling is no sum over positions; `cost` tells labels apart.)
    legal : {"auto", True, False}
        Answer with chunk labels that keep to their scheme: I-x after B-x or I-x alone (IOB2), or chunks S-x and B-x ...
        E-x (IOBES). It holds for predictions, k best, samples, marginals and log-probabilities (-inf for others),
        together with constraints; training is the same. "auto": if the labels look like one of the two schemes and the
        training data keep to it, see `scheme_`; True: whatever the data do, and an error for other labels. May be
        set after `fit`. Models saved by earlier versions have it off.
    cost : None, array, mapping or callable
        As for `MaxentClassifier`; the costs of a sequence's positions add up.
    penalty, l1_ratio
        As for `MaxentClassifier`.
    solver, solver_options, tol, max_seconds, max_passes, n_jobs, random_state, verbose
        As for `MaxentClassifier`.
    warm_start : bool
        Start `fit` from the weights of the last one (or of a model file), feature by feature, and from its dual point
        if the data begin with those of the last one and loss and labels are the same. With a hinge loss the dual point
        is the only start, for the same solver (`sgd`, `perceptron` and `mira` start from weights).
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
    template_ : Template or None
        The template that it reads sentences by; None where the input has its attributes already.
    n_features_in_ : int
        Number of columns; arrays only.
    scheme_ : {"iob2", "iobes", None}
        The scheme of chunk labels that predictions keep to; see `legal`.
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
        order: int = 1,
        features: str = "observed",
        transitions: str = "auto",
        transition_features: Any = None,
        ends: bool = False,
        template: Any = None,
        kernel: Any = None,
        gamma: float | None = None,
        kernel_options: dict[str, Any] | None = None,
        min_count: int = 1,
        class_weight: Any = None,
        legal: bool | str = "auto",
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
        self.model = model
        self.history = history
        self.beam_width = beam_width
        self.order = order
        self.features = features
        self.transitions = transitions
        self.transition_features = transition_features
        self.ends = ends
        self.template = template
        self.kernel = kernel
        self.gamma = gamma
        self.kernel_options = kernel_options
        self.min_count = min_count
        self.class_weight = class_weight
        self.legal = legal
        self.cost = cost

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    _model: SequenceModel
    __metadata_request__predict: ClassVar = dict.fromkeys(SequenceModel.constraints)  # for scikit-learn's routing

    def _make_model(self) -> SequenceModel:
        check_choice("features", self.features, ("observed", "all"))
        check_choice("transitions", self.transitions, ("auto", "observed", "all"))
        check_choice("model", self.model, ("crf", "maxent"))
        check_count("min_count", self.min_count)
        if self.model == "maxent":
            self._check_maxent()
        self._check_kernel()
        self._check_template()
        self._check_order()
        shared = {
            "template": self.template,
            "features": self.features,
            "min_count": self.min_count,
            "legal": self.legal,
            "cost": self.cost,
            "class_weight": self.class_weight,
        }
        if self.model == "maxent":
            return MaxentChainModel(history=self.history, beam_width=self.beam_width, **shared)
        shared |= {
            "transitions": self.transitions,
            "transition_features": self.transition_features,
            "ends": self.ends,
        }
        if self.kernel is None:
            return ChainModel(**shared) if self.order == 1 else SecondOrderModel(**shared)
        return KernelChainModel(kernel=self.kernel, gamma=self.gamma, kernel_options=self.kernel_options, **shared)

    def _check_maxent(self) -> None:
        loss = get_loss(self.loss)
        if not loss.probabilistic or loss.cost_scale:
            raise ValueError(f"model='maxent' has loss='log' only, got {self.loss!r}")
        for name, value in (("transitions", "auto"), ("transition_features", None), ("ends", False)):
            if getattr(self, name) != value:
                raise ValueError(f"{name} is not available with model='maxent', got {getattr(self, name)!r}")

    def _check_kernel(self) -> None:
        if self.kernel is None:
            for name in ("gamma", "kernel_options"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} is for kernels: give kernel='rbf' or another")
        elif self.model != "crf":
            raise ValueError("a kernel is available for model='crf' alone")
        elif self.penalty != "l2":
            raise ValueError(
                f"penalty={self.penalty!r} is not available with a kernel, which has no weights to be zero"
            )

    def _check_order(self) -> None:
        if isinstance(self.order, bool) or self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}")
        if self.order == 1:
            return
        for name, value in (("model", "crf"), ("kernel", None), ("transition_features", None), ("ends", False)):
            if getattr(self, name) != value:
                raise ValueError(f"{name}={getattr(self, name)!r} is not available with order=2")
        if self.template is not None and get_template(self.template).edges:
            raise ValueError("B lines with macros are not available with order=2")

    def _check_template(self) -> None:
        if self.template is None:
            return
        template = get_template(self.template)
        if (self.kernel is not None or self.model == "maxent") and template.edges:
            raise ValueError("B lines with macros are available for model='crf' without a kernel")
        if self.kernel is not None and not template.transitions:
            raise ValueError("with a kernel there are transitions: add the line 'B' to the template")

    # answers

    def predict_single(self, sequence: Any) -> list[Any]:
        """The best labels of one sequence."""
        labels: list[Any] = self.predict([sequence])[0]
        return labels

    @needs_probabilities
    def predict_marginals_single(self, sequence: Any, *, output: str = "dict") -> Any:
        """Marginals of one sequence."""
        return self.predict_marginals([sequence], output=output)[0]

    def decision_function(self, X: Any) -> list[Floats]:
        """Scores of labels at positions before transitions: an array of shape (length, n_labels) per sequence."""
        _, reading, n_jobs = self._read(X)
        return self._model.rows_of_labels(reading, slot_scores(reading.batch, self.coef_, n_jobs))

    @property
    def scheme_(self) -> str | None:
        """The scheme that predictions keep to: "iob2", "iobes", or None; see `legal`."""
        check_is_fitted(self)
        model = self._fitted()
        assert isinstance(model, SequenceModel)
        return model.kept_scheme()

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
    def state_weights_(self) -> tuple[Ints, Ints, Floats]:
        """`state_features_` as arrays: attributes, by their number in `attributes_`, labels in `classes_`, weights."""
        check_is_fitted(self)
        return self._model.node_features()

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of (attribute, label) pairs; attributes are column numbers for arrays."""
        check_is_fitted(self)
        return self._model.state_features()

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """Weights of (label, next label) pairs; with `transition_features` also of (attribute, label, next label), with
        order=2 also of triples of labels.

        model="maxent": of (label before, label) and (label two before, label before, label); None is before the
        sequence's beginning.
        """
        check_is_fitted(self)
        return self._model.transition_features()

    @property
    def boundary_features_(self) -> dict[tuple[str, Any], float]:
        """Weights of ("begin", label) and ("end", label); empty unless `ends`."""
        check_is_fitted(self)
        return self._model.boundary_features()

    def top_features(self, n: int = 10) -> TopFeatures:
        """The n weights of the largest absolute values for every label and every pair of labels."""
        found: TopFeatures = super().top_features(check_count("n", n))
        return found

    def explain(
        self, sequence: Any, position: int | None = None, *, label: Any = None, against: Any = None
    ) -> Explanation:
        """Which features make the best labelling of a sequence better than the second-best one.

        Their amounts add up to the difference of the two scores. model="maxent": scores are log-probabilities, the
        labellings are those of `predict_k_best`, and there are also the local normalisers ("normaliser").

        Parameters
        ----------
        sequence : a sequence as in `X`
        position : int, optional
            Ask for the label there: the best labelling is compared with the best one that has another label at this
            position, so that the contributions say why this label, here, and what the neighbours have to do with it.
        label : optional
            A label for the position in place of the best one's.
        against
            The label to compare with; None: the runner-up, that of the best labelling that has another one.
        """
        found: Explanation = super().explain(sequence, position, label, against)
        return found
