"""The code of tutorials and migration pages runs as printed: Python and shell blocks, in order."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from partwise.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(
    path.name
    for path in DOCS.glob("*.md")
    if path.name.startswith(("tutorial_", "from_"))
    or path.name in ("command_line.md", "data_sets.md", "file_formats.md")
)
_BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SHELL = re.compile(r"[|<>;&$]")


def run_shell(text, tmp_path):
    """Run a block's lines; plain `partwise` commands run in this process, which is faster."""
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("partwise ") and not _SHELL.search(line):
            answer = CliRunner().invoke(main, shlex.split(line)[1:])
            assert answer.exit_code == 0, f"{line}\n{answer.output}"
        else:
            done = subprocess.run(
                ["bash", "-eu", "-o", "pipefail", "-c", line], check=False, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """Return an empty folder with the command on the path, however the package was installed."""
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "partwise"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m partwise "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_there_are_pages():
    assert {"tutorial_tagging.md", "tutorial_classification.md", "from_crfpp.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page, workplace, capsys):
    blocks = _BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert blocks
    namespace: dict[str, object] = {"__name__": "page"}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, page, "exec"), namespace)
        else:
            run_shell(text, workplace)


def test_the_readmes_commands_print_what_it_says(workplace, capsys):
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"^```sh\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    printed = subprocess.run(["bash", "-euc", text], check=True, capture_output=True, text=True).stdout
    (shown,) = (
        block for block in re.findall(r"^```console\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE) if "$" not in block
    )
    for line in shown.splitlines():
        if line == "...":
            continue
        # the seconds differ in every run
        assert re.sub(r"[0-9.]+ s$|\.\.\.$", "", line) in printed, line
    assert {"model.pw", "report.html"} <= {path.name for path in workplace.iterdir()}
