"""The loss ℓ(f, r) of a score and a reward, and its slope."""

import jax
import jax.numpy as jnp
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
    return softplus(scores) - rewards * scores


def softplus(scores: Float[Array, "..."]) -> Float[Array, "..."]:
    """ln(1 + eᶠ) = max(f, 0) + ln(1 + u) with u = e^(−|f|).

    ln(1 + u) = 2 artanh(s) with s = u/(2 + u) ≤ 1/3, of which seven terms of the series are exact
    to float32. `log1p` of the compiler is several times slower on a processor.
    """
    u = jnp.exp(-jnp.abs(scores))
    s = u / (2.0 + u)
    square = s * s
    series = jnp.full_like(s, 1.0 / 13.0)
    for odd in (11, 9, 7, 5, 3, 1):
        series = series * square + 1.0 / odd
    return jnp.maximum(scores, 0.0) + 2.0 * s * series
