"""The PySpark recipes of docs/scoring.md run as printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from helpers.model_cases import fitted_parser
from partwise import MaxentClassifier, SequenceTagger

pd = pytest.importorskip("pandas")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java"),
    pytest.mark.filterwarnings("ignore"),  # warnings of PySpark itself
]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "scoring.md"
WORDS = [["the", "cat", "sat"], ["a", "dog", "ran"], ["she", "ran"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["PRON", "VERB"]]
ROWS = [WORDS[k % 3] for k in range(40)]


def recipes():
    """Return the page's PySpark programs by title."""
    return dict(re.findall(r"```python\n# PySpark: (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL))


@pytest.fixture(scope="module")
def spark():
    sql = pytest.importorskip("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    # makes several batches per task and several tasks per worker
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(template="pos", tol=1e-2).fit(WORDS, TAGS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tagger):
    found = tmp_path_factory.mktemp("models")
    tagger.save(found / "tagger.pw")
    return found


@pytest.fixture
def run(spark, folder):
    """Return a function that runs programs of the page on tables and returns the names that they define."""

    def run(*titles, **tables):
        scope = {"spark": spark, **tables}
        for title in titles:
            exec(recipes()[title].replace("/models", str(folder)), scope)
        return scope

    return run


@pytest.fixture
def sentences(spark):
    return spark.createDataFrame(list(enumerate(ROWS)), "id int, words array<string>").repartition(3)


FIRST = "labels for a column of words"


def rows_of(table):
    return sorted(table.collect(), key=lambda row: row.id)


def test_taggers(run, sentences, tagger):
    found = rows_of(run(FIRST, sentences=sentences)["tagged"])
    assert [list(row.tags) for row in found] == tagger.predict(ROWS)


def test_classifiers(run, spark, folder):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = MaxentClassifier().fit(X, ["high" if h > w else "wide" for h, w in X])
    model.save(folder / "classifier.pw")
    rows = [(k, *row) for k, row in enumerate(X.tolist())]
    things = spark.createDataFrame(rows, "id int, height double, width double")
    scope = run(FIRST, "a label for columns of numbers", things=things, sentences=_nothing(spark))
    assert [row.label for row in rows_of(scope["classified"])] == model.predict(X).tolist()


def test_parsers(run, spark, folder):
    case = fitted_parser("parser")
    case.estimator.save(folder / "parser.pw")
    rows = [(k, [word[0] for word in words], [word[1] for word in words]) for k, words in enumerate(case.X)]
    sentences = spark.createDataFrame(rows, "id int, words array<string>, pos array<string>")
    scope = run(FIRST, "heads and relations for columns of words and tags", sentences=sentences)
    named = [[{"form": word[0], "upos": word[1]} for word in words] for words in case.X]
    found = [list(zip(row.tree.heads, row.tree.relations, strict=True)) for row in rows_of(scope["parsed"])]
    assert found == case.estimator.predict(named)


def test_tables(run, spark, tagger):
    rows = [*enumerate(ROWS), (40, None)]
    sentences = spark.createDataFrame(rows, "id int, words array<string>")
    found = rows_of(run(FIRST, "whole tables", sentences=sentences)["scored"])
    assert [None if row.tags is None else list(row.tags) for row in found] == [*tagger.predict(ROWS), None]


def test_a_worker_reads_the_model_once(spark, sentences, folder):
    from pyspark.sql.functions import pandas_udf

    path = str(folder / "tagger.pw")

    @pandas_udf("string")
    def seen(rows: pd.Series) -> pd.Series:
        import os

        from partwise import tables

        model = tables.load_cached(path)
        model.times_seen = getattr(model, "times_seen", 0) + 1
        return pd.Series([f"{os.getpid()} {model.times_seen}"] * len(rows))

    found = {row.seen for row in sentences.withColumn("seen", seen("words")).collect()}
    workers = {each.split()[0] for each in found}
    # 40 rows in 3 partitions make at least 6 batches of at most 7; the count rises with each batch of a worker
    assert len(found) >= 6
    assert max(int(each.split()[1]) for each in found) >= len(found) // len(workers)


def _nothing(spark):
    return spark.createDataFrame([], "id int, words array<string>")
