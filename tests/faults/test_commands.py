"""The list of commands that are sent signals is complete."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, limits and /proc as Linux has them")
if sys.platform == "linux":
    from tests.faults import commands, killed, rows  # noqa: F401


def test_the_list_names_every_command():
    given = {" ".join(arguments[:n]) for arguments in commands.COMMANDS.values() for n in (1, 2)}
    registered = list(commands.registered())
    assert {"train dep", "predict", "data fetch", "solvers"} <= set(registered)
    assert not set(registered) - given
