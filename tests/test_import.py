"""`import partwise` is quick and loads no heavy packages."""

import json
import subprocess
import sys

import pytest

HEAVY = ("sklearn", "matplotlib", "dask", "distributed", "pycrfsuite")

PROGRAM = """
import json, sys, time
start = time.process_time()
{statement}
seconds = time.process_time() - start
print(json.dumps([seconds, sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def run(statement: str) -> tuple[float, set[str]]:
    """Return the CPU seconds of a statement in a new interpreter, and the packages that are loaded then."""
    program = PROGRAM.format(statement=statement)
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    seconds, modules = json.loads(output)
    return seconds, set(modules)


# The best CPU time of five runs, so that other processes on the machine do not fail the test.


def test_import_is_quick():
    assert min(run("import partwise")[0] for _ in range(5)) < 0.25


@pytest.mark.parametrize("statement", ["import partwise", "from partwise import Problem, Solver, Structure, solve"])
def test_import_leaves_heavy_packages_alone(statement):
    modules = run(statement)[1]
    assert "partwise" in modules
    assert modules.isdisjoint(HEAVY)


def test_estimators_load_scikit_learn_when_they_are_used():
    # Shows that the test above would notice scikit-learn.
    assert "sklearn" in run("from partwise import SequenceTagger")[1]


def test_submodules_are_loaded_on_access():
    run("import partwise; partwise.datasets.make_treebank(1); partwise.io.FormatError; partwise.report.draw_tags")
    run("import partwise; assert {'callbacks', 'datasets', 'io', 'metrics', 'report'} < {*dir(partwise)}")
