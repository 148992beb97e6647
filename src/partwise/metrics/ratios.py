"""Precision, recall and F1 of counts."""


class Ratios:
    """For classes with these counts; fractions of 1, 0 where nothing was counted."""

    n_gold: int
    n_predicted: int
    n_right: int

    @property
    def precision(self) -> float:
        """The share of what was predicted that is right."""
        return self.n_right / self.n_predicted if self.n_predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of what is there that was predicted."""
        return self.n_right / self.n_gold if self.n_gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        both = self.n_gold + self.n_predicted
        return 2.0 * self.n_right / both if both else 0.0
