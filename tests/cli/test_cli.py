"""The command line: version, help, and the demo's promises."""

import importlib.metadata
import subprocess
import sys

import pytest
from click.testing import CliRunner

from partwise.cli import COMMANDS, main
from partwise.cli.demo import run


def test_help_lists_the_commands():
    answer = CliRunner().invoke(main, ["--help"])
    assert answer.exit_code == 0
    assert all(name in answer.output for name in COMMANDS)


def test_help_is_quick():
    """The group alone imports neither scikit-learn nor the core."""
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


def test_demo_prints_a_certificate_for_each_model():
    answer = CliRunner().invoke(main, ["demo", "--strings", "40", "--tol", "1e-2"])
    assert answer.exit_code == 0, answer.output
    for name in ("digit by digit", "CRF", "max-margin"):
        row = next(line for line in answer.output.splitlines() if name in line)
        *_, primal, dual, gap, _, _ = row.split()
        assert float(dual) <= float(primal)
        assert float(gap) <= 1e-2


def test_demo_chains_read_better_than_single_digits():
    single, crf, margin = run(strings=150, seed=1, tol=1e-2, jobs=1)
    assert min(crf.digits_right, margin.digits_right) > single.digits_right + 0.02
    assert min(crf.strings_right, margin.strings_right) > single.strings_right
    for row in (single, crf, margin):
        assert 0 <= row.result.gap <= 1e-2 * row.result.primal
