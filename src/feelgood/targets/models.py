"""Reward models f_θ. The linear one, for both kinds of context."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from feelgood.core.spec import Spec
from feelgood.numerics import lanes


def features(spec: Spec, context: Float[Array, "dim ..."]) -> Float[Array, "dim arms_or_1 ..."]:
    """The context with an arm axis: of length 1 where all arms see the same context."""
    return context if spec.shared else context[:, None]


def scores(
    spec: Spec, theta: Float[Array, "dim blocks ..."], context: Float[Array, "dim ..."]
) -> Float[Array, "arms ..."]:
    """θ_a · x (disjoint) or θ · x_a (shared) for every arm; no block feature is ever built."""
    return lanes.dot(theta, features(spec, context))


def played(
    spec: Spec, context: Float[Array, "dim ..."], arm: Int[Array, "*lanes"]
) -> tuple[Float[Array, "dim *lanes"], Float[Array, "blocks *lanes"]]:
    """The feature of the played arm and the parameter block it belongs to (one-hot)."""
    onehot = lanes.one_hot(arm, spec.arms)
    if spec.shared:
        return lanes.pick(jnp.swapaxes(context, 0, 1), onehot[:, None]), jnp.ones_like(onehot[:1])
    return context, onehot
