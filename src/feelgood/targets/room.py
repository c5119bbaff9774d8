"""Room for past rounds: how much there is, how much a pass reads, what happens without it."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

#: Smallest number of rounds that a pass over one chain's history reads, and that there is room for.
SMALLEST_PASS, SMALLEST_ROOM = 256, 512


def sizes_up_to(room: int) -> list[int]:
    """256, 512, 1024, …, room: the rounds a pass may read."""
    sizes = [SMALLEST_PASS]
    while sizes[-1] < room:
        sizes.append(2 * sizes[-1])
    return [*sizes[:-1], room]


def smallest_size(sizes: list[int], filled: Int[Array, ""]) -> Int[Array, ""]:
    """Which is the smallest of the sizes that holds `filled` rounds; `searchsorted` is a loop."""
    return jnp.sum(jnp.asarray(sizes) < filled)


def is_full(filled: Int[Array, ""], room: int) -> bool:
    """Whether the next round finds no room. In a compiled program nobody can tell: False."""
    return not isinstance(filled, jax.core.Tracer) and int(filled) >= room


def unless_lost(
    theta: Float[Array, "..."], filled: Int[Array, ""], room: int
) -> Float[Array, "..."]:
    """The parameters, or NaN once more rounds were written than there is room for.

    A state grows by itself, but not inside a compiled program. A chain that has lost rounds there
    counts as diverged.
    """
    return theta + jnp.where(filled > room, jnp.nan, 0.0)
