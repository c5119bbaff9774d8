"""A shuffle of any number of rows that is computed, not stored.

Row t of a shuffled dataset is wanted inside a compiled program, for many seeds at once. Stored
orders would cost a sort and N numbers per seed (232 MB for 100 seeds of covertype). Instead each
round's row is computed by a small keyed bijection of 0 … N − 1.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int, Key, UInt32

#: Rounds of the Feistel network; six are enough in theory, small tables profit from more.
STEPS = 12


def shuffle_key(key: Key[Array, ""]) -> UInt32[Array, " words"]:
    """What picks one shuffle: a random word for each step and one for the parity."""
    return jax.random.bits(key, (STEPS + 1,), jnp.uint32)


def _mix(word: UInt32[Array, "*shape"]) -> UInt32[Array, "*shape"]:
    """The finaliser of MurmurHash3: every bit of the result depends on every bit of the word."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)


def shuffled_row(order: UInt32[Array, " words"], t: Int[Array, ""], rows: int) -> Int[Array, ""]:
    """The row of round `t`: each pass over the rows meets every one once, in its own order.

    A place is written as two digits in base ⌈√rows⌉ and goes through a Feistel network, which is
    a bijection whatever its keys. A result past the last row goes through it again (Black and
    Rogaway, Ciphers with Arbitrary Finite Domains, 2002). For many bases such a network makes
    even permutations only, so half of the shuffles exchange the first two places before.
    """
    base = jnp.uint32(math.isqrt(rows - 1) + 1)
    turn = t.astype(jnp.uint32)
    words = _mix(order + (turn // rows) * jnp.uint32(0x9E3779B9))

    def network(place: Array) -> Array:
        def step(i: Array, digits: tuple[Array, Array]) -> tuple[Array, Array]:
            left, right = digits
            return right, (left + _mix(right + words[i])) % base

        left, right = lax.fori_loop(0, STEPS, step, (place // base, place % base))
        return left * base + right

    def again(walk: tuple[Array, Array]) -> Array:
        place, begun = walk
        return ~begun | (place >= rows)

    place = turn % rows
    if rows > 1:
        place = jnp.where(place < 2, place ^ (words[STEPS] & 1), place)
    start = (place, jnp.asarray(False))
    place, _ = lax.while_loop(again, lambda walk: (network(walk[0]), jnp.asarray(True)), start)
    return place.astype(jnp.int32)
