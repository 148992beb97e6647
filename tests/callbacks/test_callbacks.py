"""Callbacks of estimators: progress, early stopping, history; in clones, grid searches and pipelines too."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import pickle
import sys
from itertools import count

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from helpers.model_cases import as_names, sequences
from partwise import DependencyParser, MaxentClassifier, Problem, RegularizationPathCV, Result, SequenceTagger, solve
from partwise.callbacks import EarlyStopping, HistoryWriter, ProgressLine, TrainingCallback
from partwise.callbacks.progress import time_left
from partwise.datasets import make_treebank
from partwise.metrics import attachment_scores
from partwise.problem.result import Certificate
from partwise.solvers.engine.base import Progress

LABELS = ["B-x", "I-x", "O"]


@pytest.fixture(scope="module")
def data():
    arrays, y = sequences(0, 60, LABELS)
    return as_names(arrays), y


@pytest.fixture(scope="module")
def dev():
    arrays, y = sequences(7, 40, LABELS)
    return as_names(arrays), y


class Watch(TrainingCallback):
    """Callback that records its calls."""

    def begin(self, session):
        self.notes = ["begin"]
        self.session = session

    def __call__(self, progress):
        self.notes.append(progress.passes)

    def end(self, session, result):
        self.notes.append("failed" if result is None else "end")
        return result


@pytest.mark.parametrize("options", [{}, {"loss": "hinge"}, {"model": "maxent"}, {"kernel": "linear"}])
def test_weights_on_the_way_make_a_model(options, data):
    seen = []

    class Look(TrainingCallback):
        def begin(self, session):
            self.session = session

        def __call__(self, progress):
            weights = progress.weights()
            model = self.session.preview(weights)
            seen.append((model.score(*data), self.session.problem.value_and_gradient(weights)[0]))

    tagger = SequenceTagger(tol=1e-2, callbacks=Look(), **options).fit(*data)
    assert seen[-1][0] == pytest.approx(tagger.score(*data), abs=0.1)
    assert seen[-1][1] >= tagger.result_.dual
    assert tagger.result_.primal == pytest.approx(tagger.result_.history["primal"][-1])


def test_order_stops_and_failures(data):
    first, second = Watch(), Watch()
    tagger = SequenceTagger(solver="lbfgs", tol=1e-8, callbacks=[first, lambda p: p.passes >= 3, second]).fit(*data)
    assert tagger.result_.status == "stopped"
    assert first.notes == second.notes
    assert first.notes[0] == "begin"
    assert first.notes[-1] == "end"
    assert len(first.notes) > 2

    def fail(progress):
        raise RuntimeError("no")

    watch = Watch()
    before = tagger.coef_
    with pytest.raises(RuntimeError, match="no"):
        tagger.set_params(callbacks=[watch, fail]).fit(*data)
    assert watch.notes[-1] == "failed"
    assert tagger.coef_ is before


@pytest.mark.parametrize("wrong", ["progress", 7, [7], {"a": 1}, [ProgressLine]])
def test_refusals(wrong, data):
    with pytest.raises(ValueError, match="callbacks"):
        SequenceTagger(callbacks=wrong).fit(*data)


def test_early_stopping_gives_the_best_weights(data, dev):
    # With this weak penalty, the dev score falls before the training objective reaches its optimum.
    watch = EarlyStopping(*dev, patience=2)
    options = {"C": 1e4, "solver": "lbfgs", "tol": 1e-9, "max_passes": 500}
    tagger = SequenceTagger(callbacks=watch, **options).fit(*data)
    scores = [score for _, score in watch.scores_]
    assert tagger.result_.status == "stopped"
    assert tagger.score(*dev) == max(scores) == watch.best_score_
    assert len(scores) >= 3
    assert max(scores[-2:]) <= max(scores[:-2])
    # the result's certificate belongs to the best weights
    found = []

    class Keep(TrainingCallback):
        def begin(self, session):
            found.append(session.problem)

    best = SequenceTagger(callbacks=[Keep()], **options).fit(*data)
    problem: Problem = found[0]
    result = tagger.result_
    assert result.primal == pytest.approx(problem.value(tagger.coef_), rel=1e-12)
    assert result.dual <= best.result_.primal
    assert result.gap == pytest.approx(result.primal - result.dual, rel=1e-9)
    assert "early stopping" in result.message


def test_message_and_status_are_about_the_weights_given_back(data, dev):
    """Message and status describe the returned weights, even if the run went on and converged."""
    for patience in (2, 10**6):
        falling = count(0, -1)
        watch = EarlyStopping(*dev, patience=patience, metric=lambda *_, falling=falling: next(falling))
        options = {"solver": "lbfgs", "tol": 1e-4}
        result = SequenceTagger(callbacks=watch, **options).fit(*data).result_
        assert watch.best_passes_ < watch.scores_[-1][0]
        assert result.gap > 1e-4 * result.primal
        assert result.status == "stopped"
        assert "converged" not in result.message
        assert (
            f"primal {result.primal:.8g}, gap {result.gap:.3g} (relative {result.relative_gap:.3g})" in result.message
        )
        assert f"weights of pass {watch.best_passes_:.4g}, dev score {watch.best_score_:.6g}" in result.message
        assert result.message.count("gap") == 1


def test_earlier_weights_within_the_tolerance_are_converged(data):
    found = []

    class Keep(TrainingCallback):
        def begin(self, session):
            found.append(session)

    result = SequenceTagger(callbacks=Keep(), solver="lbfgs", tol=1e-6).fit(*data).result_
    for tol, status in ((1e-3, "converged"), (1e-12, "stopped"), (0.0, "stopped")):
        values = iter([2.0, 1.0])
        watch = EarlyStopping(*data, metric=lambda *_, values=values: next(values))
        watch.begin(found[0])
        told = Progress("lbfgs", 1, 1.0, 1.0, None, False, lambda: 1.001 * result.weights, tol=tol)
        assert not watch(told)
        answer = watch.end(found[0], result)
        assert (answer.status, answer.weights is result.weights) == (status, False)


def test_early_stopping_keeps_the_end_if_it_is_best(data):
    watch = EarlyStopping(*data, patience=50)
    tagger = SequenceTagger(C=0.01, callbacks=watch).fit(*data)
    plain = SequenceTagger(C=0.01).fit(*data)
    assert tagger.result_.status in ("converged", "stopped")
    assert tagger.score(*data) >= plain.score(*data) - 1e-12


def test_metrics(data, dev):
    calls = []

    def wrong_share(y, predicted):
        calls.append(1)
        pairs = [(a, b) for u, v in zip(y, predicted, strict=True) for a, b in zip(u, v, strict=True)]
        return -np.mean([a != b for a, b in pairs])

    for metric in ("f1", "accuracy", None, wrong_share):
        watch = EarlyStopping(*dev, patience=3, metric=metric, every=5)
        SequenceTagger(callbacks=watch, solver="lbfgs", tol=1e-4).fit(*data)
        passes = [p for p, _ in watch.scores_]
        assert all(b - a >= 5 for a, b in zip(passes, passes[1:], strict=False))
    assert calls
    for options in ({"patience": 0}, {"metric": "f2"}, {"min_delta": -1.0}, {"every": math.nan}):
        with pytest.raises(ValueError):
            EarlyStopping(*dev, **options)


def test_history_as_csv_and_json(data, dev, tmp_path):
    files = [HistoryWriter(tmp_path / "h.csv"), HistoryWriter(tmp_path / "h.json", every_seconds=0.0)]
    tagger = SequenceTagger(callbacks=[EarlyStopping(*dev, patience=99), *files], solver="lbfgs").fit(*data)
    with (tmp_path / "h.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["passes", "seconds", "primal", "dual", "gap", "dev"]
    history = tagger.result_.history
    for name, column in history.items():
        assert [float(row[name]) for row in rows] == column.tolist()
    assert sum(row["dev"] != "" for row in rows) >= len(rows) - 2
    record = json.loads((tmp_path / "h.json").read_text())
    assert record["status"] == tagger.result_.status
    assert [row["gap"] for row in record["history"]] == history["gap"].tolist()
    with pytest.raises(ValueError, match=r"\.csv or \.json"):
        HistoryWriter(tmp_path / "history.txt")


@pytest.mark.parametrize("first", [True, False])
def test_history_and_progress_line_have_every_score(data, dev, tmp_path, first):
    """The history has every score, also between certificates, and the progress line names the pass of its score."""
    out = io.StringIO()
    line = ProgressLine(Console(file=out, width=200), every_seconds=0.0)
    watch = EarlyStopping(*dev, patience=99, every=2.0)
    callbacks = [line, watch] if first else [watch, line]
    tagger = SequenceTagger(solver="eg", tol=1e-6, callbacks=[*callbacks, HistoryWriter(tmp_path / "h.json")])
    history = tagger.fit(*data).result_.history
    rows = json.loads((tmp_path / "h.json").read_text())["history"]
    assert [(row["passes"], row["dev"]) for row in rows if row["dev"] is not None] == watch.scores_
    certified = [row for row in rows if row["gap"] is not None]
    assert [row["passes"] for row in certified] == history["passes"].tolist()
    assert len(rows) > len(certified)
    assert [row["passes"] for row in rows] == sorted(row["passes"] for row in rows)
    shown = out.getvalue().splitlines()
    for passes, score in watch.scores_[:-1]:
        here = next(k for k, text in enumerate(shown) if f"pass {passes:.4g} " in text.split("dev")[0])
        assert (f"dev {score:.4f}  " in shown[here]) is not first
        assert f"dev {score:.4f} (pass {passes:.4g})" in shown[here + 1]


def test_history_of_a_run_that_fails(data, tmp_path):
    def fail(progress):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        SequenceTagger(callbacks=[HistoryWriter(tmp_path / "h.json"), fail]).fit(*data)
    assert json.loads((tmp_path / "h.json").read_text())["status"] == "failed"


def test_a_history_that_cannot_be_written_does_not_end_a_run(data, tmp_path, monkeypatch):
    plain = SequenceTagger(solver="lbfgs").fit(*data)
    full = OSError(errno.ENOSPC, "No space left on device")

    def fail(self, status, message):
        raise full

    path = tmp_path / "h.csv"
    tagger = SequenceTagger(solver="lbfgs", callbacks=HistoryWriter(path, every_seconds=0.0))
    with monkeypatch.context() as patch:
        patch.setattr(HistoryWriter, "_write_rows", fail)
        with pytest.warns(RuntimeWarning, match=r"h.csv: the history cannot be written \(no space") as seen:
            tagger.fit(*data)
        assert len(seen) == 1
    assert np.array_equal(tagger.coef_, plain.coef_)
    # a wrong path is refused before training
    with pytest.raises(OSError, match="absent"):
        SequenceTagger(callbacks=HistoryWriter(tmp_path / "absent" / "h.csv")).fit(*data)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_line(terminal, data, dev):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, color_system=None)
    callbacks = [EarlyStopping(*dev, patience=99), ProgressLine(console, every_seconds=0.0)]
    SequenceTagger(solver="lbfgs", tol=1e-6, callbacks=callbacks).fit(*data)
    text = out.getvalue()
    for part in ("lbfgs", "pass ", "primal ", "dual ", "gap ", "dev 0.", "left"):
        assert part in text
    # on a terminal the line is removed at the end, and the cursor is shown again
    assert (text.endswith("\x1b[?25h") or "\x1b[2K" in text) == terminal


def test_progress_line_of_solve(data):
    out = io.StringIO()
    seen = []

    class Grab(TrainingCallback):
        def begin(self, session):
            seen.append(session.problem)

    SequenceTagger(callbacks=Grab()).fit(*data)
    with ProgressLine(Console(file=out, width=120), every_seconds=0.0) as line:
        result = solve(seen[0], "lbfgs", callback=line)
    assert isinstance(result, Result)
    assert "lbfgs  pass" in out.getvalue()


def progress(seconds, passes, **limits):
    certificate = Certificate.of(10.0, 9.0, 0.0)
    return Progress("eg", 1, passes, seconds, certificate, True, lambda: np.zeros(1), **limits)


def test_lines_in_a_log_are_not_wrapped():
    out = io.StringIO()
    with ProgressLine(Console(file=out, width=30), every_seconds=0.0) as line:
        line(progress(5.0, 10.0, max_seconds=20.0))
    assert out.getvalue().count("\n") == 1
    assert out.getvalue().endswith("dual 9\n")


def test_the_time_left_fits_on_a_narrow_terminal():
    line = ProgressLine(Console(file=io.StringIO()))
    with line:
        shown = progress(1000.0, 11.23, max_seconds=20000.0)
        shown.scores["dev"] = 0.9
        assert line.line(shown).index("left") < 76


def test_time_left():
    assert time_left(progress(5.0, 1.0), []) is None
    assert time_left(progress(5.0, 1.0, max_seconds=20.0), []) == 15.0
    assert time_left(progress(5.0, 10.0, max_passes=30.0), []) == pytest.approx(10.0)
    # the gap falls to a tenth every 2 seconds: from 1e-1 at 4 s to 1e-3 at 8 s
    seen = [(2.0, 1.0), (4.0, 0.1)]
    assert time_left(progress(5.0, 1.0, tol=1e-3), seen) == pytest.approx(3.0)
    assert time_left(progress(5.0, 1.0, tol=1e-3, max_seconds=6.0), seen) == pytest.approx(1.0)
    assert time_left(progress(50.0, 1.0, tol=1e-3), seen) == 0.0
    assert time_left(progress(5.0, 1.0, tol=1e-3), [(2.0, 0.1), (4.0, 0.2)]) is None
    assert time_left(progress(5.0, 10.0, tol=1e-3, max_passes=500.0), []) is None
    assert time_left(progress(5.0, 10.0, tol=1e-3, max_passes=12.0), seen) == pytest.approx(1.0)


def test_clones_pickles_and_searches(data, dev):
    watch = EarlyStopping(*dev, patience=2)
    line = ProgressLine(Console(file=io.StringIO()))
    tagger = SequenceTagger(callbacks=[watch, line, HistoryWriter("x.csv")], tol=1e-2)
    other = clone(tagger)
    assert other.callbacks[0] is not watch
    assert other.callbacks[0].X_dev is watch.X_dev
    assert [type(each) for each in other.callbacks] == [EarlyStopping, ProgressLine, HistoryWriter]
    assert pickle.loads(pickle.dumps(tagger)).callbacks[0].patience == 2
    tagger = SequenceTagger(callbacks=[watch, line], tol=1e-2)
    search = GridSearchCV(tagger, {"C": [0.1, 1.0]}, cv=2).fit(*data)
    assert search.best_score_ > 0.4
    assert not hasattr(watch, "scores_")
    assert pickle.loads(pickle.dumps(search.best_estimator_)).predict(data[0]) == search.predict(data[0])
    assert RegularizationPathCV(tagger, Cs=[0.1, 1.0], cv=2).fit(*data).C_ in (0.1, 1.0)


def test_classifiers_in_pipelines_and_searches(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    watch = EarlyStopping(X[:30], y[:30], patience=3)
    model = MaxentClassifier(solver="lbfgs", tol=1e-6, callbacks=[watch, HistoryWriter(tmp_path / "h.json")])
    pipeline = make_pipeline(StandardScaler(), model)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.6
    search = GridSearchCV(pipeline, {"maxentclassifier__C": [0.1, 10.0]}, cv=2).fit(X, y)
    assert search.score(X, y) > 0.8
    model.fit(X[30:], y[30:])
    assert model.score(X[:30], y[:30]) == watch.best_score_


def test_two_labels_on_the_way():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=60) > 0
    watch = EarlyStopping(X, y, patience=30)
    model = MaxentClassifier(solver="lbfgs", callbacks=watch).fit(X, y)
    assert watch.scores_[-1][1] == pytest.approx(model.score(X, y), abs=0.1)
    assert model.score(X, y) == watch.best_score_


def test_parsers_in_searches_with_callbacks():
    bank = make_treebank(60, seed=0)
    X, y = bank.words, bank.heads
    watch = EarlyStopping(X[40:], y[40:], patience=3)
    parser = DependencyParser(tol=1e-2, random_state=0, callbacks=watch).fit(X[:40], y[:40])
    assert parser.score(X[40:], y[40:]) == watch.best_score_
    search = GridSearchCV(DependencyParser(tol=0.1, random_state=0), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    pipeline = make_pipeline(FunctionTransformer(), DependencyParser(tol=0.1, random_state=0))
    assert len(pipeline.fit(X, y).predict(X[:3])) == 3


def test_parsers_are_scored_with_their_names():
    bank, seen = make_treebank(60, seed=0), []
    trees = [[(head, f"r{head % 3}") for head in heads] for heads in bank.heads]

    def las(gold, predicted):
        seen.append(attachment_scores(gold, predicted).las)
        return seen[-1]

    watch = EarlyStopping(bank.words[40:], trees[40:], patience=3, metric=las)
    parser = DependencyParser(tol=1e-2, callbacks=watch).fit(bank.words[:40], trees[:40])
    assert None not in seen
    assert max(seen) == watch.best_score_
    assert attachment_scores(trees[40:], parser.predict(bank.words[40:])).las == watch.best_score_
    plain = DependencyParser(tol=1e-2).fit(bank.words[:40], trees[:40])
    assert parser.label_result_.primal == plain.label_result_.primal


def test_taggers_in_pipelines(data):
    pipeline = make_pipeline(FunctionTransformer(), SequenceTagger(tol=1e-2))
    search = GridSearchCV(pipeline, {"sequencetagger__C": [0.1, 1.0]}, cv=2).fit(*data)
    assert search.score(*data) > 0.5


def test_a_progress_line_names_rich_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ImportError, match="ProgressLine needs rich: pip install rich"):
        SequenceTagger(callbacks=[ProgressLine()]).fit([[["a"], ["b"]]], [["x", "y"]])
