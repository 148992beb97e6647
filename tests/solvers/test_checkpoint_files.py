"""Checkpoint files: whole or refused."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from partwise.solvers import checkpoint as files
from partwise.solvers.eg import EGState
from partwise.solvers.lbfgs import LBFGSState
from partwise.solvers.state import pack, unpack

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "empty": np.zeros(0), "ints": np.arange(4)}
VALUES = {"text": "é", "number": 0.1, "large": 2**100, "inf": float("inf"), "none": None, "list": [1.5, 2.5]}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "x"
    files.write(path, ARRAYS, VALUES)
    arrays, values = files.read(path)
    assert values == VALUES
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
        assert arrays[name].dtype == array.dtype


def test_every_damaged_byte_is_noticed(tmp_path):
    path = tmp_path / "x"
    files.write(path, ARRAYS, VALUES)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0x11
        path.write_bytes(damaged)
        try:
            arrays, values = files.read(path)
        except (ValueError, json.JSONDecodeError):
            continue
        # Bytes that carry nothing (padding of the header) may change.
        assert values == VALUES
        assert all(np.array_equal(arrays[name], array) for name, array in ARRAYS.items())
        assert whole[at : at + 1] in (b" ", b"_")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_cut_short_is_refused(tmp_path, share):
    path = tmp_path / "x"
    files.write(path, ARRAYS, VALUES)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="not a checkpoint"):
        files.read(path)


def test_other_safetensors_files_are_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.zeros(2)}, tmp_path / "x")
    with pytest.raises(ValueError, match="not a checkpoint of this version"):
        files.read(tmp_path / "x")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    files.write(path, ARRAYS, VALUES)

    def refuse(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="disk full"):
        files.write(path, {}, {})
    monkeypatch.undo()
    assert files.read(path)[1] == VALUES
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


def test_a_state_survives_json():
    rng = np.random.default_rng(4)
    rng.normal(size=3)
    zeros = np.zeros(2)
    fields = dict.fromkeys(("weights", "scores", "marginals", "entropies", "step_sizes", "duals"), zeros)
    state = EGState(**fields, dual=np.float64(0.1), best_dual=-np.inf, rng=rng, epoch=3)
    arrays, scalars = pack(state)
    copy = unpack(EGState, arrays, json.loads(json.dumps(scalars)))
    assert (copy.dual, copy.best_dual, copy.epoch) == (0.1, -np.inf, 3)
    assert copy.rng.random() == rng.random()
    with pytest.raises(ValueError, match="fields"):
        unpack(LBFGSState, arrays, scalars)
