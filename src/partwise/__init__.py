"""Linear structured prediction: any solver, any structure, any loss, each run with a certificate.

    from partwise import SequenceTagger
    tagger = SequenceTagger(loss="log", C=0.5).fit(sequences, labels)
    tagger.result_  # weights, primal, dual, gap

Names are imported when they are first used, so that `import partwise` is quick and needs no scikit-learn.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import callbacks as callbacks
    from . import datasets as datasets
    from . import features as features
    from . import io as io
    from . import kernels as kernels
    from . import metrics as metrics
    from . import model_files as model_files
    from . import models as models
    from . import reference as reference
    from . import report as report
    from . import solvers as solvers
    from . import structures as structures
    from .dual import ActiveSet as ActiveSet
    from .dual import DualPoint as DualPoint
    from .estimators import DependencyParser as DependencyParser
    from .estimators import MaxentClassifier as MaxentClassifier
    from .estimators import RegularizationPathCV as RegularizationPathCV
    from .estimators import SequenceTagger as SequenceTagger
    from .features import Attributes as Attributes
    from .features import FeatureMap as FeatureMap
    from .features import LinearMap as LinearMap
    from .features import MaxentMap as MaxentMap
    from .features import RowLayout as RowLayout
    from .features import Template as Template
    from .features import attribute_map as attribute_map
    from .features import chain_map as chain_map
    from .features import logistic_map as logistic_map
    from .features import maxent_map as maxent_map
    from .features import maxent_matrix_map as maxent_matrix_map
    from .features import merge_contexts as merge_contexts
    from .features import multiclass_map as multiclass_map
    from .losses import Loss as Loss
    from .losses import get_loss as get_loss
    from .model_files import ModelFormatError as ModelFormatError
    from .model_files import load as load
    from .penalties import L2 as L2
    from .penalties import ElasticNet as ElasticNet
    from .problem import Problem as Problem
    from .reference import ExplicitDual as ExplicitDual
    from .reference import QPResult as QPResult
    from .reference import eg_qp as eg_qp
    from .reference import explicit_dual as explicit_dual
    from .result import Certificate as Certificate
    from .result import CertificateError as CertificateError
    from .result import ConvergenceWarning as ConvergenceWarning
    from .result import DivergenceError as DivergenceError
    from .result import FeatureWarning as FeatureWarning
    from .result import Result as Result
    from .solvers import BCFW as BCFW
    from .solvers import CD as CD
    from .solvers import CDL1 as CDL1
    from .solvers import CPD as CPD
    from .solvers import DCD as DCD
    from .solvers import EG as EG
    from .solvers import GIS as GIS
    from .solvers import IIS as IIS
    from .solvers import LBFGS as LBFGS
    from .solvers import SCGIS as SCGIS
    from .solvers import SDCA as SDCA
    from .solvers import CDExact as CDExact
    from .solvers import Checkpoint as Checkpoint
    from .solvers import CheckpointError as CheckpointError
    from .solvers import DCDLight as DCDLight
    from .solvers import EGBatch as EGBatch
    from .solvers import EGPrimal as EGPrimal
    from .solvers import ExcessiveGap as ExcessiveGap
    from .solvers import ISBound as ISBound
    from .solvers import Newton as Newton
    from .solvers import Progress as Progress
    from .solvers import Solver as Solver
    from .solvers import available_solvers as available_solvers
    from .solvers import compatibility_table as compatibility_table
    from .solvers import get_solver as get_solver
    from .solvers import regularization_path as regularization_path
    from .solvers import solve as solve
    from .solvers import solve_path as solve_path
    from .solvers import suitable_solvers as suitable_solvers
    from .structures import Chain as Chain
    from .structures import Multiclass as Multiclass
    from .structures import ProjectiveTree as ProjectiveTree
    from .structures import SpanningTree as SpanningTree
    from .structures import Structure as Structure

    __version__: str

_MODULES = {
    "dual": ("ActiveSet", "DualPoint"),
    "estimators": ("DependencyParser", "MaxentClassifier", "RegularizationPathCV", "SequenceTagger"),
    "features": (
        "Attributes",
        "FeatureMap",
        "LinearMap",
        "MaxentMap",
        "RowLayout",
        "Template",
        "attribute_map",
        "chain_map",
        "logistic_map",
        "maxent_map",
        "maxent_matrix_map",
        "merge_contexts",
        "multiclass_map",
    ),
    "losses": ("Loss", "get_loss"),
    "model_files": ("ModelFormatError", "load"),
    "penalties": ("ElasticNet", "L2"),
    "problem": ("Problem",),
    "reference": ("ExplicitDual", "QPResult", "eg_qp", "explicit_dual"),
    "result": ("Certificate", "CertificateError", "ConvergenceWarning", "DivergenceError", "FeatureWarning", "Result"),
    "solvers": (
        "BCFW",
        "CD",
        "CDExact",
        "CDL1",
        "CPD",
        "Checkpoint",
        "CheckpointError",
        "DCD",
        "DCDLight",
        "EG",
        "EGBatch",
        "EGPrimal",
        "ExcessiveGap",
        "GIS",
        "IIS",
        "ISBound",
        "LBFGS",
        "Newton",
        "Progress",
        "SCGIS",
        "SDCA",
        "Solver",
        "available_solvers",
        "compatibility_table",
        "get_solver",
        "regularization_path",
        "solve",
        "solve_path",
        "suitable_solvers",
    ),
    "structures": ("Chain", "Multiclass", "ProjectiveTree", "SpanningTree", "Structure"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

#: Packages that `import partwise` makes reachable, imported when they are first used.
_PACKAGES = (
    "callbacks",
    "datasets",
    "features",
    "io",
    "kernels",
    "metrics",
    "model_files",
    "models",
    "reference",
    "report",
    "solvers",
    "structures",
)

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            value: Any = version("partwise")
        except PackageNotFoundError:  # imported from a source tree that is not installed
            value = "0+unknown"
    elif name in _PACKAGES:
        value = importlib.import_module(f".{name}", __name__)
    elif name in _HOME:
        value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES, "__version__"})
