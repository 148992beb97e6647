"""Contexts of the maxent-is benchmark, and its cells on small random data."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.special import logsumexp

from benchmarks import contexts, maxent_is, maxent_nltk
from benchmarks.__main__ import main
from partwise.datasets import pos_features


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write sentences whose tag depends on the word, in both data formats."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (root / "conll2000").mkdir()
    (root / "brown").mkdir()
    words = [[f"w{k}-{'X' if k % 2 else 'y'}" for k in rng.integers(9, size=rng.integers(1, 7))] for _ in range(120)]
    tags = [[f"T{int(word[1]) % 3}" if rng.random() < 0.9 else "T0" for word in sentence] for sentence in words]
    for name, part in (("train", slice(0, 90)), ("test", slice(90, None))):
        lines = []
        for sentence, its in zip(words[part], tags[part], strict=True):
            lines += [f"{word} {tag} {'B' if tag == 'T1' else 'O'}" for word, tag in zip(sentence, its, strict=True)]
            lines.append("")
        (root / "conll2000" / f"{name}.txt").write_text("\n".join(lines))
    lines = []
    for k, (sentence, its) in enumerate(zip(words, tags, strict=True)):
        lines += [f"# a{k // 6}"] if k % 6 == 0 else []
        lines.append(" ".join(f"{word}/{tag}{'-tl' if k % 3 else ''}" for word, tag in zip(sentence, its, strict=True)))
    (root / "brown" / "brown.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return str(root)


def test_brown_is_found_packed_or_not(folder, tmp_path):
    plain = tmp_path / "brown"
    plain.mkdir()
    packed = (Path(folder) / "brown" / "brown.txt.gz").read_bytes()
    (plain / "brown.txt").write_bytes(gzip.decompress(packed))
    for one, other in zip(
        vars(contexts.brown(folder, None)).values(), vars(contexts.brown(str(tmp_path), None)).values(), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_spelling_is_that_of_the_data_set():
    words = [["A-1", "bcd", "A-1"], ["x"], ["bcd", "Efghi"]]
    table = contexts._spelling(words, np.array([3, 1, 2]))
    rows = [row for sentence in words for row in pos_features(sentence)]
    names: dict[int, str] = {}
    for numbers, row in zip(table, rows, strict=True):
        numbers = numbers[numbers >= 0].tolist()
        assert len(set(numbers)) == len(row)
        for number, name in zip(numbers, row, strict=True):  # numbers and names correspond one to one
            assert names.setdefault(number, name) == name
    assert len(set(names.values())) == len(names)


def test_contexts(folder):
    found = contexts.conll_pos(folder, None)
    n_attributes, n_labels = found.sizes
    assert n_labels == 3
    assert found.attributes.min() == 0
    assert found.attributes.max() == n_attributes - 1
    # the features are exactly the (attribute, label) pairs that occur at least CUTOFF times
    owner = np.repeat(np.arange(len(found.labels)), np.diff(found.row_ptr))
    counts = np.zeros((n_attributes, n_labels), dtype=int)
    np.add.at(counts, (found.attributes, found.labels[owner]), 1)
    there = np.zeros_like(counts, dtype=bool)
    there[np.repeat(np.arange(n_attributes), np.diff(found.pair_ptr)), found.pair_labels] = True
    np.testing.assert_array_equal(there, counts >= contexts.CUTOFF)


def test_brown_is_split_by_article(folder):
    found = contexts.brown(folder, None)
    assert found.sizes[1] == 3  # tags without modifiers
    total = len(found.labels) + len(found.test_labels)
    assert len(found.labels) / total == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("method", maxent_is.METHODS)
def test_cells_agree(folder, tmp_path, method):
    given = contexts.conll_chunks(folder, None)
    path = str(tmp_path / "arrays.npz")
    given.save(path)
    slow = method in ("gis", "iis")
    solver, options = maxent_is.METHODS[method]
    cell = maxent_is.run_cell(path, solver, 0.1, 0.5 if slow else 4.0, 1, options=options)
    assert cell["status"] == ("not reached" if slow else "converged")
    assert cell["trace_seconds"] == sorted(cell["trace_seconds"])
    # compute the same objective from the arrays alone
    problem, layout = maxent_is.make_problem(given, 0.1, 1)
    assert problem.n_examples < len(given.labels)  # equal contexts are merged
    dense = np.zeros((given.sizes[0], given.sizes[1]))
    ptr, labels = layout.pairs()
    owner = np.repeat(np.arange(len(given.labels)), np.diff(given.row_ptr))
    from partwise import solve

    weights = solve(problem, "lbfgs", tol=1e-10).weights
    dense[np.repeat(np.arange(given.sizes[0]), np.diff(ptr)), labels] = layout.unpack(weights)
    scores = np.zeros((len(given.labels), given.sizes[1]))
    np.add.at(scores, owner, dense[given.attributes])
    loss = logsumexp(scores, axis=1) - scores[np.arange(len(scores)), given.labels]
    optimum = loss.sum() + 0.05 * float((dense**2).sum())
    assert cell["objective"] >= optimum * (1 - 1e-9)
    assert cell["objective"] == pytest.approx(optimum, rel=0.5 if slow else 2e-5)
    assert np.all(np.diff(cell["trace_primal"]) < 0) or not slow
    assert cell["best_dual"] <= optimum * (1 + 1e-9)


def test_question(folder, tmp_path):
    out, plot = tmp_path / "records.jsonl", tmp_path / "plot.png"
    arguments = ["maxent-is", "--data", folder, "--datasets", "conll-chunks", "--systems", "cd,gis", "--no-nltk"]
    answer = CliRunner().invoke(main, [*arguments, "--cap", "1", "--json", str(out), "--plot", str(plot)])
    assert answer.exit_code == 0, answer.output
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [record["system"] for record in records] == ["reference", "cd", "gis"]
    assert records[1]["seconds_to_0.01"] is not None
    assert "cd is at 1e-2 before lbfgs" not in answer.output
    assert plot.stat().st_size > 1000


def test_an_interrupted_benchmark_resumes(folder, tmp_path, monkeypatch):
    out = tmp_path / "records.jsonl"
    common = ["maxent-is", "--data", folder, "--datasets", "conll-chunks", "--no-nltk", "--cap", "1"]
    common += ["--json", str(out), "--plot", str(tmp_path / "plot.png")]
    assert CliRunner().invoke(main, [*common, "--systems", "cd,gis"]).exit_code == 0
    first = [json.loads(line) for line in out.read_text().splitlines()]
    asked = []
    run = maxent_is.run_apart

    def noting(function, threads, timeout=None, **options):
        asked.append(options["solver"])
        assert options["bound"] == first[0]["best_dual"]
        return run(function, threads, timeout, **options)

    monkeypatch.setattr(maxent_is, "run_apart", noting)
    answer = CliRunner().invoke(main, [*common, "--systems", "cd,newton", "--resume"])
    assert answer.exit_code == 0, answer.output
    assert asked == ["newton"]
    second = [json.loads(line) for line in out.read_text().splitlines()]
    assert [record["system"] for record in second] == ["reference", "cd", "newton"]
    assert second[:2] == [{**old, **new} for old, new in zip(first[:2], second[:2], strict=True)]
    assert second[1]["trace_primal"] == first[1]["trace_primal"]
    # with another time limit, cells are run again
    asked.clear()
    monkeypatch.setattr(
        maxent_is,
        "run_apart",
        lambda function, threads, timeout=None, **options: asked.append(options["solver"]) or {"error": "stopped"},
    )
    answer = CliRunner().invoke(main, [*common[:-6], "--cap", "2", *common[-4:], "--systems", "cd", "--resume"])
    assert answer.exit_code == 1
    assert "conll-chunks, cd failed: stopped" in answer.output
    assert asked == ["sdca", "cd"]


def test_cells_not_yet_reached_stay_in_the_file():
    done = [{"dataset": "a", "system": "cd"}, {"dataset": "b", "system": "cd"}]
    assert maxent_is._later(done, [done[0]], []) == [done[1]]


def test_a_known_bound_ends_a_cell(folder, tmp_path):
    path = str(tmp_path / "arrays.npz")
    contexts.conll_chunks(folder, None).save(path)
    accurate = maxent_is.run_cell(path, "sdca", 0.1, 4.0, 1)
    assert accurate["best_dual"] <= accurate["objective"] <= accurate["best_dual"] * (1 + 1e-5)
    alone = maxent_is.run_cell(path, "lbfgs", 0.1, 4.0, 1)
    told = maxent_is.run_cell(path, "lbfgs", 0.1, 4.0, 1, accurate["best_dual"])
    assert told["status"] == "converged"
    assert told["trace_steps"][-1] <= alone["trace_steps"][-1]
    assert told["objective"] <= accurate["best_dual"] * (1 + 1.1e-5)


def test_findings():
    cells = [
        {"dataset": "brown", "system": name, "trace_gap": [1.0], "difference": end, "cpu_seconds_to_0.01": seconds}
        for name, end, seconds in (("cd", 1e-3, 2.0), ("scgis", 1e-2, 3.0), ("gis", 0.5, None), ("lbfgs", 0.1, 1.0))
    ]
    lines = maxent_is.findings(cells)
    assert [line.split()[0] for line in lines] == ["yes", "yes", "NO"]
    for cell in cells:
        cell["cpu_seconds_to_0.01"] = None
    assert maxent_is.findings(cells)[1].startswith("yes  brown: neither is at 1e-2, scgis is nearer than gis")


def test_nltk(folder, tmp_path):
    pytest.importorskip("nltk")
    path = str(tmp_path / "arrays.npz")
    contexts.conll_pos(folder, None).save(path)
    found = maxent_nltk.fit_nltk(path, 100, 20)
    assert found["contexts"] == 100
    assert found["nltk_ratio"] > 1
    assert found["nltk_iteration_ratio"] > 1
