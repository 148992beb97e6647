"""CRFsuite's model files are read and written as by python-crfsuite."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

import partwise
from partwise import ModelFormatError, SequenceTagger
from partwise.cli import main
from partwise.model_files.foreign.crfsuite import hash_names
from partwise.model_files.foreign.linear_chain import names_of
from partwise.problem.losses import get_loss

pycrfsuite = pytest.importorskip("pycrfsuite")

LABELS = ["B-x", "I-x", "O", "é"]


def made_up(n, seed=0):
    """Make labelled sequences whose attribute names have lengths around 12 bytes, the block size of CRFsuite's hash."""
    rng = np.random.default_rng(seed)
    words = ["w" * k + "=ü" * (k % 3) for k in range(1, 40)]
    X, y = [], []
    for _ in range(n):
        ids = rng.integers(len(words), size=rng.integers(1, 8))
        X.append([["bias", words[k], f"last={words[k][-1]}"] for k in ids])
        y.append([LABELS[(k + (rng.random() < 0.1)) % 4] for k in ids])
    return X, y


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a model that CRFsuite trained, and one that partwise trained and wrote in CRFsuite's format."""
    folder = tmp_path_factory.mktemp("crfsuite")
    X, y = made_up(60)
    trainer = pycrfsuite.Trainer(verbose=False)
    for xs, ys in zip(X, y, strict=True):
        trainer.append(xs, ys)
    trainer.set_params({"c1": 0.05, "c2": 0.05, "max_iterations": 40})
    trainer.train(str(folder / "theirs.crfsuite"))
    SequenceTagger(C=2.0).fit(X, y).save(folder / "ours.crfsuite", format="crfsuite")
    return folder


def opened(path):
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


@pytest.mark.parametrize("name", ["theirs", "ours"])
def test_same_answers(files, name):
    path = files / f"{name}.crfsuite"
    theirs, ours = opened(path), partwise.load(path)
    X, _ = made_up(40, seed=1)
    X.append([["never seen"], ["bias"]])
    assert ours.predict(X) == [theirs.tag(x) for x in X]
    for x, marginals in zip(X, ours.predict_marginals(X), strict=True):
        theirs.set(x)
        expected = [[theirs.marginal(label, t) for label in ours.classes_] for t in range(len(x))]
        np.testing.assert_allclose(
            [[token[label] for label in ours.classes_] for token in marginals], expected, atol=1e-9
        )
        best = theirs.tag()
        assert np.exp(ours.log_probability([x], [best])[0]) == pytest.approx(theirs.probability(best), abs=1e-9)
    valued = [[{"bias": 0.5, "wwww=ü": 2.0}, {"w": -1.5}]]
    assert ours.predict(valued) == [theirs.tag(valued[0])]


def test_written_again_it_is_the_same_model(files, tmp_path):
    first = files / "theirs.crfsuite"
    partwise.load(first).save(tmp_path / "again.crfsuite", format="crfsuite")
    one, two = opened(first).info(), opened(tmp_path / "again.crfsuite").info()
    assert one.transitions == two.transitions
    assert one.state_features == two.state_features
    assert set(one.attributes) == set(two.attributes)
    assert set(one.labels) == set(two.labels)


def test_a_loaded_file_has_no_certificate_and_can_be_saved(files, tmp_path):
    tagger = partwise.load(files / "theirs.crfsuite")
    assert tagger.result_.status == "no certificate"
    assert tagger.result_.gap == np.inf
    tagger.save(tmp_path / "model.pw")
    X, _ = made_up(20, seed=2)
    assert partwise.load(tmp_path / "model.pw").predict(X) == tagger.predict(X)


def test_hashes_do_not_depend_on_the_other_names():
    names = ["", "x", "label", "a" * 11, "a" * 12, "a" * 23, "w[-1]=the", "w" * 25]
    alone = [int(hash_names(*names_of([name]))[0]) for name in names]
    assert hash_names(*names_of(names)).tolist() == alone
    assert len(set(alone)) == len(alone)


def damaged(raw, rng):
    data = bytearray(raw)
    kind = rng.integers(5)
    if kind == 0:
        return bytes(data[: rng.integers(len(data))])
    if kind == 1:
        for at in rng.integers(len(data), size=rng.integers(1, 5)):
            data[at] ^= 1 << int(rng.integers(8))
    elif kind == 2:  # replace a number anywhere in the file
        at = 4 * int(rng.integers(len(data) // 4))
        data[at : at + 4] = int(rng.choice([0, 1, 2**31, 2**32 - 1, rng.integers(2**32)])).to_bytes(4, "little")
    elif kind == 3:  # replace a number of the header, and correct the size
        at = 4 * int(rng.integers(12))
        data[at : at + 4] = int(rng.integers(2 * len(data))).to_bytes(4, "little")
        data[4:8] = len(data).to_bytes(4, "little")
    else:
        a, b = sorted(rng.integers(len(data), size=2))
        data[a:b] = data[b : 2 * b - a]
        data[4:8] = len(data).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize("trials", [pytest.param(200), pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_are_refused_or_valid(files, tmp_path, trials):
    raw = (files / "theirs.crfsuite").read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.crfsuite"
    X, _ = made_up(3, seed=3)
    refused = 0
    for _ in range(trials):
        path.write_bytes(damaged(raw, rng))
        try:
            tagger = partwise.load(path)
        except ModelFormatError as error:
            refused += str(path) in str(error)
        else:  # a changed weight or letter of a name cannot be detected
            assert all(label in tagger.classes_ for labels in tagger.predict(X) for label in labels)
    assert refused > 0.5 * trials


def test_models_that_a_file_cannot_hold(tmp_path):
    X, y = made_up(20)
    path = tmp_path / "model.crfsuite"
    for options, message in [
        ({"ends": True}, "ends=True"),
        ({"transition_features": ["w"]}, "transition_features"),
        ({"order": 2}, "first-order chains"),
    ]:
        with pytest.raises(ValueError, match=message):
            SequenceTagger(**options).fit(X, y).save(path, format="crfsuite")
    rows = [np.eye(3)[: len(x) % 3 + 1] for x in X]
    labels = [[0, 1, 0][: len(row)] for row in rows]
    with pytest.raises(ValueError, match="columns of numbers"):
        SequenceTagger().fit(rows, labels).save(path, format="crfsuite")
    with pytest.raises(ValueError, match="labels that are strings"):
        SequenceTagger().fit([[["a"], ["b"]]], [[0, 1]]).save(path, format="crfsuite")
    chunks = [["B-x", "I-x"], ["O", "B-x"]], [[["a"], ["b"]], [["c"], ["a"]]]
    legal = SequenceTagger().fit(chunks[1], chunks[0])
    with pytest.raises(ValueError, match=r"set_params\(legal=False\)"):
        legal.save(path, format="crfsuite")
    with pytest.raises(ValueError, match="not joined by ':' here"):
        SequenceTagger().fit([[{"w": "a"}, {"w": "b"}]], [["x", "y"]]).save(path, format="crfsuite")
    with pytest.raises(ValueError, match="character 0"):
        SequenceTagger().fit([[["a\0"], ["b"]]], [["x", "y"]]).save(path, format="crfsuite")
    with pytest.raises(ValueError, match="format must be one of"):
        SequenceTagger().fit([[["a"], ["b"]]], [["x", "y"]]).save(path, format="wapiti")
    assert not path.exists()


def test_temperatures_and_chunk_labels(tmp_path):
    """Export divides weights by the temperature and drops the rule for chunk labels, which files cannot hold."""
    X, y = made_up(40)
    path = tmp_path / "model.crfsuite"
    for loss in ("log", "softmax-margin"):
        tagger = SequenceTagger(loss=get_loss(loss, temperature=3.0), legal=False).fit(X, y)
        tagger.save(path, format="crfsuite")
        for one, two in zip(tagger.predict_marginals(X), partwise.load(path).predict_marginals(X), strict=True):
            for a, b in zip(one, two, strict=True):
                assert a == pytest.approx(b, abs=1e-12)
    chunks = SequenceTagger().fit([[["a"], ["b"]], [["c"], ["a"]]], [["B-x", "I-x"], ["O", "B-x"]])
    chunks.save(tmp_path / "chunks.pw")
    answer = CliRunner().invoke(main, ["convert", str(tmp_path / "chunks.pw"), str(path)])
    assert answer.exit_code == 0
    assert "no longer kept to their scheme" in answer.output
    chunks.set_params(legal=False)
    assert partwise.load(path).predict([[["c"], ["b"]]]) == chunks.predict([[["c"], ["b"]]])


def test_many_labels_in_a_small_file_are_refused(tmp_path):
    tagger = SequenceTagger().fit([[["a"], ["b"]]], [["x", "y"]])
    from dataclasses import replace

    from partwise.model_files.foreign import crfsuite

    chain = replace(crfsuite.of_tagger(tagger), labels=[str(k) for k in range(60_000)])
    path = tmp_path / "many.crfsuite"
    crfsuite.write(chain, path)
    with pytest.raises(ModelFormatError, match="out of proportion"):
        partwise.load(path)


def test_convert(files, tmp_path):
    run = CliRunner()
    there, back = str(tmp_path / "model.pw"), str(tmp_path / "model.crfsuite")
    assert run.invoke(main, ["convert", str(files / "theirs.crfsuite"), there]).exit_code == 0
    assert run.invoke(main, ["convert", there, back]).exit_code == 0
    X, _ = made_up(20, seed=4)
    assert [opened(back).tag(x) for x in X] == [opened(files / "theirs.crfsuite").tag(x) for x in X]
    (tmp_path / "bad.crfsuite").write_bytes(b"lCRF" + bytes(80))
    answer = run.invoke(main, ["convert", str(tmp_path / "bad.crfsuite"), there])
    assert answer.exit_code == 2
    assert "unknown kind" in answer.output


def test_dicts_are_read_as_sklearn_crfsuite_does(files, tmp_path):
    tagger = partwise.load(files / "theirs.crfsuite")
    dicts = [[{"last": "w", "bias": True}, {"last": "ü", "bias": 1, "none": 0.0}]]
    names = [[["last:w", "bias"], ["last:ü", "bias"]]]
    known = [["last=w", "bias"], ["last=ü", "bias"]]
    assert tagger.predict_marginals(dicts) == tagger.predict_marginals(names)
    # the model knows "last:w", and not "last=w"
    assert tagger.predict_marginals([known]) != tagger.predict_marginals(names)
    tagger.save(tmp_path / "model.pw")
    assert partwise.load(tmp_path / "model.pw").predict_marginals(dicts) == tagger.predict_marginals(dicts)
