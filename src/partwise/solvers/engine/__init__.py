"""Parts that all solvers share: the interface, the loop, the registry, checkpoints, and the choice of a solver."""
