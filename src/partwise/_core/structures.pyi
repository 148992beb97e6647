"""Structures: which labellings there are, the best of them, sums over all of them."""

from collections.abc import Sequence
from typing import Final

from .support import Bytes, Floats, Ints

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
