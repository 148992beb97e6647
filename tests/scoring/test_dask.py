"""Predictions for Dask bags and dataframes: in order, the same as in one process."""

from __future__ import annotations

import pytest

from partwise import SequenceTagger, distributed

pytest.importorskip("pyarrow")
dask = pytest.importorskip("dask")
bag = pytest.importorskip("dask.bag")

from partwise.scoring import ScoringError  # noqa: E402

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
    found = distributed.predict(model, bag.from_sequence(rows, npartitions=3))
    assert found.compute(scheduler="sync") == tagger.predict(rows)
    with pytest.raises(ValueError, match="are for dataframes"):
        distributed.predict(model, bag.from_sequence(rows), into="x")
    with pytest.raises(TypeError, match="bag or dataframe, got list"):
        distributed.predict(model, rows)


def test_dataframes(model, tagger):
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    rows = WORDS * 4
    with dask.config.set({"dataframe.convert-string": False}):
        data = frames.from_pandas(pd.DataFrame({"id": range(20), "w": rows}), npartitions=3)
        found = distributed.predict(model, data, into="tags").compute(scheduler="sync")
    assert found["tags"].tolist() == tagger.predict(rows)
    assert found["id"].tolist() == list(range(20))
    text = frames.from_pandas(pd.DataFrame({"w": [" ".join(row) for row in rows]}), npartitions=2)
    found = distributed.predict(model, text).compute(scheduler="sync")
    assert found["prediction"].tolist() == tagger.predict(rows)
    with pytest.raises(ScoringError, match="column 'x': there is no such column"):
        distributed.predict(model, text, columns=["x"])


def test_lists_that_became_texts_are_noticed(tagger):
    frames, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    data = frames.from_pandas(pd.DataFrame({"w": [str(row) for row in WORDS]}), npartitions=1)
    with pytest.raises(ScoringError, match=r"dataframe\.convert-string"):
        distributed.predict(tagger, data).compute(scheduler="sync")


@pytest.mark.slow
def test_on_workers(model, tagger):
    workers = pytest.importorskip("dask.distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with workers.LocalCluster(**options) as cluster, workers.Client(cluster):
        assert distributed.predict(model, bag.from_sequence(WORDS * 40, npartitions=8)).compute() == tagger.predict(
            WORDS * 40
        )
