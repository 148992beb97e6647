"""The benchmark of solvers on small made-up data."""

import json

import click
import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from benchmarks import chains, solvers
from benchmarks.__main__ import main
from benchmarks.chains import Chains, Task
from benchmarks.measure import SystemFailed
from partwise.losses import LOSSES
from partwise.solvers.compatibility import fitting_solvers


def made_up(observed: bool, n_inputs: int = 8, density: float = 0.2) -> Chains:
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 6, 12)
    total = int(lengths.sum())
    design = sp.csr_array(
        (rng.random((total, n_inputs)) < density) * rng.integers(1, 3, (total, n_inputs)).astype(float)
    )
    return Chains(design, rng.integers(0, 3, total), lengths, 3, observed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Noisy sentences and noisy words."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (root / "conll2000").mkdir()
    for name in ("train", "test"):
        lines = []
        for _ in range(12):
            tags = rng.integers(3, size=rng.integers(1, 6))
            lines += [f"w{rng.integers(9)} P{t} {['O', 'B-X', 'I-X'][t if rng.random() < 0.9 else 0]}" for t in tags]
            lines.append("")
        (root / "conll2000" / f"{name}.txt").write_text("\n".join(lines))
    (root / "ocr-letters").mkdir()
    lines = []
    for word in range(12):
        length = int(rng.integers(1, 4))
        for t in range(length):
            letter = int(rng.integers(3))
            pixels = (rng.random(128) < 0.1 + 0.3 * (np.arange(128) % 3 == letter)).astype(int)
            text = "".join(map(str, pixels))
            lines.append(f"{word}\t{'abc'[letter]}\t{t}\t{word % 10}\t{int(t == length - 1)}\t{text}")
    (root / "ocr-letters" / "letters.tsv").write_text("\n".join(lines) + "\n")
    return str(root)


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.rescaling == "margin"])
@pytest.mark.parametrize(("observed", "density"), [(True, 0.2), (False, 0.2), (False, 0.9)])
def test_the_same_objective(observed, density, loss, rng, tmp_path):
    path = tmp_path / "arrays.npz"
    made_up(observed, density=density).save(path)
    task = Task(Chains.load(path), loss, 0.7, 1)
    # u = A'(gold - expected counts) is zero on padding, which belongs to no feature.
    _, gradient = task.problem.value_and_gradient(np.zeros(task.problem.n_weights))
    w = -gradient * rng.normal(size=len(gradient))
    assert w.any()
    assert task.primal(w) == pytest.approx(task.problem.value(w), rel=1e-12)
    state, hops = task.matrices(w)
    assert state.shape == (8, 3)
    assert hops.shape == (3, 3)
    assert (state**2).sum() + (hops**2).sum() == pytest.approx(w @ w)


@pytest.mark.parametrize("loss", ["log", "squared-hinge"])
def test_a_cell(loss, tmp_path):
    path = str(tmp_path / "arrays.npz")
    made_up(True).save(path)
    for solver in fitting_solvers(LOSSES[loss]):
        targets = [0.5, 0.1] if loss == "squared-hinge" else [0.1, 1e-3]
        cell = solvers.run_cell(path, loss, 1.0, solver, {}, 1, 60.0, targets)
        assert cell["status"] == "converged", solver
        assert cell["gap"] <= targets[-1]
        assert cell["objective"] == pytest.approx(cell["reported_objective"], rel=1e-10)
        first, last = (cell[f"passes_to_{target:g}"] for target in targets)
        assert 0 <= first <= last <= cell["passes"]
        assert cell[f"seconds_to_{targets[0]:g}"] <= cell["solver_seconds"]
        assert solvers.check([{**cell, "system": solver}]) == []


def test_a_cell_that_gets_nowhere(tmp_path):
    path = str(tmp_path / "arrays.npz")
    made_up(True).save(path)
    late = solvers.run_cell(path, "hinge", 1.0, "bcfw", {}, 1, 0.0, [0.1, 1e-9])
    assert late["status"] == "not reached"
    assert late["passes_to_1e-09"] is None
    lost = solvers.run_cell(path, "hinge", 1e-4, "eg", {"step_size": 50.0}, 1, 30.0, [1e-9])
    assert lost["status"].startswith("diverged")


def test_the_question(folder, tmp_path):
    records, figure = tmp_path / "records", tmp_path / "figure.png"
    arguments = ["solvers", "--data", folder, "--json", str(records), "--plot", str(figure), "--quick", "--cap", "0.2"]
    arguments += ["--losses", "log", "--systems", "eg,bcfw", "--datasets", "ocr-letters", "--variant", "lbfgs:memory=2"]
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 0, answer.output
    found = [json.loads(line) for line in records.read_text().splitlines()]
    assert [record["system"] for record in found] == ["eg", "lbfgs:memory=2"]  # bcfw has no such loss
    assert found[1]["options"] == {"memory": 2}
    assert figure.read_bytes().startswith(b"\x89PNG")
    for record in found:
        assert record["objective"] == pytest.approx(record["reported_objective"], rel=1e-10)


@pytest.mark.parametrize("name", chains.DATASETS)
def test_datasets(folder, name):
    found = chains.DATASETS[name](folder, 5)
    assert len(found.lengths) == 5
    assert len(found.gold) == found.design.shape[0] == found.lengths.sum()
    assert found.gold.max() < found.n_labels
    if name == "conll2000":
        counts = found.design.sum(axis=0)
        assert (np.diff(counts) <= 0).all()  # the most frequent attributes first


def test_all_solvers_of_a_loss_are_there():
    for name, loss in LOSSES.items():
        found = solvers.systems_of(name, "", ())
        assert list(dict.fromkeys(solver for _, solver, _ in found)) == fitting_solvers(loss)
        assert {shown for shown, _, _ in found} >= set(fitting_solvers(loss))  # each by its default


def test_variants():
    found = solvers.systems_of("hinge", "bcfw", ("bcfw:averaging=False,order=cyclic", "lbfgs:memory=3"))
    assert [name for name, _, _ in found[:3]] == ["bcfw", "bcfw plain", "bcfw gap sampling"]
    assert found[3:] == [("bcfw:averaging=False,order=cyclic", "bcfw", {"averaging": False, "order": "cyclic"})]
    for bad in ("adam", "bcfw:averaging"):
        with pytest.raises(click.BadParameter):
            solvers.systems_of("hinge", "", (bad,))


def cell(dataset, loss, solver, passes, primal, gap, **extra):
    shares = {"passes_to_0.001": None, "seconds_to_0.01": None}
    trace = {"trace_passes": passes, "trace_primal": primal, "trace_gap": gap}
    return {"dataset": dataset, "loss": loss, "system": solver, "solver": solver, **shares, **trace, **extra}


def test_findings():
    records = [
        cell("conll2000", "log", "eg", [], [], [], **{"passes_to_0.001": 12.0}),
        cell("conll2000", "log", "lbfgs", [], [], [], **{"passes_to_0.001": 59.0}),
        cell("conll2000", "hinge", "bcfw", [50.0, 90.0], [10.0, 10.0], [2.0, 0.5]),
        cell("ocr-letters", "squared-hinge", "dcd", [], [], [], **{"seconds_to_0.01": 3.0}),
        cell("ocr-letters", "squared-hinge", "cpd", [0.0, 1.0], [9.0, 8.0], [9.0, 8.0]),
        cell("ocr-letters", "squared-hinge", "dcd-light", [0.0, 1.5], [9.0, 7.0], [9.0, 7.0]),
    ]
    lines = solvers.findings(records)
    assert [line[:3] for line in lines] == ["NO ", "yes", "yes", "yes"]
    assert "(12 and 59)" in lines[0]
    assert "(3 and not reached)" in lines[1]


def test_false_words_are_found_out():
    good = {"system": "a", "objective": 2.0, "reported_objective": 2.0, "trace_dual": [1.0]}
    assert solvers.check([good]) == []
    assert "a reports the objective 1.9, but it is 2.0" in solvers.check([{**good, "reported_objective": 1.9}])
    other = {**good, "system": "b", "objective": 3.0, "reported_objective": 3.0, "trace_dual": [2.5]}
    assert solvers.check([good, other]) == ["b's dual is above a's objective"]
    assert solvers.check([good, {"system": "c", "error": "signal 9"}]) == ["c failed: signal 9"]


def test_a_system_that_fails_does_not_stop_the_others(folder, tmp_path, monkeypatch):
    def run_apart(function, threads, solver, **options):
        if solver == "eg":
            raise SystemFailed("signal 9")
        return solvers.run_cell(solver=solver, **options)

    monkeypatch.setattr(solvers, "run_apart", run_apart)
    records, figure = tmp_path / "records", tmp_path / "figure.png"
    arguments = [
        "solvers",
        "--data",
        folder,
        "--json",
        str(records),
        "--plot",
        str(figure),
        "--cap",
        "1",
        "--losses",
        "log",
    ]
    answer = CliRunner().invoke(main, [*arguments, "--datasets", "conll2000", "--systems", "eg,lbfgs"])
    assert answer.exit_code == 1
    assert "eg failed: signal 9" in answer.output
    failed, done = sorted(map(json.loads, records.read_text().splitlines()), key=lambda record: record["system"])
    assert failed["error"] == "signal 9"
    assert done["status"] == "converged"
    assert figure.exists()
