"""Taggers that several test modules use."""

from __future__ import annotations

EXACT = {"solver": "lbfgs", "tol": 1e-20}
VARIANTS = [
    {},
    {"features": "all"},
    {"ends": True, "transitions": "all"},
    {"transition_features": ["c1", "c2"], "ends": True},
    {"transition_features": "all", "features": "all"},
    {"loss": "softmax-margin"},
]


def named(variant):
    return ", ".join(f"{key}={value}" for key, value in variant.items()) or "default"
