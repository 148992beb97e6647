"""A fitted tagger's weights by name."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from partwise.estimators.chains import ChainModel
from partwise.estimators.inputs import ColumnReader, Floats
from partwise.estimators.kernel_chain import KernelChainModel
from partwise.estimators.local import LocalModel
from partwise.estimators.warm import edge_names


class ReadableTagger:
    """What can be read off a tagger."""

    classes_: Any
    coef_: Floats
    _reader: Any
    _model: ChainModel | KernelChainModel | LocalModel

    @property
    def attributes_(self) -> list[str] | None:
        """Attribute names, the most frequent first; None for arrays."""
        check_is_fitted(self)
        return None if isinstance(self._reader, ColumnReader) else self._reader.names()

    @property
    def unknown_rate_(self) -> float:
        """Share of the attributes in the last input that are not in the vocabulary; 0 for arrays."""
        check_is_fitted(self)
        return 0.0 if isinstance(self._reader, ColumnReader) else float(self._reader.unknown_rate)

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights of (attribute, label) pairs; attributes are column numbers for arrays."""
        check_is_fitted(self)
        if isinstance(self._model, KernelChainModel):
            raise AttributeError("with a kernel there are no weights of attributes")
        names = self.attributes_ or range(self._model.n_attributes)
        classes = self.classes_.tolist()
        parts = (part.tolist() for part in self._model.node_features(self.coef_))
        return {(names[a], classes[b]): w for a, b, w in zip(*parts, strict=True)}

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """Weights of (label, next label) pairs; with `transition_features` also of (attribute, label, next label).

        model="maxent": of (label before, label) and (label two before, label before, label); None is before the
        sequence's beginning.
        """
        check_is_fitted(self)
        if isinstance(self._model, LocalModel):
            return self._model.named_history(self.coef_, self.classes_.tolist())
        model = self._model
        names: list[tuple[Any, ...]] = [()] if isinstance(model, KernelChainModel) else edge_names(self._reader, model)
        width = self._model.width
        classes = self.classes_.tolist()
        pairs = {a * width + b: (first, second) for a, first in enumerate(classes) for b, second in enumerate(classes)}
        parts = (part.tolist() for part in self._model.edge_features(self.coef_))
        return {(*names[e], *pairs[cell]): w for e, cell, w in zip(*parts, strict=True) if cell in pairs}

    @property
    def boundary_features_(self) -> dict[tuple[str, Any], float]:
        """Weights of ("begin", label) and ("end", label); empty unless `ends`."""
        check_is_fitted(self)
        if isinstance(self._model, LocalModel):
            return {}
        rows = self._model.split(self.coef_)[2].reshape(-1, self._model.width)
        found = zip(("begin", "end"), rows.tolist(), strict=False)
        return {(name, label): w for name, row in found for label, w in zip(self.classes_.tolist(), row, strict=False)}
