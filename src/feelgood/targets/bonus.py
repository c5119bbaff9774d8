"""The feel-good bonus λ Σ_s φ(max_a f_θ(x_s, a)) over all arms of every stored context.

How the sum is evaluated is said in `targets.evaluators`.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from feelgood.core.settings import setting
from feelgood.core.spec import Number


class FeelGood(eqx.Module):
    """The bonus λ φ(g) with φ(g) = min(b, g), or its smoothed form.

    Zhang, "Feel-good Thompson sampling for contextual bandits and reinforcement learning", 2022.
    """

    lam: Number = setting(
        0.1, "weight λ of the feel-good bonus", low=0.0, high=1e6, tune=(1e-3, 1.0)
    )
    b: Number = setting(1000.0, "cap b of the feel-good bonus", above=0.0, high=1e9)

    #: Whether φ' takes the values 0 and 1 only.
    hard: ClassVar[bool] = True

    def phi(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ(g)."""
        return jnp.minimum(self.b[..., None], best)

    def slope(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        """φ'(g)."""
        return (best < self.b[..., None]).astype(jnp.float32)

    def bend(self) -> Float[Array, "..."]:
        """How far from b the function φ is straight to float32 accuracy."""
        return jnp.zeros_like(self.b)

    @property
    def sharpness(self) -> Number:
        """s of the corner's rounding; infinite for a corner that is not rounded."""
        return jnp.full_like(self.b, jnp.inf)


class SmoothedFeelGood(FeelGood):
    """φ(g) = b − softplus(s(b − g))/s: the cap with a rounded corner.

    Computed as min(b, g) − softplus(−s|b − g|)/s, which keeps float32 accuracy for large b.
    """

    s: Number = setting(10.0, "sharpness s of the smoothed bonus", above=0.0, high=1e6)

    hard = False

    def phi(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        b, s = self.b[..., None], self.s[..., None]
        return jnp.minimum(b, best) - jax.nn.softplus(-s * jnp.abs(b - best)) / s

    def slope(self, best: Float[Array, "..."]) -> Float[Array, "..."]:
        return jax.nn.sigmoid(self.s[..., None] * (self.b[..., None] - best))

    def bend(self) -> Float[Array, "..."]:
        # e^{-20} = 2e-9: below half a unit in the last place of a slope of 1, or of 0 in a sum.
        return 20.0 / self.s

    @property
    def sharpness(self) -> Number:
        return self.s
