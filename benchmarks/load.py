"""How long does a large model take to load, with a warm file cache? A tagger of 20 labels, five weights per attribute.

Every load is a separate process. The table shows the least and the median wall time of `partwise.load` itself (without
imports), and the time of the SHA-256 of as many bytes, a lower limit of every load's time.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import click
import numpy as np

from benchmarks.report import machine, print_table, save

LABELS, PER_ATTRIBUTE = 20, 5

_LOAD = """
import json, sys, time
import partwise, partwise.estimators.tagger
begin, cpu = time.perf_counter(), time.process_time()
model = partwise.load(sys.argv[1])
print(json.dumps([time.perf_counter() - begin, time.process_time() - cpu]))
"""


def write_model(path: Path, n_attributes: int) -> None:
    """Write an untrained tagger with this many attributes."""
    from partwise import SequenceTagger
    from partwise.features import Vocabulary
    from partwise.model_files.parts import encode_names
    from partwise.models.features import PairLayout
    from partwise.models.readers import NameReader
    from partwise.structures import padded_width

    rng = np.random.default_rng(0)
    tagger = SequenceTagger().fit([[["a"], ["b"]]], [["x", "y"]])
    some = np.sort(np.argsort(rng.random((1000, LABELS)), axis=1)[:, :PER_ATTRIBUTE], axis=1)
    columns = np.resize(some, (n_attributes, PER_ATTRIBUTE)).ravel().astype(np.int64)
    width = padded_width(LABELS)
    offsets = np.arange(n_attributes + 1, dtype=np.int64) * PER_ATTRIBUTE
    nodes = PairLayout.some(n_attributes, LABELS, width, offsets, columns)
    mask = np.zeros((LABELS, width), dtype=np.uint8)
    mask[:, :LABELS] = 1
    names = encode_names([f"w[{k % 5 - 2}]=word{k}" for k in range(n_attributes)])
    model = tagger._model
    model.classes = np.array([f"L{k:02d}" for k in range(LABELS)])
    model.nodes, model.transition_mask = nodes, mask.ravel()
    model.reader = NameReader(Vocabulary(names["bytes"], names["offsets"]))
    weights = nodes.core.pack(rng.normal(size=len(columns)))
    tagger.coef_ = np.concatenate([weights, mask.ravel().astype(np.float64)])
    tagger.save(path)


@click.command("load")
@click.option("--attributes", default=12_000_000, show_default=True, help="Attributes; 12 million make 1 GB.")
@click.option("--repeat", default=5, show_default=True, help="Loads.", type=click.IntRange(min=1))
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
def command(attributes: int, repeat: int, json_file: str | None) -> None:
    """How long does a large model take to load?"""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pw"
        write_model(path, attributes)
        data = path.read_bytes()  # reading the file warms the cache
        begin = time.perf_counter()
        hashlib.sha256(data).hexdigest()
        digest = time.perf_counter() - begin
        size = len(data)
        del data
        program = [sys.executable, "-c", _LOAD, os.fspath(path)]
        found = [json.loads(subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout) for _ in range(repeat)]
    seconds = {
        "least_seconds": min(wall for wall, _ in found),
        "median_seconds": median(wall for wall, _ in found),
        "cpu_seconds": median(cpu for _, cpu in found),
        "digest_seconds": digest,
    }
    rows = [[f"{size / 1e9:.2f} GB", *(f"{value:.2f}" for value in seconds.values())]]
    print_table("Loading a model", ["file", "least s", "median s", "cpu s", "digest alone s"], rows)
    save(json_file, [{"question": "load", "bytes": size, **seconds, **machine()}])
