"""A few trials of each row of the table of faults, and tests of the runner. ``-m faults`` runs all trials."""

from __future__ import annotations

import json
import os
import re
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, limits and /proc as Linux has them")
if sys.platform == "linux":
    import sanitizers

    from tests.faults import __main__ as command
    from tests.faults import digest, page, runner, shared
    from tests.faults.kept import Kept, mend, read
    from tests.faults.plan import Plan
    from tests.faults.rows import MODULES, REPORT, TESTS, Row, all_rows
else:
    MODULES = ()


def wrong_of(rows, results):
    return [each for each in results if page.wrong(rows[each["row"]], [each["outcome"]])]


@pytest.mark.parametrize("module", MODULES)
def test_a_sample_of_each_row(module):
    """Rows that need a core built with sanitizers run in `make faults` only: a build found here may be outdated."""
    rows = all_rows((module,))
    usual = {name: row for name, row in rows.items() if not row.core and not runner.cannot(row)}
    orders = {name: spread(row.trials, row.sample) for name, row in usual.items()}
    results = list(runner.run(rows, orders))
    assert not wrong_of(rows, results)
    assert len(results) == sum(map(len, orders.values()))


def spread(n, k):
    """Return k of n numbers in about equal steps, each shifted a little, so that alternating cases all occur."""
    return [(j * n // k + j) % n for j in range(k)]


def test_a_sample_of_threads_is_short_and_has_a_training():
    row = all_rows(("shared",))["threads"]
    numbers = spread(row.trials, row.sample)
    assert shared.ASKED.index(shared.OFTEN) not in numbers
    assert min(numbers) < len(shared.ASKED) <= max(numbers)


@pytest.mark.faults
def test_the_whole_table():
    rows = all_rows()
    results = list(runner.run(rows, {name: list(range(row.trials)) for name, row in rows.items()}))
    assert not wrong_of(rows, results)


FAKE = """
import os, threading, time
from pathlib import Path
from tests.faults.rows import Row

def trial(number, folder):
    if number == 2:
        os.kill(os.getpid(), 9)
    if number == 4:
        time.sleep(60)
    if number == 5:
        raise KeyError("x")
    (folder / "file").write_text("x")
    return "fine", ""

def beside(number, folder):
    begin = time.monotonic()
    time.sleep(0.2)
    return "fine", f"{begin} {time.monotonic()}"

def meet(number, folder):
    begin = time.monotonic()
    marks = Path(os.environ["FAKE_MARKS"])
    (marks / str(number)).touch()
    while len(list(marks.iterdir())) < 2 and time.monotonic() < begin + 60:
        time.sleep(0.01)
    time.sleep(0.05)
    return "fine", f"{begin} {time.monotonic()}"

def race(number, folder):
    # Two threads set the same bytes; in C, as the interpreter is not watched.
    import ctypes
    libc = ctypes.CDLL(None)
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    place = ctypes.create_string_buffer(1 << 16)
    start = threading.Barrier(2)

    def write(first):
        start.wait()
        for _ in range(200):
            libc.memset(ctypes.addressof(place) + first, 0, 1 << 15)

    several = [threading.Thread(target=write, args=(0 if number == 1 else k << 15,)) for k in range(2)]
    for each in several:
        each.start()
    for each in several:
        each.join()
    return "fine", ""

def told(number, folder):
    if number == 1:
        (folder.parent / "logs" / "report.1").write_text("ERROR: made up")
    if number == 2:
        (folder.parent / "logs" / "report.2").write_text("ERROR: and aborted")
        os.abort()
    return "fine", ""

def overflow(number, folder):
    import ctypes
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    place = libc.malloc(ctypes.c_size_t(8))
    libc.memset(ctypes.c_void_p(place), 0, ctypes.c_size_t(8 + 8 * (number == 1)))
    return "fine", ""

ROWS = [
    Row("overflow", "a real report", "fine", 3, 1, overflow, ("fine",), core="fake"),
    Row("race", "a real report", "fine", 3, 1, race, ("fine",), core="fake"),
    Row("told", "reports", "fine", 4, 1, told, ("fine",), core="fake"),
    Row("fake", "made up", "fine", 7, 1, trial, ("fine",), 1.5),
    Row("long", "two at a time", "fine", 6, 1, beside, ("fine",)),
    Row("met", "waits for another", "fine", 6, 1, meet, ("fine",)),
    Row("alone", "nothing beside it", "fine", 3, 1, beside, ("fine",), alone=True),
    Row("absent", "not there", "", 3, 1, beside, None, missing="nothing"),
]
"""


@pytest.fixture
def fake_rows(tmp_path, monkeypatch):
    (tmp_path / "fakes").mkdir()
    (tmp_path / "fakes" / "fake.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sanitizers.CORES, "fake", (str(tmp_path), "libstdc++.so", {"ASAN_OPTIONS": "x=1"}))
    monkeypatch.delitem(sys.modules, "fakes", raising=False)
    monkeypatch.delitem(sys.modules, "fakes.fake", raising=False)
    return all_rows(("fakes.fake",))


def kept_of(rows, results):
    kept = Kept(rows)
    for each in results:
        kept.add(each | {"digest": digest.of_row(rows[each["row"]]), "date": "2020-02-20"})
    return kept


def test_the_runner_sees_crashes_and_hangs(fake_rows):
    results = list(runner.run(fake_rows, {"fake": list(range(7))}, slack=0.0))
    outcomes = {each["trial"]: each["outcome"] for each in results}
    assert outcomes == {0: "fine", 1: "fine", 2: "crash", 3: "fine", 4: "hang", 5: "unexpected KeyError", 6: "fine"}
    text = page.written(fake_rows, kept_of(fake_rows, results))
    assert "| made up | 7 (7) | fine | fine 4, crash 1, hang 1, unexpected KeyError 1 | **no**: 3 |" in text
    assert "| not there | 0 (3) |  | nothing is not installed | (comparison) |" in text
    assert "| fine 1 | yes, so far |" in page.written(fake_rows, kept_of(fake_rows, results[:1]))
    assert not list(runner.run(fake_rows, {"fake": [0]}, deadline=time.monotonic() - 1))


def test_what_sanitizers_write_is_an_outcome(fake_rows, tmp_path):
    assert runner.cannot(fake_rows["told"])
    (tmp_path / "site").mkdir()
    results = {each["trial"]: each for each in runner.run(fake_rows, {"told": range(4)})}
    assert [results[k]["outcome"] for k in range(4)] == ["fine", REPORT, REPORT, "fine"]
    assert [results[k]["detail"] for k in (1, 2)] == ["ERROR: made up", "ERROR: and aborted"]


@pytest.mark.parametrize(
    ("core", "row", "message"), [("asan", "overflow", "heap-buffer-overflow"), ("tsan", "race", "data race")]
)
def test_a_sanitizer_report_is_kept_with_the_result(core, row, message, fake_rows, tmp_path, monkeypatch):
    _, library, options = sanitizers.CORES[core]
    if not os.path.isabs(sanitizers.library_path(library)):
        pytest.skip(f"there is no compiler with {library}")
    monkeypatch.setitem(sanitizers.CORES, "fake", (str(tmp_path), library, options))
    (tmp_path / "site").mkdir()
    results = {each["trial"]: each for each in runner.run(fake_rows, {row: range(3)})}
    assert [results[k]["outcome"] for k in range(3)] == ["fine", REPORT, "fine"]
    assert message in results[1]["detail"]


def test_an_outdated_sanitizer_build_is_refused(fake_rows, tmp_path):
    (tmp_path / "site" / "partwise").mkdir(parents=True)
    (tmp_path / "site" / "partwise" / "__init__.py").write_text("")
    found = []
    with pytest.raises(RuntimeError, match="the package of the fake build is another one"):
        for each in runner.run(fake_rows, {"told": [0], "long": [0]}):
            found.append(each["row"])
    assert found == ["long"]  # the rows that can be run did run


def test_rows_run_side_by_side_except_those_that_must_not(fake_rows, tmp_path, monkeypatch):
    """The trial waits until a second trial is running, however long the second process takes to start."""
    (tmp_path / "marks").mkdir()
    monkeypatch.setenv("FAKE_MARKS", str(tmp_path / "marks"))
    results = list(runner.run(fake_rows, {"met": range(6), "alone": range(3), "absent": range(3)}, jobs=2))
    times = {(each["row"], each["trial"]): tuple(map(float, each["detail"].split())) for each in results}
    assert sorted(times) == [("alone", k) for k in range(3)] + [("met", k) for k in range(6)]

    def overlaps(one):
        return [
            other
            for other in times
            if other != one and times[other][0] < times[one][1] > times[one][0] < times[other][1]
        ]

    assert not any(overlaps(("alone", k)) for k in range(3))
    assert any(overlaps(("met", k)) for k in range(6))


def test_results_are_kept_but_those_of_older_sources_are_not_counted(fake_rows, tmp_path, monkeypatch, capsys):
    path, target = tmp_path / "kept.jsonl", tmp_path / "page.md"
    monkeypatch.setattr(command, "all_rows", lambda: fake_rows)

    def call(*more):
        arguments = ["--resume", str(path), "--page", str(target), "--jobs", "1", "--row", "long", *more]
        with pytest.raises(SystemExit) as ended:
            command.main(arguments)
        return ended.value.code

    assert call("--trials", "2") == 0
    path.write_text(path.read_text() + '{"row": "lo')  # as if the writer had been killed
    assert call("--trials", "3") == 0
    assert [each["trial"] for each in read(path)] == [0, 1, 2]
    head = target.read_text()
    assert f"sources `{digest.of_code()}`" in head
    assert ": 3 trials;" in head
    other = [each | {"digest": "another"} for each in read(path)]
    path.write_text("".join(json.dumps(each) + "\n" for each in other))
    mend(path)
    assert call("--list") == 0
    assert re.search(r"^long +0 of +6 .*3 of other sources, not counted$", capsys.readouterr().out, re.MULTILINE)
    assert call("--trials", "1") == 0
    assert ": 1 trials;" in target.read_text()
    assert len(path.read_text().splitlines()) == 4  # earlier lines are kept


def test_a_digest_depends_on_contents_not_on_folders(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "a.py").write_text("a")
    one, two = (digest.of_files(tmp_path / name, (tmp_path / name).rglob("*.py")) for name in ("one", "two"))
    assert one == two
    (tmp_path / "two" / "inner" / "a.py").write_text("b")
    assert digest.of_files(tmp_path / "two", (tmp_path / "two").rglob("*.py")) != one


def test_the_page_states_which_code_was_tested():
    text = (TESTS.parent / "docs" / "reliability.md").read_text()
    assert re.search(
        r"^partwise \S+, sources `[0-9a-f]{12}`, [-0-9]+( to [-0-9]+)?: [\d,]+ trials; ", text, re.MULTILINE
    )


def test_short_rows_end_and_long_ones_have_equal_parts():
    """A limit of 60 s for rows that need 2, 1000 and 2000 s: they get 2, 29 and 29 s."""

    def row(name, n):
        return Row(name, "", "", n, 0, lambda k, f: ("", ""), ("",))

    rows = {"b": row("b", 1000), "a": row("a", 20), "c": row("c", 2000)}
    clock = [0.0]
    plan = Plan(
        rows, {name: range(each.trials) for name, each in rows.items()}, 1, 60.0, {"a": 0.1, "b": 1.0, "c": 1.0}
    )
    plan.clock = lambda: clock[0]
    name, used = "", dict.fromkeys(rows, 0.0)
    while clock[0] < 60:
        name, numbers = plan.next(name, 0)
        for _ in numbers:
            seconds = 0.1 if name == "a" else 1.0
            clock[0] += seconds
            used[name] += seconds
            plan.note(name, seconds)
    assert used["a"] == pytest.approx(2.0)
    assert abs(used["b"] - used["c"]) <= 4
