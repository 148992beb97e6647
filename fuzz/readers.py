"""Fuzz Python's readers of files with atheris: ``python -m fuzz.readers FORMAT [libFuzzer's options]``.

tests/faults/formatcases.py defines the formats and the checks of the files' contents. Corpora are in
fuzz/corpus/readers; tests/faults/test_fuzz_corpora.py replays them without atheris.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import tests.faults.rows  # noqa: F401 - the tests' helpers can be imported from now on

CORPUS = Path(__file__).resolve().parent / "corpus" / "readers"


def check(name: str, data: bytes, folder: Path) -> tuple[str, str]:
    """Return how reading these bytes ends; exceptions that the format does not document are not caught."""
    from tests.faults.formats import FORMATS, judged

    path = folder / f"file{FORMATS[name].suffix}"
    path.write_bytes(data)
    return judged(name, path, 0)


def main() -> None:
    """Run until an input breaks a promise, or as long as the options of libFuzzer say."""
    import atheris  # type: ignore[import-not-found,unused-ignore]

    name = sys.argv[1]
    with atheris.instrument_imports(include=["partwise"]):
        from tests.faults.formats import FORMATS, GOOD
    os.fsync = lambda _: None  # type: ignore[assignment]
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))

    def one(data: bytes) -> None:
        outcome, detail = check(name, data, folder)
        if outcome not in GOOD:
            raise AssertionError(f"{outcome}: {detail}")

    found = CORPUS.parents[2] / "build" / "fuzz" / "readers" / name
    found.mkdir(parents=True, exist_ok=True)
    (found / "small").write_bytes(FORMATS[name].make())
    atheris.Setup([sys.argv[0], *sys.argv[2:], str(found), str(CORPUS / name)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
