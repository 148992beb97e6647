"""The solvers that the pages of the docs define, for tests over all solvers."""

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
    """The blocks of Python that register a solver, of all pages."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md")))
    blocks = [
        block for text in texts for block in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ]
    return [block for block in blocks if "@register_solver" in block]


@contextmanager
def guide_solvers() -> Iterator[dict[str, type[Solver[Any]]]]:
    """Register the solvers of the pages while the context lasts."""
    before = set(SOLVERS)
    try:
        for block in solver_blocks():
            exec(compile(block, "guide", "exec", dont_inherit=True), {"__name__": "page"})
        yield {name: cls for name, cls in SOLVERS.items() if name not in before}
    finally:
        for name in set(SOLVERS) - before:
            del SOLVERS[name]


with guide_solvers() as _found:
    #: Their names.
    GUIDE_SOLVERS = tuple(_found)
