"""Linear structured prediction: any solver, any structure, any loss, each run with a certificate.

    from partwise import SequenceTagger
    tagger = SequenceTagger(loss="log", C=0.5).fit(sequences, labels)
    tagger.result_  # weights, primal, dual, gap

What most programs need is here; solvers are in `partwise.solvers`, feature maps in `partwise.features`, structures in
`partwise.structures`, models in `partwise.models`. Names are imported when they are first used, so that
`import partwise` is quick and needs no scikit-learn.
"""

from typing import TYPE_CHECKING

from partwise.support.lazy import exports
from partwise.support.native import check_processor

check_processor()

#: Public names, by the package that defines each of them.
_NAMES = {
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
    "model_files": ("ModelFormatError", "load"),
    "models": ("ConstraintError", "Model"),
    "out_of_core": ("PartitionError",),
    "problem": (
        "CertificateError",
        "ConvergenceWarning",
        "DivergenceError",
        "FeatureWarning",
        "Problem",
        "Result",
        "register_loss",
    ),
    "report": ("compare",),
    "solvers": (
        "CheckpointError",
        "Solver",
        "available_solvers",
        "get_solver",
        "register_solver",
        "solve",
    ),
    "structures": ("Structure",),
}

#: Packages that are imported when they are first used as attributes.
_PACKAGES = (
    "bounds",
    "callbacks",
    "datasets",
    "estimators",
    "features",
    "io",
    "methods",
    "metrics",
    "model_files",
    "models",
    "out_of_core",
    "problem",
    "report",
    "solvers",
    "structures",
    "tables",
)

if TYPE_CHECKING:
    from partwise import bounds as bounds
    from partwise import callbacks as callbacks
    from partwise import datasets as datasets
    from partwise import estimators as estimators
    from partwise import features as features
    from partwise import io as io
    from partwise import methods as methods
    from partwise import metrics as metrics
    from partwise import model_files as model_files
    from partwise import models as models
    from partwise import out_of_core as out_of_core
    from partwise import problem as problem
    from partwise import report as report
    from partwise import solvers as solvers
    from partwise import structures as structures
    from partwise import tables as tables
    from partwise.estimators import ConstituencyParser as ConstituencyParser
    from partwise.estimators import DependencyParser as DependencyParser
    from partwise.estimators import GraphLabeler as GraphLabeler
    from partwise.estimators import MaxentClassifier as MaxentClassifier
    from partwise.estimators import RegularizationPathCV as RegularizationPathCV
    from partwise.estimators import SegmentTagger as SegmentTagger
    from partwise.estimators import SequenceTagger as SequenceTagger
    from partwise.estimators import StructuredEstimator as StructuredEstimator
    from partwise.model_files import ModelFormatError as ModelFormatError
    from partwise.model_files import load as load
    from partwise.models import ConstraintError as ConstraintError
    from partwise.models import Model as Model
    from partwise.out_of_core import PartitionError as PartitionError
    from partwise.problem import CertificateError as CertificateError
    from partwise.problem import ConvergenceWarning as ConvergenceWarning
    from partwise.problem import DivergenceError as DivergenceError
    from partwise.problem import FeatureWarning as FeatureWarning
    from partwise.problem import Problem as Problem
    from partwise.problem import Result as Result
    from partwise.problem import register_loss as register_loss
    from partwise.report import compare as compare
    from partwise.solvers import CheckpointError as CheckpointError
    from partwise.solvers import Solver as Solver
    from partwise.solvers import available_solvers as available_solvers
    from partwise.solvers import get_solver as get_solver
    from partwise.solvers import register_solver as register_solver
    from partwise.solvers import solve as solve
    from partwise.structures import Structure as Structure


__version__: str
_get, __dir__, __all__ = exports(__name__, _NAMES, _PACKAGES)


def __getattr__(name: str) -> object:
    if name != "__version__":
        return _get(name)
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("partwise")
    except PackageNotFoundError:  # imported from a source tree that is not installed
        found = "0+unknown"
    globals()["__version__"] = found
    return found
