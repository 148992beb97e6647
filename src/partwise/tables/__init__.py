"""Predictions for tables: data frames of tokens, and Parquet and Arrow files.

Data frames with a token per row: pandas, polars, pyarrow (through narwhals; extra ``frames``).

    from partwise import tables

    tagger = tables.fit(SequenceTagger(template="chunk"), train, by="sentence", columns=["word", "pos"], label="chunk")
    test = tables.predict(tagger, test, by="sentence", columns=["word", "pos"], probabilities=True)

A `TokenTable` is such a frame as X and y of scikit-learn, for grid searches and all else that takes lists.

Files, and pandas and Dask frames, with an example per row (extra ``arrow``). A file is read, labelled and written some
rows at a time, so that memory does not grow with it.

    tables.predict_file("tagger.pw", "sentences.parquet", "tagged.parquet")
    frame = tables.TablePredictor("tagger.pw").frame(frame)
"""

from typing import TYPE_CHECKING

from partwise.support.lazy import exports

if TYPE_CHECKING:
    from partwise.tables.errors import TableError as TableError
    from partwise.tables.files import predict_file as predict_file
    from partwise.tables.frames import fit as fit
    from partwise.tables.frames import partial_fit as partial_fit
    from partwise.tables.frames import predict as predict
    from partwise.tables.predictor import TablePredictor as TablePredictor
    from partwise.tables.token_table import TokenTable as TokenTable
    from partwise.tables.workers import load_cached as load_cached
    from partwise.tables.workers import predict_dask as predict_dask

#: Endings of the names of Parquet and Arrow files.
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")


def is_table(path: str) -> bool:
    """Return whether a file's name is that of a Parquet or Arrow (Feather) file."""
    return path.lower().endswith((*PARQUET, *ARROW))


#: Public names, by the module that defines them: each needs other packages.
_NAMES = {
    "errors": ["TableError"],
    "files": ["predict_file"],
    "frames": ["fit", "partial_fit", "predict"],
    "predictor": ["TablePredictor"],
    "token_table": ["TokenTable"],
    "workers": ["load_cached", "predict_dask"],
}
__getattr__, __dir__, _names = exports(__name__, _NAMES)
__all__ = [*_names, "is_table"]
