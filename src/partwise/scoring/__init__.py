"""Predictions for tables: Parquet and Arrow files, pandas and Dask frames (extra ``arrow``).

    from partwise import scoring

    scoring.predict_file("tagger.pw", "sentences.parquet", "tagged.parquet")
    frame = scoring.Scorer("tagger.pw").frame(frame)

A file is read, labelled and written some rows at a time, so that memory does not grow with it.
"""

from .cache import load_cached
from .errors import ScoringError
from .files import predict_file
from .scorer import Scorer
from .tables import is_table

__all__ = ["Scorer", "ScoringError", "is_table", "load_cached", "predict_file"]
