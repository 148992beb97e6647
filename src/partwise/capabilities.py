"""Everything that a solver can ask of a problem: of its loss, penalty, structure, features and batches.

A member is equal to its text, which messages and tables show; a name that is misspelt fails where it is imported.
"""

from collections.abc import Iterable
from enum import StrEnum


class Capability(StrEnum):
    """A thing that a problem can do, or is."""

    # of the loss
    SMOOTH = "smooth"
    TEMPERATURE_0 = "temperature 0"
    IDENTITY_LINK = "identity link"
    SQUARED_LINK = "squared link"
    SLACK_RESCALING = "slack rescaling"
    EXAMPLE_BLOCKS = "dual by examples"  # a part for each, which methods for one example at a time raise
    MAXIMA = "maxima"  # of planes, one per labelling, none of them above temperature 0
    # of the penalty
    L2 = "l2 > 0"
    L1 = "l1 > 0"
    SMOOTH_PENALTY = "smooth penalty"
    PENALTY = "l1 > 0 or l2 > 0"
    ALL_PENALISED = "a penalty on all weights"
    # of either: the loss has a temperature above 0, or there is no l1
    SMOOTH_TERM = "smooth loss or penalty"
    # of the structure
    MAX_ORACLE = "max oracle"
    EXPECTATION_ORACLE = "expectation oracle"
    CLIQUES = "cliques"
    CLIQUE_SUPPORT = "clique support"
    COVARIANCE = "covariance"
    K_BEST = "k_best"
    SAMPLE = "sample"
    ONE_PART = "one part"
    # of the features
    EXPLICIT_WEIGHTS = "explicit weights"
    COLUMN_ACCESS = "column access"
    NON_NEGATIVE_FEATURES = "non-negative features"
    BINARY_FEATURES = "binary features"
    # of structure and loss together: a maximum at temperature 0, expectations above it
    LOSS_ORACLE = "oracle of the loss"
    # of structure and features together
    DIAGONAL_BLOCKS = "diagonal blocks"
    # of the batches: examples can be visited one by one; there is one batch, whose columns are all there are; those who
    # work on batches can keep files
    IN_MEMORY = "batches in memory"
    ONE_BATCH = "one batch"
    BLOCK_FILES = "files for blocks"


def capabilities(names: Iterable[str]) -> frozenset[Capability]:
    """The capabilities of these names; ValueError for a name that is none."""
    return frozenset(map(Capability, names))


def listed(names: Iterable[str]) -> str:
    """The names in a message."""
    return " and ".join(sorted(names))
