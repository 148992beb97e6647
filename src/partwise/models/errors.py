"""What a model refuses."""


class NotAvailable(ValueError, AttributeError):
    """What a model, a structure or a loss cannot do."""


class ConstraintError(ValueError):
    """Constraints that leave a sequence (or a sentence) nothing to choose from; places are counted from 0."""

    def __init__(self, message: str, sequence: int, position: int | None = None) -> None:
        super().__init__(message)
        self.sequence, self.position = sequence, position

    def __reduce__(self) -> tuple[type["ConstraintError"], tuple[str, int, int | None]]:
        return type(self), (str(self), self.sequence, self.position)
