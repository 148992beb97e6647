"""Labels of the nodes of graphs: conditional random fields and max-margin Markov networks."""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from partwise.estimators.base import Answer, StructuredEstimator, needs_probabilities
from partwise.estimators.parameters import Cost
from partwise.models.graph.model import GraphModel
from partwise.structures.graphs import MEMORY_LIMIT
from partwise.support.checks import check_choice


@dataclass(eq=False, repr=False)
class GraphLabeler(StructuredEstimator[GraphModel]):
    """Labels every node of a graph: a conditional random field, or a max-margin network with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over graphs i. Inference is exact, by junction trees: it
    takes memory and time in proportion to L^(width + 1) for L labels, where the width of a tree is 1, of a cycle 2, of
    a grid its smaller side. Graphs beyond `memory_limit` are refused; constraints that leave nodes few labels help.

    `X` is a list of graphs, each one of:

    - ``(nodes, edges)``, ``(nodes, edges, edge_features)`` or ``(nodes, edges, edge_features, edge_types)``. `nodes`: a
      2-D array or a SciPy sparse matrix with one row per node, or a list with a dict or a list of attribute names per
      node, as for `SequenceTagger`. `edges`: an integer array of shape (m, 2), numbers of nodes. `edge_features`: None,
      or rows as for nodes. `edge_types`: one value per edge (a string, an int); each type has weights of its own;
    - a networkx graph with the features of nodes in the attribute `node_key`, and those of edges, and their types, in
      `edge_key` and `type_key`. Answers for it are dicts by node.

    The score of labels is a sum of weights of (attribute of a node, label), and of (type, attribute of an edge, label
    of its first node, label of its second one); each node and each edge also has an attribute that is always 1. The
    order of an edge's nodes matters, unless ``directed=False``, which undirected networkx graphs need. `y` has the
    labels of each graph: a list in the order of nodes, or a dict by node.

    Predictions take two constraints, lists with one entry per graph (None: no constraint). An entry of `allowed` is a
    boolean array of shape (nodes, n_labels) in the order of `classes_`, a list with the allowed labels of each node
    (None: all), or a dict {node: labels}. An entry of `fixed` is a dict {node: label} of nodes whose labels are known.

    `score` is the share of nodes with the right label. In explanations positions are numbers of nodes or, for the kind
    "edge", of edges; `top_features` has headings for labels and for pairs of labels of an edge's nodes.

    Parameters
    ----------
    directed : bool
        Whether edges have a direction.
    kind_features : None, or a list of name prefixes (strings) or column numbers (ints)
        The kind of a node is which of these attributes it has (with a value other than 0). A node may only have the
        labels of its kind in the training data (any, if its kind is not there), which can make wide graphs tractable.
    memory_limit : float
        Bytes that the tables of one graph may take, per thread (products with the Hessian take twice as much).
    node_key, edge_key, type_key : str or None
        Names of attributes of networkx graphs; None: edges have no features, no types.
    solver : str or Solver
        A name of `partwise.available_solvers()`, or a solver; "auto" is "lbfgs" where the loss is smooth. "eg" is
        faster for many sparse features of nodes and edges, and much slower for few dense ones.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
    edge_types_ : list or None
    n_features_in_ : int
        Number of columns; arrays only.
    """

    _: KW_ONLY
    directed: bool = True
    kind_features: Sequence[str | int] | None = None
    memory_limit: float = MEMORY_LIMIT
    node_key: str = "x"
    edge_key: str | None = None
    type_key: str | None = None
    cost: Cost = None

    _model_class: ClassVar = GraphModel
    _input_forms: ClassVar = ("sparse", "dict", "string")
    _needs_answers: ClassVar = True
    # "auto" would choose online steps, which rely on a bound of the dual's curvature that is far too high here.
    _auto_solver: ClassVar = ("lbfgs", math.inf)

    @needs_probabilities
    def predict_marginals(
        self, X: object, *, output: str = "dict", edges: bool = False, **constraints: object
    ) -> Answer:
        """Return probabilities of labels given the graph (and constraints); not available with hinge losses.

        output : {"dict", "array"}
            Per graph a list (networkx: a dict by node) of dicts {label: probability}, or an array (nodes, n_labels).
        edges : bool
            Instead, return per graph an array of shape (edges, n_labels, n_labels) with the probabilities of the pairs
            of labels of each edge's first and second node.
        """
        check_choice("edges", edges, (True, False))
        if not edges:
            return super().predict_marginals(X, output=output, **constraints)
        # Edges that share a table of slots have no counts of their own.
        untied = self._fitted().with_options(untied=True)
        _, reading, n_jobs = self._read(X, constraints, model=untied)
        return untied.edge_marginals(reading, self._expected_counts(untied, reading, n_jobs))
