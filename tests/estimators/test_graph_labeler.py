"""GraphLabeler: forms of input, constraints, edges, kinds of nodes, files, bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import partwise
from helpers.graph_cases import LABELS, as_dicts, as_networkx, make
from oracles.enumerate import enumeration_of
from oracles.objective import matrix_of
from partwise import ConstraintError, GraphLabeler, MaxentClassifier, ModelFormatError
from partwise.datasets.arrays import OWN_COLOUR, grid_edges, snakes
from partwise.models import Ability


@pytest.fixture(scope="module")
def fitted():
    X, y = make(40, 0)
    return GraphLabeler(tol=1e-6).fit(X, y)


def test_it_learns_from_edges(fitted):
    X, y = make(30, 1)
    nodes = MaxentClassifier().fit(np.concatenate([x[0] for x in make(40, 0)[0]]), np.concatenate(make(40, 0)[1]))
    alone = nodes.score(np.concatenate([x[0] for x in X]), np.concatenate(y))
    assert fitted.score(X, y) > alone + 0.05
    assert fitted.result_.relative_gap <= 1e-6
    assert fitted.classes_.tolist() == ["a", "b", "c"]
    assert fitted.edge_types_ == ["ring", "tail"]
    weights = np.array([1.0] + [0.0] * 29)
    assert fitted.score(X, y, weights) == np.mean(np.array(fitted.predict(X)[0]) == y[0])


@pytest.mark.parametrize("form", ["sparse", "sparse rows", "dicts", "lists", "networkx"])
def test_forms_of_input(form, fitted):
    X, y = make(40, 0)
    new = make(5, 1)[0]
    options = {}
    if form == "sparse":
        X, other = ([(sparse.csr_array(x[0]), *x[1:]) for x in some] for some in (X, new))
    elif form == "sparse rows":
        X, other = (
            [([sparse.csr_array(row[None]) for row in x[0]], x[1].tolist(), *x[2:]) for x in some] for some in (X, new)
        )
    elif form == "dicts":
        X, other = as_dicts(X), as_dicts(new)
    elif form == "lists":
        X, other = ([(x[0].tolist(), x[1].tolist(), *x[2:]) for x in some] for some in (X, new))
    else:
        y = [{f"n{v}": label for v, label in enumerate(own)} for own in y]
        X, other = as_networkx(X), as_networkx(new)
        options = {"node_key": "row", "type_key": "t"}
    model = GraphLabeler(tol=1e-6, **options).fit(X, y)
    assert model.result_.primal == pytest.approx(fitted.result_.primal, rel=1e-5)
    expected, found = fitted.predict_marginals(new, output="array"), model.predict_marginals(other, output="array")
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-2)
    if form == "networkx":
        assert model.predict(other) == [{f"n{v}": label for v, label in enumerate(own)} for own in fitted.predict(new)]
        assert model.predict_marginals(other)[0]["n1"]["a"] == found[0][1, 0]
        assert model.score(other, model.predict(other)) == 1.0
        fixed = model.predict(other, fixed=[{"n0": "b"}, *[None] * 4])
        assert fixed[0]["n0"] == "b"


def test_real_networkx_graphs(fitted):
    networkx = pytest.importorskip("networkx")

    def graph(nodes, edges, directed):
        made = networkx.DiGraph() if directed else networkx.Graph()
        made.add_nodes_from(nodes.items())
        made.add_edges_from(edges)
        return made

    X, y = make(40, 0)
    model = GraphLabeler(tol=1e-6, node_key="row", type_key="t").fit(as_networkx(X, graph), y)
    assert model.result_.primal == pytest.approx(fitted.result_.primal, rel=1e-5)
    # smaller graphs have edges in both directions, which networkx merges into one
    kept = [i for i, x in enumerate(X) if len(x[0]) > 3]
    X, y = [X[i] for i in kept], [y[i] for i in kept]
    undirected = as_networkx(X, graph, directed=False)
    with pytest.raises(ValueError, match=r"graph 0 is undirected.*directed=False"):
        GraphLabeler(node_key="row", type_key="t").fit(undirected, y)
    both = GraphLabeler(tol=1e-6, node_key="row", type_key="t", directed=False).fit(undirected, y)
    plain = GraphLabeler(tol=1e-6, directed=False).fit(X, y)
    assert both.result_.primal == pytest.approx(plain.result_.primal, rel=1e-5)


def test_order_of_undirected_edges_does_not_matter():
    X, y = make(40, 0)
    turned = [(x[0], x[1][:, ::-1].copy(), *x[2:]) for x in X]
    models = [GraphLabeler(tol=1e-8, directed=False).fit(some, y) for some in (X, turned)]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-3)
    np.testing.assert_allclose(models[0].predict_marginals(X, edges=True)[0].sum(axis=(1, 2)), 1.0)
    one, other = (model.predict_marginals(some, edges=True)[0] for model, some in zip(models, (X, turned), strict=True))
    np.testing.assert_allclose(one, other.transpose(0, 2, 1), atol=1e-3)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_marginals_of_edges(features, directed):
    """Edge marginals equal sums over the probabilities of all labellings."""
    X, y = make(20, 0)
    if features:
        X = [(x[0], x[1], np.ones((len(x[1]), 2)) * np.arange(2), x[3]) for x in X]
    model = GraphLabeler(directed=directed).fit(X, y)
    some = [x for x in X if len(x[0]) <= 4][:3]
    allowed = [{0: ["a", "c"]}, None, None]
    for constraints in ({}, {"allowed": allowed}):
        tables = model.predict_marginals(some, edges=True, **constraints)
        ranked = model.predict_k_best(some, 1000, probabilities=True, **constraints)
        for x, table, answers in zip(some, tables, ranked, strict=True):
            expected = np.zeros((len(x[1]), 3, 3))
            for answer, p in answers:
                numbers = [LABELS.tolist().index(label) for label in answer]
                for k, (u, v) in enumerate(x[1].tolist()):
                    expected[k, numbers[u], numbers[v]] += p
            np.testing.assert_allclose(table, expected, atol=1e-9)


def test_explanations_add_up(fitted):
    X, _ = make(10, 1)
    for x in X:
        why = fitted.explain(x)
        assert sum(each.amount for each in why.contributions) == pytest.approx(why.difference, abs=1e-9)
        assert why.best == fitted.predict([x])[0]
    assert {each.kind for each in why.contributions} <= {"attribute", "intercept", "edge"}
    assert any(each.name == "ring" for each in why.contributions)
    both = GraphLabeler(directed=False).fit(*make(20, 0)).explain(X[0])
    assert sum(each.amount for each in both.contributions) == pytest.approx(both.difference, abs=1e-9)
    with pytest.raises(ValueError, match="nothing to explain"):
        fitted.explain((np.empty((0, 3)), []))


def test_top_features(fitted):
    top = fitted.top_features(3)
    nodes, edges = fitted._model.tables()
    assert dict(top.labels["a"]) == {
        None if j == 3 else j: nodes[j, 0] for j in np.argsort(-np.abs(nodes[:, 0]))[:3].tolist()
    }
    assert dict(top.transitions["a", "b"]) == {"ring": edges[0, 0, 0, 1], "tail": edges[1, 0, 0, 1]}


# Kinds of nodes


def test_kinds_of_nodes_restrict_labels():
    """Column 3 of a row forbids or demands label c, and no prediction violates that."""
    rng = np.random.default_rng(0)
    X, y = make(40, 0)
    X = [(np.column_stack([x[0], np.array(own) == "c"]), *x[1:]) for x, own in zip(X, y, strict=True)]
    model = GraphLabeler(kind_features=[3], tol=1e-5).fit(X, y)
    probabilities = model.predict_marginals(X, output="array")
    for x, own in zip(X, probabilities, strict=True):
        np.testing.assert_array_equal(own[:, 2] == 0, x[0][:, 3] == 0)
        np.testing.assert_array_equal(own[:, 2] == 1, x[0][:, 3] == 1)
    wrong = [["c"] * len(own) for own in y]
    assert np.isneginf(model.log_probability(X, wrong)).sum() == sum(set(own) != {"c"} for own in y)
    with pytest.raises(ConstraintError, match="graph 0, node 0 has no label left") as error:
        model.predict(X[:1], fixed=[{0: "a" if X[0][0][0, 3] else "c"}])
    assert (error.value.sequence, error.value.position) == (0, 0)
    names = GraphLabeler(kind_features=["c3"], tol=1e-5).fit(as_dicts(X), y)
    assert names.predict(as_dicts(X)) == model.predict(X)
    strange = [(np.concatenate([x[0][:, :3], rng.normal(size=(len(x[0]), 1))], axis=1), *x[1:]) for x in X]
    assert model.predict_marginals(strange[:1], output="array")[0][0, 2] in (0.0, 1.0)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.predict(X) == model.predict(X)


def test_kinds_make_wide_graphs_narrow():
    """Kinds of nodes fix all labels of a 12 x 12 grid but one row, so inference stays cheap."""
    edges, types = grid_edges(12, 12)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 144)
    open_cells = np.arange(144) < 12
    rows = np.zeros((144, 5))
    rows[np.arange(144), np.where(open_cells, 4, labels)] = 1.0
    rows[:, 3] = labels + rng.normal(size=144)
    X, y = [(rows, edges, None, types)], [LABELS[labels].tolist()]
    with pytest.raises(ValueError, match=r"^graph 0: its junction tree of width 1\d would take .* bytes"):
        GraphLabeler(memory_limit=1e6).fit(X, y)
    with pytest.raises(ValueError, match=r"^graph 1: its junction tree of width 1\d would take .* bytes"):
        GraphLabeler(memory_limit=1e6).fit([(rows[:2], []), *X], [LABELS[labels[:2]].tolist(), *y])
    model = GraphLabeler(kind_features=[0, 1, 2, 4], memory_limit=1e6).fit(X, y)
    assert model.score(X, y) > 0.9
    free = GraphLabeler(memory_limit=1e6).fit([(rows[:12], edges[:11])], [LABELS[labels[:12]].tolist()])
    with pytest.raises(ValueError, match=r"^graph 0: its junction tree"):
        free.predict([(rows, edges)])
    known = {v: LABELS[labels[v]] for v in range(12, 144)}
    answer = free.predict([(rows, edges)], fixed=[known])[0]
    assert answer[12:] == LABELS[labels[12:]].tolist()
    free.set_params(memory_limit=1e3)
    with pytest.raises(ValueError, match="memory_limit = 1000"):
        free.predict([(rows, edges)], fixed=[known])


# Files and warm starts


FILES = {
    "plain": {},
    "dicts": {},
    "edge features": {"directed": False},
    "kinds": {"kind_features": [0, 2]},
    "hinge": {"loss": "hinge", "tol": 1e-2},
}


def case_of(name):
    X, y = make(20, 0)
    if name == "dicts":
        X = as_dicts(X)
    if name == "edge features":
        X = [(x[0], x[1], [{"long": t == "tail", "u": str(u % 2)} for t, u in zip(x[3], x[1][:, 0])]) for x in X]  # noqa: B905
    return GraphLabeler(**FILES[name]).fit(X, y), X, y


@pytest.mark.parametrize("name", FILES)
def test_files(name, tmp_path):
    model, X, _ = case_of(name)
    path = tmp_path / "model.pw"
    model.save(path)
    other = partwise.load(path)
    assert type(other) is GraphLabeler
    assert other.get_params() == model.get_params()
    np.testing.assert_array_equal(other.coef_, model.coef_)
    assert other.predict(X) == model.predict(X)
    assert other.edge_types_ == model.edge_types_
    assert other.result_.gap == model.result_.gap
    first = path.read_bytes()
    other.save(path)
    assert path.read_bytes() == first
    assert Ability.FILES in other._model.abilities()


def test_damaged_files(tmp_path):
    from helpers.model_cases import remade

    model, _, _ = case_of("kinds")
    path = tmp_path / "model.pw"
    model.save(path)
    data = path.read_bytes()

    def refuse(message, change):
        path.write_bytes(remade(data, change))
        with pytest.raises(ModelFormatError, match=message):
            partwise.load(path)

    refuse("types of edges", lambda m, s, a: s.update(types=["x", "x"]))
    refuse("types of edges", lambda m, s, a: s.update(types=[[1]]))
    refuse("unknown way", lambda m, s, a: s["reader"].update(kind="other"))
    refuse("number of labels|proportion|shape", lambda m, s, a: s["nodes"].update(n_features=2))
    refuse("kinds of nodes", lambda m, s, a: a["kinds.labels"].fill(0))
    refuse("neither 0 nor 1", lambda m, s, a: a["kinds.picked"].fill(2))
    refuse("shape", lambda m, s, a: s.update(types=["x"]))
    refuse("lacks its part", lambda m, s, a: s.pop("edges"))


def test_warm_start_carries_weights_over():
    X, y = make(40, 0)
    model = GraphLabeler(tol=1e-6, warm_start=True, solver="lbfgs").fit(as_dicts(X), y)
    passes = model.result_.passes
    model.fit(as_dicts(X), y)
    assert model.result_.passes < passes / 2
    weights = model._model.tables()
    # with other labels, attributes and edge types, the weights that both models have are carried over
    more = [([*rows, {"new": 1.0}], edges, _, types) for rows, edges, _, types in as_dicts(X)[:5]]
    again = GraphLabeler(tol=0.5, warm_start=True, solver="lbfgs", max_passes=1)
    again._model, again.result_ = model._model, model.result_
    new = again._make_model()
    from partwise.models import Training

    training = Training(partwise.problem.losses.get_loss("log"), 1.0, "lbfgs", 1e-3, 1, lambda: 0)
    new.learn(more, [[*own, "z"] for own in y[:5]], None, training)
    carried = new.with_weights(new.carried(model._model)).tables()
    old = {model._model.node_name(k): k for k in range(4)}
    for k in range(new.n_node_attributes):
        name = new.node_name(k)
        expected = weights[0][old[name]] if name in old else np.zeros(3)
        np.testing.assert_array_equal(carried[0][k, :3], expected)
        assert carried[0][k, 3] == 0
    np.testing.assert_array_equal(carried[1][:, :, :3, :3], model._model.tables()[1])
    assert not carried[1][:, :, 3].any()


def test_pruning():
    model, X, y = case_of("plain")
    pruning = model.prune(keep=12, X=X, y=y)
    assert pruning.weights_after == np.count_nonzero(model.coef_) == 12
    assert model.result_.status == "no certificate"


def test_clones_and_empty_graphs(fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    nothing = (np.empty((0, 3)), [], None, [])
    x = make(1, 3)[0][0]
    answers = fitted.predict([nothing, x, nothing])
    assert [len(a) for a in answers] == [0, len(x[0]), 0]
    assert fitted.predict_marginals([nothing, x], edges=True)[0].shape == (0, 3, 3)
    lonely = (x[0][:1], [], None, [])
    assert len(fitted.predict([lonely])[0]) == 1
    assert fitted.predict([]) == []


def test_weights_of_graphs():
    X, y = make(10, 0)
    doubled = GraphLabeler(tol=1e-9).fit(X + X[:3], y + y[:3])
    weighted = GraphLabeler(tol=1e-9).fit(X, y, sample_weight=[2.0] * 3 + [1.0] * 7)
    np.testing.assert_allclose(doubled.coef_, weighted.coef_, atol=1e-4)
    left_out = GraphLabeler(tol=1e-9).fit(X, y, sample_weight=[0.0] * 3 + [1.0] * 7)
    np.testing.assert_allclose(left_out.coef_, GraphLabeler(tol=1e-9).fit(X[3:], y[3:]).coef_, atol=1e-4)


# Real data


def test_snakes(data_dir):
    """Snakes: kinds by cell colour fix the background's labels, which leaves graphs of small tree width."""
    X, y, X_test, y_test = snakes(data_dir)
    assert (len(X), len(X_test)) == (200, 100)
    assert X[0][0].shape == (42, 45)
    model = GraphLabeler(kind_features=list(OWN_COLOUR), tol=1e-2).fit(X[:100], y[:100])
    cells = MaxentClassifier().fit(np.concatenate([x[0] for x in X[:100]]), np.concatenate(y[:100]))
    alone = cells.score(np.concatenate([x[0] for x in X_test]), np.concatenate(y_test))
    assert model.score(X_test, y_test) > alone + 0.10
    assert model.result_.relative_gap <= 1e-2
    with pytest.raises(ValueError, match=r"graph \d+: its junction tree of width [5-9] would take"):
        GraphLabeler(memory_limit=1e7).fit(X, y)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_the_bound_that_steps_rely_on(features, directed):
    """|A'(count(y) - count(z))|^2 obeys its bound for all pairs of labellings, also where edges share a table."""
    X, y = make(6, 0)
    X = [(x[0], x[1], x[0][x[1][:, 0]] if features else None, x[3]) for x in X if len(x[0]) <= 4]
    model = GraphLabeler(directed=directed).fit(X, [own for own in y if len(own) <= 4])
    batch = model._model.read(X).batch
    for i in range(len(X)):
        counts = enumeration_of(batch.structure, i).counts
        vectors = counts @ matrix_of(batch.features, i)
        largest = max(((vectors - v) ** 2).sum(axis=1).max() for v in vectors)
        assert largest <= batch.features.psi2_bound(i) * (1 + 1e-12)
