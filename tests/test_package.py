"""The installed package: version, type information, and stubs that agree with the compiled core."""

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from importlib.resources import files
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import partwise
from partwise import _core
from partwise.support import native as _native

ROOT = Path(__file__).parents[1]
REQUIRED = object()
Definition = ast.FunctionDef | ast.ClassDef | ast.AnnAssign


def stub_definitions(body: list[ast.stmt]) -> dict[str, list[Definition]]:
    """Return the functions (with overloads), classes and annotated attributes of a stub, by name."""
    found: dict[str, list[Definition]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).append(node)
    return found


def stub_areas() -> dict[str, list[ast.stmt]]:
    """Return the core's stubs by area: those that `_core/__init__.pyi` imports all names from."""
    folder = files(partwise).joinpath("_core")

    def body(area: str) -> list[ast.stmt]:
        return ast.parse(folder.joinpath(f"{area}.pyi").read_text(encoding="utf-8")).body

    imports = [node for node in body("__init__") if isinstance(node, ast.ImportFrom)]
    assert all(node.level == 1 and [item.name for item in node.names] == ["*"] for node in imports)
    return {str(node.module): body(str(node.module)) for node in imports}


STUB_AREAS = stub_areas()
STUB = stub_definitions([node for body in STUB_AREAS.values() for node in body])
STUB_CLASSES = {name: nodes[0] for name, nodes in STUB.items() if isinstance(nodes[0], ast.ClassDef) and name[0] != "_"}


def with_shared_members(stub: ast.ClassDef) -> tuple[list[str], list[ast.stmt]]:
    """Return the bases and members of a class; private bases, which exist only in the stub, count as parts of it."""
    bases, members = [], list(stub.body)
    for base in [base.id for base in stub.bases if isinstance(base, ast.Name)]:
        further, shared = with_shared_members(STUB[base][0]) if base.startswith("_") else ([base], [])
        bases, members = bases + further, members + shared
    return bases, members


def public(names) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def is_property(nodes: list[Definition]) -> bool:
    node = nodes[0]
    if isinstance(node, ast.FunctionDef):
        return any(isinstance(item, ast.Name) and item.id == "property" for item in node.decorator_list)
    return True


def stub_parameters(node: ast.FunctionDef) -> list[tuple[str, object]]:
    """Return (name, default) of a stub's parameters: REQUIRED without a default, ... where the stub leaves it open."""
    arguments = [item.arg for item in node.args.args]
    defaults = [REQUIRED] * (len(arguments) - len(node.args.defaults)) + list(map(ast.literal_eval, node.args.defaults))
    # keyword-only parameters are marked by a star
    arguments += [f"*{item.arg}" for item in node.args.kwonlyargs]
    defaults += [REQUIRED if item is None else ast.literal_eval(item) for item in node.args.kw_defaults]
    return [(name, default) for name, default in zip(arguments, defaults, strict=True) if name != "self"]


def compiled_parameters(function) -> list[list[tuple[str, object]]]:
    """Return (name, default) of the parameters of each overload, from the signatures that nanobind stores."""
    overloads = []
    for signature, _, defaults in function.__nb_signature__:
        # remove shapes of arrays, which are not Python syntax
        while (text := re.sub(r"\[[^\[\]]*\]", "", signature)) != signature:
            signature = text
        names_only = re.sub(r"\\(\d+)", r"\1", signature)  # defaults are written as indices into the tuple of defaults
        (node,) = ast.parse(f"{names_only}: ...").body
        if node.args.posonlyargs:
            pytest.fail(f"parameters without a name: {signature}")
        overloads.append([(n, d if d is REQUIRED else defaults[d]) for n, d in stub_parameters(node)])
    return overloads


def agree(compiled: list[tuple[str, object]], stub: list[tuple[str, object]]) -> bool:
    if [name for name, _ in compiled] != [name for name, _ in stub]:
        return False
    return all(
        (one is REQUIRED) == (two is REQUIRED) and (two is ... or one == two)
        for (_, one), (_, two) in zip(compiled, stub, strict=True)
    )


def test_version_is_the_projects():
    try:
        installed = importlib.metadata.version("partwise")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("imported from a source tree, not installed")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert partwise.__version__ == installed == project["version"]


def test_the_citation_is_of_this_version():
    """CITATION.cff agrees with pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    citation = dict(line.split(": ", 1) for line in lines if re.match(r"[a-z-]+: ", line))
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert [line.removeprefix("  - ") for line in lines if line.startswith("  - ") and ":" not in line] == (
        project["keywords"]
    )
    assert f"  - name: {project['authors'][0]['name']}" in lines
    assert {"message", "title", "abstract"} <= set(citation)


def test_wheels_are_built_for_the_versions_that_are_claimed():
    """Classifiers, requires-python and cibuildwheel agree, and wheels are tested with all packages needed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, wheels = settings["project"], settings["tool"]["cibuildwheel"]
    claimed = re.findall(r"Python :: (3\.\d+)(?=\n|$)", "\n".join(project["classifiers"]))
    assert claimed == ["3.11", "3.12", "3.13", "3.14"]
    assert wheels["build"].split() == [f"cp{version.replace('.', '')}-*" for version in claimed]
    assert project["requires-python"] == f">={claimed[0]}"
    assert wheels["skip"] == "*-musllinux_*"
    assert set(wheels["linux"]["archs"]) == {"x86_64", "aarch64"}
    assert set(wheels["macos"]["archs"]) == {"x86_64", "arm64"}
    systems = {each.split(" :: ", 1)[1] for each in project["classifiers"] if each.startswith("Operating System")}
    assert systems == {"MacOS", "POSIX :: Linux"}
    for system in ("linux", "macos"):
        assert wheels[system]["environment"]["PARTWISE_WHEEL"] == "ON"
        assert wheels[system]["environment"]["PARTWISE_NATIVE"] == "OFF"
    there = {re.split(r"[<>=\[]", each)[0] for each in (*wheels["test-requires"], *project["dependencies"])}
    there |= {"sklearn", "threadpoolctl", "partwise"}  # the module name of scikit-learn, and a dependency of it
    missing = {name: path for name, path in imported_by_tests().items() if name not in there}
    assert missing == {}


def imported_by_tests() -> dict[str, str]:
    """Return the packages that test files import unconditionally, each with such a file."""
    folder = ROOT / "tests"
    own = {path.stem for path in folder.rglob("*.py")} | {path.name for path in folder.iterdir()} | {"benchmarks"}
    found = {}
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in {name.partition(".")[0] for name in names} - own - set(sys.stdlib_module_names):
                if not re.search(rf"importorskip\(\s*['\"]{name}\b", text):
                    found[name] = str(path)
    return found


def test_package_is_marked_as_typed():
    assert files(partwise).joinpath("py.typed").is_file()


def test_every_public_name_exists():
    for name in partwise.__all__:
        if name == "__version__":
            continue  # needs an installed package, see above
        assert getattr(partwise, name) is not None
    assert set(partwise.__all__) <= set(dir(partwise))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = partwise.no_such_name


def test_every_area_of_the_stub_is_part_of_it():
    found = {item.name for item in files(partwise).joinpath("_core").iterdir()}
    assert found == {"__init__.pyi", *(f"{area}.pyi" for area in STUB_AREAS)}
    names = [name for body in STUB_AREAS.values() for name in stub_definitions(body)]
    assert len(names) == len(set(names))  # all overloads of a function are in one area


def test_the_stubs_folder_is_not_a_module():
    """The folder of stubs has the core's name, but Python imports the compiled module (or the wheel's `_core.py`)."""
    assert not hasattr(_core, "__path__")
    assert Path(_core.__file__).parent == Path(partwise.__file__).parent


def test_stub_has_the_cores_names():
    compiled = public(name for name in dir(_core) if not isinstance(getattr(_core, name), ModuleType))
    assert compiled == public(STUB)


@pytest.mark.parametrize("name", sorted(STUB_CLASSES))
def test_stub_has_the_cores_members(name):
    compiled, stub = getattr(_core, name), STUB_CLASSES[name]
    stub_bases, body = with_shared_members(stub)
    members = stub_definitions(body)
    assert public(vars(compiled)) == public(members)
    assert stub_bases == [base.__name__ for base in compiled.__bases__ if base is not object]
    for member in public(members):
        assert callable(getattr(compiled, member)) != is_property(members[member]), member
    # classes without an own constructor inherit a slot that is not a compiled overload
    assert hasattr(vars(compiled).get("__init__"), "__nb_signature__") == ("__init__" in members)


def functions() -> list[tuple[str, object, list[Definition]]]:
    """Return every function and method of the stub with its compiled counterpart."""
    found = [
        (name, getattr(_core, name, None), nodes)
        for name, nodes in STUB.items()
        if not isinstance(nodes[0], ast.ClassDef)
    ]
    for class_name, stub in STUB_CLASSES.items():
        for name, nodes in stub_definitions(with_shared_members(stub)[1]).items():
            if not is_property(nodes):
                found.append((f"{class_name}.{name}", vars(getattr(_core, class_name)).get(name), nodes))
    return found


@pytest.mark.parametrize(("name", "compiled", "nodes"), functions(), ids=[item[0] for item in functions()])
def test_stub_has_the_cores_parameters(name, compiled, nodes):
    # names of keywords and defaults are part of the interface, so stub and core must agree
    overloads = compiled_parameters(getattr(compiled, "__func__", compiled))
    promised = [stub_parameters(node) for node in nodes if isinstance(node, ast.FunctionDef)]
    assert len(overloads) == len(promised)
    for stub in promised:
        assert any(agree(overload, stub) for overload in overloads), (stub, overloads)


# The choice of the build that a wheel loads

BUILDS = {level: Path(f"_core_v{level}") for level in (2, 3, 4)}


@pytest.mark.parametrize(
    ("machine", "forced", "expected"), [(2, None, 2), (3, None, 3), (4, None, 4), (4, "2", 2), (3, "", 3)]
)
def test_the_best_build_that_runs_is_chosen(machine, forced, expected):
    assert _native.choose(BUILDS, machine, forced) == expected


def test_a_build_may_be_missing():
    assert _native.choose({2: Path("a"), 3: Path("b")}, 4) == 3


@pytest.mark.parametrize(("machine", "forced"), [(1, None), (3, "4"), (4, "5"), (4, "fast")])
def test_builds_that_cannot_run_are_refused(machine, forced):
    with pytest.raises(ImportError, match=f"x86-64-v{machine}"):
        _native.choose(BUILDS, machine, forced)


def test_builds_are_found_by_name(tmp_path):
    from importlib.machinery import EXTENSION_SUFFIXES

    for name in (f"_core_v3{EXTENSION_SUFFIXES[0]}", "_core_v2.txt", f"_core_v5{EXTENSION_SUFFIXES[0]}"):
        (tmp_path / name).touch()
    assert _native.builds(tmp_path) == {3: tmp_path / f"_core_v3{EXTENSION_SUFFIXES[0]}"}


@pytest.mark.parametrize(
    ("missing", "words"), [([], None), (["avx512f", "avx512bw"], "lacks avx512f, avx512bw. Install")]
)
def test_a_build_for_another_processor_is_refused(missing, words, monkeypatch):
    monkeypatch.setitem(sys.modules, "probe_of_test", SimpleNamespace(missing=lambda: missing))
    with pytest.raises(ImportError, match=words) if words else nullcontext():
        _native.check_processor("probe_of_test")
    _native.check_processor("no_such_probe")


def test_the_processor_is_checked_before_the_core_is_loaded():
    """If the processor lacks an instruction, every import of partwise fails before the core is loaded."""
    program = (
        "import sys; from types import SimpleNamespace\n"
        "sys.modules['partwise._cpu'] = SimpleNamespace(missing=lambda: ['avx2'])\n"
        "try:\n    import partwise._core\nexcept ImportError as error:\n    print(error)\n"
        "print('partwise._core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "this one lacks avx2" in done.stdout
    assert done.stdout.endswith("False\n")


def test_imported_packages_are_declared():
    """Packages that modules import at the top level are declared as dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {name.partition(".")[0]: path.name for name in names}
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    declared = {re.split(r"[<>=\[]", each)[0] for each in (*project["dependencies"], *extras)}
    declared |= {"sklearn", "partwise", *sys.stdlib_module_names, "srsly"}  # srsly is a dependency of spaCy
    assert {name: path for name, path in found.items() if name not in declared} == {}


def test_headers_of_the_core_fit_together(tmp_path):
    """All headers compile together: no name is declared twice with different meanings."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if not compiler:
        pytest.skip("no compiler")
    core = ROOT / "core"
    headers = [path.relative_to(core) for folder in core.iterdir() for path in folder.glob("*.h")]
    kernels = sorted(path for path in headers if path.parts[0] != "bindings")
    (tmp_path / "all.cpp").write_text("".join(f'#include "{path}"\n' for path in kernels))
    command = [compiler, "-fsyntax-only", "-std=c++20", "-I", str(core), str(tmp_path / "all.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


#: Packages that may import the compiled core; all other packages use these.
OVER_THE_CORE = {"features", "io", "kernels", "problem", "solvers", "structures"}


def test_only_packages_over_the_core_import_it():
    package = ROOT / "src" / "partwise"
    found = {}
    for path in sorted(package.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names += [
            item.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import) for item in node.names
        ]
        if any(name.rpartition(".")[2] == "_core" for name in names):
            found[str(path.relative_to(package))] = path.relative_to(package).parts[0]
    assert found  # otherwise the test would check nothing
    assert {path for path, area in found.items() if area not in OVER_THE_CORE} == set()


def test_no_guide_imports_the_core():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    assert [
        page.name for page in pages if re.search(r"(import|from) [\w. ]*\b_core", page.read_text(encoding="utf-8"))
    ] == []


def test_the_front_has_few_names():
    assert 15 <= len(partwise.__all__) <= 30
    assert all(getattr(partwise, name) is not None for name in partwise.__all__)
