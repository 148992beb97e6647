"""Labels of sequences: chains of first and second order, chains with kernels, and maxent chains."""
