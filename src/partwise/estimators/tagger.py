"""Sequence labelling: conditional random fields, max-margin chains, and the maxent tagger."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, TypeVar, cast

from partwise.estimators.base import Answer, StructuredEstimator, needs_probabilities
from partwise.estimators.parameters import ClassWeight, Cost
from partwise.features.kernels import KernelLike
from partwise.features.template import Template
from partwise.models.inspection import Explanation
from partwise.models.sequences.chain import ChainModel, SecondOrderModel
from partwise.models.sequences.model import SequenceModel
from partwise.models.sequences.template_reader import get_template
from partwise.problem.inference import slot_scores
from partwise.problem.losses import get_loss
from partwise.support.arrays import Floats, Ints
from partwise.support.checks import check_choice

SequenceModelT = TypeVar("SequenceModelT", bound=SequenceModel)


class TokenTagger(StructuredEstimator[SequenceModelT]):
    """Base of the estimators whose examples are sequences of positions with attributes."""

    _input_forms: ClassVar = ("sparse", "dict", "string")
    _needs_answers: ClassVar = True

    def predict_single(self, sequence: object) -> list[Answer]:
        """Return the best labels of one sequence."""
        return cast(list[Answer], self.predict([sequence])[0])

    @property
    def attributes_(self) -> list[str] | None:
        """Attribute names, the most frequent first; None for arrays."""
        return self._fitted().reader.names()

    @property
    def template_(self) -> Template | None:
        """The template that makes attributes of sentences; None if the input has attributes already."""
        return self._fitted().reader.template

    def explain(
        self, sequence: object, position: int | None = None, *, label: Answer = None, against: Answer = None
    ) -> Explanation:
        """Return the features that make the best labelling of a sequence better than the second-best one.

        Their amounts add up to the difference of the two scores.

        position : int, optional
            Explain the label there: compare the best labelling with the best one that has another label at this
            position. Contributions of other positions show the influence of the neighbours.
        label, against : optional
            Labels for the position in place of the best one's, and of that of the best labelling with another one.
        """
        return cast(Explanation, super().explain(sequence, position, label, against))


@dataclass(eq=False, repr=False)
class SequenceTagger(TokenTagger[SequenceModel]):
    """Labels every position of a sequence: a linear-chain CRF, or a max-margin chain with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over sequences i. CRFsuite's ``c2`` is ``1 / (2 C)``.

    `X` is a list of sequences, all in one of these forms:

    - a list of positions, each a list of attribute names (strings; a repeated name counts twice) or a dict:
      ``{"word": "the"}`` is the attribute "word=the", a number or a bool is the attribute's value, a list of strings
      or a nested dict is written out with the name as prefix (``{"suffix": ["e", "he"]}``: "suffix=e", "suffix=he");
    - a 2-D NumPy array of numbers, or a SciPy sparse matrix: one row per position, attribute j is column j;
    - with a `template`: `partwise.io.Sentences`, or a list of sentences, lists of tokens that are strings or tuples of
      strings (columns). The template makes the attributes.

    An attribute of value 0 is the same as no attribute. Predictions ignore attributes not seen in training. `y` is a
    list of label sequences (strings, ints or other hashable values), or `partwise.io.CodedSequences`. `fit` leaves out
    sequences without positions; predictions for them are empty.

    Predictions take two constraints:

    - `allowed`: for each sequence None, a boolean array of shape (length, n_labels) in the order of `classes_`, or a
      list with None or the allowed labels of each position;
    - `allowed_transitions`: a boolean array of shape (n_labels, n_labels), which labels (columns) may follow which
      (rows), or the name of a scheme of chunk labels: "iob1", "iob2" ("bio"), "iobes" ("bioes"), "bilou".

    `predict_marginals` gives the probability of each label at each position: per sequence a list of dicts {label:
    probability}, or with ``output="array"`` an array of shape (length, n_labels). `score` is the share of right labels.

    With model="maxent", `predict_k_best` and `explain` use log-probabilities as scores, and the best labellings that a
    beam of `beam_width` histories (k, if that is more) finds; contributions include local normalisers ("normaliser").

    Parameters
    ----------
    model : {"crf", "maxent"}
        "maxent": a classifier of positions that sees the tags before them (Ratnaparkhi 1996), trained with the log loss
        on the gold tags and decoded by beam search, which keeps only the best labelling of those that end in the same
        `history` tags. `transitions`, `transition_features` and `ends` are not available. Marginals are exact.
    history : {2, 1}
        model="maxent": how many tags before a position are seen.
    beam_width : int or None
        model="maxent": how many histories the search keeps. With None or all of them it finds the best labelling.
    order : {1, 2}
        model="crf": how many labels before a position its label is scored with. 2: triples of labels have weights, too,
        and time grows with the cube of the number of labels; without a kernel, `transition_features` and `ends`.
    transition_features : None, "all", or a list of name prefixes (strings) or column numbers (ints)
        None: one weight per pair of labels. Otherwise each of these attributes, at the right one of two positions, has
        weights for pairs of labels, in addition to the pair's own weight.
    ends : bool
        Weights for the first and the last label of a sequence.
    template : None, "chunk", "pos", "ner", "morph", or a Template
        Make the attributes from columns of text by a feature template, such as a CRF++ file (`Template.from_file`). Its
        B lines say which weights pairs of labels have. "ner" uses the first column and columns of tags (2 to 60
        values), "morph" all, "chunk" the first two, "pos" the first; a warning names the others.
    kernel : None, "linear", "polynomial", "rbf", "precomputed", or one of `partwise.features.kernels`
        Compare positions by a kernel instead of weighing their attributes: the score of a label is a sum over training
        positions, `features` is about transitions alone, and `transition_features` is None or "all" (a kernel on the
        edges' right ends). "precomputed": the columns of X are kernel values with all training positions,
        concatenated. For solvers that need no explicit weights.
    gamma : float, optional
        Of the polynomial and the RBF kernel; None: 1 / (number of columns * variance of all values).
    kernel_options : dict, optional
        The kernel's other parameters (`degree`, `coef0`, `bias`); `memory_limit`, the bytes that kernel values may
        take (2e9), and `recompute`, whether to recompute further values in each pass instead of refusing;
        `by_position`, whether to compare positions only with the same position of other sequences.
    legal : {"auto", True, False}
        Answer with chunk labels that keep to their scheme: I-x after B-x or I-x alone (IOB2), or chunks S-x and B-x ...
        E-x (IOBES), in all predictions, together with constraints; training is the same. "auto": if the labels look
        like one of the two schemes and the training data keep to it, see `scheme_`; True: for any data, and an error
        for other labels. May be set after `fit`. Models saved by earlier versions have it off.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
    coef_ : ndarray of shape (n_weights,)
        All weights; `state_features_`, `transition_features_` name them. With a kernel: those of training positions.
    n_features_in_ : int
        Number of columns; arrays only.
    """

    _: KW_ONLY
    model: str = "crf"
    history: int = 2
    beam_width: int | None = 10
    order: int = 1
    features: str = "observed"
    transitions: str = "auto"
    transition_features: str | Sequence[str | int] | None = None
    ends: bool = False
    template: str | Template | None = None
    kernel: str | KernelLike | None = None
    gamma: float | None = None
    kernel_options: Mapping[str, object] | None = None
    min_count: int = 1
    class_weight: ClassWeight = None
    legal: bool | str = "auto"
    cost: Cost = None

    _model_class: ClassVar = SequenceModel

    def _make_model(self) -> SequenceModel:
        check_choice("model", self.model, ("crf", "maxent"))
        self._check_combination()
        names = ["template", "features", "min_count", "legal", "cost", "class_weight"]
        if self.model == "maxent":
            from partwise.models.sequences.maxent_chain import MaxentChainModel

            return MaxentChainModel(**self._values("history", "beam_width", *names))
        names += ["transitions", "transition_features", "ends"]
        if self.kernel is not None:
            from partwise.models.sequences.kernel_chain import KernelChainModel

            return KernelChainModel(**self._values("kernel", "gamma", "kernel_options", *names))
        return (ChainModel if self.order == 1 else SecondOrderModel)(**self._values(*names))

    def _values(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names}

    def _check_combination(self) -> None:
        """Raise ValueError for parameters that are not available together."""
        if isinstance(self.order, bool) or self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}")
        if self.model == "maxent":
            loss = get_loss(self.loss)
            if not loss.probabilistic or loss.cost_scale:
                raise ValueError(f"model='maxent' has loss='log' only, got {self.loss!r}")
            self._require("model='maxent'", transitions="auto", transition_features=None, ends=False)
            if self.kernel is not None:
                raise ValueError("a kernel is available for model='crf' alone")
        if self.order == 2:
            self._require("order=2", model="crf", kernel=None, transition_features=None, ends=False)
        if self.kernel is not None and self.penalty != "l2":
            raise ValueError(f"penalty={self.penalty!r} is not available with a kernel: it has no weights to be zero")
        for name in ("gamma", "kernel_options"):
            if self.kernel is None and getattr(self, name) is not None:
                raise ValueError(f"{name} is for kernels: give kernel='rbf' or another")
        if self.template is not None:
            template = get_template(self.template)
            if template.edges and (self.model, self.order, self.kernel) != ("crf", 1, None):
                raise ValueError("B lines with macros are available for model='crf' with order=1 and without a kernel")
            if self.kernel is not None and not template.transitions:
                raise ValueError("with a kernel there are transitions: add the line 'B' to the template")

    def _require(self, what: str, **values: object) -> None:
        """Raise ValueError unless parameters have these values, the only ones that are available with `what`."""
        for name, value in values.items():
            if getattr(self, name) != value:
                raise ValueError(f"{name} is not available with {what}, got {getattr(self, name)!r}")

    @needs_probabilities
    def predict_marginals_single(self, sequence: object, *, output: str = "dict") -> Answer:
        """Return the marginals of one sequence."""
        return self.predict_marginals([sequence], output=output)[0]

    def decision_function(self, X: object) -> list[Floats]:
        """Return the scores of labels at positions, without transitions: arrays of shape (length, n_labels)."""
        _, reading, n_jobs = self._read(X)
        return self._model.rows_of_labels(reading, slot_scores(reading.batch, self.coef_, n_jobs))

    @property
    def scheme_(self) -> str | None:
        """The scheme that predictions keep to: "iob2", "iobes", or None; see `legal`."""
        return self._fitted().kept_scheme()

    @property
    def state_weights_(self) -> tuple[Ints, Ints, Floats]:
        """`state_features_` as arrays: indices of `attributes_`, indices of `classes_`, weights."""
        return self._fitted().node_features()

    @property
    def state_features_(self) -> dict[tuple[Answer, Answer], float]:
        """Weights of (attribute, label) pairs; attributes are column numbers for arrays."""
        return self._fitted().state_features()

    @property
    def transition_features_(self) -> dict[tuple[Answer, ...], float]:
        """Weights of (label, next label); with `transition_features` also of (attribute, label, next label).

        With order=2 also of triples of labels. With model="maxent" of (previous label, label) and of triples of labels,
        where None stands for positions before the beginning.
        """
        return self._fitted().transition_weights()

    @property
    def boundary_features_(self) -> dict[tuple[str, Answer], float]:
        """Weights of ("begin", label) and ("end", label); empty unless `ends`."""
        return self._fitted().boundary_features()
