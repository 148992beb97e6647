"""Solvers that keep a set of labellings for each example: `bcfw`, `dcd`, `cpd`, `cutting-plane`."""
