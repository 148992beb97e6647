"""Data sets of numbers: pictures of digits and letters, sparse rows with a label each, small grids to label."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.datasets.files import Dataset, data_file
from partwise.io.files import Path, open_bytes
from partwise.support.arrays import Floats, Ints

#: A sparse matrix of scipy's.
SparseMatrix = Any
Rows = Dataset[SparseMatrix, NDArray[np.int64]]

#: Colours of cells, in the order of their columns: background first.
COLOURS = ((0, 0, 255), (0, 255, 0), (0, 255, 255), (255, 0, 0), (255, 255, 0))
#: Columns of the colour of a cell itself, among those of the 3 x 3 cells around it.
OWN_COLOUR = range(4 * len(COLOURS), 5 * len(COLOURS))

GridGraph = tuple[Floats, Ints, Floats | None, list[str]]


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read an array of bytes in the idx format of the MNIST files, gzipped or plain."""
    with open_bytes(path) as (file, _):
        raw = file.read()
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08":
        raise ValueError(f"{path}: not an idx file of bytes")
    begin = 4 + 4 * raw[3]
    whole = len(raw) >= begin
    shape = tuple(np.frombuffer(raw, dtype=">u4", count=raw[3], offset=4).tolist()) if whole else ()
    values = np.frombuffer(raw, dtype=np.uint8, offset=min(begin, len(raw)))
    if not whole or values.size != math.prod(shape):
        raise ValueError(f"{path}: {values.size} values do not fill the shape {shape}")
    return values.reshape(shape)


def mnist(data: Path | None = None) -> Dataset[Floats, NDArray[np.int64]]:
    """Read MNIST from its four idx files in ``mnist/``: 784 pixels between 0 and 1 per row, labels 0 to 9."""
    parts: list[tuple[Floats, NDArray[np.int64]]] = []
    for name in ("train", "t10k"):
        images = read_idx(data_file("mnist", f"{name}-images-idx3-ubyte", data))
        labels = read_idx(data_file("mnist", f"{name}-labels-idx1-ubyte", data))
        if len(images) != len(labels):
            raise ValueError(f"mnist: {len(images)} {name} images but {len(labels)} labels")
        parts.append((images.reshape(len(images), -1) / 255.0, labels.astype(np.int64)))
    return Dataset(*parts[0], *parts[1])


def ocr_letters(
    data: Path | None = None, *, test_folds: Iterable[int] = (0,)
) -> Dataset[list[Floats], list[list[str]]]:
    """Read the handwritten words of ``ocr-letters/letters.tsv`` (or ``.gz``).

    The columns are word id, letter, position, fold, whether it is the word's last letter, and 128 pixels as a string
    of 0 and 1. X holds one (length, 128) array per word, y its letters. Words of `test_folds` (of 0 to 9) are for
    testing, all others for training.
    """
    path = data_file("ocr-letters", "letters.tsv", data)
    chosen = frozenset(test_folds)
    words: list[tuple[int, list[str], list[bytes]]] = []
    with open_bytes(path) as (file, _):
        fresh = True
        for number, raw in enumerate(file, 1):
            fields = raw.split()
            if len(fields) != 6 or len(fields[5]) != 128:
                raise ValueError(f"{path}, line {number}: expected 6 columns, the last of 128 pixels")
            _, letter, _, fold, last, pixels = fields
            if fresh:
                words.append((int(fold), [], []))
            words[-1][1].append(letter.decode())
            words[-1][2].append(pixels)
            fresh = last == b"1"
    unknown = chosen - {fold for fold, _, _ in words}
    if unknown:
        raise ValueError(f"test_folds: no word is in fold {min(unknown)}")
    found: Dataset[list[Floats], list[list[str]]] = Dataset([], [], [], [])
    for in_fold, letters, rows in words:
        X, y = found[2:] if in_fold in chosen else found[:2]
        bits = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
        X.append((bits - ord("0")).astype(np.float64))
        y.append(letters)
    return found


def a9a(data: Path | None = None) -> Rows:
    """Read a9a from ``libsvm/a9a`` and ``libsvm/a9a.t``: 123 columns, labels -1 and 1."""
    return Dataset(*_read_rows("libsvm", ("a9a", "a9a.t"), data, 123))


def w8a(data: Path | None = None, *, seed: int = 0) -> Rows:
    """Read w8a from ``libsvm/w8a``: 300 columns, labels -1 and 1; a fifth, drawn by `seed`, is for testing."""
    X, y = _read_rows("libsvm", ("w8a",), data, 300)
    order = np.random.default_rng(seed).permutation(len(y))
    cut = len(y) - len(y) // 5
    return Dataset(X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]])


def news20(data: Path | None = None) -> Rows:
    """Read word counts of newsgroup articles from ``20news/``: the columns of all words, labels 0 to 19."""
    names = [f"20news_bydate_counts.{part}.libsvm" for part in ("train", "test")]
    return Dataset(*_read_rows("20news", names, data))


def _read_rows(folder: str, names: Sequence[str], data: Path | None, n_features: int | None = None) -> list[Any]:
    from sklearn.datasets import load_svmlight_files

    paths = [str(data_file(folder, name, data)) for name in names]
    loaded = load_svmlight_files(paths, n_features=n_features)
    return [part.astype(np.int64) if k % 2 else part for k, part in enumerate(loaded)]


def snakes(
    data: Path | None = None, *, edge_features: bool = True
) -> Dataset[list[GridGraph], list[NDArray[np.int64]]]:
    """Read the grids of ``snakes/snakes.npz``: each holds a snake of ten cells, to be numbered from its head.

    X holds graphs as `GraphLabeler` takes them: of each cell the colours of the 3 x 3 cells around it (45 columns of 0
    and 1; none outside of the grid), edges between neighbours, of each edge the columns of both cells (None without
    `edge_features`), and their types "right" and "down". y holds 0 for background cells and 1 to 10 for cells of the
    snake, row by row.
    """
    path = data_file("snakes", "snakes.npz", data)
    try:
        with open_bytes(path) as (file, _):
            found = dict(np.load(file, allow_pickle=False))
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not an archive of arrays ({error})") from None
    parts: list[Any] = []
    for part in ("train", "test"):
        names = sorted(name for name in found if name.startswith(f"X_{part}/"))
        if not names:
            raise ValueError(f"{path}: there are no {part} grids")
        grids = [grid_graph(found[name], f"{path}: {name}", edge_features) for name in names]
        labels = [found.get(f"Y{name[1:]}", np.empty(0)).astype(np.int64).ravel() for name in names]
        for name, own, (nodes, *_) in zip(names, labels, grids, strict=True):
            if len(own) != len(nodes):
                raise ValueError(f"{path}: {name} has {len(nodes)} cells but {len(own)} labels")
        parts += [grids, labels]
    return Dataset(*parts)


def grid_graph(colours: NDArray[Any], name: str, edge_features: bool) -> GridGraph:
    """Return the graph of a grid of cells with (height, width, 3) colours."""
    height, width = int(colours.shape[0]), int(colours.shape[1])
    codes = np.full((height, width), -1)
    for code, colour in enumerate(COLOURS):
        codes[(colours == colour).all(axis=2)] = code
    if (codes < 0).any():
        raise ValueError(f"{name} has a colour that is not one of {len(COLOURS)}")
    one_hot = np.zeros((height + 2, width + 2, len(COLOURS)))
    one_hot[1:-1, 1:-1] = np.eye(len(COLOURS))[codes]
    around = [one_hot[y : y + height, x : x + width] for y in range(3) for x in range(3)]
    edges, types = grid_edges(height, width)
    nodes = np.stack(around, axis=2).reshape(height * width, -1)
    both = np.concatenate([nodes[edges[:, 0]], nodes[edges[:, 1]]], axis=1) if edge_features else None
    return nodes, edges, both, types


def grid_edges(height: int, width: int) -> tuple[Ints, list[str]]:
    """Return the edges to the right and downwards of a grid, whose cells are numbered row by row, and their types."""
    number = np.arange(height * width).reshape(height, width)
    right = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([right, down]), ["right"] * len(right) + ["down"] * len(down)
