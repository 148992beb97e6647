"""The benchmark of rates: orders of known curves, and a small run that writes its page."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.rates import MEASURED, ORDERS, STATED, Curve
from partwise import available_solvers
from partwise.solvers.engine.base import RATES


def curve(rate: str, errors, passes=None) -> Curve:
    passes = np.arange(1.0, len(errors) + 1) if passes is None else passes
    made = Curve(
        "made up", "solver", rate, "", "gap", passes, 100.0 + 100.0 * np.asarray(errors), np.full(len(errors), 100.0)
    )
    made.measure(100.0, 0.0)
    return made


k = np.arange(1.0, 3000.0)


@pytest.mark.parametrize(
    ("rate", "errors", "q", "verdict"),
    [
        ("sublinear", 1 / k, 1.0, "as stated"),
        ("sublinear", k**-0.5, 2.0, "slower, as far as it went"),
        ("sublinear", k**-2.0, 0.5, "faster"),
        ("accelerated", k**-2.0, 0.5, "as stated"),
        ("accelerated", 1 / k, 1.0, "slower, as far as it went"),
        ("linear", 0.9**k, 0.06, "as stated"),
        ("linear", 1 / k, 1.0, "slower, as far as it went"),
        ("linear", np.full(3000, 0.5), None, "too slow to tell"),
    ],
)
def test_orders(rate, errors, q, verdict):
    found = curve(rate, errors)
    assert found.verdict() == verdict
    if q is None:
        assert found.exponent() is None
    else:
        assert found.exponent()[0] == pytest.approx(q, abs=0.04)


def test_passes_to_an_accuracy():
    found = curve("sublinear", [0.5, 0.2, 0.3, 0.04], np.array([2.0, 4.0, 6.0, 8.0]))
    assert [found.passes_to(e) for e in (0.5, 0.3, 0.2, 0.1, 0.01)] == [2.0, 4.0, 4.0, 8.0, None]
    found.floor = 0.1
    assert found.passes_to(0.05) is None


def test_every_rate_and_solver_is_known():
    assert set(STATED) | {"none"} == set(RATES)
    assert {*ORDERS, *(name for names in MEASURED.values() for name in names)} <= set(available_solvers())


def test_a_small_run_writes_its_page(tmp_path):
    page = tmp_path / "rates.md"
    done = CliRunner().invoke(main, ["rates", "--page", str(page), "--sentences", "3", "--cap", "6"])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    for name in set(available_solvers()) - {"perceptron", "mira"}:
        assert f"| `{name}` | " in text
    assert "NaN" not in text
    assert " nan " not in text
    # no run takes longer than its bound
    table = text.split("## Bounds with their constants")[1].split("## Theorems as tests")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")][1:]
    ratios = [float(row[-1]) for row in rows if row[-1].strip()]
    assert len(ratios) >= 4
    assert min(ratios) >= 1.0
    assert (tmp_path / "rates.png").stat().st_size > 20_000
