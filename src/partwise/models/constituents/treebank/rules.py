"""Grammars that users write: one rule per line, ``S -> NP VP [0.9]`` or ``N -> 'cat' [0.5] | 'dog' [0.5]``.

Rules are in Chomsky normal form: two symbols, or one word in quotes. Numbers in brackets are weights (1 if there is
none), to which probabilities are proportional. ``%start S`` names the start symbol, or several; ``#`` begins a comment.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from partwise.io.errors import FormatError
from partwise.io.files import Path, read_text
from partwise.models.constituents.treebank.grammar import TreebankGrammar, numbered_grammar

_SYMBOL = re.compile(r"[^\s'\"|\[\]#]+")
_TOKEN = re.compile(
    r"\s+|#.*|(?P<word>'[^']*'|\"[^\"]*\")|(?P<or>\|)|\[\s*(?P<weight>[^\]\s]*)\s*\]"
    rf"|(?P<symbol>{_SYMBOL.pattern})|(?P<bad>.)"
)


def read_rules(path: Path, start: str | Sequence[str] | None = None) -> TreebankGrammar:
    """Return the grammar of a file; FormatError, a ValueError, names the file and (for a rule) the line of a fault."""
    return _grammar(read_text(path).split("\n"), start, path)


def grammar_of_rules(rules: str | Iterable[str], start: str | Sequence[str] | None = None) -> TreebankGrammar:
    """Return the grammar of lines of rules.

    ValueError names the rule or the symbol if there is no start symbol, a rule is not in normal form, a symbol has no
    rules, or no sentence can be derived.

    rules : text, or an iterable of its lines
    start : the start symbol, or several; not needed where a line ``%start S`` names it
    """
    return _grammar(rules.split("\n") if isinstance(rules, str) else list(rules), start, "<rules>")


def _grammar(lines: Sequence[str], start: str | Sequence[str] | None, path: Path) -> TreebankGrammar:
    roots = [start] if isinstance(start, str) else list(start or ())
    binary: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    lexical: defaultdict[tuple[str, str, bool], float] = defaultdict(float)
    seen: dict[tuple[str, str, str] | str, int] = {}  # the lines of rules and of start symbols
    for number, line in enumerate(lines, 1):
        if line.strip().startswith("%start"):
            named = line.partition("#")[0].split()[1:]
            roots += named
            seen = {**dict.fromkeys(named, number), **seen}
            continue
        try:
            for parent, right, is_word, weight in _rules_of(line):
                if is_word:
                    lexical[parent, right[0], False] += weight
                else:
                    binary[parent, right[0], right[1]] += weight
                    seen.setdefault((parent, right[0], right[1]), number)
        except ValueError as error:
            raise FormatError(str(error), path, number) from None
    _check(binary, lexical, roots, lambda message, of=None: FormatError(message, path, seen.get(of)))
    return numbered_grammar(binary, dict.fromkeys(roots, 1.0), lexical)


def _rules_of(line: str) -> Iterator[tuple[str, list[str], bool, float]]:
    """Yield (parent, right-hand side, whether that is a word, weight) of each rule of a line."""
    if not line.split("#")[0].strip():
        return
    left, arrow, rest = line.partition("->")
    parent = left.strip()
    if not arrow or not _SYMBOL.fullmatch(parent):
        raise ValueError(f'{line.strip()!r} is not a rule: expected "A -> B C" or "A -> \'word\'"')
    # Matches of no group are white space and comments.
    tokens = [(match.lastgroup, match[match.lastgroup]) for match in _TOKEN.finditer(rest) if match.lastgroup]
    names: list[str] = []
    kinds: list[str] = []
    weight = 1.0
    for kind, text in [*tokens, ("or", "|")]:
        if kind == "or":
            if kinds not in (["word"], ["symbol", "symbol"]):
                right = " ".join(repr(name) if of == "word" else name for name, of in zip(names, kinds, strict=True))
                what = f'the rule "{parent} -> {right}" is not in Chomsky normal form'
                raise ValueError(f"{what}: expected two symbols, or one word in quotes")
            yield parent, names, kinds == ["word"], weight
            names, kinds, weight = [], [], 1.0
        elif kind == "weight":
            weight = _weight(text)
        elif kind == "bad":
            raise ValueError(f"unexpected {text!r} in {line.strip()!r}")
        elif len(text) == 2 and kind == "word":
            raise ValueError(f"the empty word in {line.strip()!r}: Chomsky normal form has none")
        else:
            names.append(text[1:-1] if kind == "word" else text)
            kinds.append(kind)


def _weight(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < math.inf:
        raise ValueError(f"[{text}] is not a weight: expected a positive number")
    return value


def _check(
    binary: Mapping[tuple[str, str, str], float],
    lexical: Mapping[tuple[str, str, bool], float],
    roots: list[str],
    error: Callable[..., FormatError],
) -> None:
    """Raise an error for a grammar that derives nothing; error: takes a message, and the rule it is about."""
    if not roots:
        raise error("the grammar has no start symbol: give start, or a line '%start S'")
    if not lexical:
        raise error("the grammar has no words: expected rules like \"N -> 'cat'\"")
    parents = {rule[0] for rule in binary} | {leaf[0] for leaf in lexical}
    for root in roots:
        if root not in parents:
            raise error(f"the start symbol {root!r} has no rules", root)
    for rule in binary:
        for symbol in rule[1:]:
            if symbol not in parents:
                raise error(f"the rule '{rule[0]} -> {rule[1]} {rule[2]}': the symbol {symbol!r} has no rules", rule)
    productive, found = set[str](), {leaf[0] for leaf in lexical}
    while found:
        productive |= found
        found = {parent for parent, *children in binary if productive.issuperset(children)} - productive
    for root in roots:
        if root not in productive:
            raise error(f"no sentence can be derived from the start symbol {root!r}", root)
