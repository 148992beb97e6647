"""Solvers by name, and which of them fit which problem: those whose `requires` the problem's capabilities include.

The kinds of problems are listed in `KINDS`; a test compares the list with a small problem of each kind.
"""

import difflib
import re
from collections import UserDict
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any, TypeVar

from partwise.problem import L2, LOSSES, ElasticNet, Loss, Problem
from partwise.problem.capabilities import Capability, listed
from partwise.problem.penalties import Penalty, offered
from partwise.solvers.engine.base import RATES, Solver

S = TypeVar("S", bound=type[Solver[Any]])

#: The solvers of this package in the order of lists: the class of each and where it is, below `partwise`.
BUILT_IN = {
    "lbfgs": "solvers.primal.lbfgs.LBFGS",
    "eg": "solvers.dual.eg.EG",
    "bcfw": "solvers.working_sets.bcfw.BCFW",
    "eg-prox": "solvers.dual.eg_prox.EGProx",
    "newton": "solvers.primal.newton.Newton",
    "sdca": "solvers.dual.sdca.SDCA",
    "eg-batch": "solvers.dual.eg_batch.EGBatch",
    "eg-primal": "solvers.dual.eg_batch.EGPrimal",
    "excessive-gap": "solvers.dual.excessive_gap.ExcessiveGap",
    "annealed": "solvers.dual.annealed.Annealed",
    "smo": "solvers.dual.smo.SMO",
    "smo-eg": "solvers.dual.smo.SMOEG",
    "owlqn": "solvers.primal.owlqn.OWLQN",
    "cd-l1": "solvers.columns.cd_l1.CDL1",
    "cd": "solvers.columns.cd.CD",
    "cd-exact": "solvers.columns.cd.CDExact",
    "scgis": "solvers.columns.iterative_scaling.SCGIS",
    "is-bound": "solvers.columns.iterative_scaling.ISBound",
    "gis": "solvers.columns.iterative_scaling.GIS",
    "iis": "solvers.columns.iterative_scaling.IIS",
    "dcd": "solvers.working_sets.dcd.DCD",
    "dcd-light": "solvers.working_sets.dcd.DCDLight",
    "cpd": "solvers.working_sets.dcd.CPD",
    "cutting-plane": "solvers.working_sets.cutting_plane.CuttingPlane",
    "one-slack": "solvers.planes.bundle_methods.OneSlack",
    "bmrm": "solvers.planes.bundle_methods.BMRM",
    "extragradient": "solvers.dual.extragradient.Extragradient",
    "sgd": "solvers.online.sgd.SGD",
    "perceptron": "solvers.online.perceptron.Perceptron",
    "mira": "solvers.online.perceptron.MIRA",
    "block-dual": "out_of_core.block_dual.BlockDual",
}


class SolverTable(UserDict[str, type[Solver[Any]]]):
    """Solvers by name: those of this package, imported when they are first asked for, then registered ones (`data`)."""

    def __getitem__(self, name: str) -> type[Solver[Any]]:
        if name in self.data or name not in BUILT_IN:
            return self.data[name]
        module, _, solver = BUILT_IN[name].rpartition(".")
        found: type[Solver[Any]] = getattr(import_module(f"partwise.{module}"), solver)
        return found

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN or name in self.data

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from sorted(self.data.keys() - BUILT_IN.keys())

    def __len__(self) -> int:
        return len(BUILT_IN.keys() | self.data.keys())


SOLVERS = SolverTable()
#: Capabilities that losses have, except with slack rescaling.
OF_MARGINS = frozenset({Capability.SMOOTH, Capability.SMOOTH_TERM, Capability.TEMPERATURE_0}).union(
    {Capability.IDENTITY_LINK, Capability.SQUARED_LINK, Capability.EXAMPLE_BLOCKS}
)


def register_solver(cls: S) -> S:
    """Make a solver of your own known by its name to `solve`, estimators and the command line (`--plugin FILE`).

    ::

        @register_solver
        @dataclass(frozen=True)
        class GradientDescent(Solver[DescentState]):
            name: ClassVar[str] = "descent"
            ...

    "auto" does not choose it where another solver fits. A class that is defined again, as in a notebook's cell,
    replaces the earlier one. ValueError if there is another solver of this name; TypeError for an invalid attribute.
    """
    check_solver(cls)
    if cls.name not in BUILT_IN:
        SOLVERS[cls.name] = cls
    return cls


def check_solver(cls: Any) -> None:
    """Raise TypeError or ValueError unless the class can be used by its name."""
    if not (isinstance(cls, type) and issubclass(cls, Solver)):
        raise TypeError(f"only subclasses of partwise.Solver can be registered, got {cls!r}")
    missing = [word for word in ("name", "requires", "rate", "advice", "default_max_passes") if not hasattr(cls, word)]
    missing += sorted(cls.__abstractmethods__)
    if missing:
        raise TypeError(f"solver {cls.__name__} has no {', '.join(missing)}")
    name = cls.name
    other = SOLVERS.get(name)
    if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"solver {name!r} is registered already: {other.__module__}.{other.__qualname__}")
    if not (isinstance(name, str) and re.fullmatch(r"[a-zA-Z][\w-]*", name)):
        raise TypeError(f"solver {cls.__name__}: its name must be letters, digits and hyphens, got {name!r}")
    if name == "auto":
        raise ValueError("solver 'auto': this name is that of the choice among all solvers")
    decorated = vars(cls).get("__dataclass_params__")
    if decorated is None or not decorated.frozen:
        raise TypeError(f"solver {name!r}: @dataclass(frozen=True) is missing, between the decorator and the class")
    if not isinstance(cls.requires, frozenset) or not all(isinstance(need, Capability) for need in cls.requires):
        raise TypeError(f"solver {name!r}: requires must be a frozenset of members of Capability, got {cls.requires!r}")
    for rate in (cls.rate, cls.rate_at_zero):
        if rate not in RATES:
            raise TypeError(f"solver {name!r}: a rate must be one of {', '.join(RATES)}, got {rate!r}")
    if not isinstance(cls.advice, str):
        raise TypeError(f"solver {name!r}: advice must be a text, got {cls.advice!r}")
    if not isinstance(cls.default_max_passes, (int, float)) or not cls.default_max_passes > 0:
        raise TypeError(f"solver {name!r}: default_max_passes must be a number above 0, got {cls.default_max_passes!r}")
    for item in fields(cls):
        if item.default is MISSING or not item.metadata.get("help"):
            raise TypeError(f"solver {name!r}: write its option {item.name} as `option(default, help)`")


def available_solvers() -> list[str]:
    """Names of all solvers."""
    return list(SOLVERS)


def has_certificates(name: str) -> bool:
    """Return whether runs of this solver end with a dual value; an unknown name is taken to have one."""
    return name not in SOLVERS or SOLVERS[name].certified


#: The largest whole number that an option may be.
MOST = 1 << 40


def get_solver(name: str, **options: Any) -> Solver[Any]:
    """Return the solver of this name with these hyper-parameters.

    ValueError if there is no such solver, or a whole number is above 2**40; TypeError for an unknown option.
    """
    if name not in SOLVERS:
        close = difflib.get_close_matches(str(name), SOLVERS, 1)
        hint = f"did you mean {close[0]!r}? There" if close else "there"
        raise ValueError(f"unknown solver {name!r}; {hint} are {', '.join(SOLVERS)} (and 'auto')")
    known = [item.name for item in fields(SOLVERS[name])]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(f"solver {name!r} has no option {', '.join(unknown)}; it has {', '.join(known)}")
    _check_sizes(name, options)
    return SOLVERS[name](**options)


def _check_sizes(name: str, options: Mapping[str, Any]) -> None:
    """Raise ValueError for whole numbers that the core, which counts in 64 bits, might not hold."""
    for option, value in options.items():
        if isinstance(value, int) and abs(value) > MOST:
            raise ValueError(f"solver {name!r}: {option} must be between -2**40 and 2**40")


def suitable_solvers(problem: Problem) -> list[str]:
    """Return the names of the solvers whose needs the problem meets."""
    have = problem.capabilities()
    return [name for name, cls in SOLVERS.items() if cls.requires <= have]


def check_fits(solver: Solver[Any], problem: Problem) -> None:
    """Raise ValueError if the problem lacks what the solver needs; the message says which solvers fit."""
    _check_sizes(solver.name, solver.options())
    if problem.shift is not None and solver.in_blocks() is None:
        raise ValueError(f"solver {solver.name!r} does not take problems with a shift")
    missing = solver.missing(problem)
    if not missing:
        return
    reasons = [reason for name in sorted(missing) if (reason := problem.sums.lacks(name))]
    details = "; ".join([describe(problem), *reasons])
    needs = f"needs {listed(missing)}, which this problem does not have"
    if Capability.SLACK_RESCALING in problem.capabilities() and missing & OF_MARGINS:
        needs = "does not do slack rescaling"
    fitting = ", ".join(suitable_solvers(problem))
    others = f"solvers that fit: {fitting}" if fitting else no_solver(problem)
    raise ValueError(f"solver {solver.name!r} {needs} ({details}); {others}")


def no_solver(problem: Problem) -> str:
    """Return why no solver fits."""
    have = problem.capabilities()
    lacks = "; ".join(f"{name} lacks {listed(cls.requires - have)}" for name, cls in SOLVERS.items())
    return f"no solver fits this problem yet ({lacks})"


def describe(problem: Problem) -> str:
    """Return a problem in a few words."""
    l1 = f"l1 = {problem.l1:g}, " if problem.l1 else ""
    return f"loss {problem.loss.name!r}, {l1}l2 = {problem.l2:g}, {problem.sums.facts.structure}"


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
