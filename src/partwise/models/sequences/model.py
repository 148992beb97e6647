"""What the models of sequences share: reading, labels, constraints, marginals, scores. What differs is the features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from partwise.features.presets import preset_for
from partwise.features.template import Template
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import decode_labels, encode_labels
from partwise.models import inspection
from partwise.models import labels as user_labels
from partwise.models.base import Ability, InputReport, Labellings, Learnt, Model, Reading, Training
from partwise.models.constraints import ConstraintError
from partwise.models.costs import LabelCost, row_costs
from partwise.models.features import Rows, look_up
from partwise.models.inspection import Contribution, Explanation, Named, TopFeatures
from partwise.models.labels import LabelArray, LabelSequence, Targets
from partwise.models.partition import AttributeCounts, ChangedData, EncodedRows, EncodedTables, Partitioner
from partwise.models.readers import ColumnReader, NameReader, Reader, Sequences, check_known, input_form, read_reader
from partwise.models.sequences import constraints as rules
from partwise.models.sequences import template_reader as templates
from partwise.models.sequences.template_reader import TemplateReader, TextSequences
from partwise.problem import Batch, LabelledBatch
from partwise.problem.batch import Gold
from partwise.structures import Chain, HistoryChain, Multiclass, SecondOrderChain, Structure
from partwise.support.arrays import Booleans, Floats, Ints
from partwise.support.checks import check_choice, check_count, check_sample_weight
from partwise.support.memory import LITTLE, available, check_weights

READERS: tuple[type[Reader], ...] = ColumnReader, NameReader, TemplateReader
#: A model of more attributes is read by two threads.
MANY_NAMES = 10_000

#: Structures whose slots begin with a row of labels per position.
LabelChain: TypeAlias = Chain | SecondOrderChain | HistoryChain
#: Score, slots and counts of a labelling.
Found: TypeAlias = tuple[float, Ints, Floats]


@dataclass(frozen=True)
class SequenceSource:
    """The lengths of all sequences, and the rows and the rule of those that have positions."""

    lengths: Ints
    rows: Rows
    rule: rules.LabelRule | None = None  # what the structure was told of neighbouring labels


SequenceReading: TypeAlias = Reading[SequenceSource]


@dataclass(eq=False, repr=False, kw_only=True)
class SequenceModel(Model[SequenceSource]):
    """Labels of every position of a sequence. Parameters: see `SequenceTagger`."""

    constraints: ClassVar[tuple[str, ...]] = ("allowed", "allowed_transitions")
    late: ClassVar[tuple[str, ...]] = ("legal",)
    takes_classes: ClassVar[bool] = True
    #: The name of the model's features in model files.
    kind: ClassVar[str]
    #: Whether dense rows stay dense, as kernels compare whole rows. Other models may store dense rows as sparse ones.
    dense: ClassVar[bool] = False
    #: Whether `legal` can restrict answers to the scheme of chunk labels; answers of segment models always keep to it.
    ruled: ClassVar[bool] = False

    template: Template | None
    features: str
    min_count: int
    legal: bool | str = "auto"
    cost: InitVar[object] = None
    class_weight: object = None

    classes: LabelArray = field(init=False)
    reader: Reader = field(init=False)
    label_scheme: str | None = field(init=False, default=None)  # of chunk labels, if the training data keep to one

    def __post_init__(self, cost: object) -> None:
        given: object = self.template  # a name, too
        self.preset = given if isinstance(given, str) else None
        self.template = None if given is None else templates.get_template(given)
        self._suited = self.preset is None  # whether the template is the one that suits the data
        if self.class_weight is not None:
            self.lacks = {**self.lacks, Ability.PARTITIONS: "class_weight of taggers: not available with partitions"}
        self.label_cost = LabelCost.of(cost)
        self.check()
        self.min_count = int(self.min_count)

    def check(self) -> None:
        check_choice("features", self.features, ("observed", "all"))
        check_count("min_count", self.min_count)
        if self.legal != "auto" and not isinstance(self.legal, bool):
            raise ValueError(f"legal must be 'auto', True or False, got {self.legal!r}")

    @property
    def n_labels(self) -> int:
        return len(self.classes)

    @property
    def label_names(self) -> tuple[Any, ...]:
        return tuple(self.classes.tolist())

    @property
    def observed(self) -> bool:
        """Whether weights are for pairs of an attribute and a label that occur together."""
        return self.features == "observed"

    @property
    def label_table(self) -> int:
        """Number of entries of a table of the labels and their neighbours."""
        return 0

    def learn(self, X: object, y: object, sample_weight: object, training: Training) -> Learnt:
        sequences, targets, weight, n_sequences = self.training_sequences(X, y, sample_weight, training.classes)
        self.use_labels(user_labels.all_labels(targets.classes(), training.classes))
        labels = targets.encode(self.classes)
        user_labels.warn_of_many_labels(np.bincount(labels, minlength=self.n_labels), self.label_table)
        if self.ruled:
            of = labels, sequences.lengths(), sequences.numbers
            self.label_scheme = rules.kept_scheme(self.label_names, *of, warn=self.legal == "auto")
        self.costs_of(self.cost_labels())  # an error for those of other labels, too
        rows = self._first_reading(sequences, training.n_jobs)
        learnt = self._learn_features(rows, labels, weight, training)
        return replace(learnt, reading=learnt.reading if len(rows.lengths) == n_sequences else None)

    def cost_labels(self) -> LabelSequence:
        return list(self.label_names)

    def further(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> LabelledBatch:
        # training knows no rule about neighbouring labels
        free = self.with_options(legal=False) if self.ruled else self
        if self.class_weight is not None:
            targets = Targets.of(y)
            weight = check_sample_weight(sample_weight, len(targets.items))
            sample_weight = user_labels.sequence_weights(self.class_weight, targets, weight, self.classes)
        return super(SequenceModel, free).further(X, y, sample_weight, n_jobs)

    def training_sequences(
        self, X: object, y: object, sample_weight: object, classes: ArrayLike | None = None
    ) -> tuple[Sequences, Targets, Floats | None, int]:
        """Return sequences with positions and weight, their labels and weights, and how many sequences X has."""
        sequences = Sequences.of(X) if self.template is None else TextSequences.of(X)
        targets = Targets.of(y)
        if not len(sequences.items):
            raise ValueError("X holds no sequences")
        lengths, n_sequences = sequences.lengths(), len(sequences.items)
        targets.check(lengths)
        weight = check_sample_weight(sample_weight, n_sequences)
        kept = np.flatnonzero(lengths)
        if not len(kept):
            raise ValueError("X holds no sequences with positions")
        if len(kept) < n_sequences:
            sequences, targets = sequences.take(kept), targets.take(kept)
            weight = None if weight is None else weight[kept]
        if self.class_weight is not None:
            given = None if classes is None else user_labels.all_labels(targets.classes(), classes)
            weight = user_labels.sequence_weights(self.class_weight, targets, weight, given)
        if weight is not None and not weight.all():
            keep, before = np.flatnonzero(weight), targets.classes()
            sequences, targets, weight = sequences.take(keep), targets.take(keep), weight[keep]
            if classes is None and self.class_weight is not None:
                user_labels.warn_of_gone(before, targets.classes())
        return sequences, targets, weight, n_sequences

    def _first_reading(self, sequences: Sequences, n_jobs: int) -> Rows:
        """Choose the reader that matches the form of the input, and let it learn the attributes."""
        self.reader = self.suitable_reader(sequences)
        rows = self.reader.read(sequences, self.rarest, n_jobs)
        check_known(self.reader, self.rarest)
        return rows if self.reader.named or self.dense else rows.compact()

    def use_labels(self, classes: LabelArray) -> None:
        """Label positions by these; ValueError for one label, TooLarge for too many."""
        self.classes = classes
        if len(classes) < 2:
            raise ValueError(f"y holds one label only ({classes.tolist()[0]!r}): there is nothing to learn")
        check_weights(self.label_table, f"a table of {self.n_labels:,} labels with their neighbours")
        if self.legal is True:
            self.kept_scheme()  # an error for labels of no scheme, before the work

    def suitable_reader(self, sequences: Sequences) -> Reader:
        """Return a reader that matches the form of the input; it has read nothing yet."""
        if self.template is not None:
            if not self._suited and self.preset is not None and isinstance(sequences, TextSequences):
                self._suited = True  # by the first block, if there are several
                self.template = preset_for(self.preset, sequences.table)
                templates.warn_of_columns(self.preset, self.template, sequences.table.n_columns)
            return TemplateReader(self.template)
        return NameReader() if input_form(sequences) == "names" else ColumnReader()

    @property
    def rarest(self) -> int:
        """How often an attribute with a name must occur to be known."""
        return 1 if self.observed else self.min_count

    @abstractmethod
    def _learn_features(self, rows: Rows, labels: Ints, weight: Floats | None, training: Training) -> Learnt:
        """Choose features from training rows and their labels, and make the examples to train on."""

    def new_counts(self) -> Any:
        """Return empty counts: labels and attributes are known."""
        raise NotImplementedError

    def scan_block(self, sequences: Sequences, targets: Targets) -> None:
        """Find what else must be known of all blocks before features are counted: here, nothing."""

    def encode_block(
        self, counts: Any, given: tuple[Sequences, Targets], rows: Rows, labels: Ints, weight: Floats | None
    ) -> EncodedTables:
        """Count the features of a block, and return it as numbers; given: what rows and labels were made of."""
        counts.add(rows, labels)
        return EncodedRows.of(rows, labels, weight)

    def use_features(self, counts: Any) -> None:
        """Choose features by the counts of all blocks."""
        raise NotImplementedError

    def training_structure(self, encoded: Any) -> Structure:
        """Return the structure of encoded examples, before features are chosen."""
        return self.structure(encoded.rows.lengths)

    def partitioner(self) -> Partitioner:
        return SequencePartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedTables:
        return EncodedRows.from_parts(parts, self.reader.n_attributes, self.n_labels)

    def _examples(self, batch: Batch, labels: Ints, weight: Floats | None) -> LabelledBatch:
        structure = batch.structure
        assert isinstance(structure, LabelChain | Multiclass)
        gold = structure.encode(labels)
        return LabelledBatch(batch, gold, weight, self.slot_costs(structure, gold))

    def slot_costs(self, structure: Structure, gold: Gold) -> Floats | None:
        table = self.costs_of(self.cost_labels())
        if table is None:
            return None
        assert isinstance(structure, LabelChain)
        return row_costs(structure.slot_offsets(), structure.lengths, structure.width, structure.decode(*gold), table)

    def feature_parameters(self) -> dict[str, object]:
        template = self.template
        found: dict[str, object] = {"features": self.features, "min_count": self.min_count}
        found["template"] = self.preset if template is None or self.preset is not None else template.text
        found["clusters and gazetteers"] = None if template is None else templates.lists_digest(template)
        return found

    @abstractmethod
    def batch(self, rows: Rows) -> Batch:
        """Return structure and features of rows, each of which is visited once; no sequence is empty."""

    def read(self, X: object, n_jobs: int = 1) -> SequenceReading:
        rows = self._read_rows(self.reader.sequences(X), n_jobs)
        lengths, kept = rows.lengths, np.flatnonzero(rows.lengths)
        some = replace(rows, lengths=lengths[kept])
        batch, rule = self.batch(some), self.kept_rule()
        if rule is not None:
            rule.put_on(batch.structure)
        return Reading(batch, len(lengths), kept, SequenceSource(lengths, some, rule))

    def _training_reading(self, batch: Batch, rows: Rows) -> SequenceReading | None:
        """Return what `read` would of the training rows, which `batch` has; None if answers need more than that."""
        if rows.unknown[0]:  # `report` would have to count those of each sequence
            return None
        # without the attributes, which the batch has in a form of its own
        light = Rows(rows.lengths, rows.n_attributes, np.empty((0, rows.n_attributes)))
        rule = self.kept_rule()
        if rule is not None:  # for answers, not for training
            batch = Batch(self.structure(rows.lengths), batch.features)
            rule.put_on(batch.structure)
        return Reading(batch, len(rows.lengths), source=SequenceSource(rows.lengths, light, rule))

    def structure(self, lengths: Ints) -> Structure:
        raise NotImplementedError

    def _read_rows(self, sequences: Sequences, n_jobs: int) -> Rows:
        return self.reader.read(sequences, n_jobs=n_jobs)

    def kept_rule(self) -> rules.LabelRule | None:
        """Return the rule that predictions keep to, by `legal` and the training labels."""
        scheme = self.kept_scheme()
        return None if scheme is None else rules.rule_of(scheme, self.label_names)

    def kept_scheme(self) -> str | None:
        """Return the scheme that predictions keep to; ValueError if `legal` asks for one and labels have none."""
        if self.legal is not True:
            return self.label_scheme if self.legal else None
        scheme = rules.scheme_of(self.label_names)
        if scheme is None:
            forms = "O, B-x, I-x, nor those with E-x and S-x"
            raise ValueError(f"legal=True: the labels are not {forms}: {self.label_names[:20]}")
        return scheme

    def _structure(self, reading: SequenceReading) -> LabelChain:
        structure = reading.batch.structure
        assert isinstance(structure, LabelChain)
        return structure

    def labels_of(self, reading: SequenceReading, which: Ints, labellings: Labellings) -> Ints:
        """Return the labels of all positions of these labellings: slots begin with a row of labels per position."""
        if reading.once_each(which):
            return self._structure(reading).decode(*labellings)
        return labellings.choices(reading.source.rows.lengths[which], self._structure(reading).width)

    def label_numbers(self, reading: SequenceReading, labellings: Labellings) -> Ints | None:
        return self.labels_of(reading, np.arange(reading.batch.n_examples), labellings)

    def decode(
        self, reading: SequenceReading, which: Ints, labellings: Labellings, n_jobs: int = 1
    ) -> list[LabelSequence]:
        return user_labels.label_lists(
            self.labels_of(reading, which, labellings), self.classes, reading.source.rows.lengths[which]
        )

    def encode(self, reading: SequenceReading, y: object) -> tuple[Labellings, Booleans]:
        lengths = reading.source.lengths
        labels = Targets.of(y).check(lengths).encode(self.classes)
        possible = np.ones(reading.batch.n_examples, dtype=bool)
        possible[np.repeat(np.arange(len(possible)), reading.source.rows.lengths)[labels < 0]] = False
        known = np.maximum(labels, 0)
        if reading.source.rule is not None:
            possible &= reading.source.rule.allows(known, reading.source.rows.lengths)
        return Labellings(*self._structure(reading).encode(known)), possible

    def constrain(self, reading: SequenceReading, allowed: object = None, allowed_transitions: object = None) -> None:
        """Put the user's constraints on the structure; `SequenceTagger` describes them."""
        n_labels, structure = self.n_labels, self._structure(reading)
        rule = rules.transition_rule(allowed_transitions, self.classes)
        rows = rules.label_masks(allowed, reading.source.lengths, self.classes)
        if rule is not None:
            rule = rule & reading.source.rule
            rule.put_on(structure)  # each sequence's mask is checked together with it
            reading.source = replace(reading.source, rule=rule)
        for i, number in enumerate(reading.numbers.tolist()):
            if rows[number] is None and rule is None:
                continue
            mask = np.ones(structure.num_slots(i), dtype=np.uint8)
            length = int(reading.source.rows.lengths[i])
            if rows[number] is not None:
                mask[: length * structure.width].reshape(length, -1)[:, :n_labels] = rows[number]
            try:
                structure.set_mask(i, mask)
            except ValueError as error:
                raise rules.no_labelling(number, error, self.kept_scheme() is not None) from None

    def rows_of_labels(self, reading: SequenceReading, values: Floats) -> list[Floats]:
        """Return the values of labels, (length, n_labels) per sequence, of all examples' slots."""
        structure, n_labels = self._structure(reading), self.n_labels
        width, starts = structure.width, structure.slot_offsets().tolist()
        rows = [
            values[start : start + n * width].reshape(n, width)[:, :n_labels].copy()
            for start, n in zip(starts, reading.source.rows.lengths.tolist(), strict=False)
        ]
        return reading.spread(rows, lambda: np.empty((0, n_labels)))

    def marginals(self, reading: SequenceReading, counts: Floats, output: str = "dict") -> list[Any]:
        """Return dicts {label: probability} per position, or arrays of shape (length, n_labels)."""
        return user_labels.label_dicts(self.rows_of_labels(reading, counts), self.classes.tolist(), output)

    def score(self, X: object, y: object, predicted: object, sample_weight: object) -> float:
        """Return the share of positions with the right answer; a label that was not in the training data is wrong."""
        found = Targets.of(predicted)
        lengths = found.lengths()
        right = self._right(Targets.of(y).check(lengths), found, lengths)
        weight = check_sample_weight(sample_weight, len(lengths))
        each = np.repeat(np.ones(len(lengths)) if weight is None else weight, lengths)
        if not each.any():
            raise ValueError("there is no position to score")
        return float(np.average(right, weights=each))

    def _right(self, truth: Targets, found: Targets, lengths: Ints) -> Booleans:
        return cast(Booleans, truth.encode(self.classes) == found.encode(self.classes))

    def report(self, reading: SequenceReading, labellings: Labellings | None) -> InputReport:
        unknown = reading.source.rows.unknown
        return InputReport(lambda: unknown)

    def contrast(
        self, reading: SequenceReading, position: int | None = None, label: Hashable = None, against: Hashable = None
    ) -> tuple[Found, Found]:
        """Return two labellings of a reading's only sequence to tell apart.

        Without a position the two best. Else the best that has the label there (None: the best of all), and the best
        that has the other one there (None: any other label).
        """
        length = int(reading.source.lengths[0])
        if not length:
            raise ValueError("a sequence without positions has nothing to explain")
        structure = reading.batch.structure
        scores = reading.batch.features.scores(0, self.weights)
        if position is None:
            if label is not None or against is not None:
                raise ValueError("explain: label and against are for one position, which is missing")
            if len(both := structure.k_best(0, scores, 2)) < 2:
                raise ValueError("the sequence has one labelling: there is nothing to compare it with")
            return both[0], both[1]
        if isinstance(position, bool) or not isinstance(position, (int, np.integer)) or not 0 <= position < length:
            raise ValueError(f"explain: position must be between 0 and {length - 1}, got {position!r}")
        classes = self.classes.tolist()
        for name, given in (("label", label), ("against", against)):
            if given is not None and given not in classes:
                raise ValueError(f"explain: {name}: the label {given!r} was not in the training data")

        def best(labels: list[Hashable]) -> Found:
            allowed: list[list[Hashable] | None] = [None] * length
            allowed[int(position)] = labels
            try:
                self.constrain(reading, allowed=[allowed])
            except ConstraintError:
                what = repr(labels[0]) if len(labels) == 1 else "another label"
                message = f"explain: no labelling that is allowed has {what} at position {position}"
                raise ConstraintError(message, 0) from None
            return structure.k_best(0, scores, 1)[0]

        one = structure.k_best(0, scores, 1)[0] if label is None else best([label])
        chosen = classes[self.label_rows(reading, [one])[0, position]]
        if against is not None and chosen == against:
            what = f"position {position} has the label {against!r} itself"
            raise ValueError(f"explain: {what}; give another one, or a label")
        return one, best([each for each in classes if each != chosen] if against is None else [against])

    def label_rows(self, reading: SequenceReading, found: Sequence[Found]) -> Ints:
        """Return the labels of labellings of a reading's only sequence, a row for each of them."""
        labellings = Labellings.of([(slots, counts) for _, slots, counts in found])
        return self.labels_of(reading, np.zeros(len(found), dtype=np.int64), labellings).reshape(len(found), -1)

    def explain(self, reading: SequenceReading, position: int | None = None, *asked: Hashable) -> Explanation:
        found = self.contrast(reading, position, *asked)
        one, two = self.label_rows(reading, found)
        best, second = (self.classes[labels].tolist() for labels in (one, two))
        scores = found[0][0], found[1][0]
        return inspection.explanation(best, second, scores, self.contributions(reading, one, two), position)

    def contributions(self, reading: SequenceReading, one: Ints, two: Ints) -> list[Contribution]:
        """Return what features add to the first of two labellings: here, attributes where the labels differ."""
        classes, features = self.classes.tolist(), self.node_features()
        found = list(reading.source.rows.attributes().entries(one != two))
        ids, place = np.array([each[:2] for each in found], dtype=np.int64).reshape(-1, 2).T
        weights = look_up(features, ids, one[place]) - look_up(features, ids, two[place])
        return [
            Contribution("attribute", self.reader.name(i), t, classes[one[t]], classes[two[t]], value * weight)
            for (i, t, value), weight in zip(found, weights.tolist(), strict=True)
        ]

    def top_features(self, n: int = 10) -> TopFeatures:
        tables, found = self.named_tables(), {}
        for b, label in enumerate(self.cost_labels()):
            rows: Named = []
            for name, (attributes, labels, values) in tables:
                rows += inspection.largest(name, attributes[labels == b], values[labels == b], n)
            found[label] = sorted(rows, key=lambda row: -abs(row[1]))[:n]
        return TopFeatures(found, inspection.by_size(self.top_transitions(n)))

    def named_tables(self) -> list[tuple[Callable[[int], Hashable], tuple[Ints, Ints, Floats]]]:
        """Return tables (attributes, labels, weights), each with what names its attributes."""
        return [(self.reader.name, self.node_features())]

    def top_transitions(self, n: int) -> dict[tuple[Hashable, ...], Named]:
        """Return the n largest weights of each transition, of those that have any."""
        return {key: [(None, weight)] for key, weight in self.transition_weights().items() if weight}

    def state_features(self) -> dict[tuple[Hashable, Hashable], float]:
        names, classes = self.reader.names() or range(self.reader.n_attributes), self.classes.tolist()
        parts = (part.tolist() for part in self.node_features())
        return {(names[a], classes[b]): w for a, b, w in zip(*parts, strict=True)}

    @abstractmethod
    def node_features(self) -> tuple[Ints, Ints, Floats]:
        """Return (attributes, labels, weights) of the features of positions."""

    @abstractmethod
    def transition_weights(self) -> dict[tuple[Hashable, ...], float]:
        """Return weights of labels after other labels: of pairs, and of longer tuples if the model has them."""

    def boundary_features(self) -> dict[tuple[str, Hashable], float]:
        """Return weights of ("begin", label) and ("end", label)."""
        return {}

    def attributes(self) -> dict[str, object]:
        columns = {} if self.reader.named else {"n_features_in_": self.reader.n_attributes}
        return {"classes_": self.classes, **columns}

    def parameters(self) -> dict[str, object]:
        return {"template": self.template}

    def to_parts(self, parts: ModelParts) -> None:
        parts.settings["labels"] = encode_labels(self.classes)
        if self.label_scheme is not None:
            parts.settings["label_scheme"] = self.label_scheme
        parts.add("reader", self.reader.to_parts())
        parts.add("model", self._to_parts())

    def from_parts(self, parts: ModelParts) -> SequenceModel:
        self.classes = decode_labels(parts.settings.get("labels"))
        self.label_scheme = self._read_scheme(parts)
        reader, model = parts.part("reader"), parts.part("model")
        if self.template is not None and reader.kind != TemplateReader.kind:
            raise ModelFormatError("has a template and reads its input without it")
        known = reader.integer("n_features", 1) if reader.kind == ColumnReader.kind else reader.length("offsets") - 1
        if model.kind != self.kind:
            raise ModelFormatError(f"says that it is a {self.kind!r} and holds a {model.kind[:40]!r}")
        # Both are mostly native work: a large model's names and weights are read at the same time. A small model is not
        # worth a thread, and without memory a thread could be waited for without end.
        if known > MANY_NAMES and available() > LITTLE:
            with ThreadPoolExecutor(1) as helper:
                names = helper.submit(read_reader, reader, *READERS)
                self._from_parts(model, known)
            self.reader = names.result()
        else:
            self.reader = read_reader(reader, *READERS)
            self._from_parts(model, known)
        if isinstance(self.reader, TemplateReader):
            self.template = self.reader.template
        return self

    def _read_scheme(self, parts: ModelParts) -> str | None:
        known = rules.scheme_of(self.label_names)
        if self.legal is True and known is None:
            raise ModelFormatError("says legal=True and has labels of no scheme")
        if not parts.has("label_scheme"):  # answers of older files stay the same
            return None
        scheme = parts.text("label_scheme")
        if scheme != known:
            raise ModelFormatError(f"has labels that are not those of the scheme {scheme[:40]!r}")
        return scheme

    @abstractmethod
    def _to_parts(self) -> ModelParts:
        """Return features and weights for a model file."""

    @abstractmethod
    def _from_parts(self, parts: ModelParts, n_attributes: int) -> None:
        """Read features and weights from a model file; n_attributes: those that the reader knows."""


class SequencePartitioner(Partitioner):
    """Learns a `SequenceModel` from blocks: labels, attributes and rows, then what each kind of model counts."""

    def __init__(self, model: SequenceModel) -> None:
        self.model = model
        self._labels: set[Hashable] = set()
        self._attributes = AttributeCounts()

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        sequences, targets, _, _ = self.model.training_sequences(X, y, sample_weight)
        self._labels.update(targets.classes().tolist())
        user_labels.check_distinct(self._labels)
        self._attributes.add(self.model.suitable_reader(sequences), sequences, n_jobs)
        self.model.scan_block(sequences, targets)

    def choose_vocabulary(self) -> None:
        model = self.model
        model.use_labels(user_labels.sorted_labels(self._labels))
        self._given = model.classes
        # `encode` drops it if the data do not keep to it
        model.label_scheme = rules.scheme_of(model.label_names) if model.ruled else None
        model.reader = self._attributes.reader_of(model.rarest)
        check_known(model.reader, model.rarest)
        self._counts = model.new_counts()

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables:
        model = self.model
        sequences, targets, weight, _ = model.training_sequences(X, y, sample_weight)
        rows = model.reader.read(sequences, n_jobs=n_jobs)
        labels = targets.encode(self._given)
        if (labels < 0).any() or (rows.unknown[0] and model.rarest == 1):
            raise ChangedData
        rows = self._attributes.density.compact(rows)
        if model.label_scheme is not None:  # a warning gives a sequence's number in its block
            model.label_scheme = rules.kept_scheme(model.label_names, labels, rows.lengths, warn=model.legal == "auto")
        return model.encode_block(self._counts, (sequences, targets), rows, labels, weight)

    def n_slots(self, encoded: Any) -> int:
        return int(self.model.training_structure(encoded).slot_offsets()[-1])

    def choose_features(self) -> None:
        self.model.use_features(self._counts)
