"""MLflow: saved models, their environments, pyfunc predictions, and objects that are refused."""

from __future__ import annotations

import pytest

from partwise import DependencyParser, MaxentClassifier, ModelFormatError, SequenceTagger
from partwise.datasets import make_treebank
from partwise.io import parse_conllu
from partwise.tables.conllu import ConlluColumns, ConlluPipeline

mlflow = pytest.importorskip("mlflow")
pandas = pytest.importorskip("pandas")
from partwise.integrations import mlflow as flavour  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow raises warnings of its own

X, Y = [["a", "b"], ["b"], ["a", "a"]], [["A", "B"], ["B"], ["A", "A"]]


@pytest.fixture(scope="module")
def tagger():
    return SequenceTagger(template="pos", C=10.0, tol=1e-3).fit(X, Y)


@pytest.fixture(scope="module")
def classifier():
    return MaxentClassifier(C=10.0).fit([[0.0, 1.0], [1.0, 0.0], [0.9, 0.2]], ["x", "y", "y"])


def test_a_saved_folder_is_an_mlflow_model(tagger, tmp_path):
    flavour.save_model(tagger, tmp_path / "model", metadata={"task": "tags"})
    assert {each.name for each in (tmp_path / "model").iterdir()} == {
        "MLmodel", "model.pw", "conda.yaml", "python_env.yaml", "requirements.txt",
    }  # fmt: skip
    described = mlflow.models.Model.load(str(tmp_path / "model"))
    assert described.flavors["partwise"]["kind"] == "tagger"
    assert described.flavors["python_function"]["loader_module"] == "partwise.integrations.mlflow"
    assert described.metadata == {"task": "tags"}
    assert "partwise" in (tmp_path / "model" / "requirements.txt").read_text()
    assert flavour.load_model(str(tmp_path / "model")).predict(X) == tagger.predict(X)
    with pytest.raises(mlflow.exceptions.MlflowException, match="already exists"):
        flavour.save_model(tagger, tmp_path / "model")


def test_environments_may_be_given(classifier, tmp_path):
    flavour.save_model(classifier, tmp_path / "a", pip_requirements=["partwise==9"])
    assert "partwise==9" in (tmp_path / "a" / "requirements.txt").read_text().splitlines()
    flavour.save_model(classifier, tmp_path / "b", extra_pip_requirements=["tables-of-mine==1"])
    lines = (tmp_path / "b" / "requirements.txt").read_text().splitlines()
    assert "tables-of-mine==1" in lines
    assert any(line.startswith("partwise") for line in lines)
    (tmp_path / "own.py").write_text("x = 1")
    flavour.save_model(classifier, tmp_path / "c", code_paths=[str(tmp_path / "own.py")])
    assert (tmp_path / "c" / "code" / "own.py").is_file()


def test_pyfunc_models_take_lists_arrays_and_frames(tagger, classifier, tmp_path):
    flavour.save_model(tagger, tmp_path / "tagger")
    flavour.save_model(classifier, tmp_path / "classes", pyfunc_predict_fn="predict_proba")
    served = mlflow.pyfunc.load_model(str(tmp_path / "tagger"))
    assert served.predict(X) == tagger.predict(X)
    assert served.predict(pandas.DataFrame({"words": X})) == tagger.predict(X)
    assert served.get_raw_model().classes_.tolist() == ["A", "B"]
    with pytest.raises(ValueError, match="needs one column with an example in each row, got 2 columns: a, b"):
        served.predict(pandas.DataFrame({"a": X, "b": X}))
    served = mlflow.pyfunc.load_model(str(tmp_path / "classes"))
    rows = pandas.DataFrame({"p": [0.0, 1.0], "q": [1.0, 0.0]})
    assert (served.predict(rows) == classifier.predict_proba([[0.0, 1.0], [1.0, 0.0]])).all()


def test_pipelines_annotate(tmp_path):
    columns = ConlluColumns("form", "upos")
    model = columns.fit(SequenceTagger(template="pos", tol=1e-2), parse_conllu(make_treebank(20).conllu().encode()))
    pipeline, words = ConlluPipeline([model]), [["the", "cat"], ["a", "dog", "sat"]]
    flavour.save_model(pipeline, tmp_path / "pipeline")
    again = flavour.load_model(str(tmp_path / "pipeline"))
    texts = ["".join(sentence.lines) for sentence in pipeline.annotate(words)]
    assert ["".join(sentence.lines) for sentence in again.annotate(words)] == texts
    served = mlflow.pyfunc.load_model(str(tmp_path / "pipeline"))
    assert served.predict(words) == served.predict(pandas.DataFrame({"words": words})) == texts
    with pytest.raises(ValueError, match="ConlluPipeline has no method 'predict_proba'"):
        flavour.save_model(pipeline, tmp_path / "other", pyfunc_predict_fn="predict_proba")


def test_objects_that_are_not_models_are_refused(tagger, tmp_path):
    with pytest.raises(ValueError, match="SequenceTagger is no fitted estimator of partwise"):
        flavour.save_model(SequenceTagger(), tmp_path / "model")
    with pytest.raises(ValueError, match="int is no fitted estimator of partwise"):
        flavour.save_model(3, tmp_path / "model")
    with pytest.raises(ValueError, match="SequenceTagger has no method 'predict_proba'"):
        flavour.save_model(tagger, tmp_path / "model", pyfunc_predict_fn="predict_proba")
    assert not (tmp_path / "model").exists()
    with pytest.raises(ValueError, match="SequenceTagger has no method 'save' that predicts"):
        flavour.save_model(tagger, tmp_path / "model", pyfunc_predict_fn="save")
    flavour.save_model(tagger, tmp_path / "model")
    described = tmp_path / "model" / "MLmodel"
    text = described.read_text()
    tagger.save(tmp_path / "outside.pw")
    for name in ("../outside.pw", str(tmp_path / "outside.pw"), "..", "[1]"):
        described.write_text(text.replace("data: model.pw", f"data: {name}"))
        with pytest.raises(ModelFormatError, match="is no file of the folder"):
            flavour.load_model(str(tmp_path / "model"))
    described.write_text(text.replace("pyfunc_predict_fn: predict", "pyfunc_predict_fn: save"))
    with pytest.raises(ValueError, match="no method 'save' that predicts"):
        mlflow.pyfunc.load_model(str(tmp_path / "model"))
    described.write_text(text)
    path = tmp_path / "model" / "model.pw"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ModelFormatError):
        flavour.load_model(str(tmp_path / "model"))


def test_parsers_are_logged_with_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/runs")
    parser = DependencyParser(tol=0.1).fit([["a", "dog", "ran"]], [[2, 3, 0]])
    with mlflow.start_run():
        info = flavour.log_model(parser, name="parser")
    assert flavour.load_model(info.model_uri).predict([["a", "dog", "ran"]]) == [[2, 3, 0]]
    assert info.flavors["partwise"]["kind"] == "dep"
