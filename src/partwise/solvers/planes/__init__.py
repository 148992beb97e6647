"""Solvers that keep planes below the losses: `bmrm` and `one-slack`."""
