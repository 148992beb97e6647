"""Solvers: frozen dataclasses of hyper-parameters with `init_state`, `step`, `certificate` and a shared `run`.

Every module of this package is imported, so that a solver is known by its name as soon as its file is here.
"""

import importlib
import pkgutil

from ..model_files.errors import CheckpointError
from .annealed import Annealed
from .auto import choose, solve
from .base import Certified, Progress, Solver, WarmStart, option, start_weights
from .bcfw import BCFW
from .block_dual import BlockDual
from .bmrm import BMRM
from .cd import CD
from .cd_exact import CDExact
from .cd_l1 import CDL1
from .checkpoint import Checkpoint
from .compatibility import compatibility_table
from .cpd import CPD
from .cutting_plane import CuttingPlane
from .dcd import DCD
from .dcd_light import DCDLight
from .eg import EG
from .eg_batch import EGBatch
from .eg_primal import EGPrimal
from .eg_prox import EGProx
from .excessive_gap import ExcessiveGap
from .extragradient import Extragradient
from .gis import GIS
from .iis import IIS
from .is_bound import ISBound
from .lbfgs import LBFGS
from .mira import MIRA
from .newton import Newton
from .one_slack import OneSlack
from .owlqn import OWLQN
from .path import largest_l1, regularization_path, solve_path
from .perceptron import Perceptron
from .registry import available_solvers, get_solver, register_solver, suitable_solvers
from .scgis import SCGIS
from .sdca import SDCA
from .sgd import SGD
from .state import State

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

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
