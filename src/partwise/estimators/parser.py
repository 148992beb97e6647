"""Arc-factored dependency parsing: CRFs and max-margin parsers over trees."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from partwise._core import ArcMap, ArcTokens, Tree, decode, infer
from partwise.estimators.common import (
    check_count,
    check_sample_weight,
    count_jobs,
    has_probabilities,
    needs_probabilities,
    unchanged_on_failure,
)
from partwise.estimators.constraints import ConstraintError
from partwise.estimators.inputs import Floats, Ints
from partwise.estimators.parser_training import TrainedParser
from partwise.estimators.trees import Words, as_sentences, read_trees, read_words
from partwise.losses import get_loss
from partwise.metrics import attachment_scores


class DependencyParser(TrainedParser):
    """Finds the head of every word: a conditional random field over trees, or a max-margin parser with a hinge loss.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over sentences i, where a tree's score is the sum of its
    arcs' scores and an arc's score the sum of its features' weights; the cost of a tree is the number of wrong heads.

    A second classifier, trained apart on the gold arcs with the log loss, names each arc given its two ends.
    `result_` is the certificate of the trees' objective, `label_result_` that of the names'; neither says anything
    about the other.

    `X` is a list of sentences: `ConlluSentence` objects (from `partwise.io.read_conllu`), or lists of words, each a
    string, a tuple (form, upos) or (form, lemma, upos, xpos, feats), or a dict with these keys ("form" is needed). `y`
    is a list of trees, each a list of heads (words count from 1, 0 is the root) or of pairs (head, relation); None
    takes the trees of the `ConlluSentence` objects.

    Parameters
    ----------
    loss : {"log", "softmax-margin", "hinge", "squared-hinge", "smoothed-hinge"} or Loss
        The hinge losses give no marginals.
    C : float
        Inverse of the penalty's strength.
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
    features : {"gold", "all", "hashed"}
        Weights for the features seen on gold arcs, for those seen on any arc, or for all, hashed to ``2 ** hash_bits``.
    hash_bits : int
        features="hashed": logarithm of the number of weights.
    min_count : int
        Leave out features that occur less often; features="hashed": those of arcs' names only.
    max_length : int
        Longer sentences are refused.
    memory_limit : float
        Bytes for features that are kept during training; those that do not fit are found anew in each pass.
    solver, solver_options, tol, max_seconds, max_passes, n_jobs, random_state, verbose, warm_start, callbacks
        As for `SequenceTagger`; `tol` is for the names of arcs too, and "auto" takes "eg" for smooth losses up to C =
        100, whatever the size of the data. `max_seconds` is for both runs: names, which come first, have a quarter of
        it and one pass at least, trees what they leave; `max_passes` is for the trees.

    Attributes
    ----------
    coef_ : ndarray of shape (n_weights,)
        Weights of arc features.
    result_, label_result_ : Result
        Objective, dual value, gap and history of the two runs; `label_result_` is None without names.
    classes_ : ndarray of str
        Names of arcs, if it has any.
    n_non_projective_, n_skipped_ : int
        Gold trees with crossing arcs, and how many of them were left out.
    unknown_rate_ : float
        Share of the features of the arcs that were predicted last that the training data did not have.
    blank_columns_ : list of str
        Columns ("upos", ...) that were blank in all words of the last input, and not in the training data.
    """

    #: Words and heads of the last prediction, and which columns were blank.
    _parsed: tuple[ArcTokens, Ints] | None = None
    _blank: Sequence[str] = ()

    def __init__(
        self,
        loss: Any = "log",
        C: float = 0.1,
        *,
        structure: str = "projective",
        single_root: bool = True,
        non_projective: str = "skip",
        labels: Any = "auto",
        label_C: float = 1.0,
        templates: str | None = None,
        label_templates: str | None = None,
        features: str = "gold",
        hash_bits: int = 22,
        min_count: int = 1,
        max_length: int = 500,
        memory_limit: float = 4e9,
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
        self.loss = loss
        self.C = C
        self.structure = structure
        self.single_root = single_root
        self.non_projective = non_projective
        self.labels = labels
        self.label_C = label_C
        self.templates = templates
        self.label_templates = label_templates
        self.features = features
        self.hash_bits = hash_bits
        self.min_count = min_count
        self.max_length = max_length
        self.memory_limit = memory_limit
        self.solver = solver
        self.solver_options = solver_options
        self.tol = tol
        self.max_seconds = max_seconds
        self.max_passes = max_passes
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.callbacks = callbacks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.target_tags.required = False
        return tags

    # training

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> DependencyParser:
        """Train on sentences `X` with trees `y` (None: their own); `sample_weight` is one weight a sentence.

        A sentence of weight 0 is left out altogether.
        """
        with unchanged_on_failure(self):
            training = self._check_training()
            self._check_options()
            sentences = as_sentences(X)
            trees = None if y is None else as_sentences(y, "y")
            if not sentences:
                raise ValueError("X holds no sentences")
            if trees is not None and len(trees) != len(sentences):
                raise ValueError(f"X has {len(sentences)} sentences, y has {len(trees)} trees")
            weight = check_sample_weight(sample_weight, len(sentences), "sentence")
            keep = range(len(sentences)) if weight is None else np.flatnonzero(weight).tolist()
            words = read_words([sentences[i] for i in keep], keep, int(self.max_length))
            empty = np.flatnonzero(words.lengths == 0)
            if len(empty):
                raise ValueError(f"{words.name(int(empty[0]))} has no words: leave it out")
            gold = read_trees(None if trees is None else [trees[i] for i in keep], words)
            self._fit_trees(training, words, gold, None if weight is None else weight[keep])
        return self

    # prediction

    def _read(self, X: Any) -> tuple[Ints, Words]:
        """Lengths of all sentences, and the words of those that have any."""
        check_is_fitted(self)
        sentences = as_sentences(X)
        words = read_words(sentences, range(len(sentences)), int(self.max_length))
        some = np.flatnonzero(words.lengths).tolist()
        rest = Words(words.lengths[some], words.columns, some, [sentences[i] for i in some])
        self._blank = rest.blank() if some else []
        return words.lengths, rest

    def _prepare(self, words: Words, allowed: Any, n_sentences: int) -> tuple[Tree, ArcTokens, ArcMap]:
        structure, tokens = self._make_structure(words.lengths), words.tokens()
        if allowed is not None:
            if isinstance(allowed, (str, dict)) or not hasattr(allowed, "__len__") or len(allowed) != n_sentences:
                raise ValueError(f"allowed must hold one entry for each of {n_sentences} sentences")
            for i, number in enumerate(words.numbers):
                mask = _arc_mask(allowed[number], number, words.name(i), int(words.lengths[i]))
                if mask is not None:
                    try:
                        structure.set_mask(i, mask)
                    except ValueError as error:
                        raise ConstraintError(f"{words.name(i)}: no tree is allowed ({error})", number) from None
        return structure, tokens, self._arcs.features(tokens)

    def predict(self, X: Any, *, allowed: Any = None) -> list[list[Any]]:
        """The best tree of each sentence: a list of heads, or of (head, relation) pairs where arcs have names.

        Parameters
        ----------
        X : list of sentences
        allowed : list, optional
            For each sentence None (no constraint), a boolean array of shape (n, n + 1) whose entry [m - 1, h] says
            whether word m may have the head h, or a dict {word: its head, or a list of heads it may have}.
        """
        lengths, words = self._read(X)
        structure, tokens, features = self._prepare(words, allowed, len(lengths))
        heads = structure.decode(*decode(structure, features, self.coef_, count_jobs(self.n_jobs))[:3])
        self._parsed = tokens, heads
        return self._named(lengths, tokens, heads)

    def parse(self, X: Any, *, allowed: Any = None) -> list[Any]:
        """The `ConlluSentence` objects `X` with predicted trees in place of their own."""
        sentences = as_sentences(X)
        for i, sentence in enumerate(sentences):
            if not hasattr(sentence, "with_tree"):
                raise ValueError(f"sentence {i} is no ConlluSentence: use predict")
        parsed = []
        for sentence, tree in zip(sentences, self.predict(sentences, allowed=allowed), strict=True):
            if self._labeller is None:
                parsed.append(sentence.with_tree(tree))
            else:
                parsed.append(sentence.with_tree([head for head, _ in tree], [name for _, name in tree]))
        return parsed

    @needs_probabilities
    def predict_marginals(self, X: Any, *, allowed: Any = None) -> list[Floats]:
        """Probabilities of heads: for each sentence an array of shape (n, n + 1), entry [m - 1, h] for the arc h -> m.

        Not there with hinge losses. `allowed` as for `predict`: probabilities given that the constraints hold.
        """
        lengths, words = self._read(X)
        structure, _, features = self._prepare(words, allowed, len(lengths))
        temperature = get_loss(self.loss).temperature
        flat = infer(structure, features, self.coef_, temperature, count_jobs(self.n_jobs))[0]
        ends = np.cumsum(lengths * (lengths + 1))
        return [
            flat[end - n * (n + 1) : end].reshape(n, n + 1)
            for n, end in zip(lengths.tolist(), ends.tolist(), strict=True)
        ]

    def predict_k_best(
        self, X: Any, k: int, *, probabilities: bool = False, allowed: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """For each sentence its k best trees (fewer if it has fewer) with their scores, best first.

        Scores are sums of weights: with the log loss, differences of scores are differences of log-probabilities.

        probabilities : bool
            Probabilities of the trees (not of their arcs' names) instead of scores. Not there with hinge losses.
        allowed
            As for `predict`: the best trees that the constraints allow.
        """
        if probabilities:
            has_probabilities(self)
        k = check_count("k", k)
        lengths, words = self._read(X)
        structure, tokens, features = self._prepare(words, allowed, len(lengths))
        found: list[list[tuple[list[Any], float]]] = [[([], float(probabilities))] for _ in lengths]
        firsts = [np.empty(0, dtype=np.int64)]
        for i, number in enumerate(words.numbers):
            n = int(words.lengths[i])
            scores = features.scores(i, self.coef_)
            best = structure.k_best(i, scores, k)
            one = read_words([words.sources[i]] * len(best), [number] * len(best), n)
            heads = np.concatenate([np.sort(slots) % (n + 1) for _, slots, _ in best])
            firsts.append(heads[:n])
            trees = self._named(one.lengths, one.tokens(), heads)
            values = [value for value, _, _ in best]
            if probabilities:
                t = get_loss(self.loss).temperature
                values = np.exp(np.subtract(values, structure.log_partition(i, scores, t)[0]) / t).clip(0, 1).tolist()
            found[number] = list(zip(trees, values, strict=True))
        self._parsed = tokens, np.concatenate(firsts)
        return found

    @property
    def unknown_counts_(self) -> tuple[int, int]:
        """How many features of the arcs that were found last have no weight, and of how many."""
        check_is_fitted(self)
        return self._arcs.unknown(*self._parsed) if self._parsed is not None else (0, 0)

    @property
    def unknown_rate_(self) -> float:
        """Share of the features of the arcs that were found last that have no weight."""
        unknown, total = self.unknown_counts_
        return unknown / total if total else 0.0

    @property
    def blank_columns_(self) -> list[str]:
        """Columns that the parser looks at and that the last input left blank: its answers are worth little then."""
        check_is_fitted(self)
        known = {*self._arcs.table.columns, *(self._labeller.model.table.columns if self._labeller else ())}
        return [name for name in self._blank if name in known]

    def explain(self, sentence: Any, word: int, head: int | None = None) -> list[tuple[str, float]]:
        """What speaks for and against an arc: (template with its values, weight), the largest first.

        Parameters
        ----------
        sentence : a sentence as in `X`
        word : int
            Number of the modifier, from 1.
        head : int, optional
            Number of the head, 0 for the root; None: the predicted one.
        """
        check_is_fitted(self)
        words = read_words([sentence], [0], int(self.max_length))
        n = int(words.lengths[0])
        if not 1 <= word <= n:
            raise ValueError(f"there is no word {word} in a sentence of {n} words")
        if head is None:
            tree = self.predict([sentence])[0]
            head = tree[word - 1][0] if self._labeller is not None else tree[word - 1]
        if not 0 <= head <= n or word == head:
            raise ValueError(f"there is no arc from {head} to {word} in a sentence of {n} words")
        return self._arcs.explain(words, word, head, self.coef_)

    def top_features(self, X: Any, n: int = 10) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
        """The strongest features for, and those against, the arcs that are predicted for sentences `X`.

        A parser keeps no names: those of these sentences' features are made anew. Each list has (template with its
        values, weight), the strongest first.
        """
        weights: dict[str, float] = {}
        for sentence, tree in zip(X, self.predict(X), strict=True):
            for word, arc in enumerate(tree, 1):
                weights |= dict(self.explain(sentence, word, arc[0] if self._labeller is not None else arc))
        ranked = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
        return (
            [item for item in ranked[:n] if item[1] > 0],
            [item for item in ranked[: -n - 1 : -1] if item[1] < 0],
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of words with the right head (UAS); `sample_weight` is one weight a sentence."""
        sentences = as_sentences(X)
        gold = sentences if y is None else as_sentences(y, "y")
        bare = [i for i, sentence in enumerate(gold) if y is None and not hasattr(sentence, "deprels")]
        if bare:
            raise ValueError(f"sentence {bare[0]} has no tree: give y, or sentences from a file with trees")
        predicted = self.predict(sentences)
        weight = check_sample_weight(sample_weight, len(sentences), "sentence")
        if weight is None:
            return attachment_scores(gold, predicted).uas
        if len(gold) != len(predicted):
            raise ValueError(f"X has {len(predicted)} sentences, y has {len(gold)} trees")
        # A sentence without words counts for nothing.
        pairs = [attachment_scores([a], [b]) if len(b) else None for a, b in zip(gold, predicted, strict=True)]
        counts = np.array([[each.n_right_heads, each.n_words] if each else [0, 0] for each in pairs]).T @ weight
        if not counts[1]:
            raise ValueError("there are no words to score")
        return float(counts[0] / counts[1])

    def _named(self, lengths: Ints, tokens: ArcTokens, heads: Ints) -> list[list[Any]]:
        """Heads end to end as trees, with names if there are any."""
        flat: list[Any] = heads.tolist()
        if self._labeller is not None and flat:
            names = self._labeller.predict(tokens, heads, count_jobs(self.n_jobs))
            flat = list(zip(flat, names, strict=True))
        ends = np.cumsum(lengths).tolist()
        return [flat[end - n : end] for n, end in zip(lengths.tolist(), ends, strict=True)]


def _arc_mask(value: Any, number: int, name: str, n: int) -> NDArray[np.uint8] | None:
    if value is None:
        return None
    mask = np.ones((n, n + 1), dtype=np.uint8)
    if isinstance(value, dict):
        for word, heads in value.items():
            choices = list(heads) if isinstance(heads, Collection) and not isinstance(heads, str) else [heads]
            numbers = [word, *choices]
            if not all(isinstance(x, (int, np.integer)) and not isinstance(x, bool) and 0 <= x <= n for x in numbers):
                raise ValueError(f"allowed: {name}: {word!r}: {heads!r} are no numbers of words (there are {n})")
            if word == 0:
                raise ValueError(f"allowed: {name}: the root has no head")
            mask[word - 1] = 0
            mask[word - 1, choices] = 1
    else:
        array = np.asarray(value)
        if array.shape != (n, n + 1) or not (array.dtype == bool or np.isin(array, (0, 1)).all()):
            raise ValueError(f"allowed: {name} needs a boolean array of shape ({n}, {n + 1})")
        mask[:] = array
    np.fill_diagonal(mask[:, 1:], 0)
    short = np.flatnonzero(~mask.any(axis=1))
    if len(short):
        raise ConstraintError(f"allowed: {name}: word {short[0] + 1} has no head left", number, int(short[0]))
    return mask.ravel()
