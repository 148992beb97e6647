"""Structures: which labellings there are, the best of them, sums over all of them."""

from collections.abc import Sequence

from .support import Bytes, Floats, Ints

class Structure:
    """Combinatorics of the labellings of n examples. Subclass it in Python, or use Multiclass, Chain, ProjectiveTree or
    SpanningTree.

    A Python subclass implements num_slots, maximize or maximize_many, log_partition and cost; what else it
    implements becomes a capability.
    """

    def __init__(self, num_examples: int) -> None: ...
    @property
    def num_examples(self) -> int: ...
    @property
    def linear(self) -> bool:
        """Whether the value of a labelling is the sum of its slots' scores; only such structures can be trained."""
    def capabilities(self) -> frozenset[str]:
        """Which of "cliques", "clique support", "covariance", "k_best", "sample" are implemented; "one part": a
        labelling is one slot."""
    def num_slots(self, i: int) -> int: ...
    def slot_offsets(self) -> Ints: ...
    def maximize(self, i: int, scores: Floats) -> tuple[float, Ints, Floats]:
        """The best labelling: its value, its slots, and how often it uses each. Ties go to the lowest labels."""
    def maximize_many(self, examples: Sequence[int], scores: Sequence[Floats]) -> list[tuple[float, Ints, Floats]]:
        """The same for several examples, scores[k] being those of examples[k]. A Python subclass that implements it is
        asked for many examples at a time wherever the weights stay the same; `maximize` is then optional."""
    def log_partition(self, i: int, scores: Floats, temperature: float = 1.0) -> tuple[float, Floats, float]:
        """smax at this temperature (0: the maximum), expected counts, entropy."""
    def cost(self, i: int, slots: Ints, counts: Floats) -> Floats:
        """Cost of each slot against this gold labelling: the number of wrong parts (Hamming for rows of labels)."""
    def check_labelling(self, i: int, slots: Ints, counts: Floats) -> None:
        """ValueError unless these counts are a labelling allowed by the masks."""
    def set_mask(self, i: int, allowed: Bytes | None) -> None:
        """Allow only labellings whose slots are all allowed (one byte per slot); None lifts it. ValueError if none is
        left."""
    def mask(self, i: int) -> Bytes | None: ...
    # capability "k_best"
    def k_best(self, i: int, scores: Floats, k: int) -> list[tuple[float, Ints, Floats]]: ...
    # capability "sample"
    def sample(self, i: int, scores: Floats, temperature: float, n: int, seed: int) -> list[tuple[Ints, Floats]]: ...
    # capability "covariance"
    def covariance_product(self, i: int, scores: Floats, temperature: float, direction: Floats) -> Floats:
        """Cov(counts) @ direction under p ~ exp(scores / temperature)."""
    # capability "cliques"
    def clique_offsets(self, i: int) -> Ints:
        """Cliques' blocks in a clique vector: clique c of example i is [offsets[c], offsets[c + 1])."""
    def clique_marginals(self, i: int, scores: Floats, temperature: float) -> Floats: ...
    def slots_from_cliques(self, i: int, marginals: Floats) -> Floats: ...
    def entropy_of_cliques(self, i: int, marginals: Floats) -> tuple[float, Floats]:
        """Entropy of the distribution with these clique marginals, and its gradient with respect to them."""
    def scores_from_cliques(self, i: int, marginals: Floats) -> Floats:
        """Clique potentials (logs) whose Gibbs distribution has these marginals."""
    def slot_scores_from_cliques(self, i: int, marginals: Floats) -> Floats | None:
        """The same as scores of slots; None where entries of cliques are not slots of their own (tied slots)."""
    # capability "clique support"
    def clique_entries(self, i: int, slots: Ints, counts: Floats) -> Ints:
        """The entry of each clique that a labelling uses."""
    def maximize_in_support(
        self, i: int, scores: Floats, marginals: Floats, least: float = 0.0
    ) -> tuple[float, Ints, Floats]:
        """The best labelling among those whose cliques' entries all have marginals above `least`."""

class Multiclass(Structure):
    """One label per example: slot a is label a (width slots)."""

    def __init__(self, num_examples: int, n_labels: int) -> None: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def width(self) -> int: ...
    def encode(self, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """(indptr, slots, counts) of all examples' labels."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints: ...

class Chain(Structure):
    """First-order sequences. Slots: T rows of `width` (labels), then transitions, then begin and end rows if `ends`.

    tied: n_labels rows of `width`: slot (a, b) counts how often b follows a. Untied: T - 1 such blocks, one per edge.
    """

    def __init__(self, lengths: Ints, n_labels: int, tied: bool = True, ends: bool = False) -> None: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def tied(self) -> bool: ...
    @property
    def ends(self) -> bool: ...
    @property
    def lengths(self) -> Ints: ...
    def set_follow(self, pairs: Bytes | None, first: Bytes | None = None, last: Bytes | None = None) -> None:
        """A rule for all sequences, a byte per label: which may follow which (n_labels * n_labels, rows are the earlier
        ones), which may come first and last; None: all. Masks set later are checked together with it."""
    def encode(self, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """(indptr, slots, counts) from all sequences' labels end to end."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """All sequences' labels end to end."""

class SecondOrderChain(Structure):
    """Second-order sequences. Slots: T rows of `width` (labels), n_labels rows: (a, b) counts how often b follows a,
    and n_labels * n_labels rows: (a * n_labels + b, c) counts how often c follows a and b."""

    def __init__(self, lengths: Ints, n_labels: int) -> None: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def lengths(self) -> Ints: ...
    def set_follow(self, pairs: Bytes | None, first: Bytes | None = None, last: Bytes | None = None) -> None:
        """A rule for all sequences, a byte per label: which may follow which (n_labels * n_labels, rows are the earlier
        ones), which may come first and last; None: all. Masks set later are checked together with it."""
    def encode(self, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """(indptr, slots, counts) from all sequences' labels end to end."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """All sequences' labels end to end."""

class HistoryChain(Structure):
    """Sequences of labels drawn one after another, each given the `history` tags before it (1 or 2); for prediction.

    log p(c | t, s) = scores[t, c] + after[s, c] - log Z, history s = a or b * (n_labels + 1) + a (b before a), tag
    n_labels: before the sequence. after[s] is first[a], and the row of `second` whose entry in `pairs` (ascending) is
    s, if there is one. Slots: T rows of `width`. Values are log-probabilities; the log partition is that of
    the labellings allowed. `maximize` and `k_best` search with a beam of `beam_width` histories (0: all).
    """

    def __init__(
        self,
        lengths: Ints,
        n_labels: int,
        history: int,
        first: Floats,
        pairs: Ints,
        second: Floats,
        beam_width: int,
    ) -> None: ...
    @property
    def n_labels(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def history(self) -> int: ...
    @property
    def n_states(self) -> int: ...
    @property
    def lengths(self) -> Ints: ...
    def set_follow(self, pairs: Bytes | None, first: Bytes | None = None, last: Bytes | None = None) -> None:
        """A rule for all sequences, a byte per label: which may follow which (n_labels * n_labels, rows are the earlier
        ones), which may come first and last; None: all. Masks set later are checked together with it."""
    def encode(self, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """(indptr, slots, counts) from all sequences' labels end to end."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """All sequences' labels end to end."""

class Tree(Structure):
    """Dependency trees over sentences of n words, tokens 1..n and the root 0: slot (m - 1) * (n + 1) + h is the arc
    from head h to modifier m; slots with h == m belong to no tree. Cost: the number of words with a wrong head.

    A sentence of more than max_length words is refused. single_root: exactly one word has the head 0. To require an
    arc, mask the other heads of its modifier. Ties go to a tree with the smallest sum
    of heads.
    """

    @property
    def single_root(self) -> bool: ...
    @property
    def max_length(self) -> int: ...
    @property
    def lengths(self) -> Ints: ...
    def encode(self, heads: Ints) -> tuple[Ints, Ints, Floats]:
        """(indptr, slots, counts) from all sentences' heads end to end; ValueError names a sentence that is not a tree
        of this kind."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """All sentences' heads end to end."""
    def check_heads(self, i: int, heads: Ints) -> None:
        """ValueError unless these are the heads of a tree of this kind (masks aside)."""

class ProjectiveTree(Tree):
    """Trees whose arcs do not cross, the root standing before the first word."""

    def __init__(self, lengths: Ints, single_root: bool = True, max_length: int = 1000) -> None: ...

class SpanningTree(Tree):
    """All trees, projective or not."""

    def __init__(self, lengths: Ints, single_root: bool = True, max_length: int = 1000) -> None: ...
