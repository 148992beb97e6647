"""Prediction for all examples at once."""

from typing import Any

from .features import FeatureMap, RowLayout
from .structures import Structure
from .support import Bytes, Floats, Ints
from .text import Vocabulary

def decode(
    structure: Structure, features: FeatureMap, weights: Floats, n_jobs: int = 1, examples: Ints | None = None
) -> tuple[Ints, Ints, Floats, Floats]:
    """Best labellings of some examples (None: of all): (indptr, slots, counts, values)."""

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

def slot_norms(structure: Structure, features: FeatureMap, n_jobs: int = 1) -> Floats:
    """|A_i' e_r| of every slot r, examples end to end."""

class PackedItems:
    """The items of one sequence, names and values, kept in the core for several calls; pickles by them."""

    @staticmethod
    def read(sequence: Any, separator: str) -> PackedItems | None:
        """Of a list or tuple of items in the forms of `Vocabulary.read_items`, values of 0 included; else None."""
    @staticmethod
    def of_lists(items: list[tuple[list[str], list[float]]]) -> PackedItems:
        """Of names and values of each item."""
    def __len__(self) -> int: ...
    def lists(self) -> list[tuple[list[str], list[float]]]:
        """Names and values of each item."""

class ItemRows:
    """Sequences of items as a `NamedChain` read them."""

    @property
    def lengths(self) -> list[int]:
        """Number of items of each sequence."""
    @property
    def unknown(self) -> tuple[int, int]:
        """How many attributes are unknown, and of how many."""

class NamedChain:
    """A tied chain over named attributes with its weights: items of Python in, answers out, in one call each.

    Answers have the bits that `decode`, `infer` and `labelling_values` give for a batch. Objects of this class never
    change and may be used by several threads.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        separator: str,
        layout: RowLayout,
        labels: tuple[Any, ...],
        transition_mask: Bytes,
        ends: bool,
        follow: tuple[Bytes, Bytes, Bytes] | None,
        weights: Floats,
    ) -> None:
        """follow: the arguments of `Chain.set_follow`. The array of weights is used in place."""
    def read(self, sequences: Any) -> ItemRows | None:
        """A list or tuple of sequences: lists or tuples of items (`Vocabulary.read_items`), or `PackedItems`.

        None if something is of another form. Many names are looked up with the GIL released.
        """
    def best(self, rows: ItemRows, n_jobs: int = 1) -> list[list[Any]]:
        """The best labels of each sequence."""
    def sums(self, rows: ItemRows, temperature: float = 1.0, n_jobs: int = 1) -> tuple[list[Any], Floats]:
        """The probabilities of labels of each sequence, (length, n_labels), and its smax (0 for one without items)."""
    def values(self, rows: ItemRows, labels: Ints, n_jobs: int = 1) -> Floats:
        """The score of each sequence with these labels, given as numbers, all sequences end to end."""
