"""Checkpoints whose certificate or labellings do not belong to the problem are refused."""

from __future__ import annotations

import pytest

from helpers.checkpoint_cases import forge, parts, run, saved_run
from partwise import CheckpointError


@pytest.mark.parametrize(
    ("solver", "array"), [("lbfgs", "weights"), ("bmrm", "weights"), ("eg", "marginals"), ("cutting-plane", "best")]
)
def test_weights_and_duals_of_another_certificate_are_refused(solver, array, tmp_path):
    problem, path = saved_run(solver, tmp_path)
    values, arrays = parts(path)
    forge(path, values, {**arrays, f"state.{array}": 1.5 * arrays[f"state.{array}"] + 0.1})
    with pytest.raises(CheckpointError, match="are not those of its certificate: the certificate says"):
        run(problem, solver, path)


@pytest.mark.parametrize("solver", ["bcfw", "cpd", "dcd"])
def test_an_invalid_labelling_is_refused(solver, tmp_path):
    problem, path = saved_run(solver, tmp_path)
    values, arrays = parts(path)
    for k in range(0, len(arrays["state.sets.counts"]), 5):
        counts = arrays["state.sets.counts"].copy()
        counts[k] = 7.0
        forge(path, values, {**arrays, "state.sets.counts": counts})
        with pytest.raises(CheckpointError, match="holds no state of this run"):
            run(problem, solver, path)
