"""Checkpoints and model files cannot make the library import or call code by name."""

from __future__ import annotations

import importlib
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="as the table of faults")
if sys.platform == "linux":
    from helpers.checkpoint_cases import changed, forge, places, run
    from partwise import CheckpointError
    from tests.faults.checkpoints import saved
    from tests.faults.names import MARK, NAMES, watched


def test_the_watch_sees_imports_and_code():
    with watched() as calls:
        with pytest.raises(ImportError):
            importlib.import_module(MARK)
        with pytest.raises(ImportError):
            eval(f"__import__('{MARK}')")
    assert {call.split()[0] for call in calls} >= {"import", "compile"}
    with pytest.raises(ImportError):
        importlib.import_module(MARK)
    assert len(calls) < 10


@pytest.mark.parametrize("solver", ["eg", "bcfw"])
def test_names_of_code_in_a_checkpoint_are_not_called(solver, tmp_path):
    problem, values, arrays = saved(solver)
    path = tmp_path / "run.ckpt"
    everywhere = [at for at in places(values) if at]
    with watched() as calls:
        for place in everywhere:
            for name in NAMES:
                forge(path, changed(values, place, name), arrays)
                with pytest.raises(CheckpointError):
                    run(problem, solver, path)
    assert not calls
    assert len(everywhere) > 20
