"""`block-dual`, which applies dual methods to one batch at a time: optima, a dual that never falls, damaged files."""

from __future__ import annotations

import gc
import os
import shutil
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.partition_cases import CASES
from helpers.small_problems import Small
from oracles.cocoa_reference import CocoaPlus
from oracles.objective import LOSSES
from partwise import CheckpointError, ConvergenceWarning, PartitionError, Problem, solve
from partwise.features import maxent_map
from partwise.out_of_core import block_dual, partitions
from partwise.out_of_core.block_dual import FIRST_POWER
from partwise.out_of_core.block_files import Block, read_block, write_block
from partwise.out_of_core.block_walks import Past
from partwise.out_of_core.partitions.executor import Plan
from partwise.problem import Batch, LabelledBatch
from partwise.solvers import BlockDual, Checkpoint, get_solver
from partwise.solvers.engine import checkpoint as checkpoint_files
from partwise.structures import Multiclass

#: Inner solvers, each with a loss that it fits.
INNER = [
    ("eg", "log"),
    ("eg", "hinge"),
    ("eg-prox", "log"),
    ("eg-prox", "smoothed-hinge"),
    ("sdca", "log"),
    ("bcfw", "hinge"),
    ("bcfw", "squared-hinge"),
    ("dcd", "squared-hinge"),
    ("dcd-light", "squared-hinge"),
    ("cpd", "squared-hinge"),
]


@pytest.fixture(params=["names-weights", "rows"])
def folder(request, tmp_path, monkeypatch):
    """A partition whose batches are read again for every use, and the case that it was made from."""
    case = CASES[request.param]
    found = partitions.write(
        tmp_path / "dir", case.make(), case.blocks(), batch_size=8000 if request.param == "names-weights" else 4000
    )
    assert found.n_batches == 4
    monkeypatch.setattr("partwise.out_of_core.partitions.folder.plan", lambda *_: Plan(frozenset({0}), False))
    return found


def case_of(folder):
    return CASES["rows" if "Maxent" in type(folder.estimator()).__name__ else "names-weights"]


def problem_of(folder, loss: str = "log", l2: float = 30.0) -> Problem:
    batches = folder.batches()
    return Problem.of(batches, loss, l2, executor=folder.executor(batches))


def several(loss: str = "log", n: int = 40, parts: int = 4, l2: float = 0.1) -> Problem:
    """Make a problem of single labels, in batches whose examples share all features."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 6)) + 2.0
    labels = rng.integers(3, size=n)
    batches = []
    for rows in np.array_split(np.arange(n), parts):
        structure = Multiclass(len(rows), 3)
        features = maxent_map(structure, x[rows])
        batches.append(LabelledBatch(Batch(structure, features), structure.encode(labels[rows])))
    return Problem.of(batches, loss, l2)


def left(folder) -> list[str]:
    return [name for name in os.listdir(folder.folder) if name.startswith("duals-")]


@pytest.mark.parametrize(("solver", "loss"), INNER)
def test_files_give_the_result_of_batches_in_memory(solver, loss, folder):
    case = case_of(folder)
    tol = 0.2 if (solver, loss) == ("eg", "hinge") else 1e-2
    fitted = case.make(solver=solver, loss=loss, tol=tol, max_passes=300, C=0.03).fit(folder)
    result = fitted.result_
    assert (result.status, result.solver) == ("converged", "block-dual")
    expected = case.fitted(solver=solver, loss=loss, tol=tol, max_passes=300, C=0.03).result_
    assert abs(result.primal - expected.primal) <= max(result.gap, expected.gap) + 1e-9
    assert result.dual <= expected.primal + 1e-9
    assert expected.dual <= result.primal + 1e-9
    del fitted, result
    assert not left(folder)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["chain-tied", "multiclass"])
def test_each_certificate_is_the_enumerated_one(kind, loss):
    """With one example per batch, every sum combines files; certificates equal those of the enumerated problem."""
    small = Small(kind, loss, n=6)
    parts = []
    for i in range(6):
        weight = np.where(np.arange(6) == i, small.case.sample_weight, 0.0)
        parts.append(LabelledBatch(Batch(small.structure, small.case.features), small.case.gold, weight))
    problem = Problem.of(parts, small.loss, 0.7)
    method = BlockDual(check_every=1)
    state = method.init_state(problem, np.random.default_rng(0), None)
    for _ in range(4):
        certified = method.certificate(problem, state)
        assert certified.certificate.primal == pytest.approx(small.dense.primal(certified.weights), rel=1e-10)
        assert certified.certificate.dual <= certified.certificate.primal + 1e-10
        assert problem.dual_value(certified.point) == pytest.approx(certified.certificate.dual, abs=1e-9)
        np.testing.assert_allclose(state.plane, certified.point.u, atol=1e-9)
        method.step(problem, state)
    tol = 1e-3 if small.loss.smooth else 1e-1
    result = solve(problem, method, tol=tol, max_passes=300)
    assert result.status == "converged"


def test_one_group_needs_the_passes_of_the_solver_in_memory():
    """With one group, `block-dual` needs about as many passes as the inner solver on the whole problem in memory."""
    problem = several("log", n=60, parts=3, l2=20.0)
    here, blocks = (solve(problem, solver, tol=1e-2) for solver in ("eg", BlockDual(inner="eg")))
    assert blocks.status == here.status == "converged"
    assert blocks.passes < 1.5 * here.passes + 5


@pytest.mark.parametrize(
    ("inner", "loss"), [("eg", "log"), ("sdca", "log"), ("bcfw", "hinge"), ("dcd", "squared-hinge")]
)
@pytest.mark.parametrize("groups", [2, 4])
def test_the_dual_never_falls(inner, loss, groups):
    """scaling=1 adds all changes in full. They overshoot, as examples share features, so steps are repeated."""
    problem = several(loss)
    method = BlockDual(inner=inner, groups=groups, passes=3, scaling=1.0)
    state = method.init_state(problem, np.random.default_rng(0), None)
    duals = [0.0]
    for _ in range(12):
        method.step(problem, state)
        duals.append(method.certificate(problem, state).certificate.dual)
    assert np.diff(duals).min() >= -1e-10 * (1 + abs(duals[-1]))
    assert state.scaling <= groups
    if groups == 4:
        assert state.repeated >= 1  # at least one step was repeated, otherwise nothing was tested


def test_without_repetition_the_dual_falls(monkeypatch):
    """The previous test can fail: if steps are not repeated, the dual falls."""
    monkeypatch.setattr("partwise.out_of_core.block_dual.ROUNDING", 1e300)
    with pytest.raises(AssertionError):
        test_the_dual_never_falls("sdca", "log", 4)


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_the_iterates_are_those_of_cocoa_plus(groups):
    """The iterates equal those of CoCoA+ in NumPy (K groups, sigma' = K, changes added); Lemma 4 bounds the gain."""
    n, parts, l2, n_labels = 30, 6, 0.5, 3
    problem = several("log", n=n, parts=parts, l2=l2)
    settings = '{"order": "cyclic", "skip": 0.0, "start": "uniform"}'
    method = BlockDual(inner="sdca", settings=settings, groups=groups, order="cyclic", scaling=float(groups))
    state = method.init_state(problem, np.random.default_rng(0), None)
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(n, 6)) + 2.0, rng.integers(3, size=n)
    batches = [rows.tolist() for rows in np.array_split(np.arange(n), parts)]
    machines = [[batches[k] for k in own] for own in np.array_split(np.arange(parts), groups)]
    reference = CocoaPlus(x, labels, n_labels, l2, machines)
    for round_ in range(6):
        before = reference.dual()
        gains = reference.round(float(groups))
        # The first visits begin at uniform distributions, so the gain of round 0 may be negative
        assert min(gains) > 0 or round_ == 0
        assert reference.dual() - before >= sum(gains) - 1e-9  # Lemma 4: sigma' = K is safe
        method.step(problem, state)
        found = state.weights.reshape(x.shape[1], -1)[:, :n_labels]
        np.testing.assert_allclose(found, reference.w, rtol=1e-7, atol=1e-9)
        assert method.certificate(problem, state).certificate.dual == pytest.approx(reference.dual(), rel=1e-9)
    assert (state.scaling, state.repeated) == (groups, 0)


def test_each_round_visits_batches_in_a_new_order():
    walk = SimpleNamespace(visits=[None] * 20, group=1)
    other = SimpleNamespace(visits=[None] * 20, group=2)
    nothing = np.zeros(0)
    orders = [Past(attempt, nothing, 1.0, 1, seed=5).order(each) for attempt in (1, 2) for each in (walk, other)]
    assert len({tuple(order) for order in orders}) == 4
    assert all(sorted(order) == list(range(20)) for order in orders)
    assert Past(1, nothing, 1.0, 1, seed=5).order(walk) == orders[0]
    assert Past(1, nothing, 1.0, 1).order(walk) == list(range(20))
    with pytest.raises(ValueError, match="order must be permuted or cyclic, got 'random'"):
        BlockDual(order="random")


@pytest.mark.parametrize("groups", [1, 3])
def test_the_reported_gain_is_the_rise_of_the_dual(groups):
    problem = several("log")
    method = BlockDual(inner="sdca", groups=groups, scaling=float(groups))
    state = method.init_state(problem, np.random.default_rng(0), None)
    for _ in range(3):
        before = method.certificate(problem, state).certificate.dual
        method.step(problem, state)
        after = method.certificate(problem, state).certificate.dual
        assert after > before
    assert problem.dual_of_weights(state.weights, 0.0) == pytest.approx(-problem.half_square(state.plane), rel=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
def test_all_numbers_of_groups_reach_one_optimum(groups, folder):
    problem = problem_of(folder)
    result = solve(problem, BlockDual(groups=groups), tol=1e-3)
    other = solve(problem, "lbfgs", tol=1e-4)
    assert result.status == "converged"
    assert abs(result.primal - other.primal) <= max(result.gap, other.gap)


@pytest.mark.parametrize(
    ("inner", "loss"), [("eg-prox", "log"), ("bcfw", "hinge"), ("dcd", "squared-hinge"), ("sdca", "log")]
)
@pytest.mark.parametrize("groups", [1, 2])
def test_a_resumed_run_gives_the_same_bits(inner, loss, groups, folder, tmp_path):
    problem = problem_of(folder, loss)
    method = BlockDual(inner=inner, groups=groups, check_every=2)
    options = {"tol": 0.0, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = solve(problem, method, max_passes=9, **options)
        path = tmp_path / "run.ckpt"
        for passes in (2, 5, 9):
            part = solve(problem_of(folder, loss), method, max_passes=passes, checkpoint=path, **options)
    np.testing.assert_array_equal(part.weights, whole.weights)
    assert (part.gap, part.passes) == (whole.gap, whole.passes)
    assert len(left(folder)) == 1  # the files of the checkpoint


def test_a_run_that_dies_after_its_checkpoint(folder, tmp_path):
    """The resumed run repeats the steps after the checkpoint, and the files of these steps do not disturb it."""
    problem, path = problem_of(folder), tmp_path / "run.ckpt"
    method = BlockDual(check_every=3)

    class Died(Exception):
        pass

    def die(progress):
        if progress.epoch == 3:
            raise Died

    with pytest.raises(Died):
        solve(problem, method, tol=1e-5, checkpoint=Checkpoint(path, 1e9, every_passes=1.5), callback=die)
    assert path.exists()
    (name,) = left(folder)
    numbers = {int(file.split("-")[0]) for file in os.listdir(os.path.join(folder.folder, name))}
    assert len(numbers) == folder.n_batches
    resumed = solve(problem_of(folder), method, tol=1e-5, checkpoint=path)
    whole = solve(problem_of(folder), method, tol=1e-5)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert len(os.listdir(os.path.join(folder.folder, name))) == folder.n_batches


def test_a_warm_start_begins_near_the_end(folder):
    problem = problem_of(folder)
    first = solve(problem, "block-dual", tol=1e-3)
    again = solve(problem, "block-dual", tol=1e-3, warm_start=first)
    assert again.passes < 0.6 * first.passes + 1
    anew, cold = (solve(problem_of(folder, "hinge"), "block-dual", tol=0.1, warm_start=one) for one in (first, None))
    np.testing.assert_array_equal(anew.weights, cold.weights)


class TestDamage:
    @pytest.fixture
    def stopped(self, folder, tmp_path):
        path = tmp_path / "run.ckpt"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solve(problem_of(folder), BlockDual(), tol=0.0, max_passes=2, checkpoint=path)
        (name,) = left(folder)
        inside = os.path.join(folder.folder, name)
        return folder, path, [os.path.join(inside, file) for file in sorted(os.listdir(inside))]

    def resume(self, folder, path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return solve(problem_of(folder), BlockDual(), tol=0.0, max_passes=4, checkpoint=path)

    def test_whole(self, stopped):
        folder, path, _ = stopped
        assert self.resume(folder, path).passes >= 4

    def test_missing(self, stopped):
        folder, path, files = stopped
        os.remove(files[1])
        with pytest.raises(CheckpointError, match=r"000001-00000.*is missing"):
            self.resume(folder, path)

    def test_cut_and_flipped(self, stopped, rng):
        folder, path, files = stopped
        with open(files[0], "rb") as file:
            data = file.read()
        for trial in range(18):
            broken = bytearray(data)
            at = int(rng.integers(len(data)))
            if trial % 3 == 0:
                broken = broken[:at]
            elif trial % 3 == 1:
                broken[at] ^= int(rng.integers(1, 256))
            else:
                broken[at : at + 16] = rng.bytes(16)
            if bytes(broken) == data:
                continue
            with open(files[0], "wb") as file:
                file.write(broken)
            with pytest.raises(CheckpointError, match="000000-"):
                self.resume(folder, path)

    @pytest.mark.parametrize("header", [b"[]      ", b"null    "])
    def test_headers_that_are_not_json_objects(self, header, tmp_path):
        path = tmp_path / "block.pwd"
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        with pytest.raises(PartitionError, match="is not a file of dual blocks"):
            read_block(str(path), b"", get_solver("eg"), 1, 1)
        path.write_bytes(b"")
        with pytest.raises(PartitionError, match="is cut off"):
            read_block(str(path), b"", get_solver("eg"), 1, 1)

    def test_exchanged(self, stopped):
        folder, path, files = stopped
        os.replace(files[0], files[1])
        with pytest.raises(CheckpointError):
            self.resume(folder, path)

    def test_damage_during_a_run(self, folder):
        problem = problem_of(folder)

        def damage(progress):
            (name,) = left(folder)
            inside = os.path.join(folder.folder, name)
            with open(os.path.join(inside, sorted(os.listdir(inside))[0]), "r+b") as file:
                file.seek(-9, 2)
                file.write(b"!")

        def run() -> str:
            try:
                solve(problem, BlockDual(), tol=1e-9, callback=damage)
            except PartitionError as error:
                return str(error)
            return ""

        assert "is damaged" in run()
        gc.collect()  # the traceback referred to the state
        assert not left(folder)

    def test_planes_that_contradict_the_dual_variables_are_refused(self, stopped):
        """Planes are changed and digests recomputed: first the state's plane, then a block's."""
        folder, path, files = stopped
        saved = checkpoint_files.read(path)
        checkpoint_files.write(path, replace(saved, arrays={**saved.arrays, "plane": saved.arrays["plane"] + 1.0}))
        with pytest.raises(CheckpointError, match="its plane is not that of its dual variables"):
            self.resume(folder, path)
        inner = BlockDual().form(problem_of(folder)).inner
        digest = saved.arrays["digests"][0].tobytes()
        block = read_block(files[0], digest, inner, folder.manifest.sizes[0].n_examples, folder.n_weights)
        digests = saved.arrays["digests"].copy()
        forged = write_block(files[0], inner, Block(block.state, block.plane + 1.0))
        digests[0] = np.frombuffer(forged, dtype=np.uint8)
        checkpoint_files.write(path, replace(saved, arrays={**saved.arrays, "digests": digests}))
        with pytest.raises(CheckpointError, match=r"000000-.*has a plane that is not that"):
            self.resume(folder, path)

    def test_a_copied_checkpoint_is_refused_after_its_run_continued(self, stopped, tmp_path):
        folder, path, _ = stopped
        shutil.copy(path, tmp_path / "copy.ckpt")
        self.resume(folder, path)
        with pytest.raises(CheckpointError, match="a copy of a checkpoint is of no use once the run has gone on"):
            self.resume(folder, tmp_path / "copy.ckpt")


def test_files_of_batches_in_memory_lie_beside_the_checkpoint(tmp_path, monkeypatch):
    """Dual variables lie beside the checkpoint, so that its folder can be moved, and no temporary file is left."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    options = {"tol": 0.0, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        whole = solve(several(), BlockDual(groups=2), max_passes=25, **options)
        (tmp_path / "here").mkdir()
        solve(several(), BlockDual(groups=2), max_passes=13, checkpoint=tmp_path / "here" / "run.ckpt", **options)
        assert sorted(os.listdir(tmp_path / "here"))[0].startswith("duals-")
        (tmp_path / "here").rename(tmp_path / "there")
        path = tmp_path / "there" / "run.ckpt"
        resumed = solve(several(), BlockDual(groups=2), max_passes=25, checkpoint=path, **options)
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    gc.collect()
    assert not os.listdir(tmp_path / "temporary")


def test_obsolete_files_are_overwritten(folder, tmp_path):
    """If memory is limited, every round writes. Each batch then has two files in turn, with the bytes of new files."""
    problem, method = problem_of(folder), BlockDual()
    state, seen = method.init_state(problem, np.random.default_rng(0), None), []
    for _ in range(4):
        method.step(problem, state)
        (name,) = left(folder)
        seen.append({file.name: file.stat().st_ino for file in (Path(folder.folder) / name).iterdir()})
    if not problem.sums.executor.roomy:
        assert [len(files) for files in seen] == [folder.n_batches, *[2 * folder.n_batches] * 3]
        assert set(seen[3].values()) == set(seen[1].values())  # the same two files in turn
    inner = method.form(problem).inner
    part = Problem.on(next(problem.sums.executor.opened(problem.sums.references, problem.loss)), 1.0)
    made = inner.init_state(part, np.random.default_rng(0), None)
    block = Block(made, np.zeros(problem.n_weights))
    new, over, spare = (str(tmp_path / name) for name in ("new", "over", "spare"))
    Path(spare).write_bytes(bytes(10**6))
    digests = [write_block(new, inner, block), write_block(over, inner, block, spare)]
    assert digests[0] == digests[1]
    assert Path(new).read_bytes() == Path(over).read_bytes()
    assert not os.path.exists(spare)
    assert write_block(over, inner, block, spare) == digests[0]  # the spare file no longer exists


def test_two_runs_on_one_folder(folder):
    """Two runs on one partition use files of their own, and have the bits of a single run."""
    alone = [solve(problem_of(folder, loss), BlockDual(), tol=0.02) for loss in ("log", "hinge")]
    found = {}

    def other(progress):
        if progress.epoch == 2:
            found["inner"] = solve(problem_of(folder, "hinge"), BlockDual(), tol=0.02)

    outer = solve(problem_of(folder), BlockDual(), tol=0.02, callback=other)
    np.testing.assert_array_equal(outer.weights, alone[0].weights)
    np.testing.assert_array_equal(found["inner"].weights, alone[1].weights)


def test_a_full_disk(folder, tmp_path, monkeypatch):
    """On a full disk the error names the file, no half-written file is left, and the checkpoint can be resumed."""
    problem, path = problem_of(folder), tmp_path / "run.ckpt"
    method = BlockDual(check_every=3)
    real, calls = os.replace, []

    def replace(source, target):
        if str(target).endswith(".pwd"):
            calls.append(target)
            if len(calls) > 2 * folder.n_batches:
                raise OSError(28, "No space left on device", str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="No space left"):
        solve(problem, method, tol=1e-2, checkpoint=Checkpoint(path, every_seconds=0.0))
    monkeypatch.setattr(os, "replace", real)
    (name,) = left(folder)
    assert not [file for file in os.listdir(os.path.join(folder.folder, name)) if file.endswith(".tmp")]
    resumed = solve(problem_of(folder), method, tol=1e-2, checkpoint=path)
    np.testing.assert_array_equal(resumed.weights, solve(problem_of(folder), method, tol=1e-2).weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passes": 0}, "passes must be an integer of at least 1"),
        ({"groups": -1}, "groups must be an integer of at least 0"),
        ({"scaling": "much"}, "scaling must be auto or a number"),
        ({"scaling": 0.5}, "scaling must be at least 1"),
        ({"inner": "lbfgs"}, "cannot work on blocks; eg, bcfw, eg-prox"),
        ({"inner": "nobody"}, "unknown solver 'nobody'"),
        ({"inner": "eg", "settings": "{"}, "settings are not JSON"),
        ({"inner": "eg", "settings": "[1]"}, "must be a JSON object"),
        ({"inner": "eg", "settings": '{"anneal": 10}'}, "cannot work on blocks"),
        ({"settings": "{}"}, "inner solver that is named"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        BlockDual(**options)


def test_an_unsuitable_inner_solver_is_refused():
    with pytest.raises(ValueError, match="inner solver 'bcfw' needs temperature 0"):
        solve(several(), BlockDual(inner="bcfw"))
    with pytest.raises(TypeError, match="no option nothing"):
        BlockDual(inner="eg", settings='{"nothing": 1}')


@pytest.mark.parametrize("groups", [1, 2])
def test_lost_blocks_are_recomputed(groups, monkeypatch):
    """Blocks stay in memory where there is room. If a process has lost them, it recomputes the same bits."""
    from partwise.out_of_core import block_walks

    monkeypatch.setattr(block_dual, "SECONDS", 0.0)

    problem = several("log", l2=5.0)
    method = BlockDual(inner="eg", groups=groups)
    kept, lost = (method.init_state(problem, np.random.default_rng(0), None) for _ in range(2))
    for k in range(13):
        method.step(problem, kept)
        if k in (0, 4, 9, 11):
            block_walks.forget(method._folder(problem, lost))
        method.step(problem, lost)
        assert len(kept.since) == (k + 1) % 10  # every tenth round writes files
        if k == 6:
            block_walks.forget(method._folder(problem, lost))
            one, two = (method.certificate(problem, state).certificate for state in (kept, lost))
            assert repr(one) == repr(two)
    np.testing.assert_array_equal(kept.weights, lost.weights)
    folder = method._folder(problem, kept)
    assert os.path.isdir(folder)
    assert any(key[0] == folder for key in block_walks._KEPT)
    del kept
    assert not os.path.exists(folder)
    assert not any(key[0] == folder for key in block_walks._KEPT)


def test_sigma_follows_the_overlap_of_changes(monkeypatch):
    """sigma of a round is 1.2 times the largest |sum d_g|^2 / sum |d_g|^2 of the last two rounds, and D never falls."""
    overlaps, sigmas, duals, make_round = [3.0], [], [], BlockDual._round

    def watched(self, problem, state, now):
        sigmas.append(problem.l2 / now.l2)
        found = make_round(self, problem, state, now)
        together = np.sum([each.moved for each in found], axis=0)
        overlaps.append(together @ together / sum(each.moved @ each.moved for each in found))
        return found

    monkeypatch.setattr(BlockDual, "_round", watched)
    problem, method = several("log", l2=5.0), BlockDual(inner="eg", groups=3)
    state = method.init_state(problem, np.random.default_rng(0), None)
    for _ in range(8):
        method.step(problem, state)
        duals.append(method.certificate(problem, state).certificate.dual)
    assert state.repeated == 0
    expected = [min(max(1.0, 1.2 * max(overlaps[max(k - 1, 0) : k + 1])), 3.0) for k in range(8)]
    np.testing.assert_allclose(sigmas, expected, rtol=1e-12)
    assert min(sigmas) < 2.5
    assert (np.diff(duals) > -1e-9).all()


def test_the_gap_is_guessed_from_the_last_two_certificates():
    """gap ~ gain^power, where the last two certificates determine the power. An infinite gain is ignored."""
    problem, method = several("log", l2=5.0), BlockDual(inner="eg")
    state = method.init_state(problem, np.random.default_rng(0), None)
    method.step(problem, state)
    found = method.certificate(problem, state).certificate
    for gap, gain in ((8.0, np.inf), (8.0, 100.0), (2.0, 6.25)):
        state.gain = gain
        method.observe(problem, state, replace(found, gap=gap))
        assert state.power == (0.5 if gap == 2 else FIRST_POWER)
    state.checked_gap, state.checked_gain, state.gain = 2.0, 6.25, 1.0
    assert method.guess_gap(state) == pytest.approx(0.8)
