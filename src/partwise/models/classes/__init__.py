"""One label per row of numbers."""
