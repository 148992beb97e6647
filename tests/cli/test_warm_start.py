"""``partwise train --from``: training starts from a saved model."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import partwise
from partwise.cli import main
from partwise.datasets import make_treebank
from partwise.problem.result import ConvergenceWarning

BANK = make_treebank(60)


def run(*arguments, code=0):
    answer = CliRunner().invoke(main, [str(each) for each in arguments])
    assert answer.exit_code == code, answer.output
    return answer.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write files of 40 and of 60 sentences, and train a model on the first."""
    place = tmp_path_factory.mktemp("from")
    (place / "old.txt").write_text(BANK[:40].columns())
    (place / "new.txt").write_text(BANK.columns())
    run("train", "tag", place / "old.txt", "-o", place / "old.pw", "--features", "chunk", "--C", 2, "--tol", 1e-6, "-q")
    return place


def test_it_takes_features_loss_and_penalty_from_the_model(folder, tmp_path):
    out = tmp_path / "m.pw"
    found = json.loads(run("train", "tag", folder / "new.txt", "--from", folder / "old.pw", "-o", out, "--json"))
    old, new = partwise.load(folder / "old.pw"), partwise.load(out)
    assert (new.C, new.template_.text, new.tol) == (2.0, old.template_.text, 1e-3)
    assert new.input_settings_ == old.input_settings_
    start = found["from"]
    assert start["model"] == str(folder / "old.pw")
    labels, keys = set(old.classes_.tolist()), set(old.state_features_)
    assert start["n_new_labels"] == len(set(new.classes_.tolist()) - labels)
    fresh = len(set(new.state_features_) - keys) + len(set(new.transition_features_) - set(old.transition_features_))
    assert start["n_new_features"] == fresh > 0
    assert start["n_unused_features"] == 0
    cold = partwise.SequenceTagger(template="chunk", C=2.0)
    cold.fit(*_data(folder / "new.txt"))
    assert abs(found["primal"] - cold.result_.primal) <= found["gap"] + cold.result_.gap
    text = run("train", "tag", folder / "new.txt", "--from", folder / "old.pw", "-o", out)
    assert f"labels and {fresh} of {start['n_features']} features are new" in text


def _data(path):
    table = partwise.io.read_columns(path)
    sentences = [table[i] for i in range(len(table))]
    return [[t[:2] for t in s] for s in sentences], [[t[2] for t in s] for s in sentences]


def test_the_same_data_need_no_pass(folder, tmp_path):
    ask = ("train", "tag", folder / "old.txt", "--from", folder / "old.pw", "-o", tmp_path / "m.pw", "--json")
    assert json.loads(run(*ask, "--solver", "lbfgs"))["passes"] <= 1
    assert json.loads(run(*ask, "--C", 1))["C"] == 1
    assert json.loads(run(*ask, "--loss", "softmax-margin"))["loss"] == "softmax-margin"
    found = json.loads(
        run(*ask[:2], folder / "new.txt", *ask[3:4], folder / "old.pw", "-o", folder / "old2.pw", "--json")
    )
    assert found["from"]["n_new_features"] > 0


def test_the_starting_model_may_be_overwritten(folder, tmp_path):
    own = tmp_path / "own.pw"
    own.write_bytes((folder / "old.pw").read_bytes())
    run("train", "tag", folder / "new.txt", "--from", own, "-o", own, "-q")
    assert partwise.load(own).result_.status == "converged"


def test_checkpoints_hold(folder, tmp_path):
    """A resumed run ends with the same bits as an uninterrupted one."""
    ask = ("train", "tag", folder / "new.txt", "--from", folder / "old.pw", "--tol", 1e-7, "-q")
    run(*ask, "-o", tmp_path / "whole.pw")
    kept = ("--checkpoint", tmp_path / "state", "--checkpoint-every", 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(*ask, "-o", tmp_path / "part.pw", *kept, "--max-passes", 4)
    part = partwise.load(tmp_path / "part.pw")
    assert part.result_.status == "max_passes"
    run(*ask, "-o", tmp_path / "rest.pw", *kept)
    whole, rest = (partwise.load(tmp_path / name) for name in ("whole.pw", "rest.pw"))
    assert np.array_equal(whole.coef_, rest.coef_)
    assert whole.result_.passes == rest.result_.passes > part.result_.passes


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        ("segment", (), "is a model of task 'tag', not of 'segment'"),
        ("tag", ("--features", "pos"), "--features: with --from it is as in"),
        ("tag", ("--states", "all"), "--states: with --from it is as in"),
        ("tag", ("--order", "2"), "has 1; leave it out, or train without --from"),
        ("tag", ("--model", "maxent"), "has crf; leave it out"),
        ("tag", ("--loss", "hinge"), "the loss 'hinge' starts from a dual point, which model files do not have"),
        ("tag", ("--folds", "2"), "--folds cannot be combined with --from"),
        ("tag", ("--baseline", "maxent"), "--baseline maxent cannot be combined with --from"),
    ],
)
def test_refusals_are_one_line(folder, tmp_path, task, flags, message):
    out = tmp_path / "m.pw"
    answer = run("train", task, folder / "new.txt", "--from", folder / "old.pw", "-o", out, *flags, code=2)
    assert message in answer
    assert len(answer.strip().splitlines()) == 1
    assert not out.exists()


def test_rows_with_more_and_with_fewer_columns(tmp_path):
    (tmp_path / "old.txt").write_text("1 1:1 2:1\n2 2:1 3:2\n1 1:2\n2 3:1\n")
    (tmp_path / "more.txt").write_text("1 1:1 2:1\n2 2:1 3:2\n3 4:1\n3 1:1 5:1\n")
    (tmp_path / "few.txt").write_text("1 1:1\n2 2:1\n")
    run("train", "maxent", tmp_path / "old.txt", "-o", tmp_path / "old.pw", "-q")
    for name, width, new in (("more", 5, 1), ("few", 3, 0)):
        ask = (tmp_path / f"{name}.txt", "--from", tmp_path / "old.pw", "-o", tmp_path / "m.pw", "--json")
        assert json.loads(run("train", "maxent", *ask))["from"]["n_new_labels"] == new
        assert partwise.load(tmp_path / "m.pw").n_features_in_ == width
