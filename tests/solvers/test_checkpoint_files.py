"""Checkpoint files are complete and belong to the run that resumes them, or are refused with one kind of error."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pytest

from helpers.checkpoint_cases import ODD, attempt, changed, forge, parts, places, problem_for, run, saved_run, without
from helpers.small_problems import BARE_COLUMNS, Small
from partwise import CheckpointError, DivergenceError, Problem, available_solvers, solve
from partwise.features import maxent_map, multiclass_map
from partwise.problem.losses import Loss
from partwise.problem.penalties import ElasticNet
from partwise.solvers import Checkpoint
from partwise.solvers.dual.eg import EGState
from partwise.solvers.engine import checkpoint as files
from partwise.solvers.engine.loop import Run
from partwise.solvers.engine.state import BIT_GENERATORS, pack, unpack
from partwise.solvers.online.perceptron import Perceptron
from partwise.solvers.primal.lbfgs import LBFGSState
from partwise.structures import Multiclass

SOLVERS = available_solvers()
pytestmark = BARE_COLUMNS


class TestFiles:
    def test_reading_returns_what_was_written(self, tmp_path):
        _, path = saved_run("eg", tmp_path)
        one = files.read(path)
        files.write(tmp_path / "again", one)
        assert (tmp_path / "again").read_bytes() == path.read_bytes()
        assert one.solver == "eg"
        assert one.status == "max_passes"

    def test_every_damaged_byte_is_noticed(self, tmp_path):
        problem, path = saved_run("cd", tmp_path)
        whole = path.read_bytes()
        for at in range(0, len(whole), 11):
            damaged = bytearray(whole)
            damaged[at] ^= 0x11
            path.write_bytes(damaged)
            with pytest.raises(CheckpointError, match=r"run\.ckpt"):
                files.read(path)
        path.write_bytes(whole)
        run(problem, "cd", path)

    @pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 0.9, 0.999])
    def test_a_file_cut_short_is_refused(self, tmp_path, share):
        problem, path = saved_run("lbfgs", tmp_path)
        whole = path.read_bytes()
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(CheckpointError, match=r"checkpoint|cut off|damaged"):
            run(problem, "lbfgs", path)

    def test_other_files_are_refused(self, tmp_path):
        from safetensors.numpy import save_file

        problem, path = saved_run("lbfgs", tmp_path)
        values, arrays = parts(path)
        save_file({"a": np.zeros(2)}, path)
        with pytest.raises(CheckpointError, match=r"not a checkpoint of this version.*start again"):
            run(problem, "lbfgs", path)
        for other in ({"format": "partwise model"}, {"format_version": "1"}, {"format_version": "99"}):
            forge(path, values, arrays, **other)
            with pytest.raises(CheckpointError, match=r"checkpoint|version"):
                run(problem, "lbfgs", path)
        path.unlink()
        path.mkdir()
        with pytest.raises(CheckpointError, match="not a file"):
            run(problem, "lbfgs", path)

    def test_a_pipe_does_not_hang(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(CheckpointError, match="not a file"):
            run(problem_for("lbfgs"), "lbfgs", tmp_path / "pipe")

    @pytest.mark.parametrize("bad", ["-", "run.gz"])
    def test_invalid_file_names_are_refused(self, bad):
        with pytest.raises(ValueError, match="not a name for a file"):
            Checkpoint(bad)

    def test_a_failed_write_leaves_the_old_file(self, tmp_path, monkeypatch):
        _, path = saved_run("lbfgs", tmp_path)
        before = path.read_bytes()

        def refuse(*args):
            raise OSError("disk full")

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(OSError, match="disk full"):
            files.write(path, files.read(path))
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["run.ckpt"]

    def test_the_error_can_be_sent_to_another_process(self):
        error = pickle.loads(pickle.dumps(CheckpointError("is odd", "x")))
        assert isinstance(error, ValueError)
        assert (str(error), error.path) == ("x: is odd", "x")


class TestStates:
    def fresh(self):
        zeros = np.zeros(2)
        fields = dict.fromkeys(("weights", "plane", "scores", "marginals", "entropies", "duals"), zeros)
        return EGState(**fields, step_sizes=np.ones(2), dual=0.0, best_dual=0.0, rng=np.random.default_rng(4))

    @pytest.mark.parametrize("bits", BIT_GENERATORS)
    def test_a_state_survives_json(self, bits):
        state = self.fresh()
        state.rng = np.random.Generator(BIT_GENERATORS[bits](7))
        state.rng.normal(size=3)
        state.dual, state.best_dual, state.epoch = np.float64(0.1), -np.inf, 3
        arrays, scalars = pack(state)
        copy = unpack(self.fresh(), arrays, json.loads(json.dumps(scalars)))
        assert (copy.dual, copy.best_dual, copy.epoch) == (0.1, -np.inf, 3)
        assert copy.rng.random() == state.rng.random()
        copy.weights += 1.0  # the copy has arrays of its own, which can be written to

    def test_states_of_other_kinds_are_refused(self):
        arrays, scalars = pack(self.fresh())
        other = LBFGSState.__new__(LBFGSState)
        with pytest.raises(ValueError, match="fields"):
            unpack(other, arrays, scalars)

    @pytest.mark.parametrize("name", ["default_rng", "seed", "bytes", "RandomState", "Generator", "get_state", "x", ""])
    def test_names_in_a_file_are_not_called(self, name):
        arrays, scalars = pack(self.fresh())
        scalars["rng"]["generator"]["bit_generator"] = name
        with pytest.raises(ValueError, match="generator"):
            unpack(self.fresh(), arrays, scalars)


class TestIdentity:
    """A checkpoint is accepted only for the problem that it was written for."""

    def refused(self, problem, path, match):
        with pytest.raises(CheckpointError, match=f"run.ckpt: was written for another problem .*{match}"):
            run(problem, "lbfgs", path)

    def test_penalties_are_compared_exactly(self, tmp_path):
        problem, path = saved_run("lbfgs", tmp_path)
        run(problem.with_penalty(1e-10), "lbfgs", tmp_path / "small", max_passes=3)
        for l2 in (9e-9, 0.0, np.nextafter(1e-10, 1)):
            with pytest.raises(CheckpointError, match=r"another problem .*l2"):
                run(problem.with_penalty(l2), "lbfgs", tmp_path / "small")
        self.refused(problem.with_penalty(np.nextafter(0.05, 1)), path, "l2")

    def test_l1_is_compared_exactly(self, tmp_path):
        problem = problem_for("cd-l1")
        run(problem.with_penalty(ElasticNet(1e-10, 0.1)), "cd-l1", tmp_path / "run", max_passes=3)
        with pytest.raises(CheckpointError, match="l1"):
            run(problem.with_penalty(ElasticNet(2e-10, 0.1)), "cd-l1", tmp_path / "run")

    def test_data(self, tmp_path, rng):
        path = tmp_path / "run.ckpt"
        x, labels, omega = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), rng.uniform(0.5, 2, 40)

        def made(x=x, labels=labels, omega=omega, loss="softmax-margin", cost=None, mask=None):
            x, labels, omega = map(np.ascontiguousarray, (x, labels, omega))
            structure = Multiclass(len(labels), 3)
            if mask is not None:
                structure.set_mask(5, np.array(mask, dtype=np.uint8))
            features, gold = multiclass_map(structure, x), structure.encode(labels)
            return Problem(features, structure, gold, loss, 0.1, sample_weight=omega, cost=cost)

        run(made(), "lbfgs", path, max_passes=3)
        run(made(), "lbfgs", path, max_passes=4)  # the same problem, made a second time
        order = np.arange(40)
        order[[3, 17]] = order[[17, 3]]
        self.refused(made(x[order], labels[order], omega[order]), path, "example 3 differs")
        self.refused(made(x[::-1], labels[::-1], omega[::-1]), path, "example")
        self.refused(made(omega=omega[order]), path, "example 3 differs")
        self.refused(made(labels=np.where(order == 9, (labels + 1) % 3, labels)), path, "example 9 differs")
        changed = x.copy()
        changed[11, 2] += 1e-9
        self.refused(made(changed), path, "example 11 differs")
        self.refused(made(x[:-1], labels[:-1], omega[:-1]), path, "n_examples")
        self.refused(made(loss=Loss("softmax-margin", 1.0, 1.0 + 1e-15)), path, "cost_scale")
        self.refused(made(loss="smoothed-hinge"), path, "temperature")
        cost = made().sums.slot_costs()
        cost[4 * 7 + (labels[7] + 1) % 3] += 0.5
        self.refused(made(cost=cost), path, "example 7 differs")
        allowed = np.ones(4)
        allowed[(labels[5] + 1) % 3] = 0
        self.refused(made(mask=allowed), path, "example 5 differs")

    def test_the_number_of_threads_does_not_matter(self, tmp_path):
        problem, path = saved_run("lbfgs", tmp_path)
        run(problem.with_n_jobs(2), "lbfgs", path)


@pytest.mark.parametrize("solver", SOLVERS)
def test_forged_values(solver, tmp_path, monkeypatch):
    """Every field is removed, or replaced by odd values, and the digest is recomputed."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    problem, path = saved_run(solver, tmp_path)
    values, arrays = parts(path)
    for number, at in enumerate(places(values)):
        # all odd values at the top and in the state's numbers, a few elsewhere
        chosen = ODD if len(at) <= 1 else [ODD[(number + k) % len(ODD)] for k in range(0, len(ODD), 6)]
        for odd in ([] if not at else [changed]) + chosen:
            forge(path, changed(values, at, odd), arrays)
            attempt(problem, solver, path)
    forge(path, values, arrays)
    # block-dual: a forged checkpoint that was accepted has changed the files
    assert attempt(problem, solver, path) or solver == "block-dual"


@pytest.mark.parametrize("solver", SOLVERS)
def test_forged_arrays(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    problem, path = saved_run(solver, tmp_path)
    values, arrays = parts(path)
    for name, array in arrays.items():
        others = [None, array[:-1], array.reshape(-1), array.reshape(1, -1), array.astype(np.float32)]
        others += [array.astype(np.uint8), np.append(array, array[:1])]
        for number in (-1, 0, 1, 7, 2**40, -(2**40), np.nan, np.inf, 1e300, -1e300):
            fits = array.dtype.kind == "f" or (np.isfinite(number) and abs(number) < 2**62)
            if array.size and fits and (array.dtype != np.uint8 or 0 <= number < 256):
                one = array.copy()
                one.reshape(-1)[0] = number
                others += [one, np.full_like(array, number)]
        for other in others:
            forge(path, values, arrays | {name: other} if other is not None else without(arrays, name))
            attempt(problem, solver, path)
    forge(path, values, arrays | {"state.extra": np.zeros(2)})
    assert not attempt(problem, solver, path)
    forge(path, values, arrays | {"extra": np.zeros(2)})
    assert not attempt(problem, solver, path)


@pytest.mark.parametrize(
    ("solver", "name", "number"),
    [
        ("perceptron", "state.weights", 1e300),
        ("excessive-gap", "state.q_u", 1e300),
        ("bmrm", "state.planes.values", 2**40),
    ],
)
def test_a_state_that_diverges_at_once_is_refused(solver, name, number, tmp_path):
    """A checkpoint whose state diverges at once gives a CheckpointError, not a DivergenceError that blames the data."""
    problem, path = saved_run(solver, tmp_path)
    values, arrays = parts(path)
    array = arrays[name].copy()
    array.reshape(-1)[0] = number
    forge(path, values, arrays | {name: array})
    with np.errstate(all="ignore"), pytest.raises(CheckpointError, match="holds no state of this run"):
        run(problem, solver, path)


def test_a_later_divergence_does_not_blame_the_checkpoint(tmp_path, monkeypatch):
    problem, path = saved_run("perceptron", tmp_path)
    steps, step = [], Perceptron.step

    def astray(self, problem, state):
        steps.append(state)
        step(self, problem, state)
        if len(steps) == 3:
            raise DivergenceError("astray")

    monkeypatch.setattr(Perceptron, "step", astray)
    with pytest.raises(DivergenceError, match="astray"):
        run(problem, "perceptron", path, max_passes=20)


def test_forged_headers(tmp_path):
    problem, path = saved_run("cd", tmp_path)
    _, arrays = parts(path)
    deep = "[" * 100_000
    for text in (" ", "null", "[]", "{", deep, '{"solver": NaN}', '{"solver": "cd", "solver": "cd"}'):
        forge(path, {}, arrays, text=text)
        assert not attempt(problem, "cd", path)


def test_a_maxent_checkpoint_is_refused_for_permuted_attributes(tmp_path, rng):
    """Permuted attributes give the same scores from other weights, so the checkpoint belongs to another problem."""
    x, labels = np.abs(rng.normal(size=(20, 2))), rng.integers(0, 2, 20)
    structure = Multiclass(20, 2)
    gold = structure.encode(labels)
    run(Problem(maxent_map(structure, x), structure, gold, "log", 0.1), "cd", tmp_path / "run", max_passes=2)
    with pytest.raises(CheckpointError, match="another problem"):
        run(Problem(maxent_map(structure, x[:, ::-1].copy()), structure, gold, "log", 0.1), "cd", tmp_path / "run")


class Killed(Exception):
    pass


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "sdca"])
def test_killed_between_the_last_step_and_the_end(solver, tmp_path, monkeypatch):
    """A run that had converged when its last checkpoint was written makes no further step after it is resumed."""
    problem = Small("multiclass", "log", l2=0.5).problem
    options = {"tol": 1e-6, "random_state": 0}
    whole = solve(problem, solver, **options)
    assert whole.status == "converged"

    def kill(self, state, status, latest):
        raise Killed

    every = Checkpoint(tmp_path / "c", every_passes=1e-9)
    with monkeypatch.context() as patch:
        patch.setattr(Run, "_conclude", kill)
        with pytest.raises(Killed):
            solve(problem, solver, **options, checkpoint=every)
    resumed = solve(problem, solver, **options, checkpoint=every)
    assert resumed.passes == whole.passes
    np.testing.assert_array_equal(resumed.weights, whole.weights)
