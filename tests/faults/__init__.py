"""What happens when things go wrong, measured: one module per kind of fault, each with its rows of a table.

``python -m tests.faults`` runs them in child processes, keeps results in a file of JSON lines, goes on from there when
it is called again, and writes docs/reliability.md. ``make test`` runs a few trials of each row.
"""
