"""A digest of the code that was tested, so that results from other versions of the code are not counted.

The digest covers names and contents of files, not their places: the imported package and the core's sources and, for a
row, the tests' helpers and the modules of this package that the row uses.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import partwise

from .rows import TESTS, Row

#: Modules of this package that run every trial.
COMMON = ("rows", "child")


def of_files(root: Path, paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return total.hexdigest()


@cache
def of_package() -> str:
    """Return the digest of the Python files of the imported package."""
    root = Path(partwise.__file__).resolve().parent
    return of_files(root, root.rglob("*.py"))


@cache
def of_code() -> str:
    """Return the digest of the package and of the core's sources."""
    core = TESTS.parent / "core"
    sources = [path for path in core.rglob("*") if path.suffix in (".cpp", ".h")]
    return hashlib.sha256((of_package() + of_files(core, sources)).encode()).hexdigest()[:12]


@cache
def of_row(row: Row) -> str:
    """Return the digest of the code and of the tests' files that this row's trials use."""
    folder = TESTS / "faults"
    names, left = set(COMMON), [row.module]
    while left:
        name = left.pop()
        if "." in name or name in names or not (folder / f"{name}.py").exists():
            continue
        names.add(name)
        text = (folder / f"{name}.py").read_text()
        left += re.findall(r"^from \.(\w+) import", text, re.MULTILINE)
        left += re.findall(r"\w+", " ".join(re.findall(r"^from \. import (.*)$", text, re.MULTILINE)))
    helpers = [path for path in TESTS.glob("*.py") if not path.name.startswith("test_")]
    paths = [*helpers, *(TESTS / "oracles").glob("*.py"), *(folder / f"{name}.py" for name in names)]
    return f"{of_code()}-{of_files(TESTS, paths)[:6]}"
