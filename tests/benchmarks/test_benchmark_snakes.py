"""The benchmarks of graphs: Snakes on random grids, and the part of the comparison that runs without pgmpy."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import graph, snakes
from benchmarks.__main__ import main
from benchmarks.measure import SystemFailed
from oracles.enumerate import enumeration_of
from partwise.datasets import arrays as grids
from partwise.structures import graph as make_graph


def made_up(rng, height, width):
    """Make a snake in a row whose first cell is yellow: a cell's label is its distance from there."""
    colours = np.zeros((height, width, 3), dtype=np.uint8)
    colours[:, :] = grids.COLOURS[0]
    labels = np.zeros((height, width), dtype=np.uint8)
    row = int(rng.integers(height))
    colours[row] = grids.COLOURS[1]
    order = np.arange(width) if rng.random() < 0.5 else np.arange(width)[::-1]
    labels[row, order] = np.arange(1, width + 1)
    colours[row, order[0]] = grids.COLOURS[4]
    return colours, labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    (root / "snakes").mkdir()
    rng = np.random.default_rng(0)
    arrays = {}
    for part, n in (("train", 25), ("test", 10)):
        for i in range(n):
            colours, labels = made_up(rng, 3 if i else 5, 5)
            arrays |= {f"X_{part}/{i:03d}": colours, f"Y_{part}/{i:03d}": labels}
    np.savez_compressed(root / "snakes" / "snakes.npz", **arrays)
    return str(root)


def test_the_reader(folder, tmp_path):
    data = grids.snakes(folder)
    rows, edges, both, types = data.X_train[1]
    assert rows.shape == (15, 45)
    assert (edges.shape, both.shape, len(types)) == ((22, 2), (22, 90), 22)
    assert rows[:, list(grids.OWN_COLOUR)].sum() == 15
    assert (rows[0].sum(), rows[1].sum(), rows[6].sum()) == (4, 6, 9)  # neighbours outside of the grid have no features
    np.testing.assert_array_equal(both[3], np.concatenate([rows[3], rows[4]]))
    assert grids.snakes(folder, edge_features=False).X_train[0][2] is None
    (tmp_path / "snakes").mkdir()
    path = tmp_path / "snakes" / "snakes.npz"
    for arrays, message in (
        ({"X_train/0": np.zeros((2, 2, 3))}, "X_train/0 has a colour"),
        ({"X_train/0": np.full((2, 2, 3), grids.COLOURS[0])}, "X_train/0 has 4 cells but 0 labels"),
        ({"other": np.zeros(1)}, "no train grids"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(ValueError, match=message):
            grids.snakes(tmp_path)
    path.write_bytes(b"PK rubbish")
    with pytest.raises(ValueError, match="not an archive"):
        grids.snakes(tmp_path)


def test_the_question(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(snakes, "run_apart", lambda function, threads, **options: snakes.run(**options))
    path = tmp_path / "records"
    arguments = ["snakes", "--data", folder, "--json", str(path), "--memory-limit", "3e5", "--tol", "1e-2"]
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == 0, answer.output
    cells, plain, kinds = (json.loads(line) for line in path.read_text().splitlines())
    assert (plain["train_refused"], plain["test_refused"], kinds["test_refused"]) == (1, 1, 0)
    assert "its junction tree of width" in plain["refusal"]
    assert kinds["accuracy"] > cells["accuracy"]
    assert answer.output.count("yes  with a certified gap of at most 0.01") == 2
    assert "graph, kinds: " in answer.output


def test_a_failure_is_named(folder, monkeypatch):
    def fail(*_, **__):
        raise SystemFailed("it broke")

    monkeypatch.setattr(snakes, "run_apart", fail)
    answer = CliRunner().invoke(main, ["snakes", "--data", folder, "--systems", "g"])
    assert answer.exit_code == 1
    assert "graph failed: it broke" in answer.output


def test_our_side_of_the_comparison():
    edges, rows, tables = graph.random_graph(np.random.default_rng(0), 6, 3, 2)
    log_z, vertices, pairs, seconds, width = graph.our_answers(edges, rows, tables, 3)
    everything = enumeration_of(make_graph([([3] * 6, edges)]), 0)
    values = sum(rows[v][everything.labellings[:, v]] for v in range(6))
    values = values + sum(
        t[everything.labellings[:, u], everything.labellings[:, v]] for (u, v), t in zip(edges, tables, strict=True)
    )
    p = np.exp(values - log_z)
    assert p.sum() == pytest.approx(1.0)
    assert vertices[2, 1] == pytest.approx(p[everything.labellings[:, 2] == 1].sum())
    chosen = (everything.labellings[:, edges[3][0]] == 2) & (everything.labellings[:, edges[3][1]] == 0)
    assert pairs[3, 2, 0] == pytest.approx(p[chosen].sum())
    assert (seconds > 0, width) == (True, 2)
