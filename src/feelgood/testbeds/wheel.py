"""The wheel bandit of Riquelme, Tucker and Snoek (ICLR 2018)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.core.testbed import Testbed
from feelgood.numerics import generator
from feelgood.testbeds.naming import register_numbered


@register_numbered("wheel", "delta", ("wheel-0.01", "wheel-0.1", "wheel-0.5", "wheel-0.99"))
class Wheel(Testbed):
    """Wheel: a safe arm everywhere, one rich arm per quadrant outside the radius δ.

    Contexts are uniform in the unit disc. Arm 0 pays μ₁ everywhere. Arms 1 to 4 pay μ₂, except
    that where ‖x‖ > δ the arm of x's quadrant (counted clockwise from x₁, x₂ > 0) pays μ₃. All
    rewards have Gaussian noise. Closed forms per round: the best arm's mean is
    δ² μ₁ + (1 − δ²) μ₃. So "always arm 0" regrets (1 − δ²)(μ₃ − μ₁), and a uniform agent
    0.8 δ² (μ₁ − μ₂) + (1 − δ²)(μ₃ − (μ₁ + 3μ₂ + μ₃)/5).
    """

    delta: Number = setting(0.5, "radius of the poor inner disc", above=0.0, high=1.0)
    mu1: Number = setting(1.2, "mean reward of the safe arm", low=-1e6, high=1e6)
    mu2: Number = setting(1.0, "mean reward of a wrong outer arm", low=-1e6, high=1e6)
    mu3: Number = setting(50.0, "mean reward of the right outer arm", low=-1e6, high=1e6)
    noise: Number = setting(0.01, "standard deviation of the rewards", low=0.0, high=1e6)
    intercept: bool = setting(False, "append a constant 1 to the context")
    horizon: int = setting(5_000, "usual number of rounds", low=1, high=1_000_000_000)

    @property
    def spec(self) -> Spec:
        return Spec(arms=5, dim=3 if self.intercept else 2)

    @property
    def rounds(self) -> int:
        return self.horizon

    def init(self, key: Key[Array, ""]) -> tuple[()]:
        del key
        return ()

    def context(
        self, key: Key[Array, ""], state: tuple[()], t: Int[Array, ""]
    ) -> Float[Array, " dim"]:
        del state, t
        turn, area = jax.random.uniform(key, (2,))
        angle, radius = 2 * jnp.pi * turn, jnp.sqrt(area)
        point = [radius * jnp.cos(angle), radius * jnp.sin(angle)]
        return jnp.stack([*point, jnp.ones(())] if self.intercept else point)

    def mean_rewards(
        self, state: tuple[()], context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del state, t
        right, upper = context[0] > 0, context[1] > 0
        outer = context[0] ** 2 + context[1] ** 2 > self.delta**2
        quadrant = jnp.stack([right & upper, right & ~upper, ~right & ~upper, ~right & upper])
        outer_arms = jnp.where(outer & quadrant, self.mu3, self.mu2)
        return jnp.concatenate([jnp.reshape(self.mu1, (1,)), outer_arms])

    def rewards(
        self, key: Key[Array, ""], state: tuple[()], means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        return means + self.noise * generator.normals(key, 1)

    def reward_noise(self) -> Number:
        return self.noise
