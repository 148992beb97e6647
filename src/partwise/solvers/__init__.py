"""Solvers: frozen dataclasses of hyper-parameters with `init_state`, `step`, `certificate` and a shared `run`.

Every module of this package is imported, so that a solver is known by its name as soon as its file is here.
"""

import importlib
import pkgutil

from ..model_files.errors import CheckpointError
from .auto import choose, solve
from .base import Certified, Progress, Solver, WarmStart
from .bcfw import BCFW
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
from .excessive_gap import ExcessiveGap
from .extragradient import Extragradient
from .gis import GIS
from .iis import IIS
from .is_bound import ISBound
from .lbfgs import LBFGS
from .newton import Newton
from .one_slack import OneSlack
from .path import regularization_path, solve_path
from .registry import available_solvers, get_solver, register, suitable_solvers
from .scgis import SCGIS
from .sdca import SDCA
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
    "SCGIS",
    "SDCA",
    "CDExact",
    "Certified",
    "Checkpoint",
    "CheckpointError",
    "CuttingPlane",
    "DCDLight",
    "EGBatch",
    "EGPrimal",
    "ExcessiveGap",
    "Extragradient",
    "ISBound",
    "Newton",
    "OneSlack",
    "Progress",
    "Solver",
    "State",
    "WarmStart",
    "available_solvers",
    "choose",
    "compatibility_table",
    "get_solver",
    "register",
    "regularization_path",
    "solve",
    "solve_path",
    "suitable_solvers",
]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
