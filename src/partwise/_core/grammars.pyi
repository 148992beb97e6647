"""Derivations under a grammar."""

from typing import Final

from partwise.support.arrays import Floats, Ints

from .structures import Structure

class Grammar(Structure):
    """Derivations of sentences of n words under a grammar in Chomsky normal form over symbols 0 .. n_symbols - 1.

    A part is a rule anchored at (start, split, end), `rules[r]` = (parent, left, right) over the words [start, end).
    Its score is the sum of slots: of the rule, and of rows of columns for its parent at the first word, at the first
    word of the right symbol, at the last word and over the span (`start_columns`, `split_columns`, `end_columns`,
    `span_columns`: the column of each symbol in that table, -1 for none; None: no table). A word's slot is the column
    of its symbol, `words[column]`. Slots of a sentence: rules; n rows of each of start, split, end; n (n - 1) / 2 rows
    of spans [s, t) of two or more words, by s and then t; n rows of words; and, with `gold`, n more: `other`, and
    one for each anchored rule of the gold derivation, by its span. An anchored rule has one of these.

    rules: (rules, 3), in the order of parents. roots: the symbols of whole sentences. word_ptr, word_columns: which
    columns each word may have, all sentences' words end to end (None: all). gold: derivations, as `encode` takes them.
    cost: "constituents" counts slots of spans (by `span_costs` of their columns, 1 by default) and words that the gold
    derivation does not have; "rules" anchored rules and words that it does not have. A sentence whose sums would take
    more than max_bytes of memory is refused.

    Ties go to the first root, then to the first rule, then to the first split.
    """

    def __init__(
        self,
        lengths: Ints,
        n_symbols: int,
        rules: Ints,
        roots: Ints,
        words: Ints,
        *,
        start_columns: Ints | None = None,
        split_columns: Ints | None = None,
        end_columns: Ints | None = None,
        span_columns: Ints | None = None,
        word_ptr: Ints | None = None,
        word_columns: Ints | None = None,
        gold: Ints | None = None,
        cost: str = "constituents",
        span_costs: Floats | None = None,
        tuple_codes: Ints | None = None,
        n_tuples: int = 0,
        max_bytes: float = 2e9,
    ) -> None: ...
    lengths: Final[Ints]  #: The number of words of each sentence.
    n_symbols: Final[int]  #: The number of symbols.
    n_rules: Final[int]  #: The number of rules.
    n_tuples: Final[int]  #: The slots of hashed tuples, the last ones of each sentence.
    has_gold: Final[bool]  #: Whether there are slots for the anchored rules of gold derivations.
    cost_name: Final[str]  #: What the cost counts: "constituents" or "rules".
    widths: Final[tuple[int, int, int, int, int]]  #: The slots per row of start, split, end, span and words.
    def table_offsets(self, i: int) -> tuple[int, int, int, int, int, int]:
        """Return the first slot of start, split, end, span, words and `other`."""
    def has_derivation(self, i: int) -> bool:
        """Return whether the mask allows the sentence a derivation; without one, maxima and sums raise ValueError."""
    def encode(self, nodes: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) of derivations, concatenated: rows (symbol, begin, end), 2 n -
        1 per sentence in pre-order. Raise ValueError naming the sentence and the missing rule or word."""
    def labelling_of(self, i: int, nodes: Ints) -> tuple[Ints, Floats]:
        """Return the slots and counts of one derivation of sentence i."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """Return all sentences' nodes, concatenated; of derivations with the same slots, one."""
    def nodes_of(self, i: int, slots: Ints, counts: Floats) -> Ints:
        """Return the nodes of one derivation of sentence i."""
