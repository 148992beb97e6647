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
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from partwise.model_files.parts import ModelParts
from partwise.models.costs import CostTable, LabelCost
from partwise.models.features import DENSE, is_sparse
from partwise.models.labels import label_dicts
from partwise.problem import Batch, BatchReference, Executor, LabelledBatch, Problem
from partwise.problem.batch import Gold
from partwise.problem.capabilities import Capability
from partwise.problem.inference import ItemRows, NamedChain, best_labellings
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, ElasticNet, Free, Penalty
from partwise.solvers import Solver
from partwise.structures import Structure
from partwise.support.arrays import Booleans, Floats, Ints, pointers
from partwise.support.checks import check_sample_weight, check_sums
from partwise.support.lazy import cached_property

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from partwise.models.partition import EncodedTables, Partitioner, Size

    SourceT = TypeVarWithDefault("SourceT", default=Any)
else:
    SourceT = TypeVar("SourceT")
ValueT = TypeVar("ValueT")
StructureT = TypeVar("StructureT", bound=Structure)


class NotAvailable(ValueError, AttributeError):
    """The error for what a model, a structure or a loss cannot do."""


class Ability(Enum):
    """An optional feature of models; the value is the method that a model writes for it."""

    MARGINALS = "marginals"
    ENCODING = "encode"
    CONSTRAINTS = "constrain"
    EXPLANATIONS = "explain"
    TOP_FEATURES = "top_features"
    PRUNING = "pruned"
    WARM_START = "carried"
    FILES = "to_parts"
    PARTITIONS = "partitioner"
    PARTIAL_FIT = "further"
    GROWTH = "joined"

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that a model has to write for it."""
        others = {Ability.FILES: ("to_parts", "from_parts"), Ability.PARTIAL_FIT: ("encode",)}
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
    classes: ArrayLike | None = None

    @property
    def penalty(self) -> Penalty:
        return ElasticNet(self.l1, self.l2, self.free) if self.l1 else L2(self.l2, self.free)

    def penalty_of(self, C: float) -> Penalty:
        """Return the penalty of another C, with the same shares of |w|_1 and |w|^2."""
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
    """The training examples and what a solver needs to know of them, as `Model.learn` returns them.

    Parameters
    ----------
    examples : LabelledBatch, or sequence of BatchReference
    shape : tuple
        What labellings depend on besides the numbers of slots; a warm start uses the dual point of a fit with the same.
    l2_factor : float
        The penalty's strength is multiplied by this factor.
    free : Free, optional
        Weights that are not penalised.
    seconds : float
        Time that the model spent on training something itself.
    reading : Reading, optional
        The training data as `Model.read` would return them, with the training batch; None if predictions need another
        batch, or examples were left out.
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
        return [self.examples] if isinstance(self.examples, LabelledBatch) else self.examples


class EncodedData(ABC):
    """Training data that a model has encoded before, in batches; `fit` takes them in place of X and y."""

    @abstractmethod
    def learn(self, model: Model, training: Training) -> tuple[Model, Learnt]:
        """Return the model that encoded the data, and its batches; ValueError unless they fit this untrained model."""


class AsideSizes(NamedTuple):
    """Sizes of the problem `Model.aside`: labels of each row, and weights."""

    n_labels: int
    n_weights: int


class Labellings(NamedTuple):
    """Labellings, concatenated: the k-th uses slots[indptr[k]:indptr[k + 1]], each `counts` times."""

    indptr: Ints
    slots: Ints
    counts: Floats

    @classmethod
    def of(cls, found: Sequence[tuple[Ints, Floats]]) -> Labellings:
        """Make labellings from (slots, counts) of each."""
        none = np.empty(0, dtype=np.int64), np.empty(0)
        slots, counts = (np.concatenate(parts) for parts in zip(none, *found, strict=True))
        return cls(pointers([len(each) for each, _ in found]), slots, counts)

    @classmethod
    def of_slots(cls, found: Sequence[ArrayLike]) -> Labellings:
        """Make labellings from the slots of each, which are used once."""
        slots = [np.asarray(each, dtype=np.int64) for each in found]
        return cls.of([(each, np.ones(len(each))) for each in slots])

    def choices(self, lengths: Ints, widths: Ints | int) -> Ints:
        """Return the column that each row has, of labellings whose slots begin with `lengths` rows of columns."""
        sizes = np.broadcast_to(widths, lengths.shape)
        owner = np.repeat(np.arange(len(lengths)), np.diff(self.indptr))
        used = self.slots < (lengths * sizes)[owner]
        row, column = np.divmod(self.slots[used], sizes[owner[used]])
        found = np.empty(int(lengths.sum()), dtype=np.int64)
        found[pointers(lengths)[owner[used]] + row] = column
        return found


class Reading(Generic[SourceT]):
    """Examples as a model has read them.

    Parameters
    ----------
    batch : Batch or a function that returns one
        Structure and features of the examples that need inference. A function is called when the batch is first used.
    n_examples : int
        Number of examples in X.
    kept : array of int, optional
        The numbers in X, ascending, of the batch's examples; None for all. Every other example has one answer,
        `Model.left_out`. `numbers` is the same and never None.
    source : optional
        What the model needs to answer in the user's terms.
    failed : array of int, optional
        The numbers of the examples that have no answer: every labelling of them has probability 0.
    """

    def __init__(
        self,
        batch: Batch | Callable[[], Batch],
        n_examples: int,
        kept: Ints | None = None,
        source: SourceT = None,  # type: ignore[assignment]
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

    def structure(self, kind: type[StructureT]) -> StructureT:
        """The structure of the batch, which is of this kind."""
        found = self.batch.structure
        assert isinstance(found, kind)
        return found

    @property
    def numbers(self) -> Ints:
        """The number in X of each example of the batch."""
        return np.arange(self.n_examples) if self.kept is None else self.kept

    def once_each(self, which: Ints) -> bool:
        """Return whether these are all examples of the batch, in their order."""
        n = self.batch.n_examples
        return len(which) == n and bool((which == np.arange(n)).all())

    def spread(self, values: list[ValueT], empty: Callable[[], ValueT]) -> list[ValueT]:
        """Return a value for every example of X: those given for the batch's examples, `empty()` for the others."""
        return self.completed(values, lambda i: empty())

    def completed(self, values: list[ValueT], other: Callable[[int], ValueT]) -> list[ValueT]:
        """Return a value for every example of X: those given for the batch's examples, `other(number)` elsewhere."""
        if self.kept is None:
            return values
        kept = dict(zip(self.kept.tolist(), values, strict=True))
        return [kept[i] if i in kept else other(i) for i in range(self.n_examples)]


@dataclass(frozen=True)
class InputReport:
    """Counts of (unknown features, all features) of an input, None before answers, and its columns without a value."""

    unknown: Callable[[], tuple[int, int]] | None
    blank: Sequence[str] = ()


class Shortcut:
    """Sequences that one call of the core answers, to the same bits: for single examples, making batches is slow."""

    def __init__(self, chain: NamedChain, labels: list[Hashable], rows: ItemRows) -> None:
        self._chain, self._labels, self._rows = chain, labels, rows
        #: (unknown features, all features) of the examples.
        self.unknown = rows.unknown

    def best(self, n_jobs: int = 1) -> list[list[Hashable]]:
        """Return what `Model.decode` gives for the best labellings."""
        return self._chain.best(self._rows, n_jobs)

    def marginals(self, temperature: float, n_jobs: int = 1, output: str = "dict") -> list[Any]:
        """Return what `Model.marginals` gives for the expected counts at this temperature."""
        marginals, values = self._chain.sums(self._rows, temperature, n_jobs)
        check_sums(values)
        return label_dicts(marginals, self._labels, output)


class Model(ABC, Generic[SourceT]):
    """One kind of output with its features. Only `learn` changes it."""

    #: Estimator parameters that predictions look at; they may be set after `fit`.
    late: ClassVar[tuple[str, ...]] = ()
    #: Names of the constraints that predictions take.
    constraints: ClassVar[tuple[str, ...]] = ()
    #: Why this model lacks abilities that its class has.
    lacks: Mapping[Ability, str] = {}
    #: Whether its answers are made of labels, all of which `Training.classes` may name.
    takes_classes: ClassVar[bool] = False
    #: Whether batches depend on the weights, so that examples are read again for other weights.
    reads_by_weights: ClassVar[bool] = False
    #: Whether `labelled` can make batches with access to single features.
    has_columns: ClassVar[bool] = False
    #: The user's costs, and those it was trained with; None: the structure's costs are used.
    label_cost: LabelCost | None = None
    cost_table: CostTable | None = None
    _weights: Floats

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        if not isinstance(cls.constraints, tuple):
            raise TypeError(f"{cls.__name__}.constraints must be a tuple of names, got {cls.constraints!r}")

    @property
    def weights(self) -> Floats:
        """The weights of the features that it still has, in a solver's order."""
        return self._weights

    # training

    @abstractmethod
    def learn(self, X: object, y: object, sample_weight: object, training: Training) -> Learnt:
        """Choose vocabulary, labels and features from training data."""

    def __copy__(self) -> Self:
        """Copy every attribute, also those that a pickle leaves out because only training needs them."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self))
        return other

    def with_weights(self, weights: Floats) -> Self:
        """Return the model with the weights that a solver found for `learn`'s examples."""
        other = copy.copy(self)
        other._weights = weights
        return other

    def with_options(self, **options: object) -> Self:
        """Return the model with other values of parameters that `late` names."""
        other = copy.copy(self)
        vars(other).update(options)
        other.check()
        return other

    def check(self) -> None:
        """Raise ValueError for invalid parameters."""

    def carried(self, old: Self) -> Floats | None:
        """Return weights to start training from: those of another model of the class where features agree, else 0."""
        raise NotImplementedError

    def joined(self, old: Self) -> Self:
        """Return this model, which has all labels of an old one, with the old one's features added, without weights.

        `carried` gives the weights. NotAvailable if the features are of different kinds.
        """
        raise NotImplementedError

    @property
    def l2_factor(self) -> float:
        """What the strength of the penalty is multiplied by."""
        return 1.0

    def further(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> LabelledBatch:
        """Return examples for `partial_fit`, without unknown features; ValueError for an answer that is impossible."""
        if self.label_cost is not None:
            raise NotAvailable(f"further examples with a cost: not available for {type(self).__name__}")
        reading = self.read(X, n_jobs)
        weight = check_sample_weight(sample_weight, reading.n_examples, "example")
        labellings, possible = self.encode(reading, y)
        if not np.all(possible):
            number = reading.numbers[int(np.flatnonzero(~np.asarray(possible))[0])]
            raise ValueError(f"y: example {number} has an answer that this model cannot give, such as an unknown label")
        return LabelledBatch(reading.batch, labellings, None if weight is None else weight[reading.numbers])

    # costs

    def check_cost(self, loss: Loss) -> None:
        """Raise ValueError if costs are given that the loss does not use."""
        if self.label_cost is not None and not loss.cost_scale:
            raise ValueError(f"cost is not used by loss={loss.name!r}, whose cost_scale is 0")

    def costs_of(self, labels: Sequence[Hashable]) -> Floats | None:
        """Return and remember the user's costs, a row per gold label; ValueError for costs of other labels."""
        if self.label_cost is None:
            return None
        self.cost_table = CostTable(labels, self.label_cost.table(labels))
        return self.cost_table.values

    def slot_costs(self, structure: Any, gold: Gold) -> Floats | None:
        """Return the user's costs of all slots where these labellings are right; None: use the structure's costs."""
        return None

    # partitions: training data in files

    def feature_parameters(self) -> dict[str, object]:
        """Return the estimator's parameters that decide which numbers examples become, by name: JSON values."""
        raise NotImplementedError

    def partitioner(self) -> Partitioner:
        """Return what learns this model from blocks of data."""
        raise NotImplementedError

    def encoded(self, parts: ModelParts) -> EncodedTables:
        """Return the examples that its partitioner encoded, from a file; ModelFormatError for invalid arrays."""
        raise NotImplementedError

    def labelled(self, encoded: Any, by_features: bool | None = False) -> LabelledBatch:
        """Return the batch of these examples. by_features: whether the solver goes by single features."""
        raise NotImplementedError

    def n_trained(self, size: Size) -> int:
        """Return how many examples `labelled` makes of so many."""
        return size.n_examples

    @property
    def aside(self) -> AsideSizes | None:
        """Sizes of a smaller problem that it solves on each row before the main one; None without one."""
        return None

    def labelled_aside(self, encoded: Any) -> LabelledBatch:
        """Return the examples of the smaller problem."""
        raise NotImplementedError

    def learn_aside(self, given: Self, problem: Callable[[Penalty], Problem], training: Training) -> tuple[Self, float]:
        """Solve the smaller problem; return the model with its weights, and the seconds that it took.

        given: the estimator's untrained model, with its parameters. problem: makes the problem for a penalty.
        """
        raise NotImplementedError

    # prediction

    @abstractmethod
    def read(self, X: object, n_jobs: int = 1) -> Reading[SourceT]:
        """Return examples as a structure and features; ValueError names the example for invalid input."""

    def shortcut(self, X: object) -> Shortcut | None:
        """Return examples in a form that answers alone need, without constraints; None if this X has no such form."""
        return None

    @abstractmethod
    def decode(self, reading: Reading[SourceT], which: Ints, labellings: Labellings, n_jobs: int = 1) -> Any:
        """Return labellings in the user's terms: the k-th is one of example `which[k]` of the batch."""

    def label_numbers(self, reading: Reading[SourceT], labellings: Labellings) -> Ints | None:
        """Return one labelling per example as numbers in `classes`, concatenated; None if labels have no numbers."""
        return None

    def best(self, reading: Reading[SourceT], n_jobs: int = 1) -> Labellings:
        """Return the best labelling of each example of the batch."""
        return Labellings(*best_labellings(reading.batch, self.weights, n_jobs))

    def empty(self) -> Any:
        """Return the answer for an example that the batch does not have, if all of them have the same."""
        return []

    def left_out(self, reading: Reading[SourceT], i: int) -> Any:
        """Return the answer for example i of X, which the batch does not have."""
        return self.empty()

    def encode(self, reading: Reading[SourceT], y: object) -> tuple[Labellings, Booleans]:
        """Return answers as labellings of the batch's examples, and which of them are possible."""
        raise NotImplementedError

    def labelled_reading(self, reading: Reading[SourceT], gold: Labellings) -> LabelledBatch:
        """Return the reading's examples with these labellings, and with the costs that the model was trained with."""
        return LabelledBatch(reading.batch, gold, cost=self.slot_costs(reading.batch.structure, gold))

    def constrain(self, reading: Reading[SourceT], *args: Any, **constraints: Any) -> None:
        """Put masks on the reading's structure, which no other reading shares; `constraints` names the arguments."""
        raise NotImplementedError

    def check_reading(self, reading: Reading[SourceT]) -> None:
        """Refuse examples that cannot be answered, by their numbers in X; called once constraints are in place."""

    def marginals(self, reading: Reading[SourceT], counts: Floats, *args: Any, **options: Any) -> Any:
        """Return expected counts of slots, the examples' blocks concatenated, as probabilities in the user's terms."""
        raise NotImplementedError

    def score(self, X: object, y: Any, predicted: Any, sample_weight: Any) -> float:
        """Return how good predictions are, between 0 and 1: the share of examples with the right answer."""
        if len(y) != len(predicted):
            raise ValueError(f"X has {len(predicted)} examples but y has {len(y)}")
        if sample_weight is not None and np.shape(sample_weight) != (len(y),):
            raise ValueError(f"sample_weight has shape {np.shape(sample_weight)}, there are {len(y)} examples")
        right = np.array([bool(np.array_equal(a, b)) for a, b in zip(y, predicted, strict=True)])
        return float(np.average(right, weights=sample_weight))

    def report(self, reading: Reading[SourceT], labellings: Labellings | None) -> InputReport | None:
        """Return what to remember of an input and its best labellings (None: not asked for, or not yet found)."""
        return None

    # inspection

    def explain(self, reading: Reading[SourceT], *args: Any, **place: Any) -> Any:
        """Return why the answer for the only example of a reading is what it is."""
        raise NotImplementedError

    def top_features(self, n: int = 10) -> Any:
        """Return the n largest weights by name, under each heading."""
        raise NotImplementedError

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[Self, tuple[int, int, float]]:
        """Return the model without small weights, and (weights before, weights after, the largest dropped)."""
        raise NotImplementedError

    def without_zeros(self) -> Self:
        """Return the model for a file: if many weights are zero, without those and the features that have no other."""
        if Ability.PRUNING not in self.abilities() or not is_sparse(self.weights):
            return self
        smaller, (before, after, _) = self.pruned(0.0, None)
        return smaller if after < DENSE * before else self  # others only pad the core's registers

    def attributes(self) -> dict[str, object]:
        """Return what its estimator shows of it, by name (``classes_``, ...)."""
        return {}

    # model files

    def parameters(self) -> dict[str, object]:
        """Return parameters that a file holds with the model, by name; they replace None in the estimator's."""
        return {}

    def to_parts(self, parts: ModelParts) -> None:
        """Add all that prediction needs to the parts of a model file."""
        raise NotImplementedError

    def from_parts(self, parts: ModelParts) -> Self:
        """Return the model that `to_parts` wrote in the format `parts.version`, checked, with this one's parameters."""
        raise NotImplementedError

    # abilities

    def abilities(self) -> frozenset[Ability]:
        """Return what it can do."""
        return frozenset(each for each in Ability if each not in self.lacks and all(map(self._writes, each.methods)))

    def needs(self, ability: Ability, what: str) -> None:
        """Raise NotAvailable, with the reason, if it cannot do this."""
        if ability not in self.abilities():
            name = type(self).__name__
            missing = " or ".join(each for each in ability.methods if not self._writes(each))
            raise NotAvailable(
                self.lacks.get(ability) or f"{what}: not available for {name}, which has no method {missing}"
            )

    def _writes(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Model, method)
