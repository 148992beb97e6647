"""The solvers that are defined in the docs' code blocks, for tests over all solvers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from partwise import Solver
from partwise.solvers.engine.registry import SOLVERS

DOCS = Path(__file__).parents[2] / "docs"


def solver_blocks() -> list[str]:
    """Return the Python blocks of all pages that register a solver."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md")))
    blocks = [
        block for text in texts for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ]
    return [block for block in blocks if "@register_solver" in block]


@contextmanager
def guide_solvers() -> Iterator[dict[str, type[Solver[Any]]]]:
    """Register the pages' solvers inside the `with` block."""
    before = set(SOLVERS)
    try:
        for block in solver_blocks():
            exec(compile(block, "guide", "exec", dont_inherit=True), {"__name__": "page"})
        yield {name: cls for name, cls in SOLVERS.items() if name not in before}
    finally:
        for name in set(SOLVERS) - before:
            del SOLVERS[name]


with guide_solvers() as _found:
    #: Names of the pages' solvers.
    GUIDE_SOLVERS = tuple(_found)
