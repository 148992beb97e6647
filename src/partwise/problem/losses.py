"""Losses: the temperature, the weight on the cost and the link of the objective of `problem`.

An example's loss is phi(smax_tau(theta + kappa c) - <theta, g>), where

    tau    `temperature`  0: the maximum over labellings; else tau * log sum exp(. / tau)
    kappa  `cost_scale`   how much a wrong part adds to a labelling's score
    phi    `link`         "identity": t;  "squared": max(t, 0)^2

Its dual has a distribution over labellings and a mass s: s = 1 for the identity, else s >= 0 and phi*(s) = s^2 / 4.

With `rescaling` "slack" it is max over labellings y of c(y) (1 + <theta, counts(y) - g>), c(y) = kappa <counts(y), c>:
the cost multiplies the margin's violation instead of being added to it (docs/math.md, "Slack rescaling").
"""

import re
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, get_args

from partwise.problem.capabilities import Capability

Link = Literal["identity", "squared"]
Rescaling = Literal["margin", "slack"]


@dataclass(frozen=True)
class Loss:
    """A loss: name, temperature tau, cost_scale kappa, link phi, and what the cost rescales."""

    name: str
    temperature: float
    cost_scale: float
    link: Link = "identity"
    rescaling: Rescaling = "margin"

    def __post_init__(self) -> None:
        for field in ("temperature", "cost_scale"):
            value = getattr(self, field)
            if not (isfinite(value) and value >= 0):
                raise ValueError(f"{field} of loss {self.name!r} must be a number >= 0, got {value}")
        for field, choices in (("link", get_args(Link)), ("rescaling", get_args(Rescaling))):
            if (value := getattr(self, field)) not in choices:
                raise ValueError(f"{field} of loss {self.name!r} must be one of {choices}, got {value!r}")
        if self.rescaling == "slack" and (self.smooth or self.link != "identity" or self.cost_scale == 0):
            needed = "temperature 0, the identity link and a cost_scale above 0"
            raise ValueError(f"loss {self.name!r}: slack rescaling needs {needed}")

    @property
    def smooth(self) -> bool:
        """Whether the loss is differentiable in the weights (a maximum over labellings is not, squared or not)."""
        return self.temperature > 0

    @property
    def probabilistic(self) -> bool:
        """Whether a model trained with it is a distribution over labellings.

        A margin's mass is not a probability, and a temperature that only smooths a maximum (`SMOOTHED`) gives
        distributions that are a means of computing.
        """
        return self.smooth and self.link == "identity" and self.name not in SMOOTHED

    @property
    def takes_l1(self) -> bool:
        """Whether there are solvers for the loss under an l1 term."""
        return self.smooth and self.link == "identity"

    @property
    def oracle(self) -> Capability:
        """The oracle that a structure needs for a plane that touches the loss."""
        return Capability.EXPECTATION_ORACLE if self.smooth else Capability.MAX_ORACLE

    def capabilities(self) -> frozenset[Capability]:
        """Return the capabilities that the loss gives a problem."""
        if self.rescaling == "slack":  # no smax, and so neither a temperature nor a link
            return frozenset({Capability.SLACK_RESCALING, Capability.MAXIMA})
        smooth = {Capability.SMOOTH, Capability.SMOOTH_TERM}
        maximum = {Capability.TEMPERATURE_0, Capability.MAXIMA}
        by_examples = {Capability.EXAMPLE_BLOCKS} if self.link == "identity" or not self.smooth else set()
        return frozenset((smooth if self.smooth else maximum) | by_examples | {Capability(f"{self.link} link")})


#: Losses whose temperature, if above 0, only smooths a maximum.
SMOOTHED = frozenset({"smoothed-hinge", "hinge"})

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("log", temperature=1.0, cost_scale=0.0),
        Loss("hinge", temperature=0.0, cost_scale=1.0),
        Loss("softmax-margin", temperature=1.0, cost_scale=1.0),
        Loss("squared-hinge", temperature=0.0, cost_scale=1.0, link="squared"),
        Loss("smoothed-hinge", temperature=0.1, cost_scale=1.0),
        Loss("slack-hinge", temperature=0.0, cost_scale=1.0, rescaling="slack"),
    )
}

#: The names that come with partwise; they keep their meaning.
_OURS = frozenset(LOSSES)


def register_loss(loss: Loss) -> Loss:
    """Make a loss known by its name to estimators, `Problem` and the command line (`--plugin FILE`); return the loss.

    A loss that is registered again, as in a notebook's cell, replaces the one before. Model files hold losses by value:
    they load and predict where the loss is not registered. TypeError if it is not a `Loss`; ValueError if its name is
    that of a loss of partwise, or is not made of letters, digits and hyphens.
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"register_loss takes a Loss, got {type(loss).__name__}")
    if not re.fullmatch(r"[a-zA-Z][\w-]*", loss.name):
        raise ValueError(f"the name of a loss must be letters, digits and hyphens, got {loss.name!r}")
    if loss.name in _OURS and LOSSES[loss.name] != loss:
        raise ValueError(f"{loss.name!r} is a loss of partwise: give yours another name")
    LOSSES[loss.name] = loss
    return loss


def get_loss(loss: str | Loss, *, temperature: float | None = None, cost_scale: float | None = None) -> Loss:
    """Return the loss of this name (or this Loss), with another temperature or cost scale; ValueError if unknown."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ValueError(f"unknown loss {loss!r}; there are {', '.join(LOSSES)}")
        loss = LOSSES[loss]
    elif not isinstance(loss, Loss):
        raise TypeError(f"loss must be a name or a Loss, got {type(loss).__name__}")
    changes = {"temperature": temperature, "cost_scale": cost_scale}
    return replace(loss, **{name: value for name, value in changes.items() if value is not None})  # type: ignore[arg-type]
