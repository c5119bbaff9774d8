"""Past rounds as rows, where sums do not suffice."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Spec
from feelgood.numerics import lanes
from feelgood.numerics.chain_programs import Chains
from feelgood.targets import models
from feelgood.targets.random_batches import batch_window
from feelgood.targets.room import SMALLEST_ROOM, is_full, sizes_up_to, smallest_size

#: Up to this many multiplications a product is written as a sum, and not as a call of the library
#: for products. Around such a call the compiler cannot compile a loop whole (see `core.flags`).
#: Not more: XLA as in JAX 0.10 errs in differences of such sums over some 100,000 numbers.
SMALL_PRODUCT = 4096
#: Up to so many dimensions the scores of past rounds are written out. What is written out is
#: computed anew for each of its uses, so that more would take ten times as long.
WRITTEN_OUT_DIMENSIONS = 64


class Chunk(NamedTuple):
    """Some rounds: what all arms showed, what the played arm showed, and what it paid."""

    contexts: Float[Array, "... width"] | None
    features: Float[Array, "dim ... width"] | None
    arms: Int[Array, "... width"]
    rewards: Float[Array, "... width"]
    valid: Float[Array, "... width"]
    #: Which rounds they are, counted from 0.
    numbers: Int[Array, "... width"]


class Rows(eqx.Module):
    """Past rounds, with the rounds on the fastest axis.

    A pass over the history reads the filled part only: one branch per size, each a single fused
    pass (a loop over small chunks costs more than the arithmetic). Where the layout says so, a pass
    reads the whole store under a mask, and the store grows along the run. For disjoint parameters
    the played feature is the context itself.
    """

    contexts: Float[Array, "dim ... room"] | None
    features: Float[Array, "dim ... room"] | None
    arms: Int[Array, "... room"]
    rewards: Float[Array, "... room"]
    filled: Int[Array, ""]
    spec: Spec = eqx.field(static=True)

    @classmethod
    def empty(cls, spec: Spec, all_arms: bool, played: bool) -> "Rows":
        """No rounds, and room for a few.

        `all_arms`: keep what every arm showed; `played`: keep what the played arm showed.
        """

        def zeros(*lead: int) -> Array:
            return jnp.zeros((*lead, *spec.lanes, SMALLEST_ROOM))

        keep_contexts = all_arms or (played and not spec.shared)
        return cls(
            contexts=zeros(*spec.context_shape) if keep_contexts else None,
            features=zeros(spec.dim) if played and spec.shared else None,
            arms=zeros().astype(jnp.int32),
            rewards=zeros(),
            filled=jnp.zeros((), jnp.int32),
            spec=spec,
        )

    @property
    def capacity(self) -> int:
        """Rounds that there is room for."""
        return self.arms.shape[-1]

    def reserve(self, rounds: int) -> "Rows":
        """The same rounds with room for at least `rounds`."""
        extra = max(0, max(rounds, SMALLEST_ROOM) - self.capacity)

        def grow(x: Array) -> Array:
            return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, extra)])

        stored = (self.contexts, self.features, self.arms, self.rewards)
        contexts, features, arms, rewards = jax.tree.map(grow, stored)
        return eqx.tree_at(
            lambda rows: (rows.contexts, rows.features, rows.arms, rows.rewards),
            self,
            (contexts, features, arms, rewards),
            is_leaf=lambda leaf: leaf is None,
        )

    def add(
        self,
        context: Float[Array, "..."],
        x: Float[Array, "dim *lanes"],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> "Rows":
        """One more round; there is more room after it where there was none."""
        if is_full(self.filled, self.capacity):
            return self.reserve(2 * self.capacity).add(context, x, arm, reward)

        def put(store: Array | None, value: Array) -> Array | None:
            return None if store is None else store.at[..., self.filled].set(value)

        return Rows(
            contexts=put(self.contexts, context),
            features=put(self.features, x),
            arms=self.arms.at[..., self.filled].set(arm),
            rewards=self.rewards.at[..., self.filled].set(reward),
            filled=self.filled + 1,
            spec=self.spec,
        )

    def places(self) -> Any:
        """Where each array has its chains; settings of a sweep share their seed's contexts."""
        layout = self.spec.layout
        shared = Chains(-2, period=layout.chains // layout.settings)
        places = jax.tree.map(lambda x: Chains(-2 if x.ndim else None), self)
        if self.contexts is None:
            return places
        return eqx.tree_at(lambda rows: rows.contexts, places, shared)

    def played_features(self) -> Float[Array, "dim ... room"] | None:
        """What the played arms showed."""
        return self.features if self.spec.shared else self.contexts

    def slice(self, start: Int[Array, ""] | int, size: int) -> Chunk:
        """`size` rounds from `start` on, with a mask of those that are filled."""

        def take(store: Array | None) -> Array | None:
            if store is None or (isinstance(start, int) and size == store.shape[-1]):
                return store
            return lax.dynamic_slice_in_dim(store, start, size, axis=-1)

        arms, rewards = take(self.arms), take(self.rewards)
        assert arms is not None and rewards is not None
        numbers = start + jnp.arange(size)
        return Chunk(
            contexts=take(self.contexts),
            features=take(self.played_features()),
            arms=arms,
            rewards=rewards,
            valid=(numbers < self.filled).astype(jnp.float32),
            numbers=numbers,
        )

    def total(self, function: Callable[[Chunk, Any], Any], argument: Any) -> Any:
        """A function of all filled rounds as one chunk, such as a sum over them."""
        if self.spec.layout.reads_all:
            return function(self.slice(0, self.capacity), argument)
        sizes = sizes_up_to(self.capacity)

        def reading(size: int) -> Callable[["Rows", Any], Any]:
            return lambda rows, argument: function(rows.slice(0, size), argument)

        which = smallest_size(sizes, self.filled)
        return lax.switch(which, [reading(size) for size in sizes], self, argument)

    def batch(self, number: Int[Array, "*lanes"], size: int, longest: int | None = None) -> Chunk:
        """A batch of the history, see `random_batch`, as a chunk; `longest`: see `batch_window`."""
        first, valid = batch_window(number, self.filled, size, self.capacity, longest)

        def take(store: Array | None) -> Array | None:
            if store is None:
                return None
            width = valid.shape[-1]
            cut = functools.partial(lax.dynamic_slice_in_dim, slice_size=width, axis=-1)
            for _ in range(first.ndim):
                cut = jax.vmap(cut, in_axes=(-2, 0), out_axes=-2)
            return cut(store, first)

        arms, rewards = take(self.arms), take(self.rewards)
        assert arms is not None and rewards is not None
        return Chunk(
            contexts=take(self.contexts),
            features=take(self.played_features()),
            arms=arms,
            rewards=rewards,
            valid=valid,
            numbers=first[..., None] + jnp.arange(valid.shape[-1]),
        )


def row_scores(
    spec: Spec,
    theta: Float[Array, "dim blocks *lanes"],
    contexts: Float[Array, "... width"],
) -> Float[Array, "arms *lanes width"]:
    """f_θ of every arm in every round of a chunk."""
    if spec.dim > WRITTEN_OUT_DIMENSIONS:
        return jnp.sum(theta[..., None] * models.features(spec, contexts), axis=0)
    return models.scores(spec, theta[..., None], contexts)


def played_scores(
    spec: Spec,
    theta: Float[Array, "dim blocks *lanes"],
    features: Float[Array, "dim *lanes width"],
    arms: Int[Array, "*lanes width"],
) -> tuple[Float[Array, "*lanes width"], Float[Array, "blocks *lanes width"]]:
    """f_θ of the played arm in every round, and the block it belongs to (one-hot)."""
    every = lanes.dot(theta[..., None], features[:, None])
    if spec.shared:
        return every[0], jnp.ones_like(every)
    onehot = lanes.one_hot(arms, spec.arms)
    return lanes.pick(every, onehot), onehot


def total_of(
    values: Float[Array, "*lanes width"], valid: Float[Array, "... width"]
) -> Float[Array, "*lanes"]:
    """Σ over the valid rounds.

    A long one is a product with the mask. A sum must add its terms in order, and all that it is
    fused with would be computed one by one as well.
    """
    if values.size <= SMALL_PRODUCT:
        return jnp.sum(values * valid, axis=-1)
    return jnp.einsum("...t,...t->...", values, valid, precision=lax.Precision.HIGHEST)


def contract(
    weights: Float[Array, "blocks *lanes width"], x: Float[Array, "dim *lanes width"]
) -> Float[Array, "dim blocks *lanes"]:
    """Σ over rounds of weight × feature: the chain rule from scores back to parameters."""
    if len(x) * weights.size <= SMALL_PRODUCT:
        return jnp.sum(weights[None] * x[:, None], axis=-1)
    return jnp.einsum("a...t,d...t->da...", weights, x, precision=lax.Precision.HIGHEST)
