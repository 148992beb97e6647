"""Model files of other tools: which there are, by their first bytes, and what can be done with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from partwise.model_files.container import READING, Source
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.foreign import crfpp, crfsuite, wapiti
from partwise.support.memory import check_room

if TYPE_CHECKING:
    from partwise.model_files.foreign.linear_chain import Tool

#: The bytes at the beginning of a file from which its format and its length are known.
START = 256
TOOLS = (crfsuite.TOOL, wapiti.TOOL, crfpp.TOOL)
_PICKLE = "is a pickle, which may run any code: load it with pickle or joblib if you trust it, then save()"
#: The beginnings of files that cannot be read here, and what errors say of them.
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"d\0\0\0\0\0\0\0", "is a binary model of CRF++: give its text form, MODEL.txt of crf_learn -t"),
    (b"\xac\xed\0\x05", "is a serialised Java object (MALLET, Stanford NER, OpenNLP): train again on the same data"),
    (b"FILEHEADER = {", "is a dump of a CRFsuite model: give the model file itself"),
    (b"solver_type ", "is a model of LIBLINEAR: train again (partwise train maxent)"),
    (b"svm_type ", "is a model of LIBSVM: train again"),
    (b"PK\x03\x04", "is a zip archive (skops, PyTorch, NumPy): load it with the library that wrote it, then save()"),
    (b"\x1f\x8b", "is compressed by gzip: unpack it first"),
    (b"x\x01", "is compressed by zlib (joblib): load it with joblib, then save()"),
    (b"x\x9c", "is compressed by zlib (joblib): load it with joblib, then save()"),
    (b"BZh", "is compressed by bzip2: unpack it first"),
    (b"\xfd7zXZ", "is compressed by xz: unpack it first"),
    (b"\x89HDF", "is an HDF5 file (Keras, PyTables), not a model file of partwise"),
    *((bytes([0x80, protocol]), _PICKLE) for protocol in range(2, 6)),
)  # fmt: skip


def read(source: Source, tool: Tool) -> bytes:
    """Return all bytes of another tool's file, of which there may be as many as its header allows."""
    start = source.first(START)
    if not start.startswith(tool.magic):
        return start  # the parser refuses it
    data = source.whole(tool.limit(start, source.length))
    check_room(len(data), READING)
    return data.tobytes()


def load(source: Source) -> Any:
    """Return the `SequenceTagger` of another tool's file, None for any other file.

    ModelFormatError if the file is damaged, or of a tool whose models cannot be read here.
    """
    start = source.first(START)
    if start[8:10] == b'{"':  # our header, after a length that may be like the beginning of other tools' files
        return None
    for tool in TOOLS:
        if start.startswith(tool.magic):
            data = read(source, tool)
            return tool.parse(data).to_tagger(len(data), tool)
    for magic, what in _OTHERS:
        if start.startswith(magic):
            raise ModelFormatError(what)
    return None
