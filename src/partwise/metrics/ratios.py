"""Shares of counts: precision, recall, F1."""


def share(part: float, whole: float) -> float:
    """Return part / whole, 0 where nothing was counted."""
    return part / whole if whole else 0.0


class Ratios:
    """Precision, recall and F1, as fractions of 1, for classes with these counts."""

    n_gold: int
    n_predicted: int
    n_right: int

    @property
    def precision(self) -> float:
        """The share of what was predicted that is right."""
        return share(self.n_right, self.n_predicted)

    @property
    def recall(self) -> float:
        """The share of what is in gold that was predicted."""
        return share(self.n_right, self.n_gold)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return share(2.0 * self.n_right, self.n_gold + self.n_predicted)
