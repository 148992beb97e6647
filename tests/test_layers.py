"""Layers of imports, the number of modules that a fit imports, and the number of calls to a gradient."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import partwise
from partwise import SequenceTagger
from partwise.problem import BatchSums

ROOT = Path(partwise.__file__).parent

#: Layers from bottom to top: a package imports only from layers below its own. Modules in another layer than their
#: package are listed too. Names of `partwise` itself may be used by the packages above "".
LAYERS = (
    ("support", "_core", "_cpu", "__version__"),
    ("io",),
    ("structures", "features", "metrics"),
    ("problem",),
    ("model_files.container", "model_files.errors", "model_files.parts", "model_files.values"),
    ("solvers",),
    ("callbacks", "models"),
    ("estimators",),
    ("model_files", "methods", "bounds", "datasets", "report", "structures.testing"),
    ("out_of_core", "tables"),
    ("", "integrations", "compat"),
    ("cli", "__main__"),
)

#: Allowed imports of higher layers, inside functions or for type checkers only: methods of results that need a higher
#: layer, and names looked up in tables.
LATE = {
    ("problem.result", "report"),
    ("model_files.values", "solvers"),
    ("solvers", "out_of_core.block_dual"),
    ("solvers.engine.auto", "out_of_core.block_dual"),
    ("estimators.base", "model_files"),
}


def layer_of(module: str) -> int:
    places = {name: k for k, names in enumerate(LAYERS) for name in names}
    parts = module.split(".")[1:]
    return next(places[name] for n in range(len(parts), -1, -1) if (name := ".".join(parts[:n])) in places)


def imports(node: ast.AST, late: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield what a module imports, and whether the import is in a function or for type checkers."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, late) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield from ((f"{node.module}.{alias.name}", late) for alias in node.names)
    late |= isinstance(node, ast.FunctionDef)
    late |= isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    for child in ast.iter_child_nodes(node):
        yield from imports(child, late)


def upwards() -> Iterator[tuple[str, str, bool]]:
    """Return imports of higher layers as (module, imported module, whether late), without the prefix `partwise.`."""
    for path in sorted(ROOT.rglob("*.py")):
        name = ".".join(("partwise", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for other, late in imports(ast.parse(path.read_text(encoding="utf-8"))) if name != "partwise" else ():
            if other.split(".")[0] == "partwise" and layer_of(other) > layer_of(name):
                yield name.partition(".")[2], other.partition(".")[2], late


def test_a_package_imports_those_below_it():
    found = set()
    for name, other, late in upwards():
        found.add((name, next((target for by, target in LATE if by == name and other.startswith(target)), other)))
        assert late, (name, other)
    assert found == LATE


def test_an_upward_import_is_seen():
    tree = ast.parse("from partwise.cli import main\ndef f():\n    import partwise.report.page\n")
    assert list(imports(tree)) == [("partwise.cli.main", False), ("partwise.report.page", True)]
    assert layer_of("partwise.cli.main") > layer_of("partwise.solvers.dual.eg") > layer_of("partwise.problem")
    assert layer_of("partwise.model_files.values.encode") < layer_of("partwise.model_files.files")


def test_a_fit_imports_few_modules():
    program = "import sys; from partwise import SequenceTagger; SequenceTagger().fit([[['a'], ['b']]], [['X', 'Y']])\n"
    program += "print(sum(name.split('.')[0] == 'partwise' for name in sys.modules))"
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert int(output) <= 120


def test_a_gradient_passes_six_calls():
    chains = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code == BatchSums.plane.__code__:
            names = []
            while frame is not None and frame.f_code.co_name != "step":
                names.append(frame.f_code.co_name)
                frame = frame.f_back
            if frame is not None:  # ignore the gradient before the first step
                chains.add(("step", *reversed(names)))

    tagger = SequenceTagger(solver="lbfgs")
    sys.setprofile(note)
    try:
        tagger.fit([[["a"], ["b"]], [["b"], ["a"]]], [["X", "Y"], ["Y", "X"]])
    finally:
        sys.setprofile(None)
    assert len(chains) == 1
    (chain,) = chains
    assert len(chain) + 1 <= 6  # plus the call of the core, which `plane` makes
