"""Solvers that raise the dual over distributions or marginals: exponentiated gradient, SDCA, SMO, excessive gap."""
