"""Solvers: frozen dataclasses of hyper-parameters with `init_state`, `step`, `certificate` and a shared `run`.

The classes of `engine.registry.BUILT_IN` are imported on first use.
"""

from typing import TYPE_CHECKING

from partwise.model_files.errors import CheckpointError
from partwise.solvers.engine.auto import choose, solve
from partwise.solvers.engine.base import Certified, Progress, Solver, WarmStart, start_weights
from partwise.solvers.engine.checkpoint import Checkpoint
from partwise.solvers.engine.options import option
from partwise.solvers.engine.path import largest_l1, regularization_path, solve_path
from partwise.solvers.engine.registry import (
    BUILT_IN,
    SOLVERS,
    available_solvers,
    compatibility_table,
    get_solver,
    register_solver,
    suitable_solvers,
)
from partwise.solvers.engine.state import State

if TYPE_CHECKING:
    from partwise.out_of_core.block_dual import BlockDual as BlockDual
    from partwise.solvers.columns.cd import CD as CD
    from partwise.solvers.columns.cd import CDExact as CDExact
    from partwise.solvers.columns.cd_l1 import CDL1 as CDL1
    from partwise.solvers.columns.iterative_scaling import GIS as GIS
    from partwise.solvers.columns.iterative_scaling import IIS as IIS
    from partwise.solvers.columns.iterative_scaling import SCGIS as SCGIS
    from partwise.solvers.columns.iterative_scaling import ISBound as ISBound
    from partwise.solvers.dual.annealed import Annealed as Annealed
    from partwise.solvers.dual.eg import EG as EG
    from partwise.solvers.dual.eg_batch import EGBatch as EGBatch
    from partwise.solvers.dual.eg_batch import EGPrimal as EGPrimal
    from partwise.solvers.dual.eg_prox import EGProx as EGProx
    from partwise.solvers.dual.excessive_gap import ExcessiveGap as ExcessiveGap
    from partwise.solvers.dual.extragradient import Extragradient as Extragradient
    from partwise.solvers.dual.sdca import SDCA as SDCA
    from partwise.solvers.dual.smo import SMO as SMO
    from partwise.solvers.dual.smo import SMOEG as SMOEG
    from partwise.solvers.online.perceptron import MIRA as MIRA
    from partwise.solvers.online.perceptron import Perceptron as Perceptron
    from partwise.solvers.online.sgd import SGD as SGD
    from partwise.solvers.planes.bundle_methods import BMRM as BMRM
    from partwise.solvers.planes.bundle_methods import OneSlack as OneSlack
    from partwise.solvers.primal.lbfgs import LBFGS as LBFGS
    from partwise.solvers.primal.newton import Newton as Newton
    from partwise.solvers.primal.owlqn import OWLQN as OWLQN
    from partwise.solvers.working_sets.bcfw import BCFW as BCFW
    from partwise.solvers.working_sets.cutting_plane import CuttingPlane as CuttingPlane
    from partwise.solvers.working_sets.dcd import CPD as CPD
    from partwise.solvers.working_sets.dcd import DCD as DCD
    from partwise.solvers.working_sets.dcd import DCDLight as DCDLight

#: Names of solvers by their classes.
_CLASSES = {path.rpartition(".")[2]: name for name, path in BUILT_IN.items()}

__all__ = [
    "Certified",
    "Checkpoint",
    "CheckpointError",
    "Progress",
    "Solver",
    "State",
    "WarmStart",
    "available_solvers",
    "choose",
    "compatibility_table",
    "get_solver",
    "largest_l1",
    "option",
    "register_solver",
    "regularization_path",
    "solve",
    "solve_path",
    "start_weights",
    "suitable_solvers",
    *_CLASSES,
]


def __getattr__(name: str) -> type[Solver[State]]:
    if name not in _CLASSES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return SOLVERS[_CLASSES[name]]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
