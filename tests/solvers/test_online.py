"""Perceptron, MIRA and SGD: the papers' iterates, averages at no extra cost, and runs without a certificate."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

from helpers.small_problems import BARE_COLUMNS, Listed, Small
from oracles import online_reference as reference
from partwise import DivergenceError, Problem, solve
from partwise.features import multiclass_map
from partwise.solvers import MIRA, SGD, Perceptron, choose, suitable_solvers
from partwise.solvers.engine.state import pack, unpack
from partwise.solvers.online.sgd import CANDIDATES
from partwise.structures import Multiclass

STRUCTURES = ("multiclass", "chain-tied", "projective", "segments", "graph", "grammar")
MISTAKE_DRIVEN = [Perceptron(), MIRA(), MIRA(k=3)]
pytestmark = BARE_COLUMNS


def start(small: Small, seed: int = 7) -> np.ndarray:
    """Random weights at which no two labellings have the same score."""
    return 0.3 * np.random.default_rng(seed).normal(size=small.problem.n_weights)


def run_epochs(solver, small, epochs, seed=4):
    """Run some epochs. Return the state and the order of visits."""
    rng = np.random.default_rng(seed)
    state = solver.init_state(small.problem, np.random.default_rng(seed), start(small))
    order = []
    for _ in range(epochs):
        solver.step(small.problem, state)
        order += solver.draw_order(small.problem, rng).tolist()
    return state, order


def iterates_of(solver, small, order):
    if isinstance(solver, MIRA):
        return list(reference.mira(small.dense, start(small), order, solver.k))
    return list(reference.perceptron(small.dense, start(small), order))


@pytest.mark.parametrize("kind", STRUCTURES)
@pytest.mark.parametrize("solver", MISTAKE_DRIVEN, ids=["perceptron", "mira-1", "mira-3"])
class TestIterates:
    def test_iterates_are_those_of_the_paper(self, solver, kind):
        small = Small(kind, "hinge", ties=False)
        state, order = run_epochs(solver, small, 3)
        iterates = iterates_of(solver, small, order)
        np.testing.assert_allclose(state.weights, iterates[-1], atol=1e-9)
        assert any(not np.array_equal(a, b) for a, b in zip(iterates, iterates[1:], strict=False))

    def test_the_average_is_the_mean(self, solver, kind):
        small = Small(kind, "hinge", ties=False)
        state, order = run_epochs(solver, small, 3)
        mean = np.mean(iterates_of(solver, small, order), axis=0)
        np.testing.assert_allclose(solver.weights(small.problem, state), mean, atol=1e-9)
        last = type(solver)(**(solver.options() | {"averaged": False}))
        plain, _ = run_epochs(last, small, 3)
        np.testing.assert_array_equal(last.weights(small.problem, plain), state.weights)


@pytest.mark.parametrize("rule", CANDIDATES)
@pytest.mark.parametrize("loss", ["log", "hinge", "smoothed-hinge"])
@pytest.mark.parametrize("kind", STRUCTURES)
class TestStochasticGradients:
    def test_iterates_are_those_of_the_papers(self, kind, loss, rule):
        small = Small(kind, loss, ties=False, l2=2.0)
        solver = SGD(rule=rule, step_size=0.25)
        state, order = run_epochs(solver, small, 3)
        n = len(small.problem.active)
        eta = getattr(reference, rule)(0.25, n, 2.0)
        iterates = list(reference.sgd(small.dense, start(small), order, eta, n))
        np.testing.assert_allclose(state.weights, iterates[-1], atol=1e-10)
        shares = np.arange(1, len(order) + 1)
        mean = np.average(iterates, axis=0, weights=shares)
        np.testing.assert_allclose(solver.weights(small.problem, state), mean, atol=1e-10)
        assert state.mass == shares.sum()

    def test_the_step_size_is_chosen_as_in_the_papers(self, kind, loss, rule):
        small = Small(kind, loss, ties=False, n=12)
        dense, n = small.dense, len(small.problem.active)
        solver = SGD(rule=rule)
        state = solver.init_state(small.problem, np.random.default_rng(0), start(small))
        solver.step(small.problem, state)
        drawn = np.random.default_rng(0).permutation(small.problem.active).tolist()
        judged, trained = (drawn[:1], drawn[1:]) if rule == "reciprocal" else (drawn, drawn)
        found = []
        for eta0 in CANDIDATES[rule]:
            eta = getattr(reference, rule)(eta0, n, dense.l2)
            w = list(reference.sgd(dense, start(small), trained, eta, n))[-1]
            losses = sum(dense.sample_weight[i] * dense.oracle(i, w)[0] for i in judged)
            wrong = 0.0
            for i in judged:
                y = np.argmax(dense.examples[i].counts @ (dense.matrices[i] @ w))
                wrong += dense.sample_weight[i] * np.maximum(dense.examples[i].counts[y] - dense.gold[i], 0).sum()
            penalty = 0.5 * dense.l2 * (w @ w) * len(judged) / n
            found.append((wrong, losses) if rule == "reciprocal" else (losses + penalty, 0.0))
        assert state.step_size == CANDIDATES[rule][found.index(min(found))]
        assert state.visits == n + 5 * (len(trained) + len(judged))  # the passes of the search for a step are counted


def test_planes_of_a_pass_are_below_the_losses():
    small = Small("chain-tied", "hinge", ties=False, n=8)
    solver = SGD(step_size=0.5, rule="power")
    state, order = run_epochs(solver, small, 1)
    n = len(small.problem.active)
    eta = reference.power(0.5, n, small.dense.l2)
    iterates = [start(small), *reference.sgd(small.dense, start(small), order, eta, n)]
    u, b = reference.sgd_plane(small.dense, iterates[:-1], order)
    # the mixture of (0, 0) and the plane, with the largest dual value
    shares = np.linspace(0, 1, 2001)
    duals = shares * b - shares**2 * (u @ u) / (2 * small.dense.l2)
    share = shares[duals.argmax()]
    np.testing.assert_allclose(state.u, share * u, atol=1e-3 * np.abs(u).max())
    assert state.b == pytest.approx(share * b, rel=2e-3)
    rng = np.random.default_rng(0)
    for w in (*rng.normal(size=(20, len(u))), *iterates):
        assert small.dense.loss_sum(w) >= b - u @ w - 1e-9
        assert small.dense.loss_sum(w) >= state.b - state.u @ w - 1e-9


def test_the_dual_of_the_plane_never_falls():
    small = Small("chain-tied", "hinge", n=8)
    solver = SGD(check_every=3)
    state = solver.init_state(small.problem, np.random.default_rng(0), None)
    duals = []
    for epoch in range(30):
        solver.step(small.problem, state)
        if epoch % 3 == 0:
            solver.observe(small.problem, state, solver.certificate(small.problem, state).certificate)
        duals.append(small.problem.dual_of_plane(state.u, state.b))
    assert np.all(np.diff(duals) >= -1e-12)
    assert duals[-1] > duals[0]


@pytest.mark.parametrize("order", ["random", "cyclic", "permuted"])
@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_options_of_sgd(loss, averaged, order):
    problem = Small("chain-tied", loss, n=10).problem
    result = solve(problem, SGD(order=order, averaged=averaged), tol=2e-2, max_passes=3000, random_state=0)
    assert result.status == "converged"
    assert result.message.endswith(("eta0 = 0.5", "eta0 = 0.25", "eta0 = 0.125", "eta0 = 0.0625", "eta0 = 0.03125"))


def test_the_scale_of_the_weights_is_renewed():
    """A step nearly removes all weights, so that the scale of w must be renewed before it underflows."""
    rng = np.random.default_rng(0)
    structure = Multiclass(300, 3)
    problem = Problem(
        multiclass_map(structure, rng.normal(size=(300, 4))), structure, structure.encode(rng.integers(3, size=300)),
        "log", 3.0e3,
    )  # fmt: skip
    solver = SGD(step_size=0.0999, order="cyclic", rule="reciprocal")
    state = solver.init_state(problem, np.random.default_rng(0), None)
    solver.step(problem, state)
    (part,) = problem.sums.in_memory()
    w, total = np.zeros(problem.n_weights), np.zeros(problem.n_weights)
    scores, counts = np.empty(part.structure.num_slots(0)), np.empty(part.structure.num_slots(0))
    for k in range(300):
        scores = part.features.scores(k, w)
        _, counts, _ = part.structure.log_partition(k, scores, 1.0)
        gold = np.zeros(len(scores))
        gold[problem.gold[1][k]] = 1.0
        eta = 0.0999 / (1 + k / 300)
        w = (1 - eta * 10.0) * w
        part.features.add_transpose(k, gold - counts, eta, w)
        total += (k + 1) * w
    np.testing.assert_allclose(state.weights, w, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(state.total, total, rtol=1e-9, atol=1e-12)


class TestHardConstraints:
    def test_margins_are_met_after_each_visit(self):
        small = Small("chain-tied", "hinge", ties=False, n=6)
        w = start(small)
        for i in range(small.dense.n):
            k = min(4, len(small.dense.examples[i]))
            solver = MIRA(k=k, order="cyclic", averaged=False)
            alone = Problem(
                small.case.features, small.structure, small.case.gold, "hinge", 1.0,
                sample_weight=np.eye(small.dense.n)[i], cost=np.concatenate(small.dense.cost),
            )  # fmt: skip
            scores = small.dense.examples[i].counts @ (small.dense.matrices[i] @ w)
            best = np.argsort(-scores)[:k]
            state = solver.init_state(alone, np.random.default_rng(0), w)
            solver.step(alone, state)
            psi, costs = small.dense.psi(i)[best], small.dense.label_costs(i)[best]
            change = state.weights - w
            # Karush-Kuhn-Tucker: margins are met, and the change is a combination >= 0 of the psi of tight margins.
            slack = psi @ state.weights - costs
            assert slack.min() >= -1e-9
            tight = np.flatnonzero(np.abs(slack) <= 1e-8)
            alpha, *_ = np.linalg.lstsq(psi[tight].T, change, rcond=None)
            np.testing.assert_allclose(psi[tight].T @ alpha, change, atol=1e-8)
            if np.linalg.matrix_rank(psi[tight]) == len(tight):
                assert alpha.min(initial=0.0) >= -1e-8
            w = state.weights

    def test_margins_that_no_weights_can_reach_are_ignored(self):
        structure = Multiclass(2, 3)
        rows = np.array([[0.0, 0.0], [1.0, 0.5]])  # the features of the first example are all 0
        problem = Problem(multiclass_map(structure, rows), structure, structure.encode(np.array([1, 2])), "hinge", 1.0)
        for k in (1, 3):
            result = solve(problem, MIRA(k=k, averaged=False, order="cyclic"), max_passes=4)
            assert np.isfinite(result.weights).all()
            assert "margins left out that others exclude" in result.message
            # the second example has its margin of 1
            assert solve(problem, MIRA(k=k, averaged=False), max_passes=4).primal < problem.value(
                np.zeros(problem.n_weights)
            )

    def test_k_above_the_number_of_labellings_is_refused(self):
        small = Small("multiclass", "hinge")
        labels = len(small.dense.examples[0])
        solve(small.problem, MIRA(k=labels))
        with pytest.raises(ValueError, match=f"mira: k={labels + 1}, but no example has more than {labels} labellings"):
            solve(small.problem, MIRA(k=labels + 1))
        chains = Small("chain-tied", "hinge", n=8)
        sizes = [len(example) for example in chains.dense.examples]
        assert min(sizes) < max(sizes)
        assert solve(chains.problem, MIRA(k=max(sizes))).status == "no certificate"
        with pytest.raises(ValueError, match="no example has more than"):
            solve(chains.problem, MIRA(k=max(sizes) + 1))

    @pytest.mark.parametrize("k", [0, -1, 1001])
    def test_an_invalid_k_is_refused(self, k):
        with pytest.raises(ValueError, match="k must be between 1 and 1000"):
            MIRA(k=k)

    def test_structures_in_python(self):
        small = Small("python", "hinge", ties=False)
        with pytest.raises(ValueError, match="k=2 needs k_best, which Listed lacks"):
            solve(small.problem, MIRA(k=2))

        class Ranked(Listed):
            def k_best(self, i, scores, k):
                values = self.examples[i].counts @ scores
                best = np.argsort(-values, kind="stable")[:k]
                slots = [np.flatnonzero(self.examples[i].counts[y]) for y in best]
                return [(values[y], s, self.examples[i].counts[y][s]) for y, s in zip(best, slots, strict=True)]

        case = small.case
        problem = Problem(
            case.features, Ranked(case.structure), case.gold, small.loss, 0.7,
            sample_weight=case.sample_weight, cost=np.concatenate(small.dense.cost),
        )  # fmt: skip
        solver = MIRA(k=3, order="cyclic")
        state = solver.init_state(problem, np.random.default_rng(0), start(small))
        solver.step(problem, state)
        expected = list(reference.mira(small.dense, start(small), small.problem.active, 3))
        np.testing.assert_allclose(state.weights, expected[-1], atol=1e-9)


@pytest.mark.parametrize("solver", MISTAKE_DRIVEN, ids=["perceptron", "mira-1", "mira-3"])
class TestWithoutCertificate:
    def test_a_run_ends_without_a_warning(self, solver):
        problem = Small("chain-tied", "hinge").problem
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = solve(problem, solver, tol=1e-6)
            short = solve(problem, solver, max_seconds=0.0)
        assert (result.status, result.passes, result.dual_point) == ("no certificate", 10.0, None)
        assert (result.dual, result.gap) == (-np.inf, np.inf)
        assert "no certificate (the solver has none)" in result.message
        assert result.history["primal"][-1] == result.primal == problem.value(result.weights)
        assert short.status == "no certificate"
        assert short.passes == 1.0

    def test_seeds_and_checkpoints(self, solver, tmp_path):
        problem = Small("chain-tied", "hinge", n=12).problem
        whole = solve(problem, solver, random_state=3)
        np.testing.assert_array_equal(whole.weights, solve(problem, solver, random_state=3).weights)
        assert not np.array_equal(whole.weights, solve(problem, solver, random_state=4).weights)
        path = tmp_path / "run.ckpt"
        solve(problem, solver, random_state=3, max_passes=4, checkpoint=path)
        resumed = solve(problem, solver, random_state=9, checkpoint=path)
        np.testing.assert_array_equal(resumed.weights, whole.weights)
        again = solve(problem, solver, random_state=9, checkpoint=path)
        assert (again.passes, again.status) == (10.0, "no certificate")

    def test_packed_states(self, solver):
        problem = Small("chain-tied", "hinge", n=12).problem
        through, broken = (solver.init_state(problem, np.random.default_rng(3), None) for _ in range(2))
        fresh = solver.init_state(problem, np.random.default_rng(0), None)
        for _ in range(4):
            solver.step(problem, through)
            broken = unpack(fresh, *pack(broken))
            solver.step(problem, broken)
        np.testing.assert_array_equal(through.total, broken.total)

    def test_no_penalty_is_needed(self, solver):
        problem = Small("chain-tied", "hinge", l2=0.0).problem
        assert {"perceptron", "mira"} <= set(suitable_solvers(problem))
        assert solve(problem, solver).status == "no certificate"
        with pytest.raises(ValueError, match="no solver fits"):
            choose(problem)  # "auto" only chooses solvers with certificates

    def test_a_warm_start(self, solver):
        problem = Small("chain-tied", "hinge", n=12).problem
        first = solve(problem, solver)
        again = solve(problem, type(solver)(**(solver.options() | {"averaged": False})), warm_start=first, max_passes=0)
        np.testing.assert_array_equal(again.weights, first.weights)


def test_separable_data_are_separated():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 5))
    gold = (rows @ rng.normal(size=(5, 3))).argmax(axis=1)
    structure = Multiclass(200, 3)
    problem = Problem(multiclass_map(structure, rows), structure, structure.encode(gold), "hinge", 1e-9)
    last = solve(problem, Perceptron(averaged=False), max_passes=500)
    assert "0 updates in the last pass" in last.message


@pytest.mark.parametrize(
    ("cls", "options", "message"),
    [
        (SGD, {"rule": "bold"}, "rule must be one of bottou, power, reciprocal"),
        (SGD, {"step_size": 0.0}, "step_size must be a number above 0"),
        (SGD, {"step_size": np.inf}, "step_size must be a number above 0"),
        (SGD, {"n_examples": 0}, "n_examples must be at least 1"),
        (Perceptron, {"order": "sorted"}, "order must be one of"),
    ],
)
def test_bad_options(cls, options, message):
    with pytest.raises(ValueError, match=message):
        cls(**options)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_steps_that_are_too_large_are_an_error(loss):
    problem = Small("chain-tied", loss, l2=100.0, n=10).problem
    with pytest.raises(DivergenceError):
        solve(problem, SGD(step_size=1e4, rule="reciprocal", n_examples=1), tol=1e-3, max_passes=10_000)


class Raising(Listed):
    broken = False

    def maximize(self, i, scores):
        if self.broken:
            raise ValueError("the oracle's own complaint")
        return super().maximize(i, scores)


def test_errors_of_an_oracle_are_not_reported_as_divergence():
    small = Small("multiclass", "hinge")
    features, gold = small.case.features, small.case.gold
    structure = Raising(small.structure)
    problem = Problem(features, structure, gold, small.loss, small.problem.penalty)
    structure.broken = True
    with pytest.raises(ValueError, match="the oracle's own complaint"):
        solve(problem, "sgd")


def test_examples_of_weight_zero_are_not_visited():
    small = Small("chain-tied", "hinge", n=8)
    omega = small.case.sample_weight.copy()
    omega[[1, 4]] = 0.0
    problem = Problem(small.case.features, small.structure, small.case.gold, "hinge", 0.7, sample_weight=omega)
    for solver in (*MISTAKE_DRIVEN, SGD(step_size=0.1)):
        state = solver.init_state(problem, np.random.default_rng(0), None)
        solver.step(problem, state)
        assert state.visits == len(problem.active) < len(small.problem.active)


def test_an_epoch_is_as_fast_as_its_oracle():
    """Neither the scale of w nor the average needs a loop over all weights at each visit."""
    n, d = 2000, 40_000
    structure = Multiclass(n, 2)
    import scipy.sparse as sparse

    rng = np.random.default_rng(0)
    rows = sparse.csr_matrix((np.ones(n), (np.arange(n), rng.integers(d, size=n))), shape=(n, d))
    problem = Problem(
        multiclass_map(structure, rows), structure, structure.encode(rng.integers(2, size=n)), "hinge", 1.0
    )
    for solver in (Perceptron(), SGD(step_size=0.1)):
        state = solver.init_state(problem, rng, None)
        begin = time.process_time()
        solver.step(problem, state)
        # A loop over all 40,000 weights at each of the 2000 visits would take longer.
        assert time.process_time() - begin < 0.5


def test_messages_and_reports_say_why_there_is_no_certificate(tmp_path):
    from partwise import SequenceTagger
    from partwise.callbacks import EarlyStopping
    from partwise.cli.summary import certificate_lines, result_fields

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 3)) for _ in range(20)]
    y = [rng.choice(["a", "b"], size=4).tolist() for _ in range(20)]
    stopping = EarlyStopping(X[:5], y[:5], patience=1)
    tagger = SequenceTagger(loss="hinge", solver="perceptron", callbacks=[stopping], max_passes=50).fit(X, y)
    assert "no certificate (the solver has none)" in tagger.result_.message or tagger.result_.passes == 50
    assert dict(certificate_lines(result_fields(tagger.result_)))["certified"].startswith("none (perceptron has none)")
    tagger.result_.report(tmp_path / "report.html")
    assert "There is no certificate: perceptron has none." in (tmp_path / "report.html").read_text()
    streamed = SequenceTagger(loss="hinge").partial_fit(X, y)
    streamed.result_.report(tmp_path / "stream.html")
    assert "earlier calls of partial_fit are not known any more" in (tmp_path / "stream.html").read_text()
    assert "trained by partial_fit" in dict(certificate_lines(result_fields(streamed.result_)))["certified"]
