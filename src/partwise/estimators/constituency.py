"""Constituency parsing: CRFs and max-margin parsers over the derivations of a treebank's grammar."""

from __future__ import annotations

from typing import Any, ClassVar

from partwise.estimators.base import StructuredEstimator
from partwise.models.constituents.model import ConstituencyModel
from partwise.models.inspection import Explanation, TopFeatures
from partwise.problem.losses import get_loss
from partwise.solvers import get_solver

#: The largest C at which "auto" is online EG for smooth losses.
MOST_EG = 100.0


class ConstituencyParser(StructuredEstimator):
    """Finds the tree of a sentence: a conditional random field over derivations of a grammar, or a max-margin parser.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over sentences i. The grammar is that of the training
    trees, in Chomsky normal form; the score of a rule over a span is the sum of the weights of the rule itself and of
    features of its label with the words at the beginning, the split and the end of the span and around them, with the
    span's length and shape; the score of a tag that of its features with the word and its neighbours.

    `X` is a list of sentences, each a list of words. `y` is a list of trees: nested tuples of a label and children, a
    child being a tree or a word (`partwise.io.read_trees`). Trees in place of sentences stand for their words, and
    with y=None for themselves. An answer is such a tree, without what `traces` and `functions` take off; `()` for a
    sentence without words.

    A sentence that the grammar does not derive gets a flat tree of its words with their most frequent tags, whose
    attribute `parsed` is False (`partwise.models.constituents.treebank.is_parsed`), and counts as a failure in scores;
    or it is an error (`no_parse`). It has no k best trees, and any tree has the log-probability -inf.

    Predictions take the constraints `required` and `forbidden`: for each sentence None or a list of spans, (begin, end)
    or (label, begin, end) with words counted from 0 and the end not included, that must be constituents, or must not.

    `predict_marginals` gives for each sentence a dict {(label, begin, end): probability} of phrases and tags, of those
    that are at least `least` (0.001). `score` is the labelled F1 of brackets (`partwise.metrics.parseval`).

    Parameters
    ----------
    loss : {"log", "softmax-margin", "hinge", "squared-hinge", "smoothed-hinge"} or Loss
        The hinge losses give no marginals.
    C : float
        Inverse of the penalty's strength.
    horizontal : int or inf
        How many of the children before it a symbol of binarisation remembers.
    vertical : int
        Labels along ancestors that a symbol remembers: 1 for its own, 2 with its parent's, ...
    binarise : {"right", "left"}
        Which children binarisation puts together first.
    traces, functions : bool
        Whether empty elements (``-NONE-``) and function tags (``NP-SBJ``) are taken off the training trees.
    rare : int
        Words that are seen so many times or fewer have the tags of their class of unknown words, as unknown words do;
        0: sentences with unknown words have no parse.
    min_count : int
        Features that gold trees have less often are left out.
    cost : {"constituents", "rules"}
        With margins: the number of wrong constituents and tags, or of wrong rules (at their places) and tags.
    no_parse : {"flat", "raise"}
        What to do where there is no parse.
    max_length : int
        Longer sentences are refused.
    tuple_bits : int
        Hash features of whole tuples (rule, first word of the span, first word after the split, last word) into
        2**tuple_bits weights, up to 24 bits; 0: no such features. Rare words count as their class. Sums over
        derivations are much slower with them.
    penalty, l1_ratio
        As for `MaxentClassifier`.
    solver, solver_options, tol, max_seconds, max_passes, n_jobs, random_state, verbose, warm_start, callbacks
        As for `SequenceTagger`; "auto" uses "eg" for smooth losses up to C = 100, whatever the size of the data.

    Attributes
    ----------
    coef_ : ndarray of shape (n_weights,)
        Weights of rules and features.
    result_ : Result
        Objective, dual value, gap and history of the run.
    labels_, tags_ : list of str
        Labels of phrases, and tags of words.
    grammar_ : TreebankGrammar
        Rules and lexicon with their counts.
    """

    def __init__(
        self,
        loss: Any = "log",
        C: float = 1.0,
        *,
        horizontal: float = 1,
        vertical: int = 1,
        binarise: str = "right",
        traces: bool = True,
        functions: bool = True,
        rare: int = 2,
        min_count: int = 1,
        cost: str = "constituents",
        no_parse: str = "flat",
        max_length: int = 200,
        tuple_bits: int = 0,
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        solver: Any = "auto",
        solver_options: dict[str, Any] | None = None,
        tol: float = 1e-2,
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
        self.horizontal = horizontal
        self.vertical = vertical
        self.binarise = binarise
        self.traces = traces
        self.functions = functions
        self.rare = rare
        self.min_count = min_count
        self.cost = cost
        self.no_parse = no_parse
        self.max_length = max_length
        self.tuple_bits = tuple_bits

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags

    _model: ConstituencyModel
    __metadata_request__predict: ClassVar = dict.fromkeys(ConstituencyModel.constraints)  # for scikit-learn's routing

    def _make_model(self) -> ConstituencyModel:
        return ConstituencyModel(
            horizontal=self.horizontal,
            vertical=self.vertical,
            binarise=self.binarise,
            traces=self.traces,
            functions=self.functions,
            rare=self.rare,
            min_count=self.min_count,
            cost=self.cost,
            no_parse=self.no_parse,
            max_length=self.max_length,
            tuple_bits=self.tuple_bits,
        )

    def _make_solver(self) -> Any:
        # As for dependency parsers: weights are not worth the precision that "auto" has for tiny problems, and its rule
        # for very many slots prefers L-BFGS.
        quick = self.solver == "auto" and not self.solver_options and get_loss(self.loss).smooth and self.C <= MOST_EG
        quick = quick and self.penalty == "l2"
        return get_solver("eg") if quick else super()._make_solver()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: Any = None) -> ConstituencyParser:
        """Train on sentences `X` with trees `y` (None: `X` are trees); `sample_weight` is one weight per sentence.

        A sentence of weight 0 is left out altogether. checkpoint: a file for the state of the run, from which it
        continues if it exists.
        """
        return super().fit(X, y, sample_weight, checkpoint=checkpoint)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Labelled F1 of brackets; `sample_weight` is one weight per sentence."""
        return super().score(X, y, sample_weight)

    def explain(self, sentence: Any) -> Explanation:
        """Why the best tree of a sentence is better than the second-best one."""
        found: Explanation = self._explain([sentence])
        return found

    def top_features(self, n: int = 10) -> TopFeatures:
        """The n largest weights of each label, and of rules."""
        found: TopFeatures = super().top_features(n)
        return found
