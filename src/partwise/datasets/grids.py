"""Small grids to label: graphs with loops."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partwise.datasets.folder import Dataset, data_file, open_bytes
from partwise.support.arrays import Floats, Ints

#: Of cells, in the order of their columns: background first.
COLOURS = ((0, 0, 255), (0, 255, 0), (0, 255, 255), (255, 0, 0), (255, 255, 0))
#: Columns of the colour of a cell itself, of the 3 x 3 cells around it.
OWN_COLOUR = range(4 * len(COLOURS), 5 * len(COLOURS))

GridGraph = tuple[Floats, Ints, Floats | None, list[str]]


def snakes(
    data: str | os.PathLike[str] | None = None, *, edge_features: bool = True
) -> Dataset[list[GridGraph], list[NDArray[np.int64]]]:
    """Read the grids of ``snakes/snakes.npz``: each holds a snake of ten cells, to be numbered from its head.

    X holds graphs as `GraphLabeler` takes them: of each cell the colours of the 3 x 3 cells around it (45 columns of 0
    and 1; none outside of the grid), edges between neighbours, of each edge the columns of both cells (None without
    `edge_features`), and their types "right" and "down". y holds 0 for background cells and 1 to 10 for cells of the
    snake, row by row.
    """
    path = data_file("snakes", "snakes.npz", data)
    try:
        with open_bytes(path) as file:
            found = dict(np.load(file, allow_pickle=False))
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not an archive of arrays ({error})") from None
    parts: list[Any] = []
    for part in ("train", "test"):
        names = sorted(name for name in found if name.startswith(f"X_{part}/"))
        if not names:
            raise ValueError(f"{path}: there are no {part} grids")
        parts.append([grid_graph(found[name], f"{path}: {name}", edge_features) for name in names])
        labels = [found.get(f"Y{name[1:]}", np.empty(0)) for name in names]
        for name, own, grid in zip(names, labels, parts[-1], strict=True):
            if own.size != len(grid[0]):
                raise ValueError(f"{path}: {name} has {len(grid[0])} cells but {own.size} labels")
        parts.append([own.astype(np.int64).ravel() for own in labels])
    return Dataset(*parts)


def grid_graph(colours: NDArray[Any], name: str, edge_features: bool) -> GridGraph:
    """The graph of a grid of cells with (height, width, 3) colours."""
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
    """Edges to the right and downwards of a grid whose cells are numbered row by row, and their types."""
    number = np.arange(height * width).reshape(height, width)
    right = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
    down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
    return np.concatenate([right, down]), ["right"] * len(right) + ["down"] * len(down)
