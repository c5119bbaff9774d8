"""Sums over all rounds: all that a squared loss needs of the past, and their factors."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from feelgood.core.spec import Number, Spec
from feelgood.numerics import lanes

#: The parameters of a linear model, and a number per chain.
Theta = Float[Array, "dim blocks *lanes"]
Value = Float[Array, "*lanes"]


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
        if block.ndim == 1:
            gram = _with_block(self.gram, block, _of_block(self.gram, block) + lanes.outer(x, x))
        else:
            gram = self.gram + lanes.outer(x, x)[:, :, None] * block
        return Stats(gram=gram, moment=self.moment + (reward * x)[:, None] * block)

    def times(self, factor: Number) -> "Stats":
        """Every observation with this weight."""
        return Stats(gram=factor * self.gram, moment=factor * self.moment)


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
    return _with_block(factor, block, updated)


def update_inverse_root(
    root: Float[Array, "dim dim blocks *lanes"],
    x: Float[Array, "dim *lanes"],
    block: Float[Array, "blocks *lanes"],
) -> Float[Array, "dim dim blocks *lanes"]:
    """B with BᵀB = V⁻¹ of the played block, after V has become V + x xᵀ."""
    return _with_block(root, block, lanes.inverse_root_update(_of_block(root, block), x))


def _of_block(
    values: Float[Array, "rows dim blocks *lanes"], block: Float[Array, "blocks *lanes"]
) -> Float[Array, "rows dim *lanes"]:
    """The part of the block that a one-hot vector names."""
    if block.ndim == 1:
        return lax.dynamic_index_in_dim(values, jnp.argmax(block), 2, keepdims=False)
    if block.shape[0] > lanes.WRITTEN_OUT_ARMS:
        return jnp.sum(values * block, axis=2)
    total = values[:, :, 0] * block[0]
    for a in range(1, block.shape[0]):
        total = total + values[:, :, a] * block[a]
    return total


def _with_block(
    values: Float[Array, "rows dim blocks *lanes"],
    block: Float[Array, "blocks *lanes"],
    part: Float[Array, "rows dim *lanes"],
) -> Float[Array, "rows dim blocks *lanes"]:
    """The same with this part for the block that a one-hot vector names.

    One chain alone, such as a live one, changes nothing else, in half the time.
    """
    if block.ndim == 1:
        return lax.dynamic_update_index_in_dim(values, part, jnp.argmax(block), 2)
    return jnp.where(block > 0, part[:, :, None], values)
