"""The loss ℓ(f, r) of a score and a reward, and its slope."""

import jax
from jaxtyping import Array, Float

from feelgood.core.spec import Likelihood


def loss_slope(
    likelihood: Likelihood, scores: Float[Array, "..."], rewards: Float[Array, "..."]
) -> Float[Array, "..."]:
    """∂ℓ/∂f."""
    if likelihood == "squared":
        return 2.0 * (scores - rewards)
    return jax.nn.sigmoid(scores) - rewards


def loss(
    likelihood: Likelihood, scores: Float[Array, "..."], rewards: Float[Array, "..."]
) -> Float[Array, "..."]:
    """ℓ(f, r)."""
    if likelihood == "squared":
        return (scores - rewards) ** 2
    return jax.nn.softplus(scores) - rewards * scores
