"""What can be done while a model trains: show progress, stop early, write the history, have more of it.

    SequenceTagger(callbacks=[EarlyStopping(X_dev, y_dev), ProgressLine(), HistoryWriter("history.csv")])

A callback is any callable that takes a `partwise.solvers.Progress`; returning a true value stops the run.
`TrainingCallback` adds what happens before and after. Callbacks are called in the order given, and see the scores of
those before them in `Progress.scores`, and what was found before this step in `Progress.last_scores`. The time they
take is not counted as the solver's.
"""

from partwise.callbacks.base import Session, TrainingCallback
from partwise.callbacks.each_pass import EachPass
from partwise.callbacks.early_stopping import EarlyStopping
from partwise.callbacks.history import HistoryWriter
from partwise.callbacks.progress import ProgressLine

__all__ = ["EachPass", "EarlyStopping", "HistoryWriter", "ProgressLine", "Session", "TrainingCallback"]
