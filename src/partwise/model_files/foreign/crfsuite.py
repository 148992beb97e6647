"""Model files of CRFsuite (``lCRF``, first-order chains, version 100), both ways.

Numbers are little-endian; offsets count from the beginning of the file, in a table of strings from the table's.

    header      "lCRF", size of the file, "FOMC", 100, (number of features: 0), labels, attributes, and where these are:
    features    "FEAT", size, number, then per feature: kind (0 state, 1 transition), source, label, weight (float64)
    labels      a table of strings
    attributes  a table of strings
    label refs  "LFRF", size, labels + 2, where each label's list is; a list: length, numbers of features
    attr. refs  "AFRF", the same per attribute

    a table of strings ("CQDB")
      header    "CQDB", size, 0, 0x62445371, number of strings, where the backward links are
      256 hash tables: where each is, number of its places (twice that of its strings)
      records   number, length with the final zero, bytes and the zero
      places    (hash, where the record is), open addressing from (hash >> 8) mod places; table hash mod 256
      links     where the record of string 0, 1, ... is

The reader takes names from the backward links and weights from the features, and refuses a file whose lists of features
are not those of its features: CRFsuite goes by the lists. It does not look at hash tables, which it does not use.
"""

from __future__ import annotations

import os
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partwise.io.files import atomic_write
from partwise.model_files.errors import ModelFormatError
from partwise.model_files.foreign.linear_chain import LinearChain, Tool, names_of
from partwise.model_files.parts import Array
from partwise.support.arrays import Bytes, Floats, Ints, pointers, runs

if TYPE_CHECKING:
    from partwise.estimators import SequenceTagger

MAGIC = b"lCRF"
_TYPE, _VERSION, _BYTE_ORDER = b"FOMC", 100, 0x62445371
_HEADER, _CHUNK, _TABLES = 48, 12, 256
_STRINGS = 24 + 8 * _TABLES  # where the records of a table of strings begin
_FEATURE = np.dtype([("kind", "<u4"), ("source", "<u4"), ("label", "<u4"), ("weight", "<f8")])
_STATE, _TRANSITION = 0, 1


def parse(data: bytes) -> LinearChain:
    """Return the chain in the bytes of a file; ModelFormatError if anything in it contradicts anything else."""
    return _Reader(np.frombuffer(data, dtype=np.uint8)).chain()


class _Reader:
    def __init__(self, data: Bytes) -> None:
        self.data = data
        if len(data) < _HEADER or data[:4].tobytes() != MAGIC:
            raise ModelFormatError("is not a whole model file of CRFsuite")
        size, kind, version = self._int(4), data[8:12].tobytes(), self._int(12)
        if kind != _TYPE or version != _VERSION:
            raise ModelFormatError(f"is a CRFsuite model of an unknown kind ({kind!r}, version {version})")
        if size != len(data):
            raise ModelFormatError(f"is damaged: {len(data)} bytes long, but says {size}")
        _, self.n_labels, self.n_attributes, *self.places = (self._int(16 + 4 * k) for k in range(8))

    def chain(self) -> LinearChain:
        features, labels, attributes, label_refs, attribute_refs = self.places
        found = self._features(features)
        states, pairs = (np.flatnonzero(found["kind"] == kind) for kind in (_STATE, _TRANSITION))
        self._check_lists(label_refs, b"LFRF", self.n_labels + 2, self.n_labels, found["source"], pairs)
        self._check_lists(attribute_refs, b"AFRF", self.n_attributes, self.n_attributes, found["source"], states)
        names, offsets = self._strings(attributes, self.n_attributes, "attributes")
        raw, starts = self._strings(labels, self.n_labels, "labels")
        try:
            text = [raw[a:b].tobytes().decode() for a, b in zip(starts, starts[1:], strict=False)]
        except UnicodeDecodeError:
            raise ModelFormatError("has labels that are not UTF-8") from None
        of_states, of_pairs = self._weights(found, states, "state"), self._weights(found, pairs, "transition")
        return LinearChain(text, names, offsets, *of_states, *of_pairs)

    def _features(self, place: int) -> NDArray[np.void]:
        begin, n = self._chunk(place, b"FEAT")
        if n * _FEATURE.itemsize + _CHUNK != self._int(place + 4) or begin + n * _FEATURE.itemsize > len(self.data):
            raise ModelFormatError("is damaged: its features do not fit")
        found = np.frombuffer(self.data.tobytes(), dtype=_FEATURE, count=n, offset=begin)
        sources = np.where(found["kind"] == _STATE, self.n_attributes, self.n_labels)
        wrong = (found["kind"] > _TRANSITION) | (found["source"] >= sources) | (found["label"] >= self.n_labels)
        if wrong.any():
            raise ModelFormatError(f"is damaged: feature {int(np.argmax(wrong))} is of labels or attributes it lacks")
        if not np.isfinite(found["weight"]).all():
            raise ModelFormatError("has weights that are not finite")
        return found

    def _weights(self, found: NDArray[np.void], which: Ints, what: str) -> tuple[Ints, Floats]:
        chosen = found[which]
        pairs = np.stack([chosen["source"], chosen["label"]]).astype(np.int64)
        keys = pairs[0] * self.n_labels + pairs[1]
        if len(np.unique(keys)) < len(keys):
            raise ModelFormatError(f"is damaged: it has a {what} feature twice")
        return pairs, np.ascontiguousarray(chosen["weight"], dtype=np.float64)

    def _check_lists(self, place: int, name: bytes, n: int, used: int, source: Array, which: Ints) -> None:
        """Check that the list of each of the first `used` sources has the features of that source, each once."""
        begin, count = self._chunk(place, name)
        if count != n or begin + 4 * n > len(self.data):
            raise ModelFormatError(f"is damaged: {name.decode()} is of {count} instead of {n}")
        starts = self._ints(begin + 4 * np.arange(used, dtype=np.int64))
        lengths = self._ints(starts)
        if int(lengths.sum()) != len(which):
            raise ModelFormatError(f"is damaged: {name.decode()} lists {int(lengths.sum())} of {len(which)} features")
        owner = np.repeat(np.arange(used), lengths)
        within = runs(np.zeros_like(lengths), lengths)
        listed = self._ints(np.repeat(starts, lengths) + 4 + 4 * within)
        order = np.argsort(listed)
        if not np.array_equal(listed[order], which) or not np.array_equal(source[which], owner[order]):
            raise ModelFormatError(f"is damaged: {name.decode()} lists other features than there are")

    def _strings(self, place: int, n: int, what: str) -> tuple[Bytes, Ints]:
        if place + _STRINGS > len(self.data) or self.data[place : place + 4].tobytes() != b"CQDB":
            raise ModelFormatError(f"is damaged: its {what} are not where they should be")
        size, _, order, known, links = (self._int(place + 4 + 4 * k) for k in range(5))
        if order != _BYTE_ORDER or known != n or place + size > len(self.data) or (n and not links):
            raise ModelFormatError(f"is damaged: its table of {what} contradicts itself")
        records = place + self._ints(place + links + 4 * np.arange(n, dtype=np.int64))
        numbers, lengths = self._ints(records), self._ints(records + 4)
        ends = records + 8 + lengths
        if (numbers != np.arange(n)).any() or (lengths < 1).any() or (ends > place + size).any():
            raise ModelFormatError(f"is damaged: a name of its {what} is not what its table says")
        # The text: every record's bytes but the last, which is 0 and the only one.
        lengths -= 1
        offsets = pointers(lengths)
        if int(offsets[-1]) > size:
            raise ModelFormatError(f"is damaged: its {what} lie on top of each other")
        text = self.data[runs(records + 8, lengths)]
        if (text == 0).any() or (self.data[ends - 1] != 0).any():
            raise ModelFormatError(f"is damaged: a name of its {what} does not end where it should")
        return np.ascontiguousarray(text), offsets

    def _chunk(self, place: int, name: bytes) -> tuple[int, int]:
        """Return where a chunk's content begins, and how many entries it has."""
        if place + _CHUNK > len(self.data) or self.data[place : place + 4].tobytes() != name:
            raise ModelFormatError(f"is damaged: {name.decode()} is not where it should be")
        return place + _CHUNK, self._int(place + 8)

    def _int(self, place: int) -> int:
        return int.from_bytes(self.data[place : place + 4].tobytes(), "little")

    def _ints(self, places: Ints) -> Ints:
        """Return unsigned 32-bit numbers at these places, which need not be aligned."""
        if len(places) and (int(places.max()) + 4 > len(self.data) or int(places.min()) < 0):
            raise ModelFormatError("is damaged: it points outside itself")
        four = np.ascontiguousarray(self.data[places[:, None] + np.arange(4)])
        return four.view("<u4")[:, 0].astype(np.int64)


def limit(start: bytes, length: int | None) -> int:
    """Return the bytes that a file which begins like this says it has."""
    return max(int.from_bytes(start[4:8], "little"), len(start))


#: CRFsuite's files; names and strings of dicts are joined as sklearn-crfsuite joins them.
TOOL = Tool("CRFsuite", MAGIC, ":", limit, parse)


def of_tagger(tagger: SequenceTagger) -> LinearChain:
    """Return the chain of a fitted `SequenceTagger`; ValueError if a file cannot hold all of it.

    Weights are divided by the loss's temperature, which other tools' chains do not have.
    """
    from partwise.models.readers import NameReader, VocabularyReader
    from partwise.models.sequences.chain import ChainModel
    from partwise.problem.losses import get_loss

    model = tagger._fitted()
    if type(model) is not ChainModel:
        raise ValueError("files of CRFsuite hold first-order chains: not available for this model")
    reader = model.reader
    if not isinstance(reader, VocabularyReader):
        raise ValueError("files of CRFsuite hold attributes by name: not available for columns of numbers")
    if model.ends or not model.tied:
        what = "ends=True" if model.ends else "transition_features"
        raise ValueError(f"files of CRFsuite have no place for the weights of {what}")
    if (scheme := model.kept_scheme()) is not None:
        rule = f"the rule that labels keep to {scheme}"
        raise ValueError(f"files of CRFsuite do not hold {rule}: set_params(legal=False) first")
    if isinstance(reader, NameReader) and reader.joined and reader.separator != TOOL.separator:
        raise ValueError(
            f"names of dicts are not joined by {TOOL.separator!r} here, as CRFsuite's tools do: "
            "train on lists of names, or through partwise.compat"
        )
    labels = model.classes.tolist()
    if not all(isinstance(label, str) for label in labels):
        raise ValueError(f"files of CRFsuite hold labels that are strings, not {type(labels[0]).__name__}")
    attributes, columns, weights = model.node_features()
    _, cells, others = model.edge_features()
    temperature = get_loss(tagger.loss).temperature or 1.0
    weights, others = weights / temperature, others / temperature
    some, pairs = weights != 0, others != 0
    used = np.zeros(model.n_attributes, dtype=bool)
    used[attributes[some]] = True
    kept, number = reader.keep(used)
    return LinearChain(
        labels,
        np.asarray(kept.known.bytes),
        np.asarray(kept.known.offsets),
        np.stack([number[attributes[some]], columns[some]]),
        weights[some],
        np.stack(np.divmod(cells[pairs], model.width)),
        others[pairs],
    )


def write(chain: LinearChain, path: str | os.PathLike[str]) -> None:
    """Write a chain so that CRFsuite reads it; ValueError for names that its strings cannot hold."""
    if (chain.names == 0).any() or any("\0" in label for label in chain.labels):
        raise ValueError("a name or label has the character 0, which ends CRFsuite's strings")
    n_labels, n = len(chain.labels), chain.n_attributes
    order = np.lexsort((chain.states[1], chain.states[0]))
    states, pairs = chain.states[:, order], chain.transitions
    features = np.zeros(states.shape[1] + pairs.shape[1], dtype=_FEATURE)
    features["kind"] = np.repeat([_STATE, _TRANSITION], [states.shape[1], pairs.shape[1]])
    features["source"], features["label"] = np.concatenate([states, pairs], axis=1)
    features["weight"] = np.concatenate([chain.state_weights[order], chain.transition_weights])
    blocks = [
        bytes(_HEADER),
        b"FEAT" + _ints_of(_CHUNK + features.nbytes, len(features)) + features.tobytes(),
        _string_table(*names_of(chain.labels)),
        _string_table(chain.names, chain.offsets),
    ]
    *places, size = accumulate(map(len, blocks))
    blocks.append(bytes(-size % 4))  # lists of features begin at multiples of 4
    for name, source, first, count, spare in (
        (b"LFRF", pairs[0], states.shape[1], n_labels, 2),
        (b"AFRF", states[0], 0, n, 0),
    ):
        places.append(sum(map(len, blocks)))
        blocks.append(_lists(name, source, first, count, spare, places[-1]))
    size = sum(map(len, blocks))
    if size >= 1 << 32:
        raise ValueError(f"the model takes {size} bytes, and CRFsuite's files have at most {(1 << 32) - 1}")
    blocks[0] = MAGIC + _ints_of(size) + _TYPE + _ints_of(_VERSION, 0, n_labels, n, *places)
    with atomic_write(path) as file:
        file.writelines(blocks)


def _lists(name: bytes, source: Ints, first: int, count: int, spare: int, place: int) -> bytes:
    """Return lists of features `first`, `first` + 1, ... by their sources; the last `spare` ones have none."""
    lengths = np.bincount(source, minlength=count)
    heads, begin = pointers(lengths + 1)[:-1], _CHUNK + 4 * (count + spare)
    starts = np.zeros(count + spare, dtype="<u4")
    starts[:count] = place + begin + 4 * heads
    content = np.empty(len(source) + count, dtype="<u4")
    content[heads] = lengths
    content[runs(heads + 1, lengths)] = first + np.argsort(source, kind="stable")
    return name + _ints_of(begin + content.nbytes, count + spare) + starts.tobytes() + content.tobytes()


def _string_table(text: Array, offsets: Ints) -> bytes:
    lengths = np.diff(offsets)
    n = len(lengths)
    starts = pointers(lengths + 9)  # records: two numbers, the bytes, a zero
    records = np.zeros(int(starts[-1]), dtype=np.uint8)
    head = np.stack([np.arange(n), lengths + 1], axis=1).astype("<u4").view(np.uint8).reshape(n, 8)
    records[starts[:-1, None] + np.arange(8)] = head
    records[runs(starts[:-1] + 8, lengths)] = text
    where = _STRINGS + starts[:-1]
    hashes = hash_names(text, offsets)
    tables, refs, place = [], np.zeros((_TABLES, 2), dtype="<u4"), _STRINGS + len(records)
    for k in np.unique(hashes % _TABLES).tolist():
        chosen = np.flatnonzero(hashes % _TABLES == k)
        table = _hash_table(hashes[chosen], where[chosen])
        refs[k] = place, len(table)
        tables.append(table.tobytes())
        place += table.nbytes
    size = place + 4 * n
    header = b"CQDB" + _ints_of(size, 0, _BYTE_ORDER, n, place if n else 0)
    return b"".join([header, refs.tobytes(), records.tobytes(), *tables, where.astype("<u4").tobytes()])


def _hash_table(hashes: NDArray[np.uint32], where: Ints) -> NDArray[np.uint32]:
    size = 2 * len(hashes)
    table, taken = np.zeros((size, 2), dtype="<u4"), [False] * size
    for value, at in zip(hashes.tolist(), where.tolist(), strict=True):
        place = (value >> 8) % size
        while taken[place]:
            place = (place + 1) % size
        taken[place] = True
        table[place] = value, at
    return table


def _ints_of(*numbers: int) -> bytes:
    return np.array(numbers, dtype="<u4").tobytes()


def hash_names(text: Array, offsets: Ints) -> NDArray[np.uint32]:
    """Return Jenkins's lookup3 hash (little-endian, seed 0) of every name with its final zero."""
    lengths = np.diff(offsets) + 1
    out = np.empty(len(lengths), dtype=np.uint32)
    blocks = -(-lengths // 12)
    for count in np.unique(blocks).tolist():
        chosen = np.flatnonzero(blocks == count)
        bytes_ = np.zeros(12 * count * len(chosen), dtype=np.uint8)
        sizes = lengths[chosen] - 1
        bytes_[runs(12 * count * np.arange(len(chosen)), sizes)] = text[runs(offsets[chosen], sizes)]
        words = bytes_.view("<u4").astype(np.uint32).reshape(len(chosen), count, 3)
        out[chosen] = _lookup3(words, lengths[chosen].astype(np.uint32))
    return out


def _lookup3(words: NDArray[np.uint32], lengths: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return every row's hash; all sums are modulo 2^32, and `turn` rotates to the left."""

    def turn(x: NDArray[np.uint32], by: int) -> NDArray[np.uint32]:
        return (x << np.uint32(by)) | (x >> np.uint32(32 - by))

    a = b = c = np.uint32(0xDEADBEEF) + lengths
    for k in range(words.shape[1]):
        a, b, c = a + words[:, k, 0], b + words[:, k, 1], c + words[:, k, 2]
        if k + 1 < words.shape[1]:
            for by in (4, 6, 8, 16, 19, 4):  # the three change places after each turn
                a, c = (a - c) ^ turn(c, by), c + b
                a, b, c = b, c, a
    for by in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - turn(b, by)
        a, b, c = b, c, a
    return b
