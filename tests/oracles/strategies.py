"""Hypothesis strategies that draw small structures of the core, with scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from . import segments  # noqa: F401 - registers enumerations
from .enumerate import Enumeration, enumeration_of
from .graphs import parts_of, random_graph
from .problems import TREES

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """Example `i` of a structure, its labellings, and scores. Padding and masked slots have large arbitrary scores."""

    structure: Any
    i: int
    all: Enumeration
    scores: Floats
    rng: np.random.Generator

    def direction(self) -> Floats:
        """A second random slot vector."""
        return self.rng.normal(size=len(self.scores))

    def __repr__(self) -> str:
        s = self.structure
        name = type(s).__name__
        if name == "Chain":
            name += f"(lengths={s.lengths.tolist()}, tied={s.tied}, ends={s.ends})"
        if name == "Graph":
            name += f"{parts_of(s, self.i)}"
        elif name.endswith("Tree"):
            name += f"(lengths={s.lengths.tolist()}, single_root={s.single_root})"
        else:
            name += f" n_labels={s.n_labels}"
        return f"{name} mask={s.mask(self.i)} scores={self.scores.tolist()}"


WITH_CLIQUES = ("multiclass", "chain")


@st.composite
def scored_structures(
    draw: Any, kinds: tuple[str, ...] = (*WITH_CLIQUES, "second-order", *TREES, "graph"), masks: bool = True
) -> Scored:
    """Draw a Multiclass, Chain (tied or not, with or without ends), SecondOrderChain or trees (one root or more) with
    at most 125 labellings per example, or a graph of up to 8 vertices and 400 labellings, with or without a mask."""
    from partwise import _core
    from partwise.structures import graph

    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(kinds))
    if kind == "multiclass":
        n_labels = draw(st.integers(1, 9))
        structure: Any = _core.Multiclass(2, n_labels)
    elif kind == "graph":
        structure = graph([([2, 2], []), random_graph(rng, draw(st.integers(1, 8)))])
    elif kind in TREES:
        lengths = np.array([2, draw(st.integers(1, 4))], dtype=np.int64)
        structure = getattr(_core, TREES[kind])(lengths, single_root=draw(st.booleans()))
    else:
        n_labels, length = draw(st.sampled_from([(1, 3), (2, 1), (2, 2), (2, 5), (3, 1), (3, 2), (3, 4), (5, 2)]))
        lengths = np.array([2, length], dtype=np.int64)
        if kind == "second-order":
            structure = _core.SecondOrderChain(lengths, n_labels)
        else:
            structure = _core.Chain(lengths, n_labels, tied=draw(st.booleans()), ends=draw(st.booleans()))
    i = 1
    everything = enumeration_of(structure, i)
    ignored = ~everything.used
    if masks and draw(st.booleans()):
        kept = everything.counts[rng.integers(len(everything))] > 0
        allowed = (rng.random(len(kept)) < 0.75) | kept
        structure.set_mask(i, allowed.astype(np.uint8))
        ignored |= ~allowed
    scores = draw(st.sampled_from([0.1, 1.0, 20.0])) * rng.normal(size=structure.num_slots(i))
    scores[ignored] = 1e6 * rng.normal(size=int(ignored.sum()))
    return Scored(structure, i, enumeration_of(structure, i), scores, rng)
