"""Predictions for Dask bags and dataframes keep the order and equal those of one process."""

from __future__ import annotations

import os

import numpy as np
import pytest

from helpers.model_cases import fitted_classifier, fitted_labeler, fitted_parser, fitted_tagger
from partwise import MaxentClassifier, SequenceTagger
from partwise.estimators import StructuredEstimator

pytest.importorskip("pyarrow")
dask = pytest.importorskip("dask")
bag = pytest.importorskip("dask.bag")

from partwise.tables import TableError, predict_dask  # noqa: E402

WORDS = [["the", "cat", "sat"], ["a", "dog", "ran"], ["she", "ran"], ["the", "dog", "sat"], ["he"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["PRON", "VERB"], ["DET", "NOUN", "VERB"], ["PRON"]]


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(template="pos", tol=1e-2).fit(WORDS, TAGS)


@pytest.fixture(params=["estimator", "file"])
def model(request, tagger, tmp_path):
    if request.param == "estimator":
        return tagger
    tagger.save(tmp_path / "model.pw")
    return tmp_path / "model.pw"


def test_bags(model, tagger):
    rows = WORDS * 4
    found = predict_dask(model, bag.from_sequence(rows, npartitions=3))
    assert found.compute(scheduler="sync") == tagger.predict(rows)
    with pytest.raises(ValueError, match="are for dataframes"):
        predict_dask(model, bag.from_sequence(rows), into="x")
    with pytest.raises(TypeError, match="bag, dataframe or array, got list"):
        predict_dask(model, rows)


def test_dataframes(model, tagger):
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    rows = WORDS * 4
    with dask.config.set({"dataframe.convert-string": False}):
        data = frames.from_pandas(pd.DataFrame({"id": range(20), "w": rows}), npartitions=3)
        found = predict_dask(model, data, into="tags").compute(scheduler="sync")
    assert found["tags"].tolist() == tagger.predict(rows)
    assert found["id"].tolist() == list(range(20))
    text = frames.from_pandas(pd.DataFrame({"w": [" ".join(row) for row in rows]}), npartitions=2)
    found = predict_dask(model, text).compute(scheduler="sync")
    assert found["prediction"].tolist() == tagger.predict(rows)
    with pytest.raises(TableError, match="column 'x': there is no such column"):
        predict_dask(model, text, columns=["x"])


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # a warning of Dask itself
def test_parquet_by_dask(tagger, tmp_path):
    """The Parquet recipe of docs/scoring.md reads and writes columns of lists."""
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    (tmp_path / "in").mkdir()
    for k in range(3):
        pd.DataFrame({"id": range(5 * k, 5 * k + 5), "words": WORDS}).to_parquet(tmp_path / "in" / f"{k}.parquet")
    found = predict_dask(tagger, frames.read_parquet(f"{tmp_path}/in/*.parquet"), columns=["words"])
    with dask.config.set(scheduler="sync"):
        found.to_parquet(tmp_path / "out", schema=None)
    written = pd.read_parquet(tmp_path / "out").sort_values("id")
    assert [row.tolist() for row in written["prediction"]] == tagger.predict(WORDS * 3)


def test_lists_that_became_strings_are_refused(tagger):
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    data = frames.from_pandas(pd.DataFrame({"w": [str(row) for row in WORDS]}), npartitions=1)
    with pytest.raises(TableError, match=r"dataframe\.convert-string"):
        predict_dask(tagger, data).compute(scheduler="sync")


@pytest.mark.slow
def test_on_workers(model, tagger):
    workers = pytest.importorskip("dask.distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with workers.LocalCluster(**options) as cluster, workers.Client(cluster):
        assert predict_dask(model, bag.from_sequence(WORDS * 40, npartitions=8)).compute() == tagger.predict(WORDS * 40)


def test_arrays():
    array = pytest.importorskip("dask.array")
    case = fitted_classifier(["a", "b", "c"])
    data = array.from_array(case.X, chunks=(7, 2))
    found = predict_dask(case.estimator, data)
    assert (found.shape, found.dtype) == ((len(case.X),), case.estimator.classes_.dtype)
    assert found.chunks[0] == data.chunks[0]
    assert found.compute(scheduler="sync").tolist() == case.estimator.predict(case.X).tolist()
    with pytest.raises(ValueError, match=r"has 4 features, got an array of shape \(\d+, 2\)"):
        predict_dask(case.estimator, data[:, :2])
    with pytest.raises(TypeError, match="arrays are for classifiers, not for SequenceTagger"):
        predict_dask(SequenceTagger(template="pos", tol=0.1).fit(WORDS, TAGS), data)
    odd = case.X.copy()
    odd[9, 1] = np.nan
    with pytest.raises(TableError, match=r"(?s)partition 1: .*row 2"):
        predict_dask(case.estimator, array.from_array(odd, chunks=(7, 4))).compute(scheduler="sync")


def test_arrays_for_classifiers_without_probabilities():
    array = pytest.importorskip("dask.array")
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.arange(30) % 3
    fitted = MaxentClassifier(loss="hinge", tol=0.1).fit(X, y)
    found = predict_dask(fitted, array.from_array(X, chunks=(7, 3)))
    assert found.compute(scheduler="sync").tolist() == fitted.predict(X).tolist()


def test_nothing_is_done_before_it_is_asked_for(model, monkeypatch):
    """Predictions are lazy, and the partitions, types and names of the result are known before."""
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    rows = []
    label = SequenceTagger.predict
    monkeypatch.setattr(SequenceTagger, "predict", lambda self, X: rows.append(len(X)) or label(self, X))
    numbers = StructuredEstimator._predict_numbers
    monkeypatch.setattr(
        SequenceTagger, "_predict_numbers", lambda self, X, p: rows.append(len(X)) or numbers(self, X, p), raising=False
    )
    frame = pd.DataFrame({"w": [" ".join(row) for row in WORDS * 4]}, index=range(100, 120))
    data = frames.from_pandas(frame, npartitions=3)
    found = predict_dask(model, data, into="tags", probabilities=True)
    examples = predict_dask(model, bag.from_sequence(WORDS * 4, npartitions=3))
    assert rows == []
    assert (found.npartitions, examples.npartitions) == (data.npartitions, 3)
    assert found.divisions == data.divisions
    computed = found.compute(scheduler="sync")
    assert list(computed.columns) == list(found.columns) == ["w", "tags", "tags_probability"]
    assert computed.dtypes.tolist() == found._meta.dtypes.tolist()
    assert computed.index.tolist() == list(range(100, 120))
    assert sum(rows) == 20
    examples.compute(scheduler="sync")
    assert sum(rows) == 40


@pytest.mark.parametrize("by_file", [True, False])
def test_the_model_is_in_the_graph_once_or_not_at_all(tagger, tmp_path, by_file):
    cloudpickle = pytest.importorskip("cloudpickle")
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    words = [[f"word{k}"] for k in range(5000)]
    large = SequenceTagger(template="pos", tol=0.5).fit(words, [["a" if k % 2 else "b"] for k in range(5000)])
    size = len(cloudpickle.dumps(large))
    assert size > 500_000
    large.save(tmp_path / "large.pw")
    given, rows = tmp_path / "large.pw" if by_file else large, ["she ran"] * 100
    most = 400_000 if by_file else size + 400_000
    for data in (
        bag.from_sequence([row.split() for row in rows], npartitions=100),
        frames.from_pandas(pd.DataFrame({"w": rows}), npartitions=100),
    ):
        graph = dict(dask.optimize(predict_dask(given, data))[0].__dask_graph__())
        # tasks are sent to workers one by one, so their sizes add up
        assert sum(len(cloudpickle.dumps(task)) for task in graph.values()) < most


def test_errors_name_partition_and_row(model):
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    rows = [list(row) for row in WORDS * 4]
    rows[9] = ["she", 3]
    with pytest.raises(TableError, match=r"partition 2: .*1.*token"):
        predict_dask(model, bag.from_sequence(rows, npartitions=5)).compute(scheduler="sync")
    texts = [" ".join(row) for row in WORDS * 4]
    texts[13] = None
    data = frames.from_pandas(pd.DataFrame({"w": texts}), npartitions=4)
    with pytest.raises(TableError, match="partition 2: row 3, column 'w': is null"):
        predict_dask(model, data).compute(scheduler="sync")


def test_a_file_is_read_once_per_process(tagger, tmp_path, monkeypatch):
    import partwise.model_files as files

    tagger.save(tmp_path / "model.pw")
    reads = []
    load = files.load
    monkeypatch.setattr(files, "load", lambda path: reads.append(path) or load(path))
    data = bag.from_sequence(WORDS * 4, npartitions=10)
    predict_dask(tmp_path / "model.pw", data).compute(scheduler="threads", num_workers=4)
    assert len(reads) == 1
    tagger.save(tmp_path / "model.pw")  # another file under the same name
    os.utime(tmp_path / "model.pw", (1, 1))
    predict_dask(tmp_path / "model.pw", data).compute(scheduler="sync")
    assert len(reads) == 2


CASES = {
    "classifier": lambda: fitted_classifier(["a", "b"]),
    "attributes": lambda: fitted_tagger("names"),
    "parser": lambda: fitted_parser("parser"),
    "graphs": lambda: fitted_labeler(),
}


@pytest.mark.parametrize("name", CASES)
def test_bags_of_all_kinds(name):
    case = CASES[name]()
    X = list(case.X)
    found = predict_dask(case.estimator, bag.from_sequence(X, npartitions=3)).compute(scheduler="sync")
    expected = case.estimator.predict(X)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
