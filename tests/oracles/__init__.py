"""Slow and obvious versions of everything the library computes, written without it."""
