"""Random numbers for testbeds."""

import jax
from jax import lax
from jaxtyping import Array, Float, Key

#: Numbers that the CPU makes at a time.
WIDTH = 8


def standard_normal(key: Key[Array, ""], count: int) -> Float[Array, " count"]:
    """The first `count` standard normals of a key: those of `jax.random.normal(key, (count,))`.

    JAX's generator gives number i of a key whatever the length, so it is asked for a multiple of
    the vector width and the rest is dropped: an odd length takes twice the time on CPU.
    """
    padded = -(-count // WIDTH) * WIDTH if count > WIDTH // 2 else count
    return lax.optimization_barrier(jax.random.normal(key, (padded,)))[:count]
