"""The benchmark of structures: growth of work per example, fitted and, with Valgrind, counted."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from benchmarks import structures
from benchmarks.__main__ import main


def test_the_exponent_is_that_of_a_power():
    lengths = [10, 20, 40]
    assert structures.exponent(lengths, [7 * n**3 for n in lengths]) == pytest.approx(3.0)
    assert structures.exponent(lengths, [n**2 for n in lengths]) == pytest.approx(2.0)


def test_lengths_must_rise():
    for lengths in ("10", "10,10", "20,10", "0,4"):
        assert CliRunner().invoke(main, ["structures", "--lengths", lengths]).exit_code == 2


@pytest.fixture
def counted(monkeypatch):
    """Replace the measurement: two structures whose work is n^2, one of which has no sampling."""

    def instructions(driver, kind, what, n, repeats):
        return None if (kind, what) == ("Plain", "sample") else 100 + repeats * n**2

    monkeypatch.setattr(structures, "missing_tools", list)
    monkeypatch.setattr(structures, "build", lambda folder: folder)
    monkeypatch.setattr(structures, "specimens", lambda driver: {"Plain": 2.0, "Quick": 1.0})
    monkeypatch.setattr(structures, "instructions", instructions)


def run(tmp_path, *arguments):
    out = tmp_path / "out"
    done = CliRunner().invoke(main, ["structures", "--lengths", "10,20", "--json", str(out), *arguments])
    return done, [json.loads(line) for line in out.read_text().splitlines()]


def test_faster_growth_is_a_failure(counted, tmp_path):
    done, records = run(tmp_path)
    assert done.exit_code == 1
    assert "2.00" in done.output
    assert [r["what"] for r in records if r["structure"] == "Plain"] == [
        title for what, (title, _) in structures.SERVICES.items() if what != "sample"
    ]
    wrong = [r for r in records if "error" in r]
    assert {r["structure"] for r in wrong} == {"Quick"}
    assert {r["error"] for r in wrong} == {"grows as n^2.00, not n^1"}
    assert len(wrong) == sum(held for _, held in structures.SERVICES.values())
    assert records[0]["instructions"] == [10**2, 20**2]


def test_some_structures_and_services(counted, tmp_path):
    done, records = run(tmp_path, "--structures", "Plain", "--services", "max,sums")
    assert done.exit_code == 0, done.output
    assert [r["what"] for r in records] == [structures.SERVICES[what][0] for what in ("max", "sums")]
    for wrong in (["--structures", "Graf"], ["--services", "maximum"]):
        assert CliRunner().invoke(main, ["structures", *wrong]).exit_code == 2


def test_every_structure_of_the_core_is_in_the_table():
    """Every structure of the library has a line in the driver of the benchmark."""
    from partwise import structures as library

    driver = (structures.ROOT / "benchmarks" / "structures_driver.cpp").read_text(encoding="utf-8")
    listed = {name.split(",")[0] for name in re.findall(r'^ +\{"([^"]+)", \d', driver, re.MULTILINE)}
    made = {name for name in library.__all__ if isinstance(getattr(library, name), type)} - {"Structure", "Tree"}
    assert made <= listed


@pytest.mark.slow
@pytest.mark.skipif(bool(structures.missing_tools()), reason="no compiler or no valgrind")
def test_structures_grow_as_they_may(tmp_path):
    out = tmp_path / "out"
    services = ["--services", "max,sums,logs"]
    done = CliRunner().invoke(main, ["structures", "--lengths", "20,40,80", *services, "--json", str(out)])
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert {"Chain", "ProjectiveTree", "SpanningTree"} <= {record["structure"] for record in records}
    assert all(record["exponent"] > 0.5 for record in records)
