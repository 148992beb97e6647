"""Solvers that users write and register in their own files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from click.testing import CliRunner

import partwise
from partwise import CertificateError, Problem, SequenceTagger, Solver, get_solver, register_solver, solve
from partwise.cli import main
from partwise.cli.errors import UserError
from partwise.features import multiclass_map
from partwise.problem.capabilities import Capability
from partwise.problem.result import Certificate
from partwise.solvers import LBFGS, choose, option
from partwise.solvers.engine.registry import SOLVERS
from partwise.structures import Multiclass

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def clean_registry():
    before = dict(SOLVERS)
    yield
    for name in set(SOLVERS) - set(before):
        del SOLVERS[name]
    assert before == SOLVERS


@pytest.fixture
def own_file(tmp_path, clean_registry):
    """Write the solver of the how-to page to a file."""
    page = (DOCS / "how_to_add_a_solver.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    path = tmp_path / "descent.py"
    path.write_text('"""A file with a solver."""\n\n' + block.group(1), encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False, standalone_mode=False)


def small_problem(loss="log", weight=1.0):
    rng = np.random.default_rng(0)
    structure = Multiclass(20, 3)
    gold = structure.encode(rng.integers(3, size=20))
    features = multiclass_map(structure, rng.normal(size=(20, 4)))
    return Problem(features, structure, gold, loss, weight, sample_weight=np.full(20, weight))


def test_the_command_line_knows_the_solver_of_a_file(own_file):
    shown = run("--plugin", own_file, "solvers", "descent").output
    assert shown.startswith("descent: w -= step_size * grad P(w).")
    assert "caution  1.0  what the safe step is divided by" in shown
    assert "fits Chain: log, softmax-margin, smoothed-hinge" in shown
    # The file is loaded again, which replaces the class
    table = run("--plugin", own_file, "solvers", "--loss", "log").output
    assert re.search(r"^descent +yes$", table, re.MULTILINE)


def test_the_command_line_trains_with_it(own_file, tmp_path):
    (tmp_path / "data.txt").write_text("the DET\ncat NOUN\n\na DET\ndog NOUN\n\n", encoding="utf-8")
    data, model = tmp_path / "data.txt", tmp_path / "model.pw"
    ways = ["--solver", "descent", "--solver-option", "caution=2", "-o", model]
    result = run("--plugin", own_file, "train", "tag", data, *ways)
    assert "descent" in result.output
    tagger = partwise.load(model)
    assert tagger.get_params()["solver"] == "descent"
    with pytest.raises(UserError, match="solver 'descent' has no option 'speed': it has caution"):
        run(
            "--plugin", own_file, "train", "tag", data, "--solver", "descent", "--solver-option", "speed=2", "-o", model
        )


def test_estimators_and_solve_know_it_by_name(own_file):
    run("--plugin", own_file, "solvers", "descent")
    X, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
    tagger = SequenceTagger(solver="descent", solver_options={"caution": 2.0}, tol=1e-4).fit(X, y)
    assert tagger.result_.solver == "descent"
    assert tagger.result_.relative_gap <= 1e-4
    own, other = solve(small_problem(), "descent", tol=1e-6), solve(small_problem(), "lbfgs", tol=1e-6)
    assert abs(own.primal - other.primal) <= own.gap + other.gap
    with pytest.raises(ValueError, match="solver 'descent' needs smooth"):
        solve(small_problem("hinge"), "descent")
    with pytest.raises(TypeError, match="'descent' has no option speed; it has caution"):
        get_solver("descent", speed=1)


def test_auto_does_not_choose_it(own_file):
    before = choose(small_problem("slack-hinge")).solver, choose(small_problem()).solver

    @register_solver
    @dataclass(frozen=True)
    class Slack(LBFGS):
        name: ClassVar[str] = "aaa"
        requires: ClassVar[frozenset[Capability]] = frozenset()

    run("--plugin", own_file, "solvers", "descent")
    assert (choose(small_problem("slack-hinge")).solver, choose(small_problem()).solver) == before
    assert partwise.available_solvers()[-2:] == ["aaa", "descent"]


@pytest.mark.parametrize("weight", [1.0, 1e-9])
@pytest.mark.parametrize(("values", "message"), [((0.5, 1.0), "primal"), ((1.0, 1.01), "dual"), ((1.0, 1.0), None)])
def test_a_certificate_that_the_problem_does_not_confirm_is_refused(values, message, weight):
    """A user's solver may forget a term of the objective, so the last certificate is recomputed and compared."""

    @dataclass(frozen=True)
    class Forgetful(LBFGS):
        name: ClassVar[str] = "forgetful"

        def certificate(self, problem, state):
            found = super().certificate(problem, state)
            primal, dual = values[0] * found.certificate.primal, values[0] * values[1] * found.certificate.dual
            return found._replace(certificate=Certificate.of(primal, dual, 0.1 * primal))

    problem = small_problem(weight=weight)
    if message is None:
        assert solve(problem, Forgetful(), tol=0.2).status == "converged"
        return
    with pytest.raises(CertificateError, match=f"solver 'forgetful': the certificate says {message} .*, the problem"):
        solve(problem, Forgetful(), tol=0.2)


FROZEN = dataclass(frozen=True)


def own(decorate=FROZEN, base=LBFGS, **members):
    """Register a class with these members."""
    annotations = {name: ClassVar for name in members if name != "speed"}
    body = {"__module__": __name__, "__annotations__": annotations, **members}
    if "speed" in members:
        annotations["speed"] = float
    return register_solver(decorate(type("Own", (base,), body)))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: register_solver(3), TypeError, "only subclasses of partwise.Solver can be registered, got 3"),
        (lambda: register_solver(dict), TypeError, "only subclasses of partwise.Solver"),
        (
            lambda: own(name="lbfgs"),
            ValueError,
            r"'lbfgs' is registered already: partwise\.solvers\.primal.*LBFGS",
        ),
        (lambda: own(name="auto"), ValueError, "'auto': this name is that of the choice"),
        (lambda: own(name="two words"), TypeError, "letters, digits and hyphens, got 'two words'"),
        (lambda: own(name=7), TypeError, "letters, digits and hyphens, got 7"),
        (lambda: own(name="own", decorate=lambda cls: cls), TypeError, r"@dataclass\(frozen=True\) is missing"),
        (lambda: own(name="own", requires={"smooth"}), TypeError, "requires must be a frozenset of members of Capab"),
        (lambda: own(name="own", requires=frozenset({"smooth"})), TypeError, "requires must be a frozenset of memb"),
        (lambda: own(name="own", rate="fast"), TypeError, "a rate must be one of linear, .*, got 'fast'"),
        (lambda: own(name="own", rate_at_zero="fast"), TypeError, "a rate must be one of linear"),
        (lambda: own(name="own", advice=None), TypeError, "advice must be a text"),
        (lambda: own(name="own", default_max_passes=0), TypeError, "default_max_passes must be a number above 0"),
        (lambda: own(name="own", speed=1.0), TypeError, r"write its option speed as `option\(default, help\)`"),
        (lambda: own(name="own", speed=field(metadata={"help": "x"}, kw_only=True)), TypeError, "its option speed"),
        (
            lambda: own(base=Solver, name="own"),
            TypeError,
            "solver Own has no requires, rate, advice, default_max_passes, certificate, init_state, step, weights",
        ),
    ],
)
def test_invalid_solver_classes_are_refused(clean_registry, call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert "own" not in SOLVERS


def test_options_reach_the_solver(clean_registry):
    cls = own(name="own", speed=option(1.0, "how fast"))
    assert get_solver("own", speed=2.0) == cls(speed=2.0)
    assert get_solver("own").speed == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file"),
        ("x = 1\ny = (", "SyntaxError"),
        ("x = 1\n\nraise KeyError('x')", "line 3: KeyError: 'x'"),
        ("import sys\nsys.exit(3)", "line 2: SystemExit: 3"),
        ("raise SystemExit", "line 1: SystemExit: "),
        ("from partwise import nothing_of_this_name", "line 1: ImportError"),
    ],
)
def test_a_plugin_that_fails_is_named_with_its_line(tmp_path, text, message):
    path = tmp_path / "own.py"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        run("--plugin", path, "solvers", "lbfgs")
    assert str(path) in str(caught.value)


def test_a_plugin_may_be_a_module():
    assert run("--plugin", "json", "solvers", "lbfgs").output.startswith("lbfgs:")
    with pytest.raises(UserError, match="--plugin no_such_module: ModuleNotFoundError"):
        run("--plugin", "no_such_module", "solvers")
