"""One label per row of numbers.

Two labels have one weight vector v (`coef`), as in binary logistic regression. It is trained as the pair (-v/2, v/2),
like any number of labels, under twice the penalty: l2 (|v/2|^2 + |v/2|^2) = l2/2 |v|^2. Since l2 (|w0|^2 + |w1|^2) is
least at w1 = -w0 for a given w1 - w0 = v, objective, dual and gap are those of v. (Training v on one label alone is 2
to 15 times slower.) Under an l1 term, v itself is trained, as the second label's weights, under the penalty as it is.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from math import log
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from partwise.features import Attributes, logistic_map, multiclass_map
from partwise.features.rows import own_sparse, row_products
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts, encode_names
from partwise.model_files.values import decode_labels, encode, encode_labels, string_array
from partwise.models.base import Ability, InputReport, Labellings, Learnt, Model, Reading, Training
from partwise.models.classes import features as class_features
from partwise.models.classes.features import FAR, ClassRows, Items, Matrix, classifier_map, largest_sizes
from partwise.models.constraints import ConstraintError, check_entries, label_mask
from partwise.models.costs import LabelCost, row_costs
from partwise.models.features import Density, Rows, csr_attributes
from partwise.models.files import coefficient_arrays, read_coefficients
from partwise.models.inspection import Contribution, Explanation, TopFeatures, choose_among, explanation, largest
from partwise.models.labels import LabelArray, all_labels, label_factors, warn_of_gone, with_class_weight
from partwise.models.partition import AttributeCounts, ChangedData, EncodedRows, Partitioner
from partwise.models.readers import NameReader, check_known, read_reader
from partwise.problem import Batch, LabelledBatch
from partwise.problem.batch import Gold
from partwise.problem.capabilities import Capability
from partwise.problem.losses import Loss
from partwise.problem.penalties import Free
from partwise.solvers import Solver
from partwise.structures import Multiclass, padded_width
from partwise.support.arrays import Booleans, Floats, InputRows, Ints
from partwise.support.checks import check_count, check_sample_weight
from partwise.support.memory import check_weights

#: Scores that `best` holds at a time.
MOST_SCORES = 1 << 20


@dataclass(eq=False, repr=False, kw_only=True)
class ClassesModel(Model[ClassRows]):
    """A label per row. Parameters: see `MaxentClassifier`."""

    constraints: ClassVar[tuple[str, ...]] = ("allowed",)
    takes_classes: ClassVar[bool] = True
    has_columns: ClassVar[bool] = True

    fit_intercept: bool
    class_weight: object
    cost: InitVar[object] = None
    min_count: int = 1
    penalize_intercept: bool | None = None

    classes: LabelArray = field(init=False)
    coef: Floats = field(init=False)
    intercept: Floats = field(init=False)
    names: list[str] | None = field(init=False, default=None)  # of a data frame's columns
    given_names: list[str] | None = field(init=False, default=None)  # of any matrix's columns
    reader: NameReader | None = field(init=False, default=None)  # of rows that are dicts or lists of strings
    #: Whether only the second of two labels has weights: under an l1 term those of both would not be unique.
    one_sided: bool = field(init=False, default=False)

    def __post_init__(self, cost: object) -> None:
        self.fit_intercept = bool(self.fit_intercept)
        if self.fit_intercept and self.penalize_intercept is not None and not self.penalize_intercept:
            why = "penalize_intercept=False: not available with {}"
            self.lacks = {Ability.PARTIAL_FIT: why.format("partial_fit"), Ability.PARTITIONS: why.format("partitions")}
        self.min_count = check_count("min_count", self.min_count)
        self.label_cost = LabelCost.of(cost)

    def learn(self, X: Matrix, y: Any, sample_weight: object, training: Training) -> Learnt:
        weight = check_sample_weight(sample_weight, class_features.n_rows(X), "sample")
        given = None if training.classes is None else all_labels(np.unique(y), np.unique(training.classes))
        weight = with_class_weight(self.class_weight, y, weight, given)
        if weight is not None and not weight.all():
            keep, before = np.flatnonzero(weight), np.unique(y)
            X, y, weight = class_features.take_rows(X, keep), y[keep], weight[keep]
            if given is None and self.class_weight is not None:
                warn_of_gone(before, np.unique(y))
        if isinstance(X, list):
            reader = NameReader()
            X = class_features.item_rows(reader, X, self.min_count).matrix
            self.use_reader(reader)
        else:
            self.use_columns(int(X.shape[1]))
        classes, labels = np.unique(y, return_inverse=True)
        if given is not None:
            classes, labels = given, np.searchsorted(given, classes)[labels]
        self.use_labels(classes)
        self.check_size()
        encoded = EncodedRows.of(self.plain_rows(X).compact(), labels.astype(np.int64), weight)
        self.one_sided = training.l1 > 0 and len(classes) == 2
        examples = self.labelled(encoded, training.by_features)
        factor = 1.0 if self.one_sided else self.l2_factor
        free = self._free_weights(encoded, training)
        return Learnt(examples, (len(classes), self.one_sided), l2_factor=factor, free=free)

    def _free_weights(self, encoded: EncodedRows, training: Training) -> Free | None:
        """Return the weights without a penalty, if the intercept has none; warn if a penalty by default does harm."""
        choice = self.penalize_intercept
        if not self.fit_intercept or choice:
            return None
        solver = training.solver
        takes = not isinstance(solver, Solver) or Capability.ALL_PENALISED not in solver.requires
        if choice is not None or (training.loss.smooth and not training.l1 and takes):
            found = self._free_intercepts(encoded, training.loss)
            if found is not None or choice is None:
                return found
            raise ValueError(
                "penalize_intercept=False needs examples of every label, but some labels have none of positive "
                "weight: the best intercept of such a label is minus infinity; leave these labels out, or set "
                "penalize_intercept=True"
            )
        far = class_features.far_columns(encoded.rows)
        if len(far):
            name = self.column_name(int(far[0]))
            warnings.warn(
                f"the intercept is penalised like other weights, and column {name!r} (of {len(far)} such) has a mean "
                f"more than {FAR:g} times its standard deviation: the penalty keeps the intercept from making up for "
                "that; subtract the mean, or set penalize_intercept=False where the loss is smooth",
                UserWarning,
                stacklevel=2,
            )
        return None

    def _free_intercepts(self, encoded: EncodedRows, loss: Loss) -> Free | None:
        """Return the weights of the column of ones, and what bounds them; None where a label has no example.

        At w = 0 the loss of an example is at most phi(tau log(number of labels) + kappa times the largest cost), and
        with intercepts tau log q_k, q_k the share of label k, phi(tau log(1 / q_k) + kappa times the largest cost).
        """
        n_labels, n = len(self.classes), encoded.size.n_examples
        weight = np.ones(n) if encoded.weight is None else encoded.weight
        by_label = np.bincount(encoded.labels, weights=weight, minlength=n_labels)
        if not by_label.min() > 0:
            return None
        table = self.costs_of(self.classes.tolist())
        cost = loss.cost_scale * (1.0 if table is None else float(np.max(table)))
        total = by_label.sum()
        violations = cost + loss.temperature * np.stack([np.full(n_labels, log(n_labels)), np.log(total / by_label)])
        losses = violations**2 if loss.link == "squared" else violations
        at_zero = float((losses @ by_label).min())
        start = (self.n_attributes - 1) * (1 if self.one_sided else padded_width(n_labels))
        stop = start + (1 if self.one_sided else n_labels)
        return Free(start, stop, at_zero, tuple(by_label.tolist()), *largest_sizes(encoded.rows), loss.link)

    def further(self, X: Matrix, y: Any, sample_weight: object, n_jobs: int = 1) -> LabelledBatch:
        weight = check_sample_weight(sample_weight, class_features.n_rows(X), "sample")
        unknown = sorted(set(np.unique(y).tolist()) - set(self.classes.tolist()), key=str)
        if unknown:
            raise ValueError(f"y has the label {unknown[0]!r}, which is not among the classes of the first call")
        return super().further(X, y, with_class_weight(self.class_weight, y, weight, self.classes), n_jobs)

    def slot_costs(self, structure: Any, gold: Gold) -> Floats | None:
        table = self.costs_of(self.classes.tolist())
        if table is None:
            return None
        ones = np.ones(structure.num_examples, dtype=np.int64)
        return row_costs(structure.slot_offsets(), ones, structure.width, structure.decode(*gold), table)

    def use_labels(self, classes: LabelArray) -> None:
        """Classify by these labels, which are sorted; ValueError for a single one."""
        if classes.dtype.kind == "U":
            classes = string_array(classes.tolist())  # long ones, and predictions, would take as much as the longest
        if len(classes) < 2:
            raise ValueError(f"y holds one class only ({classes.tolist()[0]!r}): there is nothing to learn")
        self.classes = classes

    def use_columns(self, n: int) -> None:
        if self.min_count > 1 and self.reader is None:
            raise ValueError(f"min_count={self.min_count} is for rows that are dicts or lists of strings")
        self.n_attributes = n + self.fit_intercept

    def use_reader(self, reader: NameReader) -> None:
        """Take the attributes that a reader knows as columns; ValueError if it knows none."""
        check_known(reader, self.min_count)
        self.reader = reader
        self.use_columns(reader.n_attributes)

    def check_size(self) -> None:
        """Raise TooLarge for more weights than can be trained."""
        n = len(self.classes)
        width = 1 if n == 2 else padded_width(n)
        check_weights(self.n_attributes * width, f"{self.n_attributes:,} features, {n:,} classes")

    @property
    def l2_factor(self) -> float:
        return 2.0 if len(self.classes) == 2 else 1.0

    def structure(self, n_examples: int) -> Multiclass:
        return Multiclass(n_examples, len(self.classes))

    def plain_rows(self, X: Matrix, n_columns: int | None = None) -> Rows:
        """Return a feature matrix as rows of examples; n_columns: their number, if a sparse X may lack some."""
        table: Matrix = X
        n = int(X.shape[1])
        if sparse.issparse(X):
            matrix = sparse.csr_array(X)
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
            n = n if n_columns is None else n_columns
            table = csr_attributes(sparse.csr_array((matrix.data, matrix.indices, matrix.indptr), (X.shape[0], n)))
        return Rows(np.ones(X.shape[0], dtype=np.int64), n, table)

    def _table(self, rows: Rows) -> Attributes | InputRows:
        """Return rows with their column of ones, if there is an intercept."""
        return (rows.with_ones() if self.fit_intercept else rows).table

    def feature_parameters(self) -> dict[str, object]:
        weight = dict(self.class_weight) if isinstance(self.class_weight, Mapping) else self.class_weight
        shared = {"fit_intercept": self.fit_intercept, "min_count": self.min_count}
        return {**shared, "class_weight": encode(weight, "class_weight")}

    def partitioner(self) -> ClassesPartitioner:
        return ClassesPartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedRows:
        return EncodedRows.from_parts(parts, self.n_attributes - self.fit_intercept, len(self.classes))

    def labelled(self, encoded: EncodedRows, by_features: bool | None = False) -> LabelledBatch:
        structure, rows = self.structure(encoded.size.n_examples), self._table(encoded.rows)
        one_sided = self.one_sided and bool(by_features)
        features = logistic_map(structure, rows) if one_sided else classifier_map(structure, rows, by_features)
        gold = structure.encode(encoded.labels)
        return LabelledBatch(Batch(structure, features), gold, encoded.weight, self.slot_costs(structure, gold))

    def with_weights(self, weights: Floats) -> ClassesModel:
        n_classes = len(self.classes)
        if self.one_sided and len(weights) == self.n_attributes:
            pairs = weights[np.newaxis]
        else:
            pairs = weights.reshape(-1, padded_width(n_classes))[:, :n_classes].T
            if n_classes == 2:
                pairs = pairs[1:] - pairs[:1]
        n_features = pairs.shape[1] - self.fit_intercept
        coef = np.ascontiguousarray(pairs[:, :n_features])
        return self.with_coef(coef, pairs[:, n_features].copy() if self.fit_intercept else np.zeros(len(pairs)))

    def with_coef(self, coef: Floats, intercept: Floats) -> ClassesModel:
        """Return the model with these weights: one row per label, or one row for two labels."""
        other = copy.copy(self)
        other.coef, other.intercept = coef, intercept
        return other

    @property
    def weights(self) -> Floats:
        n_classes, n_features = len(self.classes), self.coef.shape[1]
        weights = np.zeros((n_features + self.fit_intercept, padded_width(n_classes)))
        used: Any = slice(None)
        if np.count_nonzero(self.coef) < self.coef.size / 8:
            used = np.flatnonzero(self.coef.any(axis=0))  # zeros that nothing writes to take no memory
        weights[:n_features][used, :n_classes] = _both_sides(self.coef[:, used], n_classes).T
        if self.fit_intercept:
            weights[n_features, :n_classes] = _both_sides(self.intercept[:, np.newaxis], n_classes)[:, 0]
        return weights.ravel()

    def carried(self, old: ClassesModel) -> Floats | None:
        """Return the old weights of the same labels and attributes, or columns; new columns may follow the old ones."""
        n_columns, columns = self.n_attributes - self.fit_intercept, self._columns_in(old)
        if columns is None:
            return None
        own, theirs = columns
        if self.one_sided:
            if not np.array_equal(self.classes, old.classes):
                return None
            found = np.zeros(self.n_attributes)
            found[own] = old.coef[0, theirs]
            found[n_columns:] = old.intercept[:1]  # an intercept that it did not have is 0
            return found
        _, here, there = np.intersect1d(self.classes, old.classes, assume_unique=True, return_indices=True)
        coef, intercept = old.label_weights()
        weights = np.zeros((self.n_attributes, padded_width(len(self.classes))))
        weights[np.ix_(own, here)] = coef[np.ix_(there, theirs)].T
        if self.fit_intercept:
            weights[n_columns, here] = intercept[there]
        return weights.ravel()

    def _columns_in(self, old: ClassesModel) -> tuple[Ints, Ints] | None:
        """Return the columns that an older model has too, and their numbers there; None for rows of another form."""
        if self.reader is not None and old.reader is not None:
            numbers = self.reader.numbers_in(old.reader)
            assert numbers is not None
            return np.flatnonzero(numbers >= 0), numbers[numbers >= 0]
        columns = np.arange(old.coef.shape[1], dtype=np.int64)
        alike = self.reader is old.reader and len(columns) <= self.n_attributes - self.fit_intercept
        return (columns, columns) if alike else None

    def joined(self, old: ClassesModel) -> ClassesModel:
        if (self.reader is None) != (old.reader is None):
            raise ValueError("X has rows of another form than the model: numbers, or dicts and lists of strings")
        if self.reader is not None and old.reader is not None:
            numbers = old.reader.numbers_in(self.reader)
            assert numbers is not None
            other = copy.copy(self)
            other.reader = self.reader.with_names_of(old.reader, numbers < 0)
            other.use_columns(other.reader.n_attributes)
            return other
        if old.coef.shape[1] > self.n_attributes - self.fit_intercept:
            raise ValueError(f"X has {self.n_attributes - self.fit_intercept} features, the model {old.coef.shape[1]}")
        return self

    def rows(self, X: Matrix) -> ClassRows:
        """Return rows as a matrix of the columns that have weights."""
        return ClassRows(X) if self.reader is None else class_features.item_rows(self.reader, X)

    def read(self, X: Matrix, n_jobs: int = 1) -> Reading[ClassRows]:
        rows = self.rows(X)
        n = int(rows.matrix.shape[0])

        def batch() -> Batch:
            structure, own = self.structure(n), self.plain_rows(own_sparse(rows.matrix)).compact()
            return Batch(structure, multiclass_map(structure, self._table(own)))

        return Reading(batch, n, source=rows)

    def report(self, reading: Reading[ClassRows], labellings: Labellings | None) -> InputReport | None:
        unknown = reading.source.unknown
        return None if self.reader is None else InputReport(lambda: unknown)

    def scores(self, X: Matrix, n_jobs: int = 1) -> Floats:
        """Return X coef' + intercept: shape (n,) for two labels (positive: the second), else (n, n_classes)."""
        scores = row_products(X, self.coef, n_jobs) + self.intercept
        return scores[:, 0] if len(self.classes) == 2 else scores

    def best(self, reading: Reading[ClassRows], n_jobs: int = 1) -> Labellings:
        if reading.constrained:
            return super().best(reading, n_jobs)
        X, n = reading.source.matrix, reading.n_examples
        # Some rows at a time: all scores of many rows and labels would take far more memory than either.
        some = max(1, MOST_SCORES // len(self.classes))
        parts: Iterable[Matrix] = [X]
        if n > some:
            rows = own_sparse(X)  # slices of it follow indices too
            parts = (rows[k : k + some] for k in range(0, n, some))
        scores = (self.scores(part, n_jobs) for part in parts)
        best = [(each > 0).astype(np.int64) if each.ndim == 1 else each.argmax(axis=1) for each in scores]
        return Labellings(np.arange(n + 1, dtype=np.int64), np.concatenate(best), np.ones(n))

    def decode(self, reading: Reading[ClassRows], which: Ints, labellings: Labellings, n_jobs: int = 1) -> LabelArray:
        return self.classes[labellings.slots]

    def encode(self, reading: Reading[ClassRows], y: Any) -> tuple[Labellings, Booleans]:
        if len(y) != reading.n_examples:
            raise ValueError(f"X has {reading.n_examples} rows but y has {len(y)}")
        index = {label: i for i, label in enumerate(self.classes.tolist())}
        labels = np.array([index.get(label, -1) for label in np.asarray(y).tolist()], dtype=np.int64)
        return Labellings(*reading.structure(Multiclass).encode(np.maximum(labels, 0))), labels >= 0

    def constrain(self, reading: Reading[ClassRows], allowed: object) -> None:
        """Put masks of the labels that each row may have on the structure: `allowed` of `MaxentClassifier`."""
        index = {label: i for i, label in enumerate(self.classes.tolist())}
        structure = reading.structure(Multiclass)
        mask = np.zeros(structure.width, dtype=np.uint8)
        for i, labels in enumerate(check_entries(allowed, reading.n_examples, "rows")):
            if labels is not None:
                mask[: len(index)] = label_mask([labels], index, "allowed", "row", [i])
                if not mask.any():
                    raise ConstraintError(f"allowed: row {i} has no label left", i)
                structure.set_mask(i, mask)

    def marginals(self, reading: Reading[ClassRows], counts: Floats) -> Floats:
        return counts.reshape(reading.n_examples, padded_width(len(self.classes)))[:, : len(self.classes)].copy()

    def column_name(self, column: int) -> Hashable:
        """Return the name of a column, or its number if it has none."""
        if self.reader is not None:
            return self.reader.name(column)
        names = self.column_names()
        return int(column) if names is None else names[column]

    def column_names(self) -> list[str] | None:
        if self.reader is not None:
            return self.reader.names()
        return self.names if self.given_names is None else self.given_names

    def label_weights(self) -> tuple[Floats, Floats]:
        """Return weights and intercepts, one row per label; of two labels each has half of the difference."""
        n_classes = len(self.classes)
        return _both_sides(self.coef, n_classes), _both_sides(self.intercept[:, np.newaxis], n_classes)[:, 0]

    def top_features(self, n: int = 10) -> TopFeatures:
        ids = np.arange(self.coef.shape[1], dtype=np.int64)
        rows = zip(self.classes.tolist(), self.label_weights()[0], strict=True)
        return TopFeatures({label: largest(self.column_name, ids, row, n) for label, row in rows})

    def explain(self, reading: Reading[ClassRows], label: Hashable = None, against: Hashable = None) -> Explanation:
        """Return which features make the best label of a row, or this one, better than the best other, or that one."""
        row = reading.source.matrix
        values = row.toarray().ravel() if sparse.issparse(row) else row.ravel()
        weights, intercepts = self.label_weights()
        scores = weights @ values + intercepts
        ranked, place = np.argsort(-scores, kind="stable").tolist(), {k: i for i, k in enumerate(self.classes.tolist())}
        for name, given in (("label", label), ("against", against)):
            if given is not None and given not in place:
                raise ValueError(f"explain: {name}: the label {given!r} was not in the training data")
        one = ranked[0] if label is None else place[label]
        two = next(k for k in ranked if k != one) if against is None else place[against]
        if one == two:
            raise ValueError(f"explain: the label {against!r} cannot be compared with itself")
        both = self.classes[one], self.classes[two]
        amounts, last = values * (weights[one] - weights[two]), float(intercepts[one] - intercepts[two])
        columns = np.flatnonzero(amounts).tolist()
        found = [Contribution("attribute", self.column_name(j), None, *both, float(amounts[j])) for j in columns]
        found.append(Contribution("intercept", None, None, *both, last))
        return explanation(*both, (float(scores[one]), float(scores[two])), found)

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[ClassesModel, tuple[int, int, float]]:
        """Return the model with small weights set to zero, except for intercepts."""
        (kept,), counts = choose_among([self.coef.ravel()], threshold, keep)
        coef = np.where(kept.reshape(self.coef.shape), self.coef, 0.0)
        smaller = self.with_coef(coef, self.intercept)
        if self.reader is not None:  # attributes without any weight are no longer known
            used: Booleans = np.count_nonzero(coef, axis=0) > 0
            used[:1] |= not used.any()
            smaller.coef = np.ascontiguousarray(coef[:, used])
            smaller.reader, _ = self.reader.keep(used)
            smaller.use_columns(smaller.coef.shape[1])
        return smaller, counts

    def attributes(self) -> dict[str, object]:
        found: dict[str, object] = {"classes_": self.classes, "n_features_in_": self.coef.shape[1]}
        if self.names is not None:
            found["feature_names_in_"] = np.array(self.names, dtype=object)
        return found

    def to_parts(self, parts: ModelParts) -> None:
        parts.settings |= {"labels": encode_labels(self.classes), "n_features": self.coef.shape[1]}
        parts.arrays |= {**coefficient_arrays(self.coef), "intercept_weights": self.intercept}
        for name, names in (("features", self.names), ("given_names", self.given_names)):
            if names is not None:
                parts.add(name, ModelParts("names", {}, encode_names(names)))
        if self.reader is not None:
            parts.add("reader", self.reader.to_parts())

    def from_parts(self, parts: ModelParts) -> ClassesModel:
        self.classes = decode_labels(parts.settings.get("labels"))
        n_vectors = 1 if len(self.classes) == 2 else len(self.classes)
        self.coef = read_coefficients(parts, n_vectors)
        self.intercept = np.array(parts.floats("intercept_weights", n_vectors))
        self.n_attributes = self.coef.shape[1] + self.fit_intercept
        for part, name in (("features", "names"), ("given_names", "given_names")):
            if parts.has(part):
                setattr(self, name, names := parts.part(part).vocabulary().names())
                if len(names) != self.coef.shape[1]:
                    raise ModelFormatError(f"names {len(names)} features and has weights for {self.coef.shape[1]}")
        if parts.has("reader"):
            self.reader = read_reader(parts.part("reader"), NameReader)
            if self.reader.n_attributes != self.coef.shape[1]:
                raise ModelFormatError(f"knows {self.reader.n_attributes} attributes and weighs {self.coef.shape[1]}")
        return self


def _both_sides(rows: Floats, n_classes: int) -> Floats:
    """Return weights of every label: two labels have one row of differences, of which each has half."""
    return rows if n_classes > 2 else np.concatenate([-0.5 * rows, 0.5 * rows])


class ClassesPartitioner(Partitioner):
    """Learns a `ClassesModel`. Sparse blocks may have fewer columns than others: the missing ones are 0."""

    _factors: Floats

    def __init__(self, model: ClassesModel) -> None:
        self.model = model
        self._seen: LabelArray | None = None
        self._sums = np.empty(0)  # of the weights of each label's rows
        self._n_features = 0
        self._density = Density()
        self._items: bool | None = None  # whether rows are dicts or lists of strings
        self._names = AttributeCounts()

    def scan(self, X: Matrix, y: Any, sample_weight: object, n_jobs: int = 1) -> None:
        weight = check_sample_weight(sample_weight, class_features.n_rows(X), "sample")
        seen, labels = np.unique(y, return_inverse=True)
        sums = np.bincount(labels, weights=weight, minlength=len(seen)).astype(np.float64)
        if self._seen is not None:
            if (seen.dtype.kind in "UO") != (self._seen.dtype.kind in "UO"):
                raise ValueError("labels must be of one kind in all blocks, strings or numbers")
            seen, labels = np.unique(np.concatenate([self._seen, seen]), return_inverse=True)
            sums = np.bincount(labels, weights=np.concatenate([self._sums, sums])).astype(np.float64)
        self._seen, self._sums = seen, sums
        if self._items not in (None, isinstance(X, list)):
            raise ValueError("blocks must be of one form: dicts or lists of strings, or numbers, in all of them")
        self._items = isinstance(X, list)
        if isinstance(X, list):
            self._names.add(NameReader(), class_features.ItemRows([self._weighed(X, y, weight)], [0]), n_jobs)
            return
        if self._n_features not in (0, X.shape[1]) and not sparse.issparse(X):
            raise ValueError(f"X has {X.shape[1]} columns, a block before had {self._n_features}")
        self._n_features = max(self._n_features, int(X.shape[1]))
        self.model.use_columns(self._n_features)
        self._density.add(self.model.plain_rows(X))

    def _weighed(self, items: Items, y: LabelArray, weight: Floats | None) -> Items:
        """Return the items of positive weight: nothing is learnt from the others."""
        given = self.model.class_weight
        gone = {label for label, value in given.items() if not value} if isinstance(given, Mapping) else set()
        used = [True] * len(items) if weight is None else (weight > 0).tolist()
        return [item for item, label, own in zip(items, y.tolist(), used, strict=True) if own and label not in gone]

    def choose_vocabulary(self) -> None:
        assert self._seen is not None
        self._factors = label_factors(self.model.class_weight, self._seen, self._sums)
        self._kept = self._seen[self._factors * self._sums > 0]
        if self.model.class_weight is not None:
            warn_of_gone(self._seen, self._kept)
        self.model.use_labels(self._kept)
        if self._items:
            reader = self._names.reader_of(self.model.min_count)
            assert isinstance(reader, NameReader)
            self._n_features = reader.n_attributes
            self.model.use_reader(reader)
        self.model.check_size()

    def encode(self, X: Matrix, y: Any, sample_weight: object, n_jobs: int = 1) -> EncodedRows | None:
        assert self._seen is not None
        weight = check_sample_weight(sample_weight, class_features.n_rows(X), "sample")
        labels = np.searchsorted(self._seen, y)
        known = self._seen[np.minimum(labels, len(self._seen) - 1)] == y
        same_form = isinstance(X, list) if self._items else not isinstance(X, list) and X.shape[1] <= self._n_features
        if not same_form or not known.all():
            raise ChangedData
        if self.model.class_weight is not None:
            weight = (np.ones(len(labels)) if weight is None else weight) * self._factors[labels]
        if weight is not None and not weight.all():
            keep = np.flatnonzero(weight)
            X, y, weight = class_features.take_rows(X, keep), y[keep], weight[keep]
        if not class_features.n_rows(X):
            return None
        if self._items:
            assert self.model.reader is not None
            X, (unknown, _) = class_features.item_rows(self.model.reader, X)
            if unknown and self.model.min_count == 1:
                raise ChangedData
        rows = self._density.compact(self.model.plain_rows(X, self._n_features))
        return EncodedRows.of(rows, np.searchsorted(self._kept, y).astype(np.int64), weight)

    def n_slots(self, encoded: EncodedRows) -> int:
        return int(self.model.structure(encoded.size.n_examples).slot_offsets()[-1])

    def choose_features(self) -> None:
        """Do nothing: all pairs of columns and labels have weights."""
