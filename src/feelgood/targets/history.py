"""What an agent remembers: sufficient statistics, and past rounds where those do not suffice."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes
from feelgood.targets import models

#: The parameters of a linear model, and a number per chain.
Theta = Float[Array, "dim blocks *lanes"]
Value = Float[Array, "*lanes"]

#: Smallest number of rounds that a pass over one chain's history reads, and that there is room for.
SMALLEST_PASS, SMALLEST_ROOM = 256, 512
#: Up to this many multiplications a product is written as a sum, and not as a call of the library
#: for products, around which the compiler cannot compile a loop whole (see `engine.compiling`).
#: Not more: XLA as in JAX 0.10 errs in differences of such sums over some 100,000 numbers.
SMALL_PRODUCT = 4096


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


class Stats(NamedTuple):
    """Σ x xᵀ and Σ r x of each parameter block: all that a squared loss needs of the past."""

    gram: Float[Array, "dim dim blocks *lanes"]
    moment: Float[Array, "dim blocks *lanes"]

    @classmethod
    def empty(cls, spec: Spec) -> "Stats":
        """No observations."""
        moment = jnp.zeros((spec.dim, spec.blocks, *spec.lanes))
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
    valid: Float[Array, "... width"]


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

    def _played(self) -> Array | None:
        return self.features if self.spec.shared else self.contexts

    def slice(self, start: Int[Array, ""] | int, size: int) -> Chunk:
        """`size` rounds from `start` on, with a mask of those that are filled."""

        def take(store: Array | None) -> Array | None:
            if store is None or (isinstance(start, int) and size == store.shape[-1]):
                return store
            return lax.dynamic_slice_in_dim(store, start, size, axis=-1)

        arms, rewards = take(self.arms), take(self.rewards)
        assert arms is not None and rewards is not None
        return Chunk(
            contexts=take(self.contexts),
            features=take(self._played()),
            arms=arms,
            rewards=rewards,
            valid=(start + jnp.arange(size) < self.filled).astype(jnp.float32),
        )

    def total(self, function: Callable[[Chunk, Any], Any], argument: Any) -> Any:
        """Σ over the filled rounds of a function of a chunk that sums over its own rounds."""
        if self.spec.layout.reads_all:
            return function(self.slice(0, self.capacity), argument)
        sizes = sizes_up_to(self.capacity)

        def reading(size: int) -> Callable[["Rows", Any], Any]:
            return lambda rows, argument: function(rows.slice(0, size), argument)

        which = smallest_size(sizes, self.filled)
        return lax.switch(which, [reading(size) for size in sizes], self, argument)

    def piece(self, number: Int[Array, "*lanes"], size: int, longest: int | None = None) -> Chunk:
        """A piece of the history, see `random_piece`, as a chunk; `longest`: see `piece_window`."""
        first, valid = piece_window(number, self.filled, size, self.capacity, longest)

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
            features=take(self._played()),
            arms=arms,
            rewards=rewards,
            valid=valid,
        )


def piece_length(
    number: Int[Array, "*lanes"], filled: Int[Array, ""], size: int
) -> Int[Array, "*lanes"]:
    """Rounds in a piece: `size`, or all that are left where those are fewer than 2 · `size`."""
    left = filled - number * size
    return jnp.where(left < 2 * size, left, size)


def piece_window(
    number: Int[Array, "*lanes"],
    filled: Int[Array, ""],
    size: int,
    capacity: int,
    longest: int | None = None,
) -> tuple[Int[Array, "*lanes"], Float[Array, "*lanes width"]]:
    """Where to begin reading a piece, and which of the rounds read are in it.

    `longest`: how many rounds the piece has at most, where that is known; so many are read, or as
    many as there is room for.
    """
    width = min(2 * size - 1 if longest is None else longest, capacity)
    start = number * size
    end = start + piece_length(number, filled, size)
    first = jnp.minimum(start, capacity - width)
    at = first[..., None] + jnp.arange(width)
    return first, ((at >= start[..., None]) & (at < end[..., None])).astype(jnp.float32)


def random_piece(
    luck: Float[Array, "*lanes"], filled: Int[Array, ""], size: int
) -> tuple[Int[Array, "*lanes"], Float[Array, "*lanes"]]:
    """A random piece of a history in pieces of `size` rounds, and the weight of a sum over it.

    The piece of a round drawn uniformly, by one uniform number. With n rounds a piece of m is
    drawn with probability m/n, so the sum over it with weight n/m is unbiased for the sum over all
    rounds. What does not fill a piece at the end belongs to the last one: no weight is larger than
    n/`size`, or estimates would now and then be very large. Consecutive rounds are read several
    times as fast as rounds from all over the history.
    """
    drawn = jnp.minimum((luck * filled).astype(jnp.int32), jnp.maximum(filled - 1, 0))
    last = jnp.maximum(lax.div(filled, size), 1) - 1
    number = jnp.minimum(lax.div(drawn, size), last)
    return number, filled / jnp.maximum(piece_length(number, filled, size), 1)


class PieceGrams(eqx.Module):
    """Σ x xᵀ of each block of parameters, over every `size` consecutive rounds.

    All that a squared loss needs of a piece of the history: where there are fewer parameters than
    rounds in a piece, it is less than the rounds themselves.
    """

    grams: Float[Array, "pieces dim dim blocks *lanes"]
    size: int = eqx.field(static=True)

    @classmethod
    def empty(cls, spec: Spec, size: int) -> "PieceGrams":
        """No rounds, and room for a few."""
        shape = (-(-SMALLEST_ROOM // size), spec.dim, spec.dim, spec.blocks, *spec.lanes)
        return cls(grams=jnp.zeros(shape), size=size)

    @property
    def capacity(self) -> int:
        """Rounds that there is room for."""
        return len(self.grams) * self.size

    def reserve(self, rounds: int) -> "PieceGrams":
        """The same pieces with room for at least `rounds` rounds."""
        extra = max(0, -(-max(rounds, SMALLEST_ROOM) // self.size) - len(self.grams))
        more = jnp.zeros((extra, *self.grams.shape[1:]))
        return PieceGrams(grams=jnp.concatenate([self.grams, more]), size=self.size)

    def add(
        self,
        x: Float[Array, "dim *lanes"],
        block: Float[Array, "blocks *lanes"],
        count: Int[Array, ""],
    ) -> "PieceGrams":
        """Round `count`, counted from 0."""
        if is_full(count, self.capacity):
            return self.reserve(2 * self.capacity).add(x, block, count)
        number = lax.div(count, self.size)
        gram = lax.dynamic_index_in_dim(self.grams, number, 0, keepdims=False)
        gram = gram + lanes.outer(x, x)[:, :, None] * block
        grams = lax.dynamic_update_index_in_dim(self.grams, gram, number, 0)
        return PieceGrams(grams=grams, size=self.size)

    def of(
        self, number: Int[Array, "*lanes"], filled: Int[Array, ""]
    ) -> Float[Array, "dim dim blocks *lanes"]:
        """Σ x xᵀ over one piece, see `random_piece`."""
        more = piece_length(number, filled, self.size) > self.size
        after = jnp.minimum(number + 1, len(self.grams) - 1)
        return self._stored(number) + jnp.where(more, self._stored(after), 0.0)

    def _stored(self, number: Int[Array, "*lanes"]) -> Float[Array, "dim dim blocks *lanes"]:
        if number.ndim == 0:
            return lax.dynamic_index_in_dim(self.grams, number, 0, keepdims=False)
        return jnp.take_along_axis(
            self.grams, number[None, None, None, None], 0, mode="promise_in_bounds"
        )[0]


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


def total_of(
    values: Float[Array, "*lanes width"], valid: Float[Array, "... width"]
) -> Float[Array, "*lanes"]:
    """Σ over the valid rounds.

    A long one is a product with the mask: a sum must add its terms in order, and all that it is
    fused with is then computed one by one as well.
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


def frobenius(gram: Float[Array, "dim dim blocks *lanes"]) -> Float[Array, "blocks *lanes"]:
    """‖G‖_F: an upper bound of the largest eigenvalue, at most √dim too large."""
    return jnp.sqrt(jnp.sum(gram * gram, axis=(0, 1)))


def scaled_identity(spec: Spec, scale: Number) -> Float[Array, "dim dim blocks *lanes"]:
    """√scale · I, a square root of scale · I, for every block."""
    eye = jnp.eye(spec.dim).reshape(spec.dim, spec.dim, *([1] * (1 + len(spec.lanes))))
    shape = (spec.dim, spec.dim, spec.blocks, *spec.lanes)
    return jnp.broadcast_to(jnp.sqrt(scale) * eye, shape).astype(jnp.float32)


def update_factor(
    factor: Float[Array, "rows dim blocks *lanes"],
    x: Float[Array, "dim *lanes"],
    block: Float[Array, "blocks *lanes"],
    below: Float[Array, "more *lanes"] | None = None,
) -> Float[Array, "rows dim blocks *lanes"]:
    """Rank-one update of the Cholesky factor of the played block, and of rows below it.

    `below` is the update's part for those rows; see `lanes.rank_one_update`.
    """
    row = x if below is None else jnp.concatenate([x, below])
    n = len(x)
    if n > lanes.WRITTEN_OUT:
        current, row = lax.optimization_barrier((_of_block(factor, block), row))
        updated = lanes.rank_one_update(current, row)
    else:
        # Solved for every block, as an agent may have done to choose the arm: then it is free.
        feature = jnp.broadcast_to(x[:, None], (n, *block.shape))
        white = jnp.sum(lanes.solve_lower(factor[:n], feature) * block, axis=1)
        current, row, white = lax.optimization_barrier((_of_block(factor, block), row, white))
        updated = lanes.rank_one_from_solution(current, row, white)
    return jnp.where(block > 0, updated[:, :, None], factor)


def update_inverse_root(
    root: Float[Array, "dim dim blocks *lanes"],
    x: Float[Array, "dim *lanes"],
    block: Float[Array, "blocks *lanes"],
) -> Float[Array, "dim dim blocks *lanes"]:
    """B with BᵀB = V⁻¹ of the played block, after V has become V + x xᵀ."""
    updated = lanes.inverse_root_update(_of_block(root, block), x)
    return jnp.where(block > 0, updated[:, :, None], root)


def _of_block(
    values: Float[Array, "rows dim blocks *lanes"], block: Float[Array, "blocks *lanes"]
) -> Float[Array, "rows dim *lanes"]:
    """The part of the block that a one-hot vector names."""
    if block.shape[0] > lanes.WRITTEN_OUT_ARMS:
        return jnp.sum(values * block, axis=2)
    total = values[:, :, 0] * block[0]
    for a in range(1, block.shape[0]):
        total = total + values[:, :, a] * block[a]
    return total
