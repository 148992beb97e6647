"""Words with labels: named entities of WNUT 17, parts of speech of the Brown corpus.

X holds the words of each sentence as they are; `SequenceTagger(template="ner")` and ``"pos"`` make attributes of them.
"""

from __future__ import annotations

import os

from partwise.datasets.columns import read_columns
from partwise.datasets.folder import Dataset, data_file, open_bytes

Sentences = list[list[str]]


def wnut17(data: str | os.PathLike[str] | None = None, *, test: str = "test") -> Dataset[Sentences, Sentences]:
    """Read WNUT 17 from ``wnut17/{train,dev,test}.conll``: words and IOB2 labels of six types; test may be "dev"."""
    if test not in ("test", "dev"):
        raise ValueError(f"test must be 'test' or 'dev', got {test!r}")
    parts: list[tuple[Sentences, Sentences]] = []
    for name in ("train", test):
        path = data_file("wnut17", f"{name}.conll", data)
        sentences = read_columns(path, separator="\t")
        if sentences and len(sentences[0]) != 2:
            raise ValueError(f"{path}: {len(sentences[0])} columns, expected word and label")
        parts.append(([words for words, _ in sentences], [labels for _, labels in sentences]))
    return Dataset(*parts[0], *parts[1])


def brown(
    data: str | os.PathLike[str] | None = None, *, every: int = 10, offset: int = 9
) -> Dataset[Sentences, Sentences]:
    """Read the Brown corpus from ``brown/brown.txt``: words and their full tags.

    Every tenth document (`every`), counted from `offset`, is for testing, all others for training.
    """
    if every < 2 or not 0 <= offset < every:
        raise ValueError(f"every={every}, offset={offset}: expected every >= 2 and 0 <= offset < every")
    path = data_file("brown", "brown.txt", data)
    parts: tuple[tuple[Sentences, Sentences], ...] = (([], []), ([], []))
    document = -1
    with open_bytes(path) as file:
        for number, raw in enumerate(file, 1):
            line = raw.decode("utf-8").strip()
            if line.startswith("# "):
                document += 1
                continue
            if not line:
                continue
            pairs = [token.rpartition("/") for token in line.split()]
            if document < 0 or not all(word and tag for word, _, tag in pairs):
                raise ValueError(f"{path}, line {number}: expected word/tag after a line with a document's name")
            X, y = parts[document % every == offset]
            X.append([word for word, _, _ in pairs])
            y.append([tag for _, _, tag in pairs])
    return Dataset(*parts[0], *parts[1])
