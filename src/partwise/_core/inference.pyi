"""Prediction for all examples at once."""

from .features import FeatureMap
from .structures import Structure
from .support import Floats, Ints

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
