"""Labels of the nodes of graphs: conditional random fields and max-margin Markov networks."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from partwise.estimators.answers import needs_probabilities
from partwise.estimators.base import StructuredEstimator
from partwise.models.graph.model import GraphModel
from partwise.models.inspection import Explanation, TopFeatures
from partwise.problem.inference import expectations
from partwise.problem.losses import get_loss
from partwise.solvers import get_solver
from partwise.structures.graphs import MEMORY_LIMIT
from partwise.support.checks import check_choice, check_sums


class GraphLabeler(StructuredEstimator):
    """Labels every node of a graph: a conditional random field, or a max-margin network with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over graphs i. Inference is exact, by junction trees: it
    takes memory and time in proportion to L^(width + 1) for L labels, where the width of a tree is 1, of a cycle 2, of
    a grid its smaller side. Graphs beyond `memory_limit` are refused with their width and the bytes that they would
    take; constraints that leave nodes few labels make graphs narrower.

    `X` is a list of graphs, each one of:

    - ``(nodes, edges)``, ``(nodes, edges, edge_features)`` or ``(nodes, edges, edge_features, edge_types)``. `nodes`: a
      2-D array or a SciPy sparse matrix with one row per node, or a list with a dict or a list of attribute names per
      node, as for `SequenceTagger`. `edges`: an integer array of shape (m, 2), numbers of nodes. `edge_features`: one
      row per edge in one of the forms that nodes may have, or None. `edge_types`: one value per edge (a string, an
      int); edges of each type have weights of their own;
    - a networkx graph whose nodes have their features in the attribute `node_key` and whose edges have theirs, and
      their types, in `edge_key` and `type_key`. Answers for it are dicts by node.

    The score of labels is a sum of weights of (attribute of a node, label), and of (type, attribute of an edge, label
    of its first node, label of its second one); one attribute of each node and each edge is always 1. An edge from u
    to v is not the same as one from v to u. With ``directed=False`` each edge counts in both directions, which makes
    the order of its nodes unimportant; undirected networkx graphs need that.

    `y` has the labels of each graph: a list in the order of nodes, or a dict by node.

    Predictions take two constraints:

    - `allowed`: for each graph None, a boolean array of shape (nodes, n_labels) in the order of `classes_`, a list with
      None or the allowed labels of each node, or a dict {node: labels};
    - `fixed`: for each graph None, or a dict {node: label} of nodes whose labels are known.

    Parameters
    ----------
    loss : {"log", "softmax-margin", "hinge", "squared-hinge", "smoothed-hinge"} or Loss
        The hinge losses give no marginals.
    C : float
        Inverse of the penalty's strength.
    directed : bool
        Whether edges have a direction.
    kind_features : None, or a list of name prefixes (strings) or column numbers (ints)
        The kind of a node is which of these attributes it has (with a value other than 0). A node may then only have
        labels that nodes of its kind have in the training data (one of a kind that was not seen: any), in training
        and prediction alike. That can make wide graphs tractable.
    memory_limit : float
        Bytes that the tables of one graph may take, per thread (products with the Hessian take twice as much).
    node_key, edge_key, type_key : str or None
        Names of attributes of networkx graphs; None: edges have no features, no types.
    cost : None, array, mapping or callable
        As for `MaxentClassifier`; the costs of a graph's nodes add up.
    penalty, l1_ratio
        As for `MaxentClassifier`.
    solver, solver_options, tol, max_seconds, max_passes, n_jobs, random_state, verbose
        As for `MaxentClassifier`; "auto" is "lbfgs" where the loss is smooth. "eg" takes half as many passes where
        nodes and edges have many sparse features, and many more where they have few dense ones.
    warm_start : bool
        Start `fit` from the weights of the last one, feature by feature; with a hinge loss from its dual point, if
        loss, solver, labels and graphs are the same.
    callbacks : callable or list of callables, optional
        As for `MaxentClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
    edge_types_ : list or None
    coef_ : ndarray of shape (n_weights,)
        All weights; `top_features` gives them by name.
    n_features_in_ : int
        Number of columns; arrays only.
    unknown_rate_ : float
        Share of the attributes in the last input that are not in the vocabulary.
    result_ : Result
        Objective, dual value, gap, history of the last `fit`.
    """

    def __init__(
        self,
        loss: Any = "log",
        C: float = 1.0,
        *,
        directed: bool = True,
        kind_features: Any = None,
        memory_limit: float = MEMORY_LIMIT,
        node_key: str = "x",
        edge_key: str | None = None,
        type_key: str | None = None,
        cost: Any = None,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        solver: Any = "auto",
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-3,
        max_seconds: float | None = None,
        max_passes: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Any = None,
    ) -> None:
        super().__init__(
            loss,
            C,
            penalty=penalty,
            l1_ratio=l1_ratio,
            solver=solver,
            solver_options=solver_options,
            tol=tol,
            max_seconds=max_seconds,
            max_passes=max_passes,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            callbacks=callbacks,
        )
        self.cost = cost
        self.directed = directed
        self.kind_features = kind_features
        self.memory_limit = memory_limit
        self.node_key = node_key
        self.edge_key = edge_key
        self.type_key = type_key

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    _model: GraphModel
    __metadata_request__predict: ClassVar = dict.fromkeys(GraphModel.constraints)  # for scikit-learn's routing

    def _fitted(self) -> GraphModel:
        return cast(GraphModel, super()._fitted())

    def _make_model(self) -> GraphModel:
        return GraphModel(
            directed=self.directed,
            kind_features=self.kind_features,
            memory_limit=self.memory_limit,
            node_key=self.node_key,
            edge_key=self.edge_key,
            type_key=self.type_key,
            cost=self.cost,
        )

    def _make_solver(self) -> Any:
        # The parts of a graph share few weights: the curvature of the dual is far below what the bound that online
        # steps rely on says, which "auto" cannot know.
        known = self.solver == "auto" and not self.solver_options and get_loss(self.loss).smooth
        known = known and self.penalty == "l2"
        return get_solver("lbfgs") if known else super()._make_solver()

    @needs_probabilities
    def predict_marginals(self, X: Any, *, output: str = "dict", edges: bool = False, **constraints: Any) -> Any:
        """Probabilities of labels given the graph (and constraints); not available with hinge losses.

        output : {"dict", "array"}
            Per graph a list (networkx: a dict by node) of dicts {label: probability}, or an array (nodes, n_labels).
        edges : bool
            Instead, per graph an array of shape (edges, n_labels, n_labels): probabilities of the pairs of labels of
            each edge's first and second node.
        """
        check_choice("edges", edges, (True, False))
        if not edges:
            return super().predict_marginals(X, output=output, **constraints)
        # Edges that share a table of slots have no counts of their own.
        untied = self._fitted().with_options(untied=True)
        _, reading, n_jobs = self._read(X, constraints, model=untied)
        counts, values = expectations(reading.batch, untied.weights, get_loss(self.loss).temperature, n_jobs)
        check_sums(values, reading.numbers)
        return untied.edge_marginals(reading, counts)

    def explain(self, x: Any) -> Explanation:
        """The features that make the best labelling of a graph better than the second-best one.

        Their amounts add up to the difference of the two scores. Positions are numbers of nodes and, for the kind
        "edge", of edges.
        """
        found: Explanation = super().explain(x)
        return found

    def top_features(self, n: int = 10) -> TopFeatures:
        """The n weights of the largest absolute values for every label and every pair of labels of an edge's nodes."""
        found: TopFeatures = super().top_features(n)
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of nodes with the right label; `sample_weight` is one weight per graph."""
        return super().score(X, y, sample_weight)
