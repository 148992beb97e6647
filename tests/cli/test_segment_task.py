"""``partwise train segment``, and prediction, evaluation and inspection of its models."""

from __future__ import annotations

import json

import pytest

from partwise.datasets import make_treebank
from partwise.metrics import chunk_spans


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("segments")
    bank = make_treebank(120)
    (path / "train.txt").write_text(bank[:80].columns())
    (path / "test.txt").write_text(bank[80:].columns())
    spans = [(i, *span) for i in range(20) for span in chunk_spans(bank.chunks[i])]
    phrases = {" ".join(bank.words[i][begin:end]) for i, _, begin, end in spans if end - begin > 1}
    (path / "pets.txt").write_text("\n".join(sorted(phrases)) + "\n")
    return path


@pytest.fixture(scope="module")
def model(folder, cli):
    cli("train", "segment", folder / "train.txt", "-o", folder / "m.pw", "--borders", "both", "--tol", "0.01", "-q")
    return folder / "m.pw"


def test_predictions(cli, folder, model):
    lines = cli("predict", model, folder / "test.txt").stdout.splitlines()
    given = (folder / "test.txt").read_text().splitlines()
    assert [line.split()[:3] for line in lines if line] == [line.split() for line in given if line]
    right = [line.split()[2] == line.split()[3] for line in lines if line.split()]
    assert sum(right) > 0.9 * len(right)
    rows = [json.loads(line) for line in cli("predict", model, folder / "test.txt", "--json").stdout.splitlines()]
    assert len(rows) == 40
    for row in rows:
        for span in row["spans"]:
            assert row["labels"][span["begin"]] == f"B-{span['label']}"
            assert len(span["text"].split()) == span["end"] - span["begin"]
            assert 0 < span["probability"] <= 1
    best = cli("predict", model, folder / "test.txt", "--k-best", "2").stdout
    assert "# rank = 1, probability = " in best
    assert "B-NP/" in cli("predict", model, folder / "test.txt", "--marginals").stdout


def test_scores_and_inspection(cli, folder, model):
    text = cli("evaluate", model, folder / "test.txt").stdout
    assert "FB1" in text
    assert float(text.split("FB1:")[1].split()[0]) > 90
    said = cli("inspect", model).stdout
    assert "one type after another" in said
    dump = folder / "weights.tsv"
    cli("inspect", model, "--dump", dump)
    kinds = {line.split("\t")[0] for line in dump.read_text().splitlines()}
    assert {"inside", "first", "last", "whole", "length", "transition"} <= kinds


def test_options(cli, folder):
    out, report = folder / "o.pw", folder / "r.html"
    flags = ["--list", folder / "pets.txt", "--segment-features", "text", "--scheme", "iobes", "--report", report]
    cli("train", "segment", folder / "train.txt", "-o", out, "--max-length", "9", "--tol", "0.05", "-q", *flags)
    assert "S-" in cli("predict", out, folder / "test.txt").stdout
    assert "list=pets" in cli("inspect", out, "--dump", "-").stdout
    assert "pw-word" in report.read_text()
    cli("train", "segment", folder / "train.txt", "-o", out, "--loss", "hinge", "--tol", "0.1", "-q")
    assert "probability" not in cli("predict", out, folder / "test.txt", "--json").stdout


def test_constraints(cli, folder, model):
    rules = folder / "rules.txt"
    rules.write_text("scheme iob2\ntoken 1 1 O\n")
    first = cli("predict", model, folder / "test.txt", "--constraints", rules).stdout.splitlines()[0]
    assert first.split()[-1] == "O"


def test_second_order(cli, folder):
    out = folder / "two.pw"
    cli("train", "tag", folder / "train.txt", "-o", out, "--order", "2", "--tol", "0.05", "-q")
    assert len([k for k in cli("inspect", out, "--dump", "-").stdout.splitlines() if k.count("\t") == 4]) > 5
    assert "FB1" in cli("evaluate", out, folder / "test.txt").stdout


def test_mistakes(cli, folder):
    out = folder / "x.pw"
    said = cli("train", "segment", folder / "train.txt", "-o", out, "--max-length", "1", status=2)
    assert "max_length is 1" in said.stderr
    (folder / "pos.txt").write_text("the DT\ndog NN\n\n")
    said = cli("train", "segment", folder / "pos.txt", "-o", out, status=2)
    assert "use `partwise train tag`" in said.stderr
    (folder / "empty.txt").write_text("\n")
    said = cli("train", "segment", folder / "train.txt", "-o", out, "--list", folder / "empty.txt", status=2)
    assert "'empty' has no phrases" in said.stderr
    assert not out.exists()
