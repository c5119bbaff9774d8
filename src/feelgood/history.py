"""What an agent remembers: sufficient statistics, and past rounds where those do not suffice."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood import lanes, models
from feelgood.types import Number, Spec

#: Rounds a chunk, where one chain is stored alone (the pass over the history then stops at the
#: last filled chunk).
CHUNK = 512


class Stats(NamedTuple):
    """Σ x xᵀ and Σ r x of each parameter block: all that a squared loss needs of the past."""

    gram: Float[Array, "dim dim blocks *lanes"]
    moment: Float[Array, "dim blocks *lanes"]

    @classmethod
    def empty(cls, spec: Spec, shape: tuple[int, ...]) -> "Stats":
        """No observations."""
        moment = jnp.zeros((spec.dim, spec.blocks, *shape))
        return cls(gram=jnp.zeros((spec.dim, *moment.shape)), moment=moment)

    def add(
        self,
        x: Float[Array, "dim *lanes"],
        block: Float[Array, "blocks *lanes"],
        reward: Float[Array, "*lanes"],
    ) -> "Stats":
        """One more observation."""
        return Stats(
            gram=self.gram + lanes.outer(x, x)[:, :, None] * block,
            moment=self.moment + (reward * x)[:, None] * block,
        )


class Chunk(NamedTuple):
    """Some rounds: what all arms showed, what the played arm showed, and what it paid."""

    contexts: Float[Array, "... width"] | None
    features: Float[Array, "dim ... width"] | None
    arms: Int[Array, "... width"]
    rewards: Float[Array, "... width"]
    valid: Float[Array, " width"]


class Rows(eqx.Module):
    """Past rounds, with the rounds on the fastest axis, cut into chunks of equal width.

    A chain stored alone uses many narrow chunks, and passes over it stop at the last one filled.
    Chains stored together (an accelerator) use one chunk as wide as the capacity, and a mask.
    For disjoint parameters the played feature is the context itself.
    """

    contexts: Float[Array, "chunks ... width"] | None
    features: Float[Array, "chunks dim ... width"] | None
    arms: Int[Array, "chunks ... width"]
    rewards: Float[Array, "chunks ... width"]
    filled: Int[Array, ""]
    spec: Spec = eqx.field(static=True)

    @classmethod
    def empty(cls, spec: Spec, shape: tuple[int, ...], all_arms: bool, played: bool) -> "Rows":
        """No rounds and no room: `reserve` makes some.

        `all_arms`: keep what every arm showed; `played`: keep what the played arm showed.
        """

        def zeros(*lead: int) -> Array:
            return jnp.zeros((1, *lead, *shape, 0))

        keep_contexts = all_arms or (played and not spec.shared)
        return cls(
            contexts=zeros(*spec.context_shape) if keep_contexts else None,
            features=zeros(spec.dim) if played and spec.shared else None,
            arms=jnp.zeros((1, *shape, 0), jnp.int32),
            rewards=zeros(),
            filled=jnp.zeros((), jnp.int32),
            spec=spec,
        )

    @property
    def together(self) -> bool:
        """Whether several chains are stored together."""
        return self.arms.ndim > 2

    @property
    def capacity(self) -> int:
        """Rounds that there is room for."""
        return self.arms.shape[0] * self.arms.shape[-1]

    def reserve(self, rounds: int) -> "Rows":
        """The same rounds with room for at least `rounds`."""
        if rounds <= self.capacity:
            return self
        if self.together:

            def grow(x: Array) -> Array:
                return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, rounds - x.shape[-1])])
        else:
            chunks = math.ceil(rounds / CHUNK)

            def grow(x: Array) -> Array:
                out = jnp.zeros((chunks, *x.shape[1:-1], CHUNK), x.dtype)
                return out.at[: x.shape[0]].set(x) if x.shape[-1] else out

        stored = (self.contexts, self.features, self.arms, self.rewards)
        contexts, features, arms, rewards = jax.tree.map(grow, stored)
        return Rows(contexts, features, arms, rewards, self.filled, self.spec)

    def add(
        self,
        context: Float[Array, "..."],
        x: Float[Array, "dim *lanes"],
        arm: Int[Array, "*lanes"],
        reward: Float[Array, "*lanes"],
    ) -> "Rows":
        """One more round."""
        width = self.arms.shape[-1]
        chunk, column = self.filled // width, self.filled % width

        def put(store: Array | None, value: Array) -> Array | None:
            return None if store is None else store.at[chunk, ..., column].set(value)

        return Rows(
            contexts=put(self.contexts, context),
            features=put(self.features, x),
            arms=self.arms.at[chunk, ..., column].set(arm),
            rewards=self.rewards.at[chunk, ..., column].set(reward),
            filled=self.filled + 1,
            spec=self.spec,
        )

    def chunk(self, index: Int[Array, ""] | int) -> Chunk:
        """One chunk, with a mask of the rounds in it that are filled."""
        width = self.arms.shape[-1]

        def take(store: Array | None) -> Array | None:
            return None if store is None else lax.dynamic_index_in_dim(store, index, 0, False)

        valid = (index * width + jnp.arange(width) < self.filled).astype(jnp.float32)
        features = self.features if self.spec.shared else self.contexts
        return Chunk(
            contexts=take(self.contexts),
            features=take(features),
            arms=lax.dynamic_index_in_dim(self.arms, index, 0, False),
            rewards=lax.dynamic_index_in_dim(self.rewards, index, 0, False),
            valid=valid,
        )

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        """Σ over the filled rounds of a function of a chunk that sums over its own rounds."""
        if self.arms.shape[0] == 1:
            return function(self.chunk(0))
        blank = jax.eval_shape(function, self.chunk(0))
        start = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), blank)
        used = -(-self.filled // self.arms.shape[-1])
        return lax.fori_loop(
            0, used, lambda i, sums: jax.tree.map(jnp.add, sums, function(self.chunk(i))), start
        )

    def gather(self, index: Int[Array, "*lanes batch"]) -> Chunk:
        """The rounds with these numbers, as a chunk."""
        width = self.arms.shape[-1]

        def take(store: Array | None) -> Array | None:
            if store is None:
                return None
            if self.together:
                flat = store[0]
                lead = flat.ndim - index.ndim
                return jnp.take_along_axis(flat, index.reshape((1,) * lead + index.shape), axis=-1)
            return jnp.moveaxis(store[index // width, ..., index % width], 0, -1)

        features = self.features if self.spec.shared else self.contexts
        arms, rewards = take(self.arms), take(self.rewards)
        assert arms is not None and rewards is not None
        return Chunk(
            contexts=take(self.contexts),
            features=take(features),
            arms=arms,
            rewards=rewards,
            valid=jnp.ones(index.shape[-1:]),
        )


def row_scores(
    spec: Spec,
    theta: Float[Array, "dim blocks *lanes"],
    contexts: Float[Array, "... width"],
) -> Float[Array, "arms *lanes width"]:
    """f_θ of every arm in every round of a chunk."""
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
    hot = lanes.one_hot(arms, spec.arms)
    return lanes.pick(every, hot), hot


def contract(
    weights: Float[Array, "arms *lanes width"], x: Float[Array, "dim ... width"], spec: Spec
) -> Float[Array, "dim blocks *lanes"]:
    """Σ over rounds of weight × feature: the chain rule from scores back to parameters.

    `x` is a context without an arm axis (disjoint), or has one (shared), over which it sums too.
    On CPU a matrix product is fastest; on an accelerator one fused pass that reads x once.
    """
    if spec.shared:
        one_block = x.ndim == weights.ndim  # played features: the arm axis is a single block
        per_arm = x[:, None] * weights if one_block else x * weights
        return jnp.sum(per_arm, axis=(1, -1))[:, None]

    def product(w: Array, x: Array) -> Array:
        return jnp.einsum("a...t,d...t->da...", w, x, precision=lax.Precision.HIGHEST)

    def fused(w: Array, x: Array) -> Array:
        return jnp.stack(
            [jnp.stack([jnp.sum(w[a] * x[d], -1) for a in range(len(w))]) for d in range(len(x))]
        )

    return lax.platform_dependent(weights, x, cpu=product, default=fused)


def frobenius(gram: Float[Array, "dim dim blocks *lanes"]) -> Float[Array, "blocks *lanes"]:
    """‖G‖_F: an upper bound of the largest eigenvalue, at most √dim too large."""
    return jnp.sqrt(jnp.sum(gram * gram, axis=(0, 1)))


def scaled_identity(
    spec: Spec, scale: Number, shape: tuple[int, ...]
) -> Float[Array, "dim dim blocks *lanes"]:
    """√scale · I, the Cholesky factor of scale · I, for every block."""
    eye = jnp.eye(spec.dim).reshape(spec.dim, spec.dim, *([1] * (1 + len(shape))))
    return jnp.broadcast_to(
        jnp.sqrt(scale) * eye, (spec.dim, spec.dim, spec.blocks, *shape)
    ).astype(jnp.float32)


def update_factor(
    factor: Float[Array, "dim dim blocks *lanes"],
    x: Float[Array, "dim *lanes"],
    block: Float[Array, "blocks *lanes"],
) -> Float[Array, "dim dim blocks *lanes"]:
    """Rank-one update of the Cholesky factor of the played block."""
    current = lanes.pick(jnp.moveaxis(factor, 2, 0), block[:, None, None])
    updated = lanes.rank_one_update(current, x)
    return jnp.where(block > 0, updated[:, :, None], factor)
