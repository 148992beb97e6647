"""The core's links: phi agrees with its derivatives and its conjugate, and the objective uses all of them."""

import math

import numpy as np
import pytest

from oracles.problems import make_case
from partwise import _core
from partwise.problem.losses import LOSSES, Link

NAMES = ("identity", "squared")
GRID = np.linspace(-3.0, 3.0, 121)


def masses(link: _core.Link) -> np.ndarray:
    """Return masses from the whole domain of phi*, including its ends."""
    top = link.least_mass + 8.0 if math.isinf(link.largest_mass) else link.largest_mass
    return np.linspace(link.least_mass, top, 81)


@pytest.mark.parametrize("name", NAMES)
def test_inequality_of_fenchel_and_young(name):
    link = _core.Link(name)
    for t in GRID:
        for s in masses(link):
            assert link.value(t) + link.conjugate(s) >= s * t - 1e-14
        s = link.mass(t)
        assert link.least_mass <= s <= link.largest_mass
        assert link.value(t) + link.conjugate(s) == pytest.approx(s * t, abs=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_conjugate_is_the_supremum(name):
    link, wide = _core.Link(name), np.linspace(-10.0, 10.0, 2001)
    values = np.array([link.value(t) for t in wide])
    for s in masses(link):
        assert link.conjugate(s) == pytest.approx(np.max(s * wide - values), abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_are_those_of_the_value(name):
    link, h = _core.Link(name), 1e-5
    for t in GRID[np.abs(GRID) > 1e-3]:  # at 0 the second derivative may jump
        assert (link.value(t + h) - link.value(t - h)) / (2 * h) == pytest.approx(link.mass(t), abs=1e-8)
        assert (link.mass(t + h) - link.mass(t - h)) / (2 * h) == pytest.approx(link.second(t), abs=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_capabilities_of_links_are_true(name):
    link = _core.Link(name)
    assert link.name == name
    assert link.fixed_mass == (link.least_mass == link.largest_mass)
    if link.fixed_mass:  # then `value` (phi) is the identity, and `mass` is its derivative
        assert all(link.value(t) == t and link.mass(t) == 1.0 and link.second(t) == 0.0 for t in GRID)
    if link.quadratic_conjugate:
        assert (link.least_mass, link.largest_mass) == (0.0, math.inf)
        assert all(link.conjugate(s) == pytest.approx(link.conjugate(1.0) * s * s) for s in masses(link))


def test_names_are_those_of_losses():
    assert set(NAMES) == set(Link.__args__)
    for loss in LOSSES.values():
        assert _core.Link(loss.link).name == loss.link
    with pytest.raises(ValueError, match="link must be 'identity' or 'squared', not 'cubed'"):
        _core.Link("cubed")


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_the_objective_uses_the_link(loss):
    case = make_case("chain-tied", 5)
    objective = case.objective(loss)
    w = np.random.default_rng(2).normal(size=case.features.num_weights)
    link, t, omega = objective.link, objective.margins(w, 0.0), case.sample_weight
    assert link.name == LOSSES[loss].link
    assert objective.value(w) == pytest.approx(sum(o * link.value(x) for o, x in zip(omega, t, strict=True)))
    # phi(t) = s t - phi*(s) at s = phi'(t), so that the plane at w touches the losses: value = b - <u, w>.
    value, u, b = objective.plane(w)
    assert value == pytest.approx(b - u @ w)
