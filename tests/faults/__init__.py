"""What happens when things go wrong, measured: one module per kind of fault, each with its rows of a table.

``python -m tests.faults`` runs them in child processes, keeps results in a file of JSON lines, goes on from there when
it is called again, and writes docs/reliability.md. ``make test`` runs a few trials of each row.
"""

import sys
from pathlib import Path

# The tests' own helpers are imported from their folder.
_TESTS = str(Path(__file__).resolve().parents[1])
if _TESTS not in sys.path:
    sys.path.insert(0, _TESTS)
