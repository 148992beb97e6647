"""Common code of the benchmarks: targets, medians, files, processes."""

import json
import os
import time

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main
from benchmarks.front_page import fastest
from benchmarks.measure import SystemFailed, first_within, peak_mb, run_apart
from benchmarks.questions import QUESTIONS, choose
from benchmarks.report import comparison, conclude, finish, medians, save, write_json


def test_target_is_the_first_certificate_below_it():
    run = {
        "objective": 101.0,
        "trace_objective": [300.0, 100.2, 100.05, 101.0],
        "trace_seconds": [1.0, 2.0, 3.0, 4.0],
        "trace_cpu_seconds": [None, 4.0, 6.0, 8.0],
        "trace_passes": [1.0, 3.0, 5.0, 7.0],
    }
    finish(run, 100.0, 1e-3)
    assert (run["seconds_to_target"], run["cpu_seconds_to_target"], run["passes_to_target"]) == (3.0, 6.0, 5.0)
    assert run["excess"] == pytest.approx(0.01)
    finish(run, 100.0, 1e-6)
    assert run["seconds_to_target"] is None
    assert first_within([3.0, 1.0], 1.0) == 1


def test_medians_by_system():
    runs = [{"system": "a", "seconds": float(s), "gap": None} for s in (5, 1, 2)] + [{"system": "b", "seconds": 7.0}]
    rows = medians(runs)
    assert [(row["system"], row["seconds"]) for row in rows] == [("a", 2.0), ("b", 7.0)]


def test_a_stopped_run_shows_what_it_has_taken():
    rows = [
        {"system": "ours", "seconds_to_target": 1.0, "cpu_seconds_to_target": 2.0},
        {"system": "slower", "seconds_to_target": 5.0, "cpu_seconds_to_target": 5.0, "more_than_seconds": None},
        {
            "system": "stopped",
            "seconds_to_target": None,
            "cpu_seconds_to_target": None,
            "more_than_seconds": 30.0,
            "more_than_cpu_seconds": 24.0,
        },
    ]
    ours, slower, stopped = comparison(rows, "ours")
    assert (ours["times_ours"], slower["times_ours"], stopped["times_ours"]) == (1.0, 2.5, "> 12")
    assert (stopped["seconds_to_target"], stopped["cpu_seconds_to_target"]) == ("> 30", "> 24")
    assert rows[2]["seconds_to_target"] is None
    assert "times_ours" not in comparison(rows[1:], "ours")[0]


def test_json_lines(tmp_path):
    path = tmp_path / "records"
    write_json(path, [{"a": 1.5, "b": [float("inf"), 2.0]}, {"a": None}])
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"a": 1.5, "b": [None, 2.0]}, {"a": None}]


def test_a_failed_system_is_named_and_the_others_are_kept(tmp_path, capsys):
    good = {
        "system": "a",
        "objective": 10.0,
        "trace_objective": [10.0],
        "trace_seconds": [1.0],
        "trace_cpu_seconds": [1.0],
        "trace_passes": [1.0],
    }
    runs = [good, {"system": "b", "error": "ended with signal 9"}, {"system": "c", "skipped": "too large"}]
    conclude("title", runs, {"objective": 9.999, "gap": 1e-9}, 1e-3)
    shown = capsys.readouterr().out
    assert "b failed: ended with signal 9" in shown
    assert "c left out: too large" in shown
    assert good["seconds_to_target"] == 1.0
    with pytest.raises(SystemExit):
        save(tmp_path / "records", runs)
    assert len((tmp_path / "records").read_text().splitlines()) == 3


def report_threads(number):
    return {"threads": os.environ["OMP_NUM_THREADS"], "double": 2 * number}


def test_run_apart():
    assert run_apart(f"{__name__}:report_threads", 2, number=4) == {"threads": "2", "double": 8}
    with pytest.raises(SystemFailed, match="status 1"):
        run_apart("benchmarks.measure:no_such_function", 1)


def report_memory():
    return {"peak_mb": peak_mb()}


def test_peak_is_that_of_the_process_alone():
    block = np.ones(60_000_000)
    assert peak_mb() > 480
    del block
    assert 1 < run_apart(f"{__name__}:report_memory", 1)["peak_mb"] < 400


def wait(seconds):
    time.sleep(seconds)
    return {}


def test_a_system_that_never_ends_is_ended():
    with pytest.raises(SystemFailed, match="wait was ended after 1 s"):
        run_apart(f"{__name__}:wait", 1, 1.0, seconds=60)


def test_choose():
    assert choose("", ["a", "b"]) == ["a", "b"]
    assert choose("b, a", ["a", "b", "c"]) == ["a", "b"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_explains_itself(name):
    answer = CliRunner().invoke(main, [name, "--help"])
    assert answer.exit_code == 0, answer.output
    assert "--quick" in answer.output or "--data" not in answer.output


def test_unknown_system():
    answer = CliRunner().invoke(main, ["crf", "--systems", "nobody"])
    assert answer.exit_code == 2
    assert "nobody" in answer.output


def test_ratios_of_whole_jobs():
    from benchmarks.cli import ratios

    ours = {"system": "partwise", "cpu_seconds": 2.0, "predict_cpu_seconds": 0.1}
    theirs = {"system": "python-crfsuite", "cpu_seconds": 30.0, "predict_cpu_seconds": 1.0}
    runs = [{**run, "seconds": run["cpu_seconds"] + k} for run in (ours, theirs) for k in range(3)]
    assert ratios(runs) == pytest.approx({"seconds": 31 / 3, "cpu_seconds": 15, "predict_cpu_seconds": 10})
    assert ratios([runs[0]]) == {}


class TestFrontPage:
    RECORDS = (
        {"system": "partwise-eg", "l2": 2.0, "cpu_seconds_to_target": 3.0},
        {"system": "partwise-lbfgs", "l2": 2.0, "cpu_seconds_to_target": 9.0},
        {"system": "crfsuite-lbfgs", "l2": 2.0, "cpu_seconds_to_target": 45.0},
        {"system": "partwise-auto", "dataset": "mnist", "l2": 1.0, "cpu_seconds_to_target": 5.0},
        {"system": "sklearn-sag", "dataset": "mnist", "l2": 1.0, "more_than_cpu_seconds": 60.0},
        {"system": "sklearn-saga", "dataset": "mnist", "l2": 1.0, "cpu_seconds_to_target": 70.0},
        {"system": "partwise-auto", "dataset": "a9a", "l2": 1.0, "cpu_seconds_to_target": 0.1},
    )

    def test_the_fastest_run_of_each_library_counts(self):
        assert fastest(self.RECORDS) == {
            "CRF, CoNLL-2000 chunks, l2 = 2": [("partwise", 3.0, True), ("crfsuite", 45.0, True)],
            "multinomial, MNIST, l2 = 1": [("partwise", 5.0, True), ("sklearn", 70.0, True)],
        }

    def test_a_stopped_run_counts_where_no_other_arrived(self):
        ((_, runs),) = fastest(self.RECORDS[3:5]).items()
        assert runs[1] == ("sklearn", 60.0, False)

    def test_the_picture_is_drawn(self, tmp_path):
        records = tmp_path / "records.json"
        write_json(records, self.RECORDS)
        answer = CliRunner().invoke(main, ["front-page", str(records), "-o", str(tmp_path / "rivals.png")])
        assert answer.exit_code == 0, answer.output
        assert (tmp_path / "rivals.png").read_bytes().startswith(b"\x89PNG")
