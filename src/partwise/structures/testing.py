"""Checks for those who extend partwise.

Wrong oracles make wrong certificates: a maximum that is too small, or expected counts of another distribution, are
certified like any other. `check_structure` compares the answers of a structure with each other, with finite differences
and with an enumeration of small examples.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from partwise.problem.capabilities import Capability, structure_capabilities
from partwise.structures import Structure
from partwise.support.arrays import Floats, Ints

__all__ = ["check_structure"]

T = TypeVar("T")

#: How far values, expected counts and finite differences may be off, relative to their sizes.
EXACT, NEAR, DIFFERENCE = 1e-8, 1e-6, 1e-4
#: How far a sum may be off, relative to the sizes of its terms.
ROUNDING = 1e-12
#: Sizes of random scores; 0 makes ties.
SCALES = (0.0, 1.0, 30.0, 1000.0)
TEMPERATURES = (1e-4, 0.1, 1.0, 10.0)
#: Labellings asked of `k_best`, draws asked of `sample`, and how many standard deviations their mean may be off.
BEST, DRAWS, DEVIATIONS = 5, 1000, 6.0
#: Most labellings of an example that serve as gold labellings.
GOLD = 20


def check_structure(
    structure: Structure,
    labellings: Callable[[int], Iterable[Sequence[int]]] | None = None,
    *,
    examples: Iterable[int] | None = None,
    masks: bool = True,
    random_state: int = 0,
) -> None:
    """Check that a structure's answers are right, at random scores of several sizes and at several temperatures.

    Call it in the tests of your structure. Small examples are enough, and with `labellings` nothing that a certificate
    rests on remains unchecked on them. Without `labellings` answers are compared with each other and with finite
    differences, which cannot tell that `maximize` and `log_partition` agree on a wrong set of labellings.

    structure: written in Python or compiled. Its masks are changed while the checks run, and are restored. labellings:
    gives all labellings of example i, masks aside, each as a sequence of slots, in which a slot occurs as often as the
    labelling uses it. examples: numbers of those to check; by default the first ten. masks: False for a structure that
    takes no constraints on predictions, and leaves its masks aside. random_state: seed of scores, masks and draws.

    AssertionError if an answer is wrong; the message names the method, the example and what was expected. ValueError if
    there is no example to check.
    """
    rng = np.random.default_rng(random_state)
    chosen = list(range(min(10, structure.num_examples)) if examples is None else examples)
    if not chosen:
        raise ValueError("there is no example to check")
    tables = [None if labellings is None else _table(structure, i, labellings(i)) for i in chosen]
    found = [_Example(structure, i, table) for i, table in zip(chosen, tables, strict=True)]
    kept = [structure.mask(i) for i in chosen]
    try:
        for i in chosen:
            structure.set_mask(i, None)
        _check_all(found, rng)
        if masks:
            for example in found:
                structure.set_mask(example.i, _random_mask(example.any_labelling(rng), rng))
            _check_all(found, rng)
    finally:
        for i, mask in zip(chosen, kept, strict=True):
            structure.set_mask(i, mask)


def _check_all(examples: "list[_Example]", rng: np.random.Generator) -> None:
    """Check examples one by one, and then the methods that take several examples."""
    for example in examples:
        example.check(rng)
    structure, numbers = examples[0].structure, [example.i for example in examples]
    scores = [rng.normal(size=example.n_slots) for example in examples]
    if Capability.MAX_ORACLE in examples[0].has:
        method = "maximize_many"
        maxima = structure.maximize_many(numbers, scores)
        for example, own, (value, slots, counts) in _one_each(method, examples, scores, maxima):
            best = float(example.maximize(own) @ own)
            example.near(method, "the value", value, best)
            example.near(method, "the value of its slots", float(example.labelling(method, slots, counts) @ own), best)
    for temperature in (0.0, 1.0) if Capability.EXPECTATION_ORACLE in examples[0].has else ():
        method = f"log_partition_many at temperature {temperature:g}"
        sums = structure.log_partition_many(numbers, scores, temperature)
        for example, own, (value, expected, entropy) in _one_each(method, examples, scores, sums):
            wanted = example.sums(own, temperature)
            example.near(method, "the value", value, wanted[0])
            example.near_all(method, "the expected count", np.asarray(expected), wanted[1])
            example.near(method, "the entropy", entropy, wanted[2])


def _one_each(
    method: str, examples: "list[_Example]", scores: list[Floats], answers: Sequence[T]
) -> "Iterator[tuple[_Example, Floats, T]]":
    if len(answers) != len(examples):
        raise AssertionError(f"{method}: {len(answers)} answers for {len(examples)} examples")
    return zip(examples, scores, answers, strict=True)


@dataclass
class _Example:
    """An example under its current mask; counts: (N, n_slots), the counts of each labelling (None: unknown)."""

    structure: Structure
    i: int
    counts: Floats | None

    def __post_init__(self) -> None:
        self.n_slots = self.structure.num_slots(self.i)
        self.has = structure_capabilities(self.structure)
        if self.structure.num_slots(self.i) != self.n_slots:
            self.fail("num_slots", "two calls gave two answers")

    def check(self, rng: np.random.Generator) -> None:
        mask = self.structure.mask(self.i)
        self.forbidden = np.zeros(self.n_slots, dtype=bool) if mask is None else mask == 0
        self.under = "" if mask is None else " under a mask"
        self.table = None if self.counts is None else self.counts[~(self.counts[:, self.forbidden] > 0).any(axis=1)]
        for scale in SCALES:
            scores = scale * rng.normal(size=self.n_slots)
            best = self.maximize(scores) if Capability.MAX_ORACLE in self.has else None
            if Capability.EXPECTATION_ORACLE in self.has:
                top, counts, _ = self.sums(scores, 0.0)
                self.labelling("log_partition at temperature 0", np.arange(self.n_slots), counts)
                self.near("log_partition at temperature 0", "the value", top, float(counts @ scores))
                if best is not None:
                    self.near("log_partition at temperature 0", "the maximum", top, float(best @ scores))
                for temperature in TEMPERATURES:
                    self.distribution(scores, temperature, top)
            if Capability.K_BEST in self.has:
                self.k_best(scores)
        direction = rng.normal(size=self.n_slots)
        for temperature in TEMPERATURES[1:]:
            scores = rng.normal(size=self.n_slots)
            if Capability.EXPECTATION_ORACLE in self.has:
                self.derivatives(scores, temperature, direction)
            if Capability.SAMPLE in self.has:
                self.sample(scores, temperature, int(rng.integers(1 << 31)))
        self.cost(rng)

    def fail(self, method: str, what: str) -> NoReturn:
        raise AssertionError(f"{method}: example {self.i}{getattr(self, 'under', '')}: {what}")

    def near(self, method: str, what: str, found: float, expected: float, size: float = 0.0) -> None:
        """Fail unless two numbers agree; size: that of the terms that they are sums of."""
        if not abs(found - expected) <= EXACT * (1.0 + abs(expected)) + ROUNDING * size:
            self.fail(method, f"{what} is {found:.10g}, expected {expected:.10g}")

    def sized(self, method: str, what: str, found: Floats) -> None:
        """Fail unless there is a number for each slot."""
        if found.shape != (self.n_slots,):
            self.fail(method, f"{what} of shape {found.shape}, expected {(self.n_slots,)}")

    def near_all(self, method: str, what: str, found: Floats, expected: Floats, tolerance: float = NEAR) -> None:
        self.sized(method, what, found)
        off = np.abs(found - expected)
        if not (off <= tolerance * (1.0 + np.abs(expected).max(initial=0.0))).all():
            slot = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
            self.fail(method, f"{what} of slot {slot} is {found[slot]:.10g}, expected {expected[slot]:.10g}")

    def labelling(self, method: str, slots: Ints, counts: Floats) -> Floats:
        """Return how often a labelling uses each slot; fail unless the labelling is allowed."""
        slots, counts = np.asarray(slots), np.asarray(counts, dtype=np.float64)
        if slots.shape != counts.shape or slots.ndim != 1:
            self.fail(method, f"slots of shape {slots.shape} with counts of shape {counts.shape}")
        if ((slots < 0) | (slots >= self.n_slots)).any():
            self.fail(method, f"slots {slots.tolist()} are not all between 0 and {self.n_slots - 1}")
        used = np.zeros(self.n_slots)
        np.add.at(used, slots, counts)
        if used[self.forbidden].any():
            self.fail(method, f"labelling {slots.tolist()} uses slots that are forbidden")
        if self.table is not None and not (self.table == used).all(axis=1).any():
            self.fail(method, f"slots {slots.tolist()}, used {counts.tolist()} times, are not one of the labellings")
        return used

    def maximize(self, scores: Floats) -> Floats:
        """Check the maximum; return the counts of the best labelling."""
        given = scores.copy()
        value, slots, counts = self.structure.maximize(self.i, given)
        self.untouched("maximize", given, scores)
        used = self.labelling("maximize", slots, counts)
        self.near("maximize", "the value", value, float(used @ scores), float(np.abs(used * scores).sum()))
        if self.table is not None:
            best = self.table[int(np.argmax(self.table @ scores))]
            self.near(
                "maximize", f"the maximum, of slots {np.flatnonzero(best).tolist()},", value, float(best @ scores)
            )
        return used

    def any_labelling(self, rng: np.random.Generator) -> Floats:
        """Return the counts of some labelling that the current mask allows."""
        scores = rng.normal(size=self.n_slots)
        return self.maximize(scores) if Capability.MAX_ORACLE in self.has else self.sums(scores, 0.0)[1]

    def sums(self, scores: Floats, temperature: float) -> tuple[float, Floats, float]:
        """Return the answer of log_partition; fail unless it is finite."""
        given = scores.copy()
        value, expected, entropy = self.structure.log_partition(self.i, given, temperature)
        method = f"log_partition at temperature {temperature:g}"
        self.untouched(method, given, scores)
        expected = np.array(expected, dtype=np.float64)
        self.sized(method, "the expected counts", expected)
        if not (np.isfinite(value) and np.isfinite(entropy) and np.isfinite(expected).all()):
            self.fail(method, f"an answer is not finite at scores up to {np.abs(scores).max(initial=0.0):.3g}")
        if expected[self.forbidden].any():
            self.fail(method, "expected counts of forbidden slots are not 0")
        return float(value), expected, float(entropy)

    def untouched(self, method: str, given: Floats, scores: Floats) -> None:
        if not np.array_equal(given, scores):
            self.fail(method, "the array of scores that it was given has changed")

    def distribution(self, scores: Floats, temperature: float, top: float) -> None:
        """Check value, expected counts and entropy at a temperature above 0; top: the maximum."""
        method = f"log_partition at temperature {temperature:g}"
        value, expected, entropy = self.sums(scores, temperature)
        size = float(np.abs(expected * scores).sum())
        if self.table is not None:
            values = self.table @ scores
            p = np.exp((values - values.max()) / temperature)
            smax = float(values.max() + temperature * np.log(p.sum()))
            p /= p.sum()
            self.near(method, "the value", value, smax, size)
            self.near_all(method, "the expected count", expected, p @ self.table)
            self.near(method, "the entropy", entropy, float(-(p[p > 0] * np.log(p[p > 0])).sum()), size / temperature)
        self.near(method, "the value", value, float(expected @ scores) + temperature * entropy, size)
        margin = EXACT * (1.0 + abs(top)) + ROUNDING * size
        if value < top - margin:
            self.fail(method, f"the value {value:.10g} is below the maximum {top:.10g}")
        if expected @ scores > top + margin:
            self.fail(method, f"the mean {expected @ scores:.10g} over labellings is above the maximum {top:.10g}")
        if entropy < -EXACT - ROUNDING * size / temperature:
            self.fail(method, f"the entropy is {entropy:.10g}, below 0")

    def derivatives(self, scores: Floats, temperature: float, direction: Floats) -> None:
        """Check expected counts, and their covariance, against finite differences."""
        step = 1e-4 * temperature
        (above, up, _), (below, down, _) = (self.sums(scores + s * direction, temperature) for s in (step, -step))
        _, expected, _ = self.sums(scores, temperature)
        slope, size = (above - below) / (2.0 * step), float(np.abs(expected * direction).sum())
        if not abs(slope - float(expected @ direction)) <= DIFFERENCE * (1.0 + size):
            what = f"its slope in a random direction is {slope:.8g}, by the expected counts {expected @ direction:.8g}"
            self.fail(f"log_partition at temperature {temperature:g}", what)
        if Capability.COVARIANCE in self.has:
            found = np.asarray(self.structure.covariance_product(self.i, scores, temperature, direction))
            wanted = temperature * (up - down) / (2.0 * step)
            self.near_all("covariance_product", "the product", found, wanted, DIFFERENCE)

    def k_best(self, scores: Floats) -> None:
        """Check that the best labellings differ, are in order, and that no other is better."""
        found = self.structure.k_best(self.i, scores, BEST)
        used = [self.labelling("k_best", slots, counts) for _, slots, counts in found]
        values = [float(own @ scores) for own in used]
        for (value, *_), own, counts in zip(found, values, used, strict=True):
            self.near("k_best", "a value", value, own, float(np.abs(counts * scores).sum()))
        if len({own.tobytes() for own in used}) < len(used):
            self.fail("k_best", "a labelling occurs twice")
        if any(later > before + EXACT * (1.0 + abs(before)) for before, later in zip(values, values[1:], strict=False)):
            self.fail("k_best", f"the values {values} are not in falling order")
        if self.table is not None:
            best = np.sort(self.table @ scores)[::-1][:BEST]
            if len(found) != len(best):
                self.fail("k_best", f"{len(found)} labellings for k = {BEST}, expected {len(best)}")
            for own, wanted in zip(values, best.tolist(), strict=True):
                self.near("k_best", "a value", own, wanted)

    def sample(self, scores: Floats, temperature: float, seed: int) -> None:
        """Check that draws are labellings, follow from the seed, and have the right mean counts."""
        first, second = (self.structure.sample(self.i, scores, temperature, DRAWS, seed) for _ in range(2))
        draws = np.array([self.labelling("sample", *draw) for draw in first])
        if len(draws) != DRAWS:
            self.fail("sample", f"{len(draws)} draws for n = {DRAWS}")
        if not all(np.array_equal(np.hstack(one), np.hstack(two)) for one, two in zip(first, second, strict=True)):
            self.fail("sample", "the same seed gave other draws")
        if Capability.EXPECTATION_ORACLE in self.has:
            expected = self.sums(scores, temperature)[1]
            most = DEVIATIONS * (draws.std(axis=0) + 1.0 / np.sqrt(DRAWS)) / np.sqrt(DRAWS)
            off = np.abs(draws.mean(axis=0) - expected)
            if (off > most).any():
                slot = int(np.argmax(off - most))
                what = f"slot {slot} is used {draws[:, slot].mean():.4g} times in the mean of {DRAWS} draws"
                self.fail(f"sample at temperature {temperature:g}", f"{what}, expected {expected[slot]:.4g}")

    def cost(self, rng: np.random.Generator) -> None:
        table = self.any_labelling(rng)[None] if self.table is None else self.table
        golds = table[rng.permutation(len(table))[:GOLD]]
        for gold in golds:
            slots = np.flatnonzero(gold)
            cost = np.asarray(self.structure.cost(self.i, slots, gold[slots]))
            if cost.shape != (self.n_slots,) or not (np.isfinite(cost) & (cost >= 0)).all() or cost[slots].any():
                what = f"one number per slot is needed, at least 0, and 0 on the gold slots {slots.tolist()}"
                self.fail("cost", f"{what}; got {cost.tolist()}")
            try:
                Structure.check_labelling(self.structure, self.i, slots, gold[slots])
            except ValueError as error:
                self.fail("check_labelling", f"labelling {slots.tolist()} is refused: {error}")


def _table(structure: Structure, i: int, labellings: Iterable[Sequence[int]]) -> Floats:
    """Return how often each labelling uses each slot, one row per labelling."""
    found = [np.bincount(list(slots), minlength=structure.num_slots(i)) for slots in labellings]
    if not found:
        raise ValueError(f"labellings gave none for example {i}")
    return np.array(found, dtype=np.float64)


def _random_mask(kept: Floats, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Forbid a third of the slots that this labelling does not use, and at least one if there are any."""
    unused = rng.permutation(np.flatnonzero(kept == 0))
    mask = np.ones(len(kept), dtype=np.uint8)
    mask[unused[: -(-len(unused) // 3)]] = 0
    return mask
