"""The benchmarks' systems on small random data report what independent code computes."""

import json
import time

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import crf, dense, maxent, sparse
from benchmarks.__main__ import main
from benchmarks.objective import multiclass_objective
from benchmarks.report import finish
from benchmarks.watch import Watch, watch_fit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write noisy sentences whose chunks depend on parts of speech, and noisy images of three classes."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (root / "conll2000").mkdir()
    for name, n in (("train", 30), ("test", 12)):
        lines = []
        for _ in range(n):
            tags = rng.integers(3, size=rng.integers(1, 6))
            lines += [f"w{rng.integers(9)} P{t} {['O', 'B-X', 'I-X'][t if rng.random() < 0.9 else 0]}" for t in tags]
            lines.append("")
        (root / "conll2000" / f"{name}.txt").write_text("\n".join(lines))
    (root / "mnist").mkdir()
    for name, n in (("train", 80), ("t10k", 20)):
        labels = rng.integers(3, size=n)
        images = rng.integers(0, 120, size=(n, 3, 3)) + 100 * np.eye(3, dtype=int)[labels][:, None, :]
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            head = bytes([0, 0, 8, array.ndim]) + b"".join(k.to_bytes(4, "big") for k in array.shape)
            (root / "mnist" / f"{name}-{kind}-ubyte").write_bytes(head + array.astype(np.uint8).tobytes())
    (root / "libsvm").mkdir()
    for name, n in (("a9a", 60), ("a9a.t", 20)):
        rows = rng.random((n, 5)) < 0.4
        signs = np.where(rows[:, 0] ^ (rng.random(n) < 0.2), "+1", "-1")
        lines = [
            sign + "".join(f" {k + 1}:1" for k in np.flatnonzero(row)) for sign, row in zip(signs, rows, strict=True)
        ]
        (root / "libsvm" / name).write_text("\n".join([*lines, "-1 5:1"]) + "\n")
    return str(root)


def test_dense_systems_agree():
    ours = dense.fit_partwise(1.0, 100, 12, 1, "auto", 1e-6)
    assert ours["objective"] == pytest.approx(ours["reported_objective"], rel=1e-10)
    pytest.importorskip("torch")
    theirs = dense.fit_torch(1.0, 100, 12, 1)
    assert theirs["objective"] == pytest.approx(ours["objective"], rel=1e-4)


@pytest.mark.parametrize("solver", ["eg", "lbfgs"])
def test_crf_systems_agree(folder, solver):
    ours = crf.fit_partwise(folder, 2.0, None, solver, 1e-8, 1)
    assert ours["objective"] == pytest.approx(ours["reported_objective"], rel=1e-10)
    assert ours["trace_objective"][-1] == pytest.approx(ours["objective"], rel=1e-6)
    assert ours["trace_seconds"] == sorted(ours["trace_seconds"])
    assert ours["trace_seconds"][-1] <= ours["solver_seconds"] <= ours["fit_seconds"]
    assert 0 <= ours["gap"] <= 1e-8

    pytest.importorskip("pycrfsuite")
    theirs = crf.fit_crfsuite(folder, 2.0, None)
    assert theirs["objective"] == pytest.approx(theirs["reported_objective"], rel=1e-6)
    assert len(theirs["trace_seconds"]) == len(theirs["trace_objective"])
    assert ours["objective"] <= theirs["objective"] * (1 + 1e-8)
    assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-4)
    assert ours["f1"] == pytest.approx(theirs["f1"], abs=0.05)


@pytest.mark.parametrize("c2", [0.2, 0.0])
def test_sparse_systems_agree(folder, c2):
    pytest.importorskip("pycrfsuite")
    theirs = sparse.fit_crfsuite(folder, 0.3, c2, None)
    assert theirs["objective"] == pytest.approx(theirs["reported_objective"], rel=1e-6)
    assert 0 < theirs["cpu_seconds"] <= theirs["all_cpu_seconds"]
    solvers = ("auto", "eg", "owlqn") if c2 else ("auto", "owlqn")
    for solver in solvers:
        ours = sparse.fit_partwise(folder, 0.3, c2, None, solver, 60.0, theirs["objective"] * (1 + 2e-5))
        assert ours["objective"] == pytest.approx(ours["reported_objective"], rel=1e-10)
        assert 0 <= ours["gap"] <= (1e-3 if c2 else 1e-2)
        assert ours["objective"] <= theirs["objective"] * (1 + 2e-5)
        assert ours["n_weights"] == pytest.approx(theirs["n_weights"], rel=0.2, abs=3)


@pytest.mark.parametrize("dataset", ["mnist", "a9a"])
@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"])
def test_maxent_systems_agree(folder, solver, dataset):
    ours = maxent.fit_partwise(folder, 1.0, None, "auto", 1e-8, 1, dataset)
    assert ours["objective"] == pytest.approx(ours["reported_objective"], rel=1e-10)
    theirs = maxent.fit_sklearn(folder, 1.0, None, solver, ours["objective"], 1e-3, 1, 60.0, dataset)
    assert ours["objective"] * (1 - 1e-9) < theirs["objective"] <= 1.001 * ours["objective"]
    assert theirs["passes"] >= 1
    assert theirs["more_than_seconds"] is None
    assert theirs["accuracy"] == pytest.approx(ours["accuracy"], abs=0.1)
    fewer = maxent.fit_sklearn(folder, 1.0, None, solver, ours["objective"], 1e-1, 1, 60.0, dataset)
    assert fewer["passes"] <= theirs["passes"]


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cg", "newton-cholesky", "sag", "saga"])
def test_watched_objectives_are_those_of_shorter_runs(folder, solver):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    shared = maxent.load(folder, None, "mnist")

    def value(weights):
        return multiclass_objective(shared.X_train, shared.y_train, weights, 1.0)

    options = {"C": 1.0, "fit_intercept": False, "solver": solver, "tol": 1e-10, "random_state": 0}
    best = maxent.fit_partwise(folder, 1.0, None, "auto", 1e-8, 1)["objective"]
    watch = Watch(value, (1.0 + 1e-6) * best, 60.0)
    watch_fit(options, shared.X_train, shared.y_train, watch)
    assert watch.reached
    assert all(objective > watch.target for objective in watch.objectives[:-1])
    for k, objective in list(enumerate(watch.objectives, 1))[:: max(1, len(watch.objectives) // 3)]:
        with pytest.warns(ConvergenceWarning):
            plain = LogisticRegression(**options, max_iter=k).fit(shared.X_train, shared.y_train)
        if solver in ("sag", "saga"):  # sag and saga draw other examples, so results are only similar
            assert value(plain.coef_) == pytest.approx(objective, rel=0.05)
        else:
            assert value(plain.coef_) == pytest.approx(objective, rel=1e-9)
    assert watch.wall > 0


def test_looking_is_not_timed(folder):
    shared = maxent.load(folder, None, "mnist")
    looks = 5

    def value(weights):
        time.sleep(0.05)
        return 2.0 if len(watch.objectives) + 1 < looks else 1.0

    watch = Watch(value, 1.0, 60.0)
    options = {"C": 1.0, "fit_intercept": False, "solver": "saga", "tol": 1e-10, "random_state": 0}
    begin = time.perf_counter()
    watch_fit(options, shared.X_train, shared.y_train, watch)
    total = time.perf_counter() - begin
    assert len(watch.objectives) == looks
    assert 0 < watch.wall <= total - looks * 0.05


def test_reported_objectives_are_trusted_far_from_the_target():
    watch = Watch(lambda weights: 1.5, 1.0, 60.0)
    watch.see(np.zeros((1, 2)), 2.0)
    watch.see(np.zeros((1, 2)), 1.0009)
    watch.see(np.zeros((1, 2)))
    assert watch.objectives == [2.0, 1.5, 1.5]
    assert not watch.reached


def test_an_iteration_that_takes_too_long_is_ended():
    watch = Watch(lambda weights: 2.0, 1.0, 0.05)
    X, y = np.zeros((4, 2)), np.arange(4) % 2

    class Endless:
        def fit(self, X, y):
            while True:
                pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn.linear_model.LogisticRegression", lambda **options: Endless())
        watch_fit({"solver": "lbfgs"}, X, y, watch)
    assert not watch.reached
    assert watch.objectives == []
    assert 0.05 <= watch.cpu < 2


@pytest.mark.parametrize("solver", ["0", "7"])
def test_liblinear_agrees(folder, solver):
    pytest.importorskip("liblinear")
    ours = maxent.fit_partwise(folder, 1.0, None, "auto", 1e-8, 1, "a9a")
    assert ours["objective"] == pytest.approx(ours["reported_objective"], rel=1e-10)
    theirs = maxent.fit_liblinear(folder, 1.0, None, solver, ours["objective"], 1e-3, 1, 60.0, "a9a")
    assert ours["objective"] * (1 - 1e-9) <= theirs["objective"] <= 1.001 * ours["objective"]
    assert theirs["accuracy"] == pytest.approx(ours["accuracy"], abs=0.1)


def test_our_time_determines_the_limit_of_rivals():
    rival = {"system": "sklearn-lbfgs", "trace_objective": [1.0], "trace_cpu_seconds": [50.0]}
    failed = {"system": "partwise-auto", "error": "ended with signal 9"}
    ours = {"system": "partwise-sdca", "trace_objective": [2.0, 1.0], "trace_cpu_seconds": [1.0, 4.0]}
    reference = {"trace_objective": [3.0, 1.0], "trace_cpu_seconds": [1.0, 6.0]}
    assert maxent.our_seconds([rival, failed, ours, reference], 1.0, 1e-3) == 4.0
    assert maxent.our_seconds([rival, failed, reference], 1.0, 1e-3) == 6.0
    assert maxent.our_seconds([rival], 1.0, 1e-3) == 0.0


def test_a_slow_rival_is_given_up(folder):
    theirs = maxent.fit_sklearn(folder, 1.0, None, "sag", 1.0, 1e-3, 1, patience=0.0)
    finish(theirs, 1.0, 1e-3)
    assert theirs["seconds_to_target"] is None
    assert theirs["more_than_seconds"] == theirs["solver_seconds"] > 0
    assert "stopped" in theirs["how"]


def test_question_writes_records(folder, tmp_path):
    path = tmp_path / "records"
    arguments = [
        "crf",
        "--data",
        folder,
        "--json",
        str(path),
        "--systems",
        "partwise-eg-accurate",
        "--quick",
        "--l2",
        "3",
    ]
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 0, answer.output
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["l2"] for record in records] == [3.0]
    for record in records:
        assert record["system"] == "partwise-eg-accurate"
        assert 0 <= record["excess"] <= 1e-4
        assert 0 < record["seconds_to_target"] <= record["solver_seconds"]
        assert 0 < record["cpu_seconds_to_target"] <= record["solver_cpu_seconds"] <= record["fit_cpu_seconds"]
        assert record["peak_mb"] >= record["data_mb"] > 0


def test_originals_run_to_the_gap_of_the_original(folder, tmp_path):
    written = tmp_path / "originals.jsonl"
    options = ["originals", "--data", folder, "--datasets", "conll2000", "--systems", "one-slack", "--quick"]
    done = CliRunner().invoke(main, [*options, "--json", str(written)])
    assert done.exit_code == 0, done.output
    (record,) = map(json.loads, written.read_text().splitlines())
    assert record["status"] == "converged"
    assert record["relative_gap"] <= record["target"]
    assert record["dual"] <= record["primal"]


def test_every_way_of_calling_gives_the_same_answers(folder):
    pytest.importorskip("pycrfsuite")
    from benchmarks import predict

    found = predict.measure(folder, 20, 6, 1)
    assert {record["same"] for record in found["records"]} == {True, None}
    assert len({(record["form"], record["way"]) for record in found["records"]}) == len(found["records"])
    assert all(record["ours"] > 0 for record in found["records"])
    assert all(ratio > 0 for ratio in found["threads"].values())
