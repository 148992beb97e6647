"""
Graphs
======

Cells of a grid that depend on their neighbours: land and water seen through noise, with exact inference by junction
trees.
"""

# %%
# A graph is a tuple: features of nodes, edges, features of edges (none here), types of edges.

import matplotlib.pyplot as plt
import numpy as np

from partwise import GraphLabeler, MaxentClassifier

rng = np.random.default_rng(0)
rows, columns = 5, 24
number = np.arange(rows * columns).reshape(rows, columns)
right = np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1)
down = np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1)
edges = np.concatenate([right, down])
types = ["right"] * len(right) + ["down"] * len(down)


def make(n):
    X, y = [], []
    for _ in range(n):
        shore = columns // 2 + np.cumsum(rng.integers(-2, 3, rows))
        water = np.arange(columns) >= shore[:, np.newaxis]
        depth = water + rng.normal(size=water.shape)
        X.append((depth.reshape(-1, 1), edges, None, types))
        y.append(np.where(water, "water", "land").ravel().tolist())
    return X, y


X, y = make(40)
X_test, y_test = make(20)

# %%
# A classifier sees each cell alone, a graph labeler all of them.

alone = MaxentClassifier().fit(np.concatenate([x[0] for x in X]), np.concatenate(y))
labeler = GraphLabeler(C=1.0).fit(X, y)
print(labeler.result_)

depths, truth = np.concatenate([x[0] for x in X_test]), np.concatenate(y_test)
print(f"cell by cell {alone.score(depths, truth):.1%}, as graphs {labeler.score(X_test, y_test):.1%}")

# %%
# The probability of water in each cell.

water = labeler.classes_.tolist().index("water")
pictures = {
    "what is seen": X_test[0][0],
    "what is there": np.array(y_test[0]) == "water",
    "cell by cell": alone.predict_proba(X_test[0][0])[:, water],
    "as a graph": labeler.predict_marginals(X_test[:1], output="array")[0][:, water],
}
figure, axes = plt.subplots(4, 1, figsize=(6, 6.4), layout="constrained")
for panel, (title, values) in zip(axes, pictures.items(), strict=True):
    panel.imshow(np.asarray(values, dtype=float).reshape(rows, columns), cmap="Blues")
    panel.set(title=title, xticks=[], yticks=[])
plt.show()
