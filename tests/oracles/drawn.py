"""Random small problems with every structure, loss and penalty, each in two forms: the library's and enumerated.

Sample weights range from 1e-6 to 1e4, costs up to 100, temperatures from 1e-3, penalties over 13 orders of magnitude.
Features have one scale or several, or few different values, so that labellings have equal scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partwise import Problem
from partwise.features import slot_map
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, ElasticNet, Free, Penalty

from .listed import Listed
from .optimum import Enumerated
from .problems import Case, make_case, maxent_case

#: Kinds with one label per example, and kinds with several parts.
SINGLE = ("multiclass", "maxent")
SEVERAL = ("chain-tied", "chain-tied-ends", "chain-untied", "chain-masked", "second-order", "segments", "projective")
SEVERAL += ("spanning", "grammar", "graph", "python")
KINDS = SINGLE + SEVERAL
#: Loss -> (whether it has a temperature, whether it has costs, its link, what costs rescale).
LOSSES = {
    "log": (True, False, "identity", "margin"),
    "softmax-margin": (True, True, "identity", "margin"),
    "smoothed-hinge": (True, True, "identity", "margin"),
    "smooth-squared": (True, True, "squared", "margin"),
    "hinge": (False, True, "identity", "margin"),
    "squared-hinge": (False, True, "squared", "margin"),
    "slack-hinge": (False, True, "identity", "slack"),
}
MOST_COST = 100.0


@dataclass(frozen=True)
class Drawn:
    """A problem of the library and the same enumerated. case: structure and features. cost: per example and slot."""

    text: str
    problem: Problem
    enumerated: Enumerated
    case: Case
    cost: list[np.ndarray]


def drawn(rng: np.random.Generator, kind: str) -> Drawn:
    """Draw a random problem of this kind."""
    loss, scale = _loss(rng), float(10.0 ** rng.uniform(-3, 3) if rng.random() < 0.5 else 1.0)
    wanted = str(rng.choice(["l2", "elastic", "l1", "free", "none"], p=[0.65, 0.1, 0.08, 0.15, 0.02]))
    case = _case(rng, kind, scale)
    if kind != "maxent" and (wanted == "free" or rng.random() < 0.5):
        case = _with_rows(rng, case, scale, intercepts=kind == "multiclass" and wanted == "free")
    omega = _weights(rng, case.n)
    cost = _cost(rng, case, loss)
    dense = replace(case, sample_weight=omega).dense("hinge", 1.0)
    enumerated = Enumerated.of(
        replace(dense, cost=cost, temperature=loss.temperature, cost_scale=loss.cost_scale, link=loss.link),
        slack=loss.rescaling == "slack",
    )
    penalty = _penalty(rng, wanted, loss)
    if wanted == "free" and kind == "multiclass" and loss.smooth:
        penalty = _with_free(penalty, loss, case, enumerated)
    problem = Problem(
        case.features,
        Listed(case.structure) if kind == "python" else case.structure,
        case.gold,
        loss,
        penalty,
        sample_weight=omega,
        cost=np.concatenate(cost),
    )
    text = f"{kind}, {loss.name} tau {loss.temperature:.3g} kappa {loss.cost_scale:.3g}, l1 {penalty.l1:.3g} l2 "
    text += f"{penalty.strength:.3g}{' free' if penalty.free else ''}, scale {scale:.3g}, "
    text += f"omega {omega.min():.2g} to {omega.max():.2g}"
    return Drawn(text, problem, enumerated.under(penalty), case, cost)


def _loss(rng: np.random.Generator) -> Loss:
    name = str(rng.choice(list(LOSSES)))
    smooth, costs, link, rescaling = LOSSES[name]
    tau = 0.0 if not smooth else float(10.0 ** rng.uniform(-3, 0.5) if rng.random() < 0.7 else 1.0)
    kappa = 0.0 if not costs else float(10.0 ** rng.uniform(-2, 2) if rng.random() < 0.5 else 1.0)
    return Loss(name, tau, kappa, link, rescaling)  # type: ignore[arg-type]


def _case(rng: np.random.Generator, kind: str, scale: float) -> Case:
    n, seed = int(rng.integers(1, 13 if kind in SINGLE else 5)), int(rng.integers(1 << 30))
    labels = int(rng.integers(2, 5)) if kind in SINGLE else 3
    if kind == "maxent":
        form = str(rng.choice(["binary", "real", "negative", "matrix"]))
        return maxent_case(seed, max(n, 4), labels, 3, form, plain=True)
    base = "chain-tied-ends" if kind == "python" else kind
    return make_case(base, seed, n, labels, 3, scale=scale, plain=True)


def _with_rows(rng: np.random.Generator, case: Case, scale: float, intercepts: bool) -> Case:
    """Draw features of slots, either real numbers or a few values. intercepts: append a column per label."""
    shape = int(case.structure.slot_offsets()[-1]), int(rng.integers(1, 6))
    rows = rng.normal(size=shape) if rng.random() < 0.5 else rng.integers(-1, 2, shape).astype(float)
    rows *= scale * (rng.random(shape) < rng.choice([0.3, 1.0]))
    rows *= 10.0 ** (rng.uniform(-2, 2, shape[1]) if rng.random() < 0.3 else np.zeros(shape[1]))
    if intercepts:
        ones = np.eye(case.structure.width)[:, : case.structure.n_labels]
        rows = np.concatenate([rows, np.tile(ones, (case.n, 1))], axis=1)
    rows[~np.concatenate([example.used for example in case.examples])] = 0.0
    parts = int(max(example.counts.sum(axis=1).max() for example in case.examples))
    uses = int(max(example.counts.max() for example in case.examples))
    features = slot_map(case.structure, rows, uses=uses, parts=parts)
    return replace(case, features=features, matrices=case.split(rows))


def _weights(rng: np.random.Generator, n: int) -> np.ndarray:
    form = rng.random()
    if form < 0.3:
        return np.ones(n)
    omega = 10.0 ** rng.uniform(-6, 4, n) if form < 0.8 else np.full(n, 10.0 ** rng.uniform(-6, 4))
    if n > 1 and rng.random() < 0.1:
        omega[rng.integers(n)] = 0.0
    return omega


def _cost(rng: np.random.Generator, case: Case, loss: Loss) -> list[np.ndarray]:
    if rng.random() < 0.5:
        return case.dense("hinge", 1.0).cost
    most, digits = MOST_COST / max(loss.cost_scale, 1.0), int(rng.integers(0, 3))
    return [np.where(g > 0, 0.0, rng.uniform(0, most, len(g)).round(digits)) for g in case.gold_counts]


def _penalty(rng: np.random.Generator, wanted: str, loss: Loss) -> Penalty:
    l2, l1 = float(10.0 ** rng.uniform(-8, 5)), float(10.0 ** rng.uniform(-4, 2))
    if wanted == "none" and loss.smooth:
        return L2(0.0)
    lasso = wanted == "l1" or (wanted == "free" and rng.random() < 0.15)
    if loss.takes_l1 and (lasso or wanted == "elastic"):
        return ElasticNet(l1, 0.0 if lasso else l2)
    return L2(l2)


def _with_free(penalty: Penalty, loss: Loss, case: Case, exact: Enumerated) -> Penalty:
    """Leave the intercepts out of the penalty, if every label is the gold label of an example with positive weight."""
    n_labels, width = case.structure.n_labels, case.structure.width
    gold = np.bincount(case.gold[1] % width, weights=exact.omega.astype(float), minlength=n_labels)
    if not gold.min() > 0:
        return penalty
    rows = np.concatenate(case.matrices)
    others = rows[:, :-n_labels]
    # Rows differ between labels here: the distance of two rows is at most twice the largest norm.
    reach, largest = (2.0 * float(each.max(initial=0.0)) for each in (np.sqrt((others**2).sum(axis=1)), np.abs(others)))
    at_zero = float(exact.losses(np.zeros(rows.shape[1]))) * (1 + 1e-12)
    return replace(
        penalty, free=Free(others.shape[1], rows.shape[1], at_zero, tuple(gold.tolist()), reach, largest, loss.link)
    )
