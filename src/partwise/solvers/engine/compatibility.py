"""The table of what fits what: what solvers ask for beside what problems of each kind offer.

Solvers register themselves (`registry`). The kinds of problems are listed below; a test compares the list with a small
problem of each kind.
"""

from partwise.problem import L2, LOSSES, Capability, ElasticNet, Loss
from partwise.problem.penalties import Penalty, offered
from partwise.solvers.engine.registry import SOLVERS

_BATCH = frozenset({Capability.IN_MEMORY, Capability.BLOCK_FILES, Capability.ONE_BATCH, Capability.EXPLICIT_WEIGHTS})
_MAXIMUM = _BATCH | {Capability.MAX_ORACLE}
_BOTH = _MAXIMUM | {Capability.EXPECTATION_ORACLE}
_COMPILED = _BOTH | {Capability.COVARIANCE, Capability.K_BEST, Capability.SAMPLE}
_CLIQUES = _COMPILED | {Capability.CLIQUES, Capability.CLIQUE_SUPPORT}
_ONE_LABEL = _CLIQUES | {Capability.ONE_PART, Capability.DIAGONAL_BLOCKS}
_COLUMNS = _ONE_LABEL | {Capability.COLUMN_ACCESS}
_MAXENT = _COLUMNS | {Capability.NON_NEGATIVE_FEATURES, Capability.BINARY_FEATURES}

#: What the data of each kind of problem offer, and the penalty; in the order of the table.
KINDS: dict[str, tuple[frozenset[Capability], Penalty]] = {
    "Graph": (_CLIQUES, L2(1.0)),
    "Multiclass": (_ONE_LABEL, L2(1.0)),
    "Multiclass, l2 = 0": (_ONE_LABEL, L2(0.0)),
    "Multiclass, l1 > 0": (_ONE_LABEL, ElasticNet(1.0)),
    "Chain": (_CLIQUES, L2(1.0)),
    "Chain, l2 = 0": (_CLIQUES, L2(0.0)),
    "Chain, elastic net": (_CLIQUES, ElasticNet(1.0, 1.0)),
    "Chain, l1 > 0": (_CLIQUES, ElasticNet(1.0)),
    "Chain, two batches": (_CLIQUES - {Capability.ONE_BATCH}, L2(1.0)),
    "SecondOrderChain": (_COMPILED, L2(1.0)),
    "SegmentChain": (_COMPILED, L2(1.0)),
    "ProjectiveTree": (_COMPILED, L2(1.0)),
    "SpanningTree": (_COMPILED, L2(1.0)),
    "Grammar": (_COMPILED, L2(1.0)),
    "Python structure with both oracles": (_BOTH, L2(1.0)),
    "Python structure with the maximum alone": (_MAXIMUM, L2(1.0)),
    "Multiclass with a kernel": (_ONE_LABEL - {Capability.EXPLICIT_WEIGHTS}, L2(1.0)),
    "Chain with a kernel": (_CLIQUES - {Capability.EXPLICIT_WEIGHTS}, L2(1.0)),
    "Multiclass, maxent map": (_MAXENT, L2(1.0)),
    "Multiclass, maxent map, l2 = 0": (_MAXENT, L2(0.0)),
    "Multiclass, maxent map, two batches": (_MAXENT - {Capability.ONE_BATCH}, L2(1.0)),
    "Multiclass, maxent map, negative features": (_COLUMNS, L2(1.0)),
}


def fitting_solvers(loss: Loss, kind: str = "Chain") -> list[str]:
    """Return the names of the solvers that fit this loss on problems of this kind."""
    data, penalty = KINDS[kind]
    have = offered(data, loss, penalty)
    return [name for name, cls in SOLVERS.items() if cls.requires <= have]


def compatibility_table() -> str:
    """Return which solver fits which loss, for each kind of problem; then what each solver needs."""
    blocks = []
    for kind in KINDS:
        cells = [[kind, *LOSSES]]
        fitting = [fitting_solvers(loss, kind) for loss in LOSSES.values()]
        cells += [[name, *("yes" if name in found else "-" for found in fitting)] for name in SOLVERS]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        blocks.append("\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells))
    needs = [f"{name} needs: {', '.join(sorted(cls.requires))}" for name, cls in SOLVERS.items()]
    return "\n\n".join([*blocks, "\n".join(needs)]) + "\n"
