"""Runs on strings of handwritten digits: classifiers and chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.cli.demo.runs import Options, Row, compare, timed


def digit_by_digit(options: Options) -> Row:
    """A classifier that reads each digit by itself."""
    from partwise.estimators import MaxentClassifier

    data = options.digits()
    X, y = np.concatenate(data.X_train), np.concatenate(data.y_train)
    model, seconds = timed(lambda: MaxentClassifier(**options.common(C=0.1)).fit(X, y))
    scores = compare([model.predict(x) for x in data.X_test], data.y_test)
    return Row("maxent classifier", "digit strings", *scores, seconds, model.result_, model)


def best_of_path(options: Options) -> Row:
    """The same with C chosen by cross-validation."""
    from partwise.estimators import MaxentClassifier, RegularizationPathCV

    data = options.digits()
    X, y = np.concatenate(data.X_train), np.concatenate(data.y_train)
    search = RegularizationPathCV(MaxentClassifier(**options.common()), Cs=[0.01, 0.1, 1.0], cv=3)
    model, seconds = timed(lambda: search.fit(X, y))
    scores = compare([model.predict(x) for x in data.X_test], data.y_test)
    result = model.best_estimator_.result_
    return Row(f"same, C = {model.C_:g} chosen", "digit strings", *scores, seconds, result, model)


def _digit_chain(name: str, options: Options, **parameters: Any) -> Row:
    from partwise.estimators import SequenceTagger

    data = options.digits()
    tagger = SequenceTagger(**options.common(**parameters))
    model, seconds = timed(lambda: tagger.fit(data.X_train, data.y_train))
    scores = compare(model.predict(data.X_test), data.y_test)
    return Row(name, "digit strings", *scores, seconds, model.result_, model)


def digit_crf(options: Options) -> Row:
    """A conditional random field."""
    return _digit_chain("CRF chain", options, loss="log", C=0.1)


def digit_margin(options: Options) -> Row:
    """A max-margin chain."""
    return _digit_chain("max-margin chain", options, loss="hinge", C=0.1)


def digit_kernel(options: Options) -> Row:
    """A chain that compares pictures by a kernel."""
    few = Options(min(options.strings, 100), options.sentences, options.tol, options.jobs, options.seed)
    return _digit_chain(f"RBF kernel CRF, {few.strings} strings", few, loss="log", C=1.0, kernel="rbf", gamma=0.03)
