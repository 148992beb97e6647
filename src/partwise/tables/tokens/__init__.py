"""Data frames of tokens for taggers and parsers: pandas, polars, pyarrow (through narwhals; extra ``frames``).

    from partwise import frames

    tagger = frames.fit(SequenceTagger(template="chunk"), train, by="sentence", columns=["word", "pos"], label="chunk")
    test = frames.predict(tagger, test, by="sentence", columns=["word", "pos"], probabilities=True)

A frame has one token per row and says by the columns `by` which sentence it belongs to. `TokenTable` is the same table
as X and y of scikit-learn, for grid searches and all else that takes lists.
"""

from partwise.tables.tokens.errors import FrameError
from partwise.tables.tokens.models import fit, partial_fit, predict
from partwise.tables.tokens.table import TokenTable

__all__ = ["FrameError", "TokenTable", "fit", "partial_fit", "predict"]
