"""Settings and fixtures of all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).resolve().parent
# Make `oracles.*` and `helpers.*` importable in every import mode of pytest.
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from oracles.problems import Case, make_case  # noqa: E402  (needs the path above)

# Some tests send Ctrl-C (SIGINT), which a process started in the background by a plain shell ignores.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hypothesis draws the same examples on every run and machine, so that failures can be reproduced.
# HYPOTHESIS_PROFILE=search draws other examples each time, to find new failures.
_common = {
    "deadline": None,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}
settings.register_profile("fixed", derandomize=True, max_examples=50, **_common)
settings.register_profile("search", max_examples=1000, print_blob=True, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def _data_folder() -> Path:
    named = os.environ.get("PARTWISE_DATA")
    return Path(named) if named else HERE.parent.parent / "shared" / "data"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data sets; skip the test if there is none."""
    folder = _data_folder()
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder} (set PARTWISE_DATA)")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a new random generator with a fixed seed."""
    return np.random.default_rng(20080808)


@pytest.fixture(params=["multiclass", "chain-tied", "chain-tied-ends", "chain-untied", "chain-masked"])
def random_case(request: pytest.FixtureRequest) -> Case:
    """Return a small problem of each kind, with all labellings enumerated."""
    return make_case(request.param, seed=7)
