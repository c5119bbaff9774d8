"""A loop over the things that are flagged, and over no others.

Flags are packed into words first: a word without a flag costs one comparison.
"""

from collections.abc import Callable
from typing import TypeVar

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

Carry = TypeVar("Carry")

#: Bits of a word.
WORD = 32


def for_each(
    flags: Bool[Array, "..."], function: Callable[[Int[Array, ""], Carry], Carry], carry: Carry
) -> Carry:
    """The carry after a function of every number whose flag is set, counted as in a flat array."""
    words = packed(flags.reshape(-1))

    def of_word(k: Int[Array, ""], carry: Carry) -> Carry:
        def one(at: tuple[Array, Carry]) -> tuple[Array, Carry]:
            bits, carry = at
            lowest = bits & (~bits + 1)
            place = WORD - 1 - lax.clz(lowest).astype(jnp.int32)
            return bits ^ lowest, function(k * WORD + place, carry)

        return lax.while_loop(lambda at: at[0] != 0, one, (words[k], carry))[1]

    return lax.fori_loop(0, len(words), of_word, carry)


def packed(flags: Bool[Array, " n"]) -> UInt32[Array, " words"]:
    """Flags as the bits of words."""
    flags = jnp.pad(flags, (0, -len(flags) % WORD))
    bits = flags.reshape(-1, WORD).astype(jnp.uint32) << jnp.arange(WORD, dtype=jnp.uint32)
    return jnp.sum(bits, axis=1, dtype=jnp.uint32)
