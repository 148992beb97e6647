"""How a dependency parser is trained, saved and loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from partwise._core import ArcIndex, ProjectiveTree, SpanningTree, Tree
from partwise.estimators.arc_model import ArcLabeller, ArcModel
from partwise.estimators.common import TrainedEstimator, Training, check_choice, check_positive, seed_of
from partwise.estimators.inputs import Floats, Ints
from partwise.estimators.saving import make_estimator, read_result, start_model
from partwise.estimators.trees import Trees, Words, lift, not_in_structure
from partwise.features.arcs import ARC_TEMPLATES, LABEL_TEMPLATES, ArcTable, parse_templates
from partwise.losses import get_loss
from partwise.models.errors import ModelFormatError
from partwise.models.parts import ModelParts
from partwise.result import Result
from partwise.solvers import get_solver

#: The largest C at which "auto" is online EG for smooth losses.
MOST_EG = 100.0

#: What the names of arcs may take of `max_seconds`.
NAMES_SHARE = 0.25

_STRUCTURES = {"projective": ProjectiveTree, "spanning": SpanningTree}


class TrainedParser(TrainedEstimator):
    """From words and trees to features, weights, and names of arcs."""

    structure: str
    single_root: bool
    non_projective: str
    labels: Any
    label_C: float  # noqa: N815  (C as in scikit-learn)
    templates: str | None
    label_templates: str | None
    features: str
    hash_bits: int
    min_count: int
    max_length: int
    memory_limit: float
    coef_: Floats
    result_: Result
    label_result_: Result | None
    _arcs: ArcModel
    _labeller: ArcLabeller | None

    def _check_options(self) -> None:
        check_choice("structure", self.structure, tuple(_STRUCTURES))
        check_choice("non_projective", self.non_projective, ("skip", "lift", "error"))
        check_choice("labels", self.labels, ("auto", True, False))
        check_choice("features", self.features, ("gold", "all", "hashed"))
        check_choice("single_root", self.single_root, (True, False))
        check_positive("label_C", self.label_C)
        check_positive("memory_limit", self.memory_limit, zero=True)
        for name, low, high in (("min_count", 1, 1 << 30), ("hash_bits", 1, 31), ("max_length", 1, 1 << 15)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
                raise ValueError(f"{name} must be an integer from {low} to {high}, got {value!r}")
        for table in (self.templates, self.label_templates):
            if table is not None:
                parse_templates(table)

    def _make_solver(self) -> Any:
        # "auto" solves tiny problems to machine precision, which scikit-learn's classifiers are expected to do; a
        # parser's weights are not worth that. Weak penalties are left to its rule.
        quick = self.solver == "auto" and not self.solver_options and get_loss(self.loss).smooth and self.C <= MOST_EG
        return get_solver("eg") if quick else super()._make_solver()

    def _make_structure(self, lengths: Ints) -> Tree:
        check_choice("structure", self.structure, tuple(_STRUCTURES))  # it may have been set since fit
        made: Tree = _STRUCTURES[self.structure](lengths, bool(self.single_root), int(self.max_length))
        return made

    def _fit_trees(self, training: Training, words: Words, gold: Trees, weight: Floats | None) -> None:
        """Train on checked input and set the fitted attributes."""
        kept, heads, n_crossing = self._projective(words, gold.heads)
        named = self._is_named(gold)
        used, chosen = words.take(kept), np.repeat(kept, words.lengths)
        if not len(used.lengths):
            raise ValueError("all gold trees have crossing arcs: use structure='spanning' or non_projective='lift'")
        tokens = used.tokens()
        table = ArcTable.fitted(self.templates or ARC_TEMPLATES, tokens)
        model = ArcModel(table, self._make_index(table, tokens, heads[chosen]))
        structure = self._make_structure(used.lengths)
        # Before the trees: what is wrong with it should not be found out after hours of training, and callbacks that
        # look at the parser on the way see it with its names.
        labeller, label_result = self._fit_labels(training, words, gold, weight) if named else (None, None)
        fitted: dict[str, Any] = {"_arcs": model, "_labeller": labeller}
        if labeller is not None:
            fitted["classes_"] = labeller.classes
        if training.max_seconds is not None and label_result is not None:
            training = replace(training, max_seconds=max(0.0, training.max_seconds - label_result.seconds))
        result = self._train(
            training,
            ("dep", self.structure, bool(self.single_root), used.lengths),
            self._warm_weights(model),
            fitted,
            features=model.features(tokens, float(self.memory_limit), training.n_jobs),
            structure=structure,
            gold=structure.encode(heads[chosen]),
            sample_weight=None if weight is None else weight[kept],
        )
        self._arcs, self._labeller = model, labeller
        self.label_result_ = label_result
        self.n_non_projective_ = n_crossing
        self.n_skipped_ = int(len(kept) - kept.sum())
        if labeller is not None:
            self.classes_ = labeller.classes
        elif hasattr(self, "classes_"):
            del self.classes_
        self._set_weights(result)

    def _projective(self, words: Words, heads: Ints) -> tuple[Any, Ints, int]:
        """Which sentences to train on, heads of all, and how many trees the structure does not have."""
        crossing = not_in_structure(self._make_structure(words.lengths), words, heads)
        kept = np.ones(len(words.lengths), dtype=bool)
        if len(crossing) and self.non_projective == "error":
            raise ValueError(
                f"{words.name(int(crossing[0]))} has a tree with crossing arcs, and {len(crossing) - 1} more have: use "
                "structure='spanning', or non_projective='skip' or 'lift'"
            )
        if self.non_projective == "skip":
            kept[crossing] = False
        elif len(crossing):
            heads, offsets = heads.copy(), words.offsets
            for i in crossing:
                heads[offsets[i] : offsets[i + 1]] = lift(heads[offsets[i] : offsets[i + 1]])
        return kept, heads, len(crossing)

    def _is_named(self, gold: Trees) -> bool:
        n_names = len(set(gold.relations)) if gold.relations else 0
        if self.labels is True and n_names < 2:
            raise ValueError(f"labels=True needs trees with at least two names of arcs; y has {n_names}")
        return bool(self.labels) and n_names >= 2

    def _make_index(self, table: ArcTable, tokens: Any, heads: Ints) -> ArcIndex:
        if self.features == "hashed":
            return ArcIndex.hashed(int(self.hash_bits))
        return self._seen(table, tokens, heads if self.features == "gold" else None)

    def _seen(self, table: ArcTable, tokens: Any, heads: Ints | None) -> ArcIndex:
        index = table.index(tokens, heads, int(self.min_count))
        if not index.num_weights:
            raise ValueError(f"no feature occurs {self.min_count} times: min_count is too high")
        return index

    def _label_model(self, words: Words, gold: Trees) -> ArcModel:
        tokens = words.tokens()
        table = ArcTable.fitted(self.label_templates or LABEL_TEMPLATES, tokens)
        return ArcModel(table, self._seen(table, tokens, gold.heads))

    def _fit_labels(
        self, training: Training, words: Words, gold: Trees, weight: Floats | None
    ) -> tuple[ArcLabeller, Result]:
        assert gold.relations is not None
        model = self._label_model(words, gold)
        return ArcLabeller.fitted(
            model,
            words.tokens(),
            gold.heads,
            gold.relations,
            None if weight is None else np.repeat(weight, words.lengths),
            l2=1.0 / float(self.label_C),
            tol=training.tol,
            max_seconds=None if training.max_seconds is None else NAMES_SHARE * training.max_seconds,
            n_jobs=training.n_jobs,
            random_state=seed_of(self.random_state),
            verbose=self.verbose,
        )

    def _warm_weights(self, model: ArcModel) -> Floats | None:
        last = getattr(self, "_arcs", None)
        return model.carried(self.coef_, last) if self.warm_start and last is not None else None

    def _set_weights(self, result: Result) -> None:
        self.result_ = result
        self.coef_ = result.weights

    # model files

    def _to_model(self) -> ModelParts:
        parts = start_model(self, "dep")
        parts.add("arcs", self._arcs.to_parts())
        parts.arrays["weights"] = self.coef_
        parts.settings |= {"n_non_projective": self.n_non_projective_, "n_skipped": self.n_skipped_}
        if self._labeller is not None:
            assert self.label_result_ is not None
            parts.add("labeller", self._labeller.to_parts())
            whole = start_model(_Named(self), "dep").settings
            parts.settings |= {"label_result": whole["result"], "label_history": whole["history"]}
        return parts

    @classmethod
    def _from_model(cls, parts: ModelParts) -> TrainedParser:
        named = parts.has("labeller")
        self: TrainedParser = make_estimator(cls, parts, named)
        self._check_training()
        self._check_options()
        self._arcs = ArcModel.from_parts(parts.part("arcs"))
        self.coef_ = np.array(parts.floats("weights", self._arcs.index.num_weights))
        self.result_ = read_result(parts, self.coef_)
        self.n_non_projective_ = parts.integer("n_non_projective")
        self.n_skipped_ = parts.integer("n_skipped")
        self._labeller, self.label_result_ = None, None
        if named:
            if not all(isinstance(name, str) for name in self.classes_.tolist()):
                raise ModelFormatError("has names of arcs that are no strings")
            self._labeller = ArcLabeller.from_parts(parts.part("labeller"), self.classes_)
            settings = {"result": parts.settings.get("label_result"), "history": parts.settings.get("label_history")}
            self.label_result_ = read_result(ModelParts("labels", settings), self._labeller.weights)
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_parsed", None)  # about the last prediction alone
        if state.get("label_result_") is not None:
            state["label_result_"] = replace(state["label_result_"], dual_point=None)
        return state


class _Named:
    """The second certificate, in the place where a model file expects the first."""

    def __init__(self, parser: TrainedParser) -> None:
        self.result_ = parser.label_result_

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        return {}
