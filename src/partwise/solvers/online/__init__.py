"""Solvers that change the weights after each example: `sgd`, `perceptron`, `mira`."""
