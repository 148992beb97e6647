"""Flags have the names, defaults, types and help of the estimators' and solvers' parameters."""

import inspect
from dataclasses import fields

import click
import pytest

from partwise import MaxentClassifier, SequenceTagger, available_solvers
from partwise.cli.errors import UserError
from partwise.cli.flags import TRAINING, estimator_options, parameter_docs, solver_options
from partwise.cli.tasks import TASKS, get_task
from partwise.cli.train import command
from partwise.solvers.engine.registry import SOLVERS


@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_parameter_is_the_estimators(name):
    task = get_task(name)
    names = (*TRAINING, *task.parameters)
    signature = inspect.signature(task.estimator).parameters
    for option in estimator_options(task.estimator, names):
        default = signature[option.name].default
        assert option.default == default or option.default == str(default), option.name
        assert option.help
        assert option.help[-1] == "."
        assert "None" not in option.help, option.name  # None cannot be written on a command line


@pytest.mark.parametrize("name", sorted(TASKS))
def test_defaults_given_as_flags_are_the_defaults(name):
    """Settings parsed from the flags' defaults equal the estimator's defaults."""
    from partwise.cli.flags import estimator_settings

    task = get_task(name)
    context = command.get_command(None, name).make_context("train", ["data"], resilient_parsing=False)
    with context:
        settings = estimator_settings(task, context.params)
    signature = inspect.signature(task.estimator).parameters
    for key, value in settings.items():
        if key not in ("random_state", "n_jobs"):
            assert value == signature[key].default, key
            assert type(value) is type(signature[key].default), key


def test_docstrings_are_read():
    docs = parameter_docs(MaxentClassifier)
    assert docs["tol"] == ("float", "Stop at a duality gap of tol times the objective.")
    assert docs["penalty"][0].startswith('{"l2"')
    options = {option.name: option for option in estimator_options(SequenceTagger, ["model", "history", "ends", "tol"])}
    assert list(options["model"].type.choices) == ["crf", "maxent"]
    assert list(options["history"].type.choices) == ["2", "1"]
    assert [options[name].type.convert("1", None, None) for name in ("history", "tol")] == [1, 1.0]
    assert type(options["history"].type.convert("1", None, None)) is int
    with pytest.raises(click.BadParameter, match="'3' is not one of '2', '1'"):
        options["history"].type.convert("3", None, None)
    assert options["ends"].secondary_opts == ["--no-ends"]
    assert options["tol"].type is click.FLOAT


@pytest.mark.parametrize("name", available_solvers())
def test_every_solver_option_can_be_given(name):
    """Each default of a solver option, written as text, is parsed to the same value."""
    given = {item.name: item.default for item in fields(SOLVERS[name])}
    texts = [f"{key.replace('_', '-')}={value}" for key, value in given.items()]
    assert solver_options(name, texts) == given


def test_solver_options_refused():
    for solver, text, message in (
        ("auto", "a=1", "needs a --solver"),
        ("eg", "order", "NAME=VALUE"),
        ("eg", "ordr=cyclic", "did you mean 'order'?"),
        ("eg", "growth=fast", "float"),
        ("lbfgs", "memory=-1", "memory"),
    ):
        with pytest.raises(UserError, match=r"--solver-option") as caught:
            solver_options(solver, [text])
        assert message in str(caught.value)
