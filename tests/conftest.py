"""Settings and fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).resolve().parent
# Oracles and helpers are imported as `oracles.*` and `helpers.*`, whatever import mode pytest runs in.
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from oracles.problems import Case, make_case  # noqa: E402  (needs the path above)

# A shell without job control starts what it puts into the background deaf to Ctrl-C, which some tests are about.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# One fixed profile: the same examples on every run and every machine, so that a failure is never a matter of luck.
# HYPOTHESIS_PROFILE=search looks for new failures instead, with other examples each time.
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
    """The folder of real data sets; the test is skipped where there is none."""
    folder = _data_folder()
    if not folder.is_dir():
        pytest.skip(f"no data folder at {folder} (set PARTWISE_DATA)")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed, new for each test."""
    return np.random.default_rng(20080808)


@pytest.fixture(params=["multiclass", "chain-tied", "chain-tied-ends", "chain-untied", "chain-masked"])
def random_case(request: pytest.FixtureRequest) -> Case:
    """A small problem of each kind with everything about it enumerated."""
    return make_case(request.param, seed=7)
