"""Batches of consecutive rounds, drawn at random, and sums over each of them."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.targets.room import SMALLEST_ROOM, is_full


def batch_length(
    number: Int[Array, "*lanes"], filled: Int[Array, ""], size: int
) -> Int[Array, "*lanes"]:
    """Rounds in a batch: `size`, or all that are left where those are fewer than 2 · `size`."""
    left = filled - number * size
    return jnp.where(left < 2 * size, left, size)


def batch_window(
    number: Int[Array, "*lanes"],
    filled: Int[Array, ""],
    size: int,
    capacity: int,
    longest: int | None = None,
) -> tuple[Int[Array, "*lanes"], Float[Array, "*lanes width"]]:
    """Where to begin reading a batch, and which of the rounds read are in it.

    `longest`: how many rounds the batch has at most, where that is known; so many are read, or as
    many as there is room for.
    """
    width = min(2 * size - 1 if longest is None else longest, capacity)
    start = number * size
    end = start + batch_length(number, filled, size)
    first = jnp.minimum(start, capacity - width)
    at = first[..., None] + jnp.arange(width)
    return first, ((at >= start[..., None]) & (at < end[..., None])).astype(jnp.float32)


def random_batch(
    uniform: Float[Array, "*lanes"], filled: Int[Array, ""], size: int
) -> tuple[Int[Array, "*lanes"], Float[Array, "*lanes"]]:
    """A random batch of a history in batches of `size` rounds, and the weight of a sum over it.

    It is the batch of a round drawn uniformly, by one uniform number. Of n rounds, a batch of m is
    drawn with probability m/n, so the sum over it with weight n/m is unbiased for the sum over all
    rounds. What does not fill a batch at the end belongs to the last one. So no weight is larger
    than n/`size`; otherwise estimates would now and then be very large. Consecutive rounds are read
    several times as fast as rounds from all over the history.
    """
    drawn = jnp.minimum((uniform * filled).astype(jnp.int32), jnp.maximum(filled - 1, 0))
    last = jnp.maximum(lax.div(filled, size), 1) - 1
    number = jnp.minimum(lax.div(drawn, size), last)
    return number, filled / jnp.maximum(batch_length(number, filled, size), 1)


class BatchGrams(eqx.Module):
    """Σ x xᵀ of each block of parameters, over every `size` consecutive rounds.

    All that a squared loss needs of a batch of the history: where there are fewer parameters than
    rounds in a batch, it is less than the rounds themselves.
    """

    grams: Float[Array, "batches dim dim blocks *lanes"]
    size: int = eqx.field(static=True)

    @classmethod
    def empty(cls, spec: Spec, size: int) -> "BatchGrams":
        """No rounds, and room for a few."""
        shape = (-(-SMALLEST_ROOM // size), spec.dim, spec.dim, spec.blocks, *spec.lanes)
        return cls(grams=jnp.zeros(shape), size=size)

    @property
    def capacity(self) -> int:
        """Rounds that there is room for."""
        return len(self.grams) * self.size

    def reserve(self, rounds: int) -> "BatchGrams":
        """The same batches with room for at least `rounds` rounds."""
        extra = max(0, -(-max(rounds, SMALLEST_ROOM) // self.size) - len(self.grams))
        more = jnp.zeros((extra, *self.grams.shape[1:]))
        return BatchGrams(grams=jnp.concatenate([self.grams, more]), size=self.size)

    def add(
        self,
        x: Float[Array, "dim *lanes"],
        block: Float[Array, "blocks *lanes"],
        count: Int[Array, ""],
    ) -> "BatchGrams":
        """Round `count`, counted from 0."""
        if is_full(count, self.capacity):
            return self.reserve(2 * self.capacity).add(x, block, count)
        number = lax.div(count, self.size)
        gram = lax.dynamic_index_in_dim(self.grams, number, 0, keepdims=False)
        gram = gram + lanes.outer(x, x)[:, :, None] * block
        grams = lax.dynamic_update_index_in_dim(self.grams, gram, number, 0)
        return BatchGrams(grams=grams, size=self.size)

    def of(
        self, number: Int[Array, "*lanes"], filled: Int[Array, ""]
    ) -> Float[Array, "dim dim blocks *lanes"]:
        """Σ x xᵀ over one batch, see `random_batch`."""
        more = batch_length(number, filled, self.size) > self.size
        after = jnp.minimum(number + 1, len(self.grams) - 1)
        return self._stored(number) + jnp.where(more, self._stored(after), 0.0)

    def _stored(self, number: Int[Array, "*lanes"]) -> Float[Array, "dim dim blocks *lanes"]:
        if number.ndim == 0:
            return lax.dynamic_index_in_dim(self.grams, number, 0, keepdims=False)
        return jnp.take_along_axis(
            self.grams, number[None, None, None, None], 0, mode="promise_in_bounds"
        )[0]
