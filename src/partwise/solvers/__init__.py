"""Solvers: frozen dataclasses of hyper-parameters with `init_state`, `step`, `certificate` and a shared `run`.

Every module of this package is imported, so that a solver is known by its name as soon as its file is here.
"""

import importlib
import pkgutil

from partwise.model_files.errors import CheckpointError
from partwise.out_of_core.block_dual import BlockDual
from partwise.solvers.columns.cd import CD, CDExact
from partwise.solvers.columns.cd_l1 import CDL1
from partwise.solvers.columns.iterative_scaling import GIS, IIS, SCGIS, ISBound
from partwise.solvers.dual.annealed import Annealed
from partwise.solvers.dual.eg import EG
from partwise.solvers.dual.eg_batch import EGBatch
from partwise.solvers.dual.eg_primal import EGPrimal
from partwise.solvers.dual.eg_prox import EGProx
from partwise.solvers.dual.excessive_gap import ExcessiveGap
from partwise.solvers.dual.extragradient import Extragradient
from partwise.solvers.dual.sdca import SDCA
from partwise.solvers.engine.auto import choose, solve
from partwise.solvers.engine.base import Certified, Progress, Solver, WarmStart, start_weights
from partwise.solvers.engine.checkpoint import Checkpoint
from partwise.solvers.engine.compatibility import compatibility_table
from partwise.solvers.engine.options import option
from partwise.solvers.engine.path import largest_l1, regularization_path, solve_path
from partwise.solvers.engine.registry import available_solvers, get_solver, register_solver, suitable_solvers
from partwise.solvers.engine.state import State
from partwise.solvers.online.mira import MIRA
from partwise.solvers.online.perceptron import Perceptron
from partwise.solvers.online.sgd import SGD
from partwise.solvers.planes.bundle_methods import BMRM, OneSlack
from partwise.solvers.primal.lbfgs import LBFGS
from partwise.solvers.primal.newton import Newton
from partwise.solvers.primal.owlqn import OWLQN
from partwise.solvers.working_sets.bcfw import BCFW
from partwise.solvers.working_sets.cutting_plane import CuttingPlane
from partwise.solvers.working_sets.dcd import CPD, DCD, DCDLight

__all__ = [
    "BCFW",
    "BMRM",
    "CD",
    "CDL1",
    "CPD",
    "DCD",
    "EG",
    "GIS",
    "IIS",
    "LBFGS",
    "MIRA",
    "OWLQN",
    "SCGIS",
    "SDCA",
    "SGD",
    "Annealed",
    "BlockDual",
    "CDExact",
    "Certified",
    "Checkpoint",
    "CheckpointError",
    "CuttingPlane",
    "DCDLight",
    "EGBatch",
    "EGPrimal",
    "EGProx",
    "ExcessiveGap",
    "Extragradient",
    "ISBound",
    "Newton",
    "OneSlack",
    "Perceptron",
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
]

for _module in pkgutil.walk_packages(__path__, "partwise.solvers."):
    importlib.import_module(_module.name)
