"""Callbacks of training runs: show progress, stop early, write the history, add points to it.

    SequenceTagger(callbacks=[EarlyStopping(X_dev, y_dev), ProgressLine(), HistoryWriter("history.csv")])

A callback is any callable that takes a `partwise.solvers.Progress`; returning a true value stops the run.
`TrainingCallback` adds methods for the beginning and the end. Callbacks are called in order, and see the scores of
earlier callbacks (`Progress.scores`) and earlier steps (`Progress.last_scores`). Their time is not the solver's.
"""

from typing import TYPE_CHECKING

from partwise.support.lazy import exports

if TYPE_CHECKING:
    from partwise.callbacks.base import Session as Session
    from partwise.callbacks.base import TrainingCallback as TrainingCallback
    from partwise.callbacks.early_stopping import EarlyStopping as EarlyStopping
    from partwise.callbacks.history import EachPass as EachPass
    from partwise.callbacks.history import HistoryWriter as HistoryWriter
    from partwise.callbacks.progress import ProgressLine as ProgressLine

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "base": ("Session", "TrainingCallback"),
        "early_stopping": ("EarlyStopping",),
        "history": ("EachPass", "HistoryWriter"),
        "progress": ("ProgressLine",),
    },
)
