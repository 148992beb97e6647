"""Heads of words: arc-factored trees, and names of arcs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field, replace
from itertools import cycle, islice
from typing import Any, ClassVar, cast

import numpy as np

from partwise.features import ArcIndex
from partwise.features.arcs import ARC_TEMPLATES, LABEL_TEMPLATES, ArcTable, parse_templates
from partwise.metrics import attachment_scores
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import add_result, decode_labels, encode, encode_labels, read_result
from partwise.models.base import AsideSizes, InputReport, Labellings, Learnt, Model, Reading, Training
from partwise.models.constraints import ConstraintError, check_entries
from partwise.models.costs import LabelCost, head_costs
from partwise.models.dependencies import inputs as user_inputs
from partwise.models.dependencies.features import ArcFeatures, ArcLabeller, check_features, fitted_table
from partwise.models.dependencies.inputs import ALL_CROSSING, FIELDS, GoldTrees, Words
from partwise.models.features import KeyCounts, PairLayout, layout_of, places_in
from partwise.models.files import coefficient_arrays, read_coefficients
from partwise.models.inspection import Contribution, Explanation, choose_among, explanation
from partwise.models.labels import check_distinct, encode_flat, label_array, split
from partwise.models.partition import ChangedData, EncodedTables, Kind, Partitioner, Whole
from partwise.problem import Batch, LabelledBatch, Problem
from partwise.problem.batch import Gold
from partwise.problem.penalties import Penalty
from partwise.problem.result import Result
from partwise.structures import ProjectiveTree, SpanningTree, Tree, padded_width
from partwise.support.arrays import Booleans, Floats, Ints
from partwise.support.checks import check_choice, check_positive, check_range, check_sample_weight, check_strength

#: What labels are called in messages.
NAMES = "names of arcs"
#: What the names of arcs may take of `max_seconds`.
NAMES_SHARE = 0.25

_STRUCTURES: dict[str, type[ProjectiveTree | SpanningTree]] = {"projective": ProjectiveTree, "spanning": SpanningTree}
#: A reading whose source is the words of the sentences that are not empty.
TreeReading = Reading[Words]


@dataclass(eq=False, repr=False, kw_only=True)
class TreeModel(Model[Words]):
    """A head per word, and a name for its arc. The parameters are those of `DependencyParser`."""

    late: ClassVar[tuple[str, ...]] = ("structure", "single_root", "max_length")
    constraints: ClassVar[tuple[str, ...]] = ("allowed",)

    structure: str
    single_root: bool
    non_projective: str
    labels: bool | str
    label_C: float  # noqa: N815 - scikit-learn's name
    templates: str | None
    label_templates: str | None
    inputs: str | Sequence[str] | None = None
    features: str
    hash_bits: int
    min_count: int
    max_length: int
    memory_limit: float
    cost: InitVar[object] = None

    arcs: ArcFeatures = field(init=False)
    labeller: ArcLabeller | None = field(init=False)
    label_result: Result | None = field(init=False)
    n_non_projective: int = field(init=False)
    n_skipped: int = field(init=False)

    def __post_init__(self, cost: object) -> None:
        if cost is not None and not callable(cost):
            raise ValueError("cost of a parser must be a function of two heads (no labels), the right one first")
        self.label_cost = LabelCost.of(cost)
        self.check()

    def check(self) -> None:
        check_choice("structure", self.structure, tuple(_STRUCTURES))
        check_choice("non_projective", self.non_projective, ("skip", "lift", "error"))
        check_choice("labels", self.labels, ("auto", True, False))
        check_choice("features", self.features, ("gold", "all", "hashed"))
        check_choice("single_root", self.single_root, (True, False))
        check_strength("label_C", self.label_C)
        check_positive("memory_limit", self.memory_limit, zero=True)
        for name, low, high in (("min_count", 1, 1 << 30), ("hash_bits", 1, 31), ("max_length", 1, 1 << 15)):
            check_range(name, getattr(self, name), low, high)
        for table in (self.templates, self.label_templates):
            if table is not None:
                parse_templates(table)
        user_inputs.input_columns(self.inputs)

    def make_structure(self, lengths: Ints) -> Tree:
        return _STRUCTURES[self.structure](lengths, bool(self.single_root), int(self.max_length))

    def learn(self, X: object, y: object, sample_weight: object, training: Training) -> Learnt:
        trees = self.given(X, y, sample_weight)
        words, heads, relations = trees.words, trees.gold, trees.relations
        self.n_non_projective, self.n_skipped = trees.n_crossing, int((~trees.kept).sum())
        named = self.is_named(len(set(relations)) if relations and self.labels else 0)
        used, used_heads, used_weight = trees.used()
        table = fitted_table(self.templates or ARC_TEMPLATES, used, self.inputs)
        if self.features == "hashed":
            self.arcs = ArcFeatures(table, ArcIndex.hashed(int(self.hash_bits)))
        else:
            arcs = used_heads if self.features == "gold" else None
            self.arcs = ArcFeatures.seen(table, used.tokens(table.keys), arcs, int(self.min_count))
        # Before the trees: errors come before hours of training, and callbacks see a parser that names arcs.
        self.labeller = self.label_result = None
        if named and relations:
            table = fitted_table(self.label_templates or LABEL_TEMPLATES, words, self.inputs)
            tokens = words.tokens(table.keys)
            features = ArcFeatures.seen(table, tokens, heads, int(self.min_count))
            self.labeller = ArcLabeller.seen(features, tokens, heads, relations)
            labels = encode_flat(relations, self.labeller.classes)
            arcs_weight = None if trees.weight is None else np.repeat(trees.weight, words.lengths)
            named_arcs = self.labeller.examples(tokens, heads, labels, arcs_weight)
            penalty = training.penalty_of(float(self.label_C))
            self._train_labeller(Problem.of([named_arcs], "log", penalty, n_jobs=training.n_jobs), training)
        examples = self._examples(used, used_heads, used_weight, training.n_jobs)
        seconds = 0.0 if self.label_result is None else self.label_result.seconds
        return Learnt(examples, (self.structure, bool(self.single_root), used.lengths), seconds=seconds)

    def further(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> LabelledBatch:
        return self._examples(*self.given(X, y, sample_weight).used(), n_jobs)

    def given(self, X: object, y: object, sample_weight: object) -> GoldTrees:
        sentences = user_inputs.as_sentences(X)
        if not sentences:
            raise ValueError("X holds no sentences")
        trees = None if y is None else user_inputs.trees_of(y, len(sentences))
        weight = check_sample_weight(sample_weight, len(sentences), "sentence")
        keep = range(len(sentences)) if weight is None else np.flatnonzero(weight).tolist()
        words = user_inputs.read_words([sentences[i] for i in keep], keep, int(self.max_length))
        if not words.lengths.all():
            raise ValueError(f"{words.name(int(words.lengths.argmin()))} has no words: leave it out")
        gold, relations = user_inputs.read_trees(None if trees is None else [trees[i] for i in keep], words)
        self.check_names(relations or ())
        weight = None if weight is None else weight[keep]
        return GoldTrees(words, gold, relations, weight, *self._projective(words, gold))

    def check_names(self, names: Iterable[object]) -> None:
        """Raise ValueError for too many different names of arcs, if names are learnt."""
        if self.labels:
            check_distinct(names, NAMES)

    def _examples(self, words: Words, heads: Ints, weight: Floats | None, n_jobs: int) -> LabelledBatch:
        """Return sentences as examples with their heads, on the chosen features."""
        structure = self.make_structure(words.lengths)
        features = self.arcs.map(self.arcs.tokens(words), float(self.memory_limit), n_jobs)
        gold = structure.encode(heads)
        return LabelledBatch(Batch(structure, features), gold, weight, self.slot_costs(structure, gold))

    def slot_costs(self, structure: Any, gold: Gold) -> Floats | None:
        cost = self.label_cost
        return None if cost is None else head_costs(structure.lengths, structure.decode(*gold), cost)

    def _projective(self, words: Words, heads: Ints) -> tuple[Booleans, Ints, int]:
        """Return which sentences to train on, heads of all, and how many trees the structure excludes."""
        crossing = user_inputs.crossing_trees(self.make_structure(words.lengths), words, heads)
        kept = np.ones(len(words.lengths), dtype=bool)
        if len(crossing) and self.non_projective == "error":
            raise ValueError(
                f"{words.name(int(crossing[0]))} has a tree with crossing arcs, and {len(crossing) - 1} more have: use "
                "structure='spanning', or non_projective='skip' or 'lift'"
            )
        if self.non_projective == "skip":
            kept[crossing] = False
        elif len(crossing):
            heads, offsets = heads.copy(), words.offsets
            for i in crossing:
                heads[offsets[i] : offsets[i + 1]] = user_inputs.lift(heads[offsets[i] : offsets[i + 1]])
        return kept, heads, len(crossing)

    def is_named(self, n_names: int) -> bool:
        """Return whether arcs get names, of which trees have `n_names`; ValueError for labels=True without names."""
        if self.labels is True and n_names < 2:
            raise ValueError(f"labels=True needs trees with at least two names of arcs; y has {n_names}")
        return bool(self.labels) and n_names >= 2

    @property
    def columns(self) -> list[str]:
        found = {*self.arcs.table.columns, *(self.labeller.features.table.columns if self.labeller else ())}
        return [name for name in FIELDS if name in found or (name == "form" and "prefix" in found)]

    def _train_labeller(self, problem: Problem, training: Training) -> None:
        assert self.labeller is not None
        seconds = None if training.max_seconds is None else NAMES_SHARE * training.max_seconds
        options = {"tol": training.tol, "max_seconds": seconds, "verbose": training.verbose}
        self.labeller, self.label_result = self.labeller.trained(problem, random_state=training.seed(), **options)

    def feature_parameters(self) -> dict[str, Any]:
        names = ("structure", "single_root", "non_projective", "labels", "templates", "label_templates", "inputs")
        more = ("features", "hash_bits", "min_count")
        return {name: encode(getattr(self, name), name) for name in (*names, *more)}

    def partitioner(self) -> TreePartitioner:
        return TreePartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedTables:
        kinds: dict[str, Kind] = {f"words/{name}": str for name in FIELDS}
        kinds |= {"words/heads": Whole(0, 1 << 15), "sentences/kept": Whole(0, 2)}
        if self.labeller is not None:
            kinds |= {"words/gold": Whole(0, 1 << 15), "words/relations": Whole(0, len(self.labeller.classes))}
        found = EncodedTables.read(parts, ("words", "sentences"), kinds)
        lengths = found.lengths["words"]
        one_each = (found.lengths["sentences"] == 1).all()
        if not lengths.all() or not one_each or lengths.max(initial=0) > int(self.max_length):
            raise ValueError("has sentences of wrong lengths")
        return EncodedTables(found.lengths, found.columns, arc_entries(lengths, self.arcs.table), found.weight)

    @staticmethod
    def _encoded_words(encoded: EncodedTables) -> Words:
        lengths = encoded.lengths["words"]
        columns = [encoded.columns[f"words/{name}"] for name in FIELDS]
        return Words(lengths, columns, range(len(lengths)), [None] * len(lengths))

    def labelled(self, encoded: EncodedTables, by_features: bool | None = False) -> LabelledBatch:
        words, kept = self._encoded_words(encoded), encoded.columns["sentences/kept"]
        weight = encoded.weight
        if not kept.all():
            weight = kept * (np.ones(len(kept)) if weight is None else weight)
        return self._examples(words, encoded.columns["words/heads"], weight, 1)

    @property
    def aside(self) -> AsideSizes | None:
        return None if self.labeller is None else AsideSizes(len(self.labeller.classes), len(self.labeller.weights))

    def labelled_aside(self, encoded: EncodedTables) -> LabelledBatch:
        assert self.labeller is not None
        gold, relations = (encoded.columns[f"words/{name}"] for name in ("gold", "relations"))
        weight = None if encoded.weight is None else np.repeat(encoded.weight, encoded.lengths["words"])
        tokens = self.labeller.features.tokens(self._encoded_words(encoded))
        return self.labeller.examples(tokens, gold, relations, weight)

    def learn_aside(
        self, given: Model, problem: Callable[[Penalty], Problem], training: Training
    ) -> tuple[TreeModel, float]:
        assert isinstance(given, TreeModel)
        other = copy.copy(self)
        other._train_labeller(problem(training.penalty_of(float(given.label_C))), training)
        assert other.label_result is not None
        return other, other.label_result.seconds

    def read(self, X: object, n_jobs: int = 1) -> TreeReading:
        sentences = user_inputs.as_sentences(X)
        words = user_inputs.read_words(sentences, range(len(sentences)), int(self.max_length))
        rest = words.take(words.lengths > 0)
        batch = Batch(self.make_structure(rest.lengths), self.arcs.map(self.arcs.tokens(rest)))
        return Reading(batch, len(sentences), np.flatnonzero(words.lengths), rest)

    def constrain(self, reading: TreeReading, allowed: object) -> None:
        words, structure = reading.source, reading.batch.structure
        entries = check_entries(allowed, reading.n_examples, "sentences")
        for i, number in enumerate(words.numbers):
            mask = user_inputs.arc_mask(entries[number], number, words.name(i), int(words.lengths[i]))
            if mask is not None:
                try:
                    structure.set_mask(i, mask)
                except ValueError as error:
                    raise ConstraintError(f"{words.name(i)}: no tree is allowed ({error})", number) from None

    def heads_of(self, reading: TreeReading, which: Ints, labellings: Labellings) -> Ints:
        """Return the heads of all words of these trees, concatenated: slots are rows of heads."""
        if reading.once_each(which):
            return reading.structure(Tree).decode(*labellings)
        lengths = reading.source.lengths[which]
        return labellings.choices(lengths, lengths + 1)

    def decode(self, reading: TreeReading, which: Ints, labellings: Labellings, n_jobs: int = 1) -> list[list[Any]]:
        heads, words = self.heads_of(reading, which, labellings), reading.source
        flat: list[Any] = heads.tolist()
        if self.labeller is not None and flat:
            some = words if reading.once_each(which) else words.take(which)
            flat = list(zip(flat, self.labeller.predict(some, heads, n_jobs), strict=True))
        return split(flat, words.lengths[which])

    def encode(self, reading: TreeReading, y: object) -> tuple[Labellings, Booleans]:
        """Encode trees, given as to `fit`, without the names of arcs; trees with crossing arcs may be impossible."""
        words = reading.source
        given = None if y is None else user_inputs.trees_of(y, reading.n_examples)
        trees = None if given is None else [given[number] for number in words.numbers]
        (heads, _), structure = user_inputs.read_trees(trees, words), reading.structure(Tree)
        possible = np.ones(len(words.lengths), dtype=bool)
        possible[user_inputs.crossing_trees(structure, words, heads)] = False
        # An impossible tree is replaced by one that is possible: its value is not used.
        heads = np.where(np.repeat(possible, words.lengths), heads, words.chains())
        return Labellings(*structure.encode(heads)), possible

    def marginals(self, reading: TreeReading, counts: Floats) -> list[Floats]:
        """Return probabilities of heads: per sentence an array (n, n + 1), entry [m - 1, h] for the arc h -> m."""
        lengths = reading.source.lengths
        tables = zip(split(counts, lengths * (lengths + 1)), lengths.tolist(), strict=True)
        return reading.spread([table.reshape(n, n + 1) for table, n in tables], lambda: np.empty((0, 1)))

    def score(self, X: object, y: object, predicted: Any, sample_weight: object) -> float:
        gold = user_inputs.as_sentences(X) if y is None else user_inputs.trees_of(y, len(predicted))
        for i, sentence in enumerate(gold if y is None else ()):
            if not hasattr(sentence, "deprels"):
                raise ValueError(f"sentence {i} has no tree: give y, or sentences from a file with trees")
        weight = check_sample_weight(sample_weight, len(predicted), "sentence")
        if weight is None:
            return attachment_scores(gold, predicted).uas
        # A sentence without words counts for nothing.
        pairs = [attachment_scores([a], [b]) if len(b) else None for a, b in zip(gold, predicted, strict=True)]
        counts = np.array([[each.n_right_heads, each.n_words] if each else [0, 0] for each in pairs]).T @ weight
        if not counts[1]:
            raise ValueError("there are no words to score")
        return float(counts[0] / counts[1])

    def report(self, reading: TreeReading, labellings: Labellings | None) -> InputReport:
        words, arcs, tokens = reading.source, self.arcs, self.arcs.tokens(reading.source)
        blank = [name for name in words.blank() if name in self.columns] if len(words.lengths) else []
        if labellings is None:
            return InputReport(None, blank)
        heads = self.heads_of(reading, np.arange(len(words.lengths)), labellings)
        return InputReport(lambda: arcs.unknown(tokens, heads), blank)

    def explain(self, reading: TreeReading, word: int, head: int | None) -> list[tuple[str, float]]:
        check_arcs(reading.source, word, head)
        if head is None:
            head = int(self.heads_of(reading, np.zeros(1, dtype=np.int64), self.best(reading))[word - 1])
        return self.arcs.explain(reading.source, word, head, self.weights)

    def explain_head(self, reading: TreeReading, word: int, head: int | None, against: int | None) -> Explanation:
        """Compare the best tree (with this head, if given) with the best one with another head, by features of arcs."""
        n = check_arcs(reading.source, word, head, against)
        structure, scores = reading.structure(Tree), reading.batch.features.scores(0, self.weights)

        def best(heads: list[int] | None) -> tuple[float, list[int]]:
            if heads is not None:
                try:
                    self.constrain(reading, allowed=[{word: heads}])
                except ConstraintError:
                    raise ConstraintError(f"no tree has another head for word {word}", 0) from None
            slots, counts = structure.maximize(0, scores)[1:]
            found = self.heads_of(reading, np.zeros(1, dtype=np.int64), Labellings.of([(slots, counts)]))
            return float(scores[slots] @ counts), found.tolist()

        score, one = best(None if head is None else [head])
        own = one[word - 1]
        if against == own:
            raise ValueError(f"word {word} has the head {own} itself: give another one")
        other, two = best([k for k in range(n + 1) if k not in (own, word)] if against is None else [against])
        found = [
            Contribution("arc", name, m, mine, theirs, sign * weight)
            for m, (mine, theirs) in enumerate(zip(one, two, strict=True), 1)
            for of, sign in (((mine, 1.0), (theirs, -1.0)) if mine != theirs else ())
            for name, weight in self.arcs.explain(reading.source, m, of, self.weights)
        ]
        return explanation(one, two, (score, other), found, word)

    def carried(self, old: TreeModel) -> Floats | None:
        return self.arcs.carried(old.weights, old.arcs)

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[TreeModel, tuple[int, int, float]]:
        (kept,), counts = choose_among([self.weights], threshold, keep)
        weights = np.where(kept, self.weights, 0.0)
        if self.arcs.index.bits:  # the number of hashed features is fixed
            return self.with_weights(weights), counts
        arcs, needed = self.arcs.keep(kept.astype(np.uint8))
        pruned = self.with_weights(weights[needed])
        pruned.arcs = arcs
        return pruned, counts

    def without_zeros(self) -> TreeModel:
        found = super().without_zeros()
        if self.labeller is not None:
            found = found.with_weights(found.weights)
            found.labeller = self.labeller.without_zeros()
        return found

    def attributes(self) -> dict[str, Any]:
        found = {f"{name}_": getattr(self, name) for name in ("label_result", "n_non_projective", "n_skipped")}
        return found if self.labeller is None else {**found, "classes_": self.labeller.classes}

    def to_parts(self, parts: ModelParts) -> None:
        parts.add("arcs", self.arcs.to_parts())
        arrays = coefficient_arrays(self.weights[np.newaxis])
        if "columns" in arrays and self.arcs.index.bits:  # others have lost their zeros with the keys
            parts.version = 2
            parts.settings["n_features"] = len(self.weights)
            parts.arrays |= arrays
        else:
            parts.arrays["weights"] = self.weights
        parts.settings |= {"n_non_projective": self.n_non_projective, "n_skipped": self.n_skipped}
        if self.labeller is not None:
            parts.settings["labels"] = encode_labels(self.labeller.classes)
            parts.add("labeller", self.labeller.to_parts())
            if self.label_result is not None:  # that of a partition is not trained yet
                add_result(parts, self.label_result, "label_result", "label_history")

    def from_parts(self, parts: ModelParts) -> TreeModel:
        self.arcs = ArcFeatures.from_parts(parts.part("arcs"))
        n = self.arcs.index.num_weights
        sparse = "columns" in parts.arrays
        self._weights = read_coefficients(parts, 1, n)[0] if sparse else np.array(parts.floats("weights", n))
        self.n_non_projective, self.n_skipped = parts.integer("n_non_projective"), parts.integer("n_skipped")
        self.labeller = self.label_result = None
        if parts.has("labeller"):
            classes = decode_labels(parts.settings.get("labels"))
            if not all(isinstance(name, str) for name in classes.tolist()):
                raise ModelFormatError("has names of arcs that are not strings")
            self.labeller = ArcLabeller.from_parts(parts.part("labeller"), classes)
            if parts.has("label_result"):
                self.label_result = read_result(parts, self.labeller.weights, "label_result", "label_history")
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if state.get("label_result") is not None:
            state["label_result"] = replace(state["label_result"], dual_point=None)
        return state


def check_arcs(words: Words, word: int, *heads: int | None) -> int:
    """Return the length of the only sentence, which must have this word and these heads of it."""
    n = int(words.lengths.sum())
    if isinstance(word, bool) or not 1 <= word <= n:
        raise ValueError(f"there is no word {word} in a sentence of {n} words")
    for head in heads:
        if head is not None and (isinstance(head, bool) or not 0 <= head <= n or head == word):
            raise ValueError(f"there is no arc from {head} to {word} in a sentence of {n} words")
    return n


#: Bytes of an arc, of each of its features (measured: see `ARC_BYTES`), and of an entry.
ARC, FEATURE, ENTRY = 150, 4, 16


class VariedWords:
    """The distinct values of each column of words, as a few words that have them."""

    def __init__(self) -> None:
        self._values: list[dict[str, None]] = [{} for _ in FIELDS]

    def add(self, words: Words) -> None:
        for known, column in zip(self._values, words.columns, strict=True):
            known |= dict.fromkeys(column)

    def words(self) -> Words:
        n = max(map(len, self._values))
        columns = [[*known, *islice(cycle(known), n - len(known))] for known in self._values]
        return Words(np.array([n], dtype=np.int64), columns, [0], [None])


def frequent_features(counts: KeyCounts, min_count: int) -> ArcIndex:
    """Return the features that occur `min_count` times, the most frequent first."""
    keys, counted = counts.frequent(min_count)
    return check_features(ArcIndex(np.ascontiguousarray(keys[np.lexsort((keys, -counted))])), min_count)


def pair_layout(pairs: KeyCounts, index: ArcIndex, n_names: int) -> PairLayout:
    """Return the layout of weights for pairs (feature, arc name): those counted whose feature is in the index."""
    (keys, names, _), order = pairs.frequent(1), np.argsort(index.keys)
    place = places_in(index.keys[order], keys)
    ids, names = order[place[place >= 0]], names[place >= 0]
    sorting = np.lexsort((names, ids))
    return layout_of(index.num_weights, n_names, padded_width(n_names), ids[sorting], names[sorting])


class TreePartitioner(Partitioner):
    """Learns a `TreeModel` but for the weights of its labeller.

    The first pass finds the names of arcs and the columns of words that vary, which the choice of templates depends on;
    the second counts features. Sentences whose trees the structure excludes only teach the names of arcs (weight 0).
    """

    def __init__(self, model: TreeModel) -> None:
        self.model = model
        self._used, self._all = VariedWords(), VariedWords()  # of the sentences that the parser learns from, of all
        self._relations: set[str] = set()
        self._bare = False  # whether some trees have no names
        self._keys, self._label_keys = KeyCounts(np.uint64), KeyCounts(np.uint64)
        self._pairs = KeyCounts(np.uint64, np.int64)
        model.n_non_projective = model.n_skipped = 0

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        trees = self.model.given(X, y, sample_weight)
        self.model.n_non_projective += trees.n_crossing
        self.model.n_skipped += int((~trees.kept).sum())
        self._used.add(trees.words.take(trees.kept))
        self._all.add(trees.words)
        self._relations.update(trees.relations or ())
        self.model.check_names(self._relations)
        self._bare = self._bare or not trees.relations

    def choose_vocabulary(self) -> None:
        model = self.model
        if not self._used.words().lengths[0]:
            raise ValueError(ALL_CROSSING)
        if self._bare and self._relations:
            raise ValueError("y: some words have relations and others have none")
        named = model.is_named(len(self._relations))
        self._names = label_array(sorted(self._relations))
        self._table = fitted_table(model.templates or ARC_TEMPLATES, self._used.words(), model.inputs)
        self._label_table = None
        if named:
            self._label_table = fitted_table(model.label_templates or LABEL_TEMPLATES, self._all.words(), model.inputs)
        # the estimate of memory goes by the templates; features are chosen in the end
        model.arcs = ArcFeatures(self._table, ArcIndex.hashed(1))
        model.labeller = model.label_result = None

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables:
        model, (words, gold, names, weight, kept, heads, _) = self.model, self.model.given(X, y, sample_weight)
        if model.features != "hashed" and kept.any():
            tokens = words.take(kept).tokens(self._table.keys)
            arcs = heads[np.repeat(kept, words.lengths)] if model.features == "gold" else None
            keys, counts = ArcIndex.counted(self._table.compiled, tokens, arcs)
            self._keys.add(keys, counts=counts)
        # a tree that the structure has, in place of one that it has not: its weight is 0
        columns: dict[str, Any] = {f"words/{name}": column for name, column in zip(FIELDS, words.columns, strict=True)}
        columns["words/heads"] = np.where(np.repeat(kept, words.lengths), heads, words.chains())
        columns["sentences/kept"] = kept.astype(np.int64)
        if self._label_table is not None:
            relations = encode_flat(names or [""] * len(heads), self._names)
            if (relations < 0).any():
                raise ChangedData
            tokens = words.tokens(self._label_table.keys)
            keys, counts = ArcIndex.counted(self._label_table.compiled, tokens, gold)
            self._label_keys.add(keys, counts=counts)
            row_ptr, ids = ArcIndex(keys).attributes(self._label_table.compiled, tokens, gold)
            self._pairs.add(keys[ids], np.repeat(relations, np.diff(row_ptr)))
            columns |= {"words/gold": gold, "words/relations": relations}
        lengths = {"words": words.lengths, "sentences": np.ones(len(kept), dtype=np.int64)}
        return EncodedTables(lengths, columns, arc_entries(words.lengths, self._table), weight)

    def n_slots(self, encoded: EncodedTables) -> int:
        return int(self.model.make_structure(encoded.lengths["words"]).slot_offsets()[-1])

    def choose_features(self) -> None:
        model = self.model
        least = int(model.min_count)
        hashed = model.features == "hashed"
        index = ArcIndex.hashed(int(model.hash_bits)) if hashed else frequent_features(self._keys, least)
        model.arcs = ArcFeatures(self._table, index)
        if self._label_table is not None:
            features = ArcFeatures(self._label_table, frequent_features(self._label_keys, least))
            layout = pair_layout(self._pairs, features.index, len(self._names))
            model.labeller = ArcLabeller(features, layout, self._names, np.zeros(layout.core.num_weights))


def arc_entries(lengths: Ints, table: ArcTable) -> Ints:
    """Return the memory that opened sentences take, in entries: all arcs, two features per template each."""
    each = ARC + FEATURE * 2 * len(table.templates)
    return cast(Ints, np.ceil(lengths * (lengths + 1) * (each / ENTRY)).astype(np.int64))
