"""The command line: version, help, and what the demo prints and writes."""

import importlib.metadata
import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from partwise.cli import COMMANDS, demo, main


def test_help_lists_the_commands():
    answer = CliRunner().invoke(main, ["--help"])
    assert answer.exit_code == 0
    assert all(name in answer.output for name in COMMANDS)


def test_help_is_quick():
    """The help text is printed without importing scikit-learn or the core."""
    code = "import sys, partwise.cli; sys.exit(any(m in sys.modules for m in ('sklearn', 'partwise._core')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_version():
    try:
        version = importlib.metadata.version("partwise")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("partwise is used from its sources")
    answer = CliRunner().invoke(main, ["--version"])
    assert answer.exit_code == 0
    assert version in answer.output


def test_unknown_command():
    assert CliRunner().invoke(main, ["nonsense"]).exit_code == 2


def test_demo_uses_every_estimator():
    from partwise import estimators

    rows = demo.run(demo.Options(strings=10, sentences=12, tol=0.1, jobs=1, seed=0))
    public = {name for name in estimators.__all__ if isinstance(getattr(estimators, name), type)}
    assert {type(row.model).__name__ for row in rows} == public - {"StructuredEstimator"}


def test_demo_certifies_every_run_and_writes_a_report(tmp_path):
    path = tmp_path / "demo.html"
    args = ["demo", "--strings", "20", "--sentences", "40", "--tol", "1e-2", "--report", str(path), "--json"]
    answer = CliRunner().invoke(main, args)
    assert answer.exit_code == 0, answer.output
    said = json.loads(answer.stdout)
    assert len(said["runs"]) == len(demo.RUNS)
    for row in said["runs"]:
        assert row["status"] == "converged"
        assert 0 <= row["gap"] <= 1e-2 * row["primal"]
        assert row["name"] in path.read_text(encoding="utf-8")
    page = path.read_text(encoding="utf-8")
    kinds = dict.fromkeys(kind for kind, *_ in demo.RUNS)
    assert len(kinds) >= 5
    at = [page.index(f"<h2>{kind}</h2>") for kind in kinds]  # one section per kind, in the order of demo.RUNS
    assert at == sorted(at)
    last = page[at[list(kinds).index("Dependency trees")] :].split("</section>")[0]
    assert "<svg" in last
    assert "dependency parser" in last
    args = ["demo", "--strings", "10", "--sentences", "12", "--tol", "0.1", "--report", str(path)]
    assert "certificate" in CliRunner().invoke(main, args).stdout


def test_demo_chains_read_better_than_single_digits():
    options = demo.Options(strings=150, sentences=60, tol=1e-2, jobs=1, seed=1)
    runs = {what: run for _, what, run in demo.RUNS}
    single = runs["a classifier that reads each digit by itself"](options)
    for what in ("a conditional random field", "a max-margin chain"):
        row = runs[what](options)
        assert row.tokens > single.tokens + 0.02
        assert row.wholes > single.wholes
