"""Mistakes in a user-defined model, or in its input, are named in the error."""

from __future__ import annotations

import numpy as np
import pytest

import partwise
from helpers.matching import Matcher, Matching, MatchingModel, data
from partwise import Model, model_files
from partwise.models import Learnt, NotAvailable, Reading
from partwise.problem import LabelledBatch


def estimator(**methods):
    """Return a Matcher whose model has these methods replaced."""
    model = type("OwnModel", (MatchingModel,), methods)
    return type("Own", (Matcher,), {"_make_model": lambda self: model()})()


def without(*names):
    return {name: getattr(Model, name) for name in names}


def shorter(method):
    return lambda self, *args, **options: getattr(MatchingModel, method)(self, *args, **options)[:-1]


def only_the_batch(self, X, n_jobs=1):
    return MatchingModel.read(self, X).batch


def batch_of_others(self, X, n_jobs=1):
    return Reading(MatchingModel.read(self, X).batch, len(X) + 1)


DATA = data(n_examples=6, smallest=1)
MISTAKES = {
    "OwnModel.learn must return Learnt, got NoneType": ({"learn": lambda *_: None}, "fit"),
    "Learnt takes a LabelledBatch, got int": ({"learn": lambda *_: Learnt(1)}, "fit"),
    "shape of Learnt must be a tuple, got 3": (
        {"learn": lambda self, *args: Learnt(MatchingModel.learn(self, *args).examples, 3)},
        "fit",
    ),
    "OwnModel.read must return a Reading, got Batch": (
        {"read": only_the_batch, "learn": lambda self, *args: MatchingModel().learn(*args)},
        "predict",
    ),
    "a batch of 6 examples, expected 7": (
        {"read": batch_of_others, "learn": lambda self, *args: MatchingModel().learn(*args)},
        "predict",
    ),
    "OwnModel.decode gave NoneType for 6 labellings": ({"decode": lambda *_: None}, "predict"),
    "OwnModel.decode gave 5 answers for 6 labellings": ({"decode": shorter("decode")}, "sample"),
    "marginals: not available for OwnModel, which has no method marginals": (without("marginals"), "predict_marginals"),
    "model files: not available for OwnModel, which has no method from_parts": (without("from_parts"), "save"),
    "constraints: not available for OwnModel, which has no method constrain": (without("constrain"), "constrained"),
    r"there are: none \(OwnModel.constraints must name": ({"constraints": ()}, "constrained"),
    "OwnModel.encode must return Labellings and which": (
        {"encode": shorter("encode"), "learn": lambda self, *args: MatchingModel().learn(*args)},
        "log_probability",
    ),
}
DO = {
    "fit": lambda model, X, y: None,
    "log_probability": lambda model, X, y: model.log_probability(X, y),
    "save": lambda model, X, y: model.save("no such folder/model.pw"),
    "constrained": lambda model, X, y: model.predict(X, forbidden=[[]] * len(X)),
    **{name: lambda model, X, y, name=name: getattr(model, name)(X) for name in ("predict", "sample")},
    "predict_marginals": lambda model, X, y: model.predict_marginals(X),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_in_models_are_named(message):
    methods, doing = MISTAKES[message]
    with pytest.raises((TypeError, ValueError), match=message):
        DO[doing](estimator(**methods).fit(*DATA), *DATA)


def test_other_mistakes_are_named():
    X, y = DATA
    fitted = Matcher().fit(X, y)
    with pytest.raises(TypeError, match="constraints must be a tuple of names, got 'forbidden'"):
        estimator(constraints="forbidden")
    with pytest.raises(TypeError, match=r"Own._make_model must return a Model, got None"):
        type("Own", (Matcher,), {"_make_model": lambda self: None})().fit(X, y)
    with pytest.raises(ValueError, match=r"OwnModel.carried gave weights of shape .1,. for 3 features"):
        estimator(carried=lambda *_: np.zeros(1)).set_params(warm_start=True).fit(X, y).fit(X, y)
    with pytest.raises(ValueError, match="gold labellings of 5 examples, a batch of 6"):
        reading = MatchingModel().read(X)
        LabelledBatch(reading.batch, MatchingModel().encode(MatchingModel().read(X[:5]), y[:5])[0])
    for ask in (fitted.predict, fitted.predict_marginals, fitted.sample, lambda X: fitted.predict_k_best(X, 2)):
        with pytest.raises(ValueError, match="rows of input for 2 weights, expected 3"):
            ask([x[:, :, :2] for x in X])
    with pytest.raises(ValueError, match="X has 6 examples but y has 5"):
        fitted.score(X, y[:5])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\), there are 6 examples"):
        fitted.score(X, y, sample_weight=[1, 2])
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = Matcher().coef_
    with pytest.raises(ValueError, match=r"example 1: the jobs .* are no permutation"):
        Matcher().fit(X[:2], [y[0], [0] * 9])


def test_mistakes_in_model_files_are_named(tmp_path, monkeypatch):
    for name in ("KINDS", "_GIVEN"):
        monkeypatch.setattr(model_files.files, name, dict(getattr(model_files.files, name)))
    with pytest.raises(TypeError, match="register takes the estimator's class"):
        model_files.register("mine", Matcher())
    mistakes = {
        "'weights' of a model file must be a NumPy array, got list": lambda _, parts: parts.arrays.update(
            weights=[1.0]
        ),
        "settings of a model file must be JSON values": lambda _, parts: parts.settings.update(names={1}),
    }
    for k, (message, to_parts) in enumerate(mistakes.items()):
        model = estimator(to_parts=to_parts).fit(*DATA)
        type(model).__qualname__ = f"Own{k}"
        model_files.register(f"own{k}", type(model))
        with pytest.raises(TypeError, match=message):
            model.save(tmp_path / "model.pw")
    model = estimator(from_parts=lambda self, parts: None).fit(*DATA)
    model_files.register("own", type(model))  # the class was made by `type`, so no module contains it
    model.save(tmp_path / "model.pw")
    with pytest.raises(ValueError, match=r"OwnModel.from_parts must return the model, got NoneType"):
        partwise.load(tmp_path / "model.pw")
    del model_files.files.KINDS["own"]
    with pytest.raises(ValueError, match="unknown kind 'own': import the module that registers it"):
        partwise.load(tmp_path / "model.pw")


def test_a_structure_without_samples_says_which_method_it_lacks(monkeypatch):
    monkeypatch.delattr(Matching, "sample")
    with pytest.raises(NotAvailable, match="not available for the structure Matching, which has no method sample"):
        Matcher().fit(*DATA).sample(DATA[0])
