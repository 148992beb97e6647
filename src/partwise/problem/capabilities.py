"""Everything that a solver can ask of a problem: of its loss, penalty, structure, features and batches."""

from collections.abc import Iterable
from enum import StrEnum

from partwise._core import Structure


class Capability(StrEnum):
    """What a problem can do, or is; `Solver.requires` lists what a solver needs.

    A member is equal to its text, which messages and tables show.
    """

    # of the loss
    SMOOTH = "smooth"  #: The loss has a temperature above 0, and so a gradient everywhere.
    TEMPERATURE_0 = "temperature 0"  #: The loss looks at the best labelling alone.
    IDENTITY_LINK = "identity link"  #: The link is the identity: dual masses are 1.
    SQUARED_LINK = "squared link"  #: The link is max(t, 0)^2.
    SLACK_RESCALING = "slack rescaling"  #: The cost multiplies the margin's violation.
    #: The dual has a part for each example, which methods for one example at a time raise.
    EXAMPLE_BLOCKS = "dual by examples"
    MAXIMA = "maxima"  #: The loss is a maximum of planes, one per labelling.
    # of the penalty
    L2 = "l2 > 0"  #: There is a squared penalty, l2 > 0.
    L1 = "l1 > 0"  #: There is an l1 term.
    #: There is no l1 term. Solvers that call `Problem.value_and_gradient` or `certificate_at` need it.
    SMOOTH_PENALTY = "smooth penalty"
    PENALTY = "l1 > 0 or l2 > 0"  #: l1 or l2 is above 0.
    ALL_PENALISED = "a penalty on all weights"  #: No weight is free (such as an intercept without a penalty).
    # of either
    SMOOTH_TERM = "smooth loss or penalty"  #: The loss has a temperature above 0, or there is no l1 term.
    # of the structure
    MAX_ORACLE = "max oracle"  #: The structure has `maximize` or `maximize_many`.
    EXPECTATION_ORACLE = "expectation oracle"  #: The structure has `log_partition` or `log_partition_many`.
    CLIQUES = "cliques"  #: The structure has clique marginals.
    CLIQUE_SUPPORT = "clique support"  #: Its cliques tell which labellings have mass.
    COVARIANCE = "covariance"  #: The structure has `covariance_product`.
    K_BEST = "k_best"  #: The structure has `k_best`.
    SAMPLE = "sample"  #: The structure has `sample`.
    ONE_PART = "one part"  #: Every labelling is one slot, used once.
    # of the features
    EXPLICIT_WEIGHTS = "explicit weights"  #: Weights are coordinates, and not coefficients of a kernel.
    COLUMN_ACCESS = "column access"  #: The features of a column can be visited.
    NON_NEGATIVE_FEATURES = "non-negative features"  #: No feature is below 0.
    BINARY_FEATURES = "binary features"  #: Features are 0 or 1.
    # of structure and loss together
    #: The structure has the oracle that the loss needs: a maximum at temperature 0, expectations above it.
    LOSS_ORACLE = "oracle of the loss"
    # of structure and features together
    DIAGONAL_BLOCKS = "diagonal blocks"  #: Every labelling is one slot, and A_i A_i' is diagonal.
    # of the batches
    IN_MEMORY = "batches in memory"  #: Examples can be visited one by one.
    ONE_BATCH = "one batch"  #: There is one batch, with all columns.
    BLOCK_FILES = "files for blocks"  #: Work on batches can keep files.


#: An l2 penalty on all weights, and nothing besides.
PLAIN_L2 = frozenset({Capability.L2, Capability.ALL_PENALISED, Capability.SMOOTH_PENALTY})
#: That, and a max-margin loss with a dual over distributions.
HINGE = PLAIN_L2 | {Capability.TEMPERATURE_0, Capability.IDENTITY_LINK}
#: Gradients of a smooth loss in weights.
SMOOTH_LOSS = frozenset({Capability.SMOOTH, Capability.EXPECTATION_ORACLE, Capability.EXPLICIT_WEIGHTS})
#: Weights that follow the best labelling of one example after the other.
BEST_LABELLINGS = frozenset({Capability.MAX_ORACLE, Capability.EXPLICIT_WEIGHTS, Capability.IN_MEMORY})


def capabilities(names: Iterable[str]) -> frozenset[Capability]:
    """Return the capabilities with these names; raise ValueError for an unknown name."""
    return frozenset(map(Capability, names))


def listed(names: Iterable[str]) -> str:
    """Return the names as a message lists them."""
    return " and ".join(sorted(names))


#: The methods of a structure that are an oracle.
_ORACLES = {
    Capability.MAX_ORACLE: ("maximize", "maximize_many"),
    Capability.EXPECTATION_ORACLE: ("log_partition", "log_partition_many"),
}


def structure_capabilities(structure: Structure) -> frozenset[Capability]:
    """Return a structure's optional capabilities and oracles: those that it implements, or both if compiled."""

    def implements(method: str) -> bool:
        return getattr(type(structure), method) is not getattr(Structure, method)

    compiled = is_compiled(structure)
    found = {oracle for oracle, methods in _ORACLES.items() if compiled or any(map(implements, methods))}
    return capabilities(structure.capabilities()) | found


def is_compiled(structure: Structure) -> bool:
    """Return whether the oracles are compiled, so that their cost follows from sizes, unlike that of Python code."""
    bases = type(structure).__mro__
    return any(base is not Structure and base.__module__ == Structure.__module__ for base in bases)
