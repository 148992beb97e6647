"""The benchmark of kernels on small random words."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import kernel
from benchmarks.__main__ import main
from benchmarks.measure import SystemFailed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write letters that differ in whether two pixels are equal, which no linear score can use."""
    root = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (root / "ocr-letters").mkdir()
    lines = []
    for word in range(300):
        length = int(rng.integers(1, 4))
        for t in range(length):
            pixels = np.zeros(128, dtype=int)
            pixels[:2] = rng.integers(2, size=2)
            letter = "ab"[pixels[0] ^ pixels[1]]
            text = "".join(map(str, pixels))
            lines.append(f"{word}\t{letter}\t{t}\t{word % 10}\t{int(t == length - 1)}\t{text}")
    (root / "ocr-letters" / "letters.tsv").write_text("\n".join(lines) + "\n")
    return str(root)


@pytest.fixture
def small_grids(monkeypatch):
    monkeypatch.setattr(kernel, "GRIDS", {"linear": {"C": (0.1, 1.0)}, "rbf": {"C": (0.1, 10.0), "gamma": (1.0,)}})


def test_systems(folder, small_grids):
    linear, rbf = (kernel.run(folder, system, 0.05, None) for system in ("linear", "rbf"))
    assert linear["test_error"] > 0.2
    assert rbf["test_error"] == 0.0
    assert (rbf["words"], rbf["test_words"]) == (30, 270)
    assert rbf["held_out_error"] == min(case["held_out_error"] for case in rbf["tried"])
    assert {"C": rbf["C"], "gamma": rbf["gamma"], "held_out_error": rbf["held_out_error"]} in rbf["tried"]
    for record in (linear, rbf):
        assert 0 <= record["gap"] <= 0.05
        assert record["peak_mb"] > 0


def test_the_question(folder, tmp_path, monkeypatch, small_grids):
    monkeypatch.setattr(kernel, "run_apart", lambda function, threads, **options: kernel.run(**options))
    path = tmp_path / "records"
    answer = CliRunner().invoke(main, ["kernel", "--data", folder, "--json", str(path)])
    assert answer.exit_code == 0, answer.output
    assert "yes  the RBF chain has the smaller test error" in answer.output
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["system"] for record in records] == ["linear", "rbf"]


def test_a_failure_is_named(folder, monkeypatch):
    def fail(*_, **__):
        raise SystemFailed("it broke")

    monkeypatch.setattr(kernel, "run_apart", fail)
    answer = CliRunner().invoke(main, ["kernel", "--data", folder, "--systems", "rbf"])
    assert answer.exit_code == 1
    assert "rbf failed: it broke" in answer.output
