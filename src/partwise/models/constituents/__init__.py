"""Constituent trees under a treebank's grammar."""
