"""Slow and simple implementations of what the library computes, written without the library, to test it against."""
