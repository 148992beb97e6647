"""Small files and models for the tests of the command line."""

import json

import pytest
from click.testing import CliRunner

from partwise.cli import main
from partwise.datasets.builtin import write_built_in


def partwise(*args, status=0, stdin=None):
    """Run the command in this process."""
    answer = CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)
    assert answer.exit_code == status, f"{answer.exit_code}: {answer.output}\n{answer.exception!r}"
    assert "Traceback" not in answer.output
    return answer


def answer_of(*args, **kwargs):
    """Return the JSON object that a command prints."""
    return json.loads(partwise(*args, "--json", **kwargs).stdout)


@pytest.fixture(scope="session")
def cli():
    return partwise


@pytest.fixture(scope="session")
def cli_json():
    return answer_of


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Write small versions of the built-in data sets into a folder."""
    folder = tmp_path_factory.mktemp("data")
    write_built_in("treebank", folder, 150, seed=3)
    write_built_in("digits", folder, 16, seed=3)
    return folder


@pytest.fixture(scope="session")
def chunker(files, tmp_path_factory):
    """Train a tagger and return its model file."""
    path = tmp_path_factory.mktemp("models") / "chunks.pw"
    partwise("train", "tag", files / "treebank" / "train.txt", "-o", path, "-q")
    return path


@pytest.fixture(scope="session")
def classifier(files, tmp_path_factory):
    """Train a classifier and return its model file."""
    path = tmp_path_factory.mktemp("models") / "digits.pw"
    partwise("train", "maxent", files / "digits" / "train.svm", "-o", path, "-q", "--C", "0.1")
    return path
