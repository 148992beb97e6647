"""What a treebank's trees have beyond phrases: empty elements and function tags."""

from __future__ import annotations

import re
from typing import Any

from partwise.models.constituents.treebank.nodes import Tree, check_tree, is_leaf, postorder

#: The tag of what is not in the text: traces and other empty elements.
EMPTY = "-NONE-"
#: What follows a label: function tags and indices (NP-SBJ-1, NP=2), a second choice (ADVP|PRT).
_SUFFIX = re.compile(r"(?<=.)[-=|].*", re.DOTALL)


def bare_label(label: str) -> str:
    """A label without function tags and indices; labels in hyphens, as ``-LRB-``, have none."""
    return label if label.startswith("-") else _SUFFIX.sub("", label, count=1)


def clean_tree(tree: Tree, *, traces: bool = True, functions: bool = True, what: str = "the tree") -> Tree:
    """A tree without empty elements and function tags.

    Parameters
    ----------
    tree : nested tuples
    traces : whether words tagged ``-NONE-`` are left out, and phrases that have no other words
    functions : whether labels are cut to what is before their function tags
    what : what messages call the tree

    Raises
    ------
    ValueError
        If something is not a tree, or nothing is left of it.
    """
    check_tree(tree, what)
    # Children that are ready, from left to right; None where nothing was left.
    ready: list[Any] = []
    for node in postorder(tree):
        label = bare_label(node[0]) if functions else node[0]
        if is_leaf(node):
            ready.append(None if traces and node[0] == EMPTY else (label, node[1]))
            continue
        n_inner = sum(not isinstance(child, str) for child in node[1:])
        inner = iter(ready[len(ready) - n_inner :])
        children = [child if isinstance(child, str) else next(inner) for child in node[1:]]
        del ready[len(ready) - n_inner :]
        kept = [child for child in children if child is not None]
        ready.append((label, *kept) if kept else None)
    (cleaned,) = ready
    if cleaned is None:
        raise ValueError(f"{what}: all of its words are empty elements ({EMPTY})")
    if cleaned[0] == "" and len(cleaned) == 2 and isinstance(cleaned[1], tuple):
        return tuple(cleaned[1])  # as readers of files do: an outer pair of brackets without a label
    return tuple(cleaned)


def common_root(trees: list[Tree]) -> str | None:
    """The label of a node that all trees begin with and that means nothing (TOP, ROOT); None if there is none.

    It has one child, which is not a word, and its label is nowhere else.
    """
    if not trees:
        return None
    label = trees[0][0]
    for tree in trees:
        if tree[0] != label or len(tree) != 2 or isinstance(tree[1], str):
            return None
        if any(node[0] == label for node in postorder(tree[1])):
            return None
    return str(label)
