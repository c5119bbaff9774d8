"""Laws over arms, and draws from them."""

import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, Int

#: The largest uniform: times the sum of a law it is still below that sum, in single precision.
_BELOW_ONE = 1.0 - 2.0**-22


def shared_by_best(scores: Float[Array, "arms *lanes"]) -> Float[Array, "arms *lanes"]:
    """The best arm with certainty; several best ones with equal probabilities.

    Where a score is not finite there is no law, and all entries are NaN.
    """
    best = (scores == jnp.max(scores, axis=0)).astype(jnp.float32)
    sound = jnp.all(jnp.isfinite(scores), axis=0)
    return jnp.where(sound, best / jnp.sum(best, axis=0), jnp.nan)


def drawn_arm(
    normal: Float[Array, "*lanes"], law: Float[Array, "arms *lanes"]
) -> Int[Array, "*lanes"]:
    """An arm with the law's probabilities, from one standard normal: the inverse of its sums.

    An arm of probability 0 is never drawn. Where there is no law, the answer is one past the last
    arm, as in `lanes.argmax`.
    """
    sums = jnp.cumsum(law, axis=0)
    uniform = jnp.minimum(ndtr(normal), _BELOW_ONE)
    arm = jnp.sum(sums <= uniform * sums[-1], axis=0)
    return jnp.where(jnp.isfinite(sums[-1]), arm, law.shape[0])
