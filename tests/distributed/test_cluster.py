"""Training on a Dask cluster: the bits of one process, whatever happens to workers."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest
from partitioncases import CASES, TEMPLATE, words

from partwise import SequenceTagger, distributed, partitions
from partwise.features import Template

dask = pytest.importorskip("dask.distributed")


@pytest.fixture(scope="module")
def client():
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.LocalCluster(n_workers=2, **options) as cluster, dask.Client(cluster) as found:
        yield found


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
@pytest.mark.parametrize("name", ["names-weights", "rows"])
@pytest.mark.parametrize("solver", ["lbfgs", "newton", "eg-batch", "eg-primal"])
def test_the_bits_of_one_process(client, name, solver, tmp_path):
    case = CASES[name]
    here = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    assert here.n_batches > 2
    few = {"solver": solver, "tol": 1e-3, "max_passes": 6}
    expected = case.make(**few).fit(here)
    found = case.make(**few).fit(distributed.open(tmp_path / "dir", client))
    np.testing.assert_array_equal(found.result_.weights, expected.result_.weights)
    assert (found.result_.gap, found.result_.passes) == (expected.result_.gap, expected.result_.passes)


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
def test_hinge_and_little_memory(client, tmp_path):
    case = CASES["names"]
    here = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    expected = case.make(solver="excessive-gap", loss="hinge", tol=0.3, max_passes=20).fit(here)
    cluster = distributed.open(tmp_path / "dir", client, memory=1)  # every batch is read each time
    found = case.make(solver="auto", loss="hinge", tol=0.3, max_passes=20).fit(cluster)
    assert found.result_.solver == "excessive-gap"
    np.testing.assert_array_equal(found.result_.weights, expected.result_.weights)


def test_single_examples_are_elsewhere(client, tmp_path):
    case = CASES["names"]
    partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    with pytest.raises(ValueError, match="needs batches in memory"):
        case.make(solver="eg").fit(distributed.open(tmp_path / "dir", client))


def test_errors_come_out(client, tmp_path):
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


def test_nobody_there(tmp_path):
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
