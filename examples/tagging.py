"""
Tagging
=======

Parts of speech by a conditional random field: words in, tags out, and how sure the model is of each.
"""

# %%
# The sentences are those of a small grammar, in which some words have several tags. A template makes the features: the
# words around a position, prefixes, suffixes, shapes.

from partwise import SequenceTagger
from partwise.datasets import make_treebank

bank = make_treebank(240, seed=0)
train, test = bank[:160], bank[160:]

tagger = SequenceTagger(template="pos", loss="log", C=1.0).fit(train.words, train.tags)
print(tagger.result_)
print(f"{tagger.score(test.words, test.tags):.1%} of the words right")

# %%
# The certificate says that no weights can have an objective below `dual`. Here is the sentence that the model is least
# sure of; bars are probabilities, and where the model is wrong the right tag is red.

from partwise.report import draw_tags

hardest = tagger.entropy(test.words).argmax()
words, gold = test.words[hardest], test.tags[hardest]
tags = tagger.predict_single(words)
sure = [row[tag] for row, tag in zip(tagger.predict_marginals_single(words), tags, strict=True)]

drawing = draw_tags(words, tags, gold, sure)  # a notebook shows it; a file: Path("tags.svg").write_text(drawing)
drawing
