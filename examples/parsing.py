"""
Dependency parsing
==================

Heads and relations of words: a distribution over projective trees, trained on (word, tag) pairs.
"""

# %%
# A sentence is a list of (word, tag), a tree a list of (head, relation); heads count from 1, and 0 is the root.

from partwise import DependencyParser
from partwise.datasets import make_treebank


def sentences(bank):
    return [list(zip(*rows, strict=True)) for rows in zip(bank.words, bank.tags, strict=True)]


def trees(bank):
    return [list(zip(*rows, strict=True)) for rows in zip(bank.heads, bank.labels, strict=True)]


bank = make_treebank(240, seed=0)
train, test = bank[:160], bank[160:]

parser = DependencyParser(C=1.0).fit(sentences(train), trees(train))
print(parser.result_)
print(f"{parser.score(sentences(test), trees(test)):.1%} of the words have the right head and relation")

# %%
# A sentence with a mistake, if there is one: wrong arcs are red, the right heads dashed below.

from partwise.report import draw_arcs

found = [list(zip(*tree, strict=True)) for tree in parser.predict(sentences(test))]
wrong = [i for i, (heads, _) in enumerate(found) if list(heads) != list(test.heads[i])]
shown = max(wrong or range(len(found)), key=lambda i: len(test.words[i]))

drawing = draw_arcs(test.words[shown], *found[shown], gold_heads=test.heads[shown])
drawing
