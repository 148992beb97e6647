"""The benchmark of passes on small random data."""

import json

import numpy as np
import scipy.sparse as sp
from click.testing import CliRunner

from benchmarks import chains, passes
from benchmarks.__main__ import main
from benchmarks.chains import Chains


def test_the_command(monkeypatch, tmp_path):
    def made_up(data, limit):
        rng = np.random.default_rng(3)
        lengths = rng.integers(1, 6, 30)
        design = sp.csr_array((rng.random((int(lengths.sum()), 8)) < 0.3).astype(float))
        return Chains(design, rng.integers(0, 3, int(lengths.sum())), lengths, 3, True)

    monkeypatch.setattr(passes, "DATASETS", {"made-up": made_up})
    assert chains.DATASETS.keys() != passes.DATASETS.keys()
    path = tmp_path / "out.jsonl"
    done = CliRunner().invoke(main, ["passes", "--json", str(path), "--systems", "eg,sdca"])
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["system"] for record in records] == ["eg", "sdca"]
    for record in records:
        found = [record[f"passes_to_{t:g}_per_example"] for t in passes.TARGETS]
        assert found == sorted(found)
        assert record["trace_per_example"][-1] <= 1e-4
        assert min(record["trace_per_example"]) > -1e-7
