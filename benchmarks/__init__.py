"""Benchmarks: one module per question, rivals in the same run, objectives evaluated by the same independent code.

``python -m benchmarks --help`` lists the questions.
"""
