"""What a model is: one kind of output with its features, between an estimator and a structure.

    learnt = model.learn(X, y, sample_weight, training)    vocabulary, labels, features; the examples to train on
    model = model.with_weights(weights)                    what a solver found
    reading = model.read(X)                                X as a Batch: a structure and features
    answers = model.decode(reading, which, labellings)     labellings in the user's terms

The estimator above it (`estimators.base`) knows no kind of model, the solvers and structures below it no words and no
labels. `learn`, `read` and `decode` make a model; each other method is an `Ability`: a model has it if its class
writes the method, and an estimator asks for it by `Model.needs`.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from partwise.model_files.parts import ModelParts
from partwise.models.costs import HasCosts
from partwise.models.encoded import Encoded, Size
from partwise.models.errors import NotAvailable
from partwise.models.features import DENSE, few
from partwise.models.inspection import Explanation
from partwise.models.partition import Partitioner
from partwise.models.shortcut import Shortcut
from partwise.problem import Batch, BatchReference, Executor, LabelledBatch, Problem
from partwise.problem.capabilities import Capability
from partwise.problem.inference import best_labellings
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, ElasticNet, Free, Penalty
from partwise.solvers import Solver
from partwise.support.arrays import Floats, Ints, pointers
from partwise.support.checks import check_sample_weight
from partwise.support.lazy import cached_property


class Ability(Enum):
    """What a model may be able to do; the value is the method that does it."""

    MARGINALS = "marginals"
    ENCODING = "encode"
    CONSTRAINTS = "constrain"
    EXPLANATIONS = "explain"
    TOP_FEATURES = "top_features"
    PRUNING = "pruned"
    CARRYING = "carried"
    FILES = "to_parts"
    PARTITIONS = "partitioner"
    FURTHER = "further"
    GROWING = "joined"

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that a model has to write for it."""
        others = {Ability.FILES: ("to_parts", "from_parts"), Ability.FURTHER: ("encode",)}
        return others.get(self, (self.value,))


@dataclass(frozen=True)
class Training:
    """Checked training parameters of an estimator."""

    loss: Loss
    l2: float
    solver: Any
    tol: float
    n_jobs: int
    seed: Callable[[], int | None]
    l1: float = 0.0
    max_seconds: float | None = None
    verbose: int = 0
    #: Weights that are not penalised (`Learnt.free`).
    free: Free | None = None
    #: All labels that there will be, where a model is to be trained further on other data (`Model.takes_classes`).
    classes: Any = None

    @property
    def penalty(self) -> Penalty:
        return ElasticNet(self.l1, self.l2, self.free) if self.l1 else L2(self.l2, self.free)

    def penalty_of(self, C: float) -> Penalty:
        """The penalty of another C, with the same shares of |w|_1 and |w|^2."""
        ratio = 1.0 / (C * (self.l1 + self.l2))
        return ElasticNet(ratio * self.l1, ratio * self.l2) if self.l1 else L2(1.0 / C)

    @property
    def by_features(self) -> bool | None:
        """Whether the solver works on single features; None if it may, where they are few."""
        if self.l1 > 0:
            return True
        if isinstance(self.solver, Solver):
            return Capability.COLUMN_ACCESS in self.solver.requires
        return None


@dataclass(frozen=True)
class Learnt:
    """What `Model.learn` gives in addition to what the model keeps.

    Parameters
    ----------
    examples : LabelledBatch, or sequence of BatchReference
        What to train on.
    shape : tuple
        What labellings depend on in addition to the numbers of slots. Where both are those of another fit, a warm
        start may use that fit's dual point.
    l2_factor : float
        What the strength of the penalty is multiplied by.
    free : Free, optional
        Weights that are not penalised.
    seconds : float
        Time that the model spent on training something itself.
    reading : Reading, optional
        The training data as `Model.read` would have them, with the batch that is trained on; None where that batch is
        none to predict from, or examples were left out.
    executor : Executor, optional
        Where sums over the batches are computed; by default on this process's threads.
    """

    examples: LabelledBatch | Sequence[BatchReference]
    shape: tuple[Any, ...] = ()
    l2_factor: float = 1.0
    free: Free | None = None
    seconds: float = 0.0
    reading: Reading | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.examples, LabelledBatch) and self.executor is None:
            raise TypeError(f"Learnt takes a LabelledBatch, got {type(self.examples).__name__}")
        if not isinstance(self.shape, tuple):
            raise TypeError(f"the shape of Learnt must be a tuple, got {self.shape!r}")

    @property
    def labelled(self) -> LabelledBatch:
        """The examples, which are in memory."""
        assert isinstance(self.examples, LabelledBatch)
        return self.examples

    @property
    def batches(self) -> Sequence[BatchReference]:
        """The examples as batches."""
        return [self.examples] if isinstance(self.examples, LabelledBatch) else self.examples


class EncodedData(ABC):
    """Training data that a model has encoded before, in batches; `fit` takes them in place of X and y."""

    @abstractmethod
    def learn(self, model: Model, training: Training) -> tuple[Model, Learnt]:
        """Return the model that the data were encoded with, and its batches.

        model: a model of the estimator's that has learnt nothing. ValueError if the data do not fit it.
        """


class AsideSizes(NamedTuple):
    """Of `Model.aside`: labels of each row, and weights."""

    n_labels: int
    n_weights: int


class Labellings(NamedTuple):
    """Labellings end to end: the k-th uses slots[indptr[k]:indptr[k + 1]], each `counts` times."""

    indptr: Ints
    slots: Ints
    counts: Floats

    @classmethod
    def of(cls, found: Sequence[tuple[Ints, Floats]]) -> Labellings:
        """From (slots, counts) of each."""
        slots = [each[0] for each in found]
        indptr = pointers([len(each) for each in slots])
        if not found:
            return cls(indptr, np.empty(0, dtype=np.int64), np.empty(0))
        return cls(indptr, np.concatenate(slots), np.concatenate([each[1] for each in found]))

    @classmethod
    def of_slots(cls, found: Sequence[ArrayLike]) -> Labellings:
        """From the slots of each, each of them used once."""
        slots = [np.asarray(each, dtype=np.int64) for each in found]
        return cls.of([(each, np.ones(len(each))) for each in slots])


class Reading:
    """X as a model sees it.

    Parameters
    ----------
    batch : Batch or a function that gives one
        Structure and features of the examples that there is something to say of; made when first asked for if it is
        given as a function.
    n_examples : int
        How many examples X has.
    kept : array of int, optional
        Which of them the batch has, ascending (None: all, and it is None too if all are given). The others have one
        answer, `Model.left_out`. `numbers` is the same and never None.
    source : optional
        What the model needs to answer in the user's terms.
    failed : array of int, optional
        Which of those that the batch does not have cannot be answered at all: every answer to them has probability 0.
    """

    def __init__(
        self,
        batch: Batch | Callable[[], Batch],
        n_examples: int,
        kept: Ints | None = None,
        source: Any = None,
        failed: Ints | None = None,
    ) -> None:
        if not isinstance(batch, Batch) and not callable(batch):
            raise TypeError(f"Reading takes a Batch or a function that makes one, got {type(batch).__name__}")
        self._given = batch
        self.n_examples = n_examples
        self.kept = None if kept is None or len(kept) >= n_examples else np.asarray(kept, dtype=np.int64)
        self.source = source
        self.failed = np.empty(0, dtype=np.int64) if failed is None else np.asarray(failed, dtype=np.int64)
        self.constrained = False  # whether `Model.constrain` put masks on the structure

    @cached_property
    def batch(self) -> Batch:
        batch = self._given() if callable(self._given) else self._given
        if batch.n_examples != len(self.numbers):
            raise ValueError(f"Reading: a batch of {batch.n_examples} examples, expected {len(self.numbers)}")
        return batch

    @property
    def numbers(self) -> Ints:
        """The number in X of each example of the batch."""
        return np.arange(self.n_examples) if self.kept is None else self.kept

    def once_each(self, which: Ints) -> bool:
        """Whether these are all examples of the batch, in their order."""
        n = self.batch.n_examples
        return len(which) == n and bool((which == np.arange(n)).all())

    def spread(self, values: Any, empty: Callable[[], Any]) -> Any:
        """Values of the batch's examples as values of all examples of X."""
        return self.completed(values, lambda i: empty())

    def completed(self, values: Any, other: Callable[[int], Any]) -> Any:
        """The same with the value of each other example by its number in X."""
        if self.kept is None:
            return values
        kept = dict(zip(self.kept.tolist(), values, strict=True))
        return [kept[i] if i in kept else other(i) for i in range(self.n_examples)]


@dataclass(frozen=True)
class InputReport:
    """What was strange about an input: (unknown features, all features), and columns without a value.

    unknown: None where it is not known before there are answers; those of the last answers count on.
    """

    unknown: Callable[[], tuple[int, int]] | None
    blank: Sequence[str] = ()


class Model(HasCosts, ABC):
    """One kind of output with its features. It is changed by `learn` alone."""

    #: Which estimator parameters it looks at when it predicts; they may be set after `fit`.
    late: ClassVar[tuple[str, ...]] = ()
    #: Names of the constraints that predictions take.
    constraints: ClassVar[tuple[str, ...]] = ()
    #: Abilities that its class has and this model has not: why.
    lacks: Mapping[Ability, str] = {}
    #: Whether its answers are made of labels, all of which `Training.classes` may say.
    takes_classes: ClassVar[bool] = False
    #: Whether what it makes of examples has its weights in it: examples are read again for other weights.
    reads_by_weights: ClassVar[bool] = False
    #: Whether its batches have access by features where a solver goes by those (`labelled`).
    has_columns: ClassVar[bool] = False
    _weights: Floats

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not isinstance(cls.constraints, tuple):
            raise TypeError(f"{cls.__name__}.constraints must be a tuple of names, got {cls.constraints!r}")

    @property
    def weights(self) -> Floats:
        """The weights, as a solver has them, of the features that it still has."""
        return self._weights

    # training

    @abstractmethod
    def learn(self, X: Any, y: Any, sample_weight: Any, training: Training) -> Learnt:
        """Choose vocabulary, labels and features from training data."""

    def __copy__(self) -> Self:
        """With all that it has; a pickle may leave out what is of use for training alone."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        return other

    def with_weights(self, weights: Floats) -> Self:
        """The model with the weights that a solver found for `learn`'s examples."""
        other = copy.copy(self)
        other._weights = weights
        return other

    def with_options(self, **options: Any) -> Self:
        """The model with other values of parameters that `late` names."""
        other = copy.copy(self)
        for name, value in options.items():
            setattr(other, name, value)
        other.check()
        return other

    def check(self) -> None:
        """ValueError for parameters that make no model."""

    def carried(self, old: Self) -> Floats | None:
        """Weights to start training from: those of a model of the same class where features agree, else 0."""
        raise NotImplementedError

    def joined(self, old: Self) -> Self:
        """This model, learnt from other data with at least the labels of the old one, with the old one's features too.

        No weights yet: `carried` gives them. NotAvailable where features are not of one kind.
        """
        raise NotImplementedError

    @property
    def l2_factor(self) -> float:
        """What the strength of the penalty is multiplied by."""
        return 1.0

    def further(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> LabelledBatch:
        """Examples to train a model further whose features are chosen (`partial_fit`): unknown ones are left out.

        ValueError naming an example whose answer it cannot give.
        """
        if self.label_cost is not None:
            raise NotAvailable(f"further examples with a cost: not available for {type(self).__name__}")
        reading = self.read(X, n_jobs)
        weight = check_sample_weight(sample_weight, reading.n_examples, "example")
        labellings, possible = self.encode(reading, y)
        if not np.all(possible):
            number = reading.numbers[int(np.flatnonzero(~np.asarray(possible))[0])]
            raise ValueError(f"y: example {number} has an answer that this model cannot give, such as an unknown label")
        return LabelledBatch(reading.batch, labellings, None if weight is None else weight[reading.numbers])

    # partitions: training data in files

    def feature_parameters(self) -> dict[str, Any]:
        """The estimator's parameters that decide which numbers examples become, by name: JSON values."""
        raise NotImplementedError

    def partitioner(self) -> Partitioner:
        """What learns this model from blocks of data."""
        raise NotImplementedError

    def encoded(self, parts: ModelParts) -> Encoded:
        """The examples that its partitioner encoded, from a file; ModelFormatError for arrays that are none."""
        raise NotImplementedError

    def labelled(self, encoded: Any, by_features: bool | None = False) -> LabelledBatch:
        """The batch of these examples. by_features: whether the solver goes by single features."""
        raise NotImplementedError

    def n_trained(self, size: Size) -> int:
        """How many examples `labelled` makes of so many."""
        return size.n_examples

    @property
    def aside(self) -> AsideSizes | None:
        """Sizes of a problem of its own that it solves before the others are trained, on each row; None without one."""
        return None

    def labelled_aside(self, encoded: Any) -> LabelledBatch:
        """The examples of that problem."""
        raise NotImplementedError

    def learn_aside(self, given: Model, problem: Callable[[Any], Problem], training: Training) -> tuple[Self, float]:
        """The model with that problem solved, and the seconds that it took.

        given: the model that the estimator made, with its parameters. problem: of a penalty.
        """
        raise NotImplementedError

    # prediction

    @abstractmethod
    def read(self, X: Any, n_jobs: int = 1) -> Reading:
        """Examples as a structure and features; ValueError that names the example for invalid input."""

    def shortcut(self, X: Any) -> Shortcut | None:
        """Examples for answers alone, without constraints, by a shorter way; None where there is none for this X."""
        return None

    @abstractmethod
    def decode(self, reading: Reading, which: Ints, labellings: Labellings, n_jobs: int = 1) -> Any:
        """Labellings in the user's terms: the k-th is one of example `which[k]` of the batch."""

    def label_numbers(self, reading: Reading, labellings: Labellings) -> Ints | None:
        """What `decode` says of one labelling per example as numbers in `classes`, end to end; None if it cannot be."""
        return None

    def best(self, reading: Reading, n_jobs: int = 1) -> Labellings:
        """The best labelling of each example of the batch."""
        return Labellings(*best_labellings(reading.batch, self.weights, n_jobs))

    def empty(self) -> Any:
        """The answer for an example that the batch does not have, if it is the same for all of them."""
        return []

    def left_out(self, reading: Reading, i: int) -> Any:
        """The answer for example i of X, which the batch does not have."""
        return self.empty()

    def encode(self, reading: Reading, y: Any) -> tuple[Labellings, Any]:
        """Answers as labellings of the batch's examples, and which of them are possible (boolean)."""
        raise NotImplementedError

    def labelled_reading(self, reading: Reading, gold: Labellings) -> LabelledBatch:
        """The reading's examples with these labellings, and with the costs that the model was trained with."""
        return LabelledBatch(reading.batch, gold, cost=self.slot_costs(reading.batch.structure, gold))

    def constrain(self, reading: Reading, *args: Any, **constraints: Any) -> None:
        """Put masks on the reading's structure, which no other reading has; `constraints` says by which arguments."""
        raise NotImplementedError

    def check_reading(self, reading: Reading) -> None:
        """Refuse examples that cannot be answered, by their numbers in X; called once constraints are in place."""
        return

    def marginals(self, reading: Reading, counts: Floats, *args: Any, **options: Any) -> Any:
        """Expected counts of slots, the batch's examples end to end, as probabilities in the user's terms."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, predicted: Any, sample_weight: Any) -> float:
        """How good predictions are, between 0 and 1: the share of examples with the right answer."""
        if len(y) != len(predicted):
            raise ValueError(f"X has {len(predicted)} examples but y has {len(y)}")
        if sample_weight is not None and np.shape(sample_weight) != (len(y),):
            raise ValueError(f"sample_weight has shape {np.shape(sample_weight)}, there are {len(y)} examples")
        right = np.array([bool(np.array_equal(a, b)) for a, b in zip(y, predicted, strict=True)])
        return float(np.average(right, weights=sample_weight))

    def report(self, reading: Reading, labellings: Labellings | None) -> InputReport | None:
        """What to remember of an input and its best labellings (None: not asked for, or not yet found), if anything."""
        return None

    # inspection

    def explain(self, reading: Reading, *args: Any, **place: Any) -> Explanation | Any:
        """Why the answer for the only example of a reading is what it is."""
        raise NotImplementedError

    def top_features(self, n: int = 10) -> Any:
        """The n largest weights by name, under each heading."""
        raise NotImplementedError

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[Self, tuple[int, int, float]]:
        """The model without small weights, and (weights before, weights after, the largest dropped)."""
        raise NotImplementedError

    def without_zeros(self) -> Self:
        """The model for a file: without weights that are zero, if they are many, and features that have no other."""
        if Ability.PRUNING not in self.abilities() or not few(self.weights):
            return self
        smaller, (before, after, _) = self.pruned(0.0, None)
        return smaller if after < DENSE * before else self  # others only pad the core's registers

    def attributes(self) -> dict[str, Any]:
        """What its estimator shows of it, by name (``classes_``, ...)."""
        return {}

    # model files

    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator that a file holds with the model, by name; used where those it has are None."""
        return {}

    def to_parts(self, parts: ModelParts) -> None:
        """Add all that prediction needs to the parts of a model file."""
        raise NotImplementedError

    def from_parts(self, parts: ModelParts) -> Self:
        """The inverse, checked: the model that `to_parts` wrote, with this one's parameters.

        `parts.version` is the version of the file's format.
        """
        raise NotImplementedError

    # abilities

    def abilities(self) -> frozenset[Ability]:
        """What it can do."""
        return frozenset(each for each in Ability if each not in self.lacks and all(map(self._writes, each.methods)))

    def needs(self, ability: Ability, what: str) -> None:
        """NotAvailable, with the reason, if it cannot do this."""
        if ability not in self.abilities():
            name = type(self).__name__
            missing = " or ".join(each for each in ability.methods if not self._writes(each))
            raise NotAvailable(
                self.lacks.get(ability) or f"{what}: not available for {name}, which has no method {missing}"
            )

    def _writes(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Model, method)
