"""``partwise partition`` writes a folder, on which ``partwise train`` trains as on the data themselves."""

from __future__ import annotations

import gzip
import json
import os
import re

import numpy as np
import pytest

import partwise
from helpers.partition_cases import arcs, bags, brackets, words
from helpers.partition_cases import chunks as chunks_of_words


@pytest.fixture(scope="module")
def chunks(data_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "train.txt"
    with gzip.open(data_dir / "conll2000" / "train.txt.gz", "rt", encoding="utf-8") as file:
        path.write_text("\n\n".join(file.read(150_000).split("\n\n")[:100]) + "\n\n", encoding="utf-8")
    return path


def test_a_tagger(chunks, tmp_path, cli):
    common = ("--C", "0.5", "--solver", "lbfgs", "--json")
    cli("train", "tag", str(chunks), "-o", str(tmp_path / "memory.pw"), *common)
    one = json.loads(cli("partition", "tag", str(chunks), "-o", str(tmp_path / "one"), "--json").stdout)
    assert one["n_batches"] == 1
    assert one["features"] == "chunk"
    cli("train", "tag", str(tmp_path / "one"), "-o", str(tmp_path / "one.pw"), *common)
    expected, found = (partwise.load(tmp_path / name) for name in ("memory.pw", "one.pw"))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.get_params() == expected.get_params()
    assert found.input_settings_ == expected.input_settings_
    cli("partition", "tag", str(chunks), "-o", str(tmp_path / "some"), "--batch-size", "300k")
    done = cli(
        "train", "tag", str(tmp_path / "some"), "-o", str(tmp_path / "some.pw"), "--memory", "270M", "--C", "0.5",
        "--dev", str(chunks), "--json",
    )  # fmt: skip
    fields = json.loads(done.stdout)
    assert fields["n_batches"] > 2
    assert fields["f1"] > 0.95
    assert abs(fields["primal"] - expected.result_.primal) <= fields["gap"] + expected.result_.gap


def test_a_classifier(tmp_path, cli, rng):
    X = rng.normal(size=(300, 4)) * (rng.random((300, 4)) < 0.5)
    labels = np.argmax(X, axis=1)
    cells = [" ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row) if x) for row in X.tolist()]
    lines = [f"{label} {text}" for label, text in zip(labels, cells, strict=True)]
    data = tmp_path / "rows.svm"
    data.write_text("\n".join(lines) + "\n")
    cli("train", "maxent", str(data), "-o", str(tmp_path / "memory.pw"), "--solver", "lbfgs", "--no-fit-intercept")
    cli("partition", "maxent", str(data), "-o", str(tmp_path / "dir"), "--no-fit-intercept")
    done = cli("train", "maxent", str(tmp_path / "dir"), "-o", str(tmp_path / "dir.pw"), "--solver", "lbfgs")
    assert "certified" in done.stdout
    expected, found = (partwise.load(tmp_path / name) for name in ("memory.pw", "dir.pw"))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    with data.open("a") as file:
        file.write("1 2000000000:1\n")
    done = cli("partition", "maxent", str(data), "-o", str(tmp_path / "wide"), status=2)
    assert "out of proportion" in done.stderr
    assert not (tmp_path / "wide").exists()


def conllu_text() -> str:
    X, y = arcs()
    blocks = []
    for sentence, tree in zip(X, y, strict=True):
        rows = zip(sentence, tree, strict=True)
        cells = [
            f"{k}\t{word}\t_\t{tag}\t_\t_\t{head}\t{name}\t_\t_"
            for k, ((word, tag), (head, name)) in enumerate(rows, 1)
        ]
        blocks.append("\n".join(cells) + "\n\n")
    return "".join(blocks)


def tree_text(tree) -> str:
    return tree if isinstance(tree, str) else f"({' '.join(map(tree_text, tree))})"


def column_text(data) -> str:
    return "".join("".join(f"{a} {b}\n" for a, b in zip(*pair, strict=True)) + "\n" for pair in zip(*data, strict=True))


def item_text() -> str:
    return "".join("\t".join([label, *each]) + "\n" for each, label in zip(*bags(), strict=True))


@pytest.mark.parametrize(
    ("task", "text", "flags", "training"),
    [
        ("tag", lambda: column_text(words()), ("--order", "2"), ()),
        ("tag", lambda: column_text(words()), ("--model", "maxent", "--history", "1"), ()),
        ("tag", conllu_text, ("--format", "conllu", "--inputs", "form", "--target", "UPOS"), ()),
        ("segment", lambda: column_text(chunks_of_words()), ("--min-count", "2"), ()),
        ("maxent", item_text, ("--format", "items", "--min-count", "2"), ("--penalize-intercept",)),
        ("dep", conllu_text, ("--structure", "spanning"), ("--label-C", "0.5")),
        ("cfg", lambda: "".join(tree_text(tree) + "\n" for tree in brackets()[0]), ("--horizontal", "1"), ()),
    ],
)
def test_every_task(task, text, flags, training, tmp_path, cli):
    """For every task, training on a partition gives the model that training on the file gives."""
    data = tmp_path / "data.txt"
    data.write_text(text())
    common = ("--solver", "lbfgs", "--tol", "1e-3", *training, "--json")
    cli("train", task, data, "-o", tmp_path / "memory.pw", *flags, *common)
    done = json.loads(cli("partition", task, data, "-o", tmp_path / "dir", *flags, "--json").stdout)
    assert (done["n_batches"], done["task"]) == (1, task)
    trained = json.loads(cli("train", task, tmp_path / "dir", "-o", tmp_path / "dir.pw", "--dev", data, *common).stdout)
    assert trained["gap"] <= 1e-3 * trained["primal"]
    expected, found = (partwise.load(tmp_path / name) for name in ("memory.pw", "dir.pw"))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert found.input_settings_ == expected.input_settings_
    answers = [cli("predict", tmp_path / name, data).stdout for name in ("memory.pw", "dir.pw")]
    assert answers[0] == answers[1]
    assert len(answers[0]) > 60


def test_folders_are_inspected_moved_and_replaced(tmp_path, cli):
    data, folder = tmp_path / "data.txt", tmp_path / "dir"
    data.write_text(column_text(words()))
    cli("partition", "tag", data, "-o", folder, "--batch-size", "8k")
    before = json.loads(cli("inspect", folder, "--json").stdout)
    assert (before["estimator"], before["n_examples"]) == ("SequenceTagger", 60)
    assert before["n_batches"] > 2
    folder.rename(tmp_path / "moved")
    assert "all files are as they were written" in cli("inspect", tmp_path / "moved").stdout
    cli("train", "tag", tmp_path / "moved", "-o", tmp_path / "m.pw", "-q")
    cli("partition", "tag", data, "-o", tmp_path / "moved", "--overwrite")
    assert json.loads(cli("inspect", tmp_path / "moved", "--json").stdout)["n_batches"] == 1
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data.txt", "m.pw", "moved"]
    path = tmp_path / "moved" / "batch000000.pwb"
    path.write_bytes(path.read_bytes()[:-9] + b"damaged!!")
    assert "batch000000.pwb" in cli("inspect", tmp_path / "moved", status=2).stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    done = cli("partition", "tag", data, "-o", tmp_path / "other", "--overwrite", status=2)
    assert "not a partition" in done.stderr
    assert "not a partition" in cli("inspect", tmp_path / "other", status=2).stderr


def test_a_cluster(tmp_path, cli):
    pytest.importorskip("dask.distributed")
    data = tmp_path / "rows.svm"
    data.write_text("".join(f"{k % 2} {1 + k % 2}:1 {3 + k % 5}:2\n" for k in range(200)))
    folder, common = str(tmp_path / "dir"), ("--solver", "lbfgs", "--json")
    cli("partition", "maxent", str(data), "-o", folder, "--batch-size", "5k")
    cli("train", "maxent", folder, "-o", str(tmp_path / "here.pw"), *common)
    done = cli("train", "maxent", folder, "-o", str(tmp_path / "there.pw"), "--scheduler", "local", *common)
    assert json.loads(done.stdout)["n_batches"] > 2
    expected, found = (partwise.load(tmp_path / name) for name in ("here.pw", "there.pw"))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    for arguments, message in (
        ((folder, "--scheduler", "tcp://127.0.0.1:9"), "there is no Dask scheduler"),
        ((folder, "--scheduler", "nowhere"), "there is no Dask scheduler"),
        ((str(data), "--scheduler", "local"), "--scheduler is for partitions"),
    ):
        done = cli("train", "maxent", *arguments, "-o", str(tmp_path / "x.pw"), status=2)
        assert message in done.stderr


def test_errors(chunks, tmp_path, cli):
    folder = tmp_path / "dir"
    cli("partition", "tag", str(chunks), "-o", str(folder))
    for arguments, message in (
        (("partition", "tag", str(chunks), "-o", str(folder)), "is there already"),
        (("partition", "tag", "-", "-o", str(tmp_path / "x")), "read twice"),
        (("partition", "cfg", str(chunks), "-o", str(tmp_path / "x")), "train.txt"),
        (("partition", "dep", str(chunks), "-o", str(tmp_path / "x")), "train.txt"),
        (("partition", "dep", str(chunks), "-o", str(tmp_path / "x"), "--lenient"), "--lenient: not available"),
        (("partition", "tag", str(chunks), "-o", str(tmp_path / "x"), "--batch-size", "many"), "number of bytes"),
        (("train", "tag", str(folder), "--min-count", "2"), "--min-count: .* is a partition"),
        (("train", "tag", str(folder), "--features", "ner"), "--features: .* is a partition"),
        (("train", "tag", str(folder), "--folds", "3"), "--folds: not available with a partition"),
        (("train", "tag", str(folder), "--memory", "10M"), "are too little"),
        (("train", "maxent", str(folder)), "another task"),
        (("train", "tag", str(tmp_path)), "is not a partition"),
        (("train", "tag", str(chunks), "--memory", "1G"), "--memory is for partitions"),
    ):
        done = cli(*arguments, *(("-o", str(tmp_path / "m.pw")) if arguments[0] == "train" else ()), status=2)
        assert re.search(message, done.stderr), (arguments, done.stderr)
    assert not (tmp_path / "x").exists()
    for name in os.listdir(folder):
        done = cli("train", "tag", str(folder), "-o", str(folder / name), status=2)
        assert "is an input, which would be overwritten" in done.stderr
    cli("inspect", folder)


def test_workers_that_do_not_start(tmp_path, cli, monkeypatch):
    dask = pytest.importorskip("dask.distributed")
    data = tmp_path / "rows.svm"
    data.write_text("0 1:1\n1 2:1\n")
    cli("partition", "maxent", data, "-o", tmp_path / "dir")

    def fail(**options):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(dask, "LocalCluster", fail)
    done = cli("train", "maxent", tmp_path / "dir", "-o", tmp_path / "m.pw", "--scheduler", "local", status=2)
    assert done.stderr == "error: --scheduler local: workers could not be started (Nanny failed to start.)\n"


@pytest.mark.parametrize("task", ["tag", "segment", "cfg"])
def test_max_labels_is_refused_where_it_has_no_effect(task, tmp_path, cli):
    data = tmp_path / "data.txt"
    data.write_text("a A\n\n")
    done = cli("partition", task, data, "-o", tmp_path / "dir", "--max-labels", 5, status=2)
    assert "No such option" in done.stderr
    assert "--max-labels" in done.stderr
