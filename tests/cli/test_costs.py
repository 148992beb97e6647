"""The flags --cost, --temperature and --cost-scale."""

import numpy as np
import pytest

import partwise
from partwise.cli.tasks import TASKS
from partwise.cli.train import command
from partwise.io import FormatError, read_costs
from partwise.problem.losses import LOSSES, get_loss


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_task_has_the_flags(name):
    flags = {option.name for option in command.get_command(None, name).params}
    assert {"temperature", "cost_scale"} <= flags
    assert ("cost" in flags) == (name != "dep")


def test_costs_of_a_tagger(cli_json, files, tmp_path):
    train, cost = files / "treebank" / "train.txt", tmp_path / "costs.txt"
    cost.write_text("# twice as bad\nB-NP O 2\n\nI-NP O 2.5\nO\tB-NP\t0\n")
    assert read_costs(cost) == {("B-NP", "O"): 2.0, ("I-NP", "O"): 2.5, ("O", "B-NP"): 0.0}
    flags = ("-o", tmp_path / "m.pw", "--loss", "hinge", "--tol", "0.05")
    said = cli_json("train", "tag", train, *flags, "--cost", cost)
    assert said["primal"] != cli_json("train", "tag", train, *flags)["primal"]
    cli_json("train", "tag", train, *flags, "--cost", cost)
    model = partwise.load(tmp_path / "m.pw")
    assert model.cost["B-NP"]["O"] == 2.0
    assert model.cost["O"]["I-NP"] == 1.0
    said = cli_json("inspect", tmp_path / "m.pw")
    assert said["parameters"]["cost"]["I-NP"]["O"] == 2.5
    found = cli_json("path", "tag", train, *flags, "--cost", cost, "--points", "2", "--C-min", "0.1", "--C-max", "1")
    assert partwise.load(found["model"]).cost == model.cost


def test_costs_of_a_classifier_are_of_numbers(cli_json, files, tmp_path):
    cost = tmp_path / "costs.txt"
    cost.write_text("3 8 5\n8 3 0.5\n")
    cli_json(
        "train", "maxent", files / "digits" / "train.svm", "-o", tmp_path / "m.pw", "--loss", "hinge", "--cost", cost
    )
    model = partwise.load(tmp_path / "m.pw")
    assert model.cost[3][8] == 5.0
    assert model.cost[8][3] == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("X Y\n", ":1: expected a label, a label and a cost, got 2 fields"),
        ("X Y 1\nX Z -1\n", ":2: the cost -1 must be finite and not negative"),
        ("X Y nan\n", ":1: the cost nan must be finite"),
        ("X X 1\n", ":1: X is the right answer and must cost nothing"),
        ("X Y 1\n\nX Y 2\n", ":3: the pair X Y has two costs"),
        ("X Y much\n", ":1: could not convert"),
        ("# nothing\n", "there are no costs"),
    ],
)
def test_bad_files(cli, text, message, tmp_path):
    (tmp_path / "c.txt").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_costs(tmp_path / "c.txt")
    flags = ("--loss", "hinge", "--cost", tmp_path / "c.txt", "-o", tmp_path / "m.pw")
    assert message in cli("train", "tag", tmp_path / "absent", *flags, status=2).stderr


def test_unknown_labels_and_losses_without_costs(cli, files, tmp_path):
    (tmp_path / "c.txt").write_text("B-NP B-XX 1\n")
    flags = ("--cost", tmp_path / "c.txt", "-o", tmp_path / "m.pw")
    said = cli("train", "tag", files / "treebank" / "train.txt", "--loss", "hinge", *flags, status=2).stderr
    assert f"{tmp_path / 'c.txt'}:1: label 'B-XX' was not in the training data" in said.replace("\n", "")
    said = cli("train", "tag", tmp_path / "absent", *flags, status=2).stderr
    assert "cost is not used by loss='log'" in said


def test_temperature_and_cost_scale(cli, cli_json, files, tmp_path):
    train, model = files / "treebank" / "train.txt", tmp_path / "m.pw"
    said = cli_json(
        "train", "tag", train, "-o", model, "--loss", "softmax-margin", "--cost-scale", "0", "--tol", "1e-4"
    )
    log = cli_json("train", "tag", train, "-o", tmp_path / "log.pw", "--tol", "1e-4")
    assert (said["loss"], said["temperature"], said["cost_scale"]) == ("softmax-margin", 1.0, 0.0)
    assert said["primal"] == pytest.approx(log["primal"], rel=1e-3)
    assert partwise.load(model).loss == get_loss("softmax-margin", cost_scale=0.0)
    smooth = cli_json("train", "tag", train, "-o", model, "--loss", "hinge", "--temperature", "0.1", "--tol", "0.05")
    same = cli_json("train", "tag", train, "-o", model, "--loss", "smoothed-hinge", "--tol", "0.05")
    assert smooth["primal"] == same["primal"]
    assert cli_json("inspect", model)["temperature"] == 0.1
    for flag in ("--temperature", "--cost-scale"):
        for value in ("-1", "nan", "inf"):
            said = cli("train", "tag", tmp_path / "absent", flag, value, status=2).stderr
            assert f"{flag} must be a number of at least 0" in said


def test_a_margin_with_temperature_has_no_probabilities():
    assert not get_loss("hinge", temperature=0.5).probabilistic
    assert [name for name, loss in LOSSES.items() if loss.probabilistic] == ["log", "softmax-margin"]
    model = partwise.MaxentClassifier(get_loss("hinge", temperature=0.5)).fit(np.eye(3), list("abc"))
    assert not hasattr(model, "predict_proba")


def test_an_unknown_label_in_a_file_of_costs_has_its_line(cli, files, tmp_path):
    cost = tmp_path / "costs.txt"
    cost.write_text("# some\nB-NP O 2\nB-NP X-NP 2\n")
    train = files / "treebank" / "train.txt"
    ended = cli("train", "tag", train, "-o", tmp_path / "m.pw", "--loss", "hinge", "--cost", cost, status=2)
    assert f"{cost}:3: label 'X-NP' was not in the training data" in ended.stderr.replace("\n", "")


def test_the_summary_shows_changed_settings_of_a_loss(cli, files, tmp_path):
    flags = (files / "treebank" / "train.txt", "-o", tmp_path / "m.pw", "--loss", "softmax-margin", "--tol", "0.1")
    changed = cli("train", "tag", *flags, "--cost-scale", "0.5", "--temperature", "2").stdout
    assert "loss softmax-margin with temperature 2 and cost scale 0.5, C = " in changed
    assert "softmax-margin with temperature 2 and cost scale 0.5, l2 = " in cli("inspect", tmp_path / "m.pw").stdout
    assert "loss softmax-margin, C = " in cli("train", "tag", *flags).stdout
