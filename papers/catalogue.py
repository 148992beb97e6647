"""The list of papers and experiments. An experiment's module is imported when it is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

from papers.experiment import Experiment

#: The papers; their keys select all of a paper's experiments on the command line.
PAPERS = {
    "collins2008": (
        "Collins, Globerson, Koo, Carreras, Bartlett 2008: Exponentiated gradient algorithms for conditional random "
        "fields and max-margin Markov networks"
    ),
    "bartlett2004": (
        "Bartlett, Collins, McAllester, Taskar 2004: Large margin methods for structured classification: exponentiated "
        "gradient algorithms and PAC-Bayesian generalization bounds"
    ),
    "zhang2011": "Zhang, Saha, Vishwanathan 2011: Accelerated training of max-margin Markov networks with kernels",
    "huang2010": (
        "Huang, Hsieh, Chang, Lin 2010: Iterative scaling and coordinate descent methods for maximum entropy models"
    ),
    "chang2013": "Chang, Yih 2013: Dual coordinate descent algorithms for efficient large margin structured prediction",
}

#: The module of each experiment, in the order in which "all" runs them.
EXPERIMENTS = {
    "eg-bounds": "papers.eg_bounds",
    "eg-mnist": "papers.eg_mnist",
    "eg-mnist-path": "papers.eg_mnist_path",
    "eg-parsing": "papers.eg_parsing",
    "eg-parsing-path": "papers.eg_parsing_path",
    "eg-margin": "papers.eg_margin",
    "smo": "papers.smo",
    "excessive-gap": "papers.excessive_gap",
    "dcd-ner": "papers.dcd_ner",
    "dcd-chunking": "papers.dcd_chunking",
    "dcd-pos": "papers.dcd_pos",
    "dcd-parsing": "papers.dcd_parsing",
    "maxent-statistics": "papers.maxent_statistics",
    "maxent-text": "papers.maxent_text",
    "maxent-documents": "papers.maxent_documents",
    "maxent-line-search": "papers.maxent_line_search",
}

ALL = "all"


def get(name: str) -> Experiment:
    """Return the experiment of this name."""
    experiment: Experiment = importlib.import_module(EXPERIMENTS[name]).EXPERIMENT
    return experiment


def find(names: Iterable[str]) -> list[Experiment]:
    """Return experiments by names, papers or "all"; for an unknown name raise ValueError with the known names."""
    wanted: dict[str, Experiment] = {}
    for name in names:
        if name in EXPERIMENTS:
            wanted[name] = get(name)
        elif name == ALL or name in PAPERS:
            wanted |= {each: get(each) for each in EXPERIMENTS if name == ALL or get(each).paper == name}
        else:
            raise ValueError(
                f"no experiment {name!r}; there are {', '.join(EXPERIMENTS)}; "
                f"{', '.join(PAPERS)} for all of a paper; and {ALL}"
            )
    return list(wanted.values())
