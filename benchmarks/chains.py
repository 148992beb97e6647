"""The chain problems that several benchmarks use, as plain arrays and as partwise problems."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from benchmarks.objective import ChainData, ChainLoss, Floats, Ints, chain_primal

_DENSE = 0.25  # rows with a larger share of nonzero inputs are stored densely


@dataclass(frozen=True)
class Chains:
    """Labelled sequences; the tokens of all sequences are concatenated."""

    design: sp.csr_array  # tokens x inputs
    gold: Ints
    lengths: Ints
    n_labels: int
    observed: bool  # whether only pairs seen in training have weights, or all pairs

    def save(self, path: str | os.PathLike[str]) -> None:
        d = self.design
        shape = np.array(d.shape)
        np.savez(
            path, data=d.data, indices=d.indices, indptr=d.indptr, shape=shape, gold=self.gold, lengths=self.lengths,
            n_labels=self.n_labels, observed=self.observed,
        )  # fmt: skip

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Chains:
        with np.load(path) as z:
            design = sp.csr_array((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))
            return cls(design, z["gold"], z["lengths"], int(z["n_labels"]), bool(z["observed"]))


def conll2000(data: str | None, limit: int | None) -> Chains:
    """Return text chunking with the 19 templates of CRFsuite's example; attributes are numbered by frequency."""
    from partwise import datasets

    full = datasets.conll2000(data)
    return of_strings(full.X_train[:limit], full.y_train[:limit])


def wnut17(data: str | None, limit: int | None) -> Chains:
    """Return named entities in noisy text with the attributes of the preset "ner", numbered by frequency."""
    from partwise import datasets
    from partwise.features import Template

    full = datasets.wnut17(data)
    words = [[[word] for word in sentence] for sentence in full.X_train[:limit]]
    return of_strings(Template.preset("ner").attributes(words), full.y_train[:limit])


def of_strings(X: Sequence[Sequence[Sequence[str]]], y: Sequence[Sequence[str]]) -> Chains:
    """Make chains of sentences, given as the attribute strings and the label of each word."""
    arrays = ChainData.from_strings(X, y)
    order = np.argsort(-arrays.design.sum(axis=0), kind="stable")
    design = sp.csr_array(arrays.design[:, order])
    return Chains(design, arrays.gold, arrays.lengths, len(arrays.labels), observed=True)


def ocr_letters(data: str | None, limit: int | None) -> Chains:
    """Return handwritten words, all folds but the first; 128 pixels and a bias per letter."""
    from partwise import datasets

    full = datasets.ocr_letters(data)
    words, letters = full.X_train[:limit], full.y_train[:limit]
    pixels = np.concatenate(words)
    design = sp.csr_array(np.column_stack([pixels, np.ones(len(pixels))]))
    gold = np.array([ord(letter) - ord("a") for word in letters for letter in word], dtype=np.int64)
    return Chains(design, gold, np.array([len(word) for word in words]), 26, observed=False)


DATASETS = {"conll2000": conll2000, "ocr-letters": ocr_letters, "wnut17": wnut17}


class Task:
    """A partwise problem on these chains, and the same objective by independent code."""

    def __init__(self, chains: Chains, loss: str, l2: float, n_jobs: int) -> None:
        from partwise import Problem
        from partwise.features import Attributes, RowLayout, chain_map
        from partwise.problem.losses import get_loss
        from partwise.structures import Chain

        self.chains, self.l2 = chains, l2
        lengths, gold = chains.lengths.astype(np.int64), chains.gold.astype(np.int64)
        structure = Chain(lengths, chains.n_labels)
        width = structure.width
        n_inputs = int(chains.design.shape[1])
        rows: Any = Attributes(
            chains.design.indptr.astype(np.int64),
            chains.design.indices.astype(np.int64),
            n_inputs,
            None if (chains.design.data == 1.0).all() else chains.design.data,
        )
        mask: NDArray[np.uint8] | None = None
        self.layout = None
        if chains.observed:
            self.layout = RowLayout.observed(n_inputs, chains.n_labels, width, rows.row_ptr, rows.attributes, gold)
            inner = np.ones(len(gold), dtype=bool)
            inner[np.cumsum(lengths) - lengths] = False
            after = np.flatnonzero(inner)
            cells = gold[after - 1] * width + gold[after]
            mask = (np.bincount(cells, minlength=chains.n_labels * width) > 0).astype(np.uint8)
        elif chains.design.nnz > _DENSE * np.prod(chains.design.shape):
            rows = np.ascontiguousarray(chains.design.toarray())
        self.width = width
        self.loss = get_loss(loss)
        features = chain_map(structure, rows, layout=self.layout, transition_mask=mask)
        self.problem = Problem(features, structure, structure.encode(gold), self.loss, l2, n_jobs=n_jobs)

    def matrices(self, weights: Floats) -> tuple[Floats, Floats]:
        """Split the weights into state weights (inputs x labels) and transitions (label x next label)."""
        chains, n_inputs = self.chains, int(self.chains.design.shape[1])
        run, hops = np.split(weights, [len(weights) - chains.n_labels * self.width])
        state = np.zeros((n_inputs, chains.n_labels))
        if self.layout is None:
            state[:] = run.reshape(n_inputs, self.width)[:, : chains.n_labels]
        else:
            indptr, columns = self.layout.pairs()
            state[np.repeat(np.arange(n_inputs), np.diff(indptr)), columns] = self.layout.unpack(run)
        return state, hops.reshape(chains.n_labels, self.width)[:, : chains.n_labels]

    def primal(self, weights: Floats) -> float:
        """Return P(w), computed by the independent code."""
        state, transitions = self.matrices(weights)
        chains, loss = self.chains, self.loss
        terms = ChainLoss(loss.temperature, loss.cost_scale, loss.link == "squared")
        return chain_primal(chains.design @ state, state, transitions, chains.gold, chains.lengths, self.l2, terms)
