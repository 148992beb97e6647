"""Training on a Dask cluster gives the bits of one process, whatever happens to workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.partition_cases import CASES, TEMPLATE, words
from partwise import SequenceTagger
from partwise.features import Template
from partwise.out_of_core import cluster as distributed
from partwise.out_of_core import partitions
from partwise.out_of_core.cluster import DaskExecutor, results
from partwise.solvers import BlockDual, Checkpoint

dask = pytest.importorskip("dask.distributed")

#: One case with a chain and one with a classifier.
BOTH = ("names-weights", "rows")


@pytest.fixture(scope="module")
def client():
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.LocalCluster(n_workers=2, **options) as cluster, dask.Client(cluster) as found:
        yield found


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
@pytest.mark.parametrize(
    ("solver", "name", "options"),
    [
        *((solver, name, {}) for solver in ("lbfgs", "newton", "eg-batch", "eg-primal") for name in BOTH),
        *(("owlqn", name, {"penalty": "elasticnet", "l1_ratio": 0.5}) for name in BOTH),
        *(("gis", name, {}) for name in ("maxent", "items-min")),
    ],
)
def test_the_bits_of_one_process(client, name, solver, options, tmp_path):
    case = CASES[name]
    here = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    assert here.n_batches > 2
    few = {"solver": solver, "tol": 1e-3, "max_passes": 6, **options}
    expected = case.make(**few).fit(here)
    found = case.make(**few).fit(distributed.open(tmp_path / "dir", client))
    np.testing.assert_array_equal(found.result_.weights, expected.result_.weights)
    assert (found.result_.gap, found.result_.passes) == (expected.result_.gap, expected.result_.passes)
    assert found.result_.solver == solver


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
def test_hinge_and_little_memory(client, tmp_path):
    case = CASES["names"]
    here = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    expected = case.make(solver="excessive-gap", loss="hinge", tol=0.3, max_passes=20).fit(here)
    # with so little memory, every batch is read each time
    cluster = distributed.open(tmp_path / "dir", client, memory=1)
    found = case.make(solver="excessive-gap", loss="hinge", tol=0.3, max_passes=20).fit(cluster)
    np.testing.assert_array_equal(found.result_.weights, expected.result_.weights)


@pytest.mark.parametrize(("solver", "loss", "memory"), [("eg-prox", "log", None), ("bcfw", "hinge", 1)])
def test_dual_methods_have_the_bits_of_one_process(client, solver, loss, memory, tmp_path):
    """Dual methods on a cluster give the bits of one process with two groups, whether memory is large or small."""
    case = CASES["names-weights"]
    here = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=8000)
    few = {"loss": loss, "tol": 5e-2, "C": 0.03}
    expected = case.make(solver=BlockDual(inner=solver, groups=2), **few).fit(here).result_
    found = case.make(solver=solver, **few).fit(distributed.open(tmp_path / "dir", client, memory)).result_
    assert (found.status, found.solver) == ("converged", "block-dual")
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert (found.gap, found.passes) == (expected.gap, expected.passes)
    del found, expected
    assert not [name for name in os.listdir(tmp_path / "dir") if name.startswith("duals-")]


@pytest.mark.parametrize("memory", [None, 1])
def test_a_worker_killed_in_a_dual_method(client, memory, tmp_path):
    X, y = words(200)
    blocks = [(X[k : k + 50], y[k : k + 50]) for k in range(0, 200, 50)]
    make = {"template": Template(TEMPLATE), "tol": 1e-3, "C": 0.03}
    here = partitions.write(tmp_path / "dir", SequenceTagger(**make), blocks, batch_size=20_000)
    solver = BlockDual(inner="eg-prox", groups=2)
    expected = SequenceTagger(**make, solver=solver).fit(here)
    assert expected.result_.passes > 4
    killed = []

    def kill(progress):
        if progress.epoch == 3:
            killed.append(sorted(client.run(os.getpid).values())[0])
            os.kill(killed[-1], signal.SIGKILL)

    found = SequenceTagger(**make, solver=solver, callbacks=kill)
    found.fit(distributed.open(tmp_path / "dir", client, memory))
    assert killed
    np.testing.assert_array_equal(found.result_.weights, expected.result_.weights)


@pytest.mark.filterwarnings("ignore::partwise.FeatureWarning")
@pytest.mark.parametrize(("solver", "loss"), [("lbfgs", "log"), ("gis", "log"), ("eg-prox", "log"), ("bcfw", "hinge")])
def test_the_main_process_dies_and_resumes(client, solver, loss, tmp_path):
    """If the main process dies, a new one resumes from the checkpoint, to the bits of an uninterrupted run."""
    case = CASES["maxent" if solver == "gis" else "names-weights"]
    here = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=8000)
    few = {"loss": loss, "tol": 1e-3 if loss == "log" else 5e-2, "C": 0.03}
    named = solver if solver in ("lbfgs", "gis") else BlockDual(inner=solver, groups=2)
    expected = case.make(solver=named, **few).fit(here).result_
    path = tmp_path / "run.ckpt"

    class Died(Exception):
        pass

    def die(progress):
        if progress.epoch == 2:
            raise Died

    with pytest.raises(Died):
        case.make(solver=named, **few, callbacks=die).fit(
            distributed.open(tmp_path / "dir", client), checkpoint=Checkpoint(path, every_seconds=0.0)
        )
    assert path.exists()
    found = case.make(solver=named, **few).fit(distributed.open(tmp_path / "dir", client), checkpoint=path).result_
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert (found.gap, found.passes) == (expected.gap, expected.passes)


def test_what_cannot_be_done_in_blocks_is_refused(client, tmp_path):
    case = CASES["names"]
    partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    with pytest.raises(ValueError, match="needs batches in memory"):
        case.make(solver="annealed", loss="hinge").fit(distributed.open(tmp_path / "dir", client))


def test_errors_of_workers_are_raised(client, tmp_path):
    case = CASES["names"]
    partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    found = distributed.open(tmp_path / "dir", client)
    path = tmp_path / "dir" / "batch000001.pwb"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(partitions.PartitionError, match="batch000001"):
        case.make().fit(found)


def test_a_killed_worker_changes_no_bit(client, tmp_path):
    X, y = words(400)
    blocks = [(X[k : k + 50], y[k : k + 50]) for k in range(0, 400, 50)]
    make = {"template": Template(TEMPLATE), "solver": "lbfgs", "tol": 1e-7}
    here = partitions.write(tmp_path / "dir", SequenceTagger(**make), blocks, batch_size=20_000)
    expected = SequenceTagger(**make).fit(here)
    killed = []

    def kill_one():
        time.sleep(0.3)
        pid = client.run(os.getpid)
        killed.append(sorted(pid.values())[0])
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill_one)
    thread.start()
    found = SequenceTagger(**make, max_passes=10_000).fit(distributed.open(tmp_path / "dir", client))
    thread.join()
    assert killed
    np.testing.assert_array_equal(found.result_.weights, expected.result_.weights)


@pytest.mark.parametrize("solver", ["eg-prox", "lbfgs"])
def test_the_only_worker_is_killed(solver, tmp_path):
    """If the only worker is killed, a new worker with another address takes over its tasks."""
    case = CASES["names-weights"]
    here = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=8000)
    few = {"tol": 1e-3, "C": 0.03}
    expected = case.make(solver=BlockDual(inner=solver) if solver == "eg-prox" else solver, **few).fit(here)
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.LocalCluster(n_workers=1, **options) as cluster, dask.Client(cluster) as alone:

        def kill(progress):
            if progress.epoch == 2:
                os.kill(*alone.run(os.getpid).values(), signal.SIGKILL)

        found = case.make(solver=solver, **few, callbacks=kill).fit(distributed.open(tmp_path / "dir", alone))
    np.testing.assert_array_equal(found.result_.weights, expected.result_.weights)


@pytest.mark.parametrize(("status", "expected"), [("pending", distributed.ClusterError), ("error", UnboundLocalError)])
def test_a_wait_that_is_cancelled(status, expected):
    """`distributed` fails with UnboundLocalError if a wait is cancelled; a pending task then raises ClusterError."""

    class Lost:
        def result(self, timeout):
            raise UnboundLocalError("cannot access local variable 'result'")

    Lost.status = status
    with pytest.raises(expected):
        list(results(None, [Lost()], 1.0, [], None))


def test_a_cluster_without_workers(tmp_path):
    case = CASES["names"]
    partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    options = {"processes": False, "dashboard_address": ":0"}
    with dask.LocalCluster(n_workers=0, **options) as cluster, dask.Client(cluster) as alone:
        begin = time.monotonic()
        with pytest.raises(distributed.ClusterError, match="no worker for 1 second"):
            case.make().fit(distributed.open(tmp_path / "dir", alone, patience=1.0))
        assert time.monotonic() - begin < 20
    with pytest.raises(distributed.ClusterError, match="scheduler"):
        case.make().fit(distributed.open(tmp_path / "dir", alone))


def test_no_batches():
    client = SimpleNamespace(asynchronous=False)  # the executor uses no other attribute of the client
    assert list(DaskExecutor(client).run(None, [], [])) == []
