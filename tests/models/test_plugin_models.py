"""Models trained by plug-in solvers or losses load where the plug-in is missing."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

import partwise
from helpers.guide_solvers import guide_solvers, solver_blocks
from partwise import MaxentClassifier, get_solver, register_loss
from partwise.cli import main
from partwise.model_files.values import decode
from partwise.problem.losses import LOSSES, Loss
from partwise.solvers import LBFGS
from partwise.solvers.engine.registry import SOLVERS

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.3 * RNG.normal(size=40) > 0, "b", "a")


@pytest.fixture
def clean_losses():
    before = dict(LOSSES)
    yield
    for name in set(LOSSES) - set(before):
        del LOSSES[name]
    assert before == LOSSES


def same_answers(old, path):
    new = partwise.load(path)
    np.testing.assert_array_equal(new.predict_proba(X), copy(old).set_params(loss=new.loss).predict_proba(X))
    assert new.score(X, Y) == old.score(X, Y)
    assert new.result_.gap == old.result_.gap
    return new


@pytest.mark.parametrize("by", ["name", "object"])
def test_a_model_outlives_its_solver(tmp_path, by):
    with guide_solvers():
        options = {"caution": 2.0}
        how = {"solver": "descent", "solver_options": options}
        if by == "object":
            how = {"solver": get_solver("descent", **options)}
        old = MaxentClassifier(tol=0.1, **how).fit(X, Y)
        old.save(tmp_path / "model.pw")
        assert same_answers(old, tmp_path / "model.pw").get_params()["solver"] == how["solver"]
    new = same_answers(old, tmp_path / "model.pw")
    assert (new.solver, new.solver_options) == ("descent", options)
    assert new.result_.solver == "descent"
    new.save(tmp_path / "again.pw", dtype="float32")  # the loaded model can be saved again
    assert partwise.load(tmp_path / "again.pw").solver == "descent"
    with pytest.raises(ValueError, match="unknown solver 'descent'"):
        new.fit(X, Y)
    assert new.set_params(solver="auto", solver_options=None).fit(X, Y).result_.status == "converged"


def test_a_solver_need_not_be_registered(tmp_path):
    """A model file names its solver, which need not be registered where the file is loaded."""

    @dataclass(frozen=True)
    class Unregistered(LBFGS):
        name: ClassVar[str] = "unregistered"

    old = MaxentClassifier(solver=Unregistered(memory=7), tol=0.1).fit(X, Y)
    old.save(tmp_path / "model.pw")
    new = same_answers(old, tmp_path / "model.pw")
    assert (new.solver, new.solver_options["memory"]) == ("unregistered", 7)


def test_a_model_outlives_an_option_of_its_solver(tmp_path):
    old = MaxentClassifier(solver=get_solver("lbfgs"), tol=0.1).fit(X, Y)
    old.save(tmp_path / "model.pw")
    raw = (tmp_path / "model.pw").read_bytes()
    assert b"memory" in raw
    try:
        SOLVERS["lbfgs"] = SOLVERS["newton"]  # Newton has no option `memory`
        new = same_answers(old, tmp_path / "model.pw")
    finally:
        del SOLVERS["lbfgs"]
    assert SOLVERS["lbfgs"] is LBFGS
    assert new.solver == "lbfgs"
    assert "memory" in new.solver_options


def test_a_model_outlives_its_loss(tmp_path, clean_losses):
    loss = register_loss(Loss("half-log", temperature=0.5, cost_scale=0.25))
    old = MaxentClassifier(loss="half-log").fit(X, Y)
    old.save(tmp_path / "model.pw")
    assert same_answers(old, tmp_path / "model.pw").loss == "half-log"
    del LOSSES["half-log"]
    assert same_answers(old, tmp_path / "model.pw").loss == loss
    # the file's loss wins over another registered loss of this name
    register_loss(Loss("half-log", temperature=2.0, cost_scale=0.0))
    assert same_answers(old, tmp_path / "model.pw").loss == loss


def test_losses_of_files_may_have_fewer_entries():
    """Losses in files may lack entries, so that old files load when a release adds an entry."""
    assert decode({"loss": {"name": "own", "temperature": 0.5, "cost_scale": 1.0}}) == Loss("own", 0.5, 1.0)
    for inner in ({"name": "own", "temperature": 0.5}, {**asdict(Loss("own", 0.5, 1.0)), "other": 1}):
        with pytest.raises(partwise.ModelFormatError, match="unknown kind 'loss'"):
            decode({"loss": inner})


def test_a_loss_is_registered_by_its_name(clean_losses):
    loss = Loss("own", temperature=0.5, cost_scale=1.0)
    assert register_loss(loss) is loss
    assert partwise.problem.losses.get_loss("own") == loss
    changed = register_loss(Loss("own", temperature=0.7, cost_scale=1.0))
    assert partwise.problem.losses.get_loss("own") == changed
    assert register_loss(LOSSES["log"]) == LOSSES["log"]
    with pytest.raises(ValueError, match="'log' is a loss of partwise"):
        register_loss(Loss("log", temperature=2.0, cost_scale=0.0))
    with pytest.raises(ValueError, match="letters, digits and hyphens, got 'two words'"):
        register_loss(Loss("two words", temperature=2.0, cost_scale=0.0))
    with pytest.raises(TypeError, match="register_loss takes a Loss, got str"):
        register_loss("log")


def test_commands_need_the_plugin_for_training_alone(tmp_path, clean_losses):
    plugin, model, data = tmp_path / "own.py", tmp_path / "model.pw", tmp_path / "data.txt"
    loss = 'import partwise\n\npartwise.register_loss(partwise.problem.losses.Loss("half", 0.5, 0.0))\n'
    plugin.write_text(solver_blocks()[0] + loss, encoding="utf-8")
    data.write_text("the DET\ncat NOUN\n\na DET\ndog NOUN\n\n", encoding="utf-8")

    def run(*arguments):
        return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False, standalone_mode=False).output

    try:
        run("--plugin", plugin, "train", "tag", data, "--solver", "descent", "--loss", "half", "-o", model)
    finally:
        SOLVERS.pop("descent", None)
    del LOSSES["half"]
    assert json.loads(run("evaluate", model, data, "--json"))["accuracy"] == 1.0
    assert "NOUN" in run("predict", model, data)
    shown = run("inspect", model)
    assert "half with temperature 0.5 and cost scale 0" in shown
    assert "descent: converged" in shown
