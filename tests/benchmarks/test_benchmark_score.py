"""The benchmark of scoring: files have the stated number of rows, and both ways of scoring label all of them."""

from __future__ import annotations

import pytest

from benchmarks import score

pq = pytest.importorskip("pyarrow.parquet")


def test_both_ways(tmp_path, monkeypatch):
    monkeypatch.setattr(score, "PIECE", 100)
    folder = str(tmp_path)
    score.write_model(folder)
    for by_word in (False, True):
        made = score.write_file(folder, "x.parquet", 250, "zstd", by_word)
        table = pq.read_table(tmp_path / "x.parquet")
        assert len(table) == 250
        tokens = len(table) if by_word else sum(map(len, table["words"].to_pylist()))
        assert made["tokens"] == tokens
        found = score.by_file(folder, "x.parquet", 2, by_word)
        out = pq.read_table(tmp_path / "out.parquet")
        assert out.drop(["prediction"]).equals(table)
        assert found["cpu"] > 0
        assert found["mb"] > 10
    score.write_file(folder, "x.parquet", 250, "snappy", False)
    assert score.in_memory(folder, "x.parquet", 100, 1)["cpu"] > 0
