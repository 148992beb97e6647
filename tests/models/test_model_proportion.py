"""Loading a model takes time and memory in proportion to its file."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from helpers.model_cases import fitted_classifier, remade
from partwise._core import Vocabulary
from partwise.features import Template
from partwise.features.template import Gazetteer
from partwise.model_files import ModelParts
from partwise.models.sequences.template_reader import TemplateReader


@pytest.mark.skipif("libasan" in os.environ.get("LD_PRELOAD", ""), reason="the sanitizer takes memory of its own")
def test_a_sparse_table_takes_the_memory_of_its_weights(tmp_path):
    """Loading a sparse table takes memory for its nonzero weights only: the dense weights would take 1 GB."""
    model = fitted_classifier([1, 2]).estimator
    model.prune(keep=2)
    path = tmp_path / "model.pw"
    model.save(path)
    data = remade(path.read_bytes(), lambda _, settings, __: settings.update(n_features=1 << 24))
    path.write_bytes(data)
    code = (
        "import sys, partwise; from partwise.cli.output import peak_memory as m; partwise.load(sys.argv[1]); print(m())"
    )
    run = [sys.executable, "-c", code, path]
    assert int(subprocess.run(run, capture_output=True, check=True).stdout) < 300e6
    dense, few = np.zeros((3, 1000)), np.array([0, 7, 999])
    dense[:, few] = np.arange(9).reshape(3, 3) + 1.0
    for labels, fit_intercept in (("abc", True), ("abc", False), ("ab", True)):
        model = fitted_classifier(list(labels), fit_intercept=fit_intercept).estimator
        model.coef_, model.n_features_in_ = dense[: len(model.coef_)], 1000
        found = model._model.weights.reshape(1000 + fit_intercept, -1)[:1000]
        wanted = dense if len(labels) == 3 else np.concatenate([-0.5 * dense[:1], 0.5 * dense[:1]])
        assert np.array_equal(found[:, : len(labels)], wanted.T)


@pytest.mark.parametrize("what", ["gazetteers", "lines"])
def test_parts_and_templates_load_in_linear_time(what, tmp_path):
    """Thousands of lines or gazetteers load in linear time; each was once looked up in a list of all."""

    def seconds(n):
        lists, lines = {}, [f"U{k}:%prefix[0,{k},1]" for k in range(n if what == "lines" else 2)]
        if what == "gazetteers":
            lists = {f"g{k}": Gazetteer(["a b"]) for k in range(n)}
        template = Template.from_text("\n".join([*lines, "B"]), gazetteers=lists)
        parts = TemplateReader(template, Vocabulary.learn(["U0:a"], 1)[0]).to_parts()
        whole = ModelParts("tagger")
        whole.add("reader", parts)
        begin = time.process_time()
        TemplateReader.from_parts(whole.part("reader"))
        return time.process_time() - begin

    # the fastest of three runs: garbage collection or another process can double the time of any single run
    few, many = (min(seconds(n) for _ in range(3)) for n in (2000, 8000))
    assert many < 10 * few + 0.2
