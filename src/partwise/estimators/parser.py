"""Arc-factored dependency parsing: CRFs and max-margin parsers over trees."""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, cast

from sklearn.utils.validation import check_is_fitted

from partwise.estimators.base import Answer, TreeParser
from partwise.estimators.parameters import SolverChoice
from partwise.models.dependencies.inputs import as_sentences
from partwise.models.dependencies.model import TreeModel
from partwise.models.inspection import Explanation
from partwise.solvers import get_solver


@dataclass(eq=False, repr=False)
class DependencyParser(TreeParser[TreeModel]):
    """Finds the head of every word: a conditional random field over trees, or a max-margin parser with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over sentences i. A tree's score is the sum of its arcs'
    scores, an arc's the sum of its features' weights; the cost of a tree is the number of wrong heads.

    A second classifier, trained separately on the gold arcs with the log loss, names each arc given its two ends;
    `label_result_` certifies it as `result_` certifies the trees. `penalty` and `l1_ratio` are used for both, with
    ``1 / label_C`` in place of ``1 / C`` for the names. A `checkpoint` of `fit` is one of the trees' run alone.

    `X` is a list of sentences: `ConlluSentence` objects (from `partwise.io.read_conllu`), or lists of words, each a
    string, a tuple (form, upos) or (form, lemma, upos, xpos, feats), or a dict with these keys ("form" is needed). `y`
    is a list of trees, each a list of heads (words count from 1, 0 is the root) or of pairs (head, relation); None
    takes the trees of the `ConlluSentence` objects. An answer is a list of heads, or of pairs if arcs have names.

    Predictions take the constraint `allowed`: for each sentence None, a boolean array of shape (n, n + 1) whose entry
    [m - 1, h] says whether word m may have the head h, or a dict {word: its head, or a list of heads it may have}.

    `predict_marginals` gives probabilities of heads in arrays of this shape. `predict_k_best` and `log_probability`
    give probabilities of trees without names. `score` is the share of words with the right head (UAS).

    Parameters
    ----------
    structure : {"projective", "spanning"}
        Trees whose arcs do not cross (Eisner's algorithm), or all trees (matrix-tree theorem, Chu-Liu-Edmonds).
    single_root : bool
        Exactly one word has the head 0.
    non_projective : {"skip", "lift", "error"}
        structure="projective": what to do with gold trees that have crossing arcs; "lift" moves arcs to the head's
        head until none cross. `n_non_projective_` says how many there were.
    labels : {"auto", True, False}
        Whether arcs are named; "auto": if `y` has at least two names.
    label_C : float
        Inverse of the penalty's strength for the names of arcs.
    templates, label_templates : str, optional
        Tables of templates; see `partwise.features.arcs`.
    inputs : str, optional
        The columns of words to look at, such as "form,upos"; by default form,lemma,upos,xpos,feats.
    features : {"gold", "all", "hashed"}
        Weights for the features seen on gold arcs, for those seen on any arc, or for all, hashed to ``2 ** hash_bits``.
    hash_bits : int
        features="hashed": logarithm of the number of weights.
    min_count : int
        Leave out features that occur less often; features="hashed": those of arcs' names only.
    max_length : int
        Longer sentences are refused.
    memory_limit : float
        Bytes for features that are kept during training; those that do not fit are recomputed in each pass.
    cost : callable, optional
        For losses with costs: how bad the head of a word is where another is right, as a function of the two, right one
        first, which are numbers of words (0: the root); None: 1.
    solver : str or Solver
        A name of `partwise.available_solvers()` or a solver; "auto": "eg" for smooth losses, C <= 100, any data size.
    tol : float
        Stop at a duality gap of `tol` times the objective, in both runs.
    max_seconds, max_passes : float, optional
        Stop with a `ConvergenceWarning` after this many seconds of both runs (the run for names, which comes first, has
        a quarter of them, at least one pass), or this many passes of the trees' run.

    Attributes
    ----------
    result_, label_result_ : Result
        Objective, dual value, gap and history of the two runs; `label_result_` is None without names.
    classes_ : ndarray of str
        Names of arcs, if it has any.
    n_non_projective_, n_skipped_ : int
        Gold trees with crossing arcs, and how many of them were left out.
    unknown_rate_ : float
        Share of the features of the arcs that were predicted last that the training data did not have.
    """

    C: float = 0.1
    _: KW_ONLY
    structure: str = "projective"
    single_root: bool = True
    non_projective: str = "skip"
    labels: bool | str = "auto"
    label_C: float = 1.0  # noqa: N815 - C as in scikit-learn
    templates: str | None = None
    label_templates: str | None = None
    inputs: str | None = None
    features: str = "gold"
    hash_bits: int = 22
    min_count: int = 1
    max_length: int = 500
    memory_limit: float = 4e9
    cost: Callable[[int, int], float] | None = None
    tol: float = 1e-2

    _model_class: ClassVar = TreeModel
    _input_forms: ClassVar = ("dict", "string")

    def _make_solver(self) -> SolverChoice:
        solver = super()._make_solver()
        # From weights alone, such as a model file's, eg starts at distributions that are far from its optimum.
        by_weights = self.warm_start and hasattr(self, "_model") and self.result_.dual_point is None
        return get_solver("eg-prox") if by_weights and self.solver == "auto" and solver != "auto" else solver

    def parse(self, X: object, *, allowed: object = None) -> list[Answer]:
        """Return the `ConlluSentence` objects `X` with predicted trees in place of their own."""
        sentences = as_sentences(X)
        for i, sentence in enumerate(sentences):
            if not hasattr(sentence, "with_tree"):
                raise ValueError(f"sentence {i} is not a ConlluSentence: use predict")
        trees = self.predict(sentences, allowed=allowed)
        if self._model.labeller is None:
            return [sentence.with_tree(heads) for sentence, heads in zip(sentences, trees, strict=True)]
        pairs = zip(sentences, trees, strict=True)
        return [sentence.with_tree([head for head, _ in tree], [name for _, name in tree]) for sentence, tree in pairs]

    @property
    def blank_columns_(self) -> list[str]:
        """Columns that the parser reads and that the last input left blank, which makes its answers unreliable."""
        check_is_fitted(self)
        return [] if self._last.report is None else list(self._last.report.blank)

    @property
    def columns_(self) -> list[str]:
        """The columns of words that the parser reads: those with values in the training data."""
        return self._fitted().columns

    def explain(self, sentence: object, word: int, head: int | None = None) -> list[tuple[str, float]]:
        """Return the features for and against an arc: (template with its values, weight), the largest first.

        word, head: numbers of the modifier, from 1, and of the head, 0 for the root; None: the predicted one.
        """
        return cast(list[tuple[str, float]], self._explain([sentence], word, head))

    def explain_head(
        self, sentence: object, word: int, *, head: int | None = None, against: int | None = None
    ) -> Explanation:
        """Return the features that give a word this head and not another.

        The best tree is compared with the best one in which the word has another head; the amounts of the features of
        different arcs add up to the difference of the scores. Other words may differ too (`Explanation.elsewhere`).

        word : int
            Number of the modifier, from 1.
        head, against : int, optional
            Heads in place of the best tree's, 0 for the root, and of that in the best tree with another head.
        """
        model, reading, _ = self._read([sentence])
        return model.explain_head(reading, word, head, against)

    def top_features(  # type: ignore[override]
        self, X: Iterable[object], n: int = 10
    ) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
        """Return the strongest features for and against the arcs that are predicted for sentences `X`.

        Both lists have (template with its values, weight), the strongest first. (A parser stores no names of features.)
        """
        weights: dict[str, float] = {}
        for sentence, tree in zip(X, self.predict(X), strict=True):
            for word, arc in enumerate(tree, 1):
                weights |= dict(self.explain(sentence, word, arc if self._model.labeller is None else arc[0]))
        ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
        first, last = ranked[:n], ranked[: -n - 1 : -1]
        return [item for item in first if item[1] > 0], [item for item in last if item[1] < 0]
