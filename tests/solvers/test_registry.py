"""The registry of solvers: names, requirements, the compatibility table, and the choice of "auto"."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import partwise
from helpers.cut_problems import cut
from helpers.kernel_maps import kernel_map
from helpers.small_problems import Listed, Small
from helpers.specimens import SPECIMENS
from oracles.objective import LOSSES
from oracles.problems import maxent_case
from partwise import ConvergenceWarning, Problem, Solver, Structure, available_solvers, get_solver, solve
from partwise.cli.output import peak_memory
from partwise.features import Attributes, RowLayout, chain_map, maxent_map, multiclass_map
from partwise.models.classes import features as classes
from partwise.models.classes.features import classifier_map
from partwise.models.features import csr_attributes
from partwise.problem.losses import Loss
from partwise.problem.penalties import L2, ElasticNet
from partwise.solvers import EG, LBFGS, SDCA, EGProx, choose, compatibility_table, suitable_solvers
from partwise.solvers.engine import auto
from partwise.solvers.engine.data_sample import Look
from partwise.solvers.engine.registry import BUILT_IN, SOLVERS, check_solver
from partwise.structures import Chain, Multiclass


class MaxOnly(Structure):
    """The labellings of another structure, with a maximum and nothing else."""

    def __init__(self, other):
        super().__init__(other.num_examples)
        self.other = Listed(other)

    def num_slots(self, i):
        return self.other.num_slots(i)

    def maximize(self, i, scores):
        return self.other.maximize(i, scores)

    def cost(self, i, slots, counts):
        return self.other.cost(i, slots, counts)


def test_the_table_is_the_committed_one():
    expected = Path(__file__).with_name("compatibility.txt").read_text()
    assert compatibility_table() == expected, "python docs/tables.py writes the table anew"


class Counting(MaxOnly):
    """Like MaxOnly, but with sums over labellings; counts the calls for sums."""

    calls = 0

    def log_partition(self, i, scores, temperature=1.0):
        self.calls += 1
        return self.other.log_partition(i, scores, temperature)


def problem_of(kind: str, loss: str) -> Problem:
    """Make a problem of one of the kinds in the table."""
    kinds = {"ProjectiveTree": "projective", "SpanningTree": "spanning", "SegmentChain": "segments"}
    kinds |= {"SecondOrderChain": "second-order", "Grammar": "grammar", "Graph": "graph"}
    small = Small("multiclass" if kind.startswith("Multiclass") else kinds.get(kind, "chain-tied"), loss)
    structure = {
        "Python structure with both oracles": Listed,
        "Python structure with the maximum alone": MaxOnly,
    }.get(kind, lambda own: own)(small.case.structure)
    penalty: L2 | ElasticNet = L2(0.0 if kind.endswith("l2 = 0") else 0.7)
    if kind.endswith(("l1 > 0", "elastic net")):
        penalty = ElasticNet(0.1, 0.7 if kind.endswith("elastic net") else 0.0)
    features = small.case.features
    if kind.endswith("with a kernel"):
        rows = np.random.default_rng(0).normal(size=(sum(small.case.rows), 2))
        features = kernel_map(small.case.structure, rows, "rbf")
    if kind.endswith("two batches"):
        return Problem.of(cut("maxent" if "maxent" in kind else "chain-tied", 3, (2, 3)), small.loss, penalty)
    if "maxent map" in kind:
        case = maxent_case(3, form="negative" if kind.endswith("negative features") else "real")
        return Problem(case.features, case.structure, case.gold, small.loss, penalty)
    return Problem(features, structure, small.case.gold, small.loss, penalty)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", SPECIMENS)
def test_the_table_agrees_with_suitable_solvers(kind, loss):
    blocks = Path(__file__).with_name("compatibility.txt").read_text().split("\n\n")
    block = next(block for block in blocks if re.match(rf"{re.escape(kind)}  ", block))
    header, *rows = [re.split(r"\s{2,}", line.strip()) for line in block.splitlines()]
    column = header.index(loss)
    assert suitable_solvers(problem_of(kind, loss)) == [row[0] for row in rows if row[column] == "yes"]


def test_the_table_of_solvers_names_each_solver_of_the_package():
    for module in pkgutil.walk_packages(partwise.__path__, "partwise."):
        if module.name.startswith(("partwise.solvers.", "partwise.out_of_core.")):
            importlib.import_module(module.name)

    def descendants(cls):
        return {cls}.union(*map(descendants, cls.__subclasses__()))

    ours = [cls for cls in descendants(Solver) if cls.__module__.startswith("partwise.")]
    assert {cls.name for cls in ours if hasattr(cls, "name")} == set(BUILT_IN)
    assert {name: cls.name for name, cls in SOLVERS.items()} == {name: name for name in BUILT_IN}
    for name in BUILT_IN:
        check_solver(SOLVERS[name])


def test_get_solver():
    assert {"lbfgs", "eg", "eg-batch", "eg-primal", "bcfw"} <= set(available_solvers())
    assert get_solver("eg", order="cyclic") == EG(order="cyclic")
    with pytest.raises(ValueError, match="unknown solver 'adam'; there are lbfgs, eg, "):
        get_solver("adam")
    with pytest.raises(TypeError, match="no option speed; it has check_every, order, step_size"):
        get_solver("eg", speed=3)


@pytest.mark.parametrize(
    ("loss", "solver", "message"),
    [
        ("hinge", "lbfgs", r"'lbfgs' needs smooth.*\(loss 'hinge', l2 = 0.7, Chain\); solvers that fit: eg, .*bcfw"),
        ("squared-hinge", "eg", "'eg' needs identity link.*solvers that fit: bcfw"),
        ("log", "bcfw", "'bcfw' needs temperature 0.*solvers that fit: lbfgs, eg"),
    ],
)
def test_the_error_for_an_unsuitable_solver_names_suitable_ones(loss, solver, message):
    with pytest.raises(ValueError, match=message):
        solve(Small("chain-tied", loss).problem, solver)
    with pytest.raises(ValueError, match=message):
        get_solver(solver).run(Small("chain-tied", loss).problem)


def test_dual_methods_need_a_penalty():
    problem = Small("multiclass", "log", l2=0.0).problem
    with pytest.raises(ValueError, match="needs l2 > 0"):
        solve(problem, "eg")
    assert suitable_solvers(problem) == ["lbfgs", "newton"]


def test_the_error_says_if_no_solver_fits():
    small = Small("multiclass", "log")
    with_max = MaxOnly(small.case.structure)
    problem = Problem(small.case.features, with_max, small.case.gold, "log", 1.0)
    with pytest.raises(ValueError, match=r"no solver fits this problem yet.*lbfgs lacks expectation oracle"):
        solve(problem)
    with pytest.raises(ValueError, match="no solver fits"):
        solve(problem, "eg")
    hinge = Problem(small.case.features, with_max, small.case.gold, "hinge", 1.0)
    fitting = suitable_solvers(hinge)
    assert {"bcfw", "one-slack", "bmrm", "smo", "sgd", "perceptron", "mira"} <= set(fitting)
    assert "eg" not in fitting
    assert solve(hinge).solver == "bcfw"


class TestAuto:
    @pytest.mark.parametrize(
        ("loss", "solver"),
        [
            ("log", "lbfgs"),
            ("softmax-margin", "lbfgs"),
            ("smoothed-hinge", "lbfgs"),
            ("hinge", "bcfw"),
            ("squared-hinge", "bcfw"),
        ],
    )
    def test_choice_on_small_problems(self, loss, solver):
        small = Small("chain-tied", loss)
        result = solve(small.problem, tol=1e-2, random_state=0)
        assert result.solver == solver
        assert f"auto chose {solver}: " in result.message

    @pytest.mark.parametrize(("loss", "steps"), [("hinge", 5), ("squared-hinge", 10)])
    def test_max_margin_losses_draw_examples_by_their_gaps(self, loss, steps):
        solver = choose(Small("chain-tied", loss).problem).solver
        assert solver.gap_sampling
        assert solver.steps == steps

    def test_kernels(self):
        assert choose(problem_of("Chain with a kernel", "log")).solver.name == "eg"
        assert choose(problem_of("Chain with a kernel", "hinge")).solver.name == "eg"
        weak = choose(problem_of("Chain with a kernel", "hinge").with_penalty(1e-3))
        assert weak.solver.name == "excessive-gap"
        assert "weak penalty" in weak.reason

    def test_small_and_smooth_is_solved_exactly(self):
        small = Small("chain-tied", "log")
        result = solve(small.problem, tol=1e-3)
        assert result.gap - result.rounding <= 1e-14 * result.primal
        # two runs from different starts end at the same weights
        other = solve(small.problem, warm_start=np.ones(small.problem.n_weights))
        np.testing.assert_allclose(result.weights, other.weights, atol=1e-8)

    @pytest.mark.parametrize("l2", [1.0, 0.01])
    @pytest.mark.parametrize(("attributes", "solver", "other"), [(3, "lbfgs", "eg-prox"), (2000, "eg-prox", "lbfgs")])
    def test_auto_makes_few_calls_to_an_oracle_in_python(self, attributes, solver, other, l2, rng):
        """Calls into Python may be slow: the run stops at the tolerance, and "auto" chooses a solver with few calls."""
        labels = rng.integers(3, size=200)
        rows = rng.normal(size=(200, attributes)) * (rng.random((200, attributes)) < 6 / max(attributes, 6))
        rows[:, :3] += 2.0 * np.eye(3)[labels] * (rng.random((200, 1)) < 0.7)
        compiled = Multiclass(200, 3)
        structure = Counting(compiled)
        problem = Problem(multiclass_map(compiled, rows), structure, compiled.encode(labels), "log", l2)
        calls = {}
        for name in ("auto", other):
            structure.calls = 0
            result = solve(problem, name, tol=0.1)
            assert 1e-6 < result.relative_gap <= 0.1
            calls[name] = structure.calls
        assert choose(problem).solver.name == solver
        assert calls["auto"] <= 1.2 * calls[other]

    def test_large_and_smooth(self, monkeypatch):
        monkeypatch.setattr(auto, "TINY", 10)
        problem = Small("chain-tied", "log", l2=1.0).problem
        assert choose(problem).solver == EGProx()
        weak = choose(Small("chain-tied", "log", l2=1e-9).problem)
        assert isinstance(weak.solver, LBFGS)
        assert "weak penalty" in weak.reason
        assert isinstance(choose(Small("multiclass", "log", l2=1.0).problem).solver, SDCA)
        assert isinstance(choose(Small("multiclass", "log", l2=1e-8).problem).solver, LBFGS)
        none = choose(Small("chain-tied", "log", l2=0.0).problem)
        rather_weak = problem.with_penalty(Look(problem).curvature / 1000.0)
        assert choose(rather_weak).solver == EGProx()
        assert solve(rather_weak, tol=1e-3).relative_gap <= 1e-3
        assert isinstance(none.solver, LBFGS)

    def test_auto_visits_columns_if_slots_have_few_features(self, monkeypatch, rng):
        monkeypatch.setattr(auto, "TINY", 10)
        n, n_labels, n_attributes = 60, 4, 12
        structure = Multiclass(n, n_labels)
        three = np.concatenate([rng.choice(n_attributes, size=3, replace=False) for _ in range(n)])
        rows = Attributes(np.arange(0, 3 * n + 1, 3), three, n_attributes)
        pairs = RowLayout.from_pairs(
            n_attributes, n_labels, structure.width, np.arange(n_attributes + 1), np.arange(n_attributes) % n_labels
        )
        gold = structure.encode(rng.integers(0, n_labels, size=n))

        def chosen(by_features, table=rows, **options):
            features = classifier_map(structure, table, by_features, pairs)
            return choose(Problem(features, structure, gold, "log", 1.0, **options)).solver.name

        assert chosen(None) == "cd"
        assert chosen(False) != "cd"
        weighted = Attributes(rows.row_ptr, rows.attributes, n_attributes, np.full(3 * n, 0.5))
        assert chosen(None, weighted) != "cd"
        monkeypatch.setattr(auto, "FEW_FEATURES", 0.1)
        assert chosen(None) != "cd"
        monkeypatch.setattr(classes, "FEW_PAIRS", 5)
        assert (
            "column access"
            not in Problem(classifier_map(structure, rows, None, pairs), structure, gold, "log", 1.0).capabilities()
        )

    def test_auto_uses_cd_l1_if_weights_are_few(self, monkeypatch, rng):
        monkeypatch.setattr(auto, "TINY", 10)

        def chosen(n_columns, l2):
            structure = Multiclass(40, 2)
            gold = structure.encode(np.arange(40) % 2)
            features = maxent_map(structure, rng.normal(size=(40, n_columns)))
            return choose(Problem(features, structure, gold, "log", ElasticNet(0.1, l2))).solver.name

        assert chosen(3, 0.1) == "cd-l1"
        assert chosen(500, 0.1) == "eg-prox"
        assert chosen(500, 0.0) == "cd-l1"

    @pytest.mark.parametrize(("loss", "solver"), [("log", "lbfgs"), ("hinge", "bcfw"), ("squared-hinge", "bcfw")])
    def test_memory_is_in_proportion_to_the_data(self, loss, solver):
        # A tied chain has a slot for every pair of labels in every example: 9 million slots here, for 200 positions.
        n = 200
        structure = Chain(np.ones(n, dtype=np.int64), n)
        rows = Attributes(np.arange(n + 1), np.zeros(n, dtype=np.int64), 1)
        problem = Problem(chain_map(structure, rows), structure, structure.encode(np.arange(n)), loss, 1.0)
        assert int(structure.slot_offsets()[-1]) > 8_000_000
        assert choose(problem).solver.name == solver
        before = peak_memory()
        tracemalloc.start()
        solve(problem, tol=0, max_passes=2, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6
        # Includes the memory of the compiled core; an earlier peak may have been higher
        assert peak_memory() - before < 60e6

    def test_few_weights(self, monkeypatch):
        monkeypatch.setattr(auto, "TINY", 10)
        rng = np.random.default_rng(0)
        for rows, inputs, name in (
            (5000, 62, "newton"),  # 20 examples per weight, four weights per input
            (5000, 63, "sdca"),
            (120, 60, "newton"),  # 0.5 examples per weight, short rows
            (119, 60, "sdca"),
        ):
            structure = Multiclass(rows, 3)
            gold = structure.encode(rng.integers(0, 3, rows))
            problem = Problem(multiclass_map(structure, rng.normal(size=(rows, inputs))), structure, gold, "log", 1.0)
            assert choose(problem).solver.name == name
            if name == "newton":
                with monkeypatch.context() as patch:  # with many weights, short rows do not matter
                    patch.setattr(auto, "FEW", problem.n_weights - 1)
                    assert choose(problem).solver.name == ("newton" if rows == 5000 else "sdca")
        assert solve(problem.with_penalty(2.0), tol=1e-6, random_state=0).relative_gap <= 1e-6

    def test_auto_stops_at_the_tolerance(self):
        # Except on tiny problems, a run ends at its tolerance and not at rounding.
        problem = rows_problem(np.random.default_rng(0), 6000, 20)
        loose, tight = (solve(problem, tol=tol) for tol in (1e-2, 1e-9))
        assert 1e-9 < loose.relative_gap <= 1e-2
        assert tight.relative_gap <= 1e-9
        assert loose.passes < 0.7 * tight.passes

    @pytest.mark.parametrize("tol", [1e-1, 1e-6])
    def test_the_warning_names_the_tolerance_asked_for(self, tol):
        problem = rows_problem(np.random.default_rng(0), 50, 3)
        with pytest.warns(ConvergenceWarning, match=rf"; tol is {tol:.3g}\."):
            solve(problem, tol=tol, max_passes=1)
        # Raises no warning, because the tolerance is reached
        assert solve(problem, tol=0.9, max_passes=3).status == "converged"

    def test_extra_precision_ends_with_its_budget(self, monkeypatch):
        problem = rows_problem(np.random.default_rng(0), 50, 3)
        exact = solve(problem, tol=1e-2)
        assert exact.gap - exact.rounding <= 1e-18 * exact.primal
        monkeypatch.setattr(auto, "FREE", 0.0)
        assert 1e-16 < solve(problem, tol=1e-2).relative_gap <= 1e-2

    def test_time_grows_with_the_data(self):
        # Work (passes times rows) grows steadily: no problem takes many times as long as one a little smaller.
        rng = np.random.default_rng(0)
        work = []
        for n in np.geomspace(100, 12_800, 8).astype(int):
            work.append(solve(rows_problem(rng, int(n), 10), tol=1e-3, random_state=0).passes * n)
        assert np.all(np.array(work[1:]) <= 3.5 * np.array(work[:-1]))

    @pytest.mark.parametrize("n_labels", [2, 4])
    @pytest.mark.parametrize("rows", [60, 2000])
    def test_columns_of_different_scales(self, rows, n_labels):
        rng = np.random.default_rng(1)
        problem = rows_problem(rng, rows, 12, 10.0 ** rng.uniform(-2, 4, size=12), n_labels)
        result = solve(problem, tol=1e-6)
        assert result.solver == "newton"
        assert "features of different scales" in result.message
        assert result.converged
        with pytest.warns(ConvergenceWarning, match=r"scales differ by a factor of .*: bring them to one scale"):
            solve(problem, "lbfgs", tol=1e-6, max_passes=50)

    def test_scales_are_not_mentioned_if_they_agree(self):
        rng = np.random.default_rng(1)
        with pytest.warns(ConvergenceWarning) as caught:
            solve(rows_problem(rng, 100, 12), "lbfgs", tol=1e-6, max_passes=1)
        assert "scale" not in str(caught[0].message)
        # One column with values a thousand times as large is enough, at any position.
        for column in (0, 19):
            scales = np.ones(20)
            scales[column] = 1e3
            assert Look(rows_problem(rng, 100, 20, scales)).different_scales
        assert Look(rows_problem(rng, 100, 20, np.full(20, 1e3))).scale_ratio < 2
        words = sparse.random(300, 500, density=0.02, format="csr", rng=rng, data_rvs=np.ones)
        structure = Multiclass(300, 2)
        problem = Problem(
            multiclass_map(structure, csr_attributes(words)),
            structure,
            structure.encode(rng.integers(0, 2, 300)),
            "log",
            1.0,
        )
        assert Look(problem).scale_ratio == 1.0

    def test_a_smooth_loss_with_the_squared_link(self):
        small = Small("chain-tied", "log")
        loss = Loss("squared log", 1.0, 0.5, "squared")
        problem = Problem(small.case.features, small.structure, small.case.gold, loss, 1.0)
        result = solve(problem, tol=1e-6)
        assert result.solver == "lbfgs"
        assert result.relative_gap <= 1e-6


def rows_problem(rng, rows, inputs, scales=1.0, n_labels=2):
    """Draw normal rows and labels that depend on them, then multiply columns by `scales`."""
    X = rng.normal(size=(rows, inputs))
    structure = Multiclass(rows, n_labels)
    scores = X @ rng.normal(size=(inputs, n_labels)) + rng.gumbel(size=(rows, n_labels))
    gold = structure.encode(scores.argmax(axis=1))
    return Problem(multiclass_map(structure, X * scales), structure, gold, "log", 1.0)
