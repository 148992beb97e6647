"""How fast does each solver converge, and how fast should it? Writes docs/rates.md and docs/rates.png.

Data: the built-in treebank, so that nothing must be downloaded: tags of whole sentences (chains) and of single words
(maximum entropy). Each solver runs on every loss it takes, from its own start. An accuracy eps is a distance over the
optimum, of what the theorem is about: the certified gap, the dual value or the primal value. If passes grow like
(1/eps)^q, a proof of O(1/eps) says q <= 1, one of O(1/sqrt(eps)) q <= 1/2, and a linear rate has a q that goes to 0. q
is fitted to the last decades that a run reached. Runs with the steps of the theorems are compared with their bounds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.chains import Chains, Task, of_strings

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: The accuracies to which passes are measured, four per decade.
LEVELS = 10.0 ** (-np.arange(-20, 41) / 4.0)
#: The q in (1/eps)^q that each stated rate allows for the passes to an accuracy eps.
STATED = {"linear": 0.0, "accelerated": 0.5, "sublinear": 1.0}
#: q of the solvers with a sublinear rate whose proof has another order than O(1/eps).
ORDERS = {"sgd": 4 / 3, "dcd": 2.0, "dcd-light": 2.0, "cpd": 2.0, "cutting-plane": 2.0}
#: How far a fitted q may exceed the stated one; a linear rate has q > 0 as long as passes count from the start.
MARGIN = {"linear": 0.3, "accelerated": 0.1, "sublinear": 0.1}
#: Solvers whose single steps take many passes.
LONG_STEPS = ("cd-l1",)
#: The quantity that a solver's proof bounds, if it is not the gap.
MEASURED = {
    "dual": ("eg", "eg-batch", "eg-primal", "smo", "smo-eg", "dcd", "dcd-light", "cpd", "bcfw", "sdca"),
    "primal": ("sgd", "lbfgs", "newton", "owlqn", "cd-l1", "cd", "cd-exact", "is-bound", "scgis", "gis", "iis"),
}


@dataclass
class Curve:
    """A run's certificates. problem: its heading; about: what the proof bounds, "gap", "dual" or "primal"."""

    problem: str
    name: str
    rate: str
    proof: str
    about: str
    passes: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    errors: np.ndarray = field(default_factory=lambda: np.empty(0))
    floor: float = 0.0

    def measure(self, best: float, resolution: float) -> None:
        """Compute errors relative to the optimum `best`, which is known to within `resolution`."""
        gap, scale = self.primal - self.dual, abs(best)
        above, below = self.primal - best, best - self.dual
        errors = {"gap": gap, "dual": below, "primal": above}[self.about] / scale
        self.errors = np.minimum.accumulate(np.maximum(errors, 0.0))
        self.floor = max(3.0 * resolution / scale if self.about != "gap" else 0.0, 1e-10)

    def passes_to(self, accuracy: float) -> float | None:
        """Return the passes until the error is at most `accuracy`; None if not reached, or below the resolution."""
        if accuracy < self.floor or not (self.errors <= accuracy).any():
            return None
        return float(self.passes[np.argmax(self.errors <= accuracy)])

    def exponent(self) -> tuple[float, float] | None:
        """Return (q, best accuracy reached), with q fitted to the last half of the decades, at least one."""
        points = [(-np.log10(e), p) for e in LEVELS if (p := self.passes_to(e)) is not None and e < self.errors[0]]
        if len(points) < 5:
            return None
        levels, passes = map(np.array, zip(*points, strict=True))
        tail = levels >= min(levels[-1] - 1.0, 0.5 * (levels[0] + levels[-1]))
        return float(np.polyfit(levels[tail], np.log10(passes[tail]), 1)[0]), float(10.0 ** -levels[-1])

    def verdict(self) -> str:
        """Compare the measured order with the stated one."""
        found = self.exponent()
        if found is None:
            return "too slow to tell"
        stated = STATED[self.rate]
        if self.rate == "sublinear":
            stated = ORDERS.get(self.name, stated)
        if found[0] > stated + MARGIN[self.rate]:
            return "slower, as far as it went"
        return "faster" if found[0] < stated - 0.3 else "as stated"


@dataclass(frozen=True)
class Bound:
    """The passes that a run took to an accuracy (over the optimum), and the theorem's bound on them."""

    theorem: str
    run: str
    accuracy: float
    passes: float | None
    bound: float


@click.command("rates", help=__doc__)
@click.option("--page", type=click.Path(dir_okay=False, path_type=Path), default=DOCS / "rates.md", show_default=True)
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Figure, PNG [beside the page].")
@click.option("--sentences", default=40, show_default=True, type=click.IntRange(min=2), help="Of the treebank.")
@click.option("--cap", default=2000, show_default=True, type=click.IntRange(min=1), help="Passes of a run, at most.")
@click.option("--seconds", default=300.0, show_default=True, help="Seconds of a run, at most.")
def command(page: Path, plot: Path | None, sentences: int, cap: int, seconds: float) -> None:
    from benchmarks.rates_page import draw, write

    curves: list[Curve] = []
    chains = tagged(sentences)
    for heading, problem in problems(chains).items():
        found = list(run_all(heading, problem, cap, seconds))
        best = 0.5 * (min(c.primal.min() for c in found) + max(c.dual.max() for c in found))
        resolution = min(c.primal.min() for c in found) - max(c.dual.max() for c in found)
        for curve in found:
            curve.measure(best, max(resolution, 0.0))
            q = curve.exponent()
            told = "-" if q is None else f"{q[0]:.2f} down to {q[1]:.0e}"
            click.echo(f"{heading}: {curve.name}: {curve.rate}, q = {told}: {curve.verdict()}")
        curves += found
    size = f"{len(chains.lengths)} sentences, {len(chains.gold)} words, {chains.n_labels} tags"
    said = f"python -m benchmarks rates --sentences {sentences} --cap {cap} --seconds {seconds:g}"
    facts = {"command": said, "size": size, "cap": cap, "seconds": seconds}
    figure = plot or page.with_suffix(".png")
    draw(figure, curves)
    write(page, figure.name, facts, curves, list(bounds(chains, cap)))
    click.echo(f"{page}, {figure}")


def tagged(sentences: int) -> Chains:
    """Return sentences of the built-in treebank as chains."""
    from partwise import datasets
    from partwise.features import Template

    treebank = datasets.make_treebank(sentences, seed=1)
    words = [[[word] for word in sentence] for sentence in treebank.words]
    return of_strings(Template.preset("pos").attributes(words), treebank.tags)


def problems(chains: Chains) -> dict[str, Any]:
    """Return the problems by their headings."""
    from partwise import Problem
    from partwise.features import Attributes, RowLayout, maxent_map
    from partwise.problem.penalties import ElasticNet
    from partwise.structures import Multiclass

    rows = Attributes(
        chains.design.indptr.astype(np.int64), chains.design.indices.astype(np.int64), int(chains.design.shape[1])
    )
    structure = Multiclass(len(chains.gold), chains.n_labels)
    layout = RowLayout.observed(
        rows.num_attributes, chains.n_labels, structure.width, rows.row_ptr, rows.attributes, chains.gold
    )
    features, gold = maxent_map(structure, rows, layout=layout), structure.encode(chains.gold)
    return {
        "log loss, chains": Task(chains, "log", 1.0, 1).problem,
        "hinge, chains": Task(chains, "hinge", 1.0, 1).problem,
        "squared hinge, chains": Task(chains, "squared-hinge", 1.0, 1).problem,
        "maximum entropy": Problem(features, structure, gold, "log", 1.0),
        "maximum entropy, l1": Problem(features, structure, gold, "log", ElasticNet(0.5, 0.5)),
    }


def run_all(heading: str, problem: Any, cap: int, seconds: float) -> Iterator[Curve]:
    """Run every suitable solver with certificates; on maximum entropy those with column access, lbfgs and newton."""
    from partwise.solvers import suitable_solvers
    from partwise.solvers.engine.registry import SOLVERS, get_solver

    shown = [name for name in suitable_solvers(problem) if SOLVERS[name].certified]
    if heading == "maximum entropy":
        shown = [name for name in shown if "column access" in SOLVERS[name].requires or name in ("lbfgs", "newton")]
    for name in shown:
        solver = get_solver(name)
        yield run(heading, problem, solver, solver.rate_for(problem.loss), cap, seconds)


def run(heading: str, problem: Any, solver: Any, rate: str, cap: int, seconds: float) -> Curve:
    """Run one solver with certificates after every step, and later after every 2 % more passes."""
    from partwise import FeatureWarning

    rows: list[tuple[float, float, float]] = []
    most, looked = cap if solver.name not in LONG_STEPS else 50 * cap, 0.0
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FeatureWarning)
        state = solver.init_state(problem, np.random.default_rng(0), None)
        while True:
            solver.step(problem, state)
            passes = state.visits / len(problem.active)
            over = passes >= most or time.perf_counter() - clock >= seconds
            if over or passes >= 1.02 * looked:
                found, looked = solver.certificate(problem, state).certificate, passes
                rows.append((passes, found.primal, found.dual))
                if over or found.raw_gap <= 1e-11 * abs(found.primal) or solver.finished(problem, state, found, 1e-11):
                    break
    about = next((about for about, names in MEASURED.items() if solver.name in names), "gap")
    return Curve(heading, solver.name, rate, solver.proof, about, *np.array(rows).T)


def bounds(chains: Chains, cap: int) -> Iterator[Bound]:
    """Run the theorems' step sizes from uniform distributions, under a penalty strong enough for the theorems."""
    from partwise.methods import constants, dcd_additions, eg_passes, excessive_gap_steps
    from partwise.solvers import DCD, EG, EGBatch, EGPrimal, ExcessiveGap

    strong = float(constants(Task(chains, "hinge", 1.0, 1).problem).psi2.max())  # with this l2, the theorems' |A| is 1
    for loss in ("log", "hinge"):
        problem = Task(chains, loss, strong, 1).problem
        forms: dict[str, tuple[Any, str]] = {
            "Collins et al. 2008, Theorem 1": (EGBatch(step_size="theorem", start="uniform"), "batch"),
            "the same in primal form": (EGPrimal(step_size="theorem", start="uniform"), "batch"),
            "Collins et al. 2008, Theorem 2": (EG(step_size="theorem", start="uniform", order="random"), "random"),
        }
        if loss == "hinge":
            form = ExcessiveGap(smoothing="theorem")
            forms["Zhang et al. 2011, Theorem 4 and (28)"] = form, "gap"
        found = {name: run(loss, problem, form, "linear", cap, 30.0) for name, (form, _) in forms.items()}
        best = max(float(curve.dual.max()) for curve in found.values())
        for name, curve in found.items():
            form, order = forms[name]
            curve.about = "gap" if order == "gap" else "dual"
            curve.measure(best, 0.0)
            for accuracy in (1e-2, 1e-4, 1e-6) if loss == "log" else (1e-1, 1e-2, 1e-3):
                needed = (
                    excessive_gap_steps(problem, accuracy * best)
                    if order == "gap"
                    else eg_passes(problem, accuracy * best, order=order)
                )
                yield Bound(name, f"`{form.name}`, {loss}", accuracy, curve.passes_to(accuracy), needed)
    problem = Task(chains, "squared-hinge", strong, 1).problem
    for delta in (1.0, 0.1):
        added = additions(problem, DCD(delta=delta))
        yield Bound(
            "Chang and Yih 2013, Theorem 1: labellings added", "`dcd`", delta, added, dcd_additions(problem, delta)
        )


def additions(problem: Any, solver: Any) -> float:
    """Return a lower bound of the number of labellings that joined working sets in 100 passes (new after a pass)."""
    state = solver.init_state(problem, np.random.default_rng(0), None)
    added, before = 0.0, np.zeros(problem.n_examples, dtype=np.int64)
    for _ in range(100):
        solver.step(problem, state)
        sizes = np.diff(state.sets.to_arrays()["example_ptr"])
        added += float(np.maximum(sizes - before, 0).sum())
        before = sizes
    return added
