"""Batches in the order in which rows are stored."""

import jax.numpy as jnp
from jaxtyping import Array, Int

from feelgood.targets.replay import Batch, Replay


def stored_batch(replay: Replay, step: Int[Array, ""], size: int) -> Batch:
    """Batch number `step` of the history in stored order, from the first row on again and again.

    The last batch of a pass has what is left; rows beside it count 0.
    """
    batches = jnp.maximum((replay.filled + size - 1) // size, 1)
    index = (step % batches) * size + jnp.arange(size)
    inside = (index < replay.filled).astype(jnp.float32)
    return replay.gather(jnp.minimum(index, replay.capacity - 1))._replace(counts=inside)
