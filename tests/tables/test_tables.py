"""Predictions for Parquet and Arrow files and for frames equal those of `predict`, whatever the column types."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import partwise
from helpers.model_cases import TAGGERS, fitted_classifier, fitted_parser, fitted_tagger
from partwise import ConstituencyParser, MaxentClassifier, SequenceTagger
from partwise.cli import main
from partwise.io import Sentences, format_tree

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from partwise import tables  # noqa: E402
from partwise.tables import TableError, TablePredictor, files, predictor  # noqa: E402

WORDS = [["the", "cat", "sat"], ["a", "dög", "ran"], ["the", "dög", "sat"], ["she", "ran"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["PRON", "VERB"]]
KINDS = [".parquet", ".arrow", ".feather"]


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(template="pos", tol=1e-2).fit(WORDS, TAGS)


@pytest.fixture
def pieces(monkeypatch):
    """Make files consist of many small pieces."""
    monkeypatch.setattr(predictor, "ROWS", 3)
    monkeypatch.setattr(files, "GROUP_ROWS", 5)


def write(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=4)
        return
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)


def read(path):
    return pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(pa.memory_map(str(path))).read_all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS[:2])
def test_a_file_in_pieces(tagger, tmp_path, pieces, kind, other):
    rows = [WORDS[k % 4][: k % 3 + 1] if k % 7 else [] for k in range(23)]
    table = pa.table({"id": range(23), "words": rows}).replace_schema_metadata({"who": "me"})
    source, target = tmp_path / f"in{kind}", tmp_path / f"out{other}"
    write(table, source)
    scorer = tables.predict_file(tagger, source, target, probabilities=True)
    found = read(target)
    assert found.column_names == ["id", "words", "prediction", "prediction_probability"]
    assert found.schema.metadata[b"who"] == b"me"
    assert found.select(["id", "words"]).equals(table)
    assert found["prediction"].to_pylist() == tagger.predict(rows)
    likely = [
        [cell[label] for cell, label in zip(cells, labels, strict=True)]
        for cells, labels in zip(tagger.predict_marginals(rows), tagger.predict(rows), strict=True)
    ]
    for ours, theirs in zip(found["prediction_probability"].to_pylist(), likely, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    tagger.predict(rows)
    assert tuple(scorer.unknown) == tagger.unknown_counts_
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({source.name, target.name})


def as_texts(rows):
    return pa.array([" \t".join(["", *row, ""]) for row in rows])


WAYS = {
    "lists": lambda rows: pa.array(rows, pa.list_(pa.string())),
    "large": lambda rows: pa.array(rows, pa.large_list(pa.large_string())),
    "views": lambda rows: pa.array(rows, pa.list_(pa.string_view())),
    "codes": lambda rows: pa.array(rows, pa.list_(pa.dictionary(pa.int32(), pa.string()))),
    "slices": lambda rows: pa.array([["x", "y"], *rows, ["z"]]).slice(1, len(rows)),
    "text": as_texts,
    "coded text": lambda rows: as_texts(rows).dictionary_encode(),
}


@pytest.mark.parametrize("way", WAYS)
def test_words_in_every_column_type(tagger, way):
    rows = [*WORDS, [], ["\u2028x", "ran"] if "text" not in way else ["x"]]
    batch = pa.record_batch({"w": WAYS[way](rows)})
    assert TablePredictor(tagger).batch(batch)["prediction"].to_pylist() == tagger.predict(rows)


def test_several_columns(tmp_path):
    y = [["B", "I", "O"][: len(row)] for row in WORDS]
    rows = [list(zip(a, b, strict=True)) for a, b in zip(WORDS, TAGS, strict=True)]
    tagger = SequenceTagger(template="chunk", tol=1e-2).fit(rows, y)
    batch = pa.record_batch({"gold": y, "pos": TAGS, "word": WORDS})
    with pytest.raises(TableError, match=r"name the columns.*'gold' \(list"):
        TablePredictor(tagger).batch(batch)
    n = tagger.template_.n_columns
    found = TablePredictor(tagger, ["word", "pos"], into="chunk").batch(batch, keep=["pos"])
    assert (n, found.schema.names) == (2, ["pos", "chunk"])
    assert found["chunk"].to_pylist() == tagger.predict(rows)
    uneven = pa.record_batch({"pos": [*TAGS[:2], ["DET"], TAGS[3]], "word": WORDS})
    with pytest.raises(TableError, match="row 2, column 'pos': has 1 items, column 'word' has 3"):
        TablePredictor(tagger, ["word", "pos"]).batch(uneven)
    with pytest.raises(TableError, match="reads 2 columns"):
        TablePredictor(tagger, ["word"]).batch(batch)


@pytest.mark.parametrize("name", ["names", "dicts, conditioned", "arrays, hinge", "maxent"])
def test_taggers_of_attributes(name):
    case = fitted_tagger(name)
    rows = [np.asarray(x).tolist() if TAGGERS[name][0] is list else x for x in case.X]
    kinds = {"dicts, conditioned": [pa.list_(pa.map_(pa.string(), pa.float64()))]}.get(name, [None])
    if name == "dicts, conditioned":
        names = sorted({key for row in rows for cell in row for key in cell})
        kinds.append(pa.list_(pa.struct([(key, pa.float64()) for key in names])))
    for kind in kinds:
        as_arrow = [[list(cell.items()) for cell in row] for row in rows] if kind is kinds[0] and kind else rows
        batch = pa.record_batch({"x": pa.array(as_arrow, kind)})
        assert TablePredictor(case.estimator).batch(batch)["prediction"].to_pylist() == case.estimator.predict(case.X)
        some = pa.record_batch({"x": pa.array(as_arrow, kind).slice(3, 4)})
        found = TablePredictor(case.estimator).batch(some)
        assert found["prediction"].to_pylist() == case.estimator.predict(case.X[3:7])


@pytest.mark.parametrize("labels", [["a", "b", "c"], [3, 1, 2], [True, False]])
def test_classifiers(labels, tmp_path):
    case = fitted_classifier(labels)
    X, expected = case.X, case.estimator.predict(case.X).tolist()
    columns = pa.record_batch({f"f{j}": X[:, j] for j in range(4)})
    vectors = pa.record_batch({"id": range(len(X)), "x": pa.array(X.tolist(), pa.list_(pa.float64(), 4))})
    pairs = [[(j, v) for j, v in enumerate(row)] + [(99, 1.0)] for row in X.tolist()]
    maps = pa.record_batch({"x": pa.array(pairs, pa.map_(pa.int32(), pa.float64()))})
    for batch in (columns, vectors, maps, maps.slice(2, 9)):
        found = TablePredictor(case.estimator, probabilities=True).batch(batch)
        some = expected if batch.num_rows == len(X) else expected[2:11]
        assert found["prediction"].to_pylist() == some
    likely = case.estimator.predict_proba(X).max(axis=1)
    np.testing.assert_array_equal(
        TablePredictor(case.estimator, probabilities=True).batch(columns)["prediction_probability"], likely
    )


def test_names_of_features(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"b": [1.0, 2, 3, 4], "a": [4, 1, 3, 2]})
    model = MaxentClassifier().fit(frame, [0, 0, 1, 1])
    model.save(tmp_path / "model.pw")
    mixed = frame.assign(other=7.0)[["other", "a", "b"]]
    found = TablePredictor(tmp_path / "model.pw").frame(mixed)
    assert found["prediction"].tolist() == model.predict(frame).tolist()


def test_indices_are_counted_as_in_training(tmp_path):
    """A model trained on svmlight rows, which count from 1, counts the indices of tables from 1."""
    (tmp_path / "rows").write_text("a 1:1\nb 2:1\n".replace("a", "1").replace("b", "2") * 5)
    run("train", "maxent", tmp_path / "rows", "-o", tmp_path / "model.pw")
    model = partwise.load(tmp_path / "model.pw")
    kind = pa.map_(pa.int64(), pa.float64())
    batch = pa.record_batch({"x": pa.array([[(1, 1.0)], [(2, 1.0)], [(2, 1.0), (50, 3.0)]], kind)})
    assert TablePredictor(model).batch(batch)["prediction"].to_pylist() == [1, 2, 2]
    with pytest.raises(TableError, match="row 0, column 'x': index 0: they are counted from 1"):
        TablePredictor(model).batch(pa.record_batch({"x": pa.array([[(0, 1.0)]], kind)}))


def test_parsers():
    case = fitted_parser("parser")
    forms, tags = ([[word[k] for word in words] for words in case.X] for k in (0, 1))
    named = [[{"form": word[0], "upos": word[1]} for word in words] for words in case.X]
    expected = case.estimator.predict(named)
    heads = [[head for head, _ in tree] for tree in expected]
    for columns in ({"upos": tags, "form": forms}, {"x": named}):
        found = TablePredictor(case.estimator, probabilities=True).batch(pa.record_batch(columns))
        assert found["prediction"].to_pylist() == heads
        assert found["prediction_relations"].to_pylist() == [[name for _, name in tree] for tree in expected]
        rows = case.estimator.predict_marginals(named)
        likely = [[row[m, h] for m, h in enumerate(own)] for row, own in zip(rows, heads, strict=True)]
        assert found["prediction_probability"].to_pylist() == likely


def test_trees():
    gold = [("S", ("NP", ("D", "the"), ("N", noun)), ("V", verb)) for noun in ("cat", "dog") for verb in ("sat", "ran")]
    words = [["the", noun, verb] for noun in ("cat", "dog") for verb in ("sat", "ran")]
    other = ("S", ("X", ("D", "the"), ("N", "cat")), ("V", "sat"))
    parser = ConstituencyParser(tol=0.1).fit([*words, words[0]], [*gold, other])
    for column in (words, [" ".join(each) for each in words]):
        found = TablePredictor(parser).batch(pa.record_batch({"words": column}))["prediction"].to_pylist()
        assert found == [format_tree(tree) for tree in parser.predict(words)]
    with pytest.raises(TableError, match="probabilities"):
        TablePredictor(parser, probabilities=True)


class TestMistakes:
    def refused(self, tagger, table, match, **options):
        with pytest.raises(TableError, match=match):
            TablePredictor(tagger, **options).batch(pa.record_batch(table))

    def test_columns(self, tagger):
        self.refused(tagger, {"a": [1]}, r"name the columns that the model reads .*'a' \(int64\)")
        self.refused(tagger, {"a": [1]}, "column 'w': there is no such column; there are 'a'", columns=["w"])
        self.refused(tagger, {"a": [1]}, "column 'a': is of type int64, expected list of strings", columns=["a"])
        self.refused(tagger, {"a": WORDS, "b": WORDS}, "name the columns")
        self.refused(tagger, {"a": WORDS, "prediction": WORDS}, "'prediction': is there already", columns=["a"])

    def test_nulls(self, tagger):
        self.refused(tagger, {"w": [["a"], None]}, "row 1, column 'w': is null")
        self.refused(tagger, {"w": [["a"], ["a", None]]}, "row 1, column 'w': item 1 is null")
        found = TablePredictor(tagger, nulls="keep").batch(pa.record_batch({"w": [None, WORDS[0], None, WORDS[3]]}))
        best = tagger.predict(WORDS)
        assert found["prediction"].to_pylist() == [None, best[0], None, best[3]]
        with pytest.raises(TableError, match="row 3, column 'w': item 0 is null"):
            TablePredictor(tagger, nulls="keep").batch(pa.record_batch({"w": [None, WORDS[0], None, [None]]}))
        nothing = pa.record_batch({"w": pa.array([None, None], pa.list_(pa.string()))})
        assert TablePredictor(tagger, nulls="keep").batch(nothing)["prediction"].to_pylist() == [None, None]

    def test_numbers(self):
        model = fitted_classifier(["a", "b"]).estimator
        rows = [[1.0, 2, 3, 4]] * 3
        self.refused(model, {"x": [*rows, [1.0]]}, "row 3, column 'x': has 1 numbers, the model has 4 features")
        self.refused(model, {"x": [*rows, [1.0, 2, np.nan, 3]]}, "row 3, column 'x': nan is not a finite number")
        columns = {f"f{j}": [0.0, np.inf if j == 2 else 1.0] for j in range(4)}
        self.refused(model, columns, "row 1, column 'f2': inf is not a finite number")
        self.refused(model, {"f": [1.0]}, "has 4 features, got 1", columns=["f"])

    def test_rows_are_counted_through_the_file(self, tagger, tmp_path, pieces):
        rows = [WORDS[0]] * 10 + [None]
        write(pa.table({"w": rows}), tmp_path / "in.parquet")
        (tmp_path / "out.parquet").write_bytes(b"old")
        with pytest.raises(TableError, match=r"in\.parquet: row 10, column 'w': is null") as caught:
            tables.predict_file(tagger, tmp_path / "in.parquet", tmp_path / "out.parquet")
        assert (caught.value.row, caught.value.column) == (10, "w")
        assert (tmp_path / "out.parquet").read_bytes() == b"old"
        assert len(list(tmp_path.iterdir())) == 2

    @pytest.mark.parametrize("kind", KINDS[:2])
    def test_damaged_files(self, tagger, tmp_path, kind):
        path = tmp_path / f"in{kind}"
        write(pa.table({"w": WORDS}), path)
        whole = path.read_bytes()
        for bad in (b"", b"hello", whole[: len(whole) // 2], whole[:-20] + bytes(20)):
            path.write_bytes(bad)
            with pytest.raises(TableError, match=f"in{kind}: "):
                tables.predict_file(tagger, path, tmp_path / "out.parquet")
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
        with pytest.raises(FileNotFoundError):
            tables.predict_file(tagger, tmp_path / f"none{kind}", tmp_path / "out.parquet")

    def test_bytes_that_are_not_utf8(self, tagger):
        wrong = pa.array([b"ab", b"\xff"]).cast(pa.binary()).view(pa.string())
        column = pa.ListArray.from_arrays([0, 2], wrong)
        self.refused(tagger, {"w": column}, "in rows 0 to 0.*UTF-8")

    def test_graphs_have_no_table(self):
        from helpers.model_cases import fitted_labeler

        with pytest.raises(TableError, match="not available for GraphLabeler"):
            TablePredictor(fitted_labeler().estimator)

    def test_packed_strings_are_checked(self):
        data = np.frombuffer("aéb".encode(), dtype=np.uint8)
        ok = np.array([0, 1, 3, 4])
        assert Sentences.from_packed([(data, ok)], np.array([2, 1]))[0] == ["a", "é"]
        for offsets, lengths, match in (
            ([0, 1, 2, 4], [3], "inside a character"),
            ([0, 1, 3, 5], [3], "offsets"),
            ([0, 3, 1, 4], [3], "offsets"),
            ([-1, 1, 3, 4], [3], "offsets"),
            (ok, [2], "lengths say 2"),
            (ok, [-1, 4], "lengths"),
        ):
            with pytest.raises(ValueError, match=match):
                Sentences.from_packed([(data, np.array(offsets))], np.array(lengths))
        with pytest.raises(ValueError, match="at least one column"):
            Sentences.from_packed([], np.array([0]))


def run(*arguments):
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done


def test_columns_are_kept_once(tagger, tmp_path):
    write(pa.table({"id": range(4), "w": WORDS}), tmp_path / "in.parquet")
    with pytest.raises(TableError, match="column 'id': is to be kept twice"):
        tables.predict_file(tagger, tmp_path / "in.parquet", tmp_path / "out.parquet", columns=["w"], keep=["id", "id"])
    assert not (tmp_path / "out.parquet").exists()


class TestCommand:
    def test_predict(self, tagger, tmp_path):
        tagger.save(tmp_path / "model.pw")
        write(pa.table({"id": range(4), "w": WORDS, "v": TAGS}), tmp_path / "in.parquet")
        options = ["--column", "w", "--keep", "id", "--into", "tag", "--marginals"]
        run("predict", tmp_path / "model.pw", tmp_path / "in.parquet", "-o", tmp_path / "out.arrow", *options)
        found = read(tmp_path / "out.arrow")
        assert found.column_names == ["id", "tag", "tag_probability"]
        assert found["tag"].to_pylist() == tagger.predict(WORDS)

    def test_incompatible_options(self, tagger, tmp_path):
        tagger.save(tmp_path / "model.pw")
        write(pa.table({"w": WORDS}), tmp_path / "in.parquet")
        (tmp_path / "in.txt").write_text("the\n")
        for arguments, message in (
            (["in.parquet"], "predictions for a table are a table"),
            (["in.parquet", "-o", "x.txt"], "x.txt: expected a name that ends in"),
            (["in.txt", "-o", "x.parquet"], "in.txt: expected a name"),
            (["in.parquet", "-o", "x.parquet", "--json"], "not available for tables"),
            (["in.txt", "--column", "w"], "for Parquet and Arrow files"),
        ):
            told = [str(tmp_path / each) if "." in each else each for each in arguments]
            done = CliRunner().invoke(main, ["predict", str(tmp_path / "model.pw"), *told])
            assert done.exit_code, arguments
            assert message in done.output + str(done.exception), (arguments, done.output, done.exception)


def test_classifiers_of_named_attributes(tmp_path):
    words = ["cat", "dog", "cow", "ant"] * 3
    forms = {
        pa.list_(pa.string()): [[f"w={word}", word[0]] for word in words],
        pa.map_(pa.string(), pa.float64()): [{f"w={word}": 1.0, "size": 2.0} for word in words],
        pa.struct({"w": pa.string(), "size": pa.float64()}): [{"w": word, "size": 2.0} for word in words],
    }
    for kind, rows in forms.items():
        model = MaxentClassifier().fit(rows, [word[0] for word in words])
        as_arrow = [list(row.items()) for row in rows] if pa.types.is_map(kind) else rows
        batch = pa.record_batch({"n": range(12), "x": pa.array(as_arrow, kind)})
        assert TablePredictor(model).batch(batch)["prediction"].to_pylist() == model.predict(rows).tolist()
        found = TablePredictor(model).batch(batch.slice(3, 4))
        assert found["prediction"].to_pylist() == model.predict(rows[3:7]).tolist()
    with pytest.raises(TableError, match=r"column 'x'.*list of strings, map or struct"):
        TablePredictor(model, columns=["x"]).batch(pa.record_batch({"x": [1.0, 2.0]}))
