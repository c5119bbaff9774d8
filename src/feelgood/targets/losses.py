"""The loss ℓ(f, r) of a score and a reward, and its slope."""

import jax
from jaxtyping import Array, Float

from feelgood.core.spec import Likelihood, Spec

#: What an agent's setting `likelihood` allows.
LOSSES = ("auto", "squared", "bernoulli")


def loss_for(choice: str, spec: Spec) -> Likelihood:
    """The loss that a setting chooses; "auto" is that of the problem's rewards."""
    if choice == "auto":
        return spec.rewards
    return "squared" if choice == "squared" else "bernoulli"


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
