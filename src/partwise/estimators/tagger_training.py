"""How a tagger's features are made and its model is trained: chains, chains with kernels, the maxent tagger."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.estimators.chains import ChainModel, make_model
from partwise.estimators.common import TrainedEstimator, Training, check_choice, check_count, count_jobs
from partwise.estimators.inputs import ColumnReader, Floats, Ints, NameReader, Rows, Sequences, input_form
from partwise.estimators.kernel_chain import KernelChainModel, check_kernel_options, make_kernel_model
from partwise.estimators.local import LocalModel, check_options, make_local_model
from partwise.estimators.slots import Reader, edge_ids
from partwise.estimators.templates import TemplateReader, TextSequences, check_template_options, get_template
from partwise.estimators.warm import Fitted, carry_weights
from partwise.result import Result


class TrainedTagger(TrainedEstimator):
    """From rows and labels to a model and its weights."""

    model: str
    history: int
    features: str
    transitions: str
    transition_features: Any
    ends: bool
    min_count: int
    kernel: Any
    template: Any
    coef_: Floats
    classes_: Any
    _reader: Any
    _model: Any

    def _check_features(self) -> None:
        check_choice("features", self.features, ("observed", "all"))
        check_choice("transitions", self.transitions, ("auto", "observed", "all"))
        check_choice("model", self.model, ("crf", "maxent"))
        if self.model == "maxent":
            check_options(self)
        check_count("min_count", self.min_count)
        check_kernel_options(self)
        check_template_options(self)

    def _sequences(self, X: Any) -> Sequences:
        return Sequences.of(X) if self.template is None else TextSequences.of(X)

    def _first_reading(self, sequences: Sequences) -> tuple[Reader, Rows]:
        dropping = int(self.min_count) if self.features == "all" else 1
        if isinstance(sequences, TextSequences):
            reader = TemplateReader(get_template(self.template))
            return reader, reader.read(sequences, dropping, count_jobs(self.n_jobs))
        form = input_form(sequences)
        if form != "names":
            columns = ColumnReader()
            rows = columns.read(sequences)
            # Kernels compare whole rows, which is faster on dense ones.
            return columns, rows if self.kernel is not None else rows.compact()
        names = NameReader()
        rows = names.read(sequences, dropping)
        if not rows.n_attributes:
            raise ValueError("X has no attribute" + (f" that occurs {dropping} times" if dropping > 1 else ""))
        return names, rows

    def _fit_model(
        self, training: Training, reader: Any, rows: Rows, labels: Ints, classes: Any, weight: Floats | None
    ) -> tuple[ChainModel | KernelChainModel | LocalModel, Result]:
        fitted = {"classes_": classes, "_reader": reader}
        if self.model == "maxent":
            return self._train_locally(training, rows, labels, fitted, weight)
        if self.kernel is not None:
            return self._train_kernel(training, rows, labels, fitted, weight)
        return self._train_chain(training, rows, labels, fitted, weight)

    def _train_chain(
        self, training: Training, rows: Rows, labels: Ints, fitted: dict[str, Any], weight: Floats | None
    ) -> tuple[ChainModel, Result]:
        reader, classes = fitted["_reader"], fitted["classes_"]
        model = make_model(
            rows,
            labels,
            len(classes),
            observed=self.features == "observed",
            observed_transitions=self._observed_transitions(),
            edge_ids=edge_ids(self.transition_features, reader),
            edge_only=reader.edge_attributes() if isinstance(reader, TemplateReader) else None,
            plain_transitions=not isinstance(reader, TemplateReader) or reader.template.transitions,
            ends=bool(self.ends),
            min_count=int(self.min_count),
        )
        structure = model.structure(rows.lengths)
        result = self._train(
            training,
            (len(classes), model.edges is None, model.ends, rows.lengths),
            self._warm_weights(reader, model, classes),
            {**fitted, "_model": model},
            features=model.features(rows, structure),
            structure=structure,
            gold=structure.encode(labels),
            sample_weight=weight,
        )
        return model, result

    def _train_kernel(
        self, training: Training, rows: Rows, labels: Ints, fitted: dict[str, Any], weight: Floats | None
    ) -> tuple[KernelChainModel, Result]:
        n_labels = len(fitted["classes_"])
        model = make_kernel_model(rows, labels, n_labels, self, self._observed_transitions(), int(self.min_count))
        structure = model.structure(rows.lengths)
        result = self._train(
            training,
            ("kernel", n_labels, model.tied, model.ends, rows.lengths),
            None,
            {**fitted, "_model": model},
            features=model.training_features(structure),
            structure=structure,
            gold=structure.encode(labels),
            sample_weight=weight,
        )
        return model, result

    def _train_locally(
        self, training: Training, rows: Rows, labels: Ints, fitted: dict[str, Any], weight: Floats | None
    ) -> tuple[LocalModel, Result]:
        n_labels = len(fitted["classes_"])
        model = make_local_model(
            rows,
            labels,
            n_labels,
            observed=self.features == "observed",
            history=int(self.history),
            min_count=int(self.min_count),
        )
        structure = model.structure(rows.lengths)
        result = self._train(
            training,
            ("maxent", n_labels, rows.lengths),
            None,
            {**fitted, "_model": model},
            features=training.classifier_map(structure, model.contexts(rows, labels), model.nodes.core),
            structure=structure,
            gold=structure.encode(labels),
            sample_weight=None if weight is None else np.repeat(weight, rows.lengths),
        )
        return model, result

    def _observed_transitions(self) -> bool:
        return (self.features if self.transitions == "auto" else self.transitions) == "observed"

    def _set_weights(self, result: Result) -> None:
        self.result_ = result
        self.coef_ = result.weights
        if isinstance(self._model, KernelChainModel):
            self._model, self.coef_ = self._model.with_weights(result.weights)

    def _warm_weights(self, reader: Any, model: ChainModel, classes: Any) -> Floats | None:
        """The fitted weights carried over to the new features, or None if there are none."""
        last = getattr(self, "_model", None)
        if not self.warm_start or not isinstance(last, ChainModel):
            return None
        old = Fitted(self._reader, last, self.classes_)
        return carry_weights(self.coef_, old, Fitted(reader, model, classes))
