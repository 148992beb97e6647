"""The PySpark recipe of docs/scoring.md, run as it stands there."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from partwise import SequenceTagger

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java"),
    pytest.mark.filterwarnings("ignore"),  # PySpark's own
]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "scoring.md"
WORDS = [["the", "cat", "sat"], ["a", "dog", "ran"], ["she", "ran"]]
TAGS = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["PRON", "VERB"]]


def test_the_recipe(tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.chdir(tmp_path)
    tagger = SequenceTagger(template="pos", tol=1e-2).fit(WORDS, TAGS)
    tagger.save("tagger.pw")
    recipe = re.search(r"```python\n(# PySpark.*?)```", PAGE.read_text(), re.DOTALL)
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    try:
        rows = [(k, WORDS[k % 3]) for k in range(20)]
        sentences = spark.createDataFrame(rows, "id int, words array<string>")
        scope = {"sentences": sentences, "spark": spark}
        exec(recipe[1].replace("/models/tagger.pw", str(tmp_path / "tagger.pw")), scope)
        found = sorted(scope["tagged"].collect(), key=lambda row: row.id)
    finally:
        spark.stop()
    assert [list(row.tags) for row in found] == tagger.predict([words for _, words in rows])
