"""Constituent trees: derivations under the grammar of the training trees, with features of words and spans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sized
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from partwise.metrics import parseval
from partwise.model_files.parts import ModelParts
from partwise.model_files.values import encode as encode_value
from partwise.models.base import Ability, Labellings, Learnt, Model, Reading, Training
from partwise.models.constituents import files
from partwise.models.constituents.constraints import read_spans, span_mask
from partwise.models.constituents.explaining import explained, top_weights
from partwise.models.constituents.features import TABLES, keys_of, span_rows
from partwise.models.constituents.grammar import ParsingGrammar
from partwise.models.constituents.partitioner import ConstituencyPartitioner, read_encoded, sentences_of
from partwise.models.constituents.sentences import as_list, check_same_words, read_gold, read_sentences
from partwise.models.constituents.tables import Table, Tables
from partwise.models.constituents.treebank import TreeTransform, common_root, flat_tree, read_off
from partwise.models.constituents.treebank.derivations import rows_of_tree, tree_of_rows
from partwise.models.constituents.treebank.symbols import read_symbol
from partwise.models.constituents.treebank.unknown import WordClasses
from partwise.models.constituents.words import WordCodes
from partwise.models.encoded import EncodedTables
from partwise.models.errors import ConstraintError
from partwise.models.inspection import Explanation, TopFeatures, choose_kept, counts_of
from partwise.models.labels import check_distinct, given_labels, node_labels, warn_of_many_labels
from partwise.problem import Batch, LabelledBatch
from partwise.structures import Grammar
from partwise.support.arrays import Booleans, Floats, Ints, pointers
from partwise.support.checks import check_choice, check_sample_weight

Spans = dict[tuple[str, int, int], float]


class ConstituencyModel(Model):
    """A tree per sentence. The parameters are those of `ConstituencyParser`."""

    late: ClassVar[tuple[str, ...]] = ("no_parse", "max_length")
    constraints: ClassVar[tuple[str, ...]] = ("required", "forbidden")

    transform: TreeTransform
    grammar: ParsingGrammar
    tables: Tables

    def __init__(
        self,
        *,
        horizontal: float,
        vertical: int,
        binarise: str,
        traces: bool,
        functions: bool,
        rare: int,
        min_count: int,
        cost: str,
        no_parse: str,
        max_length: int,
        tuple_bits: int,
    ) -> None:
        self.horizontal = horizontal
        self.vertical = vertical
        self.binarise = binarise
        self.traces = traces
        self.functions = functions
        self.rare = rare
        self.min_count = min_count
        self.cost = cost
        self.no_parse = no_parse
        self.max_length = max_length
        self.tuple_bits = tuple_bits
        if isinstance(cost, str) and cost == "rules":  # its slots depend on the loss, which a partition does not know
            self.lacks = {Ability.PARTITIONS: "partitions: not available with cost='rules'"}
        self.check()

    def check(self) -> None:
        check_choice("cost", self.cost, ("constituents", "rules"))
        check_choice("no_parse", self.no_parse, ("flat", "raise"))
        check_choice("traces", self.traces, (True, False))
        check_choice("functions", self.functions, (True, False))
        limits = (("rare", 0, 1 << 30), ("min_count", 1, 1 << 30), ("max_length", 1, 1 << 15), ("tuple_bits", 0, 24))
        for name, low, high in limits:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
                raise ValueError(f"{name} must be an integer from {low} to {high}, got {value!r}")
        self.make_transform(None)

    @property
    def n_tuples(self) -> int:
        """Weights of hashed tuples."""
        return 1 << int(self.tuple_bits) if self.tuple_bits else 0

    def make_transform(self, root: str | None) -> TreeTransform:
        """What is done with trees; root: the node that all of them begin with."""
        return TreeTransform(self.horizontal, self.vertical, self.binarise, self.traces, self.functions, root)

    # training

    def learn(self, X: Any, y: Any, sample_weight: Any, training: Training) -> Learnt:
        check_distinct(given_labels(X, y))
        trees = read_gold(X, y, self.make_transform(None), int(self.max_length))
        warn_of_many_labels(np.array(list(Counter(node_labels(trees)).values())))
        weight = check_sample_weight(sample_weight, len(trees), "sentence")
        if weight is not None:
            trees = [tree for tree, w in zip(trees, weight.tolist(), strict=True) if w > 0]
            weight = weight[weight > 0]
        if not trees:
            raise ValueError("there are no trees to learn from")
        self.transform = self.make_transform(common_root(trees))
        bare = replace(self.transform, traces=False, functions=False)  # they are cleaned already
        normal = [bare.binary(tree, f"y: tree {i}") for i, tree in enumerate(trees)]
        self.grammar = ParsingGrammar(read_off(normal, rare=int(self.rare)))
        own = self.grammar.read_off
        sentences = [[node[1] for node in _leaves(tree)] for tree in normal]
        nodes = np.concatenate([rows_of_tree(tree, own.symbol_numbers) for tree in normal])
        codes = WordCodes.learnt(sentences, own.word_classes or WordClasses())
        self.tables = Tables(len(own.rules), codes, self._observed(sentences, nodes, codes), self.n_tuples)
        # A slot per gold rule is needed for one cost alone, and not without costs.
        with_gold = self.cost == "rules" and training.loss.cost_scale > 0
        examples = self._gold_examples(sentences, nodes, weight, with_gold)
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        return Learnt(examples, (lengths, own.symbols, own.rules, with_gold, self.n_tuples))

    def _gold_examples(
        self, sentences: list[list[str]], nodes: Ints, weight: Floats | None = None, with_gold: bool = False
    ) -> LabelledBatch:
        """Sentences with their derivations; with_gold: rules that these do not have cost 1."""
        options: dict[str, Any] = {"gold": nodes, "cost": "rules"} if with_gold else {}
        structure = self.structure(sentences, **options)
        features = self.tables.feature_map(sentences, once=False, n_gold=structure.lengths if with_gold else None)
        return LabelledBatch(Batch(structure, features), structure.encode(nodes), weight)

    def structure(self, sentences: list[list[str]], **options: Any) -> Grammar:
        """The derivations of sentences, with the slots that there are features for."""
        return self.grammar.structure(sentences, **self.tables.tuple_options(sentences), **options)

    def _observed(self, sentences: list[list[str]], nodes: Ints, codes: WordCodes) -> dict[str, Table]:
        """The tables' attributes and columns in gold trees."""
        found = {}
        for name, (keys, columns) in self.gold_attributes(sentences, nodes, codes).items():
            n_columns = len(self.grammar.lexical if name == "word" else self.grammar.columns)
            found[name] = Table.observed(keys, columns, max(n_columns, 1), int(self.min_count))
        return found

    def gold_attributes(
        self, sentences: list[list[str]], nodes: Ints, codes: WordCodes
    ) -> dict[str, tuple[Ints, Ints]]:
        """By table: (attributes, one row per node of gold trees; columns of these nodes)."""
        lengths = np.array([len(words) for words in sentences], dtype=np.int64)
        owner = np.repeat(np.arange(len(sentences)), 2 * lengths - 1)
        symbol, begin, end = nodes.T
        first, n = pointers(lengths)[:-1][owner], lengths[owner]
        after = np.minimum(np.arange(len(nodes)) + 1, len(nodes) - 1)  # a node's left child is the next one
        rows = {
            "start": first + begin,
            "split": first + end[after],
            "end": first + end - 1,
            "span": pointers(span_rows(lengths))[:-1][owner]
            + begin * (n - 1)
            - begin * (begin - 1) // 2
            + end
            - begin
            - 2,
            "word": first + begin,
        }
        inner = end > begin + 1
        found = {}
        for name in TABLES:
            word = name == "word"
            used = ~inner if word else inner
            columns = (
                np.searchsorted(self.grammar.lexical, symbol[used]) if word else self.grammar.column_of[symbol[used]]
            )
            found[name] = keys_of(name, codes, sentences)[rows[name][used]], columns
        return found

    # partitions

    def feature_parameters(self) -> dict[str, Any]:
        names = ("horizontal", "vertical", "binarise", "traces", "functions", "rare", "min_count", "tuple_bits")
        return {name: encode_value(getattr(self, name), name) for name in names}

    def partitioner(self) -> ConstituencyPartitioner:
        return ConstituencyPartitioner(self)

    def encoded(self, parts: ModelParts) -> EncodedTables:
        return read_encoded(self, parts)

    def labelled(self, encoded: EncodedTables, by_features: bool | None = False) -> LabelledBatch:
        return self._gold_examples(sentences_of(encoded), encoded.columns["nodes/rows"], encoded.weight)

    def carried(self, old: ConstituencyModel) -> Floats | None:
        mine, theirs = self.grammar, old.grammar
        same = [str(c) for c in mine.columns] == [
            str(c) for c in theirs.columns
        ] and mine.word_labels == theirs.word_labels
        if not same:
            return None
        weights = {
            tuple(theirs.read_off.symbols[a] for a in rule): k for rule, k in theirs.read_off.rule_numbers.items()
        }
        old_rules = old.tables.split(old.weights)[0]
        rules = np.zeros(len(mine.read_off.rules))
        for k, rule in enumerate(mine.read_off.rules.tolist()):
            at = weights.get(tuple(mine.read_off.symbols[a] for a in rule))
            rules[k] = 0.0 if at is None else old_rules[at]
        same = mine.read_off.symbols == theirs.read_off.symbols
        same = same and np.array_equal(mine.read_off.rules, theirs.read_off.rules)
        return self.tables.carried(old.weights, old.tables, rules, same)

    # prediction

    def read(self, X: Any, n_jobs: int = 1) -> Reading:
        sentences = read_sentences(X, self.transform, int(self.max_length))
        some = [i for i, words in enumerate(sentences) if words]
        structure = self.structure([sentences[i] for i in some])
        parsed = np.array([structure.has_derivation(k) for k in range(len(some))], dtype=bool)
        numbers = np.array(some, dtype=np.int64)
        failed = numbers[~parsed]
        if len(failed) and self.no_parse == "raise":
            raise ValueError(self._why(int(failed[0]), sentences[failed[0]]))
        if len(failed):
            structure = self.structure([sentences[i] for i in numbers[parsed].tolist()])
        kept = numbers[parsed]
        own = [sentences[i] for i in kept.tolist()]
        features = self.tables.feature_map(own, once=True)
        return Reading(Batch(structure, features), len(sentences), kept, sentences, failed)

    def _why(self, i: int, words: list[str]) -> str:
        self.grammar.read_off.check_words(words, f"sentence {i}")
        return f"sentence {i} has no parse under the grammar of the training trees (no_parse='flat' gives a flat tree)"

    def empty(self) -> Any:
        return ()

    def left_out(self, reading: Reading, i: int) -> Any:
        """The empty tree for a sentence without words, a flat one where there is no parse."""
        words = reading.source[i]
        if not words:
            return self.empty()
        own = self.grammar.read_off
        top = read_symbol(own.symbols[own.roots[int(own.root_counts.argmax())]])[0][0]
        label = self.transform.root or top or ""
        return flat_tree(words, [tag or label for tag in self.grammar.tags(words)], label)

    def decode(self, reading: Reading, which: Ints, labellings: Labellings, n_jobs: int = 1) -> list[Any]:
        structure: Any = reading.batch.structure
        numbers, ends = reading.numbers, labellings.indptr.tolist()
        found = []
        for i, a, b in zip(which.tolist(), ends, ends[1:], strict=False):
            rows = structure.nodes_of(i, labellings.slots[a:b], labellings.counts[a:b])
            tree = tree_of_rows(rows, self.grammar.read_off.symbols, reading.source[numbers[i]])
            found.append(self.transform.restore(tree))
        return found

    def further(self, X: Any, y: Any, sample_weight: Any, n_jobs: int = 1) -> LabelledBatch:
        return super().further(X, X if y is None else y, sample_weight, n_jobs)

    def encode(self, reading: Reading, y: Any) -> tuple[Labellings, Booleans]:
        trees = as_list(y, "y")
        if len(trees) != reading.n_examples:
            raise ValueError(f"X has {reading.n_examples} sentences, y has {len(trees)} trees")
        structure: Any = reading.batch.structure
        bare = replace(self.transform, traces=False, functions=False)  # they are cleaned already
        found: list[tuple[Ints, Floats]] = []
        possible = []
        for i, number in enumerate(reading.numbers.tolist()):
            tree = self.transform.cleaned(trees[number], f"y: tree {number}")
            check_same_words(tree, reading.source[number], number)
            try:
                rows = rows_of_tree(bare.binary(tree), self.grammar.read_off.symbol_numbers)
                found.append(structure.labelling_of(i, rows))
            except ValueError:
                found.append((np.empty(0, dtype=np.int64), np.empty(0)))
            possible.append(len(found[-1][0]) > 0)
        return Labellings.of(found), np.array(possible, dtype=bool)

    def labelled_reading(self, reading: Reading, gold: Labellings) -> LabelledBatch:
        if self.cost != "rules":
            return super().labelled_reading(reading, gold)
        structure: Any = reading.batch.structure
        sentences = [reading.source[i] for i in reading.numbers.tolist()]
        return self._gold_examples(sentences, structure.decode(*gold), with_gold=True)

    def constrain(self, reading: Reading, required: Any = None, forbidden: Any = None) -> None:
        """`required` and `forbidden` of `ConstituencyParser`."""
        structure: Any = reading.batch.structure
        given = {"required": required, "forbidden": forbidden}
        for name, value in given.items():
            if value is None:
                continue
            if isinstance(value, (str, dict)) or not isinstance(value, Sized) or len(value) != reading.n_examples:
                raise ValueError(f"{name} must hold one entry for each of {reading.n_examples} sentences")
        known, batch_numbers = self._labels(), {number: i for i, number in enumerate(reading.numbers.tolist())}
        for number, words in enumerate(reading.source):
            where, n = f"sentence {number}", len(words)
            spans = {
                name: read_spans(None if value is None else value[number], name, where, n, known)
                for name, value in given.items()
            }
            i = batch_numbers.get(number)
            if i is None or not any(spans.values()):  # without a parse there is nothing to constrain
                continue
            try:
                structure.set_mask(i, span_mask(structure, i, self.grammar, spans["required"], spans["forbidden"]))
            except ValueError as error:
                raise ConstraintError(f"sentence {number}: no tree is left ({error})", number) from None

    def marginals(self, reading: Reading, counts: Floats, least: float = 1e-3) -> list[Spans]:
        """{(label, begin, end): expected number} of each sentence, of those that are at least `least`."""
        structure: Any = reading.batch.structure
        offsets = structure.slot_offsets()
        found = [
            self._spans_of(structure, i, counts[offsets[i] : offsets[i + 1]], least) for i in range(len(offsets) - 1)
        ]
        values: list[Spans] = reading.spread(found, dict)
        return values

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

    def score(self, X: Any, y: Any, predicted: Any, sample_weight: Any) -> float:
        """Labelled F1 of brackets (`partwise.metrics.parseval`)."""
        gold = read_gold(X, y, self.transform, int(self.max_length))
        weight = check_sample_weight(sample_weight, len(gold), "sentence")
        if weight is None:
            return parseval(gold, predicted).f1
        each = [parseval([a], [b]) for a, b in zip(gold, predicted, strict=True)]
        right, total = np.array([[2 * x.n_right, x.n_gold + x.n_predicted] for x in each]).T @ weight
        return float(right / total) if total else 0.0

    # inspection

    def explain(self, reading: Reading) -> Explanation:
        """Which rules and attributes make the best tree better than the second-best one."""
        if not reading.batch.n_examples:
            raise ValueError("the sentence has no parse: there is nothing to explain")
        return explained(self, reading)

    def top_features(self, n: int = 10) -> TopFeatures:
        return top_weights(self, n)

    def pruned(self, threshold: float | None, keep: float | None) -> tuple[ConstituencyModel, tuple[int, int, float]]:
        rules, pairs = self.tables.split(self.weights)
        every = np.concatenate([rules, *(pairs[name] for name in (*TABLES, "tuples"))])
        kept = choose_kept(every, threshold, keep)
        tables, weights = self.tables.pruned(self.weights, kept)
        pruned = self.with_weights(weights)
        pruned.tables = tables
        return pruned, counts_of(every, kept)

    def _labels(self) -> set[str]:
        """All labels of phrases and tags."""
        found = self.attributes()
        return {*found["labels_"], *found["tags_"]}

    def attributes(self) -> dict[str, Any]:
        labels = {label for column in self.grammar.columns if not column.made for label in column.labels}
        phrases = labels.union(*(chain[:-1] for chain in self.grammar.word_labels))
        return {
            "labels_": sorted(phrases),
            "tags_": sorted({chain[-1] for chain in self.grammar.word_labels if chain}),
            "grammar_": self.grammar.read_off,
        }

    # model files

    def to_parts(self, parts: ModelParts) -> None:
        files.write(self, parts)

    def from_parts(self, parts: ModelParts) -> ConstituencyModel:
        files.read(self, parts)
        return self


def _leaves(tree: Any) -> list[Any]:
    """The leaves of a tree in normal form."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if len(node) == 2:
            found.append(node)
        else:
            waiting += [node[2], node[1]]
    return found
