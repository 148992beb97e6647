"""Runs trials and prints a JSON line after each: ``python -m tests.faults.child MODULES ROW:FIRST:LAST ...``."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

from .rows import all_rows


def main(modules: str, *orders: str) -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a trial prints is no result
    warnings.simplefilter("ignore")
    rows = all_rows(tuple(modules.split(",")))
    for order in orders:
        name, numbers = order.split(":", 1)
        for number in map(int, numbers.split(",")):
            folder = Path(tempfile.mkdtemp(prefix="faults-"))
            print(json.dumps({"row": name, "trial": number, "begin": True}), file=out, flush=True)
            begin = time.process_time()
            try:
                outcome, detail = rows[name].trial(number, folder)
            except Exception as error:
                outcome, detail = f"unexpected {type(error).__name__}", traceback.format_exc()[-600:]
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            record = {"row": name, "trial": number, "outcome": outcome, "detail": detail[:600]}
            print(json.dumps(record | {"cpu": round(time.process_time() - begin, 3)}), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
