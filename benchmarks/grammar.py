"""Does `Grammar` find NLTK's most probable parses, and how much faster than nltk.ViterbiParser?

Two grammars: NLTK's second toy grammar (phrases of one word become symbols of words), and the relative frequencies of
the rules in generated trees. Trees and log-probabilities of every sentence must agree. Seconds are CPU seconds on one
thread, from words to trees.
"""

from __future__ import annotations

import inspect
import math
import re
from collections import defaultdict
from typing import Any

import click

from benchmarks.measure import clock, run_apart
from benchmarks.report import Record, machine, print_table, save

GRAMMARS = ("toy", "read off")
#: The sentences for the toy grammar: some with more and more prepositional phrases, and one without a parse.
TOY_SENTENCES = ("ate the boy", *("Jack saw the boy" + " with a telescope under the hill" * k for k in range(11)))
_TREES = 400


@click.command("grammar", help=__doc__)
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
@click.option("--sentences", default=10, show_default=True, help="Sentences of the grammar that is read off.")
def command(json_file: str | None, sentences: int) -> None:
    """Parse with both and compare."""
    records: list[Record] = []
    for name in GRAMMARS:
        found = run_apart("benchmarks.grammar:compare", 1, name=name, sentences=sentences)
        records.append({"question": "grammar", "grammar": name, **machine(), **found})
    columns = ("grammar", "rules", "sentences", "equal", "nltk_seconds", "seconds", "ratio")
    rows = [
        [format(record[c], ".3g") if isinstance(record[c], float) else str(record[c]) for c in columns]
        for record in records
    ]
    print_table("The most probable parse, beside NLTK", list(columns), rows, "CPU seconds; ratio: NLTK's over ours")
    save(json_file, records)


def compare(name: str, sentences: int) -> Record:
    """Parse one grammar's sentences with both parsers."""
    from partwise.models.constituents.treebank.relative_frequency import RelativeFrequencyParser

    if name == "toy":
        pcfg, some = toy_grammar(), [text.split() for text in TOY_SENTENCES]
    else:
        pcfg, some = read_off_grammar(sentences)
    parser = RelativeFrequencyParser(ours(pcfg))
    with clock() as own:
        found = parser.predict_with_log_probability(some)
    with clock() as theirs:
        expected = [nltk_parse(pcfg, words) for words in some]
    same = [same_parse(a, b) for a, b in zip(found, expected, strict=True)]
    return {
        "rules": len(pcfg.productions()),
        "sentences": len(some),
        "equal": sum(same),
        "nltk_seconds": theirs.cpu,
        "seconds": own.cpu,
        "ratio": theirs.cpu / own.cpu,
    }


def toy_grammar() -> Any:
    """Return NLTK's second toy grammar without unary rules: A -> B [p] becomes A -> word [p q] for the words of B."""
    import nltk
    from nltk.parse import viterbi

    # NLTK has the grammar only as text in the source of a function.
    texts = re.findall(r'PCFG\.fromstring\(\s*"""(.*?)"""', inspect.getsource(viterbi.demo), re.DOTALL)
    toy = nltk.PCFG.fromstring(texts[1])
    words: defaultdict[Any, list[Any]] = defaultdict(list)
    for rule in toy.productions():
        if len(rule.rhs()) == 1 and isinstance(rule.rhs()[0], str):
            words[rule.lhs()].append(rule)
    rules: dict[Any, float] = defaultdict(float)
    for rule in toy.productions():
        if len(rule.rhs()) == 1 and not isinstance(rule.rhs()[0], str):
            for below in words[rule.rhs()[0]]:
                rules[rule.lhs(), below.rhs()] += rule.prob() * below.prob()
        else:
            rules[rule.lhs(), rule.rhs()] += rule.prob()
    return _pcfg(nltk, toy.start(), rules)


def read_off_grammar(n: int) -> tuple[Any, list[list[str]]]:
    """Return a grammar with the relative frequencies of the rules of generated trees, and sentences to parse."""
    import nltk

    from partwise.datasets.treebank import make_treebank
    from partwise.io.trees import postorder
    from partwise.models.constituents.treebank import TreeTransform, words_of

    transform = TreeTransform(horizontal=1)
    trees = [transform.binary(tree) for tree in make_treebank(_TREES, seed=3).trees]
    counts: dict[Any, float] = defaultdict(float)
    totals: dict[Any, float] = defaultdict(float)
    nonterminal = nltk.Nonterminal
    for tree in trees:
        for node in postorder(tree):
            right = (node[1],) if len(node) == 2 else tuple(nonterminal(child[0]) for child in node[1:])
            counts[nonterminal(node[0]), right] += 1
            totals[nonterminal(node[0])] += 1
    rules = {key: count / totals[key[0]] for key, count in counts.items()}
    sentences = sorted((words_of(tree) for tree in trees if tree[0] == "S"), key=len)
    return _pcfg(nltk, nonterminal("S"), rules), sentences[-n:]


def _pcfg(nltk: Any, start: Any, rules: dict[Any, float]) -> Any:
    made = [nltk.ProbabilisticProduction(left, right, prob=p) for (left, right), p in rules.items()]
    return nltk.PCFG(start, made)


def ours(pcfg: Any) -> Any:
    """Convert the grammar to partwise's form."""
    from partwise.models.constituents.treebank.grammar import numbered_grammar

    binary: dict[tuple[str, str, str], float] = {}
    lexical: dict[tuple[str, str, bool], float] = {}
    for rule in pcfg.productions():
        left, right = rule.lhs().symbol(), rule.rhs()
        if len(right) == 2:
            binary[left, right[0].symbol(), right[1].symbol()] = rule.prob()
        else:
            lexical[left, right[0], False] = rule.prob()
    return numbered_grammar(binary, {pcfg.start().symbol(): 1.0}, lexical)


def nltk_parse(pcfg: Any, words: list[str]) -> Any:
    """Return NLTK's most probable tree, or None."""
    import nltk

    return next(iter(nltk.ViterbiParser(pcfg).parse(words)), None)


def same_parse(found: tuple[Any, float], expected: Any) -> bool:
    """Return whether both found the same tree, trees of equal probability (ties), or no tree."""
    tree, log_probability = found
    if expected is None:
        return log_probability == -math.inf
    close = math.isclose(log_probability, math.log(expected.prob()), rel_tol=1e-9)
    return close and (tree == _tuples(expected) or _ties(tree, expected))


def _tuples(tree: Any) -> Any:
    return (tree.label(), *(child if isinstance(child, str) else _tuples(child) for child in tree))


def _ties(tree: Any, expected: Any) -> bool:
    """Return whether two trees have the same rules: they are then equally probable under any weights."""
    from collections import Counter

    from partwise.io.trees import postorder

    def rules(nodes: Any) -> Any:
        return Counter((node[0], *(c if isinstance(c, str) else c[0] for c in node[1:])) for node in nodes)

    return bool(rules(postorder(tree)) == rules(postorder(_tuples(expected))))
