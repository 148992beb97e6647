"""
Solvers
=======

The same problem by several solvers: how fast the certified gap falls.
"""

# %%
# A problem is what `fit` would solve, ready for `solve`. Every result has the history of its certificates.

import matplotlib.pyplot as plt

from partwise import SequenceTagger, compare, solve
from partwise.datasets import make_treebank

bank = make_treebank(150, seed=0)
problem = SequenceTagger(template="pos", C=10.0).prepare(bank.words, bank.tags).problem

names = ["lbfgs", "newton", "eg", "eg-prox", "sdca"]
results = [solve(problem, name, tol=1e-6) for name in names]
for result in results:
    print(result)

# %%
# Each of them has a lower bound of the optimum and weights above it: any two agree as far as their gaps say.

lower, upper = max(result.dual for result in results), min(result.primal for result in results)
print(f"the optimum lies between {lower:.6f} and {upper:.6f}")

# %%
# All of them in one figure: gaps, and primal values above the best bound, against passes and seconds.

figure = compare(dict(zip(names, results, strict=True))).plot()
plt.show()
