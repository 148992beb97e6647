"""When memory runs out, calls of the core raise MemoryError, and the process survives."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")

# Make each call with less and less spare memory, and print how the calls ended.
SCRIPT = """
import os, resource, sys
import numpy as np
from partwise import Problem
from partwise.features import Attributes, chain_map
from partwise.structures import Chain
from partwise._core import LinearMap, RowLayout, SharedSegment, all_scores, decode, infer

name, n_jobs = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
chain = Chain(np.full(1000, 20), 5)
rows = Attributes(np.arange(0, 100_001, 5), rng.integers(0, 50_000, 100_000), 50_000)
gold = chain.encode(rng.integers(0, 5, 20_000))
stored, passing = chain_map(chain, rows), chain_map(chain, rows, once=True)
weights = rng.normal(size=stored.num_weights)
problem = Problem(stored, chain, gold, "log", 1.0)
shared, slots = LinearMap([SharedSegment(300_000, np.ones(1, dtype=np.int64))]), np.ones(300_000)
columns = np.arange(300_001), np.arange(300_000), np.zeros(300_000, dtype=np.int64)
calls = {
    "project": lambda: shared.project(0, slots),
    "observed": lambda: RowLayout.observed(300_000, 3, 4, *columns),
    "chain_map": lambda: chain_map(chain, rows),
    "decode": lambda: decode(chain, passing, weights, n_jobs),
    "infer": lambda: infer(chain, passing, weights, 1.0, n_jobs),
    "scores": lambda: all_scores(chain, stored, weights, n_jobs),
    "plane": lambda: problem.with_n_jobs(n_jobs).plane(weights),
}
call = calls[name]
call()
ends = set()
for spare in np.linspace(0, 4e7, 16).astype(int).tolist():
    child = os.fork()
    if child == 0:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + spare, resource.RLIM_INFINITY))
        try:
            call()
        except MemoryError:
            os._exit(3)
        os._exit(0)
    ends.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(sorted(ends))
"""


@pytest.mark.parametrize(
    ("name", "n_jobs"),
    [("project", 1), ("observed", 1), ("chain_map", 1)]
    + [(name, n_jobs) for name in ("decode", "infer", "scores", "plane") for n_jobs in (1, 2)],
)
def test_no_memory_is_an_exception(name, n_jobs):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, name, str(n_jobs)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] in ("[0, 3]", "[3]"), done.stdout + done.stderr
