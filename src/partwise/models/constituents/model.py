"""Constituent trees: derivations under the grammar of the training trees, with features of words and spans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from partwise.io.trees import Tree, common_root, flat_tree, rows_of_tree, tree_of_rows, words_of
from partwise.metrics import parseval
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import encode
from partwise.models.base import Ability, Labellings, Learnt, Model, Reading, Training
from partwise.models.constituents import features
from partwise.models.constituents.features import TABLES, TEMPLATES, CodedSentences, Tables, WordCodes, WordCounts
from partwise.models.constituents.files import add_grammar, add_tables, read_grammar, read_tables
from partwise.models.constituents.grammar import ParsingGrammar
from partwise.models.constituents.inputs import check_same_words, is_tree, read_gold, read_sentences, read_spans
from partwise.models.constituents.treebank.grammar import GrammarCounts, WordClasses
from partwise.models.constituents.treebank.transform import TreeTransform, read_symbol
from partwise.models.constraints import ConstraintError, check_entries
from partwise.models.features import KeyCounts, layout_of, look_up
from partwise.models.inspection import Contribution, Explanation, Named, TopFeatures, choose_among, explanation
from partwise.models.labels import check_distinct, given_labels, node_labels, split, warn_of_many_labels
from partwise.models.partition import ChangedData, EncodedTables, Kind, Partitioner, Whole
from partwise.models.readers import as_trees
from partwise.problem import Batch, LabelledBatch
from partwise.structures import Grammar, padded_width
from partwise.support.arrays import Booleans, Floats, Ints, pointers
from partwise.support.checks import check_choice, check_range, check_sample_weight

Sentences = list[list[str]]
Spans = dict[tuple[str, int, int], float]


@dataclass(eq=False, repr=False, kw_only=True)
class ConstituencyModel(Model[Sentences]):
    """A tree per sentence. The parameters are those of `ConstituencyParser`."""

    late: ClassVar[tuple[str, ...]] = ("no_parse", "max_length")
    constraints: ClassVar[tuple[str, ...]] = ("required", "forbidden")

    horizontal: float
    vertical: int
    binarise: str
    traces: bool
    functions: bool
    rare: int
    min_count: int
    cost: str
    no_parse: str
    max_length: int
    tuple_bits: int

    transform: TreeTransform = field(init=False)
    grammar: ParsingGrammar = field(init=False)
    tables: Tables = field(init=False)

    def __post_init__(self) -> None:
        if isinstance(self.cost, str) and self.cost == "rules":
            # Its slots depend on the loss, which a partition does not know.
            self.lacks = {Ability.PARTITIONS: "partitions: not available with cost='rules'"}
        self.check()

    def check(self) -> None:
        check_choice("cost", self.cost, ("constituents", "rules"))
        check_choice("no_parse", self.no_parse, ("flat", "raise"))
        for name in ("traces", "functions"):
            check_choice(name, getattr(self, name), (True, False))
        ranges = {"rare": (0, 1 << 30), "min_count": (1, 1 << 30), "max_length": (1, 1 << 15), "tuple_bits": (0, 24)}
        for name, (low, high) in ranges.items():
            check_range(name, getattr(self, name), low, high)
        self.make_transform(None)

    @property
    def n_tuples(self) -> int:
        return 1 << int(self.tuple_bits) if self.tuple_bits else 0

    def make_transform(self, root: str | None) -> TreeTransform:
        """Return the transform of trees; root: the label of the node that all trees begin with."""
        return TreeTransform(self.horizontal, self.vertical, self.binarise, self.traces, self.functions, root)

    def learn(self, X: object, y: object, sample_weight: object, training: Training) -> Learnt:
        check_distinct(given_labels(X, y))
        trees, weight = self.given(X, y, sample_weight)
        warn_of_many_labels(np.array(list(Counter(node_labels(trees)).values())))
        if not trees:
            raise ValueError("there are no trees to learn from")
        encoded = self.partitioner().learn(trees, weight)
        sentences, nodes, own = self.encoded_sentences(encoded), encoded.columns["nodes/rows"], self.grammar.treebank
        # A slot per gold rule is needed for one cost alone, and not without costs.
        with_gold = self.cost == "rules" and training.loss.cost_scale > 0
        examples = self._gold_examples(sentences, nodes, weight, with_gold)
        return Learnt(examples, (encoded.lengths["words"], own.symbols, own.rules, with_gold, self.n_tuples))

    def given(self, X: object, y: object, sample_weight: object) -> tuple[list[Tree], Floats | None]:
        trees = read_gold(X, y, self.make_transform(None), int(self.max_length))
        weight = check_sample_weight(sample_weight, len(trees), "sentence")
        if weight is not None:
            trees = [tree for tree, w in zip(trees, weight.tolist(), strict=True) if w > 0]
            weight = weight[weight > 0]
        return trees, weight

    def binary(self, trees: list[Tree], root: str | None) -> list[Tree]:
        """Return cleaned trees, whose root has this label, in normal form."""
        bare = self.make_transform(root).without_cleaning
        return [bare.binary(tree, f"y: tree {i}") for i, tree in enumerate(trees)]

    def _gold_examples(
        self, sentences: Sentences, nodes: Ints, weight: Floats | None = None, with_gold: bool = False
    ) -> LabelledBatch:
        """Return sentences with their derivations as examples; with_gold: other rules cost 1."""
        structure = self.structure(sentences, nodes if with_gold else None)
        n_gold = structure.lengths if with_gold else None
        batch = Batch(structure, self.tables.feature_map(sentences, once=False, n_gold=n_gold))
        return LabelledBatch(batch, structure.encode(nodes), weight)

    def structure(self, sentences: Sentences, gold: Ints | None = None) -> Grammar:
        """Return the derivations of sentences as a structure; gold: derivations whose rules cost nothing."""
        cost = "constituents" if gold is None else "rules"
        return self.grammar.structure(sentences, gold=gold, cost=cost, **self.tables.tuple_options(sentences))

    def gold_attributes(self, sentences: Sentences, nodes: Ints, codes: WordCodes) -> dict[str, tuple[Ints, Ints]]:
        """Return by table (attributes, one row per node of gold trees; columns of these nodes)."""
        coded = CodedSentences(codes, sentences)
        lengths = coded.lengths
        owner = np.repeat(np.arange(len(sentences)), 2 * lengths - 1)
        symbol, begin, end = nodes.T
        first, n = pointers(lengths)[:-1][owner], lengths[owner]
        after = np.minimum(np.arange(len(nodes)) + 1, len(nodes) - 1)  # a node's left child is the next one
        spans = pointers(features.span_rows(lengths))[:-1][owner] + begin * (n - 1) - begin * (begin - 1) // 2
        rows = {"start": first + begin, "split": first + end[after], "end": first + end - 1, "word": first + begin}
        rows["span"] = spans + end - begin - 2
        inner, found = end > begin + 1, {}
        for name in TABLES:
            lexical = name == "word"
            used = ~inner if lexical else inner
            symbols = symbol[used]
            columns = np.searchsorted(self.grammar.lexical, symbols) if lexical else self.grammar.column_of[symbols]
            found[name] = coded.keys(name)[rows[name][used]], columns
        return found

    def feature_parameters(self) -> dict[str, Any]:
        names = ("horizontal", "vertical", "binarise", "traces", "functions", "rare", "min_count", "tuple_bits")
        return {name: encode(getattr(self, name), name) for name in names}

    def partitioner(self) -> ConstituencyPartitioner:
        return ConstituencyPartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedTables:
        kinds: dict[str, Kind] = {"words/form": str, "nodes/rows": Whole(0, 1 << 40, 3)}
        found = EncodedTables.read(parts, ("words", "nodes"), kinds)
        lengths, nodes = found.lengths["words"], found.columns["nodes/rows"]
        n = np.repeat(lengths, found.lengths["nodes"])
        wrong = (nodes[:, 0] >= self.grammar.treebank.n_symbols) | (nodes[:, 1] >= nodes[:, 2]) | (nodes[:, 2] > n)
        # Whether the nodes are those of trees is seen when they are used.
        if not lengths.all() or (found.lengths["nodes"] != 2 * lengths - 1).any() or wrong.any():
            raise ModelFormatError("has nodes that make no trees")
        return EncodedTables(found.lengths, found.columns, tree_entries(lengths), found.weight)

    @staticmethod
    def encoded_sentences(encoded: EncodedTables) -> Sentences:
        return split(encoded.columns["words/form"], encoded.lengths["words"])

    def labelled(self, encoded: EncodedTables, by_features: bool | None = False) -> LabelledBatch:
        return self._gold_examples(self.encoded_sentences(encoded), encoded.columns["nodes/rows"], encoded.weight)

    def read(self, X: object, n_jobs: int = 1) -> Reading[Sentences]:
        sentences = read_sentences(X, self.transform, int(self.max_length))
        numbers = np.array([i for i, words in enumerate(sentences) if words], dtype=np.int64)
        structure = self.structure([sentences[i] for i in numbers.tolist()])
        parsed = np.array([structure.has_derivation(k) for k in range(len(numbers))], dtype=bool)
        kept, failed = numbers[parsed], numbers[~parsed]
        own = [sentences[i] for i in kept.tolist()]
        if len(failed) and self.no_parse == "raise":
            where = f"sentence {failed[0]}"
            self.grammar.treebank.check_words(sentences[failed[0]], where)
            why = "has no parse under the grammar of the training trees"
            raise ValueError(f"{where} {why} (no_parse='flat' gives a flat tree)")
        structure = self.structure(own) if len(failed) else structure
        batch = Batch(structure, self.tables.feature_map(own, once=True))
        return Reading(batch, len(sentences), kept, sentences, failed)

    def left_out(self, reading: Reading[Sentences], i: int) -> Any:
        """Return the empty tree for a sentence without words, a flat tree where there is no parse."""
        words = reading.source[i]
        if not words:
            return ()
        label = self.transform.root or read_symbol(self.grammar.treebank.usual_root)[0][0] or ""
        return flat_tree(words, [tag or label for tag in self.grammar.tags(words)], label)

    def decode(self, reading: Reading[Sentences], which: Ints, labellings: Labellings, n_jobs: int = 1) -> list[Any]:
        structure = reading.structure(Grammar)
        numbers, ends = reading.numbers, labellings.indptr.tolist()
        found = []
        for i, a, b in zip(which.tolist(), ends, ends[1:], strict=False):
            rows = structure.nodes_of(i, labellings.slots[a:b], labellings.counts[a:b])
            tree = tree_of_rows(rows, self.grammar.treebank.symbols, reading.source[numbers[i]])
            found.append(self.transform.restore(tree))
        return found

    def further(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> LabelledBatch:
        return super().further(X, X if y is None else y, sample_weight, n_jobs)

    def encode(self, reading: Reading[Sentences], y: object) -> tuple[Labellings, Booleans]:
        trees = as_trees(y, reading.n_examples, single=is_tree(y))
        structure = reading.structure(Grammar)
        bare = self.transform.without_cleaning
        found: list[tuple[Ints, Floats]] = []
        for i, number in enumerate(reading.numbers.tolist()):
            tree = self.transform.cleaned(trees[number], f"y: tree {number}")
            check_same_words(tree, reading.source[number], number)
            try:
                rows = rows_of_tree(bare.binary(tree), self.grammar.treebank.symbol_numbers)
                found.append(structure.labelling_of(i, rows))
            except ValueError:  # an impossible tree, without slots
                found.append((np.empty(0, dtype=np.int64), np.empty(0)))
        labellings = Labellings.of(found)
        return labellings, np.diff(labellings.indptr) > 0

    def labelled_reading(self, reading: Reading[Sentences], gold: Labellings) -> LabelledBatch:
        if self.cost != "rules":
            return super().labelled_reading(reading, gold)
        sentences = [reading.source[i] for i in reading.numbers.tolist()]
        return self._gold_examples(sentences, reading.structure(Grammar).decode(*gold), with_gold=True)

    def constrain(self, reading: Reading[Sentences], required: object = None, forbidden: object = None) -> None:
        structure, labels, n_examples = reading.structure(Grammar), self.attributes(), reading.n_examples
        given = {
            name: check_entries([None] * n_examples if value is None else value, n_examples, "sentences", name)
            for name, value in (("required", required), ("forbidden", forbidden))
        }
        known = {*labels["labels_"], *labels["tags_"]}
        batch_numbers = {number: i for i, number in enumerate(reading.numbers.tolist())}
        for number, words in enumerate(reading.source):
            where, n = f"sentence {number}", len(words)
            spans = [read_spans(values[number], name, where, n, known) for name, values in given.items()]
            i = batch_numbers.get(number)
            if i is None or not any(spans):  # without a parse there is nothing to constrain
                continue
            try:
                structure.set_mask(i, self.grammar.mask(structure, i, *spans))
            except ValueError as error:
                raise ConstraintError(f"sentence {number}: no tree is left ({error})", number) from None

    def marginals(self, reading: Reading[Sentences], counts: Floats, least: float = 1e-3) -> list[Spans]:
        """Return {(label, begin, end): expected number} per sentence, for numbers that are at least `least`."""
        structure = reading.structure(Grammar)
        slots = split(counts, np.diff(structure.slot_offsets()))
        return reading.spread([self._spans_of(structure, i, own, least) for i, own in enumerate(slots)], dict)

    def _spans_of(self, structure: Grammar, i: int, counts: Floats, least: float) -> Spans:
        *_, spans, words, other = structure.table_offsets(i)
        *_, span_width, word_width = structure.widths
        n = int(structure.lengths[i])
        begins, ends = np.triu_indices(n + 1, 2)
        sums: defaultdict[tuple[str, int, int], float] = defaultdict(float)
        tables = (
            (counts[spans:words], span_width, begins, ends, [() if c.made else c.labels for c in self.grammar.columns]),
            (counts[words:other], word_width, np.arange(n), np.arange(1, n + 1), self.grammar.word_labels),
        )
        for values, width, begin, end, labels in tables:
            for slot in np.flatnonzero(values).tolist():
                row, column = divmod(slot, width)
                for label in labels[column]:
                    sums[label, int(begin[row]), int(end[row])] += float(values[slot])
        return {span: p for span, p in sorted(sums.items(), key=lambda item: (item[0][1:], item[0])) if p >= least}

    def score(self, X: object, y: object, predicted: Any, sample_weight: object) -> float:
        """Return the labelled F1 of brackets (`partwise.metrics.parseval`)."""
        gold = read_gold(X, y, self.transform, int(self.max_length))
        weight = check_sample_weight(sample_weight, len(gold), "sentence")
        if weight is None:
            return parseval(gold, predicted).f1
        each = [parseval([a], [b]) for a, b in zip(gold, predicted, strict=True)]
        right, total = np.array([[2 * x.n_right, x.n_gold + x.n_predicted] for x in each]).T @ weight
        return float(right / total) if total else 0.0

    def explain(self, reading: Reading[Sentences]) -> Explanation:
        """Compare the best tree with the second-best one, by rules and attributes."""
        if not reading.batch.n_examples:
            raise ValueError("the sentence has no parse: there is nothing to explain")
        structure = reading.structure(Grammar)
        ranked = structure.k_best(0, reading.batch.features.scores(0, self.weights), 2)
        which = np.zeros(len(ranked), dtype=np.int64)
        trees = self.decode(reading, which, Labellings.of([each[1:] for each in ranked]))
        if len(ranked) < 2:
            return explanation(trees[0], None, (ranked[0][0], float("-inf")), [])
        uses = np.zeros((2, structure.num_slots(0)))
        for own, (_, slots, counts) in zip(uses, ranked, strict=True):
            own[slots] = counts
        weights, n_tuples = self.tables.split(self.weights), self.tables.n_tuples
        found = _contributions("rule", self.grammar.rule_name, uses[:, : self.tables.n_rules], weights["rules"])
        # Hashed tuples have no names but their numbers.
        found += _contributions("tuple", "hash {}".format, uses[:, uses.shape[1] - n_tuples :], weights["tuples"])
        coded = CodedSentences(self.tables.codes, [reading.source[int(reading.numbers[0])]])
        first = [*structure.table_offsets(0)]
        begins = np.triu_indices(int(coded.lengths[0]) + 1, 2)[0]
        for k, (table, triples) in enumerate(self.tables.triples(self.weights)):
            changed = first[k] + np.flatnonzero(uses[0, first[k] : first[k + 1]] != uses[1, first[k] : first[k + 1]])
            keys, names = coded.keys(table), self.grammar.column_names(table)
            for slot in changed.tolist():
                row, column = divmod(slot - first[k], structure.widths[k])
                place = int(begins[row]) if table == "span" else row
                numbers, (one, two) = self.tables.tables[table].numbers(keys[row]), uses[:, slot].tolist()
                amounts = look_up(triples, numbers, np.full(len(numbers), column))
                for j in np.flatnonzero(amounts).tolist():
                    name = features.name_of(table, int(keys[row, j]), self.tables.codes)
                    amount = float((one - two) * amounts[j])
                    found.append(Contribution(f"{table} of {names[column]}", name, place, int(one), int(two), amount))
        return explanation(trees[0], trees[1], (ranked[0][0], ranked[1][0]), found)

    def top_features(self, n: int = 10) -> TopFeatures:
        """Return the largest weights under each column's name, of all tables of phrases, and the largest rules."""
        found: dict[str, Named] = {}
        for table, (attributes, columns, weights) in self.tables.triples(self.weights):
            names, known = self.grammar.column_names(table), self.tables.tables[table].keys
            order = np.lexsort((-np.abs(weights), columns))
            begins = np.searchsorted(columns[order], np.arange(len(names) + 1))
            for column, name in enumerate(names):
                best = order[begins[column] : begins[column + 1]][:n]
                best = best[weights[best] != 0]
                found.setdefault(name, []).extend(
                    (f"{table} {features.name_of(table, key, self.tables.codes)}", float(weight))
                    for key, weight in zip(known[attributes[best]].tolist(), weights[best], strict=True)
                )
        rules = self.tables.split(self.weights)["rules"]
        largest = [k for k in np.argsort(-np.abs(rules), kind="stable")[:n].tolist() if rules[k]]
        labels = {name: sorted(rows, key=lambda row: -abs(row[1]))[:n] for name, rows in sorted(found.items()) if rows}
        return TopFeatures({"rules": [(self.grammar.rule_name(k), float(rules[k])) for k in largest], **labels})

    def carried(self, old: ConstituencyModel) -> Floats | None:
        mine, theirs = self.grammar.treebank, old.grammar.treebank
        columns, old_columns = ((own.column_names("span"), own.word_labels) for own in (self.grammar, old.grammar))
        if columns != old_columns:
            return None
        names, old_names = (
            [tuple(own.symbols[a] for a in rule) for rule in own.rules.tolist()] for own in (mine, theirs)
        )
        weights = dict(zip(old_names, old.tables.split(old.weights)["rules"].tolist(), strict=True))
        rules = np.array([weights.get(name, 0.0) for name in names])
        same = mine.symbols == theirs.symbols and np.array_equal(mine.rules, theirs.rules)
        return self.tables.carried(old.weights, old.tables, rules, same)

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[ConstituencyModel, tuple[int, int, float]]:
        kept, counts = choose_among(list(self.tables.split(self.weights).values()), threshold, keep)
        tables, weights = self.tables.pruned(self.weights, kept)
        pruned = self.with_weights(weights)
        pruned.tables = tables
        return pruned, counts

    def attributes(self) -> dict[str, Any]:
        labels = {label for column in self.grammar.columns if not column.made for label in column.labels}
        phrases = labels.union(*(chain[:-1] for chain in self.grammar.word_labels))
        tags = {chain[-1] for chain in self.grammar.word_labels if chain}
        return {"labels_": sorted(phrases), "tags_": sorted(tags), "grammar_": self.grammar.treebank}

    def to_parts(self, parts: ModelParts) -> None:
        parts.settings["root"] = self.transform.root
        add_grammar(parts, self.grammar.treebank)
        add_tables(parts, self.tables, self.weights)

    def from_parts(self, parts: ModelParts) -> ConstituencyModel:
        root = parts.settings.get("root")
        if root is not None and type(root) is not str:
            raise ModelFormatError("has a root that is not text")
        self.transform = self.make_transform(root)
        self.grammar = ParsingGrammar(read_grammar(parts))
        self.tables, self._weights = read_tables(parts, self.grammar, self.n_tuples)
        return self


def _contributions(kind: str, name: Callable[[int], str], uses: Floats, weights: Floats) -> list[Contribution]:
    """Return what slots of one feature each contribute; uses: how often the two trees have them."""
    best, second = uses
    return [
        Contribution(kind, name(k), None, int(best[k]), int(second[k]), float((best[k] - second[k]) * weights[k]))
        for k in np.flatnonzero(best != second).tolist()
    ]


class ConstituencyPartitioner(Partitioner):
    """Counts rules and words with and without the first tree's root, which others may lack; in pass 2 attributes."""

    def __init__(self, model: ConstituencyModel) -> None:
        self.model = model
        self._root: str | None = None
        self._counts: dict[str | None, GrammarCounts] = {}
        self._labels: set[str] = set()
        self._words = WordCounts()
        self._pairs = {name: KeyCounts(np.int64, np.int64) for name in TABLES}

    def scan(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> None:
        self._labels.update(given_labels(X, y))
        check_distinct(self._labels)
        trees, _ = self.model.given(X, y, sample_weight)
        root = common_root(trees)
        if not self._counts:
            self._root = root
            self._counts = {each: GrammarCounts() for each in dict.fromkeys((root, None))}
        elif root != self._root and self._root is not None:
            del self._counts[self._root]
            self._root = None
        for each, counts in self._counts.items():
            counts.add(self.model.binary(trees, each))
        self._words.add(map(words_of, trees))

    def learn(self, trees: list[Tree], weight: Floats | None) -> EncodedTables:
        """Learn from one block alone, and return its examples."""
        self._root = common_root(trees)
        normal = self.model.binary(trees, self._root)
        self._counts = {self._root: GrammarCounts()}
        self._counts[self._root].add(normal)
        self._words.add(map(words_of, normal))
        self.choose_vocabulary()
        encoded = self._encode(normal, weight)
        self.choose_features()
        return encoded

    def choose_vocabulary(self) -> None:
        model = self.model
        model.transform = model.make_transform(self._root)
        model.grammar = ParsingGrammar(self._counts[self._root].grammar(rare=int(model.rare)))
        self._counts = {}  # frees their memory
        self._codes: WordCodes = self._words.codes(model.grammar.treebank.word_classes or WordClasses())

    def encode(self, X: object, y: object, sample_weight: object, n_jobs: int = 1) -> EncodedTables | None:
        trees, weight = self.model.given(X, y, sample_weight)
        return self._encode(self.model.binary(trees, self._root), weight) if trees else None

    def _encode(self, normal: list[Tree], weight: Floats | None) -> EncodedTables:
        model, sentences = self.model, [words_of(tree) for tree in normal]
        try:
            nodes = np.concatenate([rows_of_tree(tree, model.grammar.treebank.symbol_numbers) for tree in normal])
        except (KeyError, ValueError):
            raise ChangedData from None
        for name, (keys, columns) in model.gold_attributes(sentences, nodes, self._codes).items():
            rows, known = np.repeat(columns, keys.shape[1]), keys.ravel() >= 0
            self._pairs[name].add(keys.ravel()[known], rows[known])
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        stored = {"words/form": [word for words in sentences for word in words], "nodes/rows": nodes}
        return EncodedTables({"words": lengths, "nodes": 2 * lengths - 1}, stored, tree_entries(lengths), weight)

    def n_slots(self, encoded: EncodedTables) -> int:
        sentences = self.model.encoded_sentences(encoded)
        return int(self.model.grammar.structure(sentences).slot_offsets()[-1]) + len(sentences) * self.model.n_tuples

    def choose_features(self) -> None:
        model = self.model
        found = {}
        for name, pairs in self._pairs.items():
            known, n_columns = np.unique(pairs.frequent(1)[0]), model.grammar.n_columns(name)
            keys, columns, _ = pairs.frequent(int(model.min_count))
            ids = np.searchsorted(known, keys)
            found[name] = features.Table(known, layout_of(len(known), n_columns, padded_width(n_columns), ids, columns))
        model.tables = Tables(len(model.grammar.treebank.rules), self._codes, found, model.n_tuples)


def tree_entries(lengths: Ints) -> Ints:
    """Return the memory that opened sentences take, in entries: the attributes of all places and spans."""
    spans = len(TEMPLATES["span"]) * features.span_rows(lengths)
    return spans + lengths * sum(len(TEMPLATES[name]) for name in TABLES if name != "span")
