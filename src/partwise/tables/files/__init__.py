"""Predictions for tables: Parquet and Arrow files, pandas and Dask frames (extra ``arrow``).

    from partwise import scoring

    scoring.predict_file("tagger.pw", "sentences.parquet", "tagged.parquet")
    frame = scoring.Scorer("tagger.pw").frame(frame)

A file is read, labelled and written some rows at a time, so that memory does not grow with it.
"""

from partwise.tables.files.cache import load_cached
from partwise.tables.files.errors import ScoringError
from partwise.tables.files.files import predict_file
from partwise.tables.files.scorer import Scorer
from partwise.tables.files.tables import is_table

__all__ = ["Scorer", "ScoringError", "is_table", "load_cached", "predict_file"]
