"""Benchmarks: one module per question. Rivals run together, and independent code evaluates all objectives.

``python -m benchmarks --help`` lists the questions.
"""
