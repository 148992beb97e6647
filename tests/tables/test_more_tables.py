"""Tables in several files or streams, one word per row, k best answers, threads, and killed runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from helpers.model_cases import fitted_classifier, fitted_parser
from partwise import ConstituencyParser, SegmentTagger, SequenceTagger
from partwise.cli import main
from partwise.io import format_tree

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from partwise import tables  # noqa: E402
from partwise.tables import TableError, TablePredictor, files, predictor  # noqa: E402

WORDS = [["the", "cat", "sat"], ["a", "dog", "ran"], ["the", "dog", "sat"], ["she", "ran"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["PRON", "VERB"]]


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(template="pos", tol=1e-2).fit(WORDS, TAGS)


@pytest.fixture(scope="module")
def saved(tagger, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.pw"
    tagger.save(path)
    return path


@pytest.fixture
def pieces(monkeypatch):
    monkeypatch.setattr(predictor, "ROWS", 3)
    monkeypatch.setattr(predictor, "WORD_ROWS", 3)


@pytest.fixture
def parts(tmp_path):
    """Write three files of 5, 7 and 1 rows into a folder."""
    (tmp_path / "parts").mkdir()
    rows = [WORDS[k % 4] for k in range(13)]
    for name, some in {"a.parquet": slice(0, 5), "b.parquet": slice(5, 12), "c.arrow": slice(12, 13)}.items():
        write(pa.table({"id": range(13)[some], "w": rows[some]}), tmp_path / "parts" / name)
    (tmp_path / "parts" / "_SUCCESS").write_text("")
    return tmp_path / "parts", rows


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=4)
        return
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)


class TestSeveralFiles:
    def test_one_output(self, tagger, parts, tmp_path, pieces):
        folder, rows = parts
        for source in (folder, [folder / "a.parquet", folder / "b.parquet", folder / "c.arrow"]):
            tables.predict_file(tagger, source, tmp_path / "out.parquet")
            found = pq.read_table(tmp_path / "out.parquet")
            assert found["id"].to_pylist() == list(range(13))
            assert found["prediction"].to_pylist() == tagger.predict(rows)
        tables.predict_file(tagger, str(folder / "*.parquet"), tmp_path / "out.parquet")
        assert pq.read_table(tmp_path / "out.parquet")["id"].to_pylist() == list(range(12))

    def test_one_output_each(self, saved, tagger, parts, tmp_path):
        folder, rows = parts
        out = tmp_path / "out"
        done = CliRunner().invoke(main, ["predict", str(saved), str(folder), "-o", f"{out}/"])
        assert done.exit_code == 0, done.output
        assert sorted(p.name for p in out.iterdir()) == ["a.parquet", "b.parquet", "c.arrow"]
        assert pq.read_table(out / "b.parquet")["prediction"].to_pylist() == tagger.predict(rows[5:12])

    def test_mistakes(self, tagger, parts, tmp_path):
        folder, _ = parts
        out = tmp_path / "out.parquet"
        (tmp_path / "none").mkdir()
        with pytest.raises(TableError, match="none: the folder has no Parquet"):
            tables.predict_file(tagger, tmp_path / "none", out)
        with pytest.raises(FileNotFoundError, match="no file has a name like this"):
            tables.predict_file(tagger, tmp_path / "x*.parquet", out)
        with pytest.raises(TableError, match="the list of files is empty"):
            tables.predict_file(tagger, [], out)
        with pytest.raises(TableError, match=r"a\.parquet: is an input, too"):
            tables.predict_file(tagger, folder, folder)
        with pytest.raises(TableError, match="two inputs have the same name"):
            tables.predict_file(tagger, [folder / "a.parquet"] * 2, f"{tmp_path}/new/")
        write(pa.table({"id": ["x"], "w": WORDS[:1]}), folder / "d.parquet")
        with pytest.raises(TableError, match=r"d\.parquet: column 'id': is of type string, in .*a\.parquet of type"):
            tables.predict_file(tagger, folder, out)
        write(pa.table({"w": WORDS[:1]}), folder / "d.parquet")
        with pytest.raises(TableError, match=r"d\.parquet: column 'id' is not in both"):
            tables.predict_file(tagger, folder, out)
        write(pa.table({"id": [1, 2], "w": [WORDS[0], None]}), folder / "d.parquet")
        with pytest.raises(TableError, match=r"d\.parquet: row 1, column 'w': is null"):  # rows are counted per file
            tables.predict_file(tagger, folder, out)
        assert not out.exists()


def test_streams(saved, tagger, tmp_path):
    sink = pa.BufferOutputStream()
    table = pa.table({"w": WORDS * 3})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    command = [sys.executable, "-m", "partwise", "predict", str(saved), "-", "-o", "-", "--format", "arrow"]
    done = subprocess.run(command, input=sink.getvalue().to_pybytes(), capture_output=True, check=True)
    found = pa.ipc.open_stream(done.stdout).read_all()
    assert found["prediction"].to_pylist() == tagger.predict(WORDS * 3)
    bad = CliRunner().invoke(main, command[3:], input=b"the cat\n")
    assert bad.exit_code
    assert "standard input: cannot be read" in bad.output + str(bad.exception)


class TestWordsInRows:
    def table(self, sentences):
        keys = [(k // 5, k % 5, word) for k, sentence in enumerate(sentences) for word in sentence]
        doc, number, words = zip(*keys, strict=True)
        return pa.table({"doc": doc, "s": list(map(str, number)), "word": words})

    @pytest.mark.parametrize("jobs", [1, 2])
    @pytest.mark.parametrize("rows", [1, 2, 3, 5, 100])
    def test_taggers(self, tagger, tmp_path, monkeypatch, rows, jobs):
        monkeypatch.setattr(predictor, "WORD_ROWS", rows)
        sentences = [*(WORDS[k % 4] for k in range(12)), ["the"] * 9, ["she"]]
        write(self.table(sentences), tmp_path / "in.parquet")
        options = {"by": ["doc", "s"], "columns": ["word"], "probabilities": True, "n_jobs": jobs}
        tables.predict_file(tagger, tmp_path / "in.parquet", tmp_path / "out.parquet", **options)
        found = pq.read_table(tmp_path / "out.parquet")
        assert found["prediction"].to_pylist() == [label for row in tagger.predict(sentences) for label in row]
        likely = np.concatenate([array.max(axis=1) for array in tagger.predict_marginals(sentences, output="array")])
        assert np.all(found["prediction_probability"].to_numpy() <= likely + 1e-12)

    def test_parsers(self):
        case = fitted_parser("parser")
        flat = [(i, word[0], word[1]) for i, words in enumerate(case.X) for word in words]
        number, forms, tags = map(list, zip(*flat, strict=True))
        named = [[{"form": word[0], "upos": word[1]} for word in words] for words in case.X]
        batch = pa.record_batch({"n": number, "form": forms, "upos": tags})
        found = TablePredictor(case.estimator, by=["n"]).batch(batch)
        expected = [word for tree in case.estimator.predict(named) for word in tree]
        assert found["prediction"].to_pylist() == [head for head, _ in expected]
        assert found["prediction_relations"].to_pylist() == [name for _, name in expected]

    def test_mistakes(self, tagger, tmp_path, pieces):
        with pytest.raises(TableError, match="does not answer word by word"):
            TablePredictor(fitted_classifier(["a", "b"]).estimator, by=["s"])
        with pytest.raises(TableError, match="without `by`"):
            TablePredictor(tagger, by=["s"], k_best=2)
        with pytest.raises(TableError, match="column 'x': there is no such column"):
            TablePredictor(tagger, by=["x"]).batch(pa.record_batch({"w": ["a"]}))
        for column, place in (("s", 7), ("word", 8)):
            columns = {"s": [k // 4 for k in range(12)], "word": ["the"] * 12}
            columns[column][place] = None
            write(pa.table(columns), tmp_path / "in.parquet")
            with pytest.raises(TableError, match=f"row {place}, column '{column}': is null"):
                tables.predict_file(
                    tagger, tmp_path / "in.parquet", tmp_path / "out.parquet", by=["s"], columns=["word"]
                )


class TestKBest:
    """The k best answers in tables are those of `predict_k_best`."""

    def found(self, model, table, **options):
        batch = TablePredictor(model, k_best=3, **options).batch(pa.record_batch(table))
        return batch["prediction_k_best"].to_pylist()

    def same(self, found, expected, *names):
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            assert [tuple(each[name] for name in names) for each in ours] == [answer for answer, _ in theirs]
            likely = [each["probability"] for each in ours]
            np.testing.assert_allclose(likely, [value for _, value in theirs], rtol=1e-12)

    def test_taggers(self, tagger):
        rows = [*WORDS, []]
        expected = tagger.predict_k_best(rows, 3, probabilities=True)
        ranked = [[((labels,), value) for labels, value in each] for each in expected]
        self.same(self.found(tagger, {"w": rows}), ranked, "labels")
        hinge = SequenceTagger(template="pos", loss="hinge", tol=0.1).fit(WORDS, TAGS)
        found = self.found(hinge, {"w": WORDS})
        assert [[row["score"] for row in each] for each in found] == [
            [value for _, value in each] for each in hinge.predict_k_best(WORDS, 3)
        ]

    def test_classifiers_and_parsers(self):
        case = fitted_classifier(["a", "b", "c"])
        expected = case.estimator.predict_k_best(case.X, 3, probabilities=True)
        ranked = [[((label,), value) for label, value in each] for each in expected]
        self.same(self.found(case.estimator, {"x": case.X.tolist()}), ranked, "label")
        case = fitted_parser("parser")
        named = [[{"form": word[0], "upos": word[1]} for word in words] for words in case.X]
        expected = case.estimator.predict_k_best(named, 3, probabilities=True)
        ranked = [[(tuple(map(list, zip(*tree, strict=True))), value) for tree, value in each] for each in expected]
        self.same(self.found(case.estimator, {"x": named}), ranked, "heads", "relations")

    def test_trees(self):
        gold = [("S", ("NP", ("D", "the"), ("N", noun)), ("V", "sat")) for noun in ("cat", "dog")]
        words = [["the", noun, "sat"] for noun in ("cat", "dog")]
        other = ("S", ("X", ("D", "the"), ("N", "cat")), ("V", "sat"))
        parser = ConstituencyParser(tol=0.1).fit([*words, words[0]], [*gold, other])
        expected = parser.predict_k_best(words, 3, probabilities=True)
        ranked = [[((format_tree(tree),), value) for tree, value in each] for each in expected]
        self.same(self.found(parser, {"w": words}), ranked, "tree")


@pytest.mark.parametrize("scheme", ["iob2", "iobes", "iob1"])
def test_segments(scheme):
    gold = [["O", "B-X", "I-X"], ["O", "B-X", "B-X"], ["O", "B-X", "I-X"], ["B-Y", "O"]]
    tagger = SegmentTagger(template="pos", scheme=scheme, tol=1e-2).fit(WORDS, gold)
    rows = [*WORDS, [], ["the"]]
    batch = pa.record_batch({"w": rows})
    assert TablePredictor(tagger).batch(batch)["prediction"].to_pylist() == tagger.predict(rows)
    if scheme != "iob2":
        with pytest.raises(TableError, match="IOB2"):
            TablePredictor(tagger, probabilities=True)
        return
    found = TablePredictor(tagger, probabilities=True).batch(batch)["prediction_probability"].to_pylist()
    cells = zip(tagger.predict_marginals(rows), tagger.predict(rows), strict=True)
    assert found == [[cell[label] for cell, label in zip(*row, strict=True)] for row in cells]


@pytest.mark.parametrize("jobs", [2, 5])
def test_threads_keep_the_order(tagger, tmp_path, pieces, jobs):
    rows = [WORDS[k % 4][: k % 3 + 1] for k in range(50)]
    write(pa.table({"id": range(50), "w": rows}), tmp_path / "in.parquet")
    scorer = tables.predict_file(tagger, tmp_path / "in.parquet", tmp_path / "out.parquet", n_jobs=jobs)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found["prediction"].to_pylist() == tagger.predict(rows)
    assert found["id"].to_pylist() == list(range(50))
    assert tuple(scorer.unknown) == tagger.unknown_counts_
    assert tagger.n_jobs != jobs  # the caller's tagger keeps its n_jobs
    rows[31] = None
    write(pa.table({"id": range(50), "w": rows}), tmp_path / "in.parquet")
    with pytest.raises(TableError, match="row 31, column 'w'"):
        tables.predict_file(tagger, tmp_path / "in.parquet", tmp_path / "new.parquet", n_jobs=jobs)
    assert not (tmp_path / "new.parquet").exists()


def test_long_rows_are_labelled_few_at_a_time(tagger, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BYTES", 1000)
    seen = []
    answers = TablePredictor.answers

    def noted(self, batch, first=0):
        seen.append(batch.num_rows)
        return answers(self, batch, first)

    monkeypatch.setattr(TablePredictor, "answers", noted)
    rows = [WORDS[k % 4] * 20 for k in range(30)]
    for name in ("in.parquet", "in.arrow"):
        write(pa.table({"w": rows}), tmp_path / name)
        tables.predict_file(tagger, tmp_path / name, tmp_path / "out.parquet")
        assert pq.read_table(tmp_path / "out.parquet")["prediction"].to_pylist() == tagger.predict(rows)
    assert sum(seen) == 60
    assert max(seen) <= 5


def test_dictionaries_that_change(tagger, tmp_path, pieces):
    """Dictionaries of encoded columns may differ between the record batches of a stream."""
    parts = [pa.table({"id": pa.array(ids).dictionary_encode(), "w": WORDS[:2]}) for ids in (["a", "b"], ["x", "y"])]
    with pa.OSFile(str(tmp_path / "in.arrow"), "wb") as file, pa.ipc.new_stream(file, parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    for name in ("out.arrow", "out.parquet"):
        tables.predict_file(tagger, tmp_path / "in.arrow", tmp_path / name)
    for found in (pa.ipc.open_file(tmp_path / "out.arrow").read_all(), pq.read_table(tmp_path / "out.parquet")):
        assert found["id"].to_pylist() == ["a", "b", "x", "y"]


def test_labels_are_written_as_numbers(tagger, tmp_path):
    """Labels in Parquet files are dictionary-encoded: about a byte per label."""
    write(pa.table({"w": WORDS * 3000}), tmp_path / "in.parquet")
    tables.predict_file(tagger, tmp_path / "in.parquet", tmp_path / "out.parquet", keep=[])
    column = pq.ParquetFile(tmp_path / "out.parquet").metadata.row_group(0).column(0)
    assert column.has_dictionary_page
    assert column.total_uncompressed_size < 33_000


@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_killed_run_leaves_the_old_file(saved, tmp_path, how):
    pq.write_table(pa.table({"w": WORDS * 300_000}), tmp_path / "in.parquet")
    (tmp_path / "out.parquet").write_bytes(b"old")
    command = [sys.executable, "-m", "partwise", "predict", str(saved), "in.parquet", "-o", "out.parquet"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not _half_written(tmp_path):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(how)
        assert process.wait(60)
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "out.parquet").read_bytes() == b"old"
    if how == signal.SIGTERM:
        assert sorted(os.listdir(tmp_path)) == ["in.parquet", "out.parquet"]


def _half_written(folder):
    return any(path.name.endswith(".tmp") and path.stat().st_size > 1000 for path in folder.iterdir())
