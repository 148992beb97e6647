"""Penalty flags --l1, --l2, --penalty and --l1-ratio: what is trained, and how messages name the flags."""

import numpy as np
import pytest

import partwise
from partwise.cli.flags import penalty_settings
from partwise.cli.tasks import TASKS
from partwise.cli.train import command


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_has_the_flags(name):
    flags = {option.name for option in command.get_command(None, name).params}
    assert {"C", "l1", "l2", "penalty", "l1_ratio"} <= flags


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, {}),
        ({"C": 2.0}, {"C": 2.0}),
        ({"l2": 2.0}, {"C": 0.5}),
        ({"l1": 0.0}, {}),
        ({"l1": 0.0, "l2": 4.0}, {"C": 0.25}),
        ({"l1": 0.5, "l2": 1.5}, {"penalty": "elasticnet", "l1_ratio": 0.25, "C": 0.5}),
        ({"l1": 10.0}, {"penalty": "elasticnet", "l1_ratio": 0.5, "C": 0.05}),  # the default l2 is 10 too
        ({"l1": 2.0, "l2": 0.0}, {"penalty": "l1", "l1_ratio": 1.0, "C": 0.5}),
    ],
)
def test_strengths(flags, expected):
    given = {"C": None, "l1": None, "l2": None, **flags}
    assert penalty_settings({"penalty": "l2"}, 0.1, given) == expected


def test_l1_on_the_command_line(cli, cli_json, files, tmp_path):
    train, model = files / "digits" / "train.svm", tmp_path / "m.pw"
    said = cli_json("train", "maxent", train, "-o", model, "--l1", "2", "--l2", "0.5", "--tol", "1e-4")
    assert said["l1"] == pytest.approx(2.0)
    assert said["l2"] == pytest.approx(0.5)
    assert said["status"] == "converged"
    fitted = partwise.load(model)
    assert said["n_nonzero"] == np.count_nonzero(fitted.coef_) + np.count_nonzero(fitted.intercept_)
    assert 0 < said["n_nonzero"] < said["n_features"] / 2
    same = cli_json("train", "maxent", train, "-o", model, "--penalty", "elasticnet", "--l1-ratio", "0.8", "--C", "0.4")
    assert same["l1"] == pytest.approx(2.0)
    assert same["l2"] == pytest.approx(0.5)
    text = cli("train", "maxent", train, "-o", model, "--l1", "2", "--l2", "0.5").stdout
    assert "l1 = 2, l2 = 0.5" in text
    assert "weights not zero" in text
    shown = cli("inspect", model).stdout
    assert "l1 = 2, l2 = 0.5" in shown
    assert f"{np.count_nonzero(partwise.load(model).coef_)}" in shown
    inspected = cli_json("inspect", model)
    assert inspected["l1"] == pytest.approx(2.0)
    assert inspected["n_nonzero"] < inspected["n_features"] / 2


def test_refused_before_the_data_are_read(cli, tmp_path):
    for flags in (("--l1", "1", "--loss", "hinge"), ("--penalty", "l1", "--loss", "squared-hinge"), ("--l1", "-1")):
        for task in sorted(TASKS):
            said = cli("train", task, tmp_path / "absent", "-o", tmp_path / "m.pw", *flags, status=2).stderr
            assert "--l1 must be" in said or "is not available with --loss" in said


def test_a_path_over_l1(cli, cli_json, files, tmp_path):
    train, dev, model = files / "digits" / "train.svm", files / "digits" / "dev.svm", tmp_path / "m.pw"
    flags = ("--l1-min", "0.5", "--points", "4", "-o", model)
    for more in (("--dev", dev), ("--l2", "0")):
        said = cli_json("path", "maxent", train, *flags, *more)
        points = said["points"]
        assert points[0]["n_nonzero"] == 0
        assert points[-1]["l1"] == pytest.approx(0.5)
        assert [point["l2"] for point in points] == pytest.approx(4 * [0.0 if "--l2" in more else 1.0])
        assert all(point["status"] == "converged" for point in points)
        best = max(points, key=lambda point: point["score"])
        fitted = partwise.load(model)
        assert (said["l1"], said["l2"]) == pytest.approx((best["l1"], best["l2"]))
        assert fitted.result_.l1 == pytest.approx(best["l1"])
        assert fitted.l1_ratio / fitted.C == pytest.approx(best["l1"])
    assert "not zero" in cli("path", "maxent", train, *flags).stdout
    assert "C" in cli_json("path", "maxent", train, "--penalty", "l1", "--points", "2", "-o", model)["points"][0]


def test_a_path_over_given_values(cli, cli_json, files, tmp_path):
    train, dev, model = files / "digits" / "train.svm", files / "digits" / "dev.svm", tmp_path / "m.pw"
    said = cli_json("path", "maxent", train, "-o", model, "--dev", dev, "--grid", "1, 0.01,0.1")
    assert [point["C"] for point in said["points"]] == [0.01, 0.1, 1.0]  # begins with the strongest penalty
    assert said["C"] == max(said["points"], key=lambda point: point["score"])["C"] == partwise.load(model).C
    one = cli_json("path", "maxent", train, "-o", model, "--dev", dev, "--grid", "0.1")
    assert one["points"][0]["primal"] == pytest.approx(said["points"][1]["primal"], rel=2e-3)


@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_task_takes_a_grid(cli, tmp_path, task):
    assert "--grid" in cli("path", task, "--help").stdout
    said = cli("path", task, tmp_path / "absent", "-o", tmp_path / "m.pw", "--grid", "1,-1", status=2).stderr
    assert "-1 is not a number above 0" in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--l1-min", "0"), "--l1-min must be a number above 0"),
        (("--l1-min", "nan"), "--l1-min must be a number above 0"),
        (("--l1-min", "1", "--l2", "-1"), "--l2 must be a number of at least 0"),
        (("--l1-min", "1", "--C-min", "1"), "--C-min cannot be combined with --l1-min"),
        (("--l1-min", "1", "--grid", "1,2"), "--grid cannot be combined with --l1-min"),
        (("--l1-min", "1", "--penalty", "l1"), "--penalty cannot be combined with --l1-min"),
        (("--l1-min", "1", "--loss", "hinge"), "--l1-min is not available with --loss hinge"),
        (("--l2", "1"), "--l2 is for paths over l1"),
        (("--solver", "mira", "--loss", "hinge"), "--solver mira has no penalty to go over"),
        (("--grid", "1,2", "--points", "3"), "--points cannot be combined with --grid"),
        (("--grid", "1,2", "--C-max", "3"), "--C-max cannot be combined with --grid"),
        (("--grid", "1,two"), "'two' is not a number; write numbers separated by commas"),
        (("--grid", "1,,2"), "'' is not a number"),
        (("--grid", ""), "'' is not a number"),
        (("--grid", "1,0"), "0 is not a number above 0"),
        (("--grid", "nan"), "nan is not a number above 0"),
        (("--grid", "inf"), "inf is not a number above 0"),
        (("--grid", "1,2,1.0"), "1 is there twice"),
        (("--grid", "1,2", "--l2", "1"), "--l2 is for paths over l1"),
    ],
)
def test_bad_paths(cli, tmp_path, flags, message):
    assert message in cli("path", "tag", tmp_path / "absent", "-o", tmp_path / "m.pw", *flags, status=2).stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--l1", "1", "--loss", "hinge"), "--l1 is not available with --loss hinge; losses that fit: log, softmax-"),
        (("--penalty", "l1", "--loss", "hinge"), "--penalty l1 is not available with --loss hinge"),
        (("--l1-ratio", "0.3"), "--l1-ratio goes with --penalty elasticnet"),
        (("--l1-ratio", "0.3", "--l1", "1"), "--l1-ratio goes with --penalty elasticnet"),
    ],
)
def test_messages_speak_of_flags(flags, said, cli, files, tmp_path):
    train = files / "digits" / "train.svm"
    ended = cli("train", "maxent", train, "-o", tmp_path / "m.pw", *flags, status=2)
    assert said in ended.stderr
    assert "penalty=" not in ended.stderr
