"""Structures: which labellings there are, the best of them, sums over all of them."""

from collections.abc import Sequence
from typing import Final

from partwise.support.arrays import Bytes, Floats, Ints

class Structure:
    """The labellings of some examples, and maxima and sums over them.

    The parts of an example's labellings are slots, numbered from 0. A labelling uses each slot a number of times (its
    count), and its value is the sum of the scores of the slots that it uses.

    Subclass it in Python (docs/how_to_add_a_structure.md), or use one of `partwise.structures`. A Python subclass
    implements `num_slots`, `maximize` or `maximize_many`, `log_partition` and `cost`; the other methods that it
    implements become capabilities. `partwise.structures.testing.check_structure` checks the answers.
    """

    def __init__(self, num_examples: int) -> None: ...
    @property
    def num_examples(self) -> int:
        """The number of examples."""
    @property
    def linear(self) -> bool:
        """Whether the value of a labelling is the sum of its slots' scores; only such structures can be trained."""
    def capabilities(self) -> frozenset[str]:
        """Return which of "cliques", "clique support", "covariance", "k_best" and "sample" are implemented, and "one
        part" where every labelling is one slot."""
    def num_slots(self, i: int) -> int:
        """Return the number of slots of example i, which never changes."""
    def slot_offsets(self) -> Ints:
        """Return where the slots of each example begin in arrays of all slots, and where the last ones end."""
    def maximize(self, i: int, scores: Floats) -> tuple[float, Ints, Floats]:
        """Return the best labelling: its value, its slots, and how often it uses each. Ties go to the lowest labels."""
    def maximize_many(self, examples: Sequence[int], scores: Sequence[Floats]) -> list[tuple[float, Ints, Floats]]:
        """Return the same for several examples; scores[k] belong to examples[k]. A Python subclass that implements this
        method is asked for many examples at a time wherever the weights stay the same; `maximize` is then optional."""
    def log_partition(self, i: int, scores: Floats, temperature: float = 1.0) -> tuple[float, Floats, float]:
        """Return temperature * log sum over labellings of exp(value / temperature), the expected counts and the entropy
        of the distribution p ~ exp(value / temperature); at temperature 0 the maximum, its counts and 0."""
    def log_partition_many(
        self, examples: Sequence[int], scores: Sequence[Floats], temperature: float = 1.0
    ) -> list[tuple[float, Floats, float]]:
        """Return the same for several examples, as `maximize_many` does; `log_partition` is then optional."""
    def cost(self, i: int, slots: Ints, counts: Floats) -> Floats:
        """Return the cost of using each slot, given the gold labelling: at least 0, and 0 on gold slots. By default the
        cost of a labelling is its number of wrong parts."""
    def check_labelling(self, i: int, slots: Ints, counts: Floats) -> None:
        """Raise ValueError unless these counts are a labelling that the mask allows."""
    def set_mask(self, i: int, allowed: Bytes | None) -> None:
        """Allow only labellings whose slots are all allowed (one byte per slot); None lifts the mask. Raise ValueError
        if no labelling is left."""
    def mask(self, i: int) -> Bytes | None:
        """Return the mask of example i, None where everything is allowed."""
    def k_best(self, i: int, scores: Floats, k: int) -> list[tuple[float, Ints, Floats]]:
        """Return the k best labellings as `maximize` does, best first, or all if fewer (capability "k_best")."""
    def sample(self, i: int, scores: Floats, temperature: float, n: int, seed: int) -> list[tuple[Ints, Floats]]:
        """Return n exact draws (slots, counts) from p ~ exp(value / temperature), set by seed (capability "sample")."""
    def covariance_product(self, i: int, scores: Floats, temperature: float, direction: Floats) -> Floats:
        """Return Cov(counts) direction under p ~ exp(value / temperature) (capability "covariance")."""
    def clique_offsets(self, i: int) -> Ints:
        """Return where each clique's entries begin in a clique vector of example i (capability "cliques", as the next
        methods), and where the last ones end."""
    def clique_marginals(self, i: int, scores: Floats, temperature: float) -> Floats:
        """Return the probability of each clique entry under p ~ exp(value / temperature)."""
    def slots_from_cliques(self, i: int, marginals: Floats) -> Floats:
        """Return the expected counts of slots that these clique marginals imply; linear in them."""
    def entropy_of_cliques(self, i: int, marginals: Floats) -> tuple[float, Floats]:
        """Return the entropy of the distribution with these clique marginals, and its gradient with respect to them."""
    def scores_from_cliques(self, i: int, marginals: Floats) -> Floats:
        """Return log potentials of the cliques whose Gibbs distribution has these marginals."""
    def slot_scores_from_cliques(self, i: int, marginals: Floats) -> Floats | None:
        """Return the same as scores of slots; None where clique entries share slots (tied slots)."""
    def clique_entries(self, i: int, slots: Ints, counts: Floats) -> Ints:
        """Return the entry of each clique that a labelling uses (capability "clique support")."""
    def maximize_in_support(
        self, i: int, scores: Floats, marginals: Floats, least: float = 0.0
    ) -> tuple[float, Ints, Floats]:
        """Return the best labelling whose clique entries all have marginals above `least` ("clique support")."""

class _Labels(Structure):
    n_labels: Final[int]  #: The number of labels.
    width: Final[int]  #: The number of slots in a row of labels: `n_labels`, padded.

class _Sequences(_Labels):
    lengths: Final[Ints]  #: The length of each example.
    def set_follow(self, pairs: Bytes | None, first: Bytes | None = None, last: Bytes | None = None) -> None:
        """Set a rule for all sequences, one byte per label: which may follow which (n_labels * n_labels, rows are the
        earlier ones), which may come first and last; None: all. Masks that are set later are checked together with
        it."""
    def encode(self, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) of all sequences' labels, concatenated."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """Return all sequences' labels, concatenated: the inverse of `encode`."""

class Multiclass(_Labels):
    """One label per example: slot a is label a. There are `width` slots; those from `n_labels` on are padding."""

    def __init__(self, num_examples: int, n_labels: int) -> None: ...
    def encode(self, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) of all examples' labels."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """Return the label of each labelling: the inverse of `encode`."""

class Chain(_Sequences):
    """First-order sequences. Slots: T rows of `width` (labels), then transitions, then begin and end rows if `ends`.

    tied: n_labels rows of `width`: slot (a, b) counts how often b follows a. Untied: T - 1 such blocks, one per edge.
    """

    def __init__(self, lengths: Ints, n_labels: int, tied: bool = True, ends: bool = False) -> None: ...
    tied: Final[bool]  #: Whether all positions share the slots of transitions.
    ends: Final[bool]  #: Whether there are slots for the first and the last label.

class SecondOrderChain(_Sequences):
    """Second-order sequences. Slots: T rows of `width` (labels), n_labels rows: (a, b) counts how often b follows a,
    and n_labels * n_labels rows: (a * n_labels + b, c) counts how often c follows a and b."""

    def __init__(self, lengths: Ints, n_labels: int) -> None: ...

class HistoryChain(_Sequences):
    """Sequences of labels drawn one after another, each given the `history` tags before it (1 or 2); for prediction.

    log p(c | t, s) = scores[t, c] + after[s, c] - log Z, history s = a or b * (n_labels + 1) + a (b before a), tag
    n_labels: before the sequence. after[s] is first[a], and the row of `second` whose entry in `pairs` (ascending) is
    s, if there is one. Slots: T rows of `width`. Values are log-probabilities; the log partition is that of
    the labellings allowed. `maximize` and `k_best` search with a beam of `beam_width` histories (0: all).
    """

    def __init__(
        self, lengths: Ints, n_labels: int, history: int, first: Floats, pairs: Ints, second: Floats, beam_width: int
    ) -> None: ...
    history: Final[int]  #: The number of earlier labels that a label depends on.
    n_states: Final[int]  #: The number of histories.

class Tree(Structure):
    """Dependency trees over sentences of n words, tokens 1..n and the root 0: slot (m - 1) * (n + 1) + h is the arc
    from head h to modifier m; slots with h == m belong to no tree. Cost: the number of words with a wrong head.

    A sentence of more than max_length words is refused. single_root: exactly one word has the head 0. To require an
    arc, mask the other heads of its modifier. Ties go to a tree with the smallest sum of heads.
    """

    single_root: Final[bool]  #: Whether exactly one word has the head 0.
    max_length: Final[int]  #: The largest number of words of a sentence.
    lengths: Final[Ints]  #: The length of each example.
    def encode(self, heads: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) of all sentences' heads, concatenated; raise ValueError naming
        a sentence that is not a tree of this kind."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """Return all sentences' heads, concatenated: the inverse of `encode`."""
    def check_heads(self, i: int, heads: Ints) -> None:
        """Raise ValueError unless these are the heads of a tree of this kind (masks aside)."""

class ProjectiveTree(Tree):
    """Dependency trees whose arcs do not cross, the root before the first word; members are those of `Tree`."""

    def __init__(self, lengths: Ints, single_root: bool = True, max_length: int = 1000) -> None: ...

class SpanningTree(Tree):
    """All dependency trees, projective or not; members are those of `Tree`."""

    def __init__(self, lengths: Ints, single_root: bool = True, max_length: int = 1000) -> None: ...

class SegmentChain(_Labels):
    """Sequences cut into segments of at most `max_length` positions, with a label each.

    Slots, in rows of `width`: T rows (position, label of the segment it lies in), T rows (first position, label), T
    rows (last position, label), max_length rows (length - 1, label), n_labels rows (a, b): a segment with label b
    follows one with label a, and a row of labels for each listed segment. Memory does not grow with max_length beyond
    one window of rows.

    max_lengths: the maximum of each label, at most max_length. listed: segments with slots of their own, (indptr,
    begins, ends) in the order of (end, begin) within a sequence. Cost: the number of positions with a wrong label;
    segment_cost: and 1/2 for each segment with a wrong (begin, label) and 1/2 for each with a wrong (end, label).
    """

    def __init__(
        self,
        lengths: Ints,
        n_labels: int,
        max_length: int,
        max_lengths: Ints | None = None,
        listed: tuple[Ints, Ints, Ints] | None = None,
        segment_cost: bool = False,
    ) -> None: ...
    max_length: Final[int]  #: The largest length of a segment.
    max_lengths: Final[Ints]  #: The largest length of a segment of each label.
    segment_cost: Final[bool]  #: Whether wrong ends of segments cost something.
    lengths: Final[Ints]  #: The length of each example.
    listed: Final[tuple[Ints, Ints, Ints]]  #: The segments with slots of their own: (indptr, begins, ends).
    def encode(self, labels: Ints, begins: Bytes) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) from the label of every position and whether a segment begins
        there, all sequences concatenated; raise ValueError naming a sequence and a segment that is too long."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> tuple[Ints, Bytes]:
        """Return labels and begins of all sequences, concatenated: the inverse of `encode`."""
    def set_continuation(self, i: int, allowed: Bytes | None) -> None:
        """Set which (position, label) may continue a segment (T * width bytes; None: all): a segment with this label
        that holds another position must begin there. The rule adds to the mask. Raise ValueError if no labelling is
        left."""
    def segment_probabilities(
        self, i: int, scores: Floats, begins: Ints, ends: Ints, labels: Ints, temperature: float = 1.0
    ) -> Floats:
        """Return the probability of each segment [begin, end) with this label, given in the order of ends."""

class Graph(Structure):
    """Labels of the vertices of any graph, with scores for the joint labels of cliques; `structures.graph` makes one
    from lists.

    Example i has the vertices [vertex_ptr[i], vertex_ptr[i + 1]) with `n_labels` labels each, and the cliques
    [clique_ptr[i], clique_ptr[i + 1]). Clique c has members[member_ptr[c]:member_ptr[c + 1]], numbers of vertices
    within the example, and the table tables[c], numbered from 0 in each example; cliques with the same table are tied.
    common_labels[common_ptr[t]:common_ptr[t + 1]] are the numbers of labels of the vertices of table t, which every
    example then has, whether a clique of it names that table or not.

    Slots: a row per vertex, padded to padded_width(labels), then the tables in the order of their numbers, in the order
    of the clique's vertices with the last one the fastest and padded. Cost: the number of vertices with a wrong label,
    charged in the rows of vertices. Ties go to the lowest labels, of the vertex that is eliminated last first.

    An example whose junction tree takes more than memory_limit bytes is refused when it is first used or checked; what
    a mask rules out does not count.
    """

    def __init__(
        self,
        vertex_ptr: Ints,
        n_labels: Ints,
        clique_ptr: Ints,
        member_ptr: Ints,
        members: Ints,
        tables: Ints,
        memory_limit: float = ...,
        common_ptr: Ints | None = None,
        common_labels: Ints | None = None,
    ) -> None: ...
    memory_limit: Final[float]  #: Bytes that the tables of an example's junction tree may take.
    vertex_ptr: Final[Ints]  #: Where the vertices of each example begin, and where the last ones end.
    n_labels: Final[Ints]  #: The number of labels of each vertex.
    clique_ptr: Final[Ints]  #: Where the cliques of each example begin, and where the last ones end.
    member_ptr: Final[Ints]  #: Where the members of each clique begin, and where the last ones end.
    members: Final[Ints]  #: The vertices of each clique, numbered within the example.
    tables: Final[Ints]  #: The table of each clique.
    def table_offsets(self, i: int) -> Ints:
        """Return where the tables of example i begin in its slots, and the number of its slots."""
    def width(self, i: int) -> int:
        """Return the width of the junction tree of example i: the variables of its largest clique, less one."""
    def bytes(self, i: int) -> int:
        """Return how many bytes of memory sums over the labellings of example i take."""
    def encode(self, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) of all examples' labels of vertices, concatenated."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """Return all examples' labels, concatenated: the inverse of `encode`."""
    def decode_of(self, i: int, slots: Ints, counts: Floats) -> Ints:
        """Return the labels of a labelling of example i."""

class Grammar(Structure):
    """Derivations of sentences of n words under a grammar in Chomsky normal form over symbols 0 .. n_symbols - 1.

    A part is a rule anchored at (start, split, end), `rules[r]` = (parent, left, right) over the words [start, end).
    Its score is the sum of slots: of the rule, and of rows of columns for its parent at the first word, at the first
    word of the right symbol, at the last word and over the span (`start_columns`, `split_columns`, `end_columns`,
    `span_columns`: the column of each symbol in that table, -1 for none; None: no table). A word's slot is the column
    of its symbol, `words[column]`. Slots of a sentence: rules; n rows of each of start, split, end; n (n - 1) / 2 rows
    of spans [s, t) of two or more words, by s and then t; n rows of words; and, with `gold`, n more: `other`, and
    one for each anchored rule of the gold derivation, by its span. An anchored rule has one of these.

    rules: (rules, 3), in the order of parents. roots: the symbols of whole sentences. word_ptr, word_columns: which
    columns each word may have, all sentences' words end to end (None: all). gold: derivations, as `encode` takes them.
    cost: "constituents" counts slots of spans (by `span_costs` of their columns, 1 by default) and words that the gold
    derivation does not have; "rules" anchored rules and words that it does not have. A sentence whose sums would take
    more than max_bytes of memory is refused.

    Ties go to the first root, then to the first rule, then to the first split.
    """

    def __init__(
        self,
        lengths: Ints,
        n_symbols: int,
        rules: Ints,
        roots: Ints,
        words: Ints,
        *,
        start_columns: Ints | None = None,
        split_columns: Ints | None = None,
        end_columns: Ints | None = None,
        span_columns: Ints | None = None,
        word_ptr: Ints | None = None,
        word_columns: Ints | None = None,
        gold: Ints | None = None,
        cost: str = "constituents",
        span_costs: Floats | None = None,
        tuple_codes: Ints | None = None,
        n_tuples: int = 0,
        max_bytes: float = 2e9,
    ) -> None: ...
    lengths: Final[Ints]  #: The number of words of each sentence.
    n_symbols: Final[int]  #: The number of symbols.
    n_rules: Final[int]  #: The number of rules.
    n_tuples: Final[int]  #: The slots of hashed tuples, the last ones of each sentence.
    has_gold: Final[bool]  #: Whether there are slots for the anchored rules of gold derivations.
    cost_name: Final[str]  #: What the cost counts: "constituents" or "rules".
    widths: Final[tuple[int, int, int, int, int]]  #: The slots per row of start, split, end, span and words.
    def table_offsets(self, i: int) -> tuple[int, int, int, int, int, int]:
        """Return the first slot of start, split, end, span, words and `other`."""
    def has_derivation(self, i: int) -> bool:
        """Return whether the mask allows the sentence a derivation; without one, maxima and sums raise ValueError."""
    def encode(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) of derivations, concatenated: rows (symbol, begin, end), 2 n -
        1 per sentence in pre-order. Raise ValueError naming the sentence and the missing rule or word."""
    def labelling_of(self, i: int, nodes: Ints) -> tuple[Ints, Floats]:
        """Return the slots and counts of one derivation of sentence i."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """Return all sentences' nodes, concatenated; of derivations with the same slots, one."""
    def nodes_of(self, i: int, slots: Ints, counts: Floats) -> Ints:
        """Return the nodes of one derivation of sentence i."""
