"""The half of an estimator that answers: predictions, probabilities, samples, scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from partwise.estimators.training import TrainedEstimator, decode
from partwise.model_files.values import object_array
from partwise.models.base import Ability, InputReport, Labellings, Model, Reading, Shortcut
from partwise.models.errors import NotAvailable
from partwise.problem import LabelledBatch
from partwise.problem.capabilities import Capability
from partwise.problem.inference import check_weights, entropies_of, expectations, values_of
from partwise.problem.losses import get_loss
from partwise.structures import Structure
from partwise.support.arrays import Floats, Ints
from partwise.support.checks import check_count, check_finite_weights, check_sums, count_jobs, seed_of

Method = TypeVar("Method", bound=Callable[..., Any])


def has_probabilities(estimator: Any) -> bool:
    """Whether the loss makes the model a distribution (for scikit-learn's available_if)."""
    try:
        loss = get_loss(estimator.loss)
    except (TypeError, ValueError) as error:
        raise AttributeError(str(error)) from None
    if loss.probabilistic:
        return True
    raise AttributeError(f"probabilities are not available with loss={loss.name!r}: use 'log' or 'softmax-margin'")


def needs_probabilities(method: Method) -> Method:
    """Decorate a method that is available only when the loss makes the model a distribution."""
    return cast(Method, available_if(has_probabilities)(method))


class Answers(list[Any]):
    """A list with one answer per example, which NumPy reads as a one-dimensional array of objects.

    Of a plain list of lists NumPy makes a table, or an error where lengths differ; `cross_val_predict` joins answers
    as arrays.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return object_array(list(self)) if dtype in (None, object) else np.array(list(self), dtype=dtype)


class AnsweringEstimator(TrainedEstimator):
    """What a fitted estimator says of new examples."""

    def _fitted(self) -> Model:
        """The fitted model with the parameters as they are now."""
        if "_model" not in vars(self):  # a look at all attributes takes as long as a short sentence's labels
            check_is_fitted(self)
        model = self._model
        changed = {name: getattr(self, name) for name in model.late if getattr(self, name) != getattr(model, name)}
        return model.with_options(**changed) if changed else model

    def _read(
        self,
        X: Any,
        constraints: Mapping[str, Any] | None = None,
        *,
        note: bool = True,
        model: Model | None = None,
    ) -> tuple[Model, Reading, int]:
        """The model, what it reads, and the number of threads; note=False: the caller notes what the input was like.

        model: another one than the fitted model.
        """
        model, n_jobs = self._fitted() if model is None else model, count_jobs(self.n_jobs)
        reading = model.read(self._check_input(X), n_jobs)
        if not isinstance(reading, Reading):
            raise TypeError(f"{type(model).__name__}.read must return a Reading, got {type(reading).__name__}")
        given = {name: value for name, value in (constraints or {}).items() if value is not None}
        for name in given:
            if name not in model.constraints:
                known = ", ".join(model.constraints) or "none"
                if Ability.CONSTRAINTS in model.abilities() and not model.constraints:
                    known += f" ({type(model).__name__}.constraints must name the arguments of its constrain)"
                raise TypeError(f"{type(self).__name__} has no constraint {name!r}; there are: {known}")
        if given:
            model.needs(Ability.CONSTRAINTS, "constraints")
            model.constrain(reading, **given)
            reading.constrained = True
        model.check_reading(reading)
        if note:
            self._note(model, reading)
        return model, reading, n_jobs

    def _shortcut(self, X: Any, constraints: Mapping[str, Any]) -> Shortcut | None:
        """X by the model's shorter way, if it has one and there are no constraints."""
        if any(value is not None for value in constraints.values()):
            return None
        short = self._fitted().shortcut(self._check_input(X))
        if short is not None:
            unknown = short.unknown
            self._last.report = InputReport(lambda: unknown)
        return short

    def predict(self, X: Any, **constraints: Any) -> Any:
        """The best answer for each example; `constraints` as the class says."""
        short = self._shortcut(X, constraints)
        if short is not None:
            answers = short.best(count_jobs(self.n_jobs))
        else:
            model, reading, n_jobs = self._read(X, constraints, note=False)
            best, answers = _best_answers(model, reading, n_jobs)
            self._note(model, reading, best)
        return Answers(answers) if isinstance(answers, list) else answers

    def _predict_numbers(self, X: Any, probabilities: bool = False) -> tuple[Ints, Any] | None:
        """Labels of `predict` as numbers in `classes_`, all positions end to end, without a Python object for each.

        In addition their probabilities, as `predict_marginals` has them (None if not asked for); None where the model
        has no such numbers.
        """
        model, reading, n_jobs = self._read(X, note=False)
        best = model.best(reading, n_jobs)
        numbers = model.label_numbers(reading, best)
        if numbers is None:
            return None
        self._note(model, reading, best)
        if not probabilities:
            return numbers, None
        counts, values = expectations(reading.batch, model.weights, get_loss(self.loss).temperature, n_jobs)
        check_sums(values, reading.numbers)
        rows = model.marginals(reading, counts, output="array")
        return numbers, np.concatenate(rows)[np.arange(len(numbers)), numbers] if rows else np.empty(0)

    @needs_probabilities
    def predict_marginals(self, X: Any, **options: Any) -> Any:
        """Probabilities of the parts of answers, in the form that the class says; not available with hinge losses.

        Constraints, as for `predict`, are given that they hold.
        """
        known = self._fitted()
        known.needs(Ability.MARGINALS, "marginals")
        constraints = {name: options.pop(name) for name in known.constraints if name in options}
        temperature = get_loss(self.loss).temperature
        short = self._shortcut(X, constraints)
        if short is not None:
            return short.marginals(temperature, count_jobs(self.n_jobs), **options)
        model, reading, n_jobs = self._read(X, constraints)
        counts, values = expectations(reading.batch, model.weights, temperature, n_jobs)
        check_sums(values, reading.numbers)
        return model.marginals(reading, counts, **options)

    def predict_k_best(
        self, X: Any, k: int, *, probabilities: bool = False, **constraints: Any
    ) -> list[list[tuple[Any, float]]]:
        """For each example its k best answers (fewer if it has fewer) with their scores, best first.

        Scores are sums of weights: with the log loss, differences of scores are differences of log-probabilities.

        probabilities : bool
            Probabilities of the answers instead of scores; not available with hinge losses.
        constraints
            As for `predict`: the best answers that they allow.
        """
        if probabilities:
            has_probabilities(self)
        k = check_count("k", k)
        model, reading, n_jobs = self._read(X, constraints, note=False)
        structure, features = reading.batch.structure, reading.batch.features
        _check_oracle(structure, Capability.K_BEST, "the k best answers")
        check_weights(reading.batch, model.weights)
        which: list[int] = []
        found: list[Any] = []
        values: list[float] = []
        temperature = get_loss(self.loss).temperature
        for i in range(reading.batch.n_examples):
            scores = features.scores(i, model.weights)
            best = structure.k_best(i, scores, k)
            which += [i] * len(best)
            found += [labelling for _, *labelling in best]
            own = [value for value, _, _ in best]
            if probabilities:
                log_z = structure.log_partition(i, scores, temperature)[0]
                own = np.exp(np.subtract(own, log_z) / temperature).clip(0, 1).tolist()
            values += own
        rows = np.array(which, dtype=np.int64)
        answers = decode(model, reading, rows, Labellings.of(found), n_jobs)
        ranked: list[list[tuple[Any, float]]] = [[] for _ in range(reading.batch.n_examples)]
        for i, answer, value in zip(which, answers, values, strict=True):
            ranked[i].append((answer, value))
        first = np.searchsorted(rows, np.arange(len(ranked)))
        self._note(model, reading, Labellings.of([found[j] for j in first.tolist()]))
        failed = set(reading.failed.tolist())
        found_all: list[list[tuple[Any, float]]] = reading.completed(
            ranked, lambda i: [] if i in failed else [(model.left_out(reading, i), float(probabilities))]
        )
        return found_all

    @needs_probabilities
    def sample(self, X: Any, n: int = 1, *, random_state: Any = None, **constraints: Any) -> list[list[Any]]:
        """For each example n answers drawn from the model's distribution; not available with hinge losses.

        random_state : int, RandomState, Generator or None
            None: other draws each time.
        constraints
            As for `predict`: draws given that they hold.
        """
        n = check_count("n", n)
        seeds = np.random.default_rng(seed_of(random_state))
        model, reading, n_jobs = self._read(X, constraints)
        structure, features = reading.batch.structure, reading.batch.features
        _check_oracle(structure, Capability.SAMPLE, "samples")
        check_weights(reading.batch, model.weights)
        temperature = get_loss(self.loss).temperature
        found: list[Any] = []
        for i in range(reading.batch.n_examples):
            seed = int(seeds.integers(np.iinfo(np.int64).max))
            found += structure.sample(i, features.scores(i, model.weights), temperature, n, seed)
        which = np.repeat(np.arange(reading.batch.n_examples), n)
        answers = list(decode(model, reading, which, Labellings.of(found), n_jobs))
        groups = [answers[k : k + n] for k in range(0, len(answers), n)]
        drawn: list[list[Any]] = reading.completed(groups, lambda i: [model.left_out(reading, i) for _ in range(n)])
        return drawn

    @needs_probabilities
    def entropy(self, X: Any, **constraints: Any) -> Floats:
        """Entropy of the distribution of each example's answers, in nats: an array of shape (n_examples,).

        It is 0 for an example that has one answer, NaN for one that has none, and at most the logarithm of their
        number: how undecided the model is. Not available with hinge losses. Constraints, as for `predict`, are given
        that they hold.
        """
        model, reading, n_jobs = self._read(X, constraints)
        temperature = get_loss(self.loss).temperature
        found = np.zeros(reading.n_examples)
        entropies = entropies_of(reading.batch, model.weights, temperature, n_jobs)
        check_sums(entropies, reading.numbers)
        found[reading.numbers] = np.maximum(entropies, 0.0)
        found[reading.failed] = np.nan
        return found

    @needs_probabilities
    def log_probability(self, X: Any, y: Any, **constraints: Any) -> Floats:
        """Log-probability of each answer in `y`: an array of shape (n_examples,). Not available with hinge losses.

        It is -inf for an answer that the model does not have or that constraints, as for `predict`, forbid, and 0 for
        an example that has one answer. With constraints it is given that they hold.
        """
        model, reading, n_jobs = self._read(X, constraints)
        model.needs(Ability.ENCODING, "log-probabilities")
        labellings, possible = _encode(model, reading, y)
        if reading.constrained:
            possible = np.asarray(possible, dtype=bool) & _allowed(reading.batch.structure, labellings)
        temperature = get_loss(self.loss).temperature
        values = values_of(reading.batch, model.weights, labellings, n_jobs)
        sums = expectations(reading.batch, model.weights, temperature, n_jobs)[1]
        check_sums(sums, reading.numbers)
        values -= sums
        values /= temperature
        values[~np.asarray(possible, dtype=bool)] = -np.inf
        found = np.zeros(reading.n_examples)
        found[reading.numbers] = values
        found[reading.failed] = -np.inf
        return found

    def labelled(self, X: Any, y: Any) -> LabelledBatch:
        """Examples with their answers as a solver sees them, under the fitted model's features (`partwise.bounds`).

        ValueError for an answer that the model does not have.
        """
        if y is None:
            raise ValueError("y is None: labelled examples have answers")
        model, reading, _ = self._read(X, note=False)
        model.needs(Ability.ENCODING, "labelled examples")
        labellings, possible = _encode(model, reading, y)
        odd = np.flatnonzero(~np.asarray(possible, dtype=bool))
        if odd.size or len(reading.failed):
            first = reading.numbers[odd[0]] if odd.size else reading.failed[0]
            raise ValueError(f"example {first}: the model does not have this answer")
        return model.labelled_reading(reading, labellings)

    @property
    def weights_(self) -> Floats:
        """All weights, as a solver has them."""
        check_is_fitted(self)
        return self._model.weights

    def with_weights(self, weights: Floats) -> Self:
        """Another estimator like this one with other weights, without a certificate."""
        if np.shape(weights) != np.shape(self.weights_):
            raise ValueError(f"weights of shape {np.shape(weights)}, the model has {np.shape(self.weights_)}")
        check_finite_weights("weights", weights)
        return self._preview(self._model, weights)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """How good predictions are, between 0 and 1, by the measure that the class says."""
        predicted = self.predict(X)
        return self._model.score(X, y, predicted, sample_weight)

    def scorer(
        self, X: Any, y: Any, measure: str | Callable[[Any, Any], float] | None = None
    ) -> Callable[[Floats], float]:
        """The score on these examples as a function of the weights, for those who score often: X is read once.

        measure: what to score by, a name ("chunk_f1", ...: `partwise.metrics.get_measure`) or a function of right and
        predicted answers; None is `score`. With ``model="maxent"``
        examples are read again each time.
        """
        if isinstance(measure, str):
            from partwise.metrics.scorers import get_measure

            measure = get_measure(measure)
        by = measure
        model, reading, n_jobs = self._read(X, note=False)

        def score(weights: Floats) -> float:
            other = self.with_weights(weights)
            known = other._read(X, note=False)[1] if model.reads_by_weights else reading
            answers = _best_answers(other._model, known, n_jobs)[1]
            return other._model.score(X, y, answers, None) if by is None else float(by(y, answers))

        return score

    def _note(self, model: Model, reading: Reading, best: Labellings | None = None) -> None:
        report, last = model.report(reading, best), self._last.report
        if report is not None:
            self._last.report = replace(report, unknown=last.unknown) if last and report.unknown is None else report

    @property
    def unknown_counts_(self) -> tuple[int, int]:
        """How many features of the last input have no weight, and of how many; (0, 0) where all have one."""
        check_is_fitted(self)
        report = self._last.report
        return (0, 0) if report is None or report.unknown is None else report.unknown()

    @property
    def unknown_rate_(self) -> float:
        """Share of the features of the last input that have no weight."""
        unknown, total = self.unknown_counts_
        return unknown / total if total else 0.0


def _best_answers(model: Model, reading: Reading, n_jobs: int) -> tuple[Labellings, Any]:
    """The best labelling of each example of the batch, and the answers for all examples."""
    best = model.best(reading, n_jobs)
    answers = decode(model, reading, np.arange(len(best.indptr) - 1), best, n_jobs)
    return best, reading.completed(answers, lambda i: model.left_out(reading, i))


def _encode(model: Model, reading: Reading, y: Any) -> tuple[Labellings, Any]:
    """`Model.encode`, checked: a labelling per example of the batch, and which are possible."""
    found, name = model.encode(reading, y), f"{type(model).__name__}.encode"
    if not isinstance(found, tuple) or len(found) != 2 or not isinstance(found[0], Labellings):
        raise TypeError(f"{name} must return Labellings and which of them are possible")
    n, n_examples = len(found[0].indptr) - 1, reading.batch.n_examples
    if n != n_examples:
        raise ValueError(f"{name} gave {n} labellings for {n_examples} examples: are X and y of the same length?")
    return found


def _allowed(structure: Structure, labellings: Labellings) -> Any:
    """Whether each example's mask, and what else the structure was told, allow its labelling."""
    ends, allowed = labellings.indptr.tolist(), np.ones(structure.num_examples, dtype=bool)
    for i in range(structure.num_examples):
        own, mask = slice(ends[i], ends[i + 1]), structure.mask(i)
        slots, counts = labellings.slots[own], labellings.counts[own]
        try:
            structure.check_labelling(i, slots, counts)
        except ValueError:
            allowed[i] = False
        else:
            allowed[i] = mask is None or bool(mask[slots].all())
    return allowed


def _check_oracle(structure: Structure, capability: Capability, what: str) -> None:
    if capability not in structure.capabilities():
        name = type(structure).__name__
        raise NotAvailable(f"{what}: not available for the structure {name}, which has no method {capability}")
