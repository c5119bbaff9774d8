"""Σ over the played rounds of a loss of the score, and its gradient, one short strip at a time.

Where the loss is not quadratic, every inner step reads every played round, and this sum is what a
step costs. On a processor it is taken by one chain after the other and by strips of a few rounds. A
strip stays in the nearest cache between its scores and its share of the gradient, no part of the
store is copied, and the loop ends with the last round that there is.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from feelgood.targets.history import Rows
from feelgood.targets.sums import Theta, Value

#: Rounds per strip, and partial sums per parameter.
STRIP, PARTIAL_SUMS = 128, 16
#: Sums of products that are added up side by side: one after the other, each would wait.
SIDE_BY_SIDE = 4
#: Up to so many parameters a strip's products are written out; more would take long to compile.
WRITTEN_OUT_PARAMETERS = 512

#: A function of scores and rewards, element by element.
OfScores = Callable[[Float[Array, "..."], Float[Array, "..."]], Float[Array, "..."]]


def suits(rows: Rows) -> bool:
    """Whether the sum is taken by strips; otherwise `Rows.total` takes it in one pass."""
    return not rows.spec.layout.reads_all and rows.spec.parameters <= WRITTEN_OUT_PARAMETERS


def total_by_strips(
    rows: Rows, theta: Theta, loss: OfScores, slope: OfScores
) -> tuple[Value, Theta]:
    """Σ ℓ(f_θ, r) over the filled rounds, and its gradient, for the chains of all lanes.

    `slope` is the derivative of `loss` in the score.
    """
    rows = rows.reserve(STRIP)  # nothing to do but for a store made by hand
    of_chain = functools.partial(_of_chain, rows, loss=loss, slope=slope)
    if not rows.spec.lanes:
        return of_chain(None, theta)
    chains = rows.spec.layout.chains
    values, gradients = lax.map(
        lambda at: of_chain(*at), (jnp.arange(chains), jnp.moveaxis(theta, -1, 0))
    )
    return values, jnp.moveaxis(gradients, 0, -1)


def _of_chain(
    rows: Rows,
    lane: Int[Array, ""] | None,
    theta: Float[Array, "dim blocks"],
    *,
    loss: OfScores,
    slope: OfScores,
) -> tuple[Float[Array, ""], Float[Array, "dim blocks"]]:
    """The sum of one chain, which is in this lane; None: there are no lanes."""
    features, blocks, shared = rows.played_features(), jnp.arange(theta.shape[1]), rows.spec.shared
    assert features is not None

    def one(i: Int[Array, ""], sums: tuple[Array, Array]) -> tuple[Array, Array]:
        # The last strip is moved back to stay inside the store; its mask starts where it should.
        first = jnp.minimum(i * STRIP, rows.capacity - STRIP)
        cut = functools.partial(_strip, first=first, lane=lane)
        arms, rewards = cut(rows.arms), cut(rows.rewards)
        number = first + jnp.arange(STRIP)
        valid = (number >= i * STRIP) & (number < rows.filled)

        def scores() -> Array:
            x = [cut(features, entry=d) for d in range(len(features))]
            score = written_dot(theta[:, 0], x)
            for b in range(1, theta.shape[1]):
                score = jnp.where(arms == b, written_dot(theta[:, b], x), score)
            return score

        score = kept(i, scores)
        counted = valid[None] if shared else valid & (arms == blocks[:, None])
        weights = kept(i, lambda: jnp.where(counted, slope(score, rewards), 0.0))
        products = weights * cut(features)[:, None]
        value, gradient = sums
        value = folded(value, jnp.where(valid, loss(score, rewards), 0.0))
        return value, folded(gradient, products)

    strips = -(-jnp.minimum(rows.filled, rows.capacity) // STRIP)
    nothing = jnp.zeros(PARTIAL_SUMS), jnp.zeros((*theta.shape, PARTIAL_SUMS))
    value, gradient = lax.fori_loop(0, strips, one, nothing)
    return jnp.sum(value, axis=-1), jnp.sum(gradient, axis=-1)


def _strip(
    store: Array,
    first: Int[Array, ""],
    lane: Int[Array, ""] | None,
    entry: int | None = None,
) -> Array:
    """The rounds from `first` on of one chain; with `entry`, only that of the leading axis.

    One slice, not two: the compiler would copy what the first one gives.
    """
    lead = store.shape[: store.ndim - 1 - (lane is not None)]
    where: list[tuple[Any, int]] = [(entry, 1)]
    if entry is None:
        where = [(0, size) for size in lead]
    if lane is not None:
        where.append((lane, 1))
    starts, sizes = zip(*where, (first, STRIP), strict=True)
    return lax.dynamic_slice(store, starts, sizes).reshape(*lead[(entry is not None) :], STRIP)


def written_dot(
    theta: Float[Array, "dim *settings"], x: list[Float[Array, " strip"]]
) -> Float[Array, "*settings strip"]:
    """θ · x of every round, as a few sums side by side."""
    terms = [theta[d, ..., None] * x[d] for d in range(len(x))]
    count = min(SIDE_BY_SIDE, len(terms))
    sums = [functools.reduce(jnp.add, terms[k::count]) for k in range(count)]
    return functools.reduce(jnp.add, sums)


def kept(turn: Int[Array, ""], compute: Callable[[], Array]) -> Array:
    """What a function computes, stored: a loop of one turn.

    Otherwise the compiler computes scores anew wherever they are used: for every parameter.
    """
    shape = jax.eval_shape(compute)
    start = turn, jnp.zeros(shape.shape, shape.dtype)
    return lax.while_loop(lambda at: at[0] <= turn, lambda at: (at[0] + 1, compute()), start)[1]


def folded(
    sums: Float[Array, "*any parts"], strip: Float[Array, "*any strip"]
) -> Float[Array, "*any parts"]:
    """The partial sums with a strip added to them, part by part."""
    for k in range(0, STRIP, PARTIAL_SUMS):
        sums = sums + strip[..., k : k + PARTIAL_SUMS]
    return sums


def strip_total(terms: Float[Array, "*any strip"]) -> Float[Array, "*any"]:
    """The sum over a strip. In parts: the compiler adds the terms of a plain sum one by one."""
    return jnp.sum(folded(jnp.zeros((*terms.shape[:-1], PARTIAL_SUMS)), terms), axis=-1)


def strip_minimum(numbers: Float[Array, "*any strip"]) -> Float[Array, "*any"]:
    """The smallest of a strip, in parts, too."""
    least = numbers[..., :PARTIAL_SUMS]
    for k in range(PARTIAL_SUMS, STRIP, PARTIAL_SUMS):
        least = jnp.minimum(least, numbers[..., k : k + PARTIAL_SUMS])
    return jnp.min(least, axis=-1)
