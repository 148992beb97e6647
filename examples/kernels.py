"""
Kernels
=======

A chain that compares pictures by a kernel: handwritten digits with noise, in strings that follow a Markov chain.
"""

# %%
# With a kernel the weights are never formed: the dual variables are, by solvers that work on the dual.

import matplotlib.pyplot as plt

from partwise import SequenceTagger
from partwise.datasets import digit_strings

X, y, X_test, y_test = digit_strings(60, seed=0, noise=0.35)

linear = SequenceTagger(loss="log", C=0.1).fit(X, y)
kernel = SequenceTagger(loss="log", C=1.0, kernel="rbf", gamma=0.03).fit(X, y)
for name, tagger in (("linear", linear), ("rbf", kernel)):
    print(f"{name:6} {tagger.score(X_test, y_test):.1%} of the digits right; {tagger.result_}")

# %%
# A test string, and what both models read.

shown = max(range(len(X_test)), key=lambda i: len(y_test[i]))
figure, axes = plt.subplots(1, len(y_test[shown]), figsize=(9, 2.2), layout="constrained")
answers = [tagger.predict_single(X_test[shown]) for tagger in (linear, kernel)]
for panel, pixels, gold, one, two in zip(axes, X_test[shown], y_test[shown], *answers, strict=True):
    panel.imshow(pixels.reshape(8, 8), cmap="gray_r")
    panel.set(xticks=[], yticks=[])
    for line, (name, guess) in enumerate((("linear", one), ("rbf", two))):
        colour = "black" if guess == gold else "tab:red"
        panel.text(0.5, -0.18 - 0.2 * line, f"{name} {guess}", color=colour, ha="center", transform=panel.transAxes)
figure.suptitle("wrong answers are red")
plt.show()
