"""How long does a linear-chain CRF over dense vectors take to train, next to PyTorch's L-BFGS on eager tensors?

The data are synthetic: labels come from a Markov chain, and each position has a float32 vector, similar to those of
text encoders: a mean for each label, 40 strong directions that positions share, noise, and an offset. All systems have
a weight for each (input, label) and (label, next label) pair and minimise l2/2 |w|^2 + sum of log losses. The optimum
is the lowest objective of all systems and of an accurate partwise run, which is made first. PyTorch (not installed with
the extra `bench`: `pip install torch`) works in float32; its sentences are sorted by length, so that no step of the
recursion is spent on padding.
"""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmarks import models
from benchmarks.measure import SystemFailed, clock, peak_mb, run_apart
from benchmarks.questions import choose, common_options
from benchmarks.report import Record, conclude, machine, save

_QUICK = 200  # sentences
_LABELS = 9

# System: (function of this module, its options).
SYSTEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "partwise-auto": ("fit_partwise", {"solver": "auto", "tol": 1e-3}),
    "partwise-lbfgs": ("fit_partwise", {"solver": "lbfgs", "tol": 1e-3}),
    "torch-lbfgs": ("fit_torch", {}),
}


@click.command("dense", help=__doc__)
@common_options(default_l2="1")
@click.option("--sentences", default=5000, show_default=True)
@click.option("--inputs", default=768, show_default=True, help="Numbers per position.")
def command(
    data: str | None,
    json_file: str | None,
    l2: str,
    threads: int,
    repeat: int,
    within: float,
    systems: str,
    quick: bool,
    sentences: int,
    inputs: int,
) -> None:
    records: list[Record] = []
    for strength in map(float, l2.split(",")):
        common = {"l2": strength, "sentences": _QUICK if quick else sentences, "inputs": inputs, "n_jobs": threads}
        runs: list[Record] = []
        reference = run_apart("benchmarks.dense:fit_partwise", threads, solver="auto", tol=1e-5, **common)
        for name in choose(systems, list(SYSTEMS)):
            function, options = SYSTEMS[name]
            head = {"question": "dense", "system": name, "threads": threads, "l2": strength, **machine()}
            if function == "fit_torch" and importlib.util.find_spec("torch") is None:
                runs.append({**head, "skipped": "PyTorch is not installed"})
                continue
            for _ in range(repeat):
                try:
                    record = run_apart(f"benchmarks.dense:{function}", threads, **options, **common)
                except SystemFailed as error:
                    record = {"error": str(error)}
                runs.append({**head, **record})
        title = f"Chain CRF, {common['sentences']} sentences of {inputs} inputs per position, l2 = {strength:g}"
        conclude(title, runs, reference, within, ours="partwise-auto")
        records += runs
    save(json_file, records)


def make(sentences: int, inputs: int) -> tuple[list[NDArray[np.float32]], list[NDArray[np.int64]]]:
    """Make the synthetic data, which are the same for the same sizes."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.poisson(14, sentences), 2, 60)
    chances = np.cumsum(0.6 * rng.dirichlet(np.full(_LABELS, 0.3), _LABELS) + 0.4 * np.eye(_LABELS)[0], axis=1)
    y = []
    for length in lengths.tolist():
        labels = [0]
        for draw in rng.random(length):
            labels.append(min(int(np.searchsorted(chances[labels[-1]], draw)), _LABELS - 1))
        y.append(np.array(labels[1:]))
    gold = np.concatenate(y)
    means, offset = 0.08 * rng.normal(size=(_LABELS, inputs)), 0.3 * rng.normal(size=inputs)
    shared = rng.normal(size=(40, inputs)) / np.sqrt(np.arange(1, 41))[:, None]
    rows = rng.standard_normal((len(gold), inputs), dtype=np.float32)
    rows *= 0.5
    rows += (means + offset).astype(np.float32)[gold]
    rows += 0.4 * rng.standard_normal((len(gold), 40), dtype=np.float32) @ shared.astype(np.float32)
    return np.split(rows, np.cumsum(lengths)[:-1]), y


def fit_partwise(l2: float, sentences: int, inputs: int, n_jobs: int, solver: str, tol: float) -> Record:
    """Train a SequenceTagger."""
    from partwise import SequenceTagger

    X, y = make(sentences, inputs)
    before = peak_mb()
    tagger = SequenceTagger(C=1.0 / l2, transitions="all", solver=solver, tol=tol, n_jobs=n_jobs, random_state=0)
    with clock() as fit, models.watched() as watch:
        tagger.fit(X, y)
    peak = peak_mb()
    states, transitions = np.zeros((inputs, _LABELS)), np.zeros((_LABELS, _LABELS))
    for place, weight in tagger.state_features_.items():
        states[place] = weight
    for place, weight in tagger.transition_features_.items():
        transitions[place] = weight
    return {
        **models.history_of(tagger.result_, watch),
        "fit_seconds": fit.wall,
        "fit_cpu_seconds": fit.cpu,
        "data_mb": before,
        "peak_mb": peak,
        "objective": objective(X, y, states, transitions, l2),
    }


def fit_torch(l2: float, sentences: int, inputs: int, n_jobs: int) -> Record:
    """Train with torch.optim.LBFGS and its strong Wolfe line search, until it stops by itself."""
    import torch

    torch.set_num_threads(n_jobs)
    X, y = make(sentences, inputs)
    before = peak_mb()
    trace: list[tuple[float, float, float]] = []
    with clock() as fit:
        begin = time.perf_counter(), time.process_time()
        lengths, order = torch.sort(torch.tensor([len(each) for each in X]), descending=True)
        rows = torch.from_numpy(np.concatenate([X[i] for i in order.tolist()]))
        gold = torch.from_numpy(np.concatenate([y[i] for i in order.tolist()]))
        starts = torch.cumsum(lengths, 0) - lengths
        inner = torch.ones(len(gold), dtype=torch.bool)
        inner[starts] = False
        before_it, here = gold.roll(1)[inner], gold[inner]
        alive = [int((lengths > t).sum()) for t in range(int(lengths[0]))]
        states = torch.zeros(inputs, _LABELS, requires_grad=True)
        transitions = torch.zeros(_LABELS, _LABELS, requires_grad=True)

        def value() -> Any:
            scores = rows @ states
            total = 0.5 * l2 * (states.square().sum() + transitions.square().sum())
            total = total - scores.gather(1, gold[:, None]).sum() - transitions[before_it, here].sum()
            alpha = scores[starts]
            for t, count in enumerate(alive[1:], start=1):
                total = total + torch.logsumexp(alpha[count:], 1).sum()
                step = torch.logsumexp(alpha[:count, :, None] + transitions, 1)
                alpha = step + scores[starts[:count] + t]
            return total + torch.logsumexp(alpha, 1).sum()

        def closure() -> Any:
            optimizer.zero_grad()
            found = value()
            found.backward()
            wall, cpu = time.perf_counter() - begin[0], time.process_time() - begin[1]
            trace.append((wall, cpu, float(found.detach())))
            return found

        optimizer = torch.optim.LBFGS([states, transitions], max_iter=500, line_search_fn="strong_wolfe")
        optimizer.step(closure)
    wall, cpu, values = zip(*trace, strict=True)
    weights = (part.detach().numpy().astype(np.float64) for part in (states, transitions))
    return {
        "fit_seconds": fit.wall,
        "fit_cpu_seconds": fit.cpu,
        "solver_seconds": wall[-1],
        "solver_cpu_seconds": cpu[-1],
        "passes": float(len(trace)),
        "trace_seconds": list(wall),
        "trace_cpu_seconds": list(cpu),
        "trace_passes": [float(k) for k in range(1, len(trace) + 1)],
        "trace_objective": list(values),
        "gap": None,
        "data_mb": before,
        "peak_mb": peak_mb(),
        "objective": objective(X, y, *weights, l2),
    }


def objective(X: Any, y: Any, states: Any, transitions: Any, l2: float) -> float:
    """Evaluate P(w) in float64, sentence by sentence."""
    total = 0.5 * l2 * float((states**2).sum() + (transitions**2).sum())
    for rows, gold in zip(X, y, strict=True):
        scores = rows @ states
        alpha = scores[0]
        for row in scores[1:]:
            alpha = logsumexp(alpha[:, None] + transitions, axis=0) + row
        total += float(logsumexp(alpha) - scores[np.arange(len(gold)), gold].sum())
        total -= float(transitions[gold[:-1], gold[1:]].sum())
    return total
