"""Growth of the work per sentence: the fit, and the counts themselves where Valgrind is available."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from benchmarks import growth
from benchmarks.__main__ import main


def test_the_exponent_is_that_of_a_power():
    lengths = [10, 20, 40]
    assert growth.exponent(lengths, [7 * n**3 for n in lengths]) == pytest.approx(3.0)
    assert growth.exponent(lengths, [n**2 for n in lengths]) == pytest.approx(2.0)


def test_lengths_must_rise():
    for lengths in ("10", "10,10", "20,10", "0,4"):
        assert CliRunner().invoke(main, ["growth", "--lengths", lengths]).exit_code == 2


def test_what_grows_faster_is_a_failure(monkeypatch, tmp_path):
    monkeypatch.setattr(growth, "missing_tools", list)
    monkeypatch.setattr(growth, "build", lambda folder: folder)
    monkeypatch.setattr(growth, "instructions", lambda driver, kind, what, n, repeats: 100 + repeats * n**4)
    done = CliRunner().invoke(main, ["growth", "--lengths", "10,20", "--json", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "4.00" in done.output
    records = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert {record["error"] for record in records} == {"grows as n^4.00"}
    assert records[0]["instructions"] == [10**4, 20**4]


@pytest.mark.slow
@pytest.mark.skipif(bool(growth.missing_tools()), reason="no compiler or no valgrind")
def test_trees_grow_at_most_cubically(tmp_path):
    done = CliRunner().invoke(main, ["growth", "--lengths", "20,40,80", "--json", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert len(records) == 6
    assert all(1.0 < record["exponent"] <= 3.1 for record in records)
