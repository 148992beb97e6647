"""Everything that a solver can ask of a problem: of its loss, penalty, structure, features and batches.

A member is equal to its text, which messages and tables show; a name that is misspelt fails where it is imported.
"""

from collections.abc import Iterable
from enum import StrEnum


class Capability(StrEnum):
    """What a problem can do, or is; `Solver.requires` lists what a solver needs.

    A member is equal to its text, which messages and tables show.
    """

    # of the loss
    #: The loss has a temperature above 0, and so a gradient everywhere.
    SMOOTH = "smooth"
    #: The loss looks at the best labelling alone.
    TEMPERATURE_0 = "temperature 0"
    #: The link is the identity: dual masses are 1.
    IDENTITY_LINK = "identity link"
    #: The link is max(t, 0)^2.
    SQUARED_LINK = "squared link"
    #: The cost multiplies the margin's violation.
    SLACK_RESCALING = "slack rescaling"
    #: The dual has a part for each example, which methods for one example at a time raise.
    EXAMPLE_BLOCKS = "dual by examples"
    #: The loss is a maximum of planes, one per labelling.
    MAXIMA = "maxima"
    # of the penalty
    #: There is a squared penalty, l2 > 0.
    L2 = "l2 > 0"
    #: There is an l1 term.
    L1 = "l1 > 0"
    #: There is no l1 term. Solvers that call `Problem.value_and_gradient` or `certificate_at` need it.
    SMOOTH_PENALTY = "smooth penalty"
    #: l1 or l2 is above 0.
    PENALTY = "l1 > 0 or l2 > 0"
    #: No weight is free (such as an intercept without a penalty).
    ALL_PENALISED = "a penalty on all weights"
    # of either
    #: The loss has a temperature above 0, or there is no l1 term.
    SMOOTH_TERM = "smooth loss or penalty"
    # of the structure
    #: The structure has `maximize` or `maximize_many`.
    MAX_ORACLE = "max oracle"
    #: The structure has `log_partition` or `log_partition_many`.
    EXPECTATION_ORACLE = "expectation oracle"
    #: The structure has clique marginals.
    CLIQUES = "cliques"
    #: Its cliques tell which labellings have mass.
    CLIQUE_SUPPORT = "clique support"
    #: The structure has `covariance_product`.
    COVARIANCE = "covariance"
    #: The structure has `k_best`.
    K_BEST = "k_best"
    #: The structure has `sample`.
    SAMPLE = "sample"
    #: Every labelling is one slot, used once.
    ONE_PART = "one part"
    # of the features
    #: Weights are coordinates, and not coefficients of a kernel.
    EXPLICIT_WEIGHTS = "explicit weights"
    #: The features of a column can be visited.
    COLUMN_ACCESS = "column access"
    #: No feature is below 0.
    NON_NEGATIVE_FEATURES = "non-negative features"
    #: Features are 0 or 1.
    BINARY_FEATURES = "binary features"
    # of structure and loss together
    #: The structure has the oracle that the loss needs: a maximum at temperature 0, expectations above it.
    LOSS_ORACLE = "oracle of the loss"
    # of structure and features together
    #: Every labelling is one slot, and A_i A_i' is diagonal.
    DIAGONAL_BLOCKS = "diagonal blocks"
    # of the batches
    #: Examples can be visited one by one.
    IN_MEMORY = "batches in memory"
    #: There is one batch, with all columns.
    ONE_BATCH = "one batch"
    #: Those who work on batches can keep files.
    BLOCK_FILES = "files for blocks"


#: An l2 penalty on all weights, and nothing besides.
PLAIN_L2 = frozenset({Capability.L2, Capability.ALL_PENALISED, Capability.SMOOTH_PENALTY})


def capabilities(names: Iterable[str]) -> frozenset[Capability]:
    """The capabilities of these names; ValueError for a name that is none."""
    return frozenset(map(Capability, names))


def listed(names: Iterable[str]) -> str:
    """The names in a message."""
    return " and ".join(sorted(names))
