"""What an agent with a network remembers: past rounds as rows, to draw batches from.

Written for one chain. Rows lead and the dimension is the fastest axis, as matrix products and
gathered rows like it. `filled` is common to all chains, so that the choice of how much to read is
a branch and not a mask.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.numerics.lanes import Unbatched
from feelgood.targets import network_programs
from feelgood.targets.networks import Network
from feelgood.targets.random_batches import batch_window
from feelgood.targets.room import SMALLEST_ROOM, is_full, sizes_up_to, smallest_size, unless_lost

Rows = TypeVar("Rows")


class Batch(NamedTuple):
    """Some rounds, and how much each counts in a sum."""

    contexts: Float[Array, "rows ... width"]
    arms: Int[Array, " rows"]
    rewards: Float[Array, " rows"]
    counts: Float[Array, " rows"]
    #: Which rounds they are, counted from 0.
    numbers: Int[Array, " rows"]


class Replay(eqx.Module):
    """Past rounds of one chain."""

    contexts: Float[Array, "room ... width"]
    arms: Int[Array, " room"]
    rewards: Float[Array, " room"]
    unbatched: Unbatched
    #: Whether sums read the whole store under a mask; see `Layout`.
    reads_all: bool = eqx.field(static=True, default=False)
    #: Whether rows of a batch that have the same arm lie together; see `network_programs`.
    by_arm: bool = eqx.field(static=True, default=False)

    @classmethod
    def empty(cls, network: Network) -> "Replay":
        """No rounds, and room for a few. Contexts are kept as the network's rows."""
        like = jax.eval_shape(network.row, jnp.zeros(network.spec.context_shape))
        return cls(
            contexts=jnp.zeros((SMALLEST_ROOM, *like.shape)),
            arms=jnp.zeros(SMALLEST_ROOM, jnp.int32),
            rewards=jnp.zeros(SMALLEST_ROOM),
            unbatched=Unbatched(jnp.zeros((), jnp.int32)),
            reads_all=network.spec.layout.reads_all,
            by_arm=network_programs.wants_arms_together(network),
        )

    @property
    def filled(self) -> Int[Array, ""]:
        """Rounds so far."""
        return self.unbatched.value

    @property
    def capacity(self) -> int:
        """Rounds that there is room for."""
        return len(self.arms)

    def unless_lost(self, theta: Float[Array, "..."]) -> Float[Array, "..."]:
        """The parameters, or NaN where rounds were lost; see `room.unless_lost`."""
        return unless_lost(theta, self.filled, self.capacity)

    def reserve(self, rounds: int) -> "Replay":
        """The same rounds with room for at least `rounds`."""
        extra = max(0, max(rounds, SMALLEST_ROOM) - self.capacity)

        def grow(x: Array) -> Array:
            return jnp.pad(x, [(0, extra)] + [(0, 0)] * (x.ndim - 1))

        stored = (grow(self.contexts), grow(self.arms), grow(self.rewards))
        return self._with(*stored, self.filled)

    def add(
        self,
        row: Float[Array, "... width"],
        arm: Int[Array, ""],
        reward: Float[Array, ""],
    ) -> "Replay":
        """One more round; there is more room after it where there was none."""
        if is_full(self.filled, self.capacity):
            return self.reserve(2 * self.capacity).add(row, arm, reward)

        def put(store: Array, value: Array) -> Array:
            return lax.dynamic_update_index_in_dim(store, value.astype(store.dtype), self.filled, 0)

        stored = (put(self.contexts, row), put(self.arms, arm), put(self.rewards, reward))
        return self._with(*stored, self.filled + 1)

    def _with(self, contexts: Array, arms: Array, rewards: Array, filled: Array) -> "Replay":
        return dataclasses.replace(
            self, contexts=contexts, arms=arms, rewards=rewards, unbatched=Unbatched(filled)
        )

    def gather(self, index: Int[Array, " rows"], size: int | None = None) -> Batch:
        """The rounds with these numbers, each counted once.

        Where arms are brought together, each batch of `size` rounds has another order.
        """
        if self.by_arm and size is not None:
            shape = (-1, size)
            arms, rounds = self.arms[index].reshape(shape), index.reshape(shape)
            index = lax.sort_key_val(arms, rounds, dimension=1)[1].reshape(-1)
        return Batch(
            contexts=self.contexts[index],
            arms=self.arms[index],
            rewards=self.rewards[index],
            counts=jnp.ones(index.shape),
            numbers=index,
        )

    def batch(self, number: Int[Array, ""], size: int) -> Batch:
        """A batch of the history, see `random_batch`; rounds read beside it count 0."""
        first, counts = batch_window(number, self.filled, size, self.capacity)

        def take(store: Array) -> Array:
            return lax.dynamic_slice_in_dim(store, first, len(counts))

        return Batch(
            contexts=take(self.contexts),
            arms=take(self.arms),
            rewards=take(self.rewards),
            counts=counts,
            numbers=first + jnp.arange(len(counts)),
        )

    def first(self, size: int) -> Batch:
        """The first `size` rounds; those that have not been played count 0."""
        return Batch(
            contexts=self.contexts[:size],
            arms=self.arms[:size],
            rewards=self.rewards[:size],
            counts=(jnp.arange(size) < self.filled).astype(jnp.float32),
            numbers=jnp.arange(size),
        )

    def total(self, function: Callable[[Batch, Any], Any], argument: Any) -> Any:
        """Σ over all rounds of a function of a batch that sums over its own rounds.

        Reads the filled part only, by one branch per size; or the whole store, where the layout
        says so.
        """
        room = self.capacity
        if self.reads_all:
            return function(self.first(room), argument)
        sizes = sizes_up_to(room)

        def reading(size: int) -> Callable[["Replay", Any], Any]:
            return lambda replay, argument: function(replay.first(size), argument)

        which = smallest_size(sizes, self.filled)
        return lax.switch(which, [reading(size) for size in sizes], self, argument)


def row_bytes(network: Network) -> int:
    """Bytes that one remembered round takes."""
    return 4 * (network.width * (network.spec.arms if network.spec.shared else 1) + 2)


def tree_slice(batch: Rows, start: Int[Array, ""], size: int) -> Rows:
    """`size` rows of a batch, or of all arrays of a tree, from `start` on."""
    return jax.tree.map(lambda x: lax.dynamic_slice_in_dim(x, start, size), batch)
