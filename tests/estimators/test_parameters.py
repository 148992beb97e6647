"""Each parameter is declared once: the signatures, `get_params`, `clone` and docstrings of all estimators have it."""

import inspect
from dataclasses import fields

import pytest
from sklearn.base import clone

import partwise
from partwise.cli.flags import parameter_docs
from partwise.estimators.parameters import TrainingParameters

ESTIMATORS = [
    partwise.ConstituencyParser,
    partwise.DependencyParser,
    partwise.GraphLabeler,
    partwise.MaxentClassifier,
    partwise.SegmentTagger,
    partwise.SequenceTagger,
]
TRAINING = {each.name for each in fields(TrainingParameters)}


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_every_parameter_is_there_and_documented(cls):
    names = set(inspect.signature(cls).parameters)
    assert TRAINING < names == set(cls().get_params()) == set(cls._get_param_names())
    docs = parameter_docs(cls)
    assert {name for name, (kind, text) in docs.items() if kind and text} == names
    assert "As for" not in cls.__doc__
    assert "result_ : Result" in cls.__doc__ or "result_, label_result_ : Result" in cls.__doc__
    with pytest.raises(TypeError, match="l1_ration"):
        cls(l1_ration=0.5)


def test_a_subclass_may_take_training_parameters_by_keyword():
    class Own(partwise.SequenceTagger):
        def __init__(self, depth=2, **training):
            super().__init__(**training)
            self.depth = depth

    names = set(partwise.SequenceTagger().get_params())
    own = clone(Own(depth=3, C=2.0, order=2))
    assert set(own.get_params()) == {*names, "depth"}
    assert (own.depth, own.C, own.order, own.tol) == (3, 2.0, 2, 1e-3)
