"""Files: readers that say where a file is wrong, writers that leave no half-written file behind."""
# ruff: noqa: I001 - the names of a module on one line

from typing import TYPE_CHECKING

from partwise.support.lazy import exports

if TYPE_CHECKING:
    from partwise.io.coded import CodedSequences as CodedSequences, Sentences as Sentences
    from partwise.io.columns import (
        parse_columns as parse_columns,
        read_columns as read_columns,
        write_columns as write_columns,
    )
    from partwise.io.conllu import (
        ConlluReader as ConlluReader,
        ConlluSentence as ConlluSentence,
        ConlluSentences as ConlluSentences,
        make_sentence as make_sentence,
        parse_conllu as parse_conllu,
        read_conllu as read_conllu,
        read_conllx as read_conllx,
        write_conllu as write_conllu,
        write_conllx as write_conllx,
    )
    from partwise.io.costs import read_costs as read_costs
    from partwise.io.errors import FormatError as FormatError
    from partwise.io.files import (
        atomic_write as atomic_write,
        read_bytes as read_bytes,
        read_text as read_text,
        unpack_limit as unpack_limit,
    )
    from partwise.io.items import parse_items as parse_items, read_items as read_items, write_items as write_items
    from partwise.io.svmlight import (
        parse_svmlight as parse_svmlight,
        read_svmlight as read_svmlight,
        write_svmlight as write_svmlight,
    )
    from partwise.io.trees import (
        format_tree as format_tree,
        iterate_trees as iterate_trees,
        parse_trees as parse_trees,
        read_trees as read_trees,
        write_trees as write_trees,
    )

__getattr__, __dir__, __all__ = exports(
    __name__,
    {
        "coded": ("CodedSequences", "Sentences"),
        "columns": ("parse_columns", "read_columns", "write_columns"),
        "conllu": (
            "ConlluReader",
            "ConlluSentence",
            "ConlluSentences",
            "make_sentence",
            "parse_conllu",
            "read_conllu",
            "read_conllx",
            "write_conllu",
            "write_conllx",
        ),
        "costs": ("read_costs",),
        "errors": ("FormatError",),
        "files": ("atomic_write", "read_bytes", "read_text", "unpack_limit"),
        "items": ("parse_items", "read_items", "write_items"),
        "svmlight": ("parse_svmlight", "read_svmlight", "write_svmlight"),
        "trees": ("format_tree", "iterate_trees", "parse_trees", "read_trees", "write_trees"),
    },
)
