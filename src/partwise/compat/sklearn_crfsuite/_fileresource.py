"""`FileResource`: the file of a model. The module of this name in sklearn-crfsuite has the same class.

Pickles of sklearn-crfsuite name the class and its attributes; they are read here as they are.
"""

import os
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

_CONTENT = "__FILE_RESOURCE_DATA__"


class FileResource:
    """Where a model's file is: the user's, or a temporary one that goes with the object and is pickled with it."""

    def __init__(
        self,
        filename: str | None = None,
        keep_tempfiles: bool = False,
        suffix: str = ".crfsuite",
        prefix: str = "model",
    ) -> None:
        self.name, self.auto = filename, filename is None
        self.keep_tempfiles = keep_tempfiles
        self.suffix, self.prefix = suffix, prefix

    def refresh(self) -> str:
        """Return a name to write to."""
        if self.auto and self.name is None:
            handle, self.name = tempfile.mkstemp(self.suffix, self.prefix)
            os.close(handle)
            if not self.keep_tempfiles:
                weakref.finalize(self, _remove, self.name)
        assert self.name is not None
        return self.name

    def __getstate__(self) -> dict[str, Any]:
        state = dict(vars(self))
        if self.auto and self.name is not None:
            state |= {"name": None, _CONTENT: Path(self.name).read_bytes()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        content = state.pop(_CONTENT, None)
        vars(self).update(state)
        if content is not None:
            Path(self.refresh()).write_bytes(content)


def _remove(name: str) -> None:
    with suppress(OSError):
        os.unlink(name)
