"""What the taggers of sequences share: answers for one sequence, explanations by position, and names of attributes."""

from typing import ClassVar, TypeVar

from partwise.estimators.base import Answer, StructuredEstimator
from partwise.features.template import Template
from partwise.models.inspection import Explanation
from partwise.models.sequences import SequenceModel

SequenceModelT = TypeVar("SequenceModelT", bound=SequenceModel)


class TokenTagger(StructuredEstimator[SequenceModelT]):
    """Base of the estimators whose examples are sequences of positions with attributes."""

    _input_forms: ClassVar = ("sparse", "dict", "string")
    _needs_answers: ClassVar = True

    def predict_single(self, sequence: object) -> list[Answer]:
        """Return the best labels of one sequence."""
        labels: list[Answer] = self.predict([sequence])[0]
        return labels

    @property
    def attributes_(self) -> list[str] | None:
        """Attribute names, the most frequent first; None for arrays."""
        return self._fitted().reader.names()

    @property
    def template_(self) -> Template | None:
        """The template that it reads sentences by; None where the input has its attributes already."""
        return self._fitted().reader.template

    def explain(
        self, sequence: object, position: int | None = None, *, label: Answer = None, against: Answer = None
    ) -> Explanation:
        """Return the features that make the best labelling of a sequence better than the second-best one.

        Their amounts add up to the difference of the two scores.

        Parameters
        ----------
        sequence : a sequence as in `X`
        position : int, optional
            Ask for the label there: the best labelling is compared with the best one that has another label at this
            position, so that the contributions say why this label, here, and what the neighbours have to do with it.
        label : optional
            A label for the position in place of the best one's.
        against
            The label to compare with; None: the runner-up, that of the best labelling that has another one.
        """
        found: Explanation = super().explain(sequence, position, label, against)
        return found
