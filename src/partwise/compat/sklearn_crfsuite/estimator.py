"""`CRF`: python-crfsuite's trainer and tagger as one estimator of scikit-learn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from partwise.compat import pycrfsuite
from partwise.compat.pycrfsuite._logparser import TrainLogParser
from partwise.compat.pycrfsuite.items import Items
from partwise.compat.pycrfsuite.tagger import ParsedDump
from partwise.compat.sklearn_crfsuite._fileresource import FileResource
from partwise.compat.sklearn_crfsuite.metrics import flat_accuracy_score

#: Items, or labels, of each sequence.
Data = Sequence[Any]
#: Parameters of `CRF` under other names than CRFsuite's.
_NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "pa_type": "type",
    **{f"calibration_{name}": f"calibration.{name}" for name in ("eta", "rate", "samples", "candidates", "max_trials")},
}
#: Parameters that do not belong to an algorithm.
_OTHERS = {"algorithm", "verbose", "model_filename", "keep_tempfiles", "trainer_cls"}


class LinePerIterationTrainer(pycrfsuite.Trainer):
    """A trainer that prints a line for each iteration."""

    def on_iteration(self, log: str, info: Any = None) -> None:
        shown = {
            "time": "time={:<5.2f}", "loss": "loss={:<8.2f}", "active_features": "active={:<5}",
            "avg_precision": "precision={:.3f}", "avg_recall": "recall={:.3f}", "avg_f1": "F1={:.3f}",
            "item_accuracy_float": "items={:.3f}", "instance_accuracy_float": "sequences={:.3f}",
            "feature_norm": "feature_norm={:<8.2f}",
        }  # fmt: skip
        parts = [text.format(info[name]) for name, text in shown.items() if name in info]
        print(f"Iter {info['num']:<3}", *parts)  # noqa: T201


@dataclass(eq=False, repr=False)
class CRF(BaseEstimator):
    """A linear-chain CRF over dicts, as sklearn-crfsuite has it.

    Parameters are CRFsuite's (`pycrfsuite.Trainer.help` says what each means here); None is an algorithm's default, and
    those of other algorithms are not used. `algorithm` is one of "lbfgs" (the default), "l2sgd", "ap" and "pa".

    - model_filename: where the model is written, or a model file to predict with, without `fit`. By default models have
      temporary files, which are pickled with the estimator.
    - keep_tempfiles: leave temporary files where they are.
    - trainer_cls: the subclass of `pycrfsuite.Trainer` to train with.

    Before `fit`, `tagger_`, `classes_`, `size_`, `num_attributes_`, `attributes_`, `state_features_` and
    `transition_features_` are None. `training_log_`: what `fit` said last, a `pycrfsuite._logparser.TrainLogParser`.
    """

    algorithm: str | None = None
    min_freq: float | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    c1: float | None = None
    c2: float | None = None
    max_iterations: int | None = None
    num_memories: int | None = None
    epsilon: float | None = None
    period: int | None = None
    delta: float | None = None
    linesearch: str | None = None
    max_linesearch: int | None = None
    calibration_eta: float | None = None
    calibration_rate: float | None = None
    calibration_samples: int | None = None
    calibration_candidates: int | None = None
    calibration_max_trials: int | None = None
    pa_type: int | None = None
    c: float | None = None
    error_sensitive: bool | None = None
    averaging: bool | None = None
    variance: float | None = None
    gamma: float | None = None
    verbose: bool = False
    model_filename: str | None = None
    keep_tempfiles: bool = False
    trainer_cls: type[pycrfsuite.Trainer] | None = None

    def __post_init__(self) -> None:
        self.modelfile = FileResource(self.model_filename, self.keep_tempfiles)
        self.training_log_: TrainLogParser | None = None
        self._forget()

    def _forget(self) -> None:
        self._tagger: pycrfsuite.Tagger | None = None
        self._info_cached: ParsedDump | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_tagger": None, "_info_cached": None}

    def fit(self, X: Data, y: Data, X_dev: Data | None = None, y_dev: Data | None = None) -> Self:
        """Train; with `X_dev` and `y_dev` the log has scores on these after each iteration."""
        if (X_dev is None) != (y_dev is None):
            raise ValueError("give both of X_dev and y_dev, or neither")
        trainer = (self.trainer_cls or LinePerIterationTrainer)(algorithm=self.algorithm, verbose=self.verbose)
        known = set(trainer.params())
        for name, value in self.get_params(deep=False).items():
            if name not in _OTHERS and value is not None and _NAMES.get(name, name) in known:
                trainer.set(_NAMES.get(name, name), value)
        sets = [(X, y)] if X_dev is None or y_dev is None else [(X, y), (X_dev, y_dev)]
        for group, (sequences, labels) in enumerate(sets):
            if len(sequences) != len(labels):
                raise ValueError(f"the numbers of sequences differ: {len(sequences)} in X and {len(labels)} in y")
            for xs, ys in zip(sequences, labels, strict=True):
                trainer.append(xs, ys, group)
        self._forget()
        trainer.train(self.modelfile.refresh(), holdout=-1 if X_dev is None else 1)
        self.training_log_ = trainer.logparser
        return self

    def predict(self, X: Data) -> NDArray[np.object_]:
        """Return the best labels of each sequence: an array of lists, or a table if all are equally long."""
        return np.array(self._fitted().tag_many(X), dtype=object)

    def predict_single(self, xseq: Items) -> list[str]:
        """Return the best labels of one sequence."""
        return self._fitted().tag(xseq)

    def predict_marginals(self, X: Data) -> NDArray[np.object_]:
        """Return for each item of each sequence the probabilities of its labels: an array of lists."""
        return np.array(self._fitted().marginals_of_many(X), dtype=object)

    def predict_marginals_single(self, xseq: Items) -> list[dict[str, float]]:
        """Return for each item of one sequence the probabilities of its labels."""
        return self._fitted().marginals_of_many([xseq])[0]

    def score(self, X: Data, y: Data) -> float:
        """Return the share of items with the right label."""
        return float(flat_accuracy_score(y, self.predict(X)))

    @property
    def tagger_(self) -> pycrfsuite.Tagger | None:
        if self._tagger is None and self.modelfile.name is not None:
            tagger = pycrfsuite.Tagger()
            tagger.open(self.modelfile.name)
            self._tagger = tagger
        return self._tagger

    def _fitted(self) -> pycrfsuite.Tagger:
        tagger = self.tagger_
        if tagger is None:
            raise ValueError("this CRF is not fitted: call fit, or give model_filename")
        return tagger

    @property
    def _info(self) -> ParsedDump | None:
        if self._info_cached is None and self.tagger_ is not None:
            self._info_cached = self.tagger_.info()
        return self._info_cached

    @property
    def classes_(self) -> list[str] | None:
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self) -> int | None:
        """Bytes of the model file."""
        return None if self._info is None else int(self._info.header["size"])

    @property
    def num_attributes_(self) -> int | None:
        return None if self._info is None else len(self._info.attributes)

    @property
    def attributes_(self) -> list[str] | None:
        return None if self._info is None else list(self._info.attributes)

    @property
    def state_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (attribute, label)."""
        return None if self._info is None else self._info.state_features

    @property
    def transition_features_(self) -> dict[tuple[str, str], float] | None:
        """Weights by (label, next label)."""
        return None if self._info is None else self._info.transitions
