"""Products with the first layer of a network where each row needs the block of one arm alone.

On an accelerator a product with all blocks and a choice among them is quick. On a processor it
takes as many times too long as there are arms. There rows are taken one after the other, each with
its own block, in a loop that calls no library and is compiled whole (see `core.flags`).
"""

import functools

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.strips import written_dot

#: Up to so many inputs a row's product with its block is written out.
MOST_INPUTS_OF_A_ROW = 64


def block_products(
    blocks: Float[Array, "width blocks hidden"],
    rows: Float[Array, "rows width"],
    arms: Int[Array, " rows"],
) -> Float[Array, "rows hidden"]:
    """Each row times the block of its arm."""
    width, _, hidden = blocks.shape

    def one(i: Int[Array, ""], out: Array) -> Array:
        # One slice per input: the compiler would copy a slice that it takes apart again.
        cut = functools.partial(lax.dynamic_slice, blocks, slice_sizes=(1, 1, hidden))
        weights = [cut((d, arms[i], 0)).reshape(hidden) for d in range(width)]
        row = jnp.stack([lax.dynamic_slice(rows, (i, d), (1, 1))[0, 0] for d in range(width)])
        return lax.dynamic_update_slice(out, written_dot(row, weights)[None], (i, 0))

    return lax.fori_loop(0, len(rows), one, jnp.zeros((len(rows), hidden)))


def block_sums(
    rows: Float[Array, "rows width"],
    deltas: Float[Array, "rows hidden"],
    arms: Int[Array, " rows"],
    count: int,
) -> Float[Array, "width blocks hidden"]:
    """Σ row ⊗ delta, in the block of each row's arm, of so many blocks."""
    width, hidden = rows.shape[1], deltas.shape[1]

    def one(i: Int[Array, ""], total: Array) -> Array:
        row = lax.dynamic_slice(rows, (i, 0), (1, width)).reshape(width, 1, 1)
        delta = lax.dynamic_slice(deltas, (i, 0), (1, hidden))
        own = lax.dynamic_slice(total, (0, arms[i], 0), (width, 1, hidden))
        return lax.dynamic_update_slice(total, own + row * delta, (0, arms[i], 0))

    return lax.fori_loop(0, len(rows), one, jnp.zeros((width, count, hidden)))
