"""Constituency parsing: CRFs and max-margin parsers over the derivations of a treebank's grammar."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, cast

from partwise.estimators.base import TreeParser
from partwise.models.constituents.model import ConstituencyModel
from partwise.models.inspection import Explanation


@dataclass(eq=False, repr=False)
class ConstituencyParser(TreeParser[ConstituencyModel]):
    """Finds the tree of a sentence: a conditional random field over derivations of a grammar, or a max-margin parser.

    Minimises ``1 / (2 C) |w|^2 + sum_i weight_i loss_i(w)`` over sentences i. The grammar has the rules of the training
    trees in Chomsky normal form. The score of a rule over a span sums the weights of the rule itself and of features of
    its label with the words around the span's beginning, split and end, its length and shape; that of a tag sums those
    of its features with the word and its neighbours.

    `X` is a list of sentences, each a list of words, or a tree whose words are read. `y` is a list of trees: nested
    tuples of a label and children, each a tree or a word (`partwise.io.read_trees`); None: those in `X`. An answer is
    such a tree, without what `traces` and `functions` remove; `()` for a sentence without words.

    A sentence that the grammar does not derive is an error, or gets a flat tree of its words with their most frequent
    tags (`no_parse`), whose attribute `parsed` is False (`partwise.models.constituents.treebank.is_parsed`) and which
    scores count as a failure. It has no k best trees, and any tree has the log-probability -inf.

    Predictions take the constraints `required` and `forbidden`: for each sentence None or a list of spans, (begin, end)
    or (label, begin, end) with words counted from 0 and the end not included, that must be constituents, or must not.

    `predict_marginals` gives for each sentence a dict {(label, begin, end): probability} of the phrases and tags whose
    probability is at least `least` (0.001). `score` is the labelled F1 of brackets (`partwise.metrics.parseval`).

    Parameters
    ----------
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
        Hash features of whole tuples (rule, first word of the span, first word after the split, last word; rare words
        as their class) into 2**tuple_bits weights, up to 24 bits, which is much slower; 0: no such features.
    solver : str or Solver
        A name of `partwise.available_solvers()` or a solver; "auto": "eg" for smooth losses, C <= 100, any data size.

    Attributes
    ----------
    labels_, tags_ : list of str
        Labels of phrases, and tags of words.
    grammar_ : TreebankGrammar
        Rules and lexicon with their counts.
    """

    _: KW_ONLY
    horizontal: float = 1
    vertical: int = 1
    binarise: str = "right"
    traces: bool = True
    functions: bool = True
    rare: int = 2
    min_count: int = 1
    cost: str = "constituents"
    no_parse: str = "flat"
    max_length: int = 200
    tuple_bits: int = 0
    tol: float = 1e-2

    _model_class: ClassVar = ConstituencyModel
    _input_forms: ClassVar = ("string",)

    def explain(self, sentence: object) -> Explanation:
        """Return why the best tree of a sentence is better than the second-best one."""
        return cast(Explanation, super().explain(sentence))
