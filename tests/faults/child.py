"""Runs trials in a process of their own: ``python -m tests.faults.child MODULE FOLDER``.

Orders are read from standard input as JSON lines: [row's name, trial numbers]. The process writes a line when it is
ready, and one after each trial.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import traceback
import warnings
from pathlib import Path

from . import digest
from .rows import REPORT, all_rows, reported


def main(module: str, scratch: str) -> None:
    orders, out = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # standard output carries results: send what a trial prints to standard error
    warnings.simplefilter("ignore")
    rows = all_rows((module,))
    try:
        print(json.dumps({"ready": digest.of_package()}), file=out, flush=True)
        for order in orders:
            name, numbers = json.loads(order)
            for number in numbers:
                folder = Path(scratch) / f"{name}-{number}"
                folder.mkdir()
                begin, cpu = time.monotonic(), time.process_time()
                try:
                    outcome, detail = rows[name].trial(number, folder)
                except Exception as error:
                    outcome, detail = f"unexpected {type(error).__name__}", traceback.format_exc()[-600:]
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
                text = reported(Path(scratch)) if rows[name].core else ""
                outcome, detail = (REPORT, text) if text else (outcome, detail[:600])
                used = {"cpu": round(time.process_time() - cpu, 4), "seconds": round(time.monotonic() - begin, 4)}
                record = {"row": name, "trial": number, "outcome": outcome, "detail": detail} | used
                print(json.dumps(record), file=out, flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)  # the parent process may have been killed before it could do this


if __name__ == "__main__":
    main(*sys.argv[1:])
