"""What can be done while a model trains: show progress, stop early, write the history, have more points in it.

    SequenceTagger(callbacks=[EarlyStopping(X_dev, y_dev), ProgressLine(), HistoryWriter("history.csv")])

A callback is any callable that takes a `partwise.solvers.Progress`; returning a true value stops the run.
`TrainingCallback` adds what happens before and after. Callbacks are called in the order given. They see the scores of
earlier callbacks in `Progress.scores`, and those of earlier steps in `Progress.last_scores`. The time that they take is
not counted as the solver's.
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

__getattr__, __dir__ = exports(__name__)
