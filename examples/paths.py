"""
Regularisation paths
====================

Many strengths of the penalty in one run, each from the solution of the one before, each with a certificate.
"""

# %%
# From a strong l2 penalty (small C) to a weak one; `use` puts any point of the path in place.

import matplotlib.pyplot as plt
import numpy as np

from partwise import SequenceTagger
from partwise.datasets import make_treebank

bank = make_treebank(240, seed=0)
train, held_out = bank[:120], bank[120:]
Cs = np.geomspace(1e-3, 100, 9)

tagger = SequenceTagger(template="pos")
path = tagger.fit_path(Cs, train.words, train.tags)


def scores(results):
    return [tagger.use(result).score(held_out.words, held_out.tags) for result in results]


l2_scores = scores(path)
print(f"largest relative gap {max(result.relative_gap for result in path):.1e}")

# %%
# The same over l1, from the strength at which all weights are zero: fewer weights, for about the same score.

sparse = SequenceTagger(template="pos", penalty="elasticnet")
l1_path = sparse.fit_l1_path(0.02, train.words, train.tags, points=9)
tagger = sparse
l1_scores = scores(l1_path)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
left.semilogx(Cs, l2_scores, marker="o")
left.set(xlabel="C (l2 penalty)", ylabel="accuracy on held-out sentences")
right.semilogx([max(result.n_nonzero, 1) for result in l1_path], l1_scores, marker="o", color="tab:orange")
right.set(xlabel="weights that are not zero (l1 penalty)")
for panel in (left, right):
    panel.grid(alpha=0.3)
plt.show()
