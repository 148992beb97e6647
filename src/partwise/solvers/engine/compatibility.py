"""The table of what fits what, from what solvers ask for and what problems of each kind offer.

Nothing is listed by hand: solvers register themselves (`registry`), and a tiny problem of each kind (`specimens`) is
asked for its capabilities.
"""

from partwise.problem.losses import LOSSES, Loss
from partwise.solvers.engine.registry import SOLVERS, suitable_solvers
from partwise.specimens import SPECIMENS


def fitting_solvers(loss: Loss, kind: str = "Chain") -> list[str]:
    """Names of the solvers that fit this loss on problems of this kind."""
    return suitable_solvers(SPECIMENS[kind].problem(loss))


def compatibility_table() -> str:
    """Which solver fits which loss, for each kind of problem; then what each solver needs."""
    blocks = []
    for kind in SPECIMENS:
        cells = [[kind, *LOSSES]]
        fitting = [fitting_solvers(loss, kind) for loss in LOSSES.values()]
        cells += [[name, *("yes" if name in found else "-" for found in fitting)] for name in SOLVERS]
        blocks.append(_aligned(cells))
    needs = [f"{name} needs: {', '.join(sorted(cls.requires))}" for name, cls in SOLVERS.items()]
    return "\n\n".join([*blocks, "\n".join(needs)]) + "\n"


def _aligned(cells: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
