"""The table of faults: what the library does with damaged files, killed processes, full disks and odd numbers. Each
module holds one kind of fault, as rows of the table.

``python -m tests.faults`` runs the trials of each row in child processes, appends results to a file of JSON lines,
resumes from that file when it is called again, and writes docs/reliability.md. ``make test`` runs a few of the trials.
"""

import sys
from pathlib import Path

# The helpers of the other tests are imported from tests/.
_TESTS = str(Path(__file__).resolve().parents[1])
if _TESTS not in sys.path:
    sys.path.insert(0, _TESTS)
