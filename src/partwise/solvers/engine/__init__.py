"""What every solver is made of: the interface, the loop, the registry, checkpoints, and the choice of a solver."""
