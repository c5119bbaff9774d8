"""A network's gradient as a sum over *picks*: a row, an arm of it and a slope.

Without a bonus each row has one pick, the arm that was played. With a feel-good bonus it has two:
that one and the best one, which the scores of all arms tell.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.targets.networks import Network

_Vector = Float[Array, " parameters"]


class Picks(NamedTuple):
    """Arms of rows, and numbers of each that its slope is made of; row k % rows belongs to pick k.

    `slope(score, *numbers)` is the slope.
    """

    arms: Int[Array, " picks"]
    numbers: tuple[Float[Array, " picks"], ...]
    slope: Callable[..., Float[Array, " picks"]]


class Passes(NamedTuple):
    """A way through a network: f of every arm, and the scores and the gradient of picks."""

    scores: Callable[..., Float[Array, "rows arms"]]
    gradient: Callable[..., tuple[Float[Array, " picks"], _Vector]]


def plain_scores(
    network: Network, theta: _Vector, rows: Float[Array, "rows ... width"]
) -> Float[Array, "rows arms"]:
    """f of every arm."""
    return network.forward(network.split(theta), rows)[0]


def plain_gradient(
    network: Network, theta: _Vector, rows: Float[Array, "rows ... width"], picks: Picks
) -> tuple[Float[Array, " picks"], _Vector]:
    """The score of each pick, and Σ slope · ∇f."""
    weights, times = network.split(theta), len(picks.arms) // len(rows)
    of_picks = jnp.concatenate([rows] * times) if times > 1 else rows
    scores, tape = network.forward(weights, of_picks, picks.arms)
    slopes = picks.slope(scores[:, 0], *picks.numbers)
    return scores[:, 0], network.backward(weights, tape, slopes[:, None])[: len(theta)]


#: One operation after the other.
AS_OPERATIONS = Passes(plain_scores, plain_gradient)
