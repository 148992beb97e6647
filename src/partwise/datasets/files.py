"""Files of data sets: where they are, their digests, downloads, and what readers return."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

from partwise.datasets.registry import DataFile, get_data_set
from partwise.io.files import open_bytes

VARIABLE = "PARTWISE_DATA"

Inputs = TypeVar("Inputs")
Targets = TypeVar("Targets")
State = Literal["ok", "missing", "changed"]


class DigestError(ValueError):
    """A file whose digest is not the expected one."""


class Dataset(NamedTuple, Generic[Inputs, Targets]):
    """Training and test data: ``X_train, y_train, X_test, y_test = conll2000()``."""

    X_train: Inputs
    y_train: Targets
    X_test: Inputs
    y_test: Targets


def cache_folder() -> Path:
    """Return the folder of downloads when no folder is named."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partwise"


def data_file(dataset: str, name: str, data: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of the file `name` of a data set, plain or with ``.gz`` added.

    `data` is the folder of data sets; None: the environment variable ``PARTWISE_DATA``, or else what `fetch` has
    downloaded. The message of FileNotFoundError says where the file was looked for.
    """
    root = data if data is not None else os.environ.get(VARIABLE)
    folder = Path(root or cache_folder()) / dataset
    if not root and not folder.is_dir():
        raise FileNotFoundError(
            f"no data folder: pass data=... or set {VARIABLE} to the folder that holds {dataset}/ "
            f"(`partwise data fetch {dataset}` downloads it, where that can be done)"
        )
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise FileNotFoundError(f"{dataset}: neither {name} nor {name}.gz is in {folder}")


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the digest of a file's unpacked bytes."""
    digest = hashlib.sha256()
    with open_bytes(path) as (file, _):
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def check(name: str, data: str | os.PathLike[str] | None = None) -> dict[str, State]:
    """Return the state of each file of a data set: "ok", "missing", or "changed" (it has another digest)."""
    found: dict[str, State] = {}
    for file in get_data_set(name).files:
        try:
            found[file.name] = "ok" if sha256(data_file(name, file.name, data)) == file.sha256 else "changed"
        except FileNotFoundError:
            found[file.name] = "missing"
        except (EOFError, gzip.BadGzipFile):
            found[file.name] = "changed"
    return found


def fetch(name: str, data: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return paths of the files of a data set of `DATA_SETS`; missing ones are downloaded, all digests are checked.

    `data` is the folder of data sets; None: the environment variable ``PARTWISE_DATA``, or else a folder of the user's
    cache. Raises FileNotFoundError for a missing file without an address, DigestError for a file, downloaded or not,
    with another digest, OSError if a download fails.
    """
    root = Path(data or os.environ.get(VARIABLE) or cache_folder())
    return [_fetch_file(name, file, root) for file in get_data_set(name).files]


def _fetch_file(dataset: str, file: DataFile, root: Path) -> Path:
    try:
        path = data_file(dataset, file.name, root)
    except FileNotFoundError:
        if file.url is None:
            raise FileNotFoundError(
                f"{dataset}: {file.name} is not in {root / dataset}, and there is no address to download it "
                f"from: put it there by hand (plain or gzipped; SHA-256 of the unpacked file {file.sha256})"
            ) from None
        return _download(file.url, file, root / dataset)
    if sha256(path) != file.sha256:
        raise DigestError(f"{path}: not the expected file (its SHA-256 is not {file.sha256})")
    return path


def _download(url: str, file: DataFile, folder: Path) -> Path:
    try:
        import pooch
    except ImportError:
        raise OSError("downloads need pooch: pip install 'partwise[data]'") from None
    pooch.get_logger().setLevel("WARNING")
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            try:
                # The digest is of the unpacked bytes and is checked below, before the file gets its name.
                got = Path(pooch.retrieve(url, known_hash=None, fname="download", path=scratch))
            except Exception as error:  # whatever the HTTP library raises
                raise OSError(f"{url}: {error}") from error
            if sha256(got) != file.sha256:
                raise DigestError(f"{url}: not the expected file (its SHA-256 differs), not kept")
            with open_bytes(got) as (_, packed):
                name = file.name if packed is None else f"{file.name}.gz"
            return got.replace(folder / name)
    except BaseException:
        with suppress(OSError):  # remove the folders that were made here, unless they hold something else by now
            for each in made:
                each.rmdir()
        raise
