"""The code in docs/integrations.md runs, each section only if its library is installed."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


@pytest.mark.filterwarnings("ignore")  # MLflow raises warnings of its own
@pytest.mark.parametrize("library", SECTIONS)
def test_the_section_runs(library, tmp_path, monkeypatch, capsys):
    pytest.importorskip(library.lower())
    # registers the factories as the entry points of the installed package do
    importlib.import_module(f"partwise.integrations.{library.lower()}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/runs")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    blocks = re.findall(r"^```python\n(.*?)^```$", SECTIONS[library], re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict[str, object] = {"__name__": "page"}
    exec(compile("\n".join(blocks), f"integrations.md, {library}", "exec"), names)
    CHECKS[library](names, capsys.readouterr().out)


def check_spacy(names, output):
    bank, nlp, again = names["bank"], names["nlp"], names["again"]
    lines = [line.split() for line in output.splitlines()]
    assert [line[0] for line in lines] == list(bank.words[0])
    assert sum(line[1] == tag for line, tag in zip(lines, bank.tags[0], strict=True)) >= len(lines) - 1
    text = " ".join(bank.words[1])
    assert [(t.tag_, t.dep_, t.head.i) for t in nlp(text)] == [(t.tag_, t.dep_, t.head.i) for t in again(text)]
    assert names["retrained"].score(bank.words, bank.tags) > 0.95


def check_mlflow(names, output):
    assert names["again"].predict(names["X"]) == names["answers"] == names["y"]


def check_skops(names, output):
    assert output.splitlines() == [str(names["TRUSTED"]), "['colours']"]


CHECKS = {"spaCy": check_spacy, "MLflow": check_mlflow, "skops": check_skops}
