"""The compiled core: inference, features and one epoch of each solver.

Every call on whole data sets releases the GIL and looks for Ctrl-C about ten times a second. Arrays are C-contiguous
float64 / int64 unless said otherwise; a wrong shape, dtype or range raises ValueError before any work.

Slots. An example's slot vector is what `Structure` and `FeatureMap` agree on. Rows of labels are padded to `width`
(a multiple of 4 chosen from the number of labels), so slot (t, a) of a chain is `t * width + a`; padded slots belong to
no labelling: their scores are ignored and their marginals are 0. Slot vectors of all examples are stored end to end,
example i at [offsets[i], offsets[i + 1]) with offsets = structure.slot_offsets().
"""

from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UInt64s = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

def padded_width(n_labels: int) -> int:
    """The row width used for this many labels."""

def cpu_level() -> int:
    """The x86-64 level (1 to 4) this machine runs; 0 on other machines."""

class Structure:
    """Combinatorics of the labellings of n examples. Subclass it in Python, or use Multiclass, Chain, ProjectiveTree or
    SpanningTree.

    A Python subclass implements num_slots, maximize, log_partition and cost; what else it implements becomes a
    capability.
    """

    def __init__(self, num_examples: int) -> None: ...
    @property
    def num_examples(self) -> int: ...
    def capabilities(self) -> frozenset[str]:
        """Which of "cliques", "covariance", "k_best", "sample" are implemented; "one part": a labelling is one slot."""
    def num_slots(self, i: int) -> int: ...
    def slot_offsets(self) -> Ints: ...
    def maximize(self, i: int, scores: Floats) -> tuple[float, Ints, Floats]:
        """The best labelling: its value, its slots, and how often it uses each. Ties go to the lowest labels."""
    def log_partition(self, i: int, scores: Floats, temperature: float = 1.0) -> tuple[float, Floats, float]:
        """smax at this temperature (0: the maximum), expected counts, entropy."""
    def cost(self, i: int, slots: Ints, counts: Floats) -> Floats:
        """Cost of each slot against this gold labelling: the number of wrong parts (Hamming for rows of labels)."""
    def check_labelling(self, i: int, slots: Ints, counts: Floats) -> None:
        """ValueError unless these counts are a labelling allowed by the masks."""
    def set_mask(self, i: int, allowed: Bytes | None) -> None:
        """Allow only labellings whose slots are all allowed (one byte a slot); None lifts it. ValueError if none is
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

class Multiclass(Structure):
    """One label an example: slot a is label a (width slots)."""

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

    tied: n_labels rows of `width`: slot (a, b) counts how often b follows a. Untied: T - 1 such blocks, one an edge.
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
    def set_follow(self, allowed: Bytes | None) -> None:
        """Which labels may follow which, n_labels * n_labels bytes; None: all."""
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
        """(indptr, slots, counts) from all sentences' heads end to end; ValueError names a sentence that is no tree of
        this kind."""
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

class SparseVector:
    """A merged sparse vector of weight space, kept as runs."""

    @property
    def indices(self) -> Ints: ...
    @property
    def values(self) -> Floats: ...
    def norm2(self) -> float: ...
    @overload
    def dot(self, other: Floats) -> float: ...
    @overload
    def dot(self, other: SparseVector) -> float: ...
    def axpy(self, scale: float, weights: Floats) -> None:
        """weights += scale * self"""

class RowLayout:
    """Which (attribute, column) pairs have a weight, and where it lies. Immutable, shared by training and
    prediction."""

    @staticmethod
    def dense(num_attributes: int, n_columns: int, width: int) -> RowLayout:
        """Every pair; columns n_columns..width-1 are padding (weight always 0)."""
    @overload
    @staticmethod
    def from_pairs(
        num_attributes: int, n_columns: int, width: int, indptr: Ints, columns: NDArray[np.uint16]
    ) -> RowLayout: ...
    @overload
    @staticmethod
    def from_pairs(num_attributes: int, n_columns: int, width: int, indptr: Ints, columns: Ints) -> RowLayout:
        """Just these pairs: attribute a has columns[indptr[a]:indptr[a + 1]], ascending."""
    @staticmethod
    def observed(
        num_attributes: int,
        n_columns: int,
        width: int,
        row_ptr: Ints,
        attributes: Ints,
        labels: Ints,
        min_count: int = 1,
    ) -> RowLayout:
        """Pairs (attribute of row p, labels[p]) seen at least min_count times."""
    @property
    def num_attributes(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def width(self) -> int: ...
    @property
    def num_weights(self) -> int:
        """Length of the weight run, padding included."""
    @property
    def num_pairs(self) -> int: ...
    def pairs(self) -> tuple[Ints, Ints]:
        """(indptr, columns)"""
    def pack(self, pair_values: Floats, room: int = 0) -> Floats:
        """Weights (num_weights) from one value a pair (num_pairs), in the order of pairs(); then `room` zeros."""
    def unpack(self, weights: Floats) -> Floats:
        """The inverse of pack."""

class Segment:
    """Maps one run of the weights to one run of every example's slots; LinearMap stacks them."""

    @property
    def num_weights(self) -> int: ...
    @property
    def num_examples(self) -> int: ...

class AttributeSegment(Segment):
    """Rows of sparse attributes. Row p has attributes[row_ptr[p]:row_ptr[p + 1]]; example i has rows
    example_ptr[i]:example_ptr[i + 1]. Attribute -1 is ignored. values None: all 1. Repeated attributes add up.
    once: scores will be asked for about once an example (the same scores, sooner)."""

    def __init__(
        self,
        layout: RowLayout,
        example_ptr: Ints,
        row_ptr: Ints,
        attributes: Ints,
        values: Floats | None = None,
        once: bool = False,
    ) -> None: ...

class DenseSegment(Segment):
    """Rows of dense input (rows x n_inputs); weight (j, a) is at j * width + a."""

    def __init__(self, rows: Floats, example_ptr: Ints, n_columns: int, width: int) -> None: ...

class SharedSegment(Segment):
    """Weights that are slots themselves (tied transitions). mask: which have a weight at all (None: all);
    uses[i]: the most parts a labelling of example i has here (for the bound of |psi|)."""

    def __init__(self, size: int, uses: Ints, mask: Bytes | None = None) -> None: ...

class SlotSegment(Segment):
    """Features of single slots. Slot r (all examples end to end) has features[row_ptr[r]:row_ptr[r + 1]]; example i has
    slots slot_ptr[i]:slot_ptr[i + 1]. Feature -1 is ignored. values None: all 1. Repeated features add up. uses, parts:
    how often a labelling uses a slot, and how many parts it has, at most (None: any number; for the bound of |psi|)."""

    def __init__(
        self,
        num_weights: int,
        slot_ptr: Ints,
        row_ptr: Ints,
        features: Ints,
        values: Floats | None = None,
        uses: int = 1,
        parts: int | None = None,
    ) -> None: ...

class KernelFunction:
    """k(x, y) = f(<x, y>) + bias. kind "linear": <x, y>; "polynomial": (gamma <x, y> + coef0)^degree; "rbf":
    exp(-gamma |x - y|^2)."""

    def __init__(
        self, kind: str, gamma: float = 1.0, coef0: float = 0.0, degree: int = 1, bias: float = 0.0
    ) -> None: ...

class Kernel:
    """Kernel values of query rows (those of the examples at hand) and support rows (those with coefficients)."""

    @property
    def num_queries(self) -> int: ...
    @property
    def num_support(self) -> int: ...
    @property
    def square(self) -> bool:
        """Whether queries and support are the same rows, as in training."""
    def values(self, first: int, last: int, begin: int, end: int) -> Floats:
        """k of query rows first:last with support rows begin:end, row by row."""

class DenseKernel(Kernel):
    """Rows of dense input. support None: the queries themselves."""

    def __init__(self, function: KernelFunction, queries: Floats, support: Floats | None = None) -> None: ...

class SparseRows:
    """Rows of sparse attributes; attribute -1 is ignored, repeated ones add up."""

    def __init__(self, num_attributes: int, row_ptr: Ints, attributes: Ints, values: Floats | None = None) -> None: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_attributes(self) -> int: ...

class SparseKernel(Kernel):
    """Rows of sparse attributes. support None: the queries themselves."""

    def __init__(self, function: KernelFunction, queries: SparseRows, support: SparseRows | None = None) -> None: ...

class StoredKernel(Kernel):
    """A matrix of kernel values, queries x support. It is not checked to be positive semi-definite."""

    def __init__(self, matrix: Floats, square: bool) -> None: ...

class KernelSegment(Segment):
    """Rows known by their kernel: weights are coefficients, row p's at p * width. Kernel values are kept up to
    memory_limit bytes; ValueError if they need more, unless those that do not fit may be computed anew (recompute)."""

    def __init__(
        self,
        kernel: Kernel,
        example_ptr: Ints,
        n_columns: int,
        width: int,
        memory_limit: float,
        recompute: bool = False,
    ) -> None: ...
    @property
    def kept_bytes(self) -> float: ...

class FeatureMap:
    """A_i and the geometry of weights."""

    @property
    def num_examples(self) -> int: ...
    @property
    def num_weights(self) -> int: ...
    def capabilities(self) -> frozenset[str]:
        """Holds "explicit weights" if weights are coordinates; else (kernels) they are coefficients, `dot` is their
        geometry and there is no `project`. Further "column access" and with it, where true of all values,
        "non-negative features" and "binary features" (all 1)."""
    def lacks(self, capability: str) -> str:
        """Why a capability is missing, where there is more to say than its name (else "")."""
    def describe(self, weight: int) -> str:
        """A weight's name in messages."""
    def dot(self, weights: Floats, other: Floats, n_jobs: int = 1) -> float:
        """<weights, other> in weight space"""
    def num_slots(self, i: int) -> int: ...
    def scores(self, i: int, weights: Floats, scale: float = 1.0) -> Floats:
        """scale * A_i @ weights"""
    def add_transpose(self, i: int, slots: Floats, scale: float, weights: Floats) -> None:
        """weights += scale * A_i.T @ slots"""
    def project(self, i: int, slots: Floats) -> SparseVector:
        """A_i.T @ slots, merged"""
    def transpose_norm2(self, i: int, slots: Floats) -> float:
        """|A_i.T @ slots|^2"""
    def psi2_bound(self, i: int) -> float:
        """An upper bound of |A_i.T (gold - counts(y))|^2 over labellings."""
    def reach(self, i: int) -> float:
        """An upper bound of |A_i.T counts(y)| over labellings, absolute values throughout."""
    @property
    def row_length(self) -> int:
        """How many weights a slot's score is a sum of, at most."""

class LinearMap(FeatureMap):
    def __init__(self, segments: Sequence[Segment]) -> None: ...
    @property
    def segments(self) -> list[Segment]: ...

#: (head's atoms, modifier's atoms, column looked at in between or -1); an atom is (column, offset from the word)
ArcTable = Sequence[tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]], int]]

class ArcTokens:
    """Sentences as arc features see them: every column of every word, hashed."""

    def __init__(self, lengths: Ints, columns: list[bytes]) -> None:
        """columns: the values of all words end to end, each ended by a zero byte."""
    @property
    def num_sentences(self) -> int: ...
    @property
    def num_words(self) -> int: ...
    def varies(self, column: int) -> bool:
        """Whether a column has more than one value."""

class ArcIndex:
    """Which features of arcs have a weight: known keys in the order of their weights, or all keys, hashed."""

    def __init__(self, keys: UInt64s) -> None: ...
    @staticmethod
    def hashed(bits: int) -> ArcIndex:
        """2**bits weights, shared by the features whose keys begin alike."""
    @staticmethod
    def seen(templates: ArcTable, tokens: ArcTokens, heads: Ints | None, min_count: int = 1) -> ArcIndex:
        """Features seen at least min_count times on gold arcs (heads of all words end to end; None: on all arcs)."""
    @property
    def num_weights(self) -> int: ...
    @property
    def bits(self) -> int:
        """0 if not hashed."""
    @property
    def keys(self) -> UInt64s: ...
    def attributes(self, templates: ArcTable, tokens: ArcTokens, heads: Ints) -> tuple[Ints, Ints]:
        """(row_ptr, attributes) of the arcs from these heads, one row a word: known features only."""
    def unknown(self, templates: ArcTable, tokens: ArcTokens, heads: Ints) -> tuple[int, int]:
        """How many features of the arcs from these heads have no weight, and of how many."""

class ArcMap(FeatureMap):
    """Arc-factored features; slot (m - 1) * (n + 1) + h is the arc from head h to modifier m."""

    def __init__(
        self, templates: ArcTable, tokens: ArcTokens, index: ArcIndex, memory_limit: float = 0.0, n_jobs: int = 1
    ) -> None:
        """memory_limit: bytes for features found once and kept; those of further sentences are found at each use."""
    @property
    def num_cached(self) -> int:
        """Sentences whose features are kept."""
    @property
    def cached_bytes(self) -> float: ...
    def features_per_arc(self) -> float:
        """The mean number of features with a weight."""

class MaxentMap(FeatureMap):
    """Features of (context, label) pairs with access by row and by column, for methods that change one weight at a
    time. Made from attributes (row i has attributes[row_ptr[i]:row_ptr[i + 1]], -1 is ignored, values None: all 1,
    repeated ones add up) a weight for each pair of the layout, or by `of_matrix`."""

    def __init__(self, layout: RowLayout, row_ptr: Ints, attributes: Ints, values: Floats | None = None) -> None: ...
    @staticmethod
    def of_matrix(
        n_labels: int, width: int, n_features: int, row_ptr: Ints, features: Ints, values: Floats | None = None
    ) -> MaxentMap:
        """From a sparse matrix f_t(x, y): row i * n_labels + y holds the features of example i with label y."""
    @property
    def num_columns(self) -> int:
        """Features, padding left out."""
    @property
    def num_cells(self) -> int:
        """Values that are not 0, of all features together."""
    @property
    def binary(self) -> bool:
        """Whether they are all 1."""
    def column(self, k: int) -> tuple[int, Ints, Ints, Floats]:
        """(weight, examples, slots, values) of column k."""

class Objective:
    """The sums over examples in the objective of problem.py; the penalty is not here.

    gold: CSR (indptr, slots, counts). cost: one value per slot, end to end, at least 0 and 0 on gold slots
    (None: the structure's own).
    link: "identity" or "squared".
    """

    def __init__(
        self,
        structure: Structure,
        features: FeatureMap,
        gold_indptr: Ints,
        gold_slots: Ints,
        gold_counts: Floats,
        temperature: float,
        cost_scale: float,
        link: str,
        cost: Floats | None = None,
        sample_weight: Floats | None = None,
    ) -> None: ...
    @property
    def num_examples(self) -> int: ...
    def check_gold(self) -> None:
        """ValueError naming the first example whose gold labelling is not in Y_i, or has a cost."""
    def cost(self, i: int) -> Floats: ...
    def gold(self, i: int) -> Floats:
        """Gold counts as a dense slot vector."""
    def value(self, weights: Floats, n_jobs: int = 1) -> float:
        """sum_i omega_i phi(smax(theta_i + kappa c_i) - <theta_i, g_i>)"""
    def margins(self, weights: Floats, temperature: float, n_jobs: int = 1) -> Floats:
        """smax(theta_i + kappa c_i) - <theta_i, g_i> at this temperature, an example; 0 where the weight is zero."""
    def plane(self, weights: Floats, n_jobs: int = 1) -> tuple[float, Floats, float]:
        """(value, u, b) at the oracle's answer alpha = p_w (or the argmax at temperature 0):
        u = sum omega s A'(g - mu) (minus the gradient of value), b = sum omega [s (kappa <mu, c> + tau H) -
        phi*(s)]."""
    def plane_at(
        self, weights: Floats, temperature: float, marginals: Floats, n_jobs: int = 1
    ) -> tuple[float, Floats, float, float]:
        """(value, u, b, entropy) at p ~ exp((theta + kappa c) / temperature), whatever the loss's own temperature is:
        value of the losses with this temperature; u and b of p as a point of this objective's dual; sum of omega s H.
        p's expected counts go to `marginals` (those of examples of weight zero are left alone)."""
    def dual_terms_gibbs(self, scores: Floats, n_jobs: int = 1) -> tuple[Floats, float]:
        """(u, b) of the dual point with slot scores `scores` (all examples), mass 1."""
    def dual_terms_linear(self, z: Floats, cost_scale: float, n_jobs: int = 1) -> tuple[Floats, float]:
        """(u, b) of the dual point with slot scores A_i z + cost_scale * c_i, mass 1; the scores are never stored."""
    def dual_terms_slots(
        self, counts: Floats, mass: Floats | None, entropies: Floats | None, n_jobs: int = 1
    ) -> tuple[Floats, float]:
        """(u, b) of the dual point with expected counts s * mu (all examples), mass s (None: 1), entropies s * H
        (None: 0)."""
    def dual_terms_sparse(
        self, indptr: Ints, slots: Ints, counts: Floats, mass: Floats, n_jobs: int = 1
    ) -> tuple[Floats, float]:
        """The same with s * mu given by the slots that are used: example i's are slots[indptr[i]:indptr[i + 1]], and
        no entropies."""
    def marginals_of_scores(self, scores: Floats, n_jobs: int = 1) -> tuple[Floats, Floats]:
        """(expected counts, entropies) of the Gibbs distributions with slot scores `scores`, all examples."""
    def near_gold_scores(self, sharpness: float) -> Floats:
        """-sharpness * cost for every slot: a start near the gold labelling."""

class EgReport:
    visits: int
    dual_gain: float
    rejected: int
    lanes: int
    rounds: int
    taken_back: int

def eg_epoch(
    objective: Objective,
    l2: float,
    order: Ints,
    step_sizes: Floats,
    weights: Floats,
    scores: Floats,
    marginals: Floats,
    entropies: Floats,
    adaptive: bool,
    growth: float = 1.05,
    max_step: float = ...,
    n_jobs: int = 1,
    round_size: int = 0,
) -> EgReport:
    """One pass of online EG over `order`; everything after `order` but the options is updated in place."""

class RoundingSums:
    """Sums over examples of omega x, and of omega x^2 (names in 2), for what bounds on rounding are made of.

    With an example's reach r, its number of parts m and its depth delta = fixed + sqrt(m), x is delta r (scores),
    delta m (tau + kappa max cost) (level) and (delta + examples) r (transposed).
    """

    scores: float
    level: float
    transposed: float
    scores2: float
    level2: float
    transposed2: float
    largest_reach: float

def rounding_sums(objective: Objective, fixed: float, examples: float, n_jobs: int = 1) -> RoundingSums:
    """What `rounding.Rounding` is made of; a pass over the features at most."""

def eg_batch_step(
    objective: Objective, weights: Floats, step: float, scores: Floats, moved: Floats, n_jobs: int = 1
) -> tuple[Floats, float, float, float]:
    """moved = (1 - step tau) scores + step (A w + kappa c) for all examples; may be scores itself.
    (u, b, sum omega log Z) of its Gibbs distributions p, and sum omega (H(p) + <mu, scores>): what the sum of log Z was
    before, less this, is sum omega KL(p || p before)."""

def eg_primal_point(
    objective: Objective, z: Floats, cost_scale: float, old_cost_scale: float, n_jobs: int = 1
) -> tuple[Floats, float, float, float]:
    """(u, b, sum omega log Z) of the Gibbs distributions p with slot scores A z + cost_scale * c, which are never
    stored, and sum omega (H(p) + old_cost_scale <mu, c>)."""

def gold_features(objective: Objective, n_jobs: int = 1) -> Floats:
    """sum omega A'g"""

class BcfwReport:
    visits: int
    gap_estimate: float
    steps: int

def bcfw_epoch(
    objective: Objective,
    l2: float,
    order: Ints,
    weights: Floats,
    counts: Floats,
    mass: Floats,
    linear: Floats,
    lag: Floats,
    average: Floats,
    gaps: Floats | None = None,
) -> BcfwReport:
    """One pass of block-coordinate Frank-Wolfe. counts: s * mu per slot; mass: s; linear: kappa <s mu, c> of each
    example; lag: weights minus their average; average: [steps so far, scale of lag, b of the weighted average]; gaps:
    the blocks' gaps as last seen (see bcfw.py)."""

class BcfwSetReport:
    visits: int
    steps: int
    merged: int
    dual_gain: float
    gap_estimate: float
    bound: float

def bcfw_set_epoch(
    objective: Objective,
    l2: float,
    order: Ints,
    weights: Floats,
    sets: WorkingSets,
    gaps: Floats,
    search: bool = True,
    pairwise: bool = True,
    steps: int = 1,
    now: int = 0,
    keep: int = 0,
    max_bytes: int = ...,
) -> BcfwSetReport:
    """One pass of block-coordinate Frank-Wolfe over working sets (see bcfw.py): with the oracle (search) or over the
    labellings kept."""

class Hessian:
    """Products with the Hessian of `objective.value` at these weights (temperature > 0, capability "covariance")."""

    def __init__(
        self,
        objective: Objective,
        weights: Floats,
        n_jobs: int = 1,
        every: int = 1,
        marginals: Floats | None = None,
    ) -> None: ...
    def product(self, direction: Floats, n_jobs: int = 1) -> Floats:
        """H direction = sum_i omega_i A_i' Cov_i(A_i direction) / tau (and a rank-one share with the squared link)."""
    def diagonal(self, n_jobs: int = 1) -> Floats:
        """sum_i omega_i sum_r A_rj^2 v_r / tau, v_r the mean of p (1 - p) over the example's labels where a labelling
        is one part, else the expected count: something near the diagonal, to scale weights by."""
    @property
    def partial(self) -> bool:
        """Whether only every `every`-th run of examples is in it (weighted up to all)."""

def slot_curvatures(objective: Objective, examples: Ints) -> Floats | None:
    """|A_i' e_a|^2 of every slot a of these examples, end to end, -1 for slots that no labelling uses; None unless
    A_i A_i' is diagonal for all of them."""

class SdcaReport:
    visits: int
    dual_gain: float
    iterations: int
    refused: int

def sdca_start(objective: Objective, reach: float, scores: Floats, n_jobs: int = 1) -> Floats:
    """Slot scores turned into the logarithms of their Gibbs probabilities, in place (0 for slots not in use);
    differences to the gold slot's score are cut off at `reach`. Gives the entropies."""

def sdca_epoch(
    objective: Objective,
    l2: float,
    order: Ints,
    curvatures: Floats,
    weights: Floats,
    scores: Floats,
    entropies: Floats,
    gains: Floats,
) -> SdcaReport:
    """One pass of exact block ascent over `order`, for structures with one part a labelling. scores: logarithms of
    probabilities. curvatures: as from `slot_curvatures`. gains: the dual gain of each example's last visit."""

class WorkingColumns:
    """The columns of some weights (ascending): where they meet slots of examples. One part a labelling only."""

    def __init__(self, objective: Objective, selected: Ints) -> None: ...
    @property
    def num_entries(self) -> int: ...

class CdL1Report:
    sweeps: int
    steps: int
    violation: float

def cd_l1(
    objective: Objective,
    columns: WorkingColumns,
    l1: float,
    l2: float,
    max_sweeps: int,
    tol: float,
    seed: int,
    weights: Floats,
    unscaled: Floats,
    sums: Floats,
) -> CdL1Report:
    """Sweeps of coordinate descent under l1 |w|_1 + l2/2 |w|^2 until no coordinate's violation is above tol. In place:
    weights, one a column; unscaled, exp of scores but for a factor an example, all slots; sums, their sums."""

class ScalingReport:
    updates: int
    cells: int
    searches: int
    capped: int
    gain: float

def scaling_refresh(
    objective: Objective, weights: Floats, potentials: Floats, inverse: Floats, n_jobs: int = 1
) -> None:
    """S and 1/T at these weights, in place: slot r of example i at potentials[r * n + i], scaled to sum to 1."""

def scaling_constants(objective: Objective) -> tuple[Floats, Floats, Ints, int]:
    """(empirical, mass, weight of each column, number of cells); see core/solvers/scaling.h. Needs column access and
    labellings of one slot each."""

def scaling_extremes(objective: Objective, potentials: Floats) -> tuple[Floats, Floats]:
    """The least and the largest value that a feature's expectation can have, a value a weight."""

def scaling_largest_sum(objective: Objective, potentials: Floats) -> float:
    """max over examples and labels of the sum of their features."""

def scaling_function(
    objective: Objective,
    l2: float,
    function: str,
    k: int,
    z: float,
    empirical: Floats,
    mass: Floats,
    largest_sum: float,
    weights: Floats,
    potentials: Floats,
    inverse: Floats,
) -> float:
    """A_t(z) of column k; function: "gis", "iis", "scgis", "cd" (the change of the objective itself) or "log"."""

def scaling_epoch(
    objective: Objective,
    l2: float,
    function: str,
    order: Ints,
    empirical: Floats,
    mass: Floats,
    largest_sum: float,
    weights: Floats,
    potentials: Floats,
    inverse: Floats,
    parallel: bool = False,
    check_bound: bool = True,
    beta: float = 0.5,
    gamma: float = 0.001,
    newton_tol: float = 1e-5,
    max_newton: int = 1,
    n_jobs: int = 1,
) -> ScalingReport:
    """One pass over the columns in `order`; weights, potentials and inverse are updated in place."""

def scaling_rounds(
    objective: Objective,
    l2: float,
    function: str,
    wait: Ints,
    rest: Ints,
    empirical: Floats,
    mass: Floats,
    largest_sum: float,
    weights: Floats,
    potentials: Floats,
    inverse: Floats,
    check_bound: bool = True,
    beta: float = 0.5,
    gamma: float = 0.001,
    newton_tol: float = 1e-5,
    max_newton: int = 1,
) -> ScalingReport:
    """Visits of the columns that are due (see core/solvers/visit_plan.h) until as many cells were read as all columns
    have; wait, rest, weights, potentials and inverse are updated in place."""

class WorkingSets:
    """Labellings kept for each example, each with a coefficient and a stamp (when the oracle last answered it)."""

    def __init__(self, num_examples: int) -> None: ...
    @staticmethod
    def from_arrays(
        example_ptr: Ints, labelling_ptr: Ints, slots: Ints, counts: Floats, coefficients: Floats, stamps: Ints
    ) -> WorkingSets:
        """Example i has labellings example_ptr[i]:example_ptr[i + 1]; labelling k the slots and counts
        labelling_ptr[k]:labelling_ptr[k + 1]."""
    @property
    def num_examples(self) -> int: ...
    @property
    def num_atoms(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What from_arrays takes."""

class DcdReport:
    visits: int
    steps: int
    added: int
    removed: int
    merged: int
    dual_gain: float
    gap_estimate: float
    violation: float

def dcd_epoch(
    objective: Objective,
    l2: float,
    order: Ints,
    weights: Floats,
    sets: WorkingSets,
    seed: int,
    search: bool = True,
    update: bool = True,
    delta: float = 0.0,
    max_bytes: int = ...,
) -> DcdReport:
    """One pass of dual coordinate descent (see dcd.py): ask the oracle (search), update working sets, or both."""

def decode(
    structure: Structure, features: FeatureMap, weights: Floats, n_jobs: int = 1
) -> tuple[Ints, Ints, Floats, Floats]:
    """Best labellings of all examples: (indptr, slots, counts, values)."""

def infer(
    structure: Structure,
    features: FeatureMap,
    weights: Floats,
    temperature: float = 1.0,
    n_jobs: int = 1,
    entropies: bool = True,
) -> tuple[Floats, Floats, Floats]:
    """(expected counts end to end, smax values, entropies) of all examples; entropies=False: none of those."""

def labelling_values(
    structure: Structure,
    features: FeatureMap,
    weights: Floats,
    indptr: Ints,
    slots: Ints,
    counts: Floats,
    n_jobs: int = 1,
) -> Floats:
    """The value of one labelling per example, as `decode` compares them; masks are left aside."""

def all_scores(structure: Structure, features: FeatureMap, weights: Floats, n_jobs: int = 1) -> Floats:
    """Slot scores of all examples end to end."""

def stacked_products(left: Floats, right: Floats, n_jobs: int = 1) -> Floats:
    """out[i, a] = left[i, a] @ right[a] of arrays of shapes (n, k, inner) and (k, inner, m): the same bits for any n
    and n_jobs."""

def dot(x: Floats, y: Floats, n_jobs: int = 1) -> float:
    """<x, y>: the same bits for any n_jobs, as in the two that follow."""

def row_dots(rows: Floats, v: Floats, n_jobs: int = 1) -> Floats:
    """rows @ v, of shapes (k, n) and (n,)."""

def add_rows(coefficients: Floats, rows: Floats, out: Floats, n_jobs: int = 1) -> None:
    """out += coefficients @ rows, of shapes (k,), (k, n) and (n,)."""

@overload
def sparse_product(indptr: NDArray[np.int32], indices: NDArray[np.int32], data: Floats, right: Floats) -> Floats:
    """The product of a CSR matrix and a dense one. Pointers and indices are looked at before they are followed,
    whatever another thread does to them: ValueError if one is out of range.
    """

@overload
def sparse_product(indptr: Ints, indices: Ints, data: Floats, right: Floats) -> Floats: ...

# text

class ParseError(ValueError):
    """A text that is not in its format; `args` is (line, column, message), counted from 1, columns in characters."""

class Sentences:
    """A table of sentences x tokens x string columns, held once as UTF-8. Tables made from it share its text."""

    @staticmethod
    def parse(data: bytes, separator: str = "", n_columns: int = 0) -> Sentences:
        """A file of columns. separator "": runs of spaces and tabs; n_columns 0: as in the first line. ParseError."""
    @staticmethod
    def from_lists(sentences: Iterable[Iterable[str | Sequence[str]]]) -> Sentences:
        """Sentences of tokens, each a string or a tuple or list of as many strings as the others."""
    def __len__(self) -> int: ...
    def __getitem__(self, i: int) -> list[Any]:
        """A sentence's tokens: strings if there is one column, else tuples."""
    @property
    def n_columns(self) -> int: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def lengths(self) -> Ints:
        """Number of tokens of each sentence."""
    def column(self, j: int) -> list[list[str]]:
        """The strings of one column, a list a sentence; -1 is the last column."""
    def take(self, indices: Ints) -> Sentences:
        """Some of the sentences, in this order."""
    def without(self, j: int) -> Sentences:
        """The same without one column."""

class Vocabulary:
    """Distinct names and their numbers. Names are kept as UTF-8, end to end; pickles by them."""

    def __init__(self, bytes: Bytes, offsets: Ints) -> None:
        """Name k is bytes[offsets[k]:offsets[k + 1]]. ValueError unless they are UTF-8 and distinct."""
    @staticmethod
    def learn(names: list[str], min_count: int = 1) -> tuple[Vocabulary, Ints]:
        """The names seen at least min_count times, the most frequent first (ties: as seen), and the ids of `names`."""
    def __len__(self) -> int: ...
    def __contains__(self, name: object) -> bool: ...
    def __getitem__(self, k: int) -> str: ...
    @property
    def bytes(self) -> Bytes: ...
    @property
    def offsets(self) -> Ints: ...
    def names(self) -> list[str]: ...
    def ids(self, names: list[str]) -> Ints:
        """Their numbers; -1 for unknown names."""
    def packed_ids(self, bytes: Bytes, offsets: Ints, n_jobs: int = 1) -> Ints:
        """The same for names that lie end to end."""
    def starts_with(self, prefixes: Sequence[str]) -> Bytes:
        """1 for the names that start with one of these."""

class CodedColumn:
    """A column of strings or None: each token's number in a table of distinct strings."""

    @staticmethod
    def of(sentences: Sentences, j: int) -> CodedColumn: ...
    @staticmethod
    def from_list(strings: list[str | None]) -> CodedColumn:
        """One string or None a token."""
    def names(self) -> list[str]:
        """The distinct strings."""
    def mapped(self, names: list[str | None]) -> CodedColumn:
        """The column with names[k] in place of the k-th distinct string."""

class Extractor:
    """Attributes of tokens by template lines.

    A line is (edge, pieces): edge lines give nothing at a sentence's first token. A piece is literal text, ("first",)
    or ("last",), which let the line give something at such tokens only, or ("cell", column, row, outside): the string
    of a column `row` tokens away; where it is None the line gives nothing. `outside` is what lies past the sentence's
    ends: None (the line gives nothing), True (_B-1, _B-2, ... before it, _B+1, ... after it) or a string.
    """

    def __init__(self, lines: list[tuple[bool, list[Any]]], columns: Sequence[CodedColumn], lengths: Ints) -> None: ...
    def learn(self, min_count: int = 1, n_jobs: int = 1) -> tuple[Vocabulary, tuple[Ints, Ints, int]]:
        """The attributes seen at least min_count times, as `Vocabulary.learn` orders them, and `look_up` with it."""
    def look_up(self, vocabulary: Vocabulary, n_jobs: int = 1) -> tuple[Ints, Ints, int]:
        """(row_ptr, attributes, number of unknown ones): token t has attributes[row_ptr[t]:row_ptr[t + 1]]; -1 is an
        unknown one."""
    def attributes(self, token: int) -> list[str]:
        """The attributes of one token, written out."""

def parse_svmlight(data: bytes, first: int = 1) -> tuple[Floats, Ints, Ints, Floats]:
    """(labels, row_ptr, columns, values) of rows `label index:value ...`, with indices from `first`. ParseError."""
