"""The benchmark of solvers on small random data."""

import json

import click
import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

from benchmarks import chains, ranking, solvers
from benchmarks.__main__ import main
from benchmarks.chains import Chains, Task
from benchmarks.measure import SystemFailed
from partwise.problem.losses import LOSSES
from partwise.problem.result import Certificate
from partwise.solvers import LBFGS
from partwise.solvers.engine.registry import SOLVERS, fitting_solvers


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
    """Write noisy sentences and noisy handwritten words."""
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
    (root / "wnut17").mkdir()
    for name in ("train", "dev", "test"):
        names = [f"w{rng.integers(9)}\t{['O', 'B-x', 'I-x'][rng.integers(3)]}" for _ in range(40)]
        lines = [line for k, line in enumerate(names) for line in ([line, ""] if k % 4 == 3 else [line])]
        (root / "wnut17" / f"{name}.conll").write_text("\n".join(lines) + "\n")
    return str(root)


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.rescaling == "margin"])
@pytest.mark.parametrize(("observed", "density"), [(True, 0.2), (False, 0.2), (False, 0.9)])
def test_the_same_objective(observed, density, loss, rng, tmp_path):
    path = tmp_path / "arrays.npz"
    made_up(observed, density=density).save(path)
    task = Task(Chains.load(path), loss, 0.7, 1)
    # Multiples of the gradient A'(gold - expected counts) are zero on padding, which belongs to no feature.
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
    late = solvers.run_cell(path, "hinge", 1.0, "auto", {}, 1, 0.0, [0.1, 1e-9])
    assert late["solver"] in fitting_solvers(LOSSES["hinge"])
    assert late["status"] == "max_seconds"
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
    assert [record["system"] for record in found] == ["eg", "lbfgs:memory=2"]  # bcfw does not support the loss
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
    if name != "ocr-letters":
        counts = found.design.sum(axis=0)
        assert (np.diff(counts) <= 0).all()  # attributes are sorted by frequency


def test_all_solvers_of_a_loss_are_there():
    for name, loss in LOSSES.items():
        found = solvers.systems_of(name, "", ())
        assert list(dict.fromkeys(solver for _, solver, _ in found)) == [*fitting_solvers(loss), "auto"]
        assert {shown for shown, _, _ in found} >= set(fitting_solvers(loss))  # each with its default options


def timed(system, loss, *seconds, solver="", l2=2.0):
    names = (f"cpu_seconds_to_{target:g}" for target in ranking.TARGETS)
    return {"dataset": "d", "loss": loss, "l2": l2, "system": system, "solver": solver or system} | dict(
        zip(names, seconds, strict=True)
    )


def test_rankings_and_the_table(tmp_path):
    records = [
        timed("eg", "log", 3.0, 5.0, None),
        timed("lbfgs", "log", 2.0, None, None),
        timed("auto", "log", 3.1, 5.0, None, solver="eg"),
        timed("bcfw", "hinge", 1.0, 2.0, 4.0),
        timed("auto", "hinge", 1.0, 2.0, None, solver="bcfw"),
    ]
    log, hinge = records[:3], records[3:]
    assert ranking.ranking(log, 0.1) == [("lbfgs", 2.0), ("eg", 3.0), ("auto", 3.1)]
    assert [ranking.behind(log, t) for t in ranking.TARGETS] == [pytest.approx(1.55), 1.0, None]
    assert ranking.behind(hinge, 1e-3) == np.inf
    lines = ranking.verdicts(records)
    assert [line[:3] for line in lines if line[:1] != " "] == ["NOT", "OK ", "OK ", "OK ", "NOT"]
    assert any("auto (eg) within 1.55 of the best" in line for line in lines)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured: solvers -->\nold\n<!-- end -->\nafter\n")
    for _ in range(2):  # writing twice gives the same page
        ranking.write_table(page, records, "python -m benchmarks solvers")
        text = page.read_text()
        assert text.startswith("before\n<!-- measured: solvers -->\n| data set |")
        assert text.endswith("<!-- end -->\nafter\n")
        assert "| `lbfgs` 2, `eg` 3 | `eg` 5 | not reached | `eg` | 1.55, 1.00, - |" in text
        assert "1.00, 1.00, never |" in text
        assert "python -m benchmarks solvers" in text


def test_medians_of_several_runs():
    runs = [
        {"system": "a", "passes_to_0.1": p, "seconds_to_0.1": 1.0, "cpu_seconds_to_0.1": p} for p in (3.0, None, 1.0)
    ]
    found = ranking.medians(runs, [0.1])
    assert (found["cpu_seconds_to_0.1"], found["runs"]) == (3.0, 3)
    assert ranking.medians([*runs, {**runs[1]}, {**runs[1]}], [0.1])["passes_to_0.1"] is None
    assert ranking.medians([*runs, {"system": "a", "error": "signal 9"}], [0.1])["error"] == "signal 9"


def test_records_are_ranked_again(tmp_path):
    records, page = tmp_path / "records", tmp_path / "page.md"
    records.write_text(json.dumps(timed("bcfw", "hinge", 1.0, 2.0, 4.0)) + "\n")
    answer = CliRunner().invoke(main, ["solvers", "--read", str(records), "--table", str(page)])
    assert answer.exit_code == 0, answer.output
    assert "hinge, l2 = 2, CPU s to 1e-01: bcfw 1" in answer.output
    assert page.read_text().startswith("| data set |")


class Uncertified(LBFGS):
    """A solver without dual values."""

    def certificate(self, problem, state):
        found = super().certificate(problem, state)
        c = found.certificate
        return found._replace(certificate=Certificate(c.primal, -np.inf, np.inf, np.inf, 0.0, 0.0))


def test_a_solver_without_certificates(tmp_path, monkeypatch):
    path = str(tmp_path / "arrays.npz")
    made_up(True).save(path)
    monkeypatch.setitem(SOLVERS, "lbfgs", Uncertified)
    found = solvers.run_cell(path, "log", 1.0, "lbfgs", {}, 1, 60.0, [0.1])
    assert (found["status"], found["cpu_seconds_to_0.1"]) == ("no certificate", None)
    assert found["objective"] == pytest.approx(found["reported_objective"])
    assert solvers.check([{**found, "system": "lbfgs"}]) == []


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


def test_wrong_reports_are_detected():
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
