"""Trees of real treebanks.

Dependencies: X holds sentences as `partwise.io.read_conllu` gives them, y their heads. Constituents are nested tuples.
"""

from __future__ import annotations

import os

from partwise.datasets.folder import Dataset, data_file
from partwise.datasets.treebank import Tree
from partwise.io import ConlluSentences, read_conllu, read_conllx, read_trees

Heads = list[list[int]]
Trees = Dataset[ConlluSentences, Heads]


def universal_dependencies(
    name: str = "ud-english-ewt", data: str | os.PathLike[str] | None = None, *, test: str = "test"
) -> Trees:
    """Read a treebank of Universal Dependencies from ``name/{train,dev,test}.conllu``; `test` may be "dev"."""
    if test not in ("test", "dev"):
        raise ValueError(f"test must be 'test' or 'dev', got {test!r}")
    train, held = (read_conllu(data_file(name, f"{part}.conllu", data)) for part in ("train", test))
    return _dataset(train, held)


def conll2007_spanish(data: str | os.PathLike[str] | None = None) -> Trees:
    """Read the Spanish trees of CoNLL-2007 from ``conll2007-spanish/esp.{train,test}``."""
    train, held = (read_conllx(data_file("conll2007-spanish", f"esp.{part}", data)) for part in ("train", "test"))
    return _dataset(train, held)


def treebank_sample(data: str | os.PathLike[str] | None = None) -> list[Tree]:
    """Read the constituent trees of ``treebank-sample/wsj_sample.mrg``, with their traces and function tags."""
    return read_trees(data_file("treebank-sample", "wsj_sample.mrg", data))


def _dataset(train: ConlluSentences, test: ConlluSentences) -> Trees:
    return Dataset(train, [each.heads for each in train], test, [each.heads for each in test])
