"""Ready-made templates. Words are in column 0.

chunk   the 19 templates of CRFsuite's chunking example, with parts of speech in column 1
pos     words up to two tokens away and the spelling, after Ratnaparkhi 1996
ner     words, shapes and affixes; optionally columns of tags such as parts of speech, clusters (as Turian et al.
        2010: the first 4, 6, 10 and 20 bits of Brown clusters) and lists of names
morph   as "pos", with longer endings, and the word in lower case; optionally columns of tags, also together with
        endings, and columns of features such as Case=Nom|Number=Sing, one by one
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from partwise._core import CodedColumn, Sentences
from partwise.features.template import MOST_WORDS, Gazetteer, Template
from partwise.io.conllu import split_feats
from partwise.io.errors import FormatError
from partwise.io.files import Path, read_text

#: A column of tags has at most this many values, or this share of the tokens.
FEW_TAGS, TAG_SHARE = 60, 0.02


def preset(name: str, **options: Any) -> Template:
    """Return a template by name: "chunk", "pos", "ner" or "morph".

    tags ("ner", "morph"): numbers of columns that hold tags, such as parts of speech. features ("morph"): numbers of
    columns that hold lists of features, with the names of the features to look at. clusters ("ner"): a mapping of words
    to bit strings, or a file (see `read_clusters`). gazetteers ("ner"): a mapping of names to phrases, or a list of
    files, one phrase per line, each named by its file.
    """
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}: take one of {', '.join(PRESETS)}")
    return PRESETS[name](**options)


def preset_for(name: str, table: Sentences, **options: Any) -> Template:
    """Return the `preset` that also uses this table's columns of tags and of features ("ner" and "morph")."""
    found: dict[str, Any] = {}
    if name == "ner":
        found = {"tags": tag_columns(table)}
    elif name == "morph":
        lists = _feature_columns(table)
        found = {"tags": tuple(k for k in range(1, table.n_columns) if k not in lists), "features": lists}
    return preset(name, **options, **{name: columns for name, columns in found.items() if columns})


def tag_columns(table: Sentences) -> tuple[int, ...]:
    """Return the columns after the first that hold tags (parts of speech, ...): few values, and more than one."""
    most = max(FEW_TAGS, TAG_SHARE * table.n_tokens)
    return tuple(k for k in range(1, table.n_columns) if 1 < len(_values(table, k)) <= most)


def _feature_columns(table: Sentences) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for k in range(1, table.n_columns):
        try:
            keys = {key for cell in _values(table, k) for key in split_feats(cell)}
        except ValueError:
            continue
        if keys:
            found[k] = sorted(keys)
    return found


def _values(table: Sentences, k: int) -> list[str]:
    return CodedColumn.of(table, k).names() if table.n_tokens else []


#: The first and the last token, and weights of pairs of labels.
_ENDS = ("A __BOS__%first", "A __EOS__%last", "B", "")


def _attribute(name: str, macro: str) -> str:
    return f"A {name}={macro}"


def _at(name: str, macro: str, offsets: Iterable[int]) -> list[str]:
    """Return a line "A name[k]=macro" for each offset k, which replaces {} in the macro."""
    return [_attribute(f"{name}[{k}]", macro.format(k)) for k in offsets]


def _pairs(name: str, macro: str) -> list[str]:
    """Return lines that join the cells at -1 and 0, and those at 0 and 1."""
    return [_attribute(f"{name}[{k}]|{name}[{k + 1}]", f"{macro.format(k)}|{macro.format(k + 1)}") for k in (-1, 0)]


def _affixes(kind: str, longest: int) -> list[str]:
    return [_attribute(kind, f"%{kind}[0,0,{n}]") for n in range(1, longest + 1)]


def _chunk() -> Template:
    lines = []
    words, tags = (range(-2, 3), (-1, 0)), (range(-2, 3), range(-2, 2), range(-2, 1))  # first offsets, by size
    for column, name, firsts in ((0, "w", words), (1, "pos", tags)):
        for size, each in enumerate(firsts, 1):
            for offsets in (range(first, first + size) for first in each):
                macro = "|".join(f"%x[{k},{column}]" for k in offsets)
                lines.append(_attribute("|".join(f"{name}[{k}]" for k in offsets), macro))
    return Template("\n".join([*lines, *_ENDS]))


def _pos() -> Template:
    lines = _at("w", "%x[{},0,__NONE__]", range(-2, 3)) + _affixes("prefix", 4) + _affixes("suffix", 4)
    lines += [f"A {name}%has{name}[0,0]" for name in ("digit", "upper", "hyphen")]
    return Template("\n".join([*lines, "B", ""]))


def _ner(
    clusters: Mapping[str, str] | Path | None = None, gazetteers: Any = None, tags: Sequence[int] = ()
) -> Template:
    lines = ["A bias", _attribute("w[0]", "%x[0,0]")]
    lines += _at("lower", "%lower[{},0]", range(-2, 3)) + _pairs("lower", "%lower[{},0]")
    lines += _at("shape", "%shape[{},0]", range(-1, 2))
    lines += _at("shortshape", "%shortshape[{},0]", range(-2, 3)) + _pairs("shortshape", "%shortshape[{},0]")
    lines += _affixes("prefix", 4) + _affixes("suffix", 4)
    lines += [f"A {flag}[{k}]%{flag}[{k},0]" for flag in ("capital", "allupper", "hasdigit") for k in range(-1, 2)]
    lines += [f"A {flag}%{flag}[0,0]" for flag in ("alldigits", "hashyphen")]
    for column in tags:
        macro = f"%x[{{}},{column}]"
        lines += _at(f"tag{column}", macro, range(-2, 3)) + _pairs(f"tag{column}", macro)
    resources: dict[str, Any] = {}
    if clusters is not None:
        resources["clusters"] = dict(clusters) if isinstance(clusters, Mapping) else read_clusters(clusters)
        lines += [_attribute(f"cluster{n}[{k}]", f"%cluster[{k},0,{n}]") for k in range(-2, 3) for n in (4, 6, 10, 20)]
    if gazetteers is not None:
        resources["gazetteers"] = found = read_gazetteers(gazetteers)
        lines += [_attribute(f"{name}[{k}]", f"%gazetteer[{k},0,{name}]") for name in found for k in range(-1, 2)]
    return Template("\n".join([*lines, *_ENDS]), **resources)


def _morph(tags: Sequence[int] = (), features: Mapping[int, Sequence[str]] | None = None) -> Template:
    lines = _at("w", "%x[{},0,__NONE__]", range(-2, 3))
    lines += [_attribute("lower", "%lower[0,0]"), _attribute("shape", "%shortshape[0,0]")]
    lines += _affixes("prefix", 4) + _affixes("suffix", 6) + _at("suffix", "%suffix[{},0,3]", (-1, 1))
    lines += [f"A {name}%has{name}[0,0]" for name in ("digit", "upper", "hyphen")]
    for column in tags:
        name, tag = f"tag{column}", f"%x[0,{column}]"
        lines += _at(name, f"%x[{{}},{column}]", range(-2, 3))
        lines += _at(f"{name}|{name}", f"{tag}|%x[{{}},{column}]", (-1, 1))
        lines += [_attribute(f"{name}|lower", f"{tag}|%lower[0,0]")]
        lines += [_attribute(f"{name}|suffix", f"{tag}|%suffix[0,0,{n}]") for n in range(1, 7)]
    for column, keys in (features or {}).items():
        for key in keys:
            value = f"%feat[{{}},{column},{key}]"
            lines += _at(key, value, (-1, 0, 1))
            lines += [_attribute(f"{key}|suffix", f"{value.format(0)}|%suffix[0,0,{n}]") for n in range(1, 5)]
    return Template("\n".join([*lines, "B", ""]))


PRESETS: dict[str, Callable[..., Template]] = {"chunk": _chunk, "pos": _pos, "ner": _ner, "morph": _morph}


def read_gazetteers(given: Any) -> dict[str, Gazetteer]:
    """Return lists of phrases by name, from a mapping or from files (one phrase per line) named after them."""
    if isinstance(given, (str, os.PathLike)):
        given = [given]
    if not isinstance(given, Mapping):
        paths = {path: FilePath(path).name.split(".")[0] for path in given}
        if len(set(paths.values())) < len(paths):
            raise ValueError(f"two gazetteers have the same name: {', '.join(map(str, paths))}")
        given = {name: _read_phrases(path) for path, name in paths.items()}
    found = {}
    for name, phrases in given.items():
        if not name or set(name) & set("%,[]\n\r") or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise ValueError(f"{name!r} cannot be a gazetteer's name in a template")
        found[name] = phrases if isinstance(phrases, Gazetteer) else Gazetteer(phrases)
    return found


def _read_phrases(path: Path) -> Iterable[str]:
    lines = read_text(path).split("\n")
    for number, line in enumerate(lines, 1):
        if len(words := line.split()) > MOST_WORDS:
            raise FormatError(f"a phrase of {len(words)} words, more than {MOST_WORDS}: {words[0]} ...", path, number)
    return [line for line in lines if line.strip()]


def read_clusters(path: Path) -> dict[str, str]:
    """Read words and their bit strings from a file of lines ``bits TAB word`` or ``bits TAB word TAB count``."""
    clusters = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        line = line.removesuffix("\r")
        if not line:
            continue
        fields = line.split("\t")
        if len(fields) not in (2, 3):
            raise FormatError("expected a bit string, a tab and a word", path, number, 1)
        if not fields[0] or set(fields[0]) - {"0", "1"}:
            raise FormatError(f"{fields[0]!r} is not a string of bits", path, number, 1)
        if not fields[1]:
            raise FormatError("the word is empty", path, number, len(fields[0]) + 2)
        clusters[fields[1]] = fields[0]
    return clusters
