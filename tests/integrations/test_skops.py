"""skops: estimators are stored in its files and loaded again."""

from __future__ import annotations

import pickle

import pytest

from partwise import DependencyParser, MaxentClassifier, ModelFormatError, SequenceTagger

io = pytest.importorskip("skops.io")
from partwise.integrations.skops import TRUSTED, Packed  # noqa: E402

X, Y = [["a", "b"], ["b"], ["a", "a"]], [["A", "B"], ["B"], ["A", "A"]]
MODELS = {
    "tagger": lambda: (SequenceTagger(template="pos", tol=1e-3).fit(X, Y), X),
    "classifier": lambda: (MaxentClassifier().fit([[0.0], [1.0]], ["x", "y"]), [[0.5], [2.0]]),
    "parser": lambda: (DependencyParser(tol=0.1).fit([["a", "dog", "ran"]], [[2, 3, 0]]), [["dog", "ran"]]),
}


@pytest.mark.parametrize("name", MODELS)
def test_packed_estimators_come_back(name):
    model, examples = MODELS[name]()
    data = io.dumps(Packed(model))
    assert io.get_untrusted_types(data=data) == TRUSTED
    found = io.loads(data, trusted=TRUSTED)
    assert type(found.estimator) is type(model)
    assert list(found.predict(examples)) == list(model.predict(examples))
    assert found.get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(Packed(model)))
    assert list(again.predict(examples)) == list(model.predict(examples))


def test_untrusted_unfitted_and_damaged_ones_are_refused():
    model, _ = MODELS["tagger"]()
    with pytest.raises(io.exceptions.UntrustedTypesFoundException):
        io.loads(io.dumps(Packed(model)))
    with pytest.raises(ValueError, match="SequenceTagger is no fitted estimator of partwise"):
        Packed(SequenceTagger())
    state = Packed(model).__getstate__()
    with pytest.raises(ModelFormatError):
        Packed.__new__(Packed).__setstate__({"model": state["model"][:-3]})
    for wrong in ({"model": 1 << 40}, {"model": "x"}, {}, [state["model"]]):
        with pytest.raises(ModelFormatError, match="no model file in it"):
            Packed.__new__(Packed).__setstate__(wrong)
    with pytest.raises(AttributeError):
        _ = Packed(model).no_such_thing
