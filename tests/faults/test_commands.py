"""The list of commands that signals are sent to has them all."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, limits and /proc as Linux has them")
if sys.platform == "linux":
    from tests.faults import commands, killed, rows  # noqa: F401


def test_every_command_is_there():
    given = {" ".join(arguments[:n]) for arguments in commands.COMMANDS.values() for n in (1, 2)}
    registered = list(commands.registered())
    assert {"train dep", "predict", "data fetch", "solvers"} <= set(registered)
    assert not set(registered) - given
