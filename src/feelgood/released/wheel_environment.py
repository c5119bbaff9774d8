"""The wheel of the released code, which is no wheel."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from feelgood.core.settings import setting
from feelgood.core.spec import Number, Spec
from feelgood.core.testbed import Testbed
from feelgood.numerics import generator
from feelgood.testbeds.naming import register_numbered

ARMS, DIM = 5, 2


@register_numbered("released-wheel", "delta", ("released-wheel-0.5",), listed=False)
class ReleasedWheel(Testbed):
    """Five arms whose rewards depend neither on the context nor on δ; the last pays most.

    Contexts are N(0, I₂). Arms 0 to 3 pay `poor` on average and arm 4 `rich` (src/game.py:43-83).
    """

    delta: Number = setting(0.5, "radius, which nothing depends on", above=0.0, high=1.0)
    poor: Number = setting(0.1, "mean reward of arms 0 to 3", low=-1e6, high=1e6)
    rich: Number = setting(1.0, "mean reward of arm 4", low=-1e6, high=1e6)
    noise: Number = setting(0.01, "standard deviation of the rewards", low=0.0, high=1e6)
    horizon: int = setting(5_000, "usual number of rounds", low=1, high=1_000_000_000)

    @property
    def spec(self) -> Spec:
        return Spec(arms=ARMS, dim=DIM)

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
        return generator.normals(key, DIM)

    def mean_rewards(
        self, state: tuple[()], context: Float[Array, " dim"], t: Int[Array, ""]
    ) -> Float[Array, " arms"]:
        del state, context, t
        return jnp.where(jnp.arange(ARMS) < ARMS - 1, self.poor, self.rich)

    def rewards(
        self, key: Key[Array, ""], state: tuple[()], means: Float[Array, " arms"]
    ) -> Float[Array, " arms"]:
        del state
        return means + self.noise * generator.normals(key, 1)

    def reward_noise(self) -> Number:
        return self.noise
