"""Prediction for all examples at once."""

from typing import Any, Final

from partwise.support.arrays import Bytes, Floats, Ints

from .features import FeatureMap, RowLayout
from .structures import Structure
from .text import Vocabulary

def decode(
    structure: Structure, features: FeatureMap, weights: Floats, n_jobs: int = 1, examples: Ints | None = None
) -> tuple[Ints, Ints, Floats, Floats]:
    """Return best labellings of some examples (None: of all): (indptr, slots, counts, values)."""

def infer(
    structure: Structure,
    features: FeatureMap,
    weights: Floats,
    temperature: float = 1.0,
    n_jobs: int = 1,
    entropies: bool = True,
) -> tuple[Floats, Floats, Floats]:
    """Return (expected counts, smax values, entropies) of all examples, the last empty without `entropies`."""

def labelling_values(
    structure: Structure,
    features: FeatureMap,
    weights: Floats,
    indptr: Ints,
    slots: Ints,
    counts: Floats,
    n_jobs: int = 1,
) -> Floats:
    """Return the value of one labelling per example, as `decode` compares them, without masks."""

def all_scores(structure: Structure, features: FeatureMap, weights: Floats, n_jobs: int = 1) -> Floats: ...
def slot_norms(structure: Structure, features: FeatureMap, n_jobs: int = 1) -> Floats:
    """Return |A_i' e_r| of every slot r."""

class PackedItems:
    """Names and values of one sequence's items, kept in the core for several calls."""

    @staticmethod
    def read(sequence: Any, separator: str) -> PackedItems | None:
        """Read items in the forms of `Vocabulary.read_items`, with values of 0; None for another form."""
    @staticmethod
    def of_lists(items: list[tuple[list[str], list[float]]]) -> PackedItems: ...
    def __len__(self) -> int: ...
    def lists(self) -> list[tuple[list[str], list[float]]]: ...

class ItemRows:
    lengths: Final[list[int]]
    unknown: Final[tuple[int, int]]  # the number of unknown attributes, and of all

class NamedChain:
    """A tied chain over named attributes with its weights, for calls from items to answers.

    Answers have the bits of `decode`, `infer` and `labelling_values`. Several threads may use one object.
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
        """Use the array of weights in place; follow: the arguments of `Chain.set_follow`."""
    def read(self, sequences: Any) -> ItemRows | None:
        """Read sequences of items (as `Vocabulary.read_items`, or `PackedItems`); None for another form."""
    def best(self, rows: ItemRows, n_jobs: int = 1) -> list[list[Any]]: ...
    def sums(self, rows: ItemRows, temperature: float = 1.0, n_jobs: int = 1) -> tuple[list[Any], Floats]:
        """Return each sequence's probabilities of labels (length, n_labels), and its smax."""
    def values(self, rows: ItemRows, labels: Ints, n_jobs: int = 1) -> Floats:
        """Return each sequence's score with these labels, given as numbers, all sequences concatenated."""
