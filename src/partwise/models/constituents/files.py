"""Grammars and tables of weights in model files."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.model_files.errors import ModelFormatError
from partwise.model_files.parts import ModelParts, encode_names
from partwise.models.constituents.features import MARKS, PROPERTIES, TABLES, TEMPLATES, Table, Tables, WordCodes
from partwise.models.constituents.grammar import ParsingGrammar
from partwise.models.constituents.treebank.grammar import TreebankGrammar, WordClasses
from partwise.models.features import PairLayout
from partwise.structures import padded_width
from partwise.support.arrays import Floats, Ints


def _add_names(parts: ModelParts, name: str, names: Sequence[str]) -> None:
    parts.add(name, ModelParts("names", {}, encode_names(names)))


def _read_names(parts: ModelParts, name: str) -> tuple[str, ...]:
    return tuple(parts.part(name).vocabulary().names())


def add_grammar(parts: ModelParts, grammar: TreebankGrammar) -> None:
    """Add a grammar with its counts."""
    parts.settings["has_classes"] = grammar.word_classes is not None
    classes = grammar.word_classes or WordClasses()
    for name in ("symbols", "words", "classes"):
        _add_names(parts, name, getattr(grammar, name))
    _add_names(parts, "suffixes", sorted(classes.suffixes))
    for name in ("rules", "rule_counts", "roots", "root_counts", "lexical", "lexical_counts"):
        parts.arrays[name] = getattr(grammar, name)


def read_grammar(parts: ModelParts) -> TreebankGrammar:
    """Read what `add_grammar` wrote; ModelFormatError for invalid parts."""
    symbols, words, classes = (_read_names(parts, name) for name in ("symbols", "words", "classes"))
    n, n_terminals = len(symbols), len(words) + len(classes)
    rules = np.ascontiguousarray(parts.ints("rules", None, 3, low=0, high=n))
    lexical = np.ascontiguousarray(parts.ints("lexical", None, 2, low=0, high=max(n, n_terminals)))
    if len(lexical) and (int(lexical[:, 0].max()) >= n or int(lexical[:, 1].max()) >= n_terminals):
        raise ModelFormatError("has lexical entries of symbols or words that it does not have")
    roots = np.ascontiguousarray(parts.ints("roots", None, low=0, high=n))
    if not len(roots) or not len(lexical):
        raise ModelFormatError("has a grammar without roots or without words")
    found: dict[str, Any] = {"symbols": symbols, "words": words, "classes": classes}
    for name, rows in (("rules", rules), ("roots", roots.reshape(-1, 1)), ("lexical", lexical)):
        if not _ascending(rows):
            raise ModelFormatError(f"has entries of {name!r} that are not in order, or twice")
        key = f"{name.removesuffix('s')}_counts"
        found[key] = parts.floats(key, len(rows))
        if not (found[key] > 0).all():
            raise ModelFormatError(f"has numbers in {key!r} that are not positive")
    if len(np.unique(lexical[:, 1])) < n_terminals:
        raise ModelFormatError("has words without a lexical entry")
    counted = lexical[lexical[:, 1] < n_terminals - 1, 0] if classes else lexical[:, 0]  # the last class repeats others
    if len(np.unique(counted)) < len(np.unique(lexical[:, 0])):
        raise ModelFormatError("has symbols that are those of no word and no class but the last")
    word_classes = _read_classes(parts) if parts.flag("has_classes") else None
    return TreebankGrammar(**found, rules=rules, roots=roots, lexical=lexical, word_classes=word_classes)


def add_tables(parts: ModelParts, tables: Tables, weights: Floats) -> None:
    """Add features with their weights."""
    for prop in (*PROPERTIES, MARKS):
        _add_names(parts, f"values_{prop}", tables.codes.values[prop])
    values = tables.split(weights)
    parts.arrays["rule_weights"] = values["rules"]
    if tables.n_tuples:
        parts.arrays["tuple_weights"] = values["tuples"]
    for name in TABLES:
        core = tables.tables[name].layout.core
        indptr, columns = core.pairs()
        parts.arrays |= {
            f"{name}_keys": tables.tables[name].keys,
            f"{name}_indptr": indptr,
            f"{name}_columns": columns.astype(np.uint16 if core.n_columns < 1 << 16 else np.int64),
            f"{name}_weights": values[name],
        }


def read_tables(parts: ModelParts, grammar: ParsingGrammar, n_tuples: int) -> tuple[Tables, Floats]:
    """Read what `add_tables` wrote; ModelFormatError for invalid parts."""
    names = {prop: _read_names(parts, f"values_{prop}") for prop in (*PROPERTIES, MARKS)}
    codes = WordCodes(names, _read_classes(parts))
    n_rules, tables, values = len(grammar.treebank.rules), {}, {}
    for name in TABLES:
        n_columns = grammar.n_columns(name)
        keys = parts.ints(f"{name}_keys", None, low=0, high=len(TEMPLATES[name]) << 54)
        if bool((keys[1:] <= keys[:-1]).any()):
            raise ModelFormatError(f"has attributes in '{name}_keys' that are not in order")
        columns = np.ascontiguousarray(parts.columns(f"{name}_columns", None, high=n_columns))
        indptr = parts.pointers(f"{name}_indptr", len(keys), len(columns))
        try:
            layout = PairLayout.some(len(keys), n_columns, padded_width(n_columns), indptr, columns)
        except ValueError as error:
            raise ModelFormatError(f"has wrong columns of attributes: {error}") from None
        tables[name] = Table(np.ascontiguousarray(keys), layout)
        values[name] = np.array(parts.floats(f"{name}_weights", len(columns)))
    values["tuples"] = np.array(parts.floats("tuple_weights", n_tuples)) if n_tuples else np.zeros(0)
    values["rules"] = np.array(parts.floats("rule_weights", n_rules))
    found = Tables(n_rules, codes, tables, n_tuples)
    return found, found.joined(values)


def _read_classes(parts: ModelParts) -> WordClasses:
    return WordClasses(frozenset(_read_names(parts, "suffixes")))


def _ascending(rows: Ints) -> bool:
    """Return whether rows ascend strictly."""
    keys = np.ravel_multi_index(tuple(rows.T), tuple(rows.max(axis=0, initial=0) + 1))
    return bool((np.diff(keys) > 0).all())
