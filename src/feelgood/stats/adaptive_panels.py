"""Many integrals at once, by Gauss's rule on panels that are halved until they are right."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

#: Nodes of Gauss's rule on each panel.
PANEL_NODES = 16
#: A panel is halved at most so often.
_MOST_HALVINGS = 40
#: Integrals below this are not told from 0.
_LEAST_INTEGRAL = 1e-300
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(PANEL_NODES)
#: From values at the nodes to the last two coefficients of their series in Legendre's polynomials.
_DEGREES = np.arange(PANEL_NODES - 2, PANEL_NODES)
_LAST = (
    (_DEGREES[:, None] + 0.5)
    * _WEIGHTS
    * np.polynomial.legendre.legvander(_NODES, PANEL_NODES - 1)[:, _DEGREES].T
)


class Panels(NamedTuple):
    """Intervals, and of which integral each is a part."""

    start: Float[np.ndarray, " panels"]
    end: Float[np.ndarray, " panels"]
    owner: Int[np.ndarray, " panels"]

    @classmethod
    def between(cls, points: list[np.ndarray]) -> "Panels":
        """Those between the points of each integral."""
        owner = np.concatenate([np.full(len(p) - 1, i) for i, p in enumerate(points)])
        starts = np.concatenate([p[:-1] for p in points])
        return cls(starts, np.concatenate([p[1:] for p in points]), owner)

    def only(self, chosen: np.ndarray) -> "Panels":
        """Some of them."""
        return Panels(self.start[chosen], self.end[chosen], self.owner[chosen])

    def halved(self) -> "Panels":
        """The halves of each panel, one behind the other."""
        middle = 0.5 * (self.start + self.end)
        start = np.stack([self.start, middle], axis=1).ravel()
        return Panels(start, np.stack([middle, self.end], axis=1).ravel(), np.repeat(self.owner, 2))


#: From nodes and the integral that each belongs to, to positive values.
Integrand = Callable[
    [Float[np.ndarray, " nodes"], Int[np.ndarray, " nodes"]], Float[np.ndarray, "nodes parts"]
]


def integrals(
    integrand: Integrand,
    panels: Panels,
    count: int,
    tolerance: float,
    at_once: int,
    least: float = _LEAST_INTEGRAL,
) -> Float[np.ndarray, "count parts"]:
    """`count` integrals of positive functions with several parts each.

    A panel is right where the last coefficients of the function's Legendre series are below
    `tolerance` times the whole integral, in every part. The rule is exact up to twice their degree,
    so where coefficients fall geometrically its error is about `tolerance` squared. Parts as small
    as `least` are as exact as large ones. `at_once` panels are evaluated at a time.
    """
    done = np.zeros(0)
    for _ in range(_MOST_HALVINGS):
        value, last = _by_rule(integrand, panels, at_once)
        done = done if done.size else np.zeros((count, value.shape[1]))
        size = done.copy()
        np.add.at(size, panels.owner, value)
        allowed = tolerance * np.maximum(size, least)
        wrong = np.any(last > allowed[panels.owner], axis=1)
        np.add.at(done, panels.owner[~wrong], value[~wrong])
        if not wrong.any():
            return done
        panels, rest = panels.only(wrong), (panels.owner[wrong], value[wrong])
        panels = panels.halved()
    np.add.at(done, *rest)
    return done


def _by_rule(
    integrand: Integrand, panels: Panels, at_once: int
) -> tuple[Float[np.ndarray, "panels parts"], Float[np.ndarray, "panels parts"]]:
    """The integral over each panel, and its last coefficients times the panel's length."""
    values, lasts = [], []
    for first in range(0, len(panels.start), at_once):
        part = panels.only(np.arange(first, min(first + at_once, len(panels.start))))
        half = 0.5 * (part.end - part.start)
        nodes = (part.start + half)[:, None] + half[:, None] * _NODES
        found = integrand(nodes.ravel(), np.repeat(part.owner, PANEL_NODES))
        found = found.reshape(*nodes.shape, -1)
        values.append(half[:, None] * (_WEIGHTS @ found))
        lasts.append(2.0 * half[:, None] * np.abs(_LAST @ found).sum(axis=1))
    return np.concatenate(values), np.concatenate(lasts)
