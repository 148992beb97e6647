"""The tagger's default model equals CRFsuite's: same features, same optimum."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.estimators import SequenceTagger
from partwise.models.readers import add_dict

pycrfsuite = pytest.importorskip("pycrfsuite")


@pytest.mark.parametrize("everything", [False, True], ids=["observed", "all"])
def test_weights_and_marginals_are_crfsuites(everything, sentences, fresh_sentences, tmp_path):
    path = str(tmp_path / "model")
    options = {"c1": 0.0, "c2": 1.0, "epsilon": 1e-9, "delta": 1e-14, "period": 100, "max_iterations": 5000}
    flags = {"feature.possible_states": everything, "feature.possible_transitions": everything}
    trainer = pycrfsuite.Trainer("lbfgs", options | flags, verbose=False)
    for tokens, labels in zip(sentences.dicts, sentences.y, strict=True):
        trainer.append(pycrfsuite.ItemSequence(tokens), labels)
    trainer.train(path)
    theirs = pycrfsuite.Tagger()
    theirs.open(path)
    info = theirs.info()

    # CRFsuite's penalty c2 |w|^2 is our |w|^2 / (2 C)
    ours = SequenceTagger(C=0.5, features="all" if everything else "observed", solver="lbfgs", tol=1e-16)
    ours.fit(sentences.dicts, sentences.y)
    assert set(info.state_features) == set(ours.state_features_)
    assert set(info.transitions) == set(ours.transition_features_)
    assert info.state_features == pytest.approx(ours.state_features_, abs=1e-4)
    assert info.transitions == pytest.approx(ours.transition_features_, abs=1e-4)
    for tokens in fresh_sentences.dicts:
        theirs.set(pycrfsuite.ItemSequence(tokens))
        expected = [[theirs.marginal(label, t) for label in ours.classes_] for t in range(len(tokens))]
        np.testing.assert_allclose(ours.predict_marginals_single(tokens, output="array"), expected, atol=1e-4)
        assert ours.predict_single(tokens) == theirs.tag()


def test_dict_features_are_crfsuites_joined_by_an_equals_sign():
    token = {
        "word": "the",
        "length": 3.5,
        "count": 2,
        "upper": True,
        "title": False,
        "nothing": 0.0,
        "shapes": ["x", "xx"],
        "lists": {"days", "cities"},
        "before": {"word": "of", "length": 2.0, "upper": False, "deep": {"shapes": ["x"]}},
    }
    [theirs] = pycrfsuite.ItemSequence([token]).items()
    names: list[str] = []
    values: list[float] = []
    add_dict("", token, names, values)
    found = dict(zip(names, values, strict=True))
    assert found == {name.replace(":", "="): value for name, value in theirs.items() if value}
