"""The file formats that users supply: how each is read, a small example file, and a use of what was read."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from partwise import ConstituencyParser, DependencyParser, MaxentClassifier, SequenceTagger
from partwise.cli.tasks.dep import read_table
from partwise.cli.tasks.inputs import tree_blocks
from partwise.cli.tasks.rules import read_arc_rules, read_constraints, read_span_rules
from partwise.cli.tasks.tagged_files import read_tagged, tagged_blocks
from partwise.features import Template
from partwise.features.arcs import ArcTemplate
from partwise.features.presets import read_clusters, read_gazetteers
from partwise.io import (
    FormatError,
    read_columns,
    read_conllu,
    read_conllx,
    read_costs,
    read_items,
    read_svmlight,
    read_trees,
    write_columns,
    write_conllu,
    write_items,
    write_svmlight,
    write_trees,
)
from partwise.models.constituents.treebank import read_rules

from . import binaryformats

LABELS = ["B-x", "I-x", "O"]
#: Train in one trial of this many, as training takes more than a thousand times as long as reading.
TRAINED = 40

CONLLU = """# text = a cat's
1\ta\ta\tDET\tDT\t_\t2\tdet\t_\t_
2-3\tcat's\t_\t_\t_\t_\t_\t_\t_\t_
2\tcat\tcat\tNOUN\tNN\tNumber=Sing\t0\troot\t_\tSpaceAfter=No
2.1\tis\tbe\tVERB\t_\t_\t_\t_\t_\t_
3\t's\tbe\tPART\tPOS\t_\t2\tcase\t_\t_

1\tsit\tsit\tVERB\tVB\t_\t0\troot\t_\t_
2\t,\t,\tPUNCT\t,\t_\t1\tpunct\t_\t_

"""
CONLLX = (
    "1\ta\ta\tD\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tN\tNN\t_\t0\troot\t_\t_\n\n1\tsit\tsit\tV\tVB\t_\t0\troot\t_\t_\n\n"
)


def _nothing(found: Any, path: Path, number: int) -> None:
    """Ignore what was read."""


@dataclass(frozen=True)
class Format:
    """A format of files, and how to test its reader.

    Parameters
    ----------
    read : reads the file at a path
    small : a small example file, for use without a real one
    places : real files, of which the first that exists is used, up to an occurrence of `end`
    use : uses what was read, given its path and the number of the trial; AssertionError if the object is wrong
    whole : words of errors about the whole file, which name no line
    lines : whether other errors name a line
    errors : the class of errors by which a file is refused
    binary : whether to change bytes instead of lines
    packed : whether gzip files are read too
    forge : makes the wrong file where a digest would reveal changed bytes
    suffix : suffix of the file's name
    title : name of the format in the table
    """

    read: Callable[[Path], Any]
    small: str | Callable[[], bytes]
    places: tuple[str, ...] = ()
    end: bytes = b"\n"
    use: Callable[[Any, Path, int], None] = _nothing
    whole: tuple[str, ...] = ()
    lines: bool = True
    errors: type[ValueError] = FormatError
    binary: bool = False
    packed: bool = True
    forge: Callable[[random.Random], bytes] | None = None
    suffix: str = ""
    title: str = ""

    def make(self) -> bytes:
        """Return the bytes of the small example file."""
        return self.small.encode() if isinstance(self.small, str) else self.small()


def _again(path: Path) -> Path:
    return path.with_name("again")


def _same(one: Any, two: Any, what: str) -> None:
    if one != two:
        raise AssertionError(f"{what}: {str(one)[:200]} became {str(two)[:200]}")


#: Words of errors by which training may refuse data that were read without an error.
UNTRAINABLE = ("nothing to learn", "must lie between", "at least two", "one label only", "two labels", "no tree")


def _trained(estimator: Any, *data: Any) -> Any:
    """Return the fitted estimator, or None if it refuses the data with one of the expected errors."""
    try:
        return estimator.fit(*data)
    except ValueError as error:
        _same(any(words in str(error) for words in UNTRAINABLE), True, str(error))
        return None


def _use_columns(table: Any, path: Path, number: int) -> None:
    if not len(table):
        return
    _same(sum(table.lengths), table.n_tokens, "tokens")
    try:
        write_columns(_again(path), table)
    except ValueError as error:  # a carriage return in front of the line's end
        _same("cannot be written" in str(error) and "\\r" in str(error), True, str(error))
        return
    _same(list(table), list(read_columns(_again(path), "\t")), "columns")
    if number % TRAINED == 1 and table.n_columns > 1:
        X, y = table.without(-1), table.column(-1)
        tagger = _trained(SequenceTagger(template=Template("U:%x[0,0]\nB\n"), max_passes=2, tol=0.5), X, y)
        if tagger is None:
            return
        _same([len(one) for one in tagger.predict(X)], table.lengths.tolist(), "labels of columns")


def _use_conllu(sentences: Any, path: Path, number: int) -> None:
    write_conllu(_again(path), sentences)
    _same([s.lines for s in sentences], [s.lines for s in read_conllu(_again(path))], "CoNLL-U")
    if number % TRAINED == 1 and sentences and max(map(len, sentences)) <= 20 and all(s.heads for s in sentences):
        parser = DependencyParser(structure="spanning", max_passes=1, tol=0.9).fit(sentences[:3])
        for tree, sentence in zip(parser.predict(sentences[:3]), sentences[:3], strict=True):
            heads = tree[0] if isinstance(tree, tuple) else tree
            _same(len(heads), len(sentence), "heads")


def _use_conllx(sentences: Any, path: Path, number: int) -> None:
    write_conllu(_again(path), sentences)
    _same([s.lines for s in sentences], [s.lines for s in read_conllx(_again(path))], "CoNLL-X")


def _use_items(found: Any, path: Path, number: int) -> None:
    X, y = found
    if not X:
        return
    try:
        write_items(_again(path), X, y)
    except ValueError as error:  # a carriage return in front of the line's end
        _same("carriage return" in str(error), True, str(error))
        return
    _same(found, read_items(_again(path)), "items")
    if number % TRAINED == 1:
        tagger = _trained(SequenceTagger(max_passes=2, tol=0.5), X, y)
        if tagger is None:
            return
        _same([len(one) for one in tagger.predict(X)], [len(one) for one in X], "labels of items")


def _use_svmlight(found: Any, path: Path, number: int) -> None:
    X, y = found
    write_svmlight(_again(path), X, y)
    X2, y2 = read_svmlight(_again(path), n_features=X.shape[1])
    kept = X.copy()
    kept.eliminate_zeros()
    same = y.tolist() == y2.tolist() and kept.indices.tolist() == X2.indices.tolist()
    _same(same and kept.data.tolist() == X2.data.tolist(), True, "svmlight")
    if number % TRAINED == 1 and X.shape[1] < 1000 and len(set(y.tolist())) > 1 and abs(X.data).max(initial=0) < 1e6:
        _same(len(MaxentClassifier(max_passes=2, tol=0.5).fit(X, y).predict(X)), len(y), "rows")


def _use_trees(trees: Any, path: Path, number: int) -> None:
    write_trees(_again(path), trees)
    _same(trees, read_trees(_again(path)), "trees")
    if number % 200 == 1 and trees:
        try:
            parser = ConstituencyParser(max_passes=1, tol=0.9).fit(trees[:4])
        except ValueError as error:  # trees that no treebank contains; the parser's error names them
            _same("tree" in str(error) or "sentence" in str(error), True, str(error))
            return
        _same(len(parser.predict(trees[:4])), len(trees[:4]), "trees")


def _use_template(template: Any, path: Path, number: int) -> None:
    sentence = [("the", "DT", "a"), ("\u05e9\u05dc", "NN", "b"), ("1", "CD", "c")]
    _same(Template(template.text), template, "template")
    try:
        rows = template.attributes(sentence)
    except ValueError as error:  # the sentence lacks a column, or a resource is missing
        _same("column" in str(error) or "gazetteer" in str(error), True, str(error))
        return
    _same(len(rows), len(sentence), "attributes")


def _use_constraints(rules: Any, path: Path, number: int) -> None:
    words = [["the", "x"], ["the"]]
    rules.check(len(words))
    for mask, sentence in zip(rules.allowed(words), words, strict=True):
        _same(mask is None or mask.shape == (len(sentence), len(LABELS)), True, "a mask's shape")


def _use_arc_rules(rules: Any, path: Path, number: int) -> None:
    rules.check(2)
    _same(len(rules.allowed([3, 3])), 2, "sentences of rules")


def _use_span_rules(rules: Any, path: Path, number: int) -> None:
    rules.check(2)
    _same(len(rules.spans([3, 3])["required"]), 2, "sentences of rules")


def _use_costs(costs: Any, path: Path, number: int) -> None:
    _same(all(np.isfinite(cost) and cost >= 0 for cost in costs.values()), True, "costs")
    _same(sorted(costs.lines) == sorted(costs), True, "lines of costs")


def _use_clusters(clusters: Any, path: Path, number: int) -> None:
    template = Template("U0:%cluster[0,0,2]\n", clusters=clusters)
    _same(len(template.attributes([[word] for word in list(clusters)[:5]])), len(list(clusters)[:5]), "clusters")


def _use_gazetteers(found: Any, path: Path, number: int) -> None:
    (gazetteer,) = found.values()
    for phrase in gazetteer.phrases[:3]:
        _same(gazetteer.mark(phrase.split())[0], "B", f"mark of {phrase!r}")


def _use_rules(grammar: Any, path: Path, number: int) -> None:
    _same(bool(np.isfinite(grammar.rule_counts).all() and np.isfinite(grammar.lexical_counts).all()), True, "weights")


def _use_table(text: Any, path: Path, number: int) -> None:
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    for line in lines:
        ArcTemplate.from_line(line)


def _in_pieces(settings: dict[str, Any], path: Path) -> Any:
    """Check that reading in small pieces, as `predict` reads large files, gives the same as reading at once."""
    whole: Any = None
    told = None
    try:
        whole = read_tagged(str(path), settings, labelled=True)
    except FormatError as error:
        told = error
    try:
        pieces = list(tagged_blocks(str(path), settings, 64, labelled=True))
    except FormatError as error:
        # Reading a whole file checks the encoding (UTF-8) before anything else.
        encoding = told is not None and ("not UTF-8" in told.message or "surrogate" in told.message)
        if told is None or not (encoding or (error.line, error.message) == (told.line, told.message)):
            raise AssertionError(f"whole: {told}; in pieces: {error}") from None
        raise
    _same(told, None, "an error that pieces do not have")
    _same([list(x) for piece in pieces for x in piece.X], [list(x) for x in whole.X], "pieces")
    _same([list(y) for piece in pieces for y in piece.y], [list(y) for y in whole.y], "labels of pieces")
    return whole


def _text(path: Path) -> list[Any]:
    """Return the trees of a file, or its words where the file is plain text, as constituency parsers accept both."""
    return [one for block in tree_blocks(str(path), None, 64) for one in block]


def _use_text(found: Sequence[Any], path: Path, number: int) -> None:
    for one in found:
        _same(isinstance(one, tuple) or all(isinstance(word, str) and word for word in one), True, "words")


FORMATS: dict[str, Format] = {
    "columns": Format(
        read_columns,
        "the DT B-NP\ncat NN I-NP\n\nsat VBD B-VP\n" * 5,
        ("conll2000/test.txt.gz",),
        b"\n\n",
        _use_columns,
    ),
    "columns-tabs": Format(
        partial(read_columns, separator="\t"), "a b\tDT\tB-x\nc\tNN\tO\n\nd\tV\tO\n" * 5, use=_use_columns
    ),
    "columns-pieces": Format(
        partial(_in_pieces, {"format": "columns"}),
        "a DT B-x\nc NN O\n\nd V O\n\ne V O\n" * 8,
        ("conll2000/test.txt.gz",),
        b"\n\n",
        whole=("there are no sentences",),
        title="columns, whole and in pieces",
    ),
    "conllu": Format(read_conllu, CONLLU * 3, ("ud-english-ewt/dev.conllu.gz",), b"\n\n", _use_conllu),
    "conllu-pieces": Format(
        partial(_in_pieces, {"format": "conllu"}),
        CONLLU * 3,
        ("ud-english-ewt/dev.conllu.gz",),
        b"\n\n",
        whole=("there are no sentences",),
        title="CoNLL-U, whole and in pieces",
    ),
    "conllx": Format(read_conllx, CONLLX * 3, use=_use_conllx),
    "items": Format(read_items, "B\tw=the\tp=D:2.5\nI\tw=cat\\:x\n\nO\tw=sat\n\n" * 5, use=_use_items),
    "items-pieces": Format(
        partial(_in_pieces, {"format": "items"}),
        "B\tw=the\tp=D:2.5\nI\tw=cat\\:x\n\nO\tw=sat\n\n" * 5,
        whole=("there are no sentences",),
        title="items, whole and in pieces",
    ),
    "svmlight": Format(
        read_svmlight,
        "1 1:0.5 7:1e-3\n-1 2:1 3:4 # x\n" * 5,
        ("libsvm/a9a.gz",),
        use=_use_svmlight,
        whole=("columns, out of proportion",),
    ),
    "trees": Format(
        read_trees,
        "(S (NP (D the) (N cat)) (VP (V sat)))\n( (S (NP (D a) (N dog))\n  (VP (V ran))) )\n" * 3,
        ("treebank-sample/wsj_sample.mrg.gz",),
        b"\n(",
        _use_trees,
    ),
    "text": Format(_text, "the cat sat\n\na ( dog ) ran\n" * 4, use=_use_text, title="plain text, or trees in pieces"),
    "grammar-rules": Format(
        read_rules,
        "%start S\nS -> NP VP [1.0]\nNP -> D N [0.7] | NP PP [0.3]\nPP -> P NP\nVP -> V NP # x\nD -> 'the' | \"a\"\n"
        "N -> 'cat'\nV -> 'saw'\nP -> 'in'\n",
        use=_use_rules,
        whole=("the grammar has no start symbol", "the grammar has no words"),
        title="rules of a grammar",
    ),
    "template": Format(
        Template.from_file,
        "U00:%x[-1,0]/%x[0,0]\nU01:%suffix[0,0,2]/%shape[0,0]\nA w=%lower[1,0]|%x[0,1]\nB\nB1:%x[0,0]\n" * 2,
        use=_use_template,
        whole=("there are no templates", "looks at clusters"),
    ),
    "arc-templates": Format(
        read_table,
        "form | form\n# x\nupos upos+1 | upos-1 upos\nupos | upos | upos\nfeats.Case | upos\nform |\n" * 2,
        use=_use_table,
    ),
    "clusters": Format(read_clusters, "0110\tcat\n0111\tdog\n10\tthe\t7\n", use=_use_clusters),
    "gazetteers": Format(
        read_gazetteers, "New York\nOslo\nRio de Janeiro\n" * 2, use=_use_gazetteers, suffix=".txt", title="gazetteers"
    ),
    "constraints": Format(
        partial(read_constraints, labels=LABELS),
        "forbid B-x O\nword the B-x I-x\ntoken 1 2 B-x O\nforbid ^ I-x\nscheme iob2\n# x\n" * 2,
        use=_use_constraints,
    ),
    "arc-rules": Format(read_arc_rules, "head 1 2 0\nforbid 1 1 2 3\nhead 2 3 1 2\n" * 2, use=_use_arc_rules),
    "span-rules": Format(
        partial(read_span_rules, labels=["NP", "VP"]), "require 1 1 2 NP\nforbid 2 1 1\n" * 2, use=_use_span_rules
    ),
    "costs": Format(
        read_costs,
        "# gold label cost\nB-PER\tO\t3\nO\tB-PER\t0.5\nB-PER\tB-LOC\t1e-3\n",
        use=_use_costs,
        whole=("there are no costs",),
    ),
} | {name: Format(**fields) for name, fields in binaryformats.FORMATS.items()}  # type: ignore[arg-type]
