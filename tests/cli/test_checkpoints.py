"""``partwise train --checkpoint``: a run that was killed resumes to the same bits."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

import partwise
from partwise.solvers import Checkpoint

ROUNDS = {"eg": ("log", 60), "lbfgs": ("log", 60), "bcfw": ("hinge", 40), "newton": ("log", 40)}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    "solver", [*list(ROUNDS)[:2], *(pytest.param(name, marks=pytest.mark.slow) for name in list(ROUNDS)[2:])]
)
def test_killed_and_resumed(solver, files, tmp_path, rng):
    loss, passes = ROUNDS[solver]
    whole, parts, folder = tmp_path / "whole.pw", tmp_path / "parts.pw", tmp_path / "state"
    command = [sys.executable, "-W", "ignore", "-m", "partwise", "train", "tag", str(files / "treebank" / "train.txt")]
    command += ["--solver", solver, "--loss", loss, "--tol", "1e-30", "--max-passes", str(passes), "-q"]
    subprocess.run([*command, "-o", str(whole)], check=True, capture_output=True)
    command += ["-o", str(parts), "--checkpoint", str(folder), "--checkpoint-every", "0"]
    killed = 0
    for _ in range(2):
        running = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while running.poll() is None and not (folder / "run.ckpt").exists():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.1) if killed == 0 else rng.uniform(0.5, 1.0))
        killed += running.poll() is None
        running.kill()
        running.communicate()
    assert killed
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected, found = partwise.load(whole), partwise.load(parts)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.result_.passes == expected.result_.passes
    assert sorted(each.name for each in folder.iterdir()) == ["run.ckpt"]


def test_refused(files, tmp_path, cli):
    data, folder = str(files / "treebank" / "train.txt"), tmp_path / "state"
    train = ("train", "tag", data, "-o", str(tmp_path / "m.pw"), "--checkpoint")
    cli(*train, str(folder))
    for arguments, message in (
        ((str(folder), "--C", "3"), "another problem"),
        ((str(folder), "--solver", "lbfgs"), "was written with solver"),
        ((data,), "is no folder for checkpoints"),
        ((str(folder), "--early-stopping", "2", "--dev", data), "--checkpoint cannot be combined"),
        ((str(folder), "--checkpoint-every", "-1"), "--checkpoint-every"),
    ):
        assert message in cli(*train, *arguments, status=2).stderr
    (folder / "run.ckpt").write_bytes(b"x")
    assert "run.ckpt" in cli(*train, str(folder), status=2).stderr


def test_checkpoints_every_few_passes(tmp_path, monkeypatch):
    from partwise.solvers.engine import checkpoint as files

    seen = []
    keep = files.write
    monkeypatch.setattr(files, "write", lambda path, saved: (seen.append(saved.status), keep(path, saved)))
    X, y = [[["a"], ["b"], ["a", "c"]]] * 6, [["A", "B", "A"]] * 3 + [["B", "B", "A"]] * 3
    tagger = partwise.SequenceTagger(solver="eg", tol=0.0, max_passes=20)
    tagger.fit(X, y, checkpoint=Checkpoint(tmp_path / "run.ckpt", every_seconds=1e9, every_passes=5))
    assert 3 <= len(seen) <= 5
    assert seen[-1] is not None
    for wrong in ({"every_passes": 0}, {"every_seconds": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Checkpoint(tmp_path / "x", **wrong)
