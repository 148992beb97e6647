"""A few trials of each row of the table of faults, and the runner itself. ``-m faults`` runs the table at full size."""

from __future__ import annotations

import json
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, limits and /proc as Linux has them")
if sys.platform == "linux":
    from tests.faults import page, runner
    from tests.faults.rows import all_rows


def wrong_of(rows, results):
    return [each for each in results if each["outcome"] not in (rows[each["row"]].good or [each["outcome"]])]


def test_a_sample_of_each_row():
    rows = all_rows()
    orders = [(name, spread(row.trials, row.sample)) for name, row in rows.items()]
    results = list(runner.run(rows, orders))
    assert not wrong_of(rows, results)
    assert len(results) == sum(len(numbers) for _, numbers in orders)


def spread(n, k):
    return [j * n // k for j in range(k)]


@pytest.mark.faults
def test_the_whole_table(tmp_path):
    rows = all_rows()
    results = list(runner.run(rows, [(name, list(range(row.trials))) for name, row in rows.items()]))
    assert not wrong_of(rows, results)


FAKE = """
import os, time
from tests.faults.rows import Row

def trial(number, folder):
    if number == 2:
        os.kill(os.getpid(), 9)
    if number == 4:
        time.sleep(60)
    if number == 5:
        raise KeyError("x")
    return "fine", ""

ROWS = [Row("fake", "made up", "fine", 7, 1, trial, ("fine",), 0.5)]
"""


def test_the_runner_sees_crashes_and_hangs(tmp_path, monkeypatch):
    (tmp_path / "fakes").mkdir()
    (tmp_path / "fakes" / "fake.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.syspath_prepend(tmp_path)
    rows = all_rows(("fakes.fake",))
    results = list(runner.run(rows, [("fake", list(range(7)))], ("fakes.fake",), slack=0.0))
    outcomes = {each["trial"]: each["outcome"] for each in results}
    assert outcomes == {0: "fine", 1: "fine", 2: "crash", 3: "fine", 4: "hang", 5: "unexpected KeyError", 6: "fine"}
    text = page.written(rows, results)
    assert "| made up | 7 (7) | fine | fine 4, crash 1, hang 1, unexpected KeyError 1 | **no**: 3 |" in text
    assert "| fine 1 | yes, so far |" in page.written(rows, results[:1])
    kept = tmp_path / "results.jsonl"
    kept.write_text("".join(json.dumps(each) + "\n" for each in results[:2]) + '{"row": "fa')
    assert [each["trial"] for each in runner.read(kept)] == [0, 1]
    assert not list(runner.run(rows, [("fake", [0])], ("fakes.fake",), deadline=time.monotonic() - 1))
