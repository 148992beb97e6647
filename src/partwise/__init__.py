"""Linear structured prediction: any solver, any structure, any loss, each run with a certificate.

    from partwise import SequenceTagger
    tagger = SequenceTagger(loss="log", C=0.5).fit(sequences, labels)
    tagger.result_  # weights, primal, dual, gap

What most programs need is here; solvers are in `partwise.solvers`, feature maps in `partwise.features`, structures in
`partwise.structures`, models in `partwise.models`. Names are imported when they are first used, so that
`import partwise` is quick and needs no scikit-learn.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._native import check_processor

check_processor()

if TYPE_CHECKING:
    from . import callbacks as callbacks
    from . import conllu as conllu
    from . import datasets as datasets
    from . import distributed as distributed
    from . import dual as dual
    from . import features as features
    from . import io as io
    from . import kernels as kernels
    from . import losses as losses
    from . import methods as methods
    from . import metrics as metrics
    from . import model_files as model_files
    from . import models as models
    from . import partitions as partitions
    from . import penalties as penalties
    from . import problem as problem
    from . import report as report
    from . import result as result
    from . import solvers as solvers
    from . import structures as structures
    from . import testing as testing
    from .comparison import compare as compare
    from .estimators import ConstituencyParser as ConstituencyParser
    from .estimators import DependencyParser as DependencyParser
    from .estimators import GraphLabeler as GraphLabeler
    from .estimators import MaxentClassifier as MaxentClassifier
    from .estimators import RegularizationPathCV as RegularizationPathCV
    from .estimators import SegmentTagger as SegmentTagger
    from .estimators import SequenceTagger as SequenceTagger
    from .estimators import StructuredEstimator as StructuredEstimator
    from .losses import register_loss as register_loss
    from .model_files import ModelFormatError as ModelFormatError
    from .model_files import load as load
    from .models import ConstraintError as ConstraintError
    from .models import Model as Model
    from .partitions import PartitionError as PartitionError
    from .problem import Problem as Problem
    from .result import CertificateError as CertificateError
    from .result import ConvergenceWarning as ConvergenceWarning
    from .result import DivergenceError as DivergenceError
    from .result import FeatureWarning as FeatureWarning
    from .result import Result as Result
    from .solvers import CheckpointError as CheckpointError
    from .solvers import Solver as Solver
    from .solvers import available_solvers as available_solvers
    from .solvers import get_solver as get_solver
    from .solvers import register_solver as register_solver
    from .solvers import solve as solve
    from .structures import Structure as Structure

    __version__: str

_MODULES = {
    "comparison": ("compare",),
    "estimators": (
        "ConstituencyParser",
        "DependencyParser",
        "GraphLabeler",
        "MaxentClassifier",
        "RegularizationPathCV",
        "SegmentTagger",
        "SequenceTagger",
        "StructuredEstimator",
    ),
    "losses": ("register_loss",),
    "model_files": ("ModelFormatError", "load"),
    "models": ("ConstraintError", "Model"),
    "partitions": ("PartitionError",),
    "problem": ("Problem",),
    "result": ("CertificateError", "ConvergenceWarning", "DivergenceError", "FeatureWarning", "Result"),
    "solvers": ("CheckpointError", "Solver", "available_solvers", "get_solver", "register_solver", "solve"),
    "structures": ("Structure",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

#: Modules that `import partwise` makes reachable, imported when they are first used.
_PACKAGES = (
    "callbacks",
    "conllu",
    "datasets",
    "distributed",
    "dual",
    "estimators",
    "features",
    "io",
    "kernels",
    "losses",
    "methods",
    "metrics",
    "model_files",
    "models",
    "partitions",
    "penalties",
    "problem",
    "report",
    "result",
    "solvers",
    "structures",
    "testing",
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
