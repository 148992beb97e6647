"""The parsing benchmark on random treebanks."""

import json

import pytest
from click.testing import CliRunner

from benchmarks import dep
from benchmarks.__main__ import main
from partwise.datasets import make_treebank


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    for name, parts in {
        "ud-english-ewt": ("train.conllu", "dev.conllu"),
        "conll2007-spanish": ("esp.train", "esp.test"),
    }.items():
        (root / name).mkdir()
        for seed, part in enumerate(parts):
            # the Spanish validation sentences follow the first 2306 of the two files together
            n = 2350 if part == "esp.train" else 40
            (root / name / part).write_text(make_treebank(n, seed).conllu())
    return root


def test_all_systems_report(folder, tmp_path, monkeypatch):
    # run in this process: starting an interpreter per system would take most of the test's time
    monkeypatch.setattr(dep, "run_apart", lambda _, threads, **options: dep.train_and_parse(**options))
    monkeypatch.setattr(dep, "_QUICK", 60)
    path = tmp_path / "records"
    options = ["--quick", "--limit", "5", "--gap", "0.2", "--l2", "1", "--data", str(folder), "--json", str(path)]
    done = CliRunner().invoke(main, ["dep", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [r["system"] for r in records] == [
        "ewt-log-eg", "ewt-hinge-bcfw", "ewt-squared-hinge-dcd", "spanish-log-eg",
    ]  # fmt: skip
    for record in records:
        assert 0 <= record["gap"] <= 0.2
        assert record["primal"] - record["dual"] == pytest.approx(record["gap"] * record["primal"], rel=1e-6)
        assert record["uas"] > 0.8
        assert record["features"] > 100
        assert record["sentences_per_second"] > 0
    assert len({record["features"] for record in records[:3]}) == 1
