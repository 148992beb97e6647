"""Getting data sets and checking them against their digests; the local folder goes first."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from partwise.datasets.folder import VARIABLE, cache_folder, data_file, open_bytes
from partwise.datasets.registry import DataFile, DataSet, get_data_set

State = Literal["ok", "missing", "changed"]


class DigestError(ValueError):
    """A file is not the one that its digest belongs to."""


def sha256(path: str | os.PathLike[str]) -> str:
    """Digest of a file's unpacked bytes."""
    digest = hashlib.sha256()
    with open_bytes(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def check(name: str, data: str | os.PathLike[str] | None = None) -> dict[str, State]:
    """State of each file of a data set: "ok", "missing", or "changed" (its digest is another one)."""
    found: dict[str, State] = {}
    for file in get_data_set(name).files:
        try:
            path = data_file(name, file.name, data)
        except FileNotFoundError:
            found[file.name] = "missing"
            continue
        try:
            found[file.name] = "ok" if sha256(path) == file.sha256 else "changed"
        except (EOFError, gzip.BadGzipFile):
            found[file.name] = "changed"
    return found


def fetch(name: str, data: str | os.PathLike[str] | None = None) -> list[Path]:
    """Paths of a data set's files, each downloaded if it is not in the folder; every digest is checked.

    Parameters
    ----------
    name : of a data set; see `partwise.datasets.DATA_SETS`
    data : folder of data sets; None: the environment variable ``PARTWISE_DATA``, or else a folder of the user's cache

    Raises
    ------
    FileNotFoundError
        If a file does not exist and there is no address to get it from.
    DigestError
        If a file, downloaded or not, is another one.
    OSError
        If a download fails.
    """
    item = get_data_set(name)
    folder = Path(data or os.environ.get(VARIABLE) or cache_folder())
    return [_fetch_file(item, file, folder) for file in item.files]


def _fetch_file(item: DataSet, file: DataFile, folder: Path) -> Path:
    try:
        path = data_file(item.name, file.name, folder)
    except FileNotFoundError:
        if file.url is None:
            raise FileNotFoundError(
                f"{item.name}: {file.name} is not in {folder / item.name}, and there is no address to download it "
                f"from: put it there by hand (plain or gzipped; SHA-256 of the unpacked file {file.sha256})"
            ) from None
        return _download(item, file, folder / item.name)
    if sha256(path) != file.sha256:
        raise DigestError(f"{path}: not the expected file (its SHA-256 is not {file.sha256})")
    return path


def _download(item: DataSet, file: DataFile, folder: Path) -> Path:
    try:
        import pooch
    except ImportError:
        raise OSError("downloads need pooch: pip install 'partwise[data]'") from None
    with _folder(folder):
        return _downloaded(pooch, file, folder)


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """Make a folder, and take it and its parents away again if nothing comes into them."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # something else is in it by now
            for each in made:
                each.rmdir()
        raise


def _downloaded(pooch: Any, file: DataFile, folder: Path) -> Path:
    assert file.url is not None
    pooch.get_logger().setLevel("WARNING")
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        try:
            # The digest is of the unpacked bytes and is checked below, before the file gets its name.
            got = Path(pooch.retrieve(file.url, known_hash=None, fname="download", path=scratch))
        except Exception as error:  # whatever the HTTP library raises
            raise OSError(f"{file.url}: {error}") from error
        if sha256(got) != file.sha256:
            raise DigestError(f"{file.url}: not the expected file (its SHA-256 differs), not kept")
        packed = got.read_bytes()[:2] == b"\x1f\x8b"
        return got.replace(folder / (f"{file.name}.gz" if packed else file.name))
