"""The constituency model in model files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts, encode_names
from partwise.models.constituents.features import TABLES, TEMPLATES
from partwise.models.constituents.grammar import ParsingGrammar
from partwise.models.constituents.tables import Table, Tables
from partwise.models.constituents.treebank import TreebankGrammar
from partwise.models.constituents.treebank.unknown import WordClasses
from partwise.models.constituents.words import MARKS, PROPERTIES, WordCodes
from partwise.models.features import PairLayout
from partwise.structures import padded_width
from partwise.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from partwise.models.constituents.model import ConstituencyModel


def _names(names: tuple[str, ...]) -> ModelParts:
    return ModelParts("names", {}, encode_names(names))


def write(model: ConstituencyModel, parts: ModelParts) -> None:
    """The inverse of `read`."""
    own = model.grammar.read_off
    parts.settings["root"] = model.transform.root
    parts.settings["has_classes"] = own.word_classes is not None
    classes = own.word_classes or WordClasses()
    for name, names in (
        ("symbols", own.symbols),
        ("words", own.words),
        ("classes", own.classes),
        ("suffixes", tuple(sorted(classes.suffixes))),
        *((f"values_{prop}", model.tables.codes.values[prop]) for prop in (*PROPERTIES, MARKS)),
    ):
        parts.add(name, _names(names))
    parts.arrays |= {
        "rules": own.rules,
        "rule_counts": own.rule_counts,
        "roots": own.roots,
        "root_counts": own.root_counts,
        "lexical": own.lexical,
        "lexical_counts": own.lexical_counts,
    }
    rules, pairs = model.tables.split(model.weights)
    parts.arrays["rule_weights"] = rules
    if model.tables.n_tuples:
        parts.arrays["tuple_weights"] = pairs["tuples"]
    for name in TABLES:
        table = model.tables.tables[name]
        indptr, columns = table.layout.core.pairs()
        parts.arrays |= {
            f"{name}_keys": table.keys,
            f"{name}_indptr": indptr,
            f"{name}_columns": columns.astype(np.uint16 if table.layout.core.n_columns < 1 << 16 else np.int64),
            f"{name}_weights": pairs[name],
        }


def read(model: ConstituencyModel, parts: ModelParts) -> None:
    """Grammar, features and weights, checked."""
    root = parts.settings.get("root")
    if root is not None and type(root) is not str:
        raise ModelFormatError("has a root that is not text")
    model.transform = model.make_transform(root)
    model.grammar = ParsingGrammar(_read_grammar(parts))
    values = {prop: tuple(parts.part(f"values_{prop}").vocabulary().names()) for prop in (*PROPERTIES, MARKS)}
    codes = WordCodes(values, _read_classes(parts))
    own = model.grammar
    tables, pairs = {}, {}
    for name in TABLES:
        n_columns = max(len(own.lexical if name == "word" else own.columns), 1)
        keys = parts.ints(f"{name}_keys", None, low=0, high=len(TEMPLATES[name]) << 54)
        if bool((keys[1:] <= keys[:-1]).any()):
            raise ModelFormatError(f"has attributes in '{name}_keys' that are not in order")
        columns = parts.columns(f"{name}_columns", None, high=n_columns)
        indptr = parts.pointers(f"{name}_indptr", len(keys), len(columns))
        try:
            layout = PairLayout.some(
                len(keys), n_columns, padded_width(n_columns), indptr, np.ascontiguousarray(columns)
            )
        except ValueError as error:
            raise ModelFormatError(f"has wrong columns of attributes: {error}") from None
        tables[name] = Table(np.ascontiguousarray(keys), layout)
        pairs[name] = np.array(parts.floats(f"{name}_weights", len(columns)))
    pairs["tuples"] = np.zeros(0)
    if model.n_tuples:
        pairs["tuples"] = np.array(parts.floats("tuple_weights", model.n_tuples))
    model.tables = Tables(len(own.read_off.rules), codes, tables, model.n_tuples)
    model._weights = model.tables.joined(np.array(parts.floats("rule_weights", len(own.read_off.rules))), pairs)


def _read_classes(parts: ModelParts) -> WordClasses:
    return WordClasses(frozenset(parts.part("suffixes").vocabulary().names()))


def _read_grammar(parts: ModelParts) -> TreebankGrammar:
    symbols, words, classes = (tuple(parts.part(name).vocabulary().names()) for name in ("symbols", "words", "classes"))
    n = len(symbols)
    rules = np.ascontiguousarray(parts.ints("rules", None, 3, low=0, high=n))
    lexical = np.ascontiguousarray(parts.ints("lexical", None, 2, low=0, high=max(n, len(words) + len(classes))))
    if len(lexical) and (int(lexical[:, 0].max()) >= n or int(lexical[:, 1].max()) >= len(words) + len(classes)):
        raise ModelFormatError("has lexical entries of symbols or words that it does not have")
    roots = np.ascontiguousarray(parts.ints("roots", None, low=0, high=n))
    if not len(roots) or not len(lexical):
        raise ModelFormatError("has a grammar without roots or without words")
    for name, rows in (("rules", rules), ("roots", roots.reshape(-1, 1)), ("lexical", lexical)):
        if not _ascending(rows):
            raise ModelFormatError(f"has entries of {name!r} that are not in order, or twice")
    _check_lexical(lexical, len(words), len(classes))
    return TreebankGrammar(
        symbols=symbols,
        rules=rules,
        rule_counts=_read_counts(parts, "rule_counts", len(rules)),
        roots=roots,
        root_counts=_read_counts(parts, "root_counts", len(roots)),
        words=words,
        classes=classes,
        lexical=lexical,
        lexical_counts=_read_counts(parts, "lexical_counts", len(lexical)),
        word_classes=_read_classes(parts) if parts.flag("has_classes") else None,
    )


def _read_counts(parts: ModelParts, name: str, n: int) -> Floats:
    counts = parts.floats(name, n)
    if not (counts > 0).all():
        raise ModelFormatError(f"has numbers in {name!r} that are not positive")
    return counts


def _ascending(rows: Ints) -> bool:
    """Whether each row comes after the one before it."""
    falls, rises = rows[1:] < rows[:-1], rows[1:] > rows[:-1]
    # the first column in which two rows differ decides
    first = (falls | rises).argmax(axis=1)
    return bool(rises[np.arange(len(rises)), first].all())


def _check_lexical(lexical: Ints, n_words: int, n_classes: int) -> None:
    """Words, or classes of them, that have no symbol; symbols that count in the last class, which has all, alone."""
    n_terminals = n_words + n_classes
    if len(np.unique(lexical[:, 1])) < n_terminals:
        raise ModelFormatError("has words without a lexical entry")
    counted = lexical[lexical[:, 1] < n_terminals - 1, 0] if n_classes else lexical[:, 0]
    if len(np.unique(counted)) < len(np.unique(lexical[:, 0])):
        raise ModelFormatError("has symbols that are those of no word and no class but the last")
