"""Solvers that change one weight, or one column of features, at a time: coordinate descent and iterative scaling."""
