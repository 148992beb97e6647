"""Small problems of every kind, with enumerated counterparts."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from oracles.listed import Listed
from oracles.objective import LOSSES, DenseProblem
from oracles.problems import Case, make_case
from partwise import Problem, Solver, get_solver
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers.engine.registry import SOLVERS

#: Ignores the warning about all-zero columns, which the generators always make.
BARE_COLUMNS = pytest.mark.filterwarnings("ignore:feature .* is 0 in every example:partwise.FeatureWarning")
KINDS = (
    "multiclass",
    "chain-tied",
    "chain-untied",
    "python",
    "maxent",
    "projective",
    "spanning",
    "segments",
    "second-order",
    "graph",
    "grammar",
)
#: Relative gap to which small problems are solved, by the solver's convergence rate.
TOLERANCE = {"linear": 1e-6, "accelerated": 1e-2, "sublinear": 1e-2, "none": 1e-2}


def loss_for(solver: str) -> str:
    """Return a loss that the solver supports: the log loss if possible."""
    rest = {"max oracle", "expectation oracle", "covariance", "cliques", "k_best", "sample", "explicit weights"}
    rest |= {"one part", "diagonal blocks", "l1 > 0", "column access", "non-negative features"}
    rest |= {"batches in memory", "one batch", "oracle of the loss", "clique support", "files for blocks"}
    for name, parameters in LOSSES.items():
        if SOLVERS[solver].requires <= rest | Loss(name, *parameters).capabilities() | L2(1.0).capabilities():
            return name
    raise ValueError(f"no loss fits {solver}")


def kind_for(solver: str) -> str:
    """Return a kind of problem that the solver supports: chains, or single labels where it needs those."""
    if "column access" in SOLVERS[solver].requires:
        return "maxent"
    return "multiclass" if "one part" in SOLVERS[solver].requires else "chain-tied"


def penalty_for(solver: str, l2: float) -> L2 | ElasticNet:
    """Return an L2 penalty, with an l1 term where the solver needs one."""
    return ElasticNet(0.02, l2) if "l1 > 0" in SOLVERS[solver].requires else L2(l2)


def certified(solver: str) -> bool:
    """Return whether the solver's runs end with a dual value."""
    return SOLVERS[solver].certified


def checked_often(solver: str) -> Solver[Any]:
    """Return the solver with a certificate after each pass."""
    return get_solver(solver, **({"check_every": 1} if has_option(solver, "check_every") else {}))


def has_option(solver: str, name: str) -> bool:
    return any(item.name == name for item in fields(SOLVERS[solver]))


def with_another_option(solver: str) -> Solver[Any]:
    """Return the solver with a small change of one option."""
    if has_option(solver, "check_every"):
        return get_solver(solver, check_every=7)
    number = next(item for item in fields(SOLVERS[solver]) if type(item.default) is int)
    return get_solver(solver, **{number.name: number.default + 1})


class Small:
    """A problem of the library, and the same problem with all labellings enumerated."""

    def __init__(
        self,
        kind: str,
        loss: str,
        l2: float = 0.7,
        seed: int = 5,
        weighted: bool = True,
        n_jobs: int = 1,
        n: int = 5,
        ties: bool = True,
        scale: float = 1.0,
        sample_weight: np.ndarray | None = None,
        plain: bool = False,
    ) -> None:
        base = "chain-tied-ends" if kind == "python" else kind
        case: Case = make_case(base, seed=seed, n=n, scale=scale, plain=plain)
        if not weighted:
            case = Case(**{**vars(case), "sample_weight": np.ones(case.n)})
        if sample_weight is not None:
            case = Case(**{**vars(case), "sample_weight": sample_weight})
        self.case = case
        self.structure = Listed(case.structure) if kind == "python" else case.structure
        self.loss = Loss(loss, *LOSSES[loss])
        self.dense: DenseProblem = case.dense(loss, l2)
        if not ties:  # Hamming costs make ties between labellings, which two programs may break differently
            rng = np.random.default_rng(seed)
            self.dense = replace(self.dense, cost=[c * rng.uniform(0.5, 1.5, len(c)) for c in self.dense.cost])
        self.problem = Problem(
            case.features,
            self.structure,
            case.gold,
            self.loss,
            L2(l2),
            sample_weight=case.sample_weight,
            cost=None if ties else np.concatenate(self.dense.cost),
            n_jobs=n_jobs,
        )

    def distributions(self, scores: np.ndarray) -> list[np.ndarray]:
        """Return the distributions over labellings for these slot scores of all examples."""
        parts = self.case.split(scores)
        return [e.probabilities(s) for e, s in zip(self.dense.examples, parts, strict=True)]
