"""One label per row of numbers."""

from partwise.models.classes.model import ClassesModel

__all__ = ["ClassesModel"]
