"""
Constituents
============

Phrases of a sentence: a grammar is read off the trees, and its rules and the words around spans get weights.
"""

# %%
# A tree is a tuple (label, child, ...); a word is a string.

from partwise import ConstituencyParser
from partwise.datasets import make_treebank
from partwise.metrics import parseval

bank = make_treebank(180, seed=0)
train, test = bank[:140], bank[140:]

parser = ConstituencyParser(C=1.0, tol=1e-2).fit(train.words, train.trees)
predicted = parser.predict(test.words)
print(parser.result_)
print(f"labelled F1 {parseval(test.trees, predicted).f1:.1%}")

# %%
# A tree beside the right one: phrases that the other does not have are red.

from partwise.report import draw_tree

wrong = [i for i, tree in enumerate(predicted) if tree != test.trees[i]]
shown = min(wrong or range(len(predicted)), key=lambda i: len(test.words[i]))

drawing = draw_tree(predicted[shown], test.trees[shown])
drawing
