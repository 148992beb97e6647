"""Solvers that go down the primal objective of smooth losses: `lbfgs`, `newton`, `owlqn`."""
